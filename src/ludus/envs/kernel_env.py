"""Worlds of prepared Warp kernels: resets, steps and snapshots, and scripted players that are kernels."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError
from ludus.core.state import clone_tensors
from ludus.envs.base import BatchedEnv, Columns, EnvSpec, Observations, StepResult, action_dtypes, check_snapshot
from ludus.envs.warp_tools import Launcher, Prepared, copy_quietly


class KernelEnv(BatchedEnv):
    """A world of kernels; its constructor sets every attribute below and ends with `_start`."""

    launcher: Launcher  # prepares its launches
    rules: Any  # settings that kernels read, with the seed among them
    _untouched: bool  # no episode has been played since the environment was made
    _seed: Tensor  # `()` int64 on the host, the bits of the seed: part of the state
    _chosen: Tensor  # `(games,)` bool, games that a reset restarts
    _actions: Tensor  # where actions are copied to that kernels cannot read where they are
    _observations: Observations
    _result: StepResult
    _run_step: Prepared
    _run_restart: Prepared
    _run_observe: Prepared

    def _start(self) -> None:
        """Begin the first episodes; the caller's first reset begins the same ones."""
        self._prepare()
        self._untouched = True
        self.reset()
        self._untouched = True

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start new episodes; see `BatchedEnv.reset`."""
        self._check_reset(games, seed)
        if seed is not None:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
                raise ConfigError(f"seed must be a whole number from 0 to 2**64 - 1, got {seed!r}")
            self._take_seed(seed)
        if seed is not None or (games is None and self._untouched):  # the first reset begins the first episode
            self._seed.fill_(self.seed - (self.seed >> 63 << 64))  # int64 holds the bits of a 64-bit seed
            self._forget_episodes()
        self._untouched = False
        if games is None:
            self._chosen.fill_(True)
        else:
            self._chosen.copy_(games)
        self._run_restart()
        return self._observations

    def _check_game(self, game: int) -> None:
        if not 0 <= game < self.num_envs:
            raise ConfigError(f"game {game} does not exist; valid: 0 to {self.num_envs - 1}")

    def _advance(self, actions: Tensor) -> StepResult:
        self._untouched = False
        if actions.is_contiguous() and actions.dtype == self._actions.dtype:
            self._run_step.point("actions", actions)
        else:
            copy_quietly(self._actions, actions)
            self._run_step.point("actions", self._actions)
        self._run_step()
        return self._result

    def recording_key(self) -> object | None:
        """Return the rules, which launches hold by value."""
        rules: object = self.rules
        return rules

    def launches(self) -> dict[str, Prepared]:
        """Return the kernels of a step, of a restart of the games in the tensor `chosen`, and of an observation."""
        return {"step": self._run_step, "restart": self._run_restart, "observe": self._run_observe}

    def state_tensors(self) -> dict[str, Tensor]:
        """Return all live tensors of the state by name, in a fixed order; `seed` holds the bits of the seed."""
        return self._state()

    def working_tensors(self) -> dict[str, Tensor]:
        """Return the live tensors that steps read and write besides the state, by name."""
        result = self._result
        counted = {"events": result.events, "state_metrics": result.state_metrics}
        return {
            "actions": self._actions,
            "chosen": self._chosen,
            "terminated": result.terminated,
            "truncated": result.truncated,
            **{name: columns.packed for name, columns in counted.items() if isinstance(columns, Columns)},
            **{f"observations.{name}": tensor for name, tensor in self._observations.items()},
            **{f"final_observations.{name}": tensor for name, tensor in result.final_observations.items()},
        }

    def forget(self) -> None:
        """Clear the state to what a new environment holds before its first restart."""
        for tensor in self._state().values():
            tensor.zero_()
        self._forget_episodes()

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as tensors that later steps do not touch."""
        return clone_tensors(self._state())

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Take the state of `snapshot`; see `BatchedEnv.restore`."""
        state = self._state()
        check_snapshot(snapshot, state, self.spec.id)
        self._check_state(snapshot)
        for name, tensor in state.items():
            tensor.copy_(snapshot[name])
        self._untouched = False
        self._take_seed(int(self._seed) % 2**64)
        self._run_observe()
        return self._observations

    def _take_seed(self, seed: int) -> None:
        self.seed = seed
        self.rules = self._make_rules()
        self._prepare()

    @abstractmethod
    def _make_rules(self) -> Any:  # noqa: ANN401 - a Warp struct has no static type
        """Return the settings that kernels read, for the present seed."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make the launches ready, with the present rules."""

    @abstractmethod
    def _state(self) -> dict[str, Tensor]:
        """Return all live tensors of the state, `_seed` among them."""

    @abstractmethod
    def _check_state(self, snapshot: Mapping[str, Tensor]) -> None:
        """Raise if a snapshot of the right shapes cannot be a state of this world."""

    @abstractmethod
    def _forget_episodes(self) -> None:
        """Let the next restart of every game begin its first episode."""


class Arena(Protocol):
    """What a roster needs of the environment that it plays in."""

    spec: EnvSpec
    num_envs: int
    device: torch.device

    @property
    def rules(self) -> object:
        """A Warp struct; another object after every change of the seed."""


class KernelBots(ABC):
    """A roster of scripted players whose kernels read an assignment and write actions; see `ludus.envs.base.Bots`.

    A subclass prepares a launch with array arguments `assignment` and `actions`, over `self._assignment` and
    `self._actions`; it is prepared again when the environment's rules are other ones.
    """

    can_be_recorded = True  # a CUDA graph can hold `act`; other bots may lack this

    def __init__(self, env: Arena, names: Sequence[str]) -> None:
        self.names = tuple(names)
        shape = (env.num_envs, env.spec.seats)
        space = env.spec.action_space
        self._action_types = action_dtypes(space)
        self._arena = env
        self._assignment = torch.full(shape, -1, dtype=torch.int32, device=env.device)
        full_shape = (*shape, *(space.shape or ()))
        self._actions = torch.zeros(full_shape, dtype=self._action_types[0], device=env.device)
        self._checked: tuple[Tensor | None, int] = (None, -1)  # assignment of the last call, and its version
        self._rules: object = None
        self._run: Prepared | None = None

    @abstractmethod
    def _prepare(self) -> Prepared:
        """Prepare the launch."""

    def launch(self) -> Prepared:
        """Return the kernels that read the tensor `assignment` and write the tensor `actions`; see `tensors`."""
        return self._prepare()

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of `launch` by name."""
        return {"assignment": self._assignment, "actions": self._actions}

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Write the bots' actions for the current state; see `ludus.envs.base.Bots.act`."""
        self._check(assignment, actions)
        if self._run is None or self._rules is not self._arena.rules:  # the environment got another seed
            self._rules = self._arena.rules
            self._run = self._prepare()
        direct = assignment.dtype == torch.int32 and assignment.is_contiguous()
        if not direct:
            copy_quietly(self._assignment, assignment)
        self._run.point("assignment", assignment if direct else self._assignment)
        if actions.is_contiguous() and actions.element_size() == self._actions.element_size():
            self._run.point("actions", actions)
            self._run()
        else:
            copy_quietly(self._actions, actions)
            self._run.point("actions", self._actions)
            self._run()
            copy_quietly(actions, self._actions)

    def _check(self, assignment: Tensor, actions: Tensor) -> None:
        _check_form("assignment", assignment, self._assignment, (torch.int32, torch.int64))
        _check_form("actions", actions, self._actions, self._action_types)
        if assignment.device.type == "cpu":  # on a GPU looking at values would wait for the device
            self._check_names(assignment)

    def _check_names(self, assignment: Tensor) -> None:
        """Look at the values, unless they are those of the last call; the kernel passes over a bot that is not."""
        version = -1 if assignment.is_inference() else assignment._version  # noqa: SLF001 - torch names it so
        if self._checked[0] is assignment and self._checked[1] == version >= 0:
            return
        highest = int(assignment.numpy().max())
        if highest >= len(self.names):
            raise ActionError(
                f"assignment names bot {highest}; valid: -1 for no bot, or 0 to {len(self.names) - 1}: "
                f"{', '.join(self.names)}"
            )
        self._checked = (assignment, version)


def _check_form(name: str, given: Tensor, like: Tensor, types: tuple[torch.dtype, ...]) -> None:
    """Raise ActionError unless a tensor has the shape and device of another and one of the types."""
    if not isinstance(given, Tensor):
        raise ActionError(f"{name} must be a torch.Tensor, got {type(given).__name__}")
    if given.shape != like.shape or given.dtype not in types or given.device != like.device:
        valid = " or ".join(str(dtype) for dtype in types)
        raise ActionError(
            f"{name} must be {valid} of shape {tuple(like.shape)} on {like.device}, "
            f"got {given.dtype} of shape {tuple(given.shape)} on {given.device}"
        )
