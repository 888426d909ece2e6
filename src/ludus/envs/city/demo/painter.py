"""Draws City for people: the screen at a good size with marks on it, and a panel beside it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ludus.envs.city.demo.looks import LEAST_LINES, PANEL_SHARE
from ludus.envs.city.demo.marks import Marks
from ludus.envs.city.demo.panel import Panel
from ludus.envs.city.demo.scene import field_regions, show
from ludus.envs.city.demo.track import ACTING
from ludus.envs.city.drivers.driver import Frame
from ludus.envs.pygame_tools import Picture, new_surface, pygame
from ludus.envs.stage import Image, Painter, Thought

if TYPE_CHECKING:
    from ludus.envs.city.env import CityEnv

_MOST_CONSIDERED = 5


class CityPainter(Painter):
    """Draws the first game: the pointer acts on the screen as it was, then comes the screen as it is."""

    hears = True

    def __init__(self, env: "CityEnv", names: Sequence[str]) -> None:
        super().__init__(env)
        self._city = env
        self._thought: Thought | None = None
        self._before = self._now = show(env, None, None, _MOST_CONSIDERED)
        height, width = self._now.picture.shape[:2]
        self._times = -(-LEAST_LINES // height)
        self._width, self._height = width * self._times, height * self._times
        beside = round(PANEL_SHARE * self._height)
        whole = (self._width + beside + (self._width + beside) % 2, self._height + self._height % 2)  # for videos
        self._canvas, self._picture = new_surface(whole), Picture(whole)
        self._panel = Panel(whole[0] - self._width, self._height, names[0] if names else env.spec.id)
        self._marks = Marks((self._width, self._height), field_regions(env.table))

    def hear(self, thought: Thought) -> None:
        """See `Painter`."""
        self._thought = thought

    def take(self) -> None:
        """See `Painter`."""
        self._before = self._now
        self._now, self._thought = show(self._city, self._now, self._thought, _MOST_CONSIDERED), None

    def paint(self, share: float = 1.0) -> Image:
        """See `Painter`."""
        shown = self._now
        if share < ACTING and shown.track.stops:  # until all is done there is nothing new to see
            shown = replace(shown, picture=self._before.picture, seen=self._before.seen)
        self._canvas.blit(self._enlarged(shown.picture), (0, 0))
        self._marks.draw(self._canvas, shown, share)
        self._panel.draw(self._canvas, self._width, shown, share)
        return self._picture.of(self._canvas)

    def _enlarged(self, picture: Frame) -> pygame.Surface:
        height, width = picture.shape[:2]
        surface = pygame.image.frombuffer(np.ascontiguousarray(picture).tobytes(), (width, height), "RGB")
        return surface if self._times == 1 else pygame.transform.scale(surface, (self._width, self._height))
