"""Small pictures for tools without a building and for the fields of a HUD without words."""

from collections.abc import Callable
from functools import lru_cache

from ludus.envs.city.game.looks import KIND, SIZE
from ludus.envs.city.game.rules import Kind, Tool
from ludus.envs.city.interface.theme import Country
from ludus.envs.city.painting.board import Board, darker, lighter
from ludus.envs.city.painting.sprites import sprites_of
from ludus.envs.colors import Color
from ludus.envs.pygame_tools import pygame

_YELLOW: Color = (250, 190, 40)
_GREY: Color = (120, 124, 132)
_SIDEWAYS = 3  # a road or a line from left to right


@lru_cache(maxsize=512)
def tool_icon(country: Country, tool: int, side: int) -> pygame.Surface:
    """Returns the picture on the button of a tool."""
    if tool == Tool.QUERY:
        return _query(side)
    if tool == Tool.BULLDOZER:
        return _bulldozer(side, country)
    detail = _SIDEWAYS if tool in (Tool.ROAD, Tool.LINE) else 2 * SIZE if tool <= Tool.INDUSTRIAL else 0
    return sprites_of(country, side).of(Kind(tool) * KIND + detail)


@lru_cache(maxsize=512)
def field_icon(name: str, side: int, ink: Color) -> pygame.Surface:
    """Returns the picture that stands for a field of the HUD."""
    board = Board(side)
    _FIELDS[name](board, ink)
    return board.finish()


def _query(side: int) -> pygame.Surface:
    board = Board(side, (232, 236, 240))
    board.disc(7, 7, 4.6, (60, 70, 90))
    board.disc(7, 7, 3.2, (190, 222, 240))
    board.line((10, 10), (14, 14), 2, (60, 70, 90))
    return board.finish()


def _bulldozer(side: int, country: Country) -> pygame.Surface:
    board = Board(side, country.grass)
    board.box(5, 6, 8, 4.5, _YELLOW)
    board.box(9, 2.5, 4, 4, darker(_YELLOW, 0.15))
    board.box(10, 3.3, 2, 2, country.glass)
    board.box(4, 10.5, 10, 3, (50, 50, 54))
    for x in (5.5, 9, 12.5):
        board.disc(x, 12, 1.1, _GREY)
    board.shape(((1, 6), (3, 6), (4, 13.5), (1, 13.5)), darker(_GREY, 0.2))
    return board.finish()


def _date(board: Board, ink: Color) -> None:
    board.box(2, 3, 12, 11, ink)
    board.box(3.2, 6.2, 9.6, 6.6, lighter(ink, 0.85))
    for x in (4.4, 7.4, 10.4):
        board.box(x, 7.4, 1.6, 1.6, ink)
        board.box(x, 10.2, 1.6, 1.6, ink)


def _funds(board: Board, ink: Color) -> None:
    board.disc(8, 8, 6.4, ink)
    board.disc(8, 8, 5, _YELLOW)
    board.box(7.2, 4.6, 1.6, 6.8, ink)


def _balance(board: Board, ink: Color) -> None:
    board.shape(((4.5, 2), (8, 6.5), (1, 6.5)), (60, 160, 80))
    board.box(3.5, 6, 2, 7.5, (60, 160, 80))
    board.shape(((11.5, 14), (15, 9.5), (8, 9.5)), (200, 60, 50))
    board.box(10.5, 2.5, 2, 7.5, (200, 60, 50))
    board.box(7.6, 2, 0.8, 12, ink)


def _population(board: Board, ink: Color) -> None:
    board.disc(8, 4.6, 2.9, ink)
    board.shape(((2.6, 14), (4.4, 8.6), (11.6, 8.6), (13.4, 14)), ink)


def _happiness(board: Board, ink: Color) -> None:
    board.disc(8, 8, 6.6, ink)
    board.disc(8, 8, 5.5, _YELLOW)
    for x in (5.8, 10.2):
        board.disc(x, 6.4, 1, ink)
    board.shape(((4.4, 9.2), (11.6, 9.2), (10, 11.8), (6, 11.8)), ink)


def _traffic(board: Board, ink: Color) -> None:
    board.shape(((3, 8), (5, 4.4), (11, 4.4), (13, 8)), ink)
    board.box(1.6, 8, 12.8, 4, ink)
    board.shape(((5, 7.6), (6, 5.4), (10, 5.4), (11, 7.6)), (170, 210, 240))
    for x in (4.6, 11.4):
        board.disc(x, 12.2, 1.8, darker(ink, 0.5))


def _pollution(board: Board, ink: Color) -> None:
    for x, y, radius in ((5, 9.4, 3.4), (9, 7.4, 4.2), (12, 10, 2.8)):
        board.disc(x, y, radius, _GREY)
    board.box(3.4, 10, 9.6, 2.8, _GREY)
    board.box(2, 13.6, 12, 0.9, ink)


def _land_value(board: Board, ink: Color) -> None:
    board.shape(((1.4, 8), (8, 2), (14.6, 8)), (190, 80, 60))
    board.box(3.4, 8, 9.2, 6, ink)
    board.box(6.8, 10, 2.6, 4, lighter(ink, 0.7))


def _tax(board: Board, ink: Color) -> None:
    board.line((3.4, 13), (12.6, 3), 1.8, ink)
    board.disc(4.6, 4.6, 2.6, ink)
    board.disc(11.4, 11.4, 2.6, ink)


_FIELDS: dict[str, Callable[[Board, Color], None]] = {
    "date": _date,
    "funds": _funds,
    "balance": _balance,
    "population": _population,
    "happiness": _happiness,
    "traffic": _traffic,
    "pollution": _pollution,
    "land_value": _land_value,
    "tax": _tax,
}
