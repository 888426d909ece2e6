"""A walker of the user's own: an MJCF file with a free root and actuated hinges that follows the reference gait.

The file is brought to the conventions of the built-in walkers when it is loaded: axes of joints that follow the
reference are turned so that flexion is positive, the file's actuators are replaced by motors or servos of the same
strength, and heels, balls and soles are marked on the feet. So nothing else has to know where a walker comes from.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np

from ludus.core.errors import ConfigError
from ludus.worlds.mimic.body import REFERENCE_JOINTS, SIDES, Joint
from ludus.worlds.mimic.body_file import read_spec
from ludus.worlds.mimic.config import BodyConfig, MimicConfig
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import POINTS, Walker, servo_gains

MARK = "ludus/"  # before the names of what is added to a file
_NEEDED = tuple(f"{side}_{kind}" for side in SIDES for kind in ("hip", "knee", "ankle"))
_ALONG = 0.7  # least cosine between a joint's axis and that of the reference: 45 degrees
_MIDDLE_M = 0.01  # a joint that is no farther from the middle is on neither side
_SIDES_IN_NAMES = (("right", "left"), ("Right", "Left"), ("_r", "_l"), ("r_", "l_"), ("_R", "_L"), ("R_", "L_"))
_MARKER_M = 0.001
_MARKER_GROUP = 5  # which MuJoCo's viewers do not show
_SOLE_MARGIN = 1.2


class _Pose(NamedTuple):
    """A model that stands with all angles 0 and its root, unturned, at the origin."""

    model: mujoco.MjModel
    data: mujoco.MjData


class _Sole(NamedTuple):
    """What of a foot can touch the ground, in the world's axes: `low` and `high` `(3,)` are opposite corners."""

    body: int
    low: Floats
    high: Floats


def load_walker(config: MimicConfig, body: BodyConfig) -> Walker:
    """Load the walker that a world's settings name; raise ConfigError with all that is wrong with its file."""
    spec = read_spec(body.file)
    pose = _stand(_compile(spec, body.file))
    _check(body.file, _tree_faults(pose.model))
    _check(body.file, _mapping_faults(pose.model, body.joints))
    _check(body.file, [*_posture_faults(pose, body.joints), *_joint_faults(pose, body.joints)])
    soles = [_sole(pose, body.joints[f"{side}_ankle"]) for side in SIDES]
    _check(body.file, [f"{_body_name(pose.model, sole.body)!r} has nothing that touches the ground" for sole in soles
                       if not np.isfinite(sole.low).all()])  # fmt: skip
    limits = tuple(config.strength * _torque(pose.model, joint) for joint in _hinges(pose.model))
    joints = _joints(pose, body.joints, limits)
    _turn_axes(spec, pose, body.joints)
    _replace_drives(spec, pose.model, limits, config)
    _mark_soles(spec, pose, soles)
    _add_sensors(spec, pose.model)
    _set_physics(spec, config)
    return _walker(spec, pose, joints, limits, soles, body)


def _compile(spec: mujoco.MjSpec, file: Path) -> mujoco.MjModel:
    try:
        return spec.compile()
    except ValueError as error:
        raise ConfigError(f"body.file {file} cannot be compiled: {error}") from error


def _stand(model: mujoco.MjModel) -> _Pose:
    data = mujoco.MjData(model)
    data.qpos[:] = 0.0
    if model.nq > 3:
        data.qpos[3] = 1.0
    mujoco.mj_kinematics(model, data)
    return _Pose(model, data)


def _check(file: Path, faults: Sequence[str]) -> None:
    if faults:
        raise ConfigError(f"body.file {file} cannot walk: {'; '.join(faults)}")


def _tree_faults(model: mujoco.MjModel) -> list[str]:
    free, hinge = mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_HINGE
    if not model.njnt or model.jnt_type[0] != free or model.jnt_bodyid[0] != 1:
        return ["the first body must be its root, with a <freejoint/>"]
    faults = []
    for joint in _hinges(model):
        name = model.joint(joint).name
        if not name:
            faults.append(f"joint {joint} of body {_body_name(model, model.jnt_bodyid[joint])!r} needs a name")
        elif model.jnt_type[joint] != hinge:
            faults.append(f"joint {name!r} must be a hinge")
        elif model.qpos0[model.jnt_qposadr[joint]] != 0.0:
            faults.append(f"joint {name!r} has a ref; its angle must be 0 where the body stands straight")
        elif not model.jnt_limited[joint]:
            faults.append(f"joint {name!r} needs a range")
        elif _torque(model, joint) <= 0.0:
            faults.append(
                f"joint {name!r} needs one actuator with a largest torque: a motor with a ctrlrange, or a forcerange"
            )
    return faults


def _mapping_faults(model: mujoco.MjModel, joints: Mapping[str, str]) -> list[str]:
    names = [model.joint(joint).name for joint in _hinges(model)]
    faults = [f"body.joints needs {name}" for name in _NEEDED if name not in joints]
    for reference, name in joints.items():
        if reference not in REFERENCE_JOINTS:
            faults.append(f"{reference!r} is no joint of the reference; valid: {', '.join(REFERENCE_JOINTS)}")
        elif REFERENCE_JOINTS[reference].mirror not in joints:
            faults.append(f"{reference} needs {REFERENCE_JOINTS[reference].mirror} too")
        if name not in names:
            faults.append(f"{reference}: there is no joint {name!r}; valid: {', '.join(names)}")
        elif list(joints.values()).count(name) > 1:
            faults.append(f"joint {name!r} stands for several joints of the reference")
    return list(dict.fromkeys(faults))


def _posture_faults(pose: _Pose, joints: Mapping[str, str]) -> Iterator[str]:
    """Yield what contradicts x forward, y left, z up with straight legs."""
    for side in SIDES:
        hip, knee, ankle = (_anchor(pose, joints[f"{side}_{kind}"])[2] for kind in ("hip", "knee", "ankle"))
        if not hip > knee > ankle:
            yield f"its {side} hip, knee and ankle must be above each other where all angles are 0 and z is up"
    right, left = (_anchor(pose, joints[f"{side}_hip"])[1] for side in SIDES)
    if not left > right:
        yield "its left hip must be to the left of the right one, where y is; x is forward"


def _joint_faults(pose: _Pose, joints: Mapping[str, str]) -> Iterator[str]:
    for reference, name in joints.items():
        wanted = REFERENCE_JOINTS[reference].axis
        if abs(_cosine(pose, name, wanted)) < _ALONG:
            axis = " ".join(f"{part:.2f}" for part in pose.data.xaxis[pose.model.joint(name).id])
            yield f"joint {name!r} turns about ({axis}), but {reference} about ({' '.join(map(str, wanted))})"
    for joint in _hinges(pose.model):
        name = pose.model.joint(joint).name
        if name not in joints.values() and abs(pose.data.xanchor[joint, 1]) > _MIDDLE_M and not _partner(pose, name):
            yield f"joint {name!r} has no counterpart on the other side; name them alike, with right and left"


def _hinges(model: mujoco.MjModel) -> range:
    """Return the joints behind the root."""
    return range(1, model.njnt)


def _body_name(model: mujoco.MjModel, body: int) -> str:
    return str(model.body(body).name or body)


def _anchor(pose: _Pose, joint: str) -> Floats:
    anchor: Floats = pose.data.xanchor[pose.model.joint(joint).id]
    return anchor


def _cosine(pose: _Pose, joint: str, axis: Sequence[float]) -> float:
    return float(pose.data.xaxis[pose.model.joint(joint).id] @ np.asarray(axis, np.float64))


def _partner(pose: _Pose, name: str) -> str:
    """Return the joint of the same name on the other side; an empty string if there is none."""
    names = {pose.model.joint(joint).name for joint in _hinges(pose.model)}
    for pair in _SIDES_IN_NAMES:
        for one, other in (pair, pair[::-1]):
            if one in name and name.replace(one, other) in names:
                return name.replace(one, other)
    return ""


def _torque(model: mujoco.MjModel, joint: int) -> float:
    """Return the largest torque that the file's actuator gives a joint, N m; 0 if it has none, several or no limit."""
    is_joint = model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT
    (drives,) = np.nonzero(is_joint & (model.actuator_trnid[:, 0] == joint))
    if len(drives) != 1:
        return 0.0
    drive = int(drives[0])
    largest = np.inf
    if model.actuator_forcelimited[drive]:
        largest = float(np.abs(model.actuator_forcerange[drive]).max())
    elif model.actuator_ctrllimited[drive] and model.actuator_biastype[drive] == mujoco.mjtBias.mjBIAS_NONE:
        largest = abs(float(model.actuator_gainprm[drive, 0])) * float(np.abs(model.actuator_ctrlrange[drive]).max())
    largest *= abs(float(model.actuator_gear[drive, 0]))
    if model.jnt_actfrclimited[joint]:
        largest = min(largest, float(np.abs(model.jnt_actfrcrange[joint]).max()))
    return largest if np.isfinite(largest) else 0.0


def _joints(pose: _Pose, mapping: Mapping[str, str], limits: Sequence[float]) -> tuple[Joint, ...]:
    """Return all joints in the order of the file; those that follow the reference have its names."""
    model, mass = pose.model, float(pose.model.body_mass.sum())
    references = {name: reference for reference, name in mapping.items()}
    joints = []
    for joint, limit in zip(_hinges(model), limits, strict=True):
        name = model.joint(joint).name
        low, high = np.rad2deg(model.jnt_range[joint]).tolist()
        reference = references.get(name)
        if reference is not None:
            like = REFERENCE_JOINTS[reference]
            ends = (low, high) if _cosine(pose, name, like.axis) > 0.0 else (-high, -low)
            joints.append(Joint(reference, like.segment, like.axis, ends, limit / mass, like.mirror, like.mirror_sign))
            continue
        other = _partner(pose, name) or name
        # A turn about an axis in a mirror of left and right: about x and z it goes the other way.
        mirrored = pose.data.xaxis[joint] * (-1.0, 1.0, -1.0)
        sign = 1.0 if mirrored @ pose.data.xaxis[model.joint(other).id] > 0.0 else -1.0
        part = _body_name(model, model.jnt_bodyid[joint])
        joints.append(Joint(name, part, (0, 0, 0), (low, high), limit / mass, other, sign, is_held=True))
    return tuple(joints)


def _turn_axes(spec: mujoco.MjSpec, pose: _Pose, mapping: Mapping[str, str]) -> None:
    """Turn the axes whose positive angles are negative in the reference."""
    for reference, name in mapping.items():
        if _cosine(pose, name, REFERENCE_JOINTS[reference].axis) < 0.0:
            joint = spec.joint(name)
            joint.axis, joint.range = -joint.axis, -joint.range[::-1]
            joint.springref, joint.actfrcrange = -joint.springref, -joint.actfrcrange[::-1]


def _replace_drives(spec: mujoco.MjSpec, model: mujoco.MjModel, limits: Sequence[float], config: MimicConfig) -> None:
    """Put motors or servos in the place of the file's actuators; sensors and keyframes would not fit them."""
    for element in (*spec.actuators, *spec.sensors, *spec.keys):
        spec.delete(element)
    for joint, limit in zip(_hinges(model), limits, strict=True):
        name = model.joint(joint).name
        drive = spec.add_actuator(name=f"{MARK}{name}", target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        if config.action == "torque":
            drive.set_to_motor()
            drive.gear[0], drive.ctrlrange, drive.ctrllimited = limit, (-1.0, 1.0), True
        else:
            inertia = float(model.dof_M0[model.jnt_dofadr[joint]])
            stiffness, damping = servo_gains(config, limit, inertia)
            drive.set_to_position(kp=stiffness, kv=damping)
            drive.forcerange, drive.forcelimited = (-limit, limit), True


def _sole(pose: _Pose, ankle: str) -> _Sole:
    """Return the box around all that can touch the ground below an ankle; infinite if there is nothing."""
    model, data = pose.model, pose.data
    foot = int(model.joint(ankle).bodyid[0])
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    signs = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T
    for geom in np.flatnonzero((model.geom_contype | model.geom_conaffinity) != 0):
        if model.geom_bodyid[geom] == foot:
            middle, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
            corners = data.geom_xpos[geom] + (middle + signs * half) @ data.geom_xmat[geom].reshape(3, 3).T
            low, high = np.minimum(low, corners.min(axis=0)), np.maximum(high, corners.max(axis=0))
    return _Sole(foot, low, high)


def _mark_soles(spec: mujoco.MjSpec, pose: _Pose, soles: Sequence[_Sole]) -> None:
    """Mark heel and ball of both feet: four points of the sole that carry the walker, and the box that is loaded."""
    for side, sole in zip(SIDES, soles, strict=True):
        foot = spec.bodies[sole.body]
        turn = pose.data.xmat[sole.body].reshape(3, 3)
        place, middle = pose.data.xpos[sole.body], 0.5 * (sole.low + sole.high)
        for point, x in zip(POINTS, (sole.low[0], sole.high[0]), strict=True):
            name = f"{MARK}{side}_{point}"
            at = turn.T @ (np.array((x, middle[1], sole.low[2])) - place)
            foot.add_site(name=name, pos=at, size=[_MARKER_M] * 3, group=_MARKER_GROUP)
            for index, y in enumerate((sole.low[1], sole.high[1])):
                foot.add_geom(
                    name=f"{name}_{index}", pos=turn.T @ (np.array((x, y, sole.low[2])) - place), size=[_MARKER_M] * 3,
                    type=mujoco.mjtGeom.mjGEOM_SPHERE, contype=0, conaffinity=0, mass=0.0, group=_MARKER_GROUP,
                )  # fmt: skip
        unturned = pose.data.xquat[sole.body] * (1.0, -1.0, -1.0, -1.0)
        foot.add_site(
            name=f"{MARK}{side}_sole", type=mujoco.mjtGeom.mjGEOM_BOX, pos=turn.T @ (middle - place), quat=unturned,
            size=_SOLE_MARGIN * 0.5 * (sole.high - sole.low), group=_MARKER_GROUP,
        )  # fmt: skip


def _add_sensors(spec: mujoco.MjSpec, model: mujoco.MjModel) -> None:
    """Add the sensors of the built-in walkers, in their order; see `ludus.worlds.mimic.model`."""
    kinds, objects = mujoco.mjtSensor, mujoco.mjtObj
    for side in SIDES:
        for point in POINTS:
            spec.add_sensor(
                type=kinds.mjSENS_FRAMEPOS, objtype=objects.mjOBJ_SITE, objname=f"{MARK}{side}_{point}",
                reftype=objects.mjOBJ_XBODY, refname=_named(spec.bodies[1]),
            )  # fmt: skip
    for side in SIDES:
        spec.add_sensor(type=kinds.mjSENS_TOUCH, objtype=objects.mjOBJ_SITE, objname=f"{MARK}{side}_sole")
    for joint in _hinges(model):
        name = model.joint(joint).name
        spec.add_sensor(type=kinds.mjSENS_JOINTACTFRC, objtype=objects.mjOBJ_JOINT, objname=name)


def _named(body: mujoco.MjsBody) -> str:
    """Return the name of a body, which it gets if it has none."""
    body.name = body.name or f"{MARK}root"
    return str(body.name)


def _set_physics(spec: mujoco.MjSpec, config: MimicConfig) -> None:
    """Set what the world's settings decide; friction is that of the ground if the file has none of its own."""
    spec.option.timestep = config.physics_step_s
    spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{config.integrator.upper()}")
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.worldbody.geoms):
        spec.worldbody.add_geom(
            name=f"{MARK}ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0],
            friction=[config.friction, 0.005, 0.0001], contype=1, conaffinity=1,
        )  # fmt: skip


def _walker(
    spec: mujoco.MjSpec,
    pose: _Pose,
    joints: tuple[Joint, ...],
    limits: tuple[float, ...],
    soles: Sequence[_Sole],
    body: BodyConfig,
) -> Walker:
    model, data = pose.model, pose.data
    ground = min(float(sole.low[2]) for sole in soles)
    hips = np.mean([_anchor(pose, body.joints[f"{side}_hip"]) for side in SIDES], axis=0)
    ankle = _anchor(pose, body.joints["right_ankle"])
    moving = np.flatnonzero(model.geom_bodyid > 0)
    top = max(float((data.geom_xpos[geom] + model.geom_rbound[geom])[2]) for geom in moving)
    compiled = _compile(spec, body.file)
    return Walker(
        name=body.file.stem,
        height_m=top - ground,
        mass_kg=float(model.body_mass.sum()),
        hip_height_m=float(hips[2]) - ground,
        ankle_height_m=float(ankle[2]) - ground,
        standing_m=-ground,
        joints=joints,
        limits_nm=limits,
        model=compiled,
        text=spec.to_xml(),
        hips=tuple(map(float, hips)),
        feet=tuple(_body_name(model, sole.body) for sole in soles),
        anchors=dict(body.joints),
        mark=MARK,
        contact_radius_m=0.0,
        spec=spec,
    )
