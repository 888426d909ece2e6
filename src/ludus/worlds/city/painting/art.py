"""Pictures of cells: terrain, roads, zones and buildings, drawn in units of 1/16 of a cell."""

from collections.abc import Callable, Sequence

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.city.game.rules import Kind, Terrain
from ludus.worlds.city.interface.theme import MapColors

UNITS = 16.0
_OVERSAMPLING = 4


def darker(color: Color, share: float = 0.3) -> Color:
    """Return a colour with some black in it."""
    return mixed(color, (0, 0, 0), share)


def lighter(color: Color, share: float = 0.3) -> Color:
    """Return a colour with some white in it."""
    return mixed(color, (255, 255, 255), share)


class Board:
    """A square canvas, 16 units wide and high; drawn large and scaled down for smooth edges."""

    def __init__(self, side: int, ground: Color | None = None) -> None:
        """Start a picture of `side` pixels, on a background or transparent."""
        self._side = side
        self._large = new_surface((side * _OVERSAMPLING, side * _OVERSAMPLING), alpha=ground is None)
        self._scale = side * _OVERSAMPLING / UNITS
        if ground is not None:
            self._large.fill(ground)

    def box(self, left: float, top: float, width: float, height: float, color: Color) -> None:
        """Draw a rectangle; its edges lie on whole pixels of the large picture."""
        s = self._scale
        x, y = round(left * s), round(top * s)
        self._large.fill((*color, 255), (x, y, round((left + width) * s) - x, round((top + height) * s) - y))

    def shape(self, points: Sequence[tuple[float, float]], color: Color) -> None:
        """Draw a polygon."""
        pygame.draw.polygon(self._large, color, [(x * self._scale, y * self._scale) for x, y in points])

    def disc(self, x: float, y: float, radius: float, color: Color) -> None:
        """Draw a disc."""
        pygame.draw.circle(self._large, color, (x * self._scale, y * self._scale), radius * self._scale)

    def line(self, start: tuple[float, float], end: tuple[float, float], width: float, color: Color) -> None:
        """Draw a line."""
        s = self._scale
        first, last = (start[0] * s, start[1] * s), (end[0] * s, end[1] * s)
        pygame.draw.line(self._large, color, first, last, max(round(width * s), 1))

    def windows(self, left: float, top: float, across: int, down: int, step: tuple[float, float], color: Color) -> None:
        """Draw rows of small windows."""
        for row in range(down):
            for column in range(across):
                self.box(left + column * step[0], top + row * step[1], step[0] * 0.55, step[1] * 0.55, color)

    def finish(self) -> pygame.Surface:
        """Return the picture in its final size."""
        return pygame.transform.smoothscale(self._large, (self._side, self._side))


LEFT, RIGHT, UP, DOWN = 1, 2, 4, 8  # sides, as bits of a sprite code
_TREES = (
    ((4.5, 6), (11, 5), (8, 11)),
    ((5, 5), (11.5, 10)),
    ((4, 10), (10, 5), (12, 12)),
    ((8, 6), (4, 11), (12, 11)),
)
_SPOTS = (((3, 4), (11, 9)), ((9, 3), (5, 12)), ((12, 5), (3, 10)), ((6, 7), (13, 13)))


def draw_land(board: Board, colors: MapColors, variant: int) -> None:
    """Draw tufts of grass."""
    for x, y in _SPOTS[variant]:
        board.box(x, y, 1.2, 1.2, colors.grass_dark)
        board.box(x + 1.6, y + 1, 1.2, 1.2, colors.grass_dark)


def draw_water(board: Board, colors: MapColors, sides: int) -> None:
    """Draw waves, and a shore on the sides where there is land."""
    for x, y in ((2, 4), (9, 8), (3, 12)):
        board.box(x, y, 4, 0.9, colors.water_light)
    sand = mixed(colors.grass, colors.hill_light, 0.6)
    shores = {LEFT: (0, 0, 1.6, 16), RIGHT: (14.4, 0, 1.6, 16), UP: (0, 0, 16, 1.6), DOWN: (0, 14.4, 16, 1.6)}
    for bit, place in shores.items():
        if sides & bit:
            board.box(*place, sand)


def draw_trees(board: Board, colors: MapColors, variant: int) -> None:
    """Draw a few trees."""
    for x, y in _TREES[variant]:
        board.box(x - 0.6, y + 1.5, 1.2, 3, colors.trunk)
        board.disc(x, y, 3.1, darker(colors.tree, 0.25))
        board.disc(x - 0.4, y - 0.5, 2.5, colors.tree)
        board.disc(x - 1, y - 1.2, 1, lighter(colors.tree, 0.2))


def draw_hill(board: Board, colors: MapColors, variant: int) -> None:
    """Draw slopes with light from the upper left."""
    shift = (0, 2, -1, 1)[variant]
    board.shape(((0, 14), (5 + shift, 4), (11 + shift, 14)), colors.hill)
    board.shape(((0, 14), (5 + shift, 4), (5 + shift, 14)), colors.hill_light)
    board.shape(((7, 15), (11.5, 7), (16, 15)), darker(colors.hill, 0.12))
    board.shape(((7, 15), (11.5, 7), (11.5, 15)), mixed(colors.hill, colors.hill_light, 0.6))


TERRAINS = dict(zip(Terrain, (draw_land, draw_water, draw_trees, draw_hill), strict=True))


def draw_road(board: Board, colors: MapColors, sides: int, *, bridge: bool) -> None:
    """Draw a road that is connected on some sides; a single cell is drawn horizontally."""
    sides = sides or LEFT | RIGHT
    edge = colors.trunk if bridge else lighter(colors.road, 0.35)
    _paths(board, sides, 3.2, edge)
    _paths(board, sides, 4.2, colors.road)
    _marks(board, colors, sides)


def _paths(board: Board, sides: int, margin: float, color: Color) -> None:
    inner = 16 - 2 * margin
    board.box(margin, margin, inner, inner, color)
    long = 16 - margin
    for bit, left, top, width, height in (
        (LEFT, 0.0, margin, long, inner),
        (RIGHT, margin, margin, long, inner),
        (UP, margin, 0.0, inner, long),
        (DOWN, margin, margin, inner, long),
    ):
        if sides & bit:
            board.box(left, top, width, height, color)


def _marks(board: Board, colors: MapColors, sides: int) -> None:
    if sides in (LEFT | RIGHT, LEFT, RIGHT):
        board.box(1.5, 7.5, 4.5, 1, colors.mark)
        board.box(9.5, 7.5, 4.5, 1, colors.mark)
    elif sides in (UP | DOWN, UP, DOWN):
        board.box(7.5, 1.5, 1, 4.5, colors.mark)
        board.box(7.5, 9.5, 1, 4.5, colors.mark)


def draw_line(board: Board, colors: MapColors, sides: int) -> None:
    """Draw a mast with wires to some sides."""
    is_night = sum(colors.grass) < 300
    wire = lighter(colors.road, 0.4) if is_night else darker(colors.road, 0.55)
    mast = lighter(colors.road, 0.15) if is_night else mixed(colors.trunk, colors.road, 0.3)
    for bit, end in ((LEFT, (0, 5.5)), (RIGHT, (16, 5.5)), (UP, (8, 0)), (DOWN, (8, 16))):
        if sides & bit:
            board.line((8, 5.5), end, 0.9, wire)
    board.line((8, 3), (8, 14), 1.5, mast)
    board.line((8, 3), (8, 14), 0.5, lighter(mast))
    board.line((3.5, 5), (12.5, 5), 1.3, mast)
    board.line((5, 8), (11, 8), 1.1, mast)


def draw_rubble(board: Board, colors: MapColors, variant: int) -> None:
    """Draw rubble."""
    ash = (74, 68, 66)
    board.disc(8, 9, 6.2, darker(colors.grass, 0.4))
    for x, y, size in ((4, 7, 3), (9, 5, 2.4), (10, 10, 3.4), (5.5, 11.5, 2.4), (7.5, 8.5, 2.2)):
        board.box(x - size / 2 + variant * 0.3, y - size / 2, size, size * 0.8, ash)
        board.box(x - size / 2 + variant * 0.3, y - size / 2, size * 0.6, size * 0.3, lighter(ash))


_SMOKE: Color = (206, 206, 206)
_BLUE: Color = (48, 92, 190)
_RED: Color = (206, 48, 40)
_WHITE: Color = (244, 244, 244)
_GOLD: Color = (246, 206, 70)


def draw_missing_power(board: Board) -> None:
    """Draw a bolt on a dark disc, in the lower right corner."""
    board.disc(11.6, 11.6, 4.2, (30, 20, 20))
    board.shape(((12.4, 7.8), (9, 12.2), (11.4, 12.2), (10.4, 15.4), (14.2, 10.9), (11.9, 10.9), (13.4, 7.8)), _GOLD)


def _yard(board: Board, color: Color) -> None:
    board.box(0.5, 0.5, 15, 15, darker(color, 0.25))
    board.box(1, 1, 14, 14, color)


def _coal(board: Board, colors: MapColors) -> None:
    _yard(board, mixed(colors.road, colors.grass, 0.3))
    tower = mixed(colors.wall, colors.road, 0.25)
    board.shape(((2, 14), (3.4, 7), (3, 4.6), (8, 4.6), (7.6, 7), (9, 14)), tower)
    board.shape(((6, 14), (6, 4.6), (8, 4.6), (7.6, 7), (9, 14)), darker(tower, 0.2))
    board.disc(4.6, 3.6, 1.9, _SMOKE)
    board.disc(6.6, 2.6, 1.7, lighter(_SMOKE, 0.4))
    board.box(9.6, 8, 5, 6, colors.roof)
    board.box(9.6, 8, 5, 1.2, lighter(colors.roof))
    board.box(11.6, 2.6, 1.8, 5.6, darker(colors.roof, 0.3))
    board.box(11.6, 2.6, 1.8, 1, _RED)


def _wind(board: Board, colors: MapColors) -> None:
    board.disc(8, 14.4, 3, darker(colors.grass, 0.3))
    board.shape(((6.9, 14.5), (7.4, 6), (8.6, 6), (9.1, 14.5)), darker(_WHITE, 0.45))
    board.shape(((7.3, 14.5), (7.7, 6), (8.3, 6), (8.7, 14.5)), _WHITE)
    for end in ((8, 0.6), (13.2, 8.6), (2.8, 8.6)):
        board.line((8, 5.6), end, 1.7, darker(_WHITE, 0.45))
        board.line((8, 5.6), end, 0.8, _WHITE)
    board.disc(8, 5.6, 1.2, darker(_WHITE, 0.4))


def _pump(board: Board, colors: MapColors) -> None:
    _yard(board, mixed(colors.water_light, colors.grass, 0.5))
    board.box(3, 6, 7, 7.4, colors.wall)
    board.shape(((2.2, 6.4), (6.5, 2.6), (10.8, 6.4)), _BLUE)
    board.box(10, 9, 4.4, 2, darker(colors.water, 0.3))
    board.box(12.4, 9, 2, 5, darker(colors.water, 0.3))
    board.disc(6.5, 9.6, 1.9, colors.water)
    board.disc(6.1, 9.2, 0.8, lighter(colors.water, 0.6))


def _tower(board: Board, colors: MapColors) -> None:
    for x in (4.4, 8, 11.6):
        board.line((x, 8), (x + (x - 8) * 0.3, 15), 1, darker(colors.road, 0.3))
    board.line((4, 12), (12, 12), 0.7, darker(colors.road, 0.3))
    tank = mixed(_BLUE, colors.water_light, 0.5)
    board.box(3.2, 3.6, 9.6, 6, tank)
    board.box(9.6, 3.6, 3.2, 6, darker(tank, 0.25))
    board.shape(((2.6, 3.9), (8, 0.8), (13.4, 3.9)), darker(tank, 0.35))
    board.box(4.4, 4.8, 1.2, 3.6, lighter(tank, 0.5))


def _hall(board: Board, colors: MapColors, wall: Color, roof: Color) -> None:
    board.box(2.2, 4.4, 12.6, 10, darker(colors.grass, 0.45))
    board.box(1.6, 3.8, 12.6, 10, wall)
    board.box(10.6, 3.8, 3.6, 10, darker(wall, 0.18))
    board.box(1.2, 2.4, 13.4, 2.4, roof)


def _police(board: Board, colors: MapColors) -> None:
    _hall(board, colors, mixed(colors.wall, _BLUE, 0.25), _BLUE)
    right = ((8, 5), (9, 7.2), (11.4, 7.4), (9.6, 9), (10.2, 11.4), (8, 10.1))
    star = (*right, *((16 - x, y) for x, y in right[-2:0:-1]))
    board.shape(star, _GOLD)


def _fire(board: Board, colors: MapColors) -> None:
    _hall(board, colors, _RED, darker(_RED, 0.35))
    for x in (2.8, 8.6):
        board.box(x, 7.6, 4.6, 6.2, _WHITE)
        for row in range(3):
            board.box(x, 9 + row * 1.6, 4.6, 0.5, darker(_WHITE, 0.3))


def _clinic(board: Board, colors: MapColors) -> None:
    _hall(board, colors, _WHITE, darker(_WHITE, 0.2))
    board.box(6.6, 5.4, 2.6, 8, _RED)
    board.box(3.9, 8.1, 8, 2.6, _RED)


def _school(board: Board, colors: MapColors) -> None:
    brick = mixed(colors.roof, _GOLD, 0.55)
    _hall(board, colors, brick, darker(colors.roof, 0.2))
    board.windows(2.6, 6.2, 5, 2, (2.3, 2.4), colors.glass)
    board.box(6.8, 10.6, 2.2, 3.2, darker(colors.trunk, 0.2))
    board.line((8, 0.4), (8, 3), 0.7, colors.trunk)
    board.shape(((8.2, 0.3), (12, 1.3), (8.2, 2.3)), _BLUE)


def _park(board: Board, colors: MapColors) -> None:
    lawn = mixed(colors.tree, colors.residential, 0.55)
    _yard(board, lawn)
    board.line((1, 13), (15, 4), 1.6, mixed(colors.wall, colors.grass, 0.3))
    for x, y in ((4, 4.5), (11.6, 11.2), (12, 3)):
        board.disc(x + 0.3, y + 0.4, 2.3, darker(colors.tree, 0.35))
        board.disc(x, y, 2.1, colors.tree)
    board.disc(5.4, 11.2, 2, colors.water_light)
    board.disc(5.4, 11.2, 1, _WHITE)


# Buildings that are not zones.
BUILDINGS: dict[Kind, Callable[[Board, MapColors], None]] = {
    Kind[draw.__name__[1:].upper()]: draw
    for draw in (_coal, _wind, _pump, _tower, _police, _fire, _clinic, _school, _park)
}


def draw_zone(board: Board, colors: MapColors, kind: int, size: int, variant: int) -> None:
    """Draw a zone: its lot in the colour of its kind, and the building of its size."""
    color = (colors.residential, colors.commercial, colors.industrial)[kind - Kind.RESIDENTIAL]
    board.box(0, 0, 16, 16, mixed(colors.grass, color, 0.45))
    for left, top, width, height in ((0, 0, 16, 0.9), (0, 15.1, 16, 0.9), (0, 0, 0.9, 16), (15.1, 0, 0.9, 16)):
        board.box(left, top, width, height, color)
    if size == 0:
        for x, y in ((2, 2), (11, 2), (2, 11), (11, 11)):
            board.box(x, y, 3, 3, color)
        return
    _ZONES[Kind(kind)](board, colors, size, variant)


def _house(board: Board, colors: MapColors, left: float, top: float, roof: Color) -> None:
    board.box(left + 0.6, top + 3, 4.8, 4, colors.wall)
    board.box(left + 3.6, top + 3, 1.8, 4, darker(colors.wall, 0.2))
    board.shape(((left, top + 3.4), (left + 3, top), (left + 6, top + 3.4)), roof)
    board.shape(((left + 3, top), (left + 6, top + 3.4), (left + 3, top + 3.4)), darker(roof, 0.25))
    board.box(left + 1.2, top + 4.2, 1.3, 1.3, colors.glass)
    board.box(left + 3.1, top + 4.8, 1.2, 2.2, darker(colors.trunk, 0.2))


def _block(board: Board, colors: MapColors, place: tuple[float, float, float, float], wall: Color) -> None:
    left, top, width, height = place
    board.box(left + 0.7, top + 0.7, width, height, darker(colors.grass, 0.45))
    board.box(left, top, width, height, wall)
    board.box(left + width * 0.7, top, width * 0.3, height, darker(wall, 0.22))
    board.box(left, top, width, 1.1, lighter(wall, 0.35))


def _homes(board: Board, colors: MapColors, size: int, variant: int) -> None:
    roofs = (colors.roof, darker(colors.roof, 0.2), mixed(colors.roof, colors.commercial, 0.35), colors.roof)
    roof = roofs[variant]
    if size == 1:
        x, y = ((5, 4.5), (2.5, 6), (7, 3.5), (4, 7))[variant]
        _house(board, colors, x, y, roof)
        board.disc(13.2 if x < 6 else 3.2, 12.2, 1.7, colors.tree)
    elif size == 2:
        _house(board, colors, 1.6, 1.4, roof)
        _house(board, colors, 8.4, 2.2, roofs[(variant + 1) % 4])
        _house(board, colors, 4.8, 8, roofs[(variant + 2) % 4])
    elif size == 3:
        wall = mixed(colors.wall, colors.roof, 0.25)
        _block(board, colors, (2.2, 3.4, 11, 10), wall)
        board.windows(3.4, 5.4, 4, 3, (2.5, 2.5), colors.glass)
        board.box(7, 11.4, 2, 2, darker(colors.trunk, 0.2))
    else:
        wall = mixed(colors.wall, colors.residential, 0.18)
        _block(board, colors, (1.6, 2, 5.8, 12), wall)
        _block(board, colors, (8.4, 3.6, 5.6, 10.6), darker(wall, 0.08))
        board.windows(2.4, 4, 3, 5, (1.7, 1.9), colors.glass)
        board.windows(9.2, 5.6, 3, 4, (1.6, 1.9), colors.glass)


def _shops(board: Board, colors: MapColors, size: int, variant: int) -> None:
    color = colors.commercial
    if size == 1:
        _block(board, colors, (3.5, 5, 9, 7), colors.wall)
        for stripe in range(5):
            board.box(3.5 + stripe * 1.8, 6.6, 1.8, 1.8, (color, lighter(color, 0.7))[stripe % 2])
        board.box(4.6, 9.2, 3.4, 2, colors.glass)
        board.box(9, 9, 2, 3, darker(colors.trunk, 0.2))
    elif size == 2:
        _block(board, colors, (2, 3.4, 12, 9.6), mixed(colors.wall, color, 0.2))
        board.box(2, 4.6, 12, 2.2, color)
        board.box(4, 5.1, (6, 8, 5, 7)[variant], 1.1, lighter(color, 0.8))
        board.box(3.2, 8, 9.4, 2.6, colors.glass)
        board.box(7, 10.6, 2, 2.4, darker(colors.trunk, 0.2))
    elif size == 3:
        wall = mixed(colors.glass, color, 0.45)
        _block(board, colors, (3, 2, 10, 12), wall)
        board.windows(4, 3.8, 4, 5, (2.2, 2.1), lighter(colors.glass, 0.3))
    else:
        wall = mixed(colors.glass, color, 0.65)
        _block(board, colors, (2.4, 5.6, 11, 8.8), darker(wall, 0.2))
        _block(board, colors, (4.2, 1.2, 7.4, 13), wall)
        board.windows(5, 2.8, 3, 7, (2.1, 1.6), lighter(colors.glass, 0.5))
        board.line((8, 0), (8, 1.4), 0.8, lighter(wall, 0.6))


def _works(board: Board, colors: MapColors, size: int, variant: int) -> None:
    brick = mixed(colors.industrial, colors.roof, 0.45)
    steel = mixed(colors.road, colors.wall, 0.55)
    if size == 1:
        _block(board, colors, (3, 6, 9.4, 6.4), steel)
        board.box(5, 9, 3, 3.4, darker(steel, 0.4))
        board.box((10, 3, 11, 9)[variant], 3.6, 1.6, 3, brick)
        return
    _block(board, colors, (1.8, 7, 12.2, 6.8), brick)
    for tooth in range(3 if size < 4 else 4):
        x = 1.8 + tooth * (4 if size < 4 else 3)
        width = 4 if size < 4 else 3
        board.shape(((x, 7), (x, 4.4), (x + width, 7)), steel)
        board.shape(((x, 4.4), (x + width, 7), (x + width * 0.4, 7)), darker(steel, 0.3))
    board.windows(3, 9, 4, 1 if size == 2 else 2, (2.6, 2.2), lighter(colors.industrial, 0.4))
    if size >= 3:
        board.box(11.6, 1.4, 2, 6, darker(brick, 0.15))
        board.box(11.6, 1.4, 2, 1, lighter(brick, 0.5))
        board.disc(13, 1.2, 1.3, (196, 196, 196))
    if size == 4:
        board.box(8.4, 2, 1.8, 5, darker(brick, 0.25))
        board.disc(4.4, 12.6, 2, lighter(steel, 0.3))
        board.disc(4.2, 12.3, 1.4, lighter(steel, 0.55))


_ZONES = {Kind.RESIDENTIAL: _homes, Kind.COMMERCIAL: _shops, Kind.INDUSTRIAL: _works}
