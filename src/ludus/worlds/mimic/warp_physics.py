"""MuJoCo Warp behind a batch: all walkers advance by one decision on a GPU, in one CUDA graph.

It computes in float32. Its contact solver starts at the acceleration without contacts instead of at the last one: from
there all walkers converge in the four iterations that are usual here, and joints stay within 1e-4 degrees of converged
MuJoCo over half a second. Started at zero, as MuJoCo may do, they do not, and are 0.1 degrees off
(`benchmarks/mimic_parity.py`).

On a CPU, Warp runs the same kernels on one thread. That is far slower than MuJoCo and is there for tests.
"""

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import torch
import warp as wp
from torch import Tensor

from ludus.core.errors import ConfigError, MissingDependencyError
from ludus.envs.warp_tools import announce_compilation, load_launched, stream_from_torch
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.physics import FRICTION_LEVELS, FULL_STATE, LARGEST, Controls, Outcome, Push, StartNoise
from ludus.worlds.mimic.reference import Frame, first_states_on_device

try:
    import mujoco_warp
except ImportError as error:
    purpose = "mimic on a CUDA device (with the setting physics: mujoco it is played on the CPU)"
    raise MissingDependencyError("mujoco-warp", "mimic-gpu", purpose) from error

# Most contacts of a geom with the ground by its type; others have four at most.
_GEOMS = mujoco.mjtGeom
_GROUND_CONTACTS = {int(_GEOMS.mjGEOM_SPHERE): 1, int(_GEOMS.mjGEOM_ELLIPSOID): 1, int(_GEOMS.mjGEOM_CAPSULE): 2}
_OWN_CONTACTS = 16  # room for contacts of a body with itself, where it can have any
_ROW_BLOCK = 16  # constraint rows are allocated in blocks of this size


class DeviceControls:
    """Turns actions into controls as `Controls` does, with float32 tensors on a device."""

    def __init__(self, controls: Controls, device: torch.device) -> None:
        self._kind, self._delta = controls.kind, controls.delta
        numbers = (controls.low, controls.high, controls.neutral)
        self._low, self._high, self._neutral = (
            torch.as_tensor(values, dtype=torch.float32, device=device) for values in numbers
        )

    def of(self, actions: Tensor, angles: Tensor) -> Tensor:
        """Return the actuators' controls of actions in [-1, 1] at the joints' angles in rad, `(games, joints)`."""
        if self._kind == "torque":
            return actions
        if self._kind == "delta":
            return torch.clamp(angles + self._delta * actions, self._low, self._high)
        reach = torch.where(actions > 0.0, self._high - self._neutral, self._neutral - self._low)
        return self._neutral + actions * reach


class WarpPhysics:
    """The states of all walkers in the memory of a device; see `Physics`.

    `positions` `(games, 7 + joints)` and `velocities` `(games, 6 + joints)` are the live float32 tensors.
    """

    def __init__(
        self, walker: Walker, config: MimicConfig, controls: Controls, games: int, device: torch.device
    ) -> None:
        """Allocate all walkers; kernels are compiled and recorded when they advance first.

        Raises:
            ConfigError: MuJoCo Warp lacks something that a body of the user's own needs.
        """
        self._device, self._place = device, str(device)
        self._substeps = round(1.0 / (config.control_rate_hz * config.physics_step_s))
        self._controls, self._start_noise = DeviceControls(controls, device), config.start_noise
        self._model, self._data = self._allocate(walker, config, games)
        self.positions, self.velocities = self._tensor("qpos"), self._tensor("qvel")
        self._time, self._ctrl, self._sensors = self._tensor("time"), self._tensor("ctrl"), self._tensor("sensordata")
        self._forces = self._tensor("qfrc_applied")
        self._before = torch.zeros_like(torch.cat((self.positions, self.velocities), dim=1))
        self._frictions: Tensor | None = None
        if config.friction_range is not None:
            self._frictions = torch.from_numpy(np.linspace(*config.friction_range, FRICTION_LEVELS)).float().to(device)
            self._geom_friction = _to_torch(self._model.geom_friction)[..., 0]
        self._graph: Any = None

    def _allocate(self, walker: Walker, config: MimicConfig, games: int) -> tuple[Any, Any]:
        model = walker.model
        contacts, rows = constraint_sizes(model)
        batched = {"geom_friction": games} if config.friction_range is not None else {}
        if mujoco.mj_stateSize(model, FULL_STATE) != 1 + model.nq + model.nv:
            raise ConfigError(f"MuJoCo Warp cannot run {walker.name}: parts of it have a state; set physics to mujoco")
        try:
            with wp.ScopedDevice(self._place):
                own = mujoco_warp.put_model(model, batch_sizes=batched)
                data = mujoco_warp.make_data(model, nworld=games, nconmax=contacts, njmax=rows)
        except (NotImplementedError, ValueError) as error:
            raise ConfigError(
                f"MuJoCo Warp cannot run {walker.name}: {error}; change the body, or set physics to mujoco"
            ) from error
        own.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
        own.opt.warn_overflow = 0
        own.opt.deterministic = config.deterministic
        return own, data

    def _tensor(self, name: str) -> Tensor:
        return _to_torch(getattr(self._data, name))

    def choose_friction(self, levels: Tensor) -> None:
        """See `Physics`."""
        if self._frictions is not None:
            self._geom_friction.copy_(self._frictions[levels].unsqueeze(1).expand_as(self._geom_friction))

    def decide(self, actions: Tensor, push: Push | None) -> None:
        """See `Physics`."""
        self._ctrl.copy_(self._controls.of(actions, self.positions[:, 7:]))
        if push is not None:
            self._forces[:, 0].copy_(push.newtons * push.directions.cos())
            self._forces[:, 1].copy_(push.newtons * push.directions.sin())
        torch.cat((self.positions, self.velocities), dim=1, out=self._before)

    def advance(self) -> None:
        """See `Physics`."""
        if self._graph is None:
            self._graph = self._record()
        is_cuda = self._device.type == "cuda"
        stream = stream_from_torch(torch.cuda.current_stream(self._device)) if is_cuda else None
        wp.capture_launch(self._graph, stream=stream)

    def _record(self) -> Any:  # noqa: ANN401 - a graph of Warp has no static type
        """Compile or load the kernels and record them as a graph; the walkers stay as they are."""
        kept, options = [tensor.clone() for tensor in self.live_tensors()], self._model.opt
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)  # Warp has a stream of its own here
        with wp.ScopedDevice(self._place):
            with announce_compilation("MuJoCo Warp", self._device, "up to a minute"):
                options.graph_conditional = False  # a loop with a condition would wait for kernels that do not run
                load_launched(self._steps, self._device)
                options.graph_conditional = self._device.type == "cuda"
                self._steps()
            wp.synchronize_device()
            with wp.ScopedCapture() as recording:
                self._steps()
            wp.synchronize_device()
        for tensor, value in zip(self.live_tensors(), kept, strict=True):
            tensor.copy_(value)
        return recording.graph

    def _steps(self) -> None:
        for _ in range(self._substeps):
            mujoco_warp.step(self._model, self._data)

    def conclude(self) -> Outcome:
        """See `Physics`."""
        moving = torch.cat((self.positions, self.velocities), dim=1)
        broken = ~(moving.abs().amax(dim=1) < LARGEST)  # NaN is not less than anything
        safe = self._before.nan_to_num(nan=0.0, posinf=LARGEST, neginf=-LARGEST)
        after = torch.where(broken.unsqueeze(1), safe, moving)
        size = self.positions.shape[1]
        self.positions.copy_(after[:, :size])
        self.velocities.copy_(after[:, size:])
        sensors = torch.where(broken.unsqueeze(1), 0.0, self._sensors)
        return Outcome(sensors, broken, after[:, 0] - safe[:, 0])

    def bodies(self) -> tuple[Tensor, Tensor]:
        """See `Physics`."""
        return self.positions, self.velocities

    def restart(self, games: Tensor, frame: Frame, noise: StartNoise) -> None:
        """See `Physics`."""
        positions, velocities = first_states_on_device(frame, noise(None), self._start_noise)
        chosen = games.unsqueeze(1)
        self.positions.copy_(torch.where(chosen, positions, self.positions))
        self.velocities.copy_(torch.where(chosen, velocities, self.velocities))
        self._time.masked_fill_(games, 0.0)

    def place(self, game: int) -> Floats:
        """See `Physics`."""
        return self.positions[game].double().cpu().numpy()

    def live_tensors(self) -> tuple[Tensor, ...]:
        """See `Physics`."""
        friction = () if self._frictions is None else (self._geom_friction,)
        return (self.positions, self.velocities, self._time, self._ctrl, self._forces, self._before, *friction)

    def state(self) -> Tensor:
        """See `Physics`."""
        return torch.cat((self._time.unsqueeze(1), self.positions, self.velocities), dim=1).double()

    def load_state(self, state: Tensor) -> None:
        """See `Physics`."""
        sizes = [1, self.positions.shape[1], self.velocities.shape[1]]
        time, positions, velocities = torch.split(state, sizes, dim=1)
        self._time.copy_(time.squeeze(1))
        self.positions.copy_(positions)
        self.velocities.copy_(velocities)

    def close(self) -> None:
        """See `Physics`."""
        self._graph = None


# Warp leaves it untyped.
_to_torch: Callable[[Any], Tensor] = wp.to_torch


def constraint_sizes(model: mujoco.MjModel) -> tuple[int, int]:
    """Return how many contacts and how many constraint rows one walker can have."""
    types, moves = model.geom_type.tolist(), (model.geom_bodyid > 0).tolist()
    moving = [geom for geom in range(model.ngeom) if moves[geom]]
    planes = [geom for geom in range(model.ngeom) if types[geom] == int(_GEOMS.mjGEOM_PLANE)]
    grounded = [geom for geom in moving if any(_can_touch(model, geom, plane) for plane in planes)]
    contacts = sum(_GROUND_CONTACTS.get(types[geom], 4) for geom in grounded)
    if any(_can_touch(model, geom, other) for geom in moving for other in moving if geom < other):
        contacts += _OWN_CONTACTS
    edges = max(2 * (int(model.geom_condim.max()) - 1), 1)  # rows of a contact: the edges of its friction pyramid
    limits = int(model.jnt_limited.sum() + (model.dof_frictionloss > 0.0).sum())
    rows = contacts * edges + limits + 6 * model.neq + 2 * model.ntendon
    return max(contacts, 1), -(-max(rows, 1) // _ROW_BLOCK) * _ROW_BLOCK


def _can_touch(model: mujoco.MjModel, geom: int, other: int) -> bool:
    """Return whether the collision masks of two geoms let them touch."""
    types, affinities = model.geom_contype, model.geom_conaffinity
    return bool(types[geom] & affinities[other] or types[other] & affinities[geom])
