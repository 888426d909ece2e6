"""The colours of Brawl's look: a training yard at dusk, cool stone, two teams that differ in hue and brightness."""

from itertools import pairwise

from ludus.envs.colors import Color, Team, mixed

INK: Color = (13, 14, 26)
WHITE: Color = (246, 244, 236)
SKY = ((16, 18, 40), (34, 38, 74), (70, 66, 104), (122, 100, 124))  # from the top down
FAR_WALL: Color = (46, 46, 82)
NEAR_WALL: Color = (33, 33, 64)
MOON: Color = (206, 198, 208)
STONE: Color = (112, 104, 118)
STONE_LIGHT: Color = (156, 146, 150)
STONE_DARK: Color = (74, 68, 88)
SAND: Color = (222, 200, 152)
BRASS: Color = (214, 170, 92)
WOOD: Color = (128, 92, 70)
SKIN: Color = (232, 188, 152)
STEEL: Color = (196, 200, 212)
PANEL: Color = (18, 19, 36)
MUTED: Color = (150, 150, 170)
DANGER: Color = (255, 64, 64)
DEBUG_HURT: Color = (90, 255, 140)
DEBUG_HIT: Color = (255, 70, 70)


TEAMS = (
    Team("Azure", (64, 144, 255), (34, 82, 176), (160, 208, 255)),
    Team("Scarlet", (244, 74, 82), (158, 34, 58), (255, 172, 160)),
)

# Damage at which the number has each colour; in between they blend.
_DAMAGE_RAMP: tuple[tuple[float, Color], ...] = (
    (0.0, WHITE),
    (50.0, (255, 226, 120)),
    (100.0, (255, 154, 60)),
    (150.0, (255, 78, 52)),
    (250.0, (190, 24, 60)),
)


def damage_color(damage: float) -> Color:
    """Returns the colour of a damage number: white, yellow, orange, red, dark red."""
    for (low, low_color), (high, high_color) in pairwise(_DAMAGE_RAMP):
        if damage <= high:
            return mixed(low_color, high_color, (damage - low) / (high - low))
    return _DAMAGE_RAMP[-1][1]
