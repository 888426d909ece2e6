"""Mimic in a web page: what the page's own physics (`physics.js`) and its walker (`walker.js`) have to know."""

from typing import cast

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from ludus.core.errors import UnsupportedError
from ludus.core.files import JSON
from ludus.worlds.mimic.env import MimicEnv

_ROOT_DOFS = 6
_INTEGRATORS = {mujoco.mjtIntegrator.mjINT_EULER: "Euler", mujoco.mjtIntegrator.mjINT_IMPLICITFAST: "implicitfast"}


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
    friction = config.friction if config.friction_range is None else float(np.mean(config.friction_range))
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
        "contact": {**_contact(model), "friction": friction},
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
