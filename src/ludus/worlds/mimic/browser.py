"""Mimic in a web page: what the page's own physics (`physics.js`) and its walker (`walker.js`) have to know."""

import base64
import math
import zlib
from typing import Any, cast

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from ludus.core.errors import UnsupportedError
from ludus.core.files import JSON
from ludus.envs.base import BatchedEnv
from ludus.envs.display import BrowserGame
from ludus.envs.spaces import Reflection
from ludus.worlds.mimic import observation, scoring
from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.display import to_mimic
from ludus.worlds.mimic.env import SPEED_CHANGE_M_S2, MimicEnv
from ludus.worlds.mimic.model import POINTS
from ludus.worlds.mimic.reference import ROOT, ROOT_VELOCITY

# Largest differences between a page and MuJoCo, rounded up: `benchmarks/browser_walker.py` measures them with the
# shipped agent `walker` and pushes of 8 N s every second, and docs/data/mimic_browser.json holds what it found. Seconds
# -> joint angles in degrees and the place of the hips in mm; driven by the same actions, and with the agent deciding.
MEASURED: dict[str, Any] = {
    "walks": 20,
    "seconds": 15.0,
    "mujoco": "4.0.0",
    "driven": {
        "0.1": {"joints_deg": 1e-5, "hips_mm": 1e-4},
        "0.5": {"joints_deg": 1e-5, "hips_mm": 1e-4},
        "2": {"joints_deg": 1e-4, "hips_mm": 0.002},
    },
    "walking": {
        "0.5": {"joints_deg": 1e-4, "hips_mm": 1e-4},
        "2": {"joints_deg": 0.001, "hips_mm": 0.002},
        "15": {"joints_deg": 0.002, "hips_mm": 0.2},
    },
}
_INTEGRATORS = {mujoco.mjtIntegrator.mjINT_EULER: "Euler", mujoco.mjtIntegrator.mjINT_IMPLICITFAST: "implicitfast"}


def describe(env: BatchedEnv) -> dict[str, JSON]:
    """Return everything that the page's scripts have to know about an environment.

    Raises:
        UnsupportedError: There are several motions, or one that turns; see `describe_physics` too.
    """
    mimic = to_mimic(env)
    reference = mimic.reference
    if len(reference.parts) > 1 or reference.parts[0].turn_rad_s or reference.stairs is not None:
        raise UnsupportedError(
            "a page shows an agent of one motion that goes straight on over level ground, not one of several, of a "
            "curve or on stairs"
        )
    config, walker, controls = mimic.config, mimic.walker, mimic.controls
    joints = walker.joints
    low, high = config.speed_range
    return {
        "physics": describe_physics(mimic),
        "rate_hz": env.spec.rate_hz,
        "joints": [joint.name for joint in joints],
        "action": {
            "kind": config.action,
            "low": _numbers(controls.low),
            "high": _numbers(controls.high),
            "neutral": _numbers(controls.neutral),
        },
        "mirror": config.mirror,
        "reflection": _reflection(observation.observation_reflection(joints, stride=False)),
        "joint_reflection": _reflection(observation.joint_reflection(joints)),
        "turn_unit": observation.TURN_UNIT,
        "velocity_unit": observation.VELOCITY_UNIT,
        "largest": observation.LARGEST,
        "height_m": walker.height_m,
        "mass_kg": walker.mass_kg,
        "standing_m": walker.standing_m,
        "lowest_m": config.lowest_height * walker.standing_m,
        "largest_tilt": math.radians(config.largest_tilt_deg),
        "speed_change": SPEED_CHANGE_M_S2,
        "speed_range": [low, high],
        "speed": 0.5 * (low + high) if config.speed is None else config.speed,
        "reference": _reference(mimic),
        "likeness": {
            "pose_share": scoring.POSE_SHARE,
            "pose_scale": scoring.POSE_SCALE,
            "velocity_scale": scoring.VELOCITY_SCALE,
        },
        "points": _points(mimic),
        "about": _about(mimic),
    }


def _about(env: MimicEnv) -> list[JSON]:
    """Say what the page is, and how far it is from what the agent was trained in."""
    driven, walking = (MEASURED[name] for name in ("driven", "walking"))
    steps = " and ".join(f"{driven[time]['joints_deg']:.5f} degrees after {time} s" for time in ("0.5", "2"))
    return [
        f"A walker with the sizes and masses of a person, {env.walker.height_m:g} m and {env.walker.mass_kg:g} kg, "
        "that learned to walk by imitating human gait, the pale figure beside it. The agent decides here "
        f"{env.spec.rate_hz:g} times per second, without noise.",
        "It was trained with MuJoCo. Here the physics is the page's own script: those parts of MuJoCo that this walker "
        "uses (rigid bodies, motors, joint limits, soft contacts with friction), with the same equations, steps and "
        "solver in double precision. It is close, but not bit-identical. With the same actions and pushes, joints "
        f"differ from MuJoCo {MEASURED['mujoco']} by less than {steps}.",
        f"Where the shipped agent decides in both, {MEASURED['walks']} pushed walks of {MEASURED['seconds']:g} s ended "
        f"within {walking['15']['hips_mm']:g} mm of each other, and the same walks fell, in the same decision. "
        "A force that you apply at another place than the hips is not part of training.",
    ]


def _reflection(reflection: Reflection) -> dict[str, JSON]:
    return {"source": list(reflection.source), "sign": list(reflection.sign)}


def _reference(env: MimicEnv) -> dict[str, JSON]:
    """Return the table of the reference without the places of the feet, which only rewards need."""
    table, joints = env.reference.table.numpy(), len(env.walker.joints)
    body = 2 * joints + len(ROOT) + len(ROOT_VELOCITY)
    kept = np.concatenate((table[..., :body], table[..., -1:]), axis=-1)
    rows, columns, channels = kept.shape
    return {
        "rows": rows,
        "columns": columns,
        "channels": channels,
        "speeds": list(env.reference.speeds),
        "table": base64.b64encode(zlib.compress(kept.astype("<f4").tobytes(), 9)).decode("ascii"),
    }


def _points(env: MimicEnv) -> dict[str, JSON]:
    """Return the points of the figure that `player.js` draws: the body that each moves with, and its place there."""
    model, walker = env.walker.model, env.walker
    trunk_m = walker.height_m - walker.hip_height_m
    upper = model.body("root").id
    above = 0.0
    if any(model.body(body).name == "upper" for body in range(model.nbody)):
        upper, above = model.body("upper").id, float(model.body("upper").pos[2])
    points: dict[str, JSON] = {
        "hip": [0, [0.0, 0.0, 0.0]],
        "neck": [upper - 1, [0.0, 0.0, 0.75 * trunk_m - above]],
        "head": [upper - 1, [0.02, 0.0, 0.85 * trunk_m - above]],
    }
    for side in SIDES:
        for part, body in (("thigh", "thigh"), ("knee", "shank"), ("ankle", "foot")):
            points[f"{side}_{part}"] = [model.body(f"{side}_{body}").id - 1, [0.0, 0.0, 0.0]]
        foot = model.body(f"{side}_foot").id - 1
        points |= {f"{side}_{point}": [foot, _numbers(model.site(f"{side}_{point}").pos)] for point in POINTS}
    return points


def describe_physics(env: MimicEnv) -> dict[str, JSON]:
    """Return the constants of the walker's model that `WalkerPhysics` reads.

    Raises:
        UnsupportedError: The body is of the user's own file, or the integrator is another one.
    """
    walker, config = env.walker, env.config
    model = walker.model
    integrator = _INTEGRATORS.get(mujoco.mjtIntegrator(model.opt.integrator))
    if walker.body is None:
        raise UnsupportedError("a page knows the physics of walker-8 and walker-13, not that of a body of your own")
    if integrator is None:
        raise UnsupportedError(
            f"a page cannot integrate with {config.integrator}; it can with {', '.join(_INTEGRATORS.values())}"
        )
    return {
        "step_s": model.opt.timestep,
        "substeps": round(1.0 / (config.control_rate_hz * config.physics_step_s)),
        "integrator": integrator,
        "iterations": model.opt.iterations,
        "tolerance": model.opt.tolerance,
        "line_iterations": model.opt.ls_iterations,
        "line_tolerance": model.opt.ls_tolerance,
        "mean_inertia": model.stat.meaninertia,
        "bodies": [_body(model, body) for body in range(1, model.nbody)],
        "hinges": [_hinge(model, joint) for joint in range(1, model.njnt)],
        "spheres": [_sphere(model, geom) for geom in range(model.ngeom) if model.geom_contype[geom]],
        "limits": {"solref": _numbers(model.jnt_solref[1]), "solimp": _numbers(model.jnt_solimp[1])},
        "contact": {**_contact(model), "friction": config.friction},
    }


def _numbers(values: ArrayLike) -> list[JSON]:
    return cast("list[JSON]", np.asarray(values, dtype=np.float64).tolist())


def _body(model: mujoco.MjModel, body: int) -> dict[str, JSON]:
    """Describe a body; the world does not count, so that the root has number 0 and no parent."""
    return {
        "parent": int(model.body_parentid[body]) - 1,
        "place": _numbers(model.body_pos[body]),
        "com": _numbers(model.body_ipos[body]),
        "mass": float(model.body_mass[body]),
        "inertia": _numbers(model.body_inertia[body]),
    }


def _hinge(model: mujoco.MjModel, joint: int) -> dict[str, JSON]:
    """Describe a hinge and its motor, which is the actuator with the same place in the order."""
    dof, motor = int(model.jnt_dofadr[joint]), joint - 1
    gear, bias = float(model.actuator_gear[motor, 0]), model.actuator_biasprm[motor]
    limited = bool(model.actuator_forcelimited[motor])
    return {
        "body": int(model.jnt_bodyid[joint]) - 1,
        "axis": _numbers(model.jnt_axis[joint]),
        "range": _numbers(model.jnt_range[joint]),
        "armature": float(model.dof_armature[dof]),
        "damping": float(model.dof_damping[dof]),
        "weight0": float(model.dof_invweight0[dof]),
        "gain": float(model.actuator_gainprm[motor, 0]) * gear,
        "stiffness": -float(bias[1]),
        "servo_damping": -float(bias[2]),
        "limit": float(model.actuator_forcerange[motor, 1]) if limited else gear,
    }


def _sphere(model: mujoco.MjModel, geom: int) -> dict[str, JSON]:
    body = int(model.geom_bodyid[geom])
    return {
        "body": body - 1,
        "place": _numbers(model.geom_pos[geom]),
        "radius": float(model.geom_size[geom, 0]),
        "weight0": float(model.body_invweight0[body, 0]),
    }


def _contact(model: mujoco.MjModel) -> dict[str, JSON]:
    """Return the softness of contacts as MuJoCo mixes it from both geoms: it is read from a real contact."""
    data = mujoco.MjData(model)
    data.qpos[2] -= 0.001
    mujoco.mj_forward(model, data)
    return {"solref": _numbers(data.contact[0].solref), "solimp": _numbers(data.contact[0].solimp)}


BROWSER = BrowserGame(
    scripts=tuple(f"ludus.worlds.mimic:{name}.js" for name in ("physics", "walker", "player", "panel", "live")),
    data=describe,
    is_viewer=True,
)
