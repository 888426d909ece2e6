"""The painter: a walker at one moment, with the reference as a ghost beside it, becomes a picture without a window."""

import math
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, MissingDependencyError, VideoError
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.rendering.figure import FIGURE_GROUPS, SIZE, WalkerView, figure_of
from ludus.worlds.mimic.rendering.gl import open_context

if TYPE_CHECKING:
    from ludus.worlds.mimic.rendering.caption import Caption

GHOST_ASIDE_M = 1.0  # to the left of the walker, so behind it as the camera sees them
_GHOST = (0.58, 0.79, 1.0, 0.42)
_SHADOW = (0.0, 0.0, 0.0, 0.28)
_SHADOW_SIZE_M = (0.15, 0.065, 0.0005)
_SHADOW_FADES_M = 0.35  # height of a foot at which its shadow has gone
# The way is of tiles as long as a metre; everything else is plain, so that software GL is quick and gifs stay small.
_TILES = (0.73, 0.76, 0.77, 1.0), (0.58, 0.63, 0.66, 1.0)
_TILES_BEHIND, _TILES_AHEAD, _LANES = 11, 8, (-1, 0, 1, 2)
_TILE_SIZE_M = (0.5, 0.5, 0.001)
_SHADOW_ABOVE_M = 0.003
_PUSH = (0.93, 0.35, 0.15, 1.0)
_PUSH_M_PER_N = 0.004  # length of the arrow
_BONE, _BONE_RADIUS_M = (0.98, 0.72, 0.20, 1.0), 0.018
_HIPS_M = 0.15  # from their middle to where a push is felt
# The camera looks from the right, from a little ahead and from above, and moves along with the walker.
_AZIMUTH_DEG, _ELEVATION_DEG, _DISTANCE_HEIGHTS = 122.0, -8.0, 2.05
_STAIRS_AZIMUTH_DEG = 68.0  # from behind, where stairs are lower
_LOOKS_AT = (0.10, 0.30, 0.47)  # from the walker's place on the ground, in body heights
_MOST_GEOMS = 400
_SPEED_OVER_S = 1.0  # the speed that is shown is the mean of this time


class WalkerPainter:
    """Draws walkers of one model; close it, because it holds a GL context.

    A picture shows what its view says; only the speed is that of the last second, of which the painter remembers where
    the walker was.
    """

    def __init__(self, walker: Walker, size: tuple[int, int] = SIZE) -> None:
        """Open GL for pictures of up to `SIZE`; raise ConfigError beyond it, VideoError if nothing can be drawn."""
        if not (0 < size[0] <= SIZE[0] and 0 < size[1] <= SIZE[1]):
            raise ConfigError(
                f"pictures of walkers are at most {SIZE[0]} x {SIZE[1]} pixels, got {size[0]} x {size[1]}"
            )
        self.size, self._walker, self._model = size, walker, figure_of(walker)
        self._context = open_context(*size)
        try:
            self._target = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._target)
        except Exception as error:
            self._context.free()
            raise VideoError(
                f"MuJoCo cannot draw here: {error}; try MUJOCO_GL=osmesa with Debian's libosmesa6"
            ) from error
        self._closed = False
        self._scene = mujoco.MjvScene(self._model, _MOST_GEOMS)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[flag] = False  # software GL is ten times as slow with them
        self._option, self._camera = _option(), mujoco.MjvCamera()
        self._bodies = mujoco.MjData(self._model), mujoco.MjData(self._model)
        self._feet = [self._model.body(foot).id for foot in walker.feet]
        self._caption = _make_caption(size)
        self._way: deque[tuple[float, float]] = deque()

    def paint(self, view: WalkerView) -> NDArray[np.uint8]:
        """Return a walker at one moment as an RGB picture `(height, width, 3)`; raise VideoError after `close`."""
        if self._closed:
            raise VideoError("the painter was closed; make a new one")
        self._context.make_current()
        self._arrange(view)
        width, height = self.size
        picture = np.empty((height, width, 3), np.uint8)
        place = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(place, self._scene, self._target)
        mujoco.mjr_readPixels(picture, None, place, self._target)
        picture = picture[::-1]  # GL begins below
        speed = self._speed(view)
        if self._caption is None:
            return np.ascontiguousarray(picture)
        return self._caption.write(picture, _rows(view, speed))

    def close(self) -> None:
        """Release GL; may be called twice."""
        if not self._closed:
            self._closed = True
            self._context.make_current()
            self._target.free()
            self._context.free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def _arrange(self, view: WalkerView) -> None:
        """Add everything to the scene."""
        scene, (walker, ghost) = self._scene, self._bodies
        x, y = float(view.positions[0]), float(view.positions[1])
        ahead, aside, up = (self._walker.height_m * part for part in _LOOKS_AT)
        climbs = view.stairs_m is not None
        self._camera.lookat[:] = (x + ahead, y + aside, up + (view.stairs_m or 0.0))
        self._camera.distance = _DISTANCE_HEIGHTS * self._walker.height_m
        self._camera.azimuth, self._camera.elevation = _STAIRS_AZIMUTH_DEG if climbs else _AZIMUTH_DEG, _ELEVATION_DEG
        self._pose(walker, view.positions)
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self._model, walker, self._option, None, self._camera, everything, scene)
        self._add_tiles(x)
        self._add_shadows(walker, 1.0)
        if view.ghost is not None:
            placed = view.ghost.copy()
            placed[:2] = x, y + GHOST_ASIDE_M
            self._pose(ghost, placed)
            self._add_ghost(ghost)
            self._add_shadows(ghost, 0.5)
        if any(view.push_n):
            self._add_push(view)
        if view.bones is not None:
            self._add_bones(view.bones)

    def _pose(self, data: mujoco.MjData, positions: Floats) -> None:
        data.qpos[:] = positions
        mujoco.mj_kinematics(self._model, data)
        mujoco.mj_camlight(self._model, data)

    def _add_ghost(self, data: mujoco.MjData) -> None:
        scene, first = self._scene, self._scene.ngeom
        bodies = mujoco.mjtCatBit.mjCAT_DYNAMIC
        mujoco.mjv_addGeoms(self._model, data, self._option, mujoco.MjvPerturb(), bodies, scene)
        for geom in scene.geoms[first : scene.ngeom]:
            geom.rgba[:] = _GHOST
            geom.transparent = 1

    def _add_tiles(self, x: float) -> None:
        size, upright = np.array(_TILE_SIZE_M), np.eye(3).ravel()
        for number in range(math.floor(x) - _TILES_BEHIND, math.floor(x) + _TILES_AHEAD):
            for lane in _LANES:
                place, color = np.array((number + 0.5, float(lane), 0.0)), _TILES[(number + lane) % 2]
                self._add(mujoco.mjtGeom.mjGEOM_BOX, size, place, upright, color)

    def _add_shadows(self, data: mujoco.MjData, strength: float) -> None:
        """Add a spot below each foot, the fainter the higher it is: what says where the ground is."""
        for foot in self._feet:
            above = float(data.xpos[foot, 2]) - self._walker.ankle_height_m
            turn = data.xmat[foot].reshape(3, 3)
            heading = np.arctan2(turn[1, 0], turn[0, 0])
            rotation = np.array(
                [[np.cos(heading), -np.sin(heading), 0], [np.sin(heading), np.cos(heading), 0], [0, 0, 1]]
            )
            middle = data.xpos[foot] + turn @ (0.06, 0.0, 0.0)
            opacity = _SHADOW[3] * strength * float(np.clip(1.0 - above / _SHADOW_FADES_M, 0.0, 1.0))
            self._add(
                mujoco.mjtGeom.mjGEOM_ELLIPSOID,
                np.array(_SHADOW_SIZE_M),
                np.array((middle[0], middle[1], _SHADOW_ABOVE_M)),
                rotation.ravel(),
                (*_SHADOW[:3], opacity),
            )

    def _add_push(self, view: WalkerView) -> None:
        """Add an arrow that points at the hips."""
        force = np.array((*view.push_n, 0.0))
        end = view.positions[:3] - _HIPS_M * force / np.linalg.norm(force)
        start = end - _PUSH_M_PER_N * force
        self._add(mujoco.mjtGeom.mjGEOM_ARROW, np.zeros(3), np.zeros(3), np.eye(3).ravel(), _PUSH)
        arrow = self._scene.geoms[self._scene.ngeom - 1]
        # MuJoCo draws arrows half as long as the way between the two points.
        mujoco.mjv_connector(arrow, mujoco.mjtGeom.mjGEOM_ARROW, 0.025, start, 2.0 * end - start)

    def _add_bones(self, bones: Floats) -> None:
        for start, end in bones[: _MOST_GEOMS - self._scene.ngeom]:
            self._add(mujoco.mjtGeom.mjGEOM_CAPSULE, np.zeros(3), np.zeros(3), np.eye(3).ravel(), _BONE)
            drawn = self._scene.geoms[self._scene.ngeom - 1]
            mujoco.mjv_connector(drawn, mujoco.mjtGeom.mjGEOM_CAPSULE, _BONE_RADIUS_M, start, end)

    def _add(
        self, kind: mujoco.mjtGeom, size: Floats, place: Floats, rotation: Floats, color: tuple[float, ...]
    ) -> None:
        scene = self._scene
        geom = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(geom, kind, size, place, rotation, np.array(color, np.float32))
        geom.transparent = int(color[3] < 1.0)
        scene.ngeom += 1

    def _speed(self, view: WalkerView) -> float | None:
        """Return the mean speed of the last second; None at the start of an episode."""
        way = self._way
        if way and not 0.0 <= view.time_s - way[-1][0] <= _SPEED_OVER_S:  # another episode, or a jump within this one
            way.clear()
        way.append((view.time_s, float(view.positions[0])))
        while view.time_s - way[0][0] > _SPEED_OVER_S:
            way.popleft()
        lasted = view.time_s - way[0][0]
        return (way[-1][1] - way[0][1]) / lasted if lasted > 0.2 * _SPEED_OVER_S else None


def _option() -> mujoco.MjvOption:
    option = mujoco.MjvOption()
    option.geomgroup[:] = [group in FIGURE_GROUPS for group in range(len(option.geomgroup))]
    option.sitegroup[:] = 0
    return option


def _rows(view: WalkerView, speed: float | None) -> tuple[tuple[str, str], ...]:
    return (
        ("speed", "-" if speed is None else f"{speed:.2f} m/s"),
        *((("desired", f"{view.desired_m_s:.2f} m/s"),) if math.isfinite(view.desired_m_s) else ()),
        ("distance", f"{float(view.positions[0]):.1f} m"),
        ("time", f"{view.time_s:.1f} s"),
    )


def _make_caption(size: tuple[int, int]) -> "Caption | None":
    """Return the caption writer, or None if pygame is not installed."""
    try:
        from ludus.worlds.mimic.rendering.caption import Caption
    except MissingDependencyError:
        return None
    return Caption(size)
