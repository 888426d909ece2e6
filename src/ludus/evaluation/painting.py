"""Pictures of the first game of a batch, with names, the debug layer and cards where a world offers them."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv
from ludus.envs.brawl.env import BrawlEnv
from ludus.envs.pygame_tools import Picture, new_surface, pygame

Image: TypeAlias = NDArray[np.uint8]
Painter: TypeAlias = Callable[[], Image]

_CARD = (18, 19, 36, 225)
_TITLE = (246, 244, 236)
_LINE = (188, 188, 206)


def make_painter(env: BatchedEnv, names: Sequence[str] = (), *, debug: bool = False) -> Painter:
    """Returns a function that draws the first game as it stands, `(height, width, 3)`.

    Args:
        env: The games.
        names: Who sits in each seat.
        debug: Whether to draw what the simulator tests; only some worlds can.

    Raises:
        UnsupportedError: The world has no debug layer.
    """
    if isinstance(env, BrawlEnv):
        from ludus.envs.brawl.render import Renderer

        renderer = Renderer(env.table, debug=debug, names=(names[0], names[1]) if len(names) == 2 else None)
        return lambda: renderer.frame(env.view(0))
    if debug:
        raise UnsupportedError(f"{env.spec.id} has no debug layer; leave --debug out")
    return lambda: env.render(0)


def with_card(picture: Image, title: str, lines: Sequence[str] = ()) -> Image:
    """Returns a picture with a card in front of it: a title and lines below."""
    height, width = picture.shape[:2]
    unit = height / 720
    pygame.font.init()
    surface = pygame.image.frombuffer(np.ascontiguousarray(picture).tobytes(), (width, height), "RGB")
    canvas = new_surface((width, height))
    canvas.blit(surface, (0, 0))
    card = new_surface((round(640 * unit), round((92 + 27 * len(lines)) * unit)), alpha=True)
    pygame.draw.rect(card, _CARD, card.get_rect(), border_radius=round(16 * unit))
    box = card.get_rect(center=(width // 2, round(height * 0.27)))
    canvas.blit(card, box)
    _write(canvas, title, 46 * unit, _TITLE, box.centerx, box.top + 46 * unit)
    for index, line in enumerate(lines):
        _write(canvas, line, 23 * unit, _LINE, box.centerx, box.top + (90 + 27 * index) * unit)
    return Picture((width, height)).of(canvas)


def _write(canvas: pygame.Surface, words: str, size: float, color: tuple[int, int, int], x: float, y: float) -> None:
    written = pygame.font.Font(None, max(round(size), 8)).render(words, True, color)
    canvas.blit(written, written.get_rect(center=(round(x), round(y))))
