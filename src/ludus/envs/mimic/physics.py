"""MuJoCo behind a batch: all walkers advance by one decision in one call of its native thread pool."""

import os
from typing import NamedTuple

import mujoco
import numpy as np
from mujoco import rollout
from numpy.typing import NDArray

from ludus.envs.mimic.config import MimicConfig
from ludus.envs.mimic.gait import Floats
from ludus.envs.mimic.model import Walker

FRICTION_LEVELS = 8
_LARGEST = 1e4  # m, rad, m/s or rad/s; beyond it the physics has gone wrong
_FULL = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
_CONTROL = int(mujoco.mjtState.mjSTATE_CTRL)
_FORCE = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)


class Advance(NamedTuple):
    """What one decision gave.

    Attributes:
        sensors: `(games, sensors)` at the last physics step's beginning.
        broken: `(games,)` bool, walkers whose numbers are not finite or too large; their state is the one before.
    """

    sensors: Floats
    broken: NDArray[np.bool_]


class Physics:
    """The states of all walkers and the threads that advance them.

    A state holds all that the future depends on: the contact solver starts afresh with every decision, so it is the
    same for any number of threads and walkers.

    Attributes:
        states: `(games, state)` time, positions and velocities; written in place by whoever starts a walker anew.
        positions: View of the positions, `(games, 7 + joints)`.
        velocities: View of the velocities, `(games, 6 + joints)`.
        substeps: Physics steps in a decision.
    """

    def __init__(self, walker: Walker, config: MimicConfig, games: int) -> None:
        _silence()
        model = walker.model
        self.substeps = round(1.0 / (config.control_rate_hz * config.physics_step_s))
        self._models = _friction_models(walker, config)
        self._chosen = [self._models[0]] * games
        self._push_size = model.nv if config.pushes.impulse_ns > 0.0 else 0
        self._spec = _CONTROL | (_FORCE if self._push_size else 0)
        threads = config.threads or os.cpu_count() or 1
        self._datas = [mujoco.MjData(model) for _ in range(min(threads, games))]
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
        """Takes the friction of each game out of the `FRICTION_LEVELS`, `(games,)`; nothing where there is but one."""
        if len(self._models) > 1:
            self._chosen = [self._models[level] for level in levels.tolist()]

    def advance(self, controls: Floats, pushes: Floats | None = None) -> Advance:
        """Advances all walkers by one decision.

        Args:
            controls: `(games, joints)` what the actuators are told.
            pushes: `(games, 2)` force forward and to the left in N; only where pushes were asked for.
        """
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
        """Ends the threads; may be called twice."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


def _silence() -> None:
    """Keeps MuJoCo from writing `MUJOCO_LOG.TXT` wherever the process runs: what goes wrong is told by `Advance`."""
    log = mujoco.MjLogConfig.get()
    log.logto_console = log.logto_file = False
    mujoco.MjLogConfig.set(log)


def _friction_models(walker: Walker, config: MimicConfig) -> list[mujoco.MjModel]:
    if config.friction_range is None:
        return [walker.model]
    models = []
    for friction in np.linspace(*config.friction_range, FRICTION_LEVELS):
        model = mujoco.MjModel.from_xml_string(walker.text)
        model.geom_friction[:, 0] = friction
        models.append(model)
    return models
