"""The stadium as a camera sees it: sky, stands with their crowd, pitch, walls and goals."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.envs.rocket.rendering.arena import crowd, frame, goals, joints, lamps, net_strings, stands, walls
from ludus.envs.rocket.rendering.camera import NEAR, Camera, Floats
from ludus.envs.rocket.rendering.glow import add_glow
from ludus.envs.rocket.rendering.mesh import built
from ludus.envs.rocket.rendering.palette import GROUND, LAMP, SKY, TEAMS
from ludus.envs.rocket.rendering.pitch import grass, lines
from ludus.envs.rocket.rendering.strokes import stroked
from ludus.envs.rocket.rules import BACK_Y

_MIST: Color = SKY[2]
_MIST_FROM, _MIST_TO = 3000.0, 26000.0  # uu; from far above there is none
_FAR = 1e5  # uu; the horizon and the lamps are that far away
_CROWD = 2600
_CROWD_FROM = 2500.0  # uu; nearer stands are behind the camera or beside it
_LAMP_EVERY = 4  # posts


class Stadium:
    """Paints everything that never moves, for pictures of one size."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        self._sky = _painted_sky(size)
        self._stands, self._goals, self._walls = built(stands()), built(goals()), built(walls())
        self._pitch, self._lines, self._joints = built(grass()), stroked(lines()), stroked(joints())
        self._people, colors = crowd(_CROWD)
        self._dots = _packed(colors)
        self._strings = {side: net_strings(side) for side in (-1, 1)}
        self._lamps = lamps(_LAMP_EVERY)
        self._lamp_radius = 0.06 * size[1]

    def paint(self, target: pygame.Surface, camera: Camera) -> None:
        """Paints the stadium over the whole surface."""
        mist = (_MIST, _MIST_FROM, _MIST_TO) if not camera.looks_down else (_MIST, 1e6, 2e6)
        self._paint_sky(target, camera)
        self._stands.paint(target, camera, *mist)
        self._paint_crowd(target, camera)
        self._paint_lamps(target, camera)
        self._goals.paint(target, camera, *mist)
        for side in (-1, 1):
            if (camera.eye[1] - side * BACK_Y) * side < 0.0:
                self._paint_net(target, camera, side)
        self._pitch.paint(target, camera, *mist)
        self._lines.paint(target, camera)
        self._walls.paint(target, camera, *mist)
        self._joints.paint(target, camera)
        for side in (-1, 1):
            self._paint_frame(target, camera, side)

    def _paint_sky(self, target: pygame.Surface, camera: Camera) -> None:
        if camera.looks_down:
            target.fill(GROUND)
            return
        level = camera.see(camera.eye + camera.level_ahead() * _FAR)
        horizon = round(float(camera.picture(level)[1]))
        height = self._sky.get_height()
        top = horizon - height // 2
        target.blit(self._sky, (0, top))
        if top > 0:
            target.fill(SKY[0], (0, 0, self._size[0], top))
        if top + height < self._size[1]:
            target.fill(GROUND, (0, top + height, self._size[0], self._size[1]))

    def _paint_crowd(self, target: pygame.Surface, camera: Camera) -> None:
        seen = camera.see(self._people)
        shown = seen[:, 2] > _CROWD_FROM
        places = camera.picture(seen[shown]).astype(np.int64)
        (width, height), dots = self._size, self._dots[shown]
        inside = ((places >= 0) & (places < (width - 2, height - 3))).all(1)
        (x, y), dots = places[inside].T, dots[inside]
        pixels = pygame.surfarray.pixels2d(target)
        for right in (0, 1):
            for down in (0, 1, 2):
                pixels[x + right, y + down] = dots
        del pixels  # as long as it lives, nothing else can be painted

    def _paint_lamps(self, target: pygame.Surface, camera: Camera) -> None:
        seen = camera.see(self._lamps)
        seen = seen[seen[:, 2] > NEAR]
        for x, y in camera.picture(seen).tolist():
            add_glow(target, (x, y), self._lamp_radius, LAMP)

    def _paint_net(self, target: pygame.Surface, camera: Camera, side: int) -> None:
        color = mixed(TEAMS[int(side > 0)].base, SKY[1], 0.45)
        seen = camera.see(self._strings[side])
        if not bool((seen[..., 2] > NEAR).all()):
            return
        for start, end in camera.picture(seen).tolist():
            pygame.draw.aaline(target, color, start, end)

    def _paint_frame(self, target: pygame.Surface, camera: Camera, side: int) -> None:
        seen = camera.see(frame(side))
        if not bool((seen[:, 2] > NEAR).all()):
            return
        width = max(round(22.0 * camera.focal / float(seen[:, 2].mean())), 2)
        points = camera.picture(seen).tolist()
        for start, end in pairwise(points):
            pygame.draw.aaline(target, TEAMS[int(side > 0)].light, start, end, width)


def _packed(colors: Floats) -> NDArray[np.uint32]:
    """Returns colours `(n, 3)` as surfaces hold them: red in the lowest byte."""
    packed: NDArray[np.uint32] = (colors.astype(np.uint32) << np.array((0, 8, 16), np.uint32)).sum(1, dtype=np.uint32)
    return packed


def _painted_sky(size: tuple[int, int]) -> pygame.Surface:
    """Returns the sky above and the ground below the horizon, which is in the middle."""
    half = size[1]
    sky = new_surface((size[0], 2 * half))
    sky.fill(GROUND, (0, half, size[0], half))
    for row in range(half):
        place = (row / half) * (len(SKY) - 1)
        index = min(int(place), len(SKY) - 2)
        sky.fill(mixed(SKY[index], SKY[index + 1], place - index), (0, row, size[0], 1))
    return sky
