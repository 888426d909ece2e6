"""Sprites: the picture of every look of a cell, drawn when it is first needed and kept."""

from functools import lru_cache

from ludus.envs.city.game.looks import DARK, KIND, ON_HILL, OVER_WATER, SIZE, VARIANT
from ludus.envs.city.game.rules import Kind, Terrain
from ludus.envs.city.interface.theme import Country
from ludus.envs.city.painting.board import Board
from ludus.envs.city.painting.building_art import draw_building, draw_missing_power
from ludus.envs.city.painting.ground_art import draw_line, draw_road, draw_rubble, draw_terrain
from ludus.envs.city.painting.zone_art import draw_zone
from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import pygame

LEVELS = 8  # steps of the colours of an overlay
_COLD: Color = (40, 70, 160)
_MIDDLE: Color = (235, 215, 90)
_HOT: Color = (205, 40, 40)


class Sprites:
    """Pictures of cells of one size in the colours of one theme, shared by all games that look alike."""

    def __init__(self, country: Country, tile: int) -> None:
        self._country, self._tile = country, tile
        self._kept: dict[int, pygame.Surface] = {}

    def of(self, look: int) -> pygame.Surface:
        """Returns the picture of a look."""
        sprite = self._kept.get(look)
        if sprite is None:
            sprite = self._kept[look] = self._draw(look)
        return sprite

    def tinted(self, look: int, level: int) -> pygame.Surface:
        """Returns the picture of a look in an overlay; `level` is a step from 0 to 7."""
        key = -1 - (look * LEVELS + level)
        sprite = self._kept.get(key)
        if sprite is None:
            sprite = self.of(look).copy()
            tint = sprite.copy()
            tint.fill(heat(level))
            tint.set_alpha(150)
            sprite.blit(tint, (0, 0))
            self._kept[key] = sprite
        return sprite

    def _draw(self, look: int) -> pygame.Surface:
        country = self._country
        kind, detail = Kind(look // KIND), look % KIND
        on_hill, detail = divmod(detail, ON_HILL)
        if kind == Kind.EMPTY:
            terrain = Terrain(detail // 16)
            board = Board(self._tile, country.water if terrain == Terrain.WATER else country.grass)
            draw_terrain(board, country, terrain, detail % 16)
        elif kind in (Kind.ROAD, Kind.LINE):
            over_water, sides = divmod(detail, OVER_WATER)
            board = Board(self._tile, country.water if over_water else self._ground(on_hill))
            if kind == Kind.ROAD:
                draw_road(board, country, sides, bridge=bool(over_water))
            else:
                draw_line(board, country, sides)
        else:
            board = Board(self._tile, self._ground(on_hill))
            if kind == Kind.RUBBLE:
                draw_rubble(board, country, detail // VARIANT)
            elif kind <= Kind.INDUSTRIAL:
                draw_zone(board, country, kind, detail // SIZE, detail % SIZE // VARIANT)
            else:
                draw_building(board, country, kind)
            if detail & DARK:
                draw_missing_power(board)
        return board.finish()

    def _ground(self, on_hill: int) -> Color:
        return self._country.hill if on_hill else self._country.grass


def heat(level: int) -> Color:
    """Returns the colour of a step of an overlay, from cold to hot."""
    share = level / (LEVELS - 1)
    return mixed(_COLD, _MIDDLE, share * 2) if share < 0.5 else mixed(_MIDDLE, _HOT, share * 2 - 1)


@lru_cache(maxsize=32)
def sprites_of(country: Country, tile: int) -> Sprites:
    """Returns the pictures of cells of one size in the colours of one theme."""
    return Sprites(country, tile)
