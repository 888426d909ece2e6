"""Colours and sizes of what is laid over and beside City's screen."""

from typing import Final

from ludus.envs.city.catalogue import CONFIRMED, NOT_JUDGED, REFUSED
from ludus.envs.colors import Color

PANEL: Final[Color] = (20, 22, 34)
LINE: Final[Color] = (52, 56, 78)
BRIGHT: Final[Color] = (240, 241, 246)
DIM: Final[Color] = (150, 155, 178)
GOOD: Final[Color] = (96, 211, 148)
BAD: Final[Color] = (255, 107, 107)
UNSURE: Final[Color] = (255, 190, 92)
POINTER: Final[Color] = (255, 64, 160)
RIM: Final[Color] = (16, 16, 24)
BAR: Final[Color] = (92, 142, 255)

VERDICTS = {
    CONFIRMED: ("confirmed: the funds fell by its cost", GOOD),
    REFUSED: ("refused: the funds did not fall", BAD),
    NOT_JUDGED: ("not judged", DIM),
}
PANEL_SHARE = 0.42  # width of the panel over the height of the picture
LEAST_LINES = 600  # of a picture; smaller ones are drawn twice as large or more


def field_color(*, readable: bool, confidence: float) -> Color:
    """Returns the colour of a reading."""
    if not readable:
        return BAD
    return GOOD if confidence >= 0.9 else UNSURE
