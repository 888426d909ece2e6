"""Sprites: the picture of every sprite code, drawn on first use and cached; and icons."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ludus.config import read_yaml
from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.city.game import rules
from ludus.worlds.city.game.rules import Kind, Terrain, Tool
from ludus.worlds.city.interface.theme import Hue, MapColors


@dataclass(frozen=True, slots=True)
class _Pictures:
    """The content of `pictures.yaml`."""

    colors: dict[str, Hue]  # beside those of a theme
    pictures: dict[str, list[list[Any]]]  # strokes by name


_FILE = TypeAdapter(_Pictures).validate_python(read_yaml(Path(__file__).with_name("pictures.yaml"), "pictures", 50_000))
_UNITS = 16.0
_OVERSAMPLING = 4


def _mixture(words: str, colors: dict[str, Color]) -> Color:
    """Return the colour of `name`, `#rrggbb` or `name other share ...`, which mixes from left to right."""
    first, *rest = words.split()
    red, green, blue = bytes.fromhex(first[1:]) if first.startswith("#") else colors[first]
    color = (red, green, blue)
    for other, share in zip(rest[::2], rest[1::2], strict=True):
        color = mixed(color, colors[other], float(share))
    return color


class Board:
    """A square canvas for the strokes of `pictures.yaml`; drawn large and scaled down for smooth edges."""

    def __init__(self, side: int, ground: Color | None = None, variant: int = 0, sides: int = 0) -> None:
        """Start a picture of `side` pixels, on a background or transparent; `sides` are bits: left, right, up, down."""
        self._side, self._variant, self._sides = side, variant, sides
        self._large = new_surface((side * _OVERSAMPLING, side * _OVERSAMPLING), alpha=ground is None)
        self._scale = side * _OVERSAMPLING / _UNITS
        self._left = self._top = 0.0
        if ground is not None:
            self._large.fill(ground)

    def draw(self, name: str, colors: dict[str, Color]) -> None:
        """Draw a picture in some colours, by their names."""
        self._draw(_FILE.pictures[name], {**_FILE.colors, **colors})

    def _draw(self, strokes: Sequence[Sequence[Any]], colors: dict[str, Color]) -> None:
        for stroke in strokes:
            match stroke:
                case ["let", name, color]:
                    colors.setdefault(name, _mixture(color, colors))
                case ["use", name, *given]:
                    own = {part: _mixture(color, colors) for each in given for part, color in each.items()}
                    self._draw(_FILE.pictures[name], colors | own)
                case ["at", places, inner]:
                    for left, top in places:
                        self._left, self._top = self._left + left, self._top + top
                        self._draw(inner, colors)
                        self._left, self._top = self._left - left, self._top - top
                case ["variants", *each]:
                    self._draw(each[self._variant], colors)
                case ["sides", *each]:
                    for bit, inner in enumerate(each):
                        self._draw(inner if self._sides >> bit & 1 else (), colors)
                case ["block", left, top, width, height, color]:
                    wall = _mixture(color, colors)
                    self._box(left + 0.7, top + 0.7, width, height, color=mixed(colors["grass"], (0, 0, 0), 0.45))
                    self._box(left, top, width, height, color=wall)
                    self._box(left + width * 0.7, top, width * 0.3, height, color=mixed(wall, (0, 0, 0), 0.22))
                    self._box(left, top, width, 1.1, color=mixed(wall, (255, 255, 255), 0.35))
                case [what, *numbers, color]:
                    getattr(self, f"_{what}")(*numbers, color=_mixture(color, colors))

    def _box(self, left: float, top: float, width: float, height: float, *, color: Color) -> None:
        """Draw a rectangle; its edges lie on whole pixels of the large picture."""
        s, left, top = self._scale, self._left + left, self._top + top
        x, y = round(left * s), round(top * s)
        self._large.fill((*color, 255), (x, y, round((left + width) * s) - x, round((top + height) * s) - y))

    def _shape(self, points: Sequence[tuple[float, float]], *, color: Color) -> None:
        pygame.draw.polygon(self._large, color, [self._place(*point) for point in points])

    def _disc(self, x: float, y: float, radius: float, *, color: Color) -> None:
        pygame.draw.circle(self._large, color, self._place(x, y), radius * self._scale)

    def _line(self, start: tuple[float, float], end: tuple[float, float], width: float, *, color: Color) -> None:
        wide = max(round(width * self._scale), 1)
        pygame.draw.line(self._large, color, self._place(*start), self._place(*end), wide)

    def _windows(
        self, left: float, top: float, across: int, down: int, step: tuple[float, float], *, color: Color
    ) -> None:
        for row in range(down):
            for column in range(across):
                x, y = left + column * step[0], top + row * step[1]
                self._box(x, y, step[0] * 0.55, step[1] * 0.55, color=color)

    def _place(self, x: float, y: float) -> tuple[float, float]:
        return (self._left + x) * self._scale, (self._top + y) * self._scale

    def finish(self) -> pygame.Surface:
        """Return the picture in its final size."""
        return pygame.transform.smoothscale(self._large, (self._side, self._side))


LEVELS = 8  # steps of the colours of an overlay
TINTED = 1 << 20  # above all sprite codes
_COLD: Color = (40, 70, 160)
_MIDDLE: Color = (235, 215, 90)
_HOT: Color = (205, 40, 40)
_ACROSS, _DOWN = 3, 12  # bits of sides
_NIGHT = 300  # sum of the colours of grass below which lines are drawn bright


class Sprites:
    """Pictures of cells of one size in the colours of one theme, shared by all games that look alike."""

    def __init__(self, colors: MapColors, tile: int) -> None:
        self._colors, self._tile = asdict(colors), tile
        self.of = cache(self._draw)

    def _draw(self, look: int) -> pygame.Surface:
        """Return the picture of a sprite code, or in an overlay of `TINTED + code * LEVELS + level`."""
        if look >= TINTED:
            code, level = divmod(look - TINTED, LEVELS)
            sprite = self.of(code).copy()
            tint = sprite.copy()
            share = level / (LEVELS - 1)
            tint.fill(mixed(_COLD, _MIDDLE, share * 2) if share < 0.5 else mixed(_MIDDLE, _HOT, share * 2 - 1))
            tint.set_alpha(150)
            sprite.blit(tint, (0, 0))
            return sprite
        kind, (on_hill, detail) = Kind(look // rules.SPRITE_KIND), divmod(look % rules.SPRITE_KIND, rules.SPRITE_HILL)
        ground = "hill" if on_hill else "grass"
        name, colors, variant, sides = kind.name.lower(), self._colors, 0, 0
        if kind == Kind.EMPTY:
            terrain, variant = Terrain(detail // 16), detail % 16
            name, sides = terrain.name.lower(), variant
            ground = "water" if terrain == Terrain.WATER else "grass"
        elif kind in (Kind.ROAD, Kind.LINE):
            over_water, sides = divmod(detail, rules.SPRITE_WATER)
            ground = "water" if over_water else ground
            if kind == Kind.ROAD:
                name, sides = "bridge" if over_water else "road", sides or _ACROSS
            elif sum(colors["grass"]) < _NIGHT:
                name = "line_at_night"
        elif kind == Kind.RUBBLE:
            variant = detail // rules.SPRITE_VARIANT
        elif kind <= Kind.INDUSTRIAL:
            size, rest = divmod(detail, rules.SPRITE_SIZE)
            variant, colors = rest // rules.SPRITE_VARIANT, {**colors, "zone": colors[name]}
            name = f"{name}_{size}" if size else "empty_lot"
        board = Board(self._tile, colors[ground], variant, sides)
        if "zone" in colors:
            board.draw("lot", colors)
        board.draw(name, colors)
        if kind == Kind.ROAD and not (sides & _ACROSS and sides & _DOWN):
            board.draw("mark_across" if sides & _ACROSS else "mark_down", colors)
        if kind > Kind.LINE and detail & rules.SPRITE_DARK:
            board.draw("no_power", colors)
        return board.finish()


@lru_cache(maxsize=32)
def sprites_of(colors: MapColors, tile: int) -> Sprites:
    """Return the pictures of cells of one size in the colours of one theme."""
    return Sprites(colors, tile)


@lru_cache(maxsize=512)
def tool_icon(colors: MapColors, tool: int, side: int) -> pygame.Surface:
    """Return the picture on the button of a tool."""
    if tool in (Tool.QUERY, Tool.BULLDOZER):
        board = Board(side, (232, 236, 240) if tool == Tool.QUERY else colors.grass)
        board.draw(Tool(tool).name.lower(), asdict(colors))
        return board.finish()
    detail = _ACROSS if tool in (Tool.ROAD, Tool.LINE) else 2 * rules.SPRITE_SIZE if tool <= Tool.INDUSTRIAL else 0
    return sprites_of(colors, side).of(Kind(tool) * rules.SPRITE_KIND + detail)


@lru_cache(maxsize=512)
def field_icon(name: str, side: int, ink: Color) -> pygame.Surface:
    """Return the icon of a field of the HUD."""
    board = Board(side)
    board.draw(f"field_{name}", {"ink": ink})
    return board.finish()
