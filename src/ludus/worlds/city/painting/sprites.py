"""Sprites: the picture of every sprite code, drawn on first use and cached; and icons."""

from collections.abc import Callable
from functools import cache, lru_cache

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import pygame
from ludus.worlds.city.game import rules
from ludus.worlds.city.game.rules import Kind, Terrain, Tool
from ludus.worlds.city.interface.theme import MapColors
from ludus.worlds.city.painting import art
from ludus.worlds.city.painting.art import Board, darker, lighter

LEVELS = 8  # steps of the colours of an overlay
_COLD: Color = (40, 70, 160)
_MIDDLE: Color = (235, 215, 90)
_HOT: Color = (205, 40, 40)


class Sprites:
    """Pictures of cells of one size in the colours of one theme, shared by all games that look alike."""

    def __init__(self, colors: MapColors, tile: int) -> None:
        self._colors, self._tile = colors, tile
        self.of, self.tinted = cache(self._draw), cache(self._tint)

    def _tint(self, look: int, level: int) -> pygame.Surface:
        """Return the picture of a sprite code in an overlay; `level` is a step from 0 to 7."""
        sprite = self.of(look).copy()
        tint = sprite.copy()
        tint.fill(heat(level))
        tint.set_alpha(150)
        sprite.blit(tint, (0, 0))
        return sprite

    def _draw(self, look: int) -> pygame.Surface:
        """Return the picture of a sprite code."""
        colors = self._colors
        kind, detail = Kind(look // rules.SPRITE_KIND), look % rules.SPRITE_KIND
        on_hill, detail = divmod(detail, rules.SPRITE_HILL)
        if kind == Kind.EMPTY:
            terrain = Terrain(detail // 16)
            board = Board(self._tile, colors.water if terrain == Terrain.WATER else colors.grass)
            art.TERRAINS[terrain](board, colors, detail % 16)
        elif kind in (Kind.ROAD, Kind.LINE):
            over_water, sides = divmod(detail, rules.SPRITE_WATER)
            board = Board(self._tile, colors.water if over_water else self._ground(on_hill))
            if kind == Kind.ROAD:
                art.draw_road(board, colors, sides, bridge=bool(over_water))
            else:
                art.draw_line(board, colors, sides)
        else:
            board = Board(self._tile, self._ground(on_hill))
            if kind == Kind.RUBBLE:
                art.draw_rubble(board, colors, detail // rules.SPRITE_VARIANT)
            elif kind <= Kind.INDUSTRIAL:
                size, rest = divmod(detail, rules.SPRITE_SIZE)
                art.draw_zone(board, colors, kind, size, rest // rules.SPRITE_VARIANT)
            else:
                art.BUILDINGS[kind](board, colors)
            if detail & rules.SPRITE_DARK:
                art.draw_missing_power(board)
        return board.finish()

    def _ground(self, on_hill: int) -> Color:
        return self._colors.hill if on_hill else self._colors.grass


def heat(level: int) -> Color:
    """Return the colour of a step of an overlay, from cold to hot."""
    share = level / (LEVELS - 1)
    return mixed(_COLD, _MIDDLE, share * 2) if share < 0.5 else mixed(_MIDDLE, _HOT, share * 2 - 1)


@lru_cache(maxsize=32)
def sprites_of(colors: MapColors, tile: int) -> Sprites:
    """Return the pictures of cells of one size in the colours of one theme."""
    return Sprites(colors, tile)


_YELLOW: Color = (250, 190, 40)
_GREY: Color = (120, 124, 132)
_SIDEWAYS = 3  # a road or a line from left to right


@lru_cache(maxsize=512)
def tool_icon(colors: MapColors, tool: int, side: int) -> pygame.Surface:
    """Return the picture on the button of a tool."""
    if tool == Tool.QUERY:
        return _query(side)
    if tool == Tool.BULLDOZER:
        return _bulldozer(side, colors)
    detail = _SIDEWAYS if tool in (Tool.ROAD, Tool.LINE) else 2 * rules.SPRITE_SIZE if tool <= Tool.INDUSTRIAL else 0
    return sprites_of(colors, side).of(Kind(tool) * rules.SPRITE_KIND + detail)


@lru_cache(maxsize=512)
def field_icon(name: str, side: int, ink: Color) -> pygame.Surface:
    """Return the icon of a field of the HUD."""
    board = Board(side)
    _FIELDS[name](board, ink)
    return board.finish()


def _query(side: int) -> pygame.Surface:
    board = Board(side, (232, 236, 240))
    board.disc(7, 7, 4.6, (60, 70, 90))
    board.disc(7, 7, 3.2, (190, 222, 240))
    board.line((10, 10), (14, 14), 2, (60, 70, 90))
    return board.finish()


def _bulldozer(side: int, colors: MapColors) -> pygame.Surface:
    board = Board(side, colors.grass)
    board.box(5, 6, 8, 4.5, _YELLOW)
    board.box(9, 2.5, 4, 4, darker(_YELLOW, 0.15))
    board.box(10, 3.3, 2, 2, colors.glass)
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
    draw.__name__[1:]: draw
    for draw in (_date, _funds, _balance, _population, _happiness, _traffic, _pollution, _land_value, _tax)
}
