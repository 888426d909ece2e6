"""Boost pads as a camera sees them: plates on the grass that glow while there is boost, large ones with an orb."""

import math

import numpy as np

from ludus.envs.colors import mixed
from ludus.envs.pygame_tools import pygame
from ludus.envs.rocket.layout import BIG_PADS, PADS
from ludus.envs.rocket.rendering.camera import Camera
from ludus.envs.rocket.rendering.glow import add_glow, faded
from ludus.envs.rocket.rendering.palette import PAD, PAD_AWAY, PAD_BASE, WHITE
from ludus.envs.rocket.view import PadView

_PARTS = 12
_BIG_RADIUS, _SMALL_RADIUS, _ORB_RADIUS, _ORB_Z = 118.0, 62.0, 46.0, 112.0
_FAR = 0.05  # pixels a uu; a pad that is farther away does not glow


class PadPainter:
    """Paints all pads of the field."""

    def __init__(self) -> None:
        angles = np.linspace(0.0, 2.0 * math.pi, _PARTS, endpoint=False)
        circle = np.column_stack((np.cos(angles), np.sin(angles), np.zeros(_PARTS)))
        radii = np.array([_BIG_RADIUS if pad in BIG_PADS else _SMALL_RADIUS for pad in range(len(PADS))])
        middles = np.array([(x, y, 0.0) for x, y in PADS])
        self._plates = middles[:, None] + radii[:, None, None] * circle
        self._tops = middles[:, None] + 0.68 * radii[:, None, None] * circle

    def paint(self, target: pygame.Surface, camera: Camera, pads: tuple[PadView, ...]) -> None:
        """Paints plates, and orbs and light over those that have boost."""
        seen = camera.see(self._plates)
        shown = np.nonzero(camera.in_sight(seen))[0]
        plates, tops = camera.polygons(seen[shown]), camera.polygons(camera.see(self._tops[shown]))
        for number, plate, top in zip(shown.tolist(), plates, tops, strict=True):
            if not plate:
                continue
            pad = pads[number]
            is_there = pad.away_s <= 0.0
            pygame.draw.polygon(target, PAD_BASE if is_there else PAD_AWAY, plate)
            if top:
                pygame.draw.polygon(target, PAD if is_there else mixed(PAD_AWAY, PAD_BASE, 0.4), top)
            if is_there:
                self._paint_light(target, camera, pad)

    def _paint_light(self, target: pygame.Surface, camera: Camera, pad: PadView) -> None:
        spot = camera.pixel((pad.x, pad.y, _ORB_Z if pad.is_big else 12.0))
        if spot is None or spot[2] < _FAR:
            return
        place, scale = spot[:2], spot[2]
        if pad.is_big:
            add_glow(target, place, 150.0 * scale, faded(PAD, 0.5))
            pygame.draw.circle(target, PAD, place, _ORB_RADIUS * scale)
            shine = (place[0] - 12.0 * scale, place[1] - 14.0 * scale)
            pygame.draw.circle(target, mixed(PAD, WHITE, 0.65), shine, 17.0 * scale)
        else:
            add_glow(target, place, 80.0 * scale, faded(PAD, 0.3))
