"""Reads the bars of demand off a picture: how far each bar goes, or that something covers it."""

import numpy as np
from numpy.typing import NDArray

from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.interface.demand import BARS, demand_places
from ludus.envs.city.interface.theme import Theme
from ludus.envs.city.perception.reading import Reading, unreadable
from ludus.envs.colors import Color

_ENGINE = "bars"


class DemandReader:
    """Reads the bars of one layout in one theme."""

    def __init__(self, box: Box, theme: Theme) -> None:
        self.box = box
        self._places = demand_places(box)
        country = theme.country
        self._inks = (country.residential, country.commercial, country.industrial)
        self._ground = theme.palette.field

    def read(self, frame: Frame) -> tuple[Reading, Reading, Reading]:
        """Returns the demand for homes, shops and industry of a picture `(height, width, 3)`."""
        first, second, third = (self._bar(frame, index) for index in range(len(BARS)))
        return first, second, third

    def _bar(self, frame: Frame, index: int) -> Reading:
        places, name = self._places, BARS[index]
        row = frame[places.tops[index] + places.height // 2, :, :3]
        right = row[places.middle + 1 : places.middle + places.half]
        left = row[places.middle - places.half : places.middle][::-1]
        more, less = self._run(right, self._inks[index]), self._run(left, self._inks[index])
        if more is None or less is None or (more and less):
            return unreadable(name, engine=_ENGINE)
        value = places.said(more + 1, more=True) if more else places.said(less, more=False)
        return Reading(name, value, 1.0, engine=_ENGINE)

    def _run(self, pixels: NDArray[np.uint8], ink: Color) -> int | None:
        """Returns how many pixels from the first on are ink; None if others are neither ink nor ground."""
        is_ink, is_ground = (pixels == ink).all(axis=1), (pixels == self._ground).all(axis=1)
        length = int(is_ink.argmin()) if not is_ink.all() else len(pixels)
        return length if bool(is_ground[length:].all()) else None
