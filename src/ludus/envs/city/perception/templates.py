"""Finding pictures in pictures: templates are matched at a ladder of scales, in gray, and every match has its score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError
from ludus.envs.city.drivers.driver import Frame, Region
from ludus.envs.city.perception.opencv import opencv

SCALES = (1.0, 0.95, 1.05, 0.9, 1.1, 0.85, 1.15, 0.8, 1.2, 1.25)
_SURE = 0.98  # a score from which on no other scale is tried
_FLAT = 1.0  # standard deviation below which a template looks like nothing


@dataclass(frozen=True, slots=True)
class Match:
    """The best place of a template.

    Attributes:
        region: Where it is, as fractions of the picture.
        score: From -1 to 1; 1 is equal up to brightness and contrast.
        scale: How much larger than the template it is.
    """

    region: Region
    score: float
    scale: float


def find_template(
    frame: Frame, template: Frame, within: Region | None = None, scales: Sequence[float] = SCALES
) -> Match | None:
    """Returns where a template fits best, or None if it is larger than the place to look in.

    Args:
        frame: Picture `(height, width, 3)`.
        template: What to find `(height, width, 3)`, not of one colour.
        within: Where to look; the smaller, the faster.
        scales: Sizes to try, the likeliest first; a sure match ends the search.

    Raises:
        ConfigError: The template is of one colour, or a scale is not positive.
    """
    cv2 = opencv("finding templates")
    if float(template.std()) < _FLAT:
        raise ConfigError("a template of one colour fits everywhere; cut it so that it shows something")
    if not scales or min(scales) <= 0.0:
        raise ConfigError(f"scales are {tuple(scales)}; valid: positive ones, at least one")
    place = within or Region(0.0, 0.0, 1.0, 1.0)
    height, width = frame.shape[:2]
    left, top, _, _ = place.pixels(width, height)
    gray = cv2.cvtColor(np.ascontiguousarray(place.cut(frame)), cv2.COLOR_RGB2GRAY)
    pattern = cv2.cvtColor(np.ascontiguousarray(template), cv2.COLOR_RGB2GRAY)
    best: Match | None = None
    for scale in scales:
        scaled = _scaled(cv2, pattern, scale)
        if scaled.shape[0] > gray.shape[0] or scaled.shape[1] > gray.shape[1]:
            continue
        _, score, _, (x, y) = cv2.minMaxLoc(cv2.matchTemplate(gray, scaled, cv2.TM_CCOEFF_NORMED))
        if best is None or score > best.score:
            across, down = left + x, top + y
            region = Region(
                across / width, down / height, (across + scaled.shape[1]) / width, (down + scaled.shape[0]) / height
            )
            best = Match(region, float(score), float(scale))
        if best.score >= _SURE:
            break
    return best


def _scaled(cv2: Any, pattern: NDArray[np.uint8], scale: float) -> NDArray[np.uint8]:  # noqa: ANN401 - a module
    if scale == 1.0:
        return pattern
    method = cv2.INTER_AREA if scale < 1.0 else cv2.INTER_LINEAR
    size = max(1, round(pattern.shape[1] * scale)), max(1, round(pattern.shape[0] * scale))
    scaled: NDArray[np.uint8] = cv2.resize(pattern, size, interpolation=method)
    return scaled
