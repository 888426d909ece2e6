"""What batches of Gymnasium games share: settings, tensors over the block of memory, seeds of episodes."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.random import mix, stream_hash
from ludus.envs.adapters.gymnasium_worker import Block, Plan
from ludus.envs.base import BatchedEnv, EnvRequest, EnvSpec, Observations, StepResult, resolve_device
from ludus.envs.settings import EnvSettings

_STREAM_EPISODE = 0x6E5  # keeps these seeds apart from other uses of the same counters


class GymnasiumSettings(EnvSettings):
    """Settings of `gym:ID`.

    Attributes:
        workers: Worker processes, at most one a game; 0 plays all games in this process.
        timeout_s: A worker that does not answer a step or reset for so long counts as hung.
        start_timeout_s: Likewise for starting a worker and making its games.
        max_faults_in_row: Faults of one worker in a row that stop the run.
        progress_steps: Steps after which a worker's earlier faults no longer count as in a row.
        env_kwargs: Arguments of `gymnasium.make`; JSON values if there are workers.
    """

    workers: int = Field(default=0, ge=0)
    timeout_s: float = Field(default=30.0, gt=0)
    start_timeout_s: float = Field(default=120.0, gt=0)
    max_faults_in_row: int = Field(default=3, ge=1)
    progress_steps: int = Field(default=100, ge=1)
    env_kwargs: dict[str, Any] = Field(default_factory=dict)


class GymnasiumBatch(BatchedEnv):
    """A batch of Gymnasium games, wherever they are played.

    Every episode has a seed of its own, a pure function of (seed, game, episode), with which its environment is
    reset: so a game depends neither on the batch nor on who plays it, and a fault can be looked at in isolation.
    """

    def __init__(self, spec: EnvSpec, plan: Plan, views: Mapping[str, NDArray[Any]], request: EnvRequest) -> None:
        self.spec = spec
        self.num_games = request.num_games
        self.device = resolve_device(request.device, spec.id, spec.device_types)
        self.seed = request.seed
        self.first_game = request.first_game
        self._block = Block(plan, views)
        self._actions = self._block.actions[:, None]
        self._action_tensor = torch.from_numpy(self._actions)
        self._slot = 0
        self._started = False
        # Lists, since single numbers of an array are slow to read and write.
        self._episodes = [-1] * self.num_games
        self._running_seeds = [0] * self.num_games
        self._game_hashes = self._hash_games()
        # The tensors are views of the block, so one result a slot serves for ever.
        self._results = [
            StepResult(
                observations=_tensors(slot),
                terminated=torch.from_numpy(self._block.terminated),
                truncated=torch.from_numpy(self._block.truncated),
                final_observations=_tensors(self._block.final),
                events={"reward": torch.from_numpy(self._block.rewards)},
                measures={},
            )
            for slot in self._block.slots
        ]
        self._draw_seeds(range(self.num_games))

    @abstractmethod
    def _start_marked(self) -> None:
        """Starts the games that are marked in the block's `resets` with their next seeds."""

    @abstractmethod
    def _play(self) -> None:
        """Plays the block's actions and turns `_slot` to where the observations are."""

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Starts a new episode; see `BatchedEnv.reset`."""
        marked = self._block.resets
        if games is None:
            marked.fill(True)
        elif seed is not None:
            raise ConfigError("a seed is for all games at once: call reset(seed=...) without games")
        elif tuple(games.shape) != (self.num_games,) or games.dtype != torch.bool:
            raise ConfigError(
                f"games must be bool of shape ({self.num_games},), got {games.dtype} of shape {tuple(games.shape)}"
            )
        else:
            # Games that have never been played must start, whether they are asked for or not.
            np.logical_or(games.cpu().numpy(), not self._started, out=marked)
        if seed is not None:
            self.seed = seed
            self._episodes = [-1] * self.num_games
            self._game_hashes = self._hash_games()
            self._draw_seeds(range(self.num_games))
        self._start_marked()
        self._started = True
        return self._results[self._slot].observations

    def _advance(self, actions: Tensor) -> StepResult:
        if not self._started:
            self.reset()
        # Measured with 8 CartPoles: a tensor's `numpy` costs 45 us a step, `copy_` 29 us, `tolist` 17 us.
        if actions.dim() == 2:
            self._actions[...] = actions.tolist()
        else:
            self._action_tensor.copy_(actions.detach())
        self._play()
        return self._results[self._slot]

    def _begin(self, games: Iterable[int]) -> None:
        """Notes that games have begun the episode of their next seed."""
        seeds = self._block.next_seeds
        for game in games:
            self._episodes[game] += 1
            self._running_seeds[game] = int(seeds[game])
        self._draw_seeds(games)

    def _draw_seeds(self, games: Iterable[int]) -> None:
        """Sets the seeds of the games' next episodes; 31 bits, which every environment takes."""
        seeds = self._block.next_seeds
        for game in games:
            seeds[game] = mix(mix(self._game_hashes[game], self._episodes[game] + 1), _STREAM_EPISODE) & 0x7FFFFFFF

    def _hash_games(self) -> list[int]:
        """Returns the part of the seeds' hash that stays the same from episode to episode."""
        return [stream_hash(self.seed, self.first_game + game) for game in range(self.num_games)]


def _tensors(arrays: dict[str, NDArray[Any]]) -> Observations:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
