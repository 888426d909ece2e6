"""Batches of games of other libraries: what they share, and games in our own process."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ludus.core.errors import EnvFaultError, SnapshotError, UnknownNameError, UnsupportedError
from ludus.core.faults import let_pass
from ludus.core.random import mix, stream_hash, stream_hash_tensor, uniform
from ludus.core.state import FINITE, MAX_COUNT, Range
from ludus.core.text import blame, plain_text, user_place
from ludus.envs.adapters.games import Ask, Block, ContractError, Games, Maker, Plan
from ludus.envs.base import BatchedEnv, Bots, EnvRequest, EnvSpec, Observations, StepResult, check_snapshot
from ludus.envs.settings import EnvSettings
from ludus.envs.spaces import action_bounds, draw_actions

RANDOM = "random"  # name of the scripted player of games of several sides
_STREAM_BOTS = 0x7B07  # keeps these numbers apart from other uses of the same counters
_STREAM_EPISODE = 0x6E5  # keeps these seeds apart from other uses of the same counters
MOST_REPLAYED = 10_000  # steps of an episode that a snapshot holds; small environments play 10,000 to 100,000 a second
_HISTORY_BYTES = 64 << 20  # of the actions of all games
_TOO_LONG = -1  # in the place of the steps of an episode that is longer

Driver: TypeAlias = Callable[[Plan, Block, int, int, Maker], Games]  # makes a slice of a plan's games

_LOGGER = logging.getLogger(__name__)


class GymnasiumSettings(EnvSettings):
    """Settings of `gym:ID`, and of games of other libraries.

    Attributes:
        workers: Worker processes, at most one per game and `MOST_WORKERS`; 0 plays all games in this process.
        timeout_s: A worker that does not answer a step or reset for so long counts as hung.
        start_timeout_s: Likewise for starting a worker and making its games.
        max_faults_in_row: Faults of one worker in a row that stop the run.
        progress_steps: Steps after which a worker's earlier faults no longer count as in a row.
        env_kwargs: Arguments of `gymnasium.make`; JSON values if there are workers.
    """

    workers: int = Field(default=0, ge=0, le=1024)
    timeout_s: float = Field(default=30.0, gt=0, le=86_400.0)
    start_timeout_s: float = Field(default=120.0, gt=0, le=86_400.0)
    max_faults_in_row: int = Field(default=3, ge=1, le=1_000_000)
    progress_steps: int = Field(default=100, ge=1, le=1_000_000)
    env_kwargs: dict[str, Any] = Field(default_factory=dict)


class GameBatch(BatchedEnv):
    """A batch of games of another library, wherever they are played.

    Every episode has its own seed, a pure function of (seed, game, episode), with which its environment is
    reset: so a game depends neither on the batch nor on who plays it, and a fault can be looked at in isolation.

    A snapshot holds the actions of the running episodes, with which `restore` plays them again. A game that does not
    look the same then does not depend on its seed alone. It begins its next episode, as one does whose episode was
    longer than `MOST_REPLAYED` steps, and the next step reports that the one before was cut off.
    """

    def __init__(
        self,
        spec: EnvSpec,
        plan: Plan,
        views: Mapping[str, NDArray[Any]],
        request: EnvRequest,
        settings: GymnasiumSettings,
    ) -> None:
        self._take_request(spec, request)
        self.config = settings
        self._block = Block(plan, views)
        self._actions = self._block.actions
        self._action_tensor = torch.from_numpy(self._actions)
        self._slot = 0
        self._started = False
        self._frames = np.zeros(self.num_envs, np.int64)
        self._history: list[NDArray[Any]] = []  # actions of the last steps, `(games, seats, ...)` each
        self._most_replayed = max(min(MOST_REPLAYED, _HISTORY_BYTES // max(self._actions.nbytes, 1)), 1)
        self._most_kept = 0  # length of the history at which old steps go
        self._lost: dict[int, dict[str, NDArray[Any]]] = {}  # last observations of games that were restarted unasked
        # Lists, since single numbers of an array are slow to read and write.
        self._episodes = [-1] * self.num_envs
        self._running_seeds = [0] * self.num_envs
        self._game_hashes = self._hash_games()
        # The tensors are views of the block, so one result per slot serves for ever.
        self._results = [
            StepResult(
                observations=_tensors(slot),
                terminated=torch.from_numpy(self._block.terminated),
                truncated=torch.from_numpy(self._block.truncated),
                final_observations=_tensors(self._block.final),
                events=_tensors(self._block.events),
                state_metrics={},
            )
            for slot in self._block.slots
        ]
        self._draw_seeds(range(self.num_envs))

    @abstractmethod
    def _start_marked(self) -> None:
        """Start the games that are marked in the block's `resets` with their next seeds."""

    @abstractmethod
    def _play(self) -> None:
        """Play the block's actions and turn `_slot` to where the observations are."""

    def _replay_marked(self) -> None:
        """Play the block's actions in the games that are marked in `resets`; for batches that take snapshots."""
        raise NotImplementedError

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start a new episode; see `BatchedEnv.reset`."""
        self._check_reset(games, seed)
        marked = self._block.resets
        if games is None:
            marked.fill(True)
        else:
            # Games that have never been played must start, whether they are asked for or not.
            np.logical_or(games.cpu().numpy(), not self._started, out=marked)
        if seed is not None:
            self.seed = seed
            self._episodes = [-1] * self.num_envs
            self._game_hashes = self._hash_games()
            self._draw_seeds(range(self.num_envs))
        self._start_marked()
        self._started = True
        return self._results[self._slot].observations

    def _advance(self, actions: Tensor) -> StepResult:
        if not self._started:
            self.reset()
        # Measured with 8 CartPoles: a tensor's `numpy` costs 45 us per step, `copy_` 29 us, `tolist` 17 us.
        if actions.dim() == 2:
            self._actions[...] = actions.tolist()
        else:
            self._action_tensor.copy_(actions.detach())
        self._frames += 1
        if self.spec.snapshots:
            self._remember()
        self._play()
        for game, last_seen in self._lost.items():
            self._cut_off(game, last_seen)
        self._lost.clear()
        return self._results[self._slot]

    def _remember(self) -> None:
        """Add the block's actions to the history, from which steps before all running episodes are dropped."""
        self._history.append(self._actions.copy())
        if len(self._history) > self._most_kept:
            needed = min(int(self._frames.max()), self._most_replayed)
            del self._history[: len(self._history) - needed]
            self._most_kept = 2 * needed + 64  # so that looking for the longest episode costs little

    def _cut_off(self, game: int, last_seen: Mapping[str, NDArray[Any]]) -> None:
        """Report a game as truncated after `last_seen`; whatever it did in this step does not count."""
        block = self._block
        block.terminated[game], block.truncated[game] = False, True
        for values in block.events.values():
            values[game] = 0.0
        for name, values in last_seen.items():
            block.final[name][game] = values

    def snapshot(self) -> dict[str, Tensor]:
        """Return seeds, episodes, the actions of the running ones and what is seen, as a copy."""
        if not self.spec.snapshots:
            return super().snapshot()
        if not self._started:
            self.reset()
        steps = np.where(self._frames > self._most_replayed, _TOO_LONG, self._frames)
        longest = max(int(steps.max()), 0)
        actions = np.zeros((max(longest, 1), *self._actions.shape), self._actions.dtype)
        played = np.array(self._history[len(self._history) - longest :])
        for game, count in enumerate(steps.tolist()):
            if count > 0:
                actions[:count, game] = played[longest - count :, game]
        seen = {f"seen/{name}": array.copy() for name, array in self._block.slots[self._slot].items()}
        halves = [self.seed & 0xFFFFFFFF, self.seed >> 32]  # seeds may be larger than int64
        whole = {
            "seed": np.array(halves),
            "first_game": np.array([self.first_game]),
            "episodes": np.array(self._episodes),
            "steps": steps,
            "actions": actions,
        }
        return {f"{self.spec.id}/{name}": torch.from_numpy(array) for name, array in (whole | seen).items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Play the running episodes of a snapshot again; see `BatchedEnv.restore` and the class."""
        if not self.spec.snapshots:
            return super().restore(snapshot)
        taken = self._checked(snapshot)
        self._lost.clear()
        self.seed = int(taken["seed"][0]) | int(taken["seed"][1]) << 32
        self.first_game = int(taken["first_game"][0])
        self._game_hashes = self._hash_games()
        steps, actions, block = taken["steps"], taken["actions"], self._block
        self._episodes = (taken["episodes"] - 1).tolist()
        self._draw_seeds(range(self.num_envs))
        block.resets.fill(True)
        self._start_marked()
        for step in range(int(steps.max())):
            np.greater(steps, step, out=block.resets)
            self._actions[...] = actions[step]
            self._replay_marked()
        self._started = True
        self._episodes = taken["episodes"].tolist()
        self._running_seeds = [self._episode_seed(game, episode) for game, episode in enumerate(self._episodes)]
        self._frames[...] = np.maximum(steps, 0)
        self._draw_seeds(range(self.num_envs))
        self._history = _aligned(actions, steps)
        seen = {name.removeprefix("seen/"): values for name, values in taken.items() if name.startswith("seen/")}
        self._give_up(steps < 0, seen)
        return self._results[self._slot].observations

    def _checked(self, snapshot: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot by their plain names; raise SnapshotError if it does not fit."""
        prefix, own = f"{self.spec.id}/", self.snapshot()
        given = snapshot.get(f"{prefix}actions") if isinstance(snapshot, Mapping) else None
        if isinstance(given, Tensor) and given.dim() > 0 and 1 <= given.shape[0] <= self._most_replayed:
            own[f"{prefix}actions"] = own[f"{prefix}actions"][:1].expand(given.shape[0], *self._actions.shape)
        longest = own[f"{prefix}actions"].shape[0]
        ranges: dict[str, Range] = {
            "seed": (0, 2**32 - 1),
            "first_game": (0, 2**31 - 1 - self.num_envs),
            "episodes": (0, MAX_COUNT),
            "steps": (_TOO_LONG, longest),
        }
        floats = {name: FINITE for name, tensor in own.items() if tensor.is_floating_point()}
        check_snapshot(snapshot, own, self.spec.id, floats | {prefix + name: each for name, each in ranges.items()})
        actions = snapshot[f"{prefix}actions"]
        low, high = action_bounds(self.spec.action_space)
        if not actions.is_floating_point() and not bool(((actions >= low) & (actions <= high)).all()):
            raise SnapshotError(f"a snapshot of {self.spec.id} holds actions outside of {self.spec.action_space}")
        return {name.removeprefix(prefix): tensor.cpu().numpy().copy() for name, tensor in snapshot.items()}

    def _give_up(self, other: NDArray[np.bool_], seen: Mapping[str, NDArray[Any]]) -> None:
        """Begin the next episode of games that were not played again, or do not look as they did in the snapshot."""
        for name, values in self._block.slots[self._slot].items():
            other = other | (values != seen[name]).reshape(self.num_envs, -1).any(1)
        if not other.any():
            return
        games = np.flatnonzero(other).tolist()
        _LOGGER.warning(
            "[WARN] %s: %d of %d games do not go the same way again by their seeds and actions, or are too long; "
            "their episodes are cut off, and new ones begin", self.spec.id, len(games), self.num_envs,
        )  # fmt: skip
        self._lost = {game: {name: values[game] for name, values in seen.items()} for game in games}
        self._block.resets[...] = other
        self._start_marked()

    def bots(self, names: Sequence[str]) -> Bots:
        """Make players of random actions, which games of several sides have."""
        if not self.spec.bots:
            return super().bots(names)
        return RandomBots(self, names)

    def clock(self) -> tuple[Tensor, Tensor]:
        """Return the episode of each game and its steps so far, `(games,)` int64 each."""
        return torch.tensor(self._episodes), torch.from_numpy(self._frames)

    def observations(self) -> Observations:
        """Return what the seats see now."""
        return self._results[self._slot].observations

    def _begin(self, games: Iterable[int]) -> None:
        """Note that games have begun the episode of their next seed."""
        seeds = self._block.next_seeds
        for game in games:
            self._episodes[game] += 1
            self._frames[game] = 0
            self._running_seeds[game] = int(seeds[game])
        self._draw_seeds(games)

    def _draw_seeds(self, games: Iterable[int]) -> None:
        """Set the seeds of the games' next episodes; 31 bits, which every environment takes."""
        seeds = self._block.next_seeds
        for game in games:
            seeds[game] = self._episode_seed(game, self._episodes[game] + 1)

    def _episode_seed(self, game: int, episode: int) -> int:
        return mix(mix(self._game_hashes[game], episode), _STREAM_EPISODE) & 0x7FFFFFFF

    def _hash_games(self) -> list[int]:
        """Return the part of the seeds' hash that stays the same from episode to episode."""
        return [stream_hash(self.seed, self.first_game + game) for game in range(self.num_envs)]


def _aligned(actions: NDArray[Any], steps: NDArray[np.int64]) -> list[NDArray[Any]]:
    """Return the actions of episodes `(steps, games, ...)` as a history in which all of them end with the last step."""
    longest = max(int(steps.max()), 0)
    history = np.zeros((longest, *actions.shape[1:]), actions.dtype)
    for game, count in enumerate(steps.tolist()):
        if count > 0:
            history[longest - count :, game] = actions[:count, game]
    return list(history)


def _tensors(arrays: Mapping[str, NDArray[Any]]) -> Observations:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


class RandomBots:
    """Players of evenly drawn actions among those that are allowed; see `ludus.envs.base.Bots`.

    What they do is a function of (seed, game, episode, frame, seat), whatever else is in the batch.
    """

    def __init__(self, env: GameBatch, names: Sequence[str]) -> None:
        for name in names:
            if name not in env.spec.bots:
                raise UnknownNameError(f"bot of {env.spec.id}", name, env.spec.bots)
        self.names = tuple(names)
        self._env = env
        self._games = env.first_game + torch.arange(env.num_envs).unsqueeze(1)
        self._seats = _STREAM_BOTS + torch.arange(env.spec.seats)

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Write random actions into the seats that are assigned."""
        env = self._env
        clock = (counts.unsqueeze(1) for counts in env.clock())
        drawn = self._draw(stream_hash_tensor(env.seed, self._games, *clock, self._seats), env.observations())
        played = (assignment >= 0).view(*assignment.shape, *(1,) * (actions.dim() - 2))
        actions.copy_(torch.where(played, drawn.to(actions.dtype), actions))

    def _draw(self, bits: Tensor, observations: Observations) -> Tensor:
        """Return actions `(games, seats, ...)` from random bits `(games, seats)`."""
        spec = self._env.spec
        space, mask = spec.action_space, None if spec.actions.mask is None else observations[spec.actions.mask]
        if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            factors = len(spec.choices.counts)
            noise = torch.stack([uniform(mix(bits, factor + 1)) for factor in range(factors)], -1)
            return draw_actions(spec.choices, mask, noise)
        shape = tuple(space.shape or ())
        places = range(torch.Size(shape).numel())
        noise = torch.stack([uniform(mix(bits, place + 1)) for place in places], -1).view(*bits.shape, *shape)
        if isinstance(space, spaces.MultiBinary):
            return noise < 0.5
        # An axis without bounds is drawn from -1 to 1, as far as it goes.
        low, high = (bound.clamp(-1.0, 1.0) if not bound.isfinite().all() else bound for bound in action_bounds(space))
        return low + (high - low) * noise


class LocalBatch(GameBatch):
    """Games that are played in our own process; best for small environments, and for those that come as vectors."""

    def __init__(
        self,
        spec: EnvSpec,
        plan: Plan,
        request: EnvRequest,
        settings: GymnasiumSettings,
        host: Callable[[Block], Games],
    ) -> None:
        """Make the games; `host` makes what plays them in the batch's memory."""
        views = {name: np.zeros(shape, dtype) for name, (shape, dtype) in plan.fields().items()}
        super().__init__(spec, plan, views, request, settings)
        self._games = host(self._block)
        self._is_open = True

    def _start_marked(self) -> None:
        self._ask(Ask.RESET)
        self._begin(np.flatnonzero(self._block.resets).tolist())

    def _play(self) -> None:
        ended = self._ask(Ask.STEP)
        if ended:
            self._begin(ended)

    def _replay_marked(self) -> None:
        self._ask(Ask.REPLAY)

    def _ask(self, what: Ask) -> list[int]:
        """Let the games start, play or replay, and return those that ended in a step."""
        try:
            return self._games.ask(what, 0)
        except UnsupportedError as error:
            raise UnsupportedError(f"{self.spec.id}: {error}") from error
        except BaseException as error:
            raise self._fault(error) from error

    def _fault(self, error: BaseException) -> EnvFaultError:
        """Return the typed error for whatever a game raised or returned, with what brings it back."""
        let_pass(error)
        game, calling, place = self._games.current, self._games.calling, ""
        if game is not None:
            seed = self._block.next_seeds[game] if calling == "reset" else self._running_seeds[game]
            place = f"; game {self.first_game + game}, after env.reset(seed={seed})"
        if isinstance(error, ContractError):
            what = str(error)
        elif game is None or user_place(error):
            what = f"{calling}() raised {blame(error)}"
        else:  # a wrapper of the library's, or NumPy, could not do anything with it
            where = self._games.definition()
            what = f"{calling}() returned something else than {self._games.forms[calling]}: {blame(error)} ({where})"
        return EnvFaultError(plain_text(f"{self.spec.id}: {what}{place}; fix the environment"))

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one game, if it was made with `env_kwargs={"render_mode": "rgb_array"}`."""
        mode = _render_mode(self._games.env_of(game))
        if mode != "rgb_array":
            raise UnsupportedError(
                f"{self.spec.id} was made with render_mode {mode!r}; to draw it, use "
                "config={'env_kwargs': {'render_mode': 'rgb_array'}}, which the environment's constructor must take"
            )
        try:
            picture = self._games.render(game)
        except BaseException as error:
            let_pass(error)
            raise EnvFaultError(f"{self.spec.id}: render() raised {blame(error)}; fix the environment") from error
        return _checked_picture(picture, self.spec.id)

    def close(self) -> None:
        """Close all games; one that fails to close is only reported."""
        if self._is_open:
            self._is_open = False
            for env in self._games.envs:
                close_game(env, self.spec.id)


def close_game(env: Any, owner: str) -> None:  # noqa: ANN401 - an environment of any library
    """Close an environment; one that fails to close is only reported."""
    try:
        if hasattr(env, "close"):
            env.close()
    except BaseException as error:
        let_pass(error)
        _LOGGER.warning("[WARN] %s: close() raised %s", owner, blame(error))


def _checked_picture(picture: object, owner: str) -> NDArray[np.uint8]:
    """Return what an environment has drawn; raise EnvFaultError if it is no RGB picture."""
    array = np.asarray(picture)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise EnvFaultError(
            f"{owner}: render() returned an array of shape {array.shape} of {array.dtype}, expected "
            "(height, width, 3) of uint8; fix the environment"
        )
    return array


def _render_mode(env: Any) -> str | None:  # noqa: ANN401 - an environment of any library
    """Return the render mode that an environment was made with; PettingZoo's wrappers do not say it themselves."""
    mode: str | None = getattr(env, "render_mode", None) or getattr(getattr(env, "unwrapped", env), "render_mode", None)
    return mode
