"""MuJoCo behind a batch: all walkers advance by one decision in one call of its native thread pool."""

from copy import copy
from typing import NamedTuple

import mujoco
import numpy as np
import torch
from mujoco import rollout
from numpy.typing import NDArray

from ludus.envs.settings import host_threads
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import NORMAL_SPEED_M_S, Floats
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.reference import PHASES, Reference

FRICTION_LEVELS = 8
_LARGEST = 1e4  # m, rad, m/s or rad/s; beyond it the physics has gone wrong
_FULL = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
_CONTROL = int(mujoco.mjtState.mjSTATE_CTRL)
_FORCE = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)


class Advance(NamedTuple):
    """What one decision gave."""

    sensors: Floats  # `(games, sensors)` at the last physics step's beginning
    # `(games,)` bool, walkers whose numbers are not finite or too large; their state is the one before.
    broken: NDArray[np.bool_]


class Physics:
    """The states of all walkers and the threads that advance them.

    A state holds everything that the future depends on: the contact solver is not warm-started across decisions, so
    results are the same for any number of threads and walkers. `states` `(games, state)` is written in place to restart
    a walker; `positions` `(games, 7 + joints)` and `velocities` `(games, 6 + joints)` are views of it.
    """

    def __init__(self, walker: Walker, config: MimicConfig, games: int) -> None:
        _silence()
        model = walker.model
        self.substeps = round(1.0 / (config.control_rate_hz * config.physics_step_s))
        self._models = _friction_models(walker, config)
        self._chosen = [self._models[0]] * games
        self._push_size = model.nv if config.pushes.impulse_ns > 0.0 else 0
        self._spec = _CONTROL | (_FORCE if self._push_size else 0)
        self._datas = [mujoco.MjData(model) for _ in range(min(host_threads(config.threads), games))]
        self._pool: rollout.Rollout | None = rollout.Rollout(nthread=len(self._datas))
        size = mujoco.mj_stateSize(model, _FULL)
        self.states = np.zeros((games, size))
        self.positions = self.states[:, 1 : 1 + model.nq]
        self.velocities = self.states[:, 1 + model.nq : 1 + model.nq + model.nv]
        self._inputs = np.zeros((games, self.substeps, model.nu + self._push_size))
        self._outputs = np.zeros((games, self.substeps, size))
        self._sensors = np.zeros((games, self.substeps, model.nsensordata))
        self._controls = model.nu
        self._duration_s = self.substeps * config.physics_step_s
        self._chunk = max(1, -(-games // (8 * len(self._datas))))

    def choose_friction(self, levels: NDArray[np.int64]) -> None:
        """Select the friction level of each game, `(games,)`; does nothing without a friction range."""
        if len(self._models) > 1:
            self._chosen = [self._models[level] for level in levels.tolist()]

    def advance(self, controls: Floats, pushes: Floats | None = None) -> Advance:
        """Advance all walkers by controls `(games, joints)` and pushes forward and to the left `(games, 2)` in N."""
        if self._pool is None:
            raise RuntimeError("the walkers were closed; make a new environment")
        self._inputs[:, :, : self._controls] = controls[:, None]
        if pushes is not None and self._push_size:
            self._inputs[:, :, self._controls : self._controls + 2] = pushes[:, None]
        self._pool.rollout(
            self._chosen,
            self._datas,
            self.states,
            self._inputs,
            control_spec=self._spec,
            skip_checks=True,
            nstep=self.substeps,
            state=self._outputs,
            sensordata=self._sensors,
            chunk_size=self._chunk,
        )
        after = self._outputs[:, -1]
        # MuJoCo puts a walker whose numbers have gone wrong back to its first pose, at another time than it should be.
        late = np.abs(after[:, 0] - self.states[:, 0] - self._duration_s) > 1e-6
        wild = ~(np.abs(after[:, 1:]).max(axis=1) < _LARGEST)
        broken = late | wild
        if broken.any():
            np.copyto(self.states, after, where=~broken[:, None])
            self.states[broken] = np.nan_to_num(self.states[broken], posinf=_LARGEST, neginf=-_LARGEST)
            self._sensors[broken] = 0.0
        else:
            self.states[:] = after
        return Advance(self._sensors[:, -1], broken)

    def close(self) -> None:
        """End the threads; may be called twice."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


def _silence() -> None:
    """Keep MuJoCo from writing `MUJOCO_LOG.TXT` into the working directory; `Advance` reports failures."""
    log = mujoco.MjLogConfig.get()
    log.logto_console = log.logto_file = False
    mujoco.MjLogConfig.set(log)


def _friction_models(walker: Walker, config: MimicConfig) -> list[mujoco.MjModel]:
    if config.friction_range is None:
        return [walker.model]
    models = []
    for friction in np.linspace(*config.friction_range, FRICTION_LEVELS):
        model = copy(walker.model)
        model.geom_friction[:, 0] = friction
        models.append(model)
    return models


class Controls:
    """Turns actions into controls.

    Attributes:
        delta: Largest difference from the present angle, rad.
        low: `(joints,)` lowest angles, rad.
        high: `(joints,)` highest angles, rad.
        neutral: `(joints,)` target angles of the action 0, rad.
    """

    def __init__(self, walker: Walker, reference: Reference, config: MimicConfig) -> None:
        self._kind, self.delta = config.action, float(np.deg2rad(config.delta_deg))
        ranges = np.deg2rad([joint.range_deg for joint in walker.joints])
        self.low, self.high = ranges[:, 0], ranges[:, 1]
        phases = torch.arange(PHASES) / PHASES
        self.neutral = reference.at(torch.full_like(phases, NORMAL_SPEED_M_S), phases).angles.mean(0).double().numpy()

    def of(self, actions: Floats, angles: Floats) -> Floats:
        """Return the actuators' controls of actions in [-1, 1] at the joints' angles in rad, `(games, joints)`."""
        if self._kind == "torque":
            return actions
        if self._kind == "delta":
            return np.asarray(np.clip(angles + self.delta * actions, self.low, self.high))
        reach = np.where(actions > 0.0, self.high - self.neutral, self.neutral - self.low)
        return np.asarray(self.neutral + actions * reach)
