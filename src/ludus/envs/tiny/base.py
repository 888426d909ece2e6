"""What all tiny worlds share: spec, counters, random streams, restart within the step, snapshots, scripted players."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.core.random import stream_hash_tensor
from ludus.envs.base import BatchedEnv, Bots, EnvRequest, EnvSpec, Observations, StepResult, check_snapshot

State = dict[str, Tensor]


def toy_spec(
    name: str,
    vector: spaces.Box,
    actions: spaces.Space[object],
    steps: int,
    *,
    fields: tuple[str, ...],
    teams: tuple[int, ...] = (0,),
    events: tuple[str, ...] = ("reward",),
    state_metrics: tuple[str, ...] = (),
    bots: tuple[str, ...] = (),
    own: int | None = None,
) -> EnvSpec:
    """Return the spec of a world at 10 Hz that shows one vector of the named `fields`.

    Its first `own` numbers are the block `self`.
    """
    blocks = {} if own is None else {"vector": {"self": (0, own), "opponent": (own, vector.shape[0])}}
    seen = spaces.Dict({"vector": vector})
    named = {"vector": fields}
    return EnvSpec(name, 1, teams, seen, actions, 10.0, steps, events, state_metrics, bots, blocks, named)


def numbered(name: str, count: int) -> tuple[str, ...]:
    """Return the fields of a one-hot row: `cue_0`, `cue_1` ..."""
    return tuple(f"{name}_{index}" for index in range(count))


class TinyEnv(BatchedEnv):
    """A world whose state is a few tensors with the games first.

    A world fills in `_play` (one step), `_observe` and, if it has any state or state metrics, `_begin` (state of a new
    episode) and `_measure`. All are written for the whole batch, and nothing waits for a GPU.
    """

    def __init__(self, spec: EnvSpec, request: EnvRequest, *, truncates: bool = False) -> None:
        """Make the batch; `truncates` says that the step limit cuts games off instead of ending them."""
        self._take_request(spec, request)
        self._truncates = truncates
        games = torch.arange(self.num_envs, device=self.device)
        # The first `reset` begins episode 0, as `reset(seed=...)` does; until then a game of episode -1 is there.
        self._counters: State = {
            "game": self.first_game + games,
            "episode": torch.full_like(games, -1),
            "frame": torch.zeros_like(games),
        }
        self._state = self._begin()

    def _begin(self) -> State:
        """Return the first state of every game's current episode, `(games, ...)` per name."""
        return {}

    @abstractmethod
    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Advance `self._state` by one step; the frame counter still holds the frame that is being played.

        Return events, `(games, seats)` per name, and `(games,)` bool, games that are over by their own rules.
        """

    @abstractmethod
    def _observe(self) -> Observations:
        """Return what the seats see of the current state, `(games, seats, ...)` per entry."""

    def _measure(self) -> dict[str, Tensor]:
        """Return the state metrics of the current state, `(games, seats)` per name."""
        return {}

    def bot_actions(self) -> tuple[Tensor, ...]:
        """Return what each of the bots of `spec.bots` would play now, `(games, seats, ...)` each."""
        return ()

    def bots(self, names: Sequence[str]) -> Bots:
        """Make scripted players of the given names; they remember nothing, the game's counters are enough."""
        return TinyBots(self, names) if self.spec.bots else super().bots(names)

    def _hash(self, streams: int) -> Tensor:
        """Return hashes `(games, streams)` for this frame of each game; a stream is for one use only."""
        counters = self._counters
        keys = [counters[name].unsqueeze(1) for name in ("game", "episode", "frame")]
        return stream_hash_tensor(self.seed, *keys, torch.arange(streams, device=self.device))

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start a new episode; see `BatchedEnv.reset`."""
        self._check_reset(games, seed)
        if seed is not None:
            self.seed = seed
            self._counters["episode"] = torch.full_like(self._counters["episode"], -1)
        self._restart(torch.ones(self.num_envs, dtype=torch.bool, device=self.device) if games is None else games)
        return self._observe()

    def _restart(self, games: Tensor) -> None:
        """Begin the next episode where `games` `(games,)` bool is set."""
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
        final_observations, state_metrics = self._observe(), self._measure()
        ended = terminated | truncated
        self._restart(ended)
        observations = final_observations if self._none(ended) else self._observe()
        return StepResult(observations, terminated, truncated, final_observations, events, state_metrics)

    def _none(self, games: Tensor) -> bool:
        """Return whether surely no game is set; on a GPU it does not look, since looking would wait for the device."""
        return self.device.type == "cpu" and not bool(games.any())

    def _whole_state(self) -> State:
        """Return everything the future depends on; names carry the world, so that no other world takes them."""
        halves = [self.seed & 0xFFFFFFFF, (self.seed >> 32) & 0xFFFFFFFF]  # seeds may be larger than int64
        whole = {"seed": torch.tensor(halves, device=self.device)} | self._counters | self._state
        return {f"{self.spec.id}/{name}": tensor for name, tensor in whole.items()}

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as tensors that later steps do not touch."""
        return {name: tensor.clone() for name, tensor in self._whole_state().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Take the state of `snapshot`, its seed and game numbers included, and return its observations."""
        check_snapshot(snapshot, self._whole_state(), self.spec.id)
        taken = {name.removeprefix(f"{self.spec.id}/"): tensor for name, tensor in snapshot.items()}
        self.seed = int(taken["seed"][0]) | int(taken["seed"][1]) << 32
        self.first_game = int(taken["game"][0])
        for part in (self._counters, self._state):
            for name in part:
                part[name] = taken[name].to(self.device, copy=True)
        return self._observe()


class TinyBots:
    """Scripted players; see `ludus.envs.base.Bots`."""

    def __init__(self, env: TinyEnv, names: Sequence[str]) -> None:
        for name in names:
            if name not in env.spec.bots:
                raise UnknownNameError(f"bot of {env.spec.id}", name, env.spec.bots)
        self.names, self._env = tuple(names), env

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Write the bots' actions."""
        played = dict(zip(self._env.spec.bots, self._env.bot_actions(), strict=True))
        for index, name in enumerate(self.names):
            chosen = (assignment == index).view(*assignment.shape, *(1,) * (actions.dim() - 2))
            actions.copy_(torch.where(chosen, played[name].to(actions.dtype), actions))


def one_hot(index: Tensor, count: int) -> Tensor:
    """Return float32 one-hot rows `(..., count)` of whole numbers `(...)`; a negative number gives a row of zeros."""
    return (index.unsqueeze(-1) == torch.arange(count, device=index.device)).to(torch.float32)
