"""Rendering of the first game of a batch: painters and cards."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv
from ludus.envs.display import Image, Painter, display_of
from ludus.envs.pygame_tools import Font, Picture, new_surface, pygame

_CARD = (18, 19, 36, 225)
_TITLE = (246, 244, 236)
_LINE = (188, 188, 206)


def make_painter(
    env: BatchedEnv, names: Sequence[str] = (), *, debug: bool = False, view: str | None = None
) -> Painter:
    """Make the painter of the first game.

    Args:
        env: The games.
        names: Names of the players by seat.
        debug: Whether to draw the debug layer, such as hit boxes; not all worlds have one.
        view: Camera, in worlds with several; None for the default.

    Raises:
        UnsupportedError: The world has no debug layer, or only one view.
        UnknownNameError: The world has no such view.
    """
    maker = display_of(env.spec.id).painter
    if maker is None and debug:
        raise UnsupportedError(f"{env.spec.id} has no debug layer; leave --debug out")
    painter = Painter(env) if maker is None else maker(env, names, debug=debug)
    if view is not None:
        painter.look(view)
    return painter


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """Options of a painter.

    Attributes:
        debug: Whether to draw the debug layer, such as hit boxes; not all worlds have one.
        view: Camera, in worlds with several; None for the default.
    """

    debug: bool = False
    view: str | None = None

    def painter(self, env: BatchedEnv, names: Sequence[str]) -> Painter:
        """Make the painter with these options; see `make_painter`."""
        return make_painter(env, names, debug=self.debug, view=self.view)


DEFAULT_RENDER_OPTIONS = RenderOptions()


def with_card(picture: Image, title: str, lines: Sequence[str] = ()) -> Image:
    """Return a picture with a card over it: a title and lines of text."""
    height, width = picture.shape[:2]
    unit = height / 720
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
    written = Font(max(round(size), 8)).render(words, color)
    canvas.blit(written, written.get_rect(center=(round(x), round(y))))
