"""Pictures of zones: lots, homes, shops and industry in four sizes."""

from collections.abc import Callable

from ludus.envs.city.game.rules import Kind
from ludus.envs.city.interface.theme import Country
from ludus.envs.city.painting.board import Board, darker, lighter
from ludus.envs.colors import Color, mixed


def zone_color(country: Country, kind: int) -> Color:
    """Returns the colour that marks a zone."""
    return {
        Kind.RESIDENTIAL: country.residential,
        Kind.COMMERCIAL: country.commercial,
        Kind.INDUSTRIAL: country.industrial,
    }[Kind(kind)]


def draw_zone(board: Board, country: Country, kind: int, size: int, variant: int) -> None:
    """Draws a zone: its lot in the colour of its kind, and the building of its size."""
    color = zone_color(country, kind)
    board.box(0, 0, 16, 16, mixed(country.grass, color, 0.45))
    for left, top, width, height in ((0, 0, 16, 0.9), (0, 15.1, 16, 0.9), (0, 0, 0.9, 16), (15.1, 0, 0.9, 16)):
        board.box(left, top, width, height, color)
    if size == 0:
        for x, y in ((2, 2), (11, 2), (2, 11), (11, 11)):
            board.box(x, y, 3, 3, color)
        return
    _DRAWERS[Kind(kind)](board, country, size, variant)


def _house(board: Board, country: Country, left: float, top: float, roof: Color) -> None:
    board.box(left + 0.6, top + 3, 4.8, 4, country.wall)
    board.box(left + 3.6, top + 3, 1.8, 4, darker(country.wall, 0.2))
    board.shape(((left, top + 3.4), (left + 3, top), (left + 6, top + 3.4)), roof)
    board.shape(((left + 3, top), (left + 6, top + 3.4), (left + 3, top + 3.4)), darker(roof, 0.25))
    board.box(left + 1.2, top + 4.2, 1.3, 1.3, country.glass)
    board.box(left + 3.1, top + 4.8, 1.2, 2.2, darker(country.trunk, 0.2))


def _block(board: Board, country: Country, place: tuple[float, float, float, float], wall: Color) -> None:
    left, top, width, height = place
    board.box(left + 0.7, top + 0.7, width, height, darker(country.grass, 0.45))
    board.box(left, top, width, height, wall)
    board.box(left + width * 0.7, top, width * 0.3, height, darker(wall, 0.22))
    board.box(left, top, width, 1.1, lighter(wall, 0.35))


def _homes(board: Board, country: Country, size: int, variant: int) -> None:
    roofs = (country.roof, darker(country.roof, 0.2), mixed(country.roof, country.commercial, 0.35), country.roof)
    roof = roofs[variant]
    if size == 1:
        x, y = ((5, 4.5), (2.5, 6), (7, 3.5), (4, 7))[variant]
        _house(board, country, x, y, roof)
        board.disc(13.2 if x < 6 else 3.2, 12.2, 1.7, country.tree)
    elif size == 2:
        _house(board, country, 1.6, 1.4, roof)
        _house(board, country, 8.4, 2.2, roofs[(variant + 1) % 4])
        _house(board, country, 4.8, 8, roofs[(variant + 2) % 4])
    elif size == 3:
        wall = mixed(country.wall, country.roof, 0.25)
        _block(board, country, (2.2, 3.4, 11, 10), wall)
        board.windows(3.4, 5.4, 4, 3, (2.5, 2.5), country.glass)
        board.box(7, 11.4, 2, 2, darker(country.trunk, 0.2))
    else:
        wall = mixed(country.wall, country.residential, 0.18)
        _block(board, country, (1.6, 2, 5.8, 12), wall)
        _block(board, country, (8.4, 3.6, 5.6, 10.6), darker(wall, 0.08))
        board.windows(2.4, 4, 3, 5, (1.7, 1.9), country.glass)
        board.windows(9.2, 5.6, 3, 4, (1.6, 1.9), country.glass)


def _shops(board: Board, country: Country, size: int, variant: int) -> None:
    color = country.commercial
    if size == 1:
        _block(board, country, (3.5, 5, 9, 7), country.wall)
        for stripe in range(5):
            board.box(3.5 + stripe * 1.8, 6.6, 1.8, 1.8, (color, lighter(color, 0.7))[stripe % 2])
        board.box(4.6, 9.2, 3.4, 2, country.glass)
        board.box(9, 9, 2, 3, darker(country.trunk, 0.2))
    elif size == 2:
        _block(board, country, (2, 3.4, 12, 9.6), mixed(country.wall, color, 0.2))
        board.box(2, 4.6, 12, 2.2, color)
        board.box(4, 5.1, (6, 8, 5, 7)[variant], 1.1, lighter(color, 0.8))
        board.box(3.2, 8, 9.4, 2.6, country.glass)
        board.box(7, 10.6, 2, 2.4, darker(country.trunk, 0.2))
    elif size == 3:
        wall = mixed(country.glass, color, 0.45)
        _block(board, country, (3, 2, 10, 12), wall)
        board.windows(4, 3.8, 4, 5, (2.2, 2.1), lighter(country.glass, 0.3))
    else:
        wall = mixed(country.glass, color, 0.65)
        _block(board, country, (2.4, 5.6, 11, 8.8), darker(wall, 0.2))
        _block(board, country, (4.2, 1.2, 7.4, 13), wall)
        board.windows(5, 2.8, 3, 7, (2.1, 1.6), lighter(country.glass, 0.5))
        board.line((8, 0), (8, 1.4), 0.8, lighter(wall, 0.6))


def _works(board: Board, country: Country, size: int, variant: int) -> None:
    brick = mixed(country.industrial, country.roof, 0.45)
    steel = mixed(country.road, country.wall, 0.55)
    if size == 1:
        _block(board, country, (3, 6, 9.4, 6.4), steel)
        board.box(5, 9, 3, 3.4, darker(steel, 0.4))
        board.box((10, 3, 11, 9)[variant], 3.6, 1.6, 3, brick)
        return
    _block(board, country, (1.8, 7, 12.2, 6.8), brick)
    for tooth in range(3 if size < 4 else 4):
        x = 1.8 + tooth * (4 if size < 4 else 3)
        width = 4 if size < 4 else 3
        board.shape(((x, 7), (x, 4.4), (x + width, 7)), steel)
        board.shape(((x, 4.4), (x + width, 7), (x + width * 0.4, 7)), darker(steel, 0.3))
    board.windows(3, 9, 4, 1 if size == 2 else 2, (2.6, 2.2), lighter(country.industrial, 0.4))
    if size >= 3:
        board.box(11.6, 1.4, 2, 6, darker(brick, 0.15))
        board.box(11.6, 1.4, 2, 1, lighter(brick, 0.5))
        board.disc(13, 1.2, 1.3, (196, 196, 196))
    if size == 4:
        board.box(8.4, 2, 1.8, 5, darker(brick, 0.25))
        board.disc(4.4, 12.6, 2, lighter(steel, 0.3))
        board.disc(4.2, 12.3, 1.4, lighter(steel, 0.55))


_DRAWERS: dict[Kind, Callable[[Board, Country, int, int], None]] = {
    Kind.RESIDENTIAL: _homes,
    Kind.COMMERCIAL: _shops,
    Kind.INDUSTRIAL: _works,
}
