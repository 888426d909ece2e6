"""MuJoCo behind a batch: all walkers advance by one decision in one call of its native thread pool.

`warp_physics.py` does the same with MuJoCo Warp, on a GPU.
"""

from typing import NamedTuple, Protocol

import mujoco
import numpy as np
import torch
from mujoco import rollout
from torch import Tensor

from ludus.envs.settings import host_threads
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import NORMAL_SPEED_M_S, Floats
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.reference import PHASES, Frame, Reference, first_states

LARGEST = 1e4  # m, rad, m/s or rad/s; beyond it the physics has gone wrong
FULL_STATE = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
_CONTROL = int(mujoco.mjtState.mjSTATE_CTRL)
_FORCE = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)


class Push(NamedTuple):
    """Horizontal forces at the hips, `(games,)` float64 each."""

    directions: Tensor  # rad, from forward to the left
    newtons: Tensor  # 0 where nothing pushes


class Outcome(NamedTuple):
    """What one decision gave."""

    sensors: Tensor  # `(games, sensors)` float32 at the last physics step's beginning
    # `(games,)` bool, walkers whose numbers are not finite or too large; their state is the one before.
    broken: Tensor
    travelled: Tensor  # `(games, 2)` float32, m forward and to the left


class Physics(Protocol):
    """The states of all walkers.

    A state holds everything that the future depends on: the contact solver is not warm-started across decisions, so
    results are the same for any number of threads and walkers.
    """

    def place(self, game: int) -> Floats:
        """Return a copy of the positions of one walker, as MuJoCo has them: root, then joints."""

    def state(self) -> Tensor:
        """Return the states `(games, state)` float64 as MuJoCo lays them out: time, positions, velocities."""

    def load_state(self, state: Tensor) -> None:
        """Restore the state returned by `state()`, of this physics or of the other one."""

    def close(self) -> None:
        """Release what it holds; may be called twice."""


class MujocoPhysics:
    """The states of all walkers and the host threads that advance them: `decide`, then `advance`, then `conclude`.

    `states` `(games, state)` is written in place to restart a walker; `positions` `(games, 7 + joints)` and
    `velocities` `(games, 6 + joints)` are views of it.
    """

    def __init__(self, walker: Walker, config: MimicConfig, controls: "Controls", games: int) -> None:
        _silence()
        model = walker.model
        self.substeps = round(1.0 / (config.control_rate_hz * config.physics_step_s))
        self._models = [model] * games
        self._push_size = model.nv if config.pushes.impulse_ns > 0.0 else 0
        self._spec = _CONTROL | (_FORCE if self._push_size else 0)
        self._datas = [mujoco.MjData(model) for _ in range(min(host_threads(config.threads), games))]
        self._pool: rollout.Rollout | None = rollout.Rollout(nthread=len(self._datas))
        size = mujoco.mj_stateSize(model, FULL_STATE)
        self.states = np.zeros((games, size))
        self.positions = self.states[:, 1 : 1 + model.nq]
        self.velocities = self.states[:, 1 + model.nq : 1 + model.nq + model.nv]
        self._inputs = np.zeros((games, self.substeps, model.nu + self._push_size))
        self._outputs = np.zeros((games, self.substeps, size))
        self._sensors = np.zeros((games, self.substeps, model.nsensordata))
        self._controls, self._motors = controls, model.nu
        self._start_noise = config.start_noise
        self._duration_s = self.substeps * config.physics_step_s
        self._chunk = max(1, -(-games // (8 * len(self._datas))))

    def decide(self, actions: Tensor, push: Push | None) -> None:
        """Set the controls that follow from actions `(games, joints)` in [-1, 1], and the pushes."""
        controls = self._controls.of(actions.double().numpy())
        self._inputs[:, :, : self._motors] = controls[:, None]
        if push is not None:
            self._inputs[:, :, self._motors : self._motors + 2] = push_forces(push)[:, None]

    def advance(self) -> None:
        """Advance all walkers by the physics steps of one decision."""
        if self._pool is None:
            raise RuntimeError("the walkers were closed; make a new environment")
        self._pool.rollout(
            self._models,
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

    def conclude(self) -> Outcome:
        """Return what the decision gave, and put walkers whose numbers have gone wrong back."""
        after, before = self._outputs[:, -1], self.positions[:, :2].copy()
        # MuJoCo puts a walker whose numbers have gone wrong back to its first pose, at another time than it should be.
        late = np.abs(after[:, 0] - self.states[:, 0] - self._duration_s) > 1e-6
        wild = ~(np.abs(after[:, 1:]).max(axis=1) < LARGEST)
        broken = late | wild
        if broken.any():
            np.copyto(self.states, after, where=~broken[:, None])
            self.states[broken] = np.nan_to_num(self.states[broken], posinf=LARGEST, neginf=-LARGEST)
            self._sensors[broken] = 0.0
        else:
            self.states[:] = after
        travelled = torch.from_numpy(self.positions[:, :2] - before).float()
        return Outcome(torch.from_numpy(self._sensors[:, -1]).float(), torch.from_numpy(broken), travelled)

    def bodies(self) -> tuple[Tensor, Tensor]:
        """Return positions `(games, 7 + joints)` and velocities `(games, 6 + joints)`, float32."""
        return torch.from_numpy(self.positions).float(), torch.from_numpy(self.velocities).float()

    def turn(self, turns: Floats) -> None:
        """Turn all walkers about the vertical through their hips, to the left by `turns` `(games,)` in rad."""
        cos, sin = np.cos(0.5 * turns), np.sin(0.5 * turns)
        w, x, y, z = self.positions[:, 3:7].T.copy()
        turned = (cos * w - sin * z, cos * x - sin * y, cos * y + sin * x, cos * z + sin * w)
        self.positions[:, 3:7] = np.stack(turned, axis=1)
        ahead, left = self.velocities[:, :2].T.copy()
        cos, sin = np.cos(turns), np.sin(turns)
        self.velocities[:, :2] = np.stack((cos * ahead - sin * left, sin * ahead + cos * left), 1)

    def restart(self, rows: Tensor, frame: Frame, noise: Tensor) -> None:
        """Put the walkers with these indices on their frames of the reference, with noise; see `first_states`."""
        chosen = rows.numpy()
        self.states[chosen, 0] = 0.0
        self.positions[chosen], self.velocities[chosen] = first_states(frame, noise, self._start_noise)

    def move(self, rows: Tensor, x: Tensor, up: Tensor) -> None:
        """Put the walkers with these indices at `x` along their way, and `up` higher, `(rows,)` in m."""
        chosen = rows.numpy()
        self.positions[chosen, 0] = x.double().numpy()
        self.positions[chosen, 2] += up.double().numpy()

    def place(self, game: int) -> Floats:
        """See `Physics`."""
        return np.array(self.positions[game])

    def state(self) -> Tensor:
        """See `Physics`."""
        return torch.from_numpy(self.states)

    def load_state(self, state: Tensor) -> None:
        """See `Physics`."""
        self.states[:] = state.cpu().numpy()

    def close(self) -> None:
        """End the threads; may be called twice."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


def push_forces(push: Push) -> Floats:
    """Return the forces forward and to the left, `(games, 2)` in N."""
    directions, newtons = push.directions.cpu().numpy(), push.newtons.cpu().numpy()
    return np.stack((newtons * np.cos(directions), newtons * np.sin(directions)), axis=1)


def _silence() -> None:
    """Keep MuJoCo from writing `MUJOCO_LOG.TXT` into the working directory; `Outcome` reports failures."""
    log = mujoco.MjLogConfig.get()
    log.logto_console = log.logto_file = False
    mujoco.MjLogConfig.set(log)


class Controls:
    """Turns actions into controls; `kernels.step.control_of` does the same on a device.

    Attributes:
        low: `(joints,)` lowest angles, rad.
        high: `(joints,)` highest angles, rad.
        neutral: `(joints,)` target angles of the action 0, rad.
    """

    def __init__(self, walker: Walker, reference: Reference, config: MimicConfig) -> None:
        self._kind = config.action
        ranges = np.deg2rad([joint.range_deg for joint in walker.joints])
        self.low, self.high = ranges[:, 0], ranges[:, 1]
        phases = torch.arange(PHASES) / PHASES
        self.neutral = reference.at(torch.full_like(phases, NORMAL_SPEED_M_S), phases).angles.mean(0).double().numpy()

    def of(self, actions: Floats) -> Floats:
        """Return the actuators' controls of actions in [-1, 1], `(games, joints)`."""
        if self._kind == "torque":
            return actions
        reach = np.where(actions > 0.0, self.high - self.neutral, self.neutral - self.low)
        return np.asarray(self.neutral + actions * reach)
