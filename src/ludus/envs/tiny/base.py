"""What all tiny worlds share: counters, random streams, restart within the step, snapshots."""

from abc import abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.random import stream_hash_tensor
from ludus.envs.base import BatchedEnv, EnvRequest, EnvSpec, Observations, StepResult, check_snapshot, resolve_device

State = dict[str, Tensor]


class TinyEnv(BatchedEnv):
    """A world whose state is a few tensors with the games first.

    A world fills in four functions: `_begin` (state of a new episode), `_play` (one step), `_observe` and, if it
    has any, `_measure`. All are written for the whole batch, and nothing waits for a GPU.
    """

    def __init__(self, spec: EnvSpec, request: EnvRequest, *, truncates: bool = False) -> None:
        """Makes the batch; `truncates` says that the step limit cuts games off instead of ending them."""
        self.spec = spec
        self.num_games = request.num_games
        self.device = resolve_device(request.device, spec.id, spec.device_types)
        self.seed = request.seed
        self.first_game = request.first_game
        self._truncates = truncates
        games = torch.arange(self.num_games, device=self.device)
        # The first `reset` begins episode 0, as `reset(seed=...)` does; until then a game of episode -1 is there.
        self._counters: State = {
            "game": self.first_game + games,
            "episode": torch.full_like(games, -1),
            "frame": torch.zeros_like(games),
        }
        self._state = self._begin()

    @abstractmethod
    def _begin(self) -> State:
        """Returns the first state of every game's current episode, `(games, ...)` a name."""

    @abstractmethod
    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Advances `self._state` by one step; the frame counter still holds the frame that is being played.

        Args:
            actions: `(games, seats, ...)`.

        Returns:
            Events, `(games, seats)` a name, and `(games,)` bool, games that are over by their own rules.
        """

    @abstractmethod
    def _observe(self) -> Observations:
        """Returns what the seats see of the current state, `(games, seats, ...)` an entry."""

    def _measure(self) -> dict[str, Tensor]:
        """Returns the measures of the current state, `(games, seats)` a name."""
        return {}

    def _hash(self, streams: int) -> Tensor:
        """Returns hashes `(games, streams)` for this frame of each game; a stream is for one use only."""
        counters = self._counters
        keys = [counters[name].unsqueeze(1) for name in ("game", "episode", "frame")]
        return stream_hash_tensor(self.seed, *keys, torch.arange(streams, device=self.device))

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Starts a new episode; see `BatchedEnv.reset`."""
        if seed is not None:
            if games is not None:
                raise ConfigError("a seed is for all games at once: call reset(seed=...) without games")
            self.seed = seed
            self._counters["episode"] = torch.full_like(self._counters["episode"], -1)
        if games is None:
            games = torch.ones(self.num_games, dtype=torch.bool, device=self.device)
        elif games.shape != (self.num_games,) or games.dtype != torch.bool:
            raise ConfigError(
                f"games must be bool of shape ({self.num_games},), got {games.dtype} of shape {tuple(games.shape)}"
            )
        self._restart(games)
        return self._observe()

    def _restart(self, games: Tensor) -> None:
        """Begins the next episode where `games` `(games,)` bool is set."""
        if self._none(games):
            return
        counters = self._counters
        counters["episode"] = counters["episode"] + games
        counters["frame"] = counters["frame"].masked_fill(games, 0)
        for name, first in self._begin().items():
            mask = games.view(-1, *([1] * (first.dim() - 1)))
            self._state[name] = torch.where(mask, first, self._state[name])

    def _advance(self, actions: Tensor) -> StepResult:
        events, over = self._play(actions)
        self._counters["frame"] = self._counters["frame"] + 1
        limit = self.spec.step_limit
        at_limit = self._counters["frame"] >= limit if limit is not None else torch.zeros_like(over)
        terminated = over if self._truncates else over | at_limit
        truncated = at_limit & ~terminated
        final_observations, measures = self._observe(), self._measure()
        ended = terminated | truncated
        self._restart(ended)
        observations = final_observations if self._none(ended) else self._observe()
        return StepResult(observations, terminated, truncated, final_observations, events, measures)

    def _none(self, games: Tensor) -> bool:
        """Says whether surely no game is set; on a GPU it does not look, since looking would wait for the device."""
        return self.device.type == "cpu" and not bool(games.any())

    def _whole_state(self) -> State:
        """Returns everything the future depends on; names carry the world, so that no other world takes them."""
        halves = [self.seed & 0xFFFFFFFF, (self.seed >> 32) & 0xFFFFFFFF]  # seeds may be larger than int64
        whole = {"seed": torch.tensor(halves, device=self.device)} | self._counters | self._state
        return {f"{self.spec.id}/{name}": tensor for name, tensor in whole.items()}

    def snapshot(self) -> dict[str, Tensor]:
        """Returns the whole state as tensors that later steps do not touch."""
        return {name: tensor.clone() for name, tensor in self._whole_state().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Takes the state of `snapshot`, its seed and game numbers included, and returns its observations."""
        check_snapshot(snapshot, self._whole_state(), self.spec.id)
        taken = {name.removeprefix(f"{self.spec.id}/"): tensor for name, tensor in snapshot.items()}
        self.seed = int(taken["seed"][0]) | int(taken["seed"][1]) << 32
        self.first_game = int(taken["game"][0])
        for part in (self._counters, self._state):
            for name in part:
                part[name] = taken[name].to(self.device, copy=True)
        return self._observe()


def one_hot(index: Tensor, count: int) -> Tensor:
    """Returns float32 one-hot rows `(..., count)` of whole numbers `(...)`; a negative number gives a row of zeros."""
    return (index.unsqueeze(-1) == torch.arange(count, device=index.device)).to(torch.float32)
