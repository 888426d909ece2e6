"""Pictures of plants, pumps, services and parks, and of the mark that says that power is missing."""

from collections.abc import Callable

from ludus.envs.city.game.rules import Kind
from ludus.envs.city.interface.theme import Country
from ludus.envs.city.painting.board import Board, darker, lighter
from ludus.envs.colors import Color, mixed

_SMOKE: Color = (206, 206, 206)
_BLUE: Color = (48, 92, 190)
_RED: Color = (206, 48, 40)
_WHITE: Color = (244, 244, 244)
_GOLD: Color = (246, 206, 70)


def draw_building(board: Board, country: Country, kind: Kind) -> None:
    """Draws a building that is not a zone."""
    _DRAWERS[kind](board, country)


def draw_missing_power(board: Board) -> None:
    """Draws a bolt on a dark disc, in the lower right corner."""
    board.disc(11.6, 11.6, 4.2, (30, 20, 20))
    board.shape(((12.4, 7.8), (9, 12.2), (11.4, 12.2), (10.4, 15.4), (14.2, 10.9), (11.9, 10.9), (13.4, 7.8)), _GOLD)


def _yard(board: Board, color: Color) -> None:
    board.box(0.5, 0.5, 15, 15, darker(color, 0.25))
    board.box(1, 1, 14, 14, color)


def _coal(board: Board, country: Country) -> None:
    _yard(board, mixed(country.road, country.grass, 0.3))
    tower = mixed(country.wall, country.road, 0.25)
    board.shape(((2, 14), (3.4, 7), (3, 4.6), (8, 4.6), (7.6, 7), (9, 14)), tower)
    board.shape(((6, 14), (6, 4.6), (8, 4.6), (7.6, 7), (9, 14)), darker(tower, 0.2))
    board.disc(4.6, 3.6, 1.9, _SMOKE)
    board.disc(6.6, 2.6, 1.7, lighter(_SMOKE, 0.4))
    board.box(9.6, 8, 5, 6, country.roof)
    board.box(9.6, 8, 5, 1.2, lighter(country.roof))
    board.box(11.6, 2.6, 1.8, 5.6, darker(country.roof, 0.3))
    board.box(11.6, 2.6, 1.8, 1, _RED)


def _wind(board: Board, country: Country) -> None:
    board.disc(8, 14.4, 3, darker(country.grass, 0.3))
    board.shape(((6.9, 14.5), (7.4, 6), (8.6, 6), (9.1, 14.5)), darker(_WHITE, 0.45))
    board.shape(((7.3, 14.5), (7.7, 6), (8.3, 6), (8.7, 14.5)), _WHITE)
    for end in ((8, 0.6), (13.2, 8.6), (2.8, 8.6)):
        board.line((8, 5.6), end, 1.7, darker(_WHITE, 0.45))
        board.line((8, 5.6), end, 0.8, _WHITE)
    board.disc(8, 5.6, 1.2, darker(_WHITE, 0.4))


def _pump(board: Board, country: Country) -> None:
    _yard(board, mixed(country.water_light, country.grass, 0.5))
    board.box(3, 6, 7, 7.4, country.wall)
    board.shape(((2.2, 6.4), (6.5, 2.6), (10.8, 6.4)), _BLUE)
    board.box(10, 9, 4.4, 2, darker(country.water, 0.3))
    board.box(12.4, 9, 2, 5, darker(country.water, 0.3))
    board.disc(6.5, 9.6, 1.9, country.water)
    board.disc(6.1, 9.2, 0.8, lighter(country.water, 0.6))


def _tower(board: Board, country: Country) -> None:
    for x in (4.4, 8, 11.6):
        board.line((x, 8), (x + (x - 8) * 0.3, 15), 1, darker(country.road, 0.3))
    board.line((4, 12), (12, 12), 0.7, darker(country.road, 0.3))
    tank = mixed(_BLUE, country.water_light, 0.5)
    board.box(3.2, 3.6, 9.6, 6, tank)
    board.box(9.6, 3.6, 3.2, 6, darker(tank, 0.25))
    board.shape(((2.6, 3.9), (8, 0.8), (13.4, 3.9)), darker(tank, 0.35))
    board.box(4.4, 4.8, 1.2, 3.6, lighter(tank, 0.5))


def _hall(board: Board, country: Country, wall: Color, roof: Color) -> None:
    board.box(2.2, 4.4, 12.6, 10, darker(country.grass, 0.45))
    board.box(1.6, 3.8, 12.6, 10, wall)
    board.box(10.6, 3.8, 3.6, 10, darker(wall, 0.18))
    board.box(1.2, 2.4, 13.4, 2.4, roof)


def _police(board: Board, country: Country) -> None:
    _hall(board, country, mixed(country.wall, _BLUE, 0.25), _BLUE)
    star = (
        (8, 5),
        (9, 7.2),
        (11.4, 7.4),
        (9.6, 9),
        (10.2, 11.4),
        (8, 10.1),
        (5.8, 11.4),
        (6.4, 9),
        (4.6, 7.4),
        (7, 7.2),
    )
    board.shape(star, _GOLD)


def _fire(board: Board, country: Country) -> None:
    _hall(board, country, _RED, darker(_RED, 0.35))
    for x in (2.8, 8.6):
        board.box(x, 7.6, 4.6, 6.2, _WHITE)
        for row in range(3):
            board.box(x, 9 + row * 1.6, 4.6, 0.5, darker(_WHITE, 0.3))


def _clinic(board: Board, country: Country) -> None:
    _hall(board, country, _WHITE, darker(_WHITE, 0.2))
    board.box(6.6, 5.4, 2.6, 8, _RED)
    board.box(3.9, 8.1, 8, 2.6, _RED)


def _school(board: Board, country: Country) -> None:
    brick = mixed(country.roof, _GOLD, 0.55)
    _hall(board, country, brick, darker(country.roof, 0.2))
    board.windows(2.6, 6.2, 5, 2, (2.3, 2.4), country.glass)
    board.box(6.8, 10.6, 2.2, 3.2, darker(country.trunk, 0.2))
    board.line((8, 0.4), (8, 3), 0.7, country.trunk)
    board.shape(((8.2, 0.3), (12, 1.3), (8.2, 2.3)), _BLUE)


def _park(board: Board, country: Country) -> None:
    lawn = mixed(country.tree, country.residential, 0.55)
    _yard(board, lawn)
    board.line((1, 13), (15, 4), 1.6, mixed(country.wall, country.grass, 0.3))
    for x, y in ((4, 4.5), (11.6, 11.2), (12, 3)):
        board.disc(x + 0.3, y + 0.4, 2.3, darker(country.tree, 0.35))
        board.disc(x, y, 2.1, country.tree)
    board.disc(5.4, 11.2, 2, country.water_light)
    board.disc(5.4, 11.2, 1, _WHITE)


_DRAWERS: dict[Kind, Callable[[Board, Country], None]] = {
    Kind.COAL: _coal,
    Kind.WIND: _wind,
    Kind.PUMP: _pump,
    Kind.TOWER: _tower,
    Kind.POLICE: _police,
    Kind.FIRE: _fire,
    Kind.CLINIC: _clinic,
    Kind.SCHOOL: _school,
    Kind.PARK: _park,
}
