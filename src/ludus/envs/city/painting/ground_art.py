"""Pictures of the land, of roads and of power lines."""

from ludus.envs.city.game.rules import Terrain
from ludus.envs.city.interface.theme import Country
from ludus.envs.city.painting.board import Board, darker, lighter
from ludus.envs.colors import Color, mixed

LEFT, RIGHT, UP, DOWN = 1, 2, 4, 8  # sides, as bits of a look
_SPOTS = (((3, 4), (11, 9)), ((9, 3), (5, 12)), ((12, 5), (3, 10)), ((6, 7), (13, 13)))


def draw_land(board: Board, country: Country, variant: int) -> None:
    """Draws tufts of grass."""
    for x, y in _SPOTS[variant]:
        board.box(x, y, 1.2, 1.2, country.grass_dark)
        board.box(x + 1.6, y + 1, 1.2, 1.2, country.grass_dark)


def draw_water(board: Board, country: Country, sides: int) -> None:
    """Draws waves, and a shore on the sides where there is land."""
    for x, y in ((2, 4), (9, 8), (3, 12)):
        board.box(x, y, 4, 0.9, country.water_light)
    sand = mixed(country.grass, country.hill_light, 0.6)
    shores = {LEFT: (0, 0, 1.6, 16), RIGHT: (14.4, 0, 1.6, 16), UP: (0, 0, 16, 1.6), DOWN: (0, 14.4, 16, 1.6)}
    for bit, place in shores.items():
        if sides & bit:
            board.box(*place, sand)


def draw_trees(board: Board, country: Country, variant: int) -> None:
    """Draws a few trees."""
    places = (
        ((4.5, 6), (11, 5), (8, 11)),
        ((5, 5), (11.5, 10)),
        ((4, 10), (10, 5), (12, 12)),
        ((8, 6), (4, 11), (12, 11)),
    )
    for x, y in places[variant]:
        board.box(x - 0.6, y + 1.5, 1.2, 3, country.trunk)
        board.disc(x, y, 3.1, darker(country.tree, 0.25))
        board.disc(x - 0.4, y - 0.5, 2.5, country.tree)
        board.disc(x - 1, y - 1.2, 1, lighter(country.tree, 0.2))


def draw_hill(board: Board, country: Country, variant: int) -> None:
    """Draws slopes with light from the upper left."""
    shift = (0, 2, -1, 1)[variant]
    board.shape(((0, 14), (5 + shift, 4), (11 + shift, 14)), country.hill)
    board.shape(((0, 14), (5 + shift, 4), (5 + shift, 14)), country.hill_light)
    board.shape(((7, 15), (11.5, 7), (16, 15)), darker(country.hill, 0.12))
    board.shape(((7, 15), (11.5, 7), (11.5, 15)), mixed(country.hill, country.hill_light, 0.6))


def draw_terrain(board: Board, country: Country, terrain: Terrain, detail: int) -> None:
    """Draws empty land."""
    if terrain == Terrain.WATER:
        draw_water(board, country, detail)
    elif terrain == Terrain.TREES:
        draw_trees(board, country, detail)
    elif terrain == Terrain.HILL:
        draw_hill(board, country, detail)
    else:
        draw_land(board, country, detail)


def draw_road(board: Board, country: Country, sides: int, *, bridge: bool) -> None:
    """Draws a road that goes on to some sides; a single cell lies from left to right."""
    sides = sides or LEFT | RIGHT
    edge = country.trunk if bridge else lighter(country.road, 0.35)
    _paths(board, sides, 3.2, edge)
    _paths(board, sides, 4.2, country.road)
    _marks(board, country, sides)


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


def _marks(board: Board, country: Country, sides: int) -> None:
    if sides in (LEFT | RIGHT, LEFT, RIGHT):
        board.box(1.5, 7.5, 4.5, 1, country.mark)
        board.box(9.5, 7.5, 4.5, 1, country.mark)
    elif sides in (UP | DOWN, UP, DOWN):
        board.box(7.5, 1.5, 1, 4.5, country.mark)
        board.box(7.5, 9.5, 1, 4.5, country.mark)


def draw_line(board: Board, country: Country, sides: int) -> None:
    """Draws a mast with wires to some sides."""
    is_night = sum(country.grass) < 300
    wire = lighter(country.road, 0.4) if is_night else darker(country.road, 0.55)
    mast = lighter(country.road, 0.15) if is_night else mixed(country.trunk, country.road, 0.3)
    for bit, end in ((LEFT, (0, 5.5)), (RIGHT, (16, 5.5)), (UP, (8, 0)), (DOWN, (8, 16))):
        if sides & bit:
            board.line((8, 5.5), end, 0.9, wire)
    board.line((8, 3), (8, 14), 1.5, mast)
    board.line((8, 3), (8, 14), 0.5, lighter(mast))
    board.line((3.5, 5), (12.5, 5), 1.3, mast)
    board.line((5, 8), (11, 8), 1.1, mast)


def draw_rubble(board: Board, country: Country, variant: int) -> None:
    """Draws what a fire leaves."""
    ash = (74, 68, 66)
    board.disc(8, 9, 6.2, darker(country.grass, 0.4))
    for x, y, size in ((4, 7, 3), (9, 5, 2.4), (10, 10, 3.4), (5.5, 11.5, 2.4), (7.5, 8.5, 2.2)):
        board.box(x - size / 2 + variant * 0.3, y - size / 2, size, size * 0.8, ash)
        board.box(x - size / 2 + variant * 0.3, y - size / 2, size * 0.6, size * 0.3, lighter(ash))
