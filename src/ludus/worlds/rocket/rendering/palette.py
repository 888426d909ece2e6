"""The colours of Rocket's look: a match at night under floodlights, two teams that differ in hue and brightness."""

from ludus.envs.colors import Color, Team

INK: Color = (10, 12, 24)
WHITE: Color = (244, 246, 248)
MUTED: Color = (150, 158, 176)
PANEL: Color = (16, 19, 36)
DANGER: Color = (255, 72, 72)
SKY = ((7, 9, 22), (12, 16, 38), (24, 31, 66), (46, 54, 96))  # from the zenith down to the horizon
GROUND: Color = (14, 18, 32)  # outside, below the horizon
STAND: Color = (27, 31, 56)
STAND_LIGHT: Color = (39, 44, 76)
GRASS = ((36, 86, 62), (48, 110, 77))  # mown in stripes
LINE: Color = (205, 222, 214)
GLASS: tuple[Color, Color, Color] = ((62, 70, 112), (42, 74, 156), (128, 72, 84))  # the walls: middle, blue, orange
RAIL: Color = (150, 166, 204)
LAMP: Color = (255, 250, 232)
BALL: Color = (226, 230, 236)
BALL_DARK: Color = (58, 66, 84)
TYRE: Color = (26, 28, 36)
HUB: Color = (176, 184, 198)
WINDOW: Color = (30, 38, 58)
PAD: Color = (255, 196, 74)
PAD_BASE: Color = (92, 84, 66)
PAD_AWAY: Color = (56, 66, 70)
FLAME: Color = (255, 190, 90)
FIRE = ((255, 250, 224), (255, 198, 84), (244, 106, 42), (120, 52, 46))  # from the start of an explosion to its end


TEAMS = (
    Team("Blue", (56, 136, 255), (26, 66, 156), (150, 202, 255)),
    Team("Orange", (255, 140, 40), (160, 72, 22), (255, 204, 142)),
)
