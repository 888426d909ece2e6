"""What worlds share whose games are advanced by prepared Warp kernels: resets, steps, snapshots."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError
from ludus.envs.base import BatchedEnv, Observations, StepResult, check_snapshot
from ludus.envs.warp_tools import Launcher, Prepared, copy_quietly


class KernelEnv(BatchedEnv):
    """A world of kernels; its constructor sets every attribute below and ends with `_start`.

    Attributes:
        launcher: Prepares its launches.
        rules: Settings that kernels read, with the seed among them.
    """

    launcher: Launcher
    rules: Any
    _untouched: bool  # no episode has been played since the environment was made
    _seed: Tensor  # `()` int64 on the host, the bits of the seed: part of the state
    _chosen: Tensor  # `(games,)` bool, games that a reset begins anew
    _actions: Tensor  # where actions are copied to that kernels cannot read where they are
    _observations: Observations
    _result: StepResult
    _run_step: Prepared
    _run_restart: Prepared
    _run_observe: Prepared

    def _start(self) -> None:
        """Begins the first episodes; the first reset by somebody else begins the same ones."""
        self._prepare()
        self._untouched = True
        self.reset()
        self._untouched = True

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Starts new episodes; see `BatchedEnv.reset`."""
        if games is not None and seed is not None:
            raise ActionError("reset takes a seed only for all games at once; leave `games` out")
        if games is not None:
            self._check_mask(games)
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

    def _check_mask(self, games: Tensor) -> None:
        if not isinstance(games, Tensor):
            raise ActionError(f"reset takes a bool tensor of the games to start anew, got {type(games).__name__}")
        if games.shape != (self.num_games,) or games.dtype != torch.bool or games.device != self.device:
            raise ActionError(
                f"reset takes a bool mask of shape ({self.num_games},) on {self.device}, "
                f"got {games.dtype} of shape {tuple(games.shape)} on {games.device}"
            )

    def _check_game(self, game: int) -> None:
        if not 0 <= game < self.num_games:
            raise ConfigError(f"game {game} does not exist; valid: 0 to {self.num_games - 1}")

    def _advance(self, actions: Tensor) -> StepResult:
        self._untouched = False
        if actions.is_contiguous() and actions.dtype == self._actions.dtype:
            self._run_step.point("actions", actions)
        else:
            copy_quietly(self._actions, actions)
            self._run_step.point("actions", self._actions)
        self._run_step()
        return self._result

    def snapshot(self) -> dict[str, Tensor]:
        """Returns the whole state as tensors that later steps do not touch."""
        return {name: tensor.clone() for name, tensor in self._state().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Takes the state of `snapshot`; see `BatchedEnv.restore`."""
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
        """Returns the settings that kernels read, for the present seed."""

    @abstractmethod
    def _prepare(self) -> None:
        """Makes the launches ready, with the present rules."""

    @abstractmethod
    def _state(self) -> dict[str, Tensor]:
        """Returns all live tensors of the state, `_seed` among them."""

    @abstractmethod
    def _check_state(self, snapshot: Mapping[str, Tensor]) -> None:
        """Raises if a snapshot of the right shapes cannot be a state of this world."""

    @abstractmethod
    def _forget_episodes(self) -> None:
        """Lets the next restart of every game begin its first episode."""
