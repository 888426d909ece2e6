"""MuJoCo Warp behind a batch: the states of all walkers in the memory of a GPU.

It computes in float32. Its contact solver starts at the acceleration without contacts instead of at the last one: from
there all walkers converge in the four iterations that are usual here, and joints stay within 0.001 degrees of converged
MuJoCo over two seconds (`benchmarks/mimic_parity.py`). Started at zero they did not: eight walkers with random target
angles were up to 0.14 degrees off after half a second.

On a CPU, Warp runs the same kernels on one thread. That is slower than MuJoCo and is there for tests.
"""

from collections.abc import Callable
from typing import Any

import mujoco
import torch
import warp as wp
from torch import Tensor

from ludus.core.errors import ConfigError, MissingDependencyError
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.kernels.rows import RowOrder
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.physics import FULL_STATE

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


class WarpPhysics:
    """The states of all walkers on a device; see `Physics`.

    Attributes:
        model: The model of MuJoCo Warp.
        data: Its data: the arrays that kernels read and write.
        positions: `(games, 7 + joints)` float32, live.
        velocities: `(games, 6 + joints)` float32, live.
        time: `(games,)` float32, live.
    """

    def __init__(self, walker: Walker, config: MimicConfig, games: int, device: torch.device) -> None:
        """Allocate all walkers.

        Raises:
            ConfigError: MuJoCo Warp lacks something that a body of the user's own needs.
        """
        self._substeps = round(1.0 / (config.control_rate_hz * config.physics_step_s))
        self.model, self.data = _allocate(walker, config, games, str(device))
        self.positions, self.velocities, self.time = map(_to_torch, (self.data.qpos, self.data.qvel, self.data.time))

    def steps(self) -> None:
        """Advance all walkers by the physics steps of one decision, with kernels on Warp's current device."""
        for _ in range(self._substeps):
            mujoco_warp.step(self.model, self.data)

    def place(self, game: int) -> Floats:
        """See `Physics`."""
        return self.positions[game].double().cpu().numpy()

    def state(self) -> Tensor:
        """See `Physics`."""
        return torch.cat((self.time.unsqueeze(1), self.positions, self.velocities), dim=1).double()

    def load_state(self, state: Tensor) -> None:
        """See `Physics`."""
        sizes = [1, self.positions.shape[1], self.velocities.shape[1]]
        time, positions, velocities = torch.split(state, sizes, dim=1)
        self.time.copy_(time.squeeze(1))
        self.positions.copy_(positions)
        self.velocities.copy_(velocities)

    def close(self) -> None:
        """See `Physics`."""


# Warp leaves it untyped.
_to_torch: Callable[[Any], Tensor] = wp.to_torch


def _allocate(walker: Walker, config: MimicConfig, games: int, device: str) -> tuple[Any, Any]:
    model = walker.model
    contacts, rows = constraint_sizes(model)
    if mujoco.mj_stateSize(model, FULL_STATE) != 1 + model.nq + model.nv:
        raise ConfigError(f"MuJoCo Warp cannot run {walker.name}: parts of it have a state; set physics to mujoco")
    try:
        with wp.ScopedDevice(device):
            own = mujoco_warp.put_model(model)
            data = mujoco_warp.make_data(model, nworld=games, nconmax=contacts, njmax=rows)
    except (NotImplementedError, ValueError) as error:
        raise ConfigError(
            f"MuJoCo Warp cannot run {walker.name}: {error}; change the body, or set physics to mujoco"
        ) from error
    own.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
    own.opt.warn_overflow = 0
    own.opt.deterministic = config.deterministic
    if config.deterministic:
        if own.is_sparse:
            raise ConfigError(
                f"deterministic is for small bodies, and MuJoCo Warp computes {walker.name} with sparse matrices; set "
                "deterministic to false"
            )
        with wp.ScopedDevice(device):
            own.callback.control = RowOrder(data)
    return own, data


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
