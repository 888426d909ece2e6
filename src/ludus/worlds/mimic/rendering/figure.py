"""What a frame shows of a walker: its state, and a person's shape on the bodies of the plain physics model."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import mujoco
import numpy as np

from ludus.worlds.mimic.body import SIDES, Body
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import POINTS, STEP, Walker
from ludus.worlds.mimic.reference import Frame, quaternions

Color: TypeAlias = tuple[float, float, float]
Point: TypeAlias = tuple[float, float, float]

SIZE = (960, 540)  # largest pictures, width and height; software GL draws about 15 per second on two cores
FIGURE_GROUPS = (1, 2)  # geom groups of the ground and of the figure; what only the physics needs is not seen
_GROUND, _FIGURE = FIGURE_GROUPS
_SHOWN_GROUPS, _HIDDEN = (0, 1, 2), 0  # those of a file that MuJoCo shows; what is not drawn
_SKIN: Color = (0.90, 0.68, 0.54)
_SHIRT: Color = (0.16, 0.52, 0.68)
_SHORTS: Color = (0.19, 0.21, 0.30)
_HAIR: Color = (0.24, 0.16, 0.12)
_SHOE: Color = (0.92, 0.33, 0.22)
_SOCK: Color = (0.95, 0.95, 0.93)
_LEFT_SHADE = 0.68  # brightness of the left leg and arm, so that the sides can be told apart
_MEADOW: Color = (0.62, 0.67, 0.66)
_STONE: Color = (0.78, 0.76, 0.72)  # of stairs
_SKY: tuple[Color, Color] = ((0.74, 0.83, 0.92), (0.90, 0.94, 0.97))
_STAIR_AT_M = (0.45, 1.15)  # where stairs are across the way, and half their width, as they are drawn
_DRAWN_HEIGHT_M = 1.75  # of the body that the sizes below are of, in m
_ROOT = 1  # the first body behind the world


@dataclass(frozen=True, slots=True)
class WalkerView:
    """A walker at one moment."""

    positions: Floats  # `(7 + joints,)` of the walker, as MuJoCo has them: root, then joints
    # The same of the reference, whose place along and across the way does not matter; None to draw none.
    ghost: Floats | None
    time_s: float  # since the episode began
    desired_m_s: float  # the speed that is asked for; NaN where none is
    push_n: tuple[float, float] = (0.0, 0.0)  # `(2,)` force at the hips, forward and to the left
    bones: Floats | None = None  # `(lines, 2, 3)` ends of lines to draw beside it, in the world
    stairs_m: float | None = None  # height of the line of the stairs that it climbs; None on level ground


class StickFigure:
    """The points of a walker from which pages draw a person.

    Attributes:
        names: What the points are: hips, neck and head, then thigh, knee and ankle of both sides, then their soles.
    """

    names: tuple[str, ...] = (
        *("hip", "neck", "head"),
        *(f"{side}_{part}" for side in SIDES for part in ("thigh", "knee", "ankle")),
        *(f"{side}_{point}" for side in SIDES for point in POINTS),
    )

    def __init__(self, walker: Walker) -> None:
        self._model = walker.model
        self._data = mujoco.MjData(self._model)
        joints = [f"{side}_{kind}" for side in SIDES for kind in ("hip", "knee", "ankle")]
        self._joints = [self._model.joint(walker.anchors.get(name, name)).id for name in joints]
        points = [f"{walker.mark}{side}_{point}" for side in SIDES for point in POINTS]
        self._sites = [self._model.site(name).id for name in points]
        trunk_m = walker.height_m - walker.hip_height_m
        upper = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.75 * trunk_m), (0.02, 0.0, 0.85 * trunk_m))  # hips, neck, head
        self._upper = [np.array(walker.hips) + place for place in upper]

    def points(self, positions: Floats) -> Floats:
        """Return the points `(points, 3)` in m, forward, left and up, of positions as MuJoCo has them."""
        self._data.qpos[:] = positions
        mujoco.mj_kinematics(self._model, self._data)
        turned = self._data.xmat[_ROOT].reshape(3, 3)
        upper = [self._data.xpos[_ROOT] + turned @ place for place in self._upper]
        legs = [self._data.xanchor[joint] for joint in self._joints]
        return np.array([*upper, *legs, *(self._data.site_xpos[site] for site in self._sites)])


def reference_positions(frame: Frame, game: int) -> Floats:
    """Return `(7 + joints,)` positions of a walker that is where the reference of one game is."""
    root = frame.root[game].double().numpy()
    place = np.array((0.0, 0.0, root[0]))
    return np.concatenate((place, quaternions(root[1:]), frame.angles[game].double().numpy()))


def figure_of(walker: Walker) -> mujoco.MjModel:
    """Return the model to draw a walker with: its bodies, joints and positions are those of the physics model."""
    return _compiled(walker.text, walker.body) if walker.body is not None else _own_figure(walker)


def _own_figure(walker: Walker) -> mujoco.MjModel:
    """Return a body of the user's own with its own shapes and colours."""
    assert walker.spec is not None  # noqa: S101 - one of both is there
    spec = walker.spec.copy()
    for geom in spec.geoms:
        is_ground = geom.type == mujoco.mjtGeom.mjGEOM_PLANE
        geom.group = _GROUND if is_ground else _FIGURE if geom.group in _SHOWN_GROUPS else _HIDDEN
    _set_light(spec)
    if not any(texture.type == mujoco.mjtTexture.mjTEXTURE_SKYBOX for texture in spec.textures):
        _add_sky(spec)
    return spec.compile()


@lru_cache(maxsize=8)
def _compiled(text: str, body: Body) -> mujoco.MjModel:
    spec = mujoco.MjSpec.from_string(text)
    for geom in spec.geoms:
        geom.group = 0
    _set_light(spec)
    _set_scene(spec)
    upper = spec.body("upper")
    _Shape(spec.body("root"), body).pelvis()
    _Shape(spec.body("root") if upper is None else upper, body, 0.0 if upper is None else upper.pos[2]).trunk()
    for side in SIDES:
        shade = 1.0 if side == "right" else _LEFT_SHADE
        _Shape(spec.body(f"{side}_thigh"), body, shade=shade).thigh()
        _Shape(spec.body(f"{side}_shank"), body, shade=shade).shank()
        _Shape(spec.body(f"{side}_foot"), body, shade=shade).foot()
    return spec.compile()


def _set_light(spec: mujoco.MjSpec) -> None:
    """Set size and light; multisampling is off, because software GL takes four times as long with it."""
    spec.visual.global_.offwidth, spec.visual.global_.offheight = SIZE
    quality = spec.visual.quality
    quality.offsamples, quality.numslices, quality.numstacks = 0, 20, 12
    head = spec.visual.headlight
    head.ambient, head.diffuse, head.specular = [0.45] * 3, [0.25] * 3, [0.0] * 3
    sun = spec.worldbody.add_light()
    sun.type, sun.dir, sun.castshadow = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, [-0.35, 0.55, -1.0], False
    sun.diffuse, sun.specular = [0.5, 0.5, 0.48], [0.05] * 3


def _set_scene(spec: mujoco.MjSpec) -> None:
    """Set the colours of ground and sky."""
    ground = spec.geom("ground")
    ground.group, ground.rgba = _GROUND, [*_MEADOW, 1.0]
    for geom in spec.geoms:
        if geom.name.startswith(STEP):
            geom.group, geom.rgba = _GROUND, [*_STONE, 1.0]
            geom.pos[1], geom.size[1] = _STAIR_AT_M  # narrower than they are, so that the camera looks past them
    _add_sky(spec)


def _add_sky(spec: mujoco.MjSpec) -> None:
    sky = spec.add_texture()
    sky.name, sky.type, sky.builtin = "sky", mujoco.mjtTexture.mjTEXTURE_SKYBOX, mujoco.mjtBuiltin.mjBUILTIN_GRADIENT
    sky.width = sky.height = 64
    sky.rgb1, sky.rgb2 = (list(color) for color in _SKY)


class _Shape:
    """Adds shapes to one body of the model; all sizes are of a person of 1.75 m and grow with the body."""

    def __init__(self, part: mujoco.MjsBody, body: Body, below_m: float = 0.0, shade: float = 1.0) -> None:
        """Shape a part whose frame begins `below_m` above the frame of the shapes."""
        self._part, self._body, self._below_m, self._shade = part, body, below_m, shade
        self._unit = body.height_m / _DRAWN_HEIGHT_M

    def pelvis(self) -> None:
        self._ellipsoid((0.0, 0.0, 0.035), (0.105, 0.150, 0.100), _SHORTS)

    def trunk(self) -> None:
        """Add what is above the hips; the arms hang, as they are one with the trunk."""
        self._ellipsoid((0.0, 0.0, 0.20), (0.098, 0.135, 0.160), _SHIRT)
        self._ellipsoid((0.0, 0.0, 0.37), (0.110, 0.165, 0.165), _SHIRT)
        self._capsule((0.0, -0.135, 0.475), (0.0, 0.135, 0.475), 0.055, _SHIRT)
        self._capsule((0.0, 0.0, 0.50), (0.010, 0.0, 0.60), 0.046, _SKIN)
        self._ellipsoid((0.022, 0.0, 0.690), (0.090, 0.074, 0.118), _SKIN)
        self._ellipsoid((0.004, 0.0, 0.722), (0.096, 0.081, 0.096), _HAIR)
        self._ellipsoid((0.112, 0.0, 0.682), (0.016, 0.012, 0.018), _SKIN)
        for side, shade in ((-1.0, 1.0), (1.0, _LEFT_SHADE)):
            self._shade = shade
            sleeve, elbow = (-0.014, 0.207 * side, 0.315), (-0.025, 0.225 * side, 0.20)
            self._capsule((0.0, 0.185 * side, 0.465), sleeve, 0.048, _SHIRT)
            self._capsule(sleeve, elbow, 0.038, _SKIN)
            self._capsule(elbow, (0.055, 0.215 * side, -0.03), 0.033, _SKIN)
            self._ellipsoid((0.075, 0.215 * side, -0.075), (0.032, 0.020, 0.055), _SKIN)

    def thigh(self) -> None:
        length = self._body.thigh.length_m / self._unit
        self._capsule((0.0, 0.0, -0.02), (0.0, 0.0, -0.52 * length), 0.080, _SHORTS)
        self._capsule((0.0, 0.0, -0.50 * length), (0.0, 0.0, -length), 0.056, _SKIN)

    def shank(self) -> None:
        length = self._body.shank.length_m / self._unit
        self._capsule((0.0, 0.0, 0.0), (0.0, 0.0, -length), 0.041, _SKIN)
        self._ellipsoid((-0.018, 0.0, -0.30 * length), (0.052, 0.050, 0.135), _SKIN)
        self._capsule((0.0, 0.0, -0.82 * length), (0.0, 0.0, -length), 0.044, _SOCK)

    def foot(self) -> None:
        """Add a shoe; its sole ends at the ball, about which the foot rolls, and the toe is bent up."""
        sizes = (-self._body.ankle_height_m, -self._body.heel_m, self._body.ball_m, self._body.foot_half_width_m)
        floor, heel, ball, half = (size / self._unit for size in sizes)
        toe = heel + self._body.foot.length_m / self._unit
        for y in (-0.5 * half, 0.5 * half):
            self._capsule((heel + 0.022, y, floor + 0.022), (ball, y, floor + 0.022), 0.022, _SOCK)
        self._ellipsoid((0.5 * (heel + 0.035), 0.0, floor + 0.050), (0.055, half, 0.050), _SHOE)
        self._ellipsoid((0.5 * (ball + 0.020), 0.0, floor + 0.044), (0.095, half, 0.036), _SHOE)
        front = (0.5 * (ball + toe) - 0.010, 0.0, floor + 0.034)
        self._ellipsoid(front, (0.5 * (toe - ball) + 0.030, half, 0.029), _SHOE)

    def _ellipsoid(self, place: Point, size: Point, color: Color) -> None:
        geom = self._add(mujoco.mjtGeom.mjGEOM_ELLIPSOID, color)
        geom.pos, geom.size = self._placed(place), [self._unit * part for part in size]

    def _capsule(self, start: Point, end: Point, radius: float, color: Color) -> None:
        geom = self._add(mujoco.mjtGeom.mjGEOM_CAPSULE, color)
        geom.fromto, geom.size = [*self._placed(start), *self._placed(end)], [self._unit * radius, 0.0, 0.0]

    def _placed(self, point: Point) -> list[float]:
        x, y, z = point
        return [self._unit * x, self._unit * y, self._unit * z - self._below_m]

    def _add(self, kind: mujoco.mjtGeom, color: Color) -> mujoco.MjsGeom:
        geom = self._part.add_geom()
        geom.type, geom.group, geom.contype, geom.conaffinity = kind, _FIGURE, 0, 0
        geom.rgba = [*(self._shade * part for part in color), 1.0]
        return geom
