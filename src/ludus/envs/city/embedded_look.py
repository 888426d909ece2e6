"""How the embedded game is seen and touched in one theme at one size; games that look alike share it."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ludus.envs.city.catalogue import Catalogue
from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.gestures import Gestures, embedded_places
from ludus.envs.city.interface.layout import View
from ludus.envs.city.painting.faces import face_of
from ludus.envs.city.perception.covers import CoverSense
from ludus.envs.city.perception.demand import DemandReader
from ludus.envs.city.perception.embedded import embedded_bank, embedded_fields
from ludus.envs.city.perception.look_reader import LookReader
from ludus.envs.city.perception.opencv import opencv


class EmbeddedLook:
    """Reads and plays the games of one look.

    Attributes:
        gestures: Turns decisions into gestures.
        reader: Reads the fields.
        covers: Sees open menus, dialogs and windows.
    """

    def __init__(self, games: CityGames, game: int, catalogue: Catalogue, folder: Path | None) -> None:
        """Takes the look of a game of a batch; see `embedded_bank` for the folder."""
        interface, display = games.interfaces[game], games.display
        theme, layout = interface.theme, interface.layout
        face = face_of(theme.family, theme.size_for(display.height))
        size = (display.width, display.height)
        bank = embedded_bank(theme.name, *size, folder)
        self.gestures = Gestures(catalogue, embedded_places(layout, face))
        self.reader = LookReader(embedded_fields(layout, theme), bank, DemandReader(layout.demand, theme), size)
        self.covers = CoverSense(layout, theme, face)
        self.view: View = layout.view
        self._cv2 = opencv("seeing the map")

    def shrink_map(self, pixels: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """Writes the map's part of a picture `(height, width, 4)`, resampled, to `out`, `(height, width, 3)`."""
        box = self.view.box
        self._shrink(pixels[box.top : box.bottom, box.left : box.right], out)

    def shrink_frame(self, pixels: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """Writes a picture `(height, width, 4)`, resampled, to `out`, `(height, width, 3)`."""
        self._shrink(pixels, out)

    def _shrink(self, pixels: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        small = self._cv2.resize(pixels, (out.shape[1], out.shape[0]), interpolation=self._cv2.INTER_AREA)
        out[...] = small[..., :3]
