"""Batches of Gymnasium games: what they share, and games in worker processes, which may die, raise or hang."""

import json
import logging
import weakref
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ludus.core.errors import ConfigError, SnapshotError, WorkerError
from ludus.core.random import mix, stream_hash
from ludus.core.state import FINITE, MAX_COUNT, Range
from ludus.core.text import plain_text
from ludus.envs.adapters.gymnasium_worker import Ask, Block, Plan
from ludus.envs.base import BatchedEnv, Bots, EnvRequest, EnvSpec, Observations, StepResult, check_snapshot
from ludus.envs.random_bots import BotView, RandomBots
from ludus.envs.settings import EnvSettings
from ludus.envs.spaces import action_bounds
from ludus.envs.worker_process import (
    Failure,
    Hosting,
    Request,
    ask_workers,
    close_workers,
    make_memory_file,
    make_workers,
)
from ludus.envs.worker_program import map_block
from ludus.rewards.plugins import loaded_plugins

_STREAM_EPISODE = 0x6E5  # keeps these seeds apart from other uses of the same counters
MOST_REPLAYED = 10_000  # steps of an episode that a snapshot holds; small environments play 10,000 to 100,000 a second
_HISTORY_BYTES = 64 << 20  # of the actions of all games
_MOST_SEEDS = 8  # of the games of a worker that failed, in the log
_MOST_KINDS = 16  # of faults that the log distinguishes
_TOO_LONG = -1  # in the place of the steps of an episode that is longer

_LOGGER = logging.getLogger(__name__)


class GymnasiumSettings(EnvSettings):
    """Settings of `gym:ID`.

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


class GymnasiumBatch(BatchedEnv):
    """A batch of Gymnasium games, wherever they are played.

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
        return RandomBots(self, names, self._bot_view)

    def _bot_view(self) -> BotView:
        episodes = torch.tensor(self._episodes)
        return BotView(episodes, torch.from_numpy(self._frames), self._results[self._slot].observations)

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


@dataclass(frozen=True, slots=True)
class WorkerFault:
    """A worker process that failed and was replaced."""

    kind: Literal["died", "raised", "hung"]  # it died, raised or hung
    reason: str  # in a few words, such as `signal SIGKILL`
    worker: int  # number of the worker
    games: tuple[int, ...]  # indices of the games that it hosted; their episodes were cut off
    game: int | None  # the game that it was busy with, if it could say so
    seed: int  # seed of the batch
    # For each of `games`, what its environment was reset with: `env.reset(seed=...)` and the same actions bring the
    # fault back.
    episode_seeds: tuple[int, ...]
    traceback: str  # where it was, if that is known

    def __str__(self) -> str:
        return plain_text(f"{self.summary}\n{self.traceback.rstrip()}" if self.traceback else self.summary)

    @property
    def summary(self) -> str:
        """What happened, without the traceback, and with the seeds of at most `_MOST_SEEDS` games."""
        busy, seeds, first = "", self.episode_seeds, 0
        if self.game is not None:
            busy, first = f", busy with game {self.game}", self.game - self.games[0]
            first = max(min(first, len(seeds) - _MOST_SEEDS), 0)
        shown = ", ".join(map(str, seeds[first : first + _MOST_SEEDS]))
        rest = f" from game {self.games[first]} on" if len(seeds) > _MOST_SEEDS else ""
        return plain_text(
            f"worker {self.worker} {self.kind}: {self.reason} (games {self.games[0]} to {self.games[-1]}{busy}; "
            f"seed {self.seed}, episode seeds{rest} {shown})"
        )


class WorkerBatch(GymnasiumBatch):
    """Games spread over worker processes.

    A worker that fails is replaced; the step in which it failed does not count for its games, whose episodes are
    reported as truncated with the last observation as the final one. `faults` lists all that happened.
    """

    def __init__(self, spec: EnvSpec, plan: Plan, request: EnvRequest, settings: GymnasiumSettings, file: Path) -> None:
        """Start the workers; `file` is the one that they host, see `ludus.envs.worker_process.Hosting`."""
        try:
            json.dumps(plan.env_kwargs)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"env_kwargs must be JSON values to reach a worker: {error}") from error
        fields = plan.fields()
        memory_file = make_memory_file(fields)
        super().__init__(spec, plan, map_block(fields, memory_file), request, settings)
        self.faults: list[WorkerFault] = []
        self._settings = settings
        hosting = Hosting(file, asdict(plan), fields, memory_file, {}, loaded_plugins())
        self._workers = make_workers(hosting, request.num_envs, settings.workers)
        self._steps_since_fault = [0] * settings.workers
        self._faults_in_row = [0] * settings.workers
        self._seen_faults: Counter[tuple[str, str]] = Counter()  # by reason and traceback
        self._finalizer = weakref.finalize(self, close_workers, self._workers, memory_file)
        try:
            failures = [worker.start() for worker in self._workers]  # all at once, then wait for each
            for number, worker in enumerate(self._workers):
                failure = failures[number] or worker.wait(settings.start_timeout_s)
                if failure is not None:
                    self._replace(number, failure, restart_games=False)
        except BaseException:
            self.close()
            raise

    @property
    def worker_pids(self) -> tuple[int | None, ...]:
        """Process ids of the workers."""
        return tuple(worker.pid for worker in self._workers)

    def close(self) -> None:
        """End all workers; none is left when this returns."""
        self._finalizer()

    def _start_marked(self) -> None:
        marked = self._block.resets.copy()
        seen = self._block.slots[self._slot]
        for number, failure in self._ask_all(Ask.RESET):
            worker = self._workers[number]
            for game in range(worker.first, worker.last):
                if not marked[game]:
                    # The caller did not ask for this restart: the next step reports that it was cut off.
                    self._lost[game] = {name: array[game].copy() for name, array in seen.items()}
                marked[game] = False
            self._replace(number, failure)
        self._begin(np.flatnonzero(marked).tolist())

    def _play(self) -> None:
        block, before = self._block, self._block.slots[self._slot]
        self._slot = 1 - self._slot
        failures = self._ask_all(Ask.STEP)
        ended = block.terminated | block.truncated
        for number, failure in failures:
            worker = self._workers[number]
            self._replace(number, failure)
            for game in range(worker.first, worker.last):
                ended[game] = False  # `_replace` has begun its next episode already
                self._cut_off(game, {name: array[game] for name, array in before.items()})
        if ended.any():
            self._begin(np.flatnonzero(ended).tolist())

    def _replay_marked(self) -> None:
        for number, failure in self._ask_all(Ask.REPLAY):
            self._replace(number, failure)

    def _ask_all(self, ask: Ask) -> list[tuple[int, Failure]]:
        """Send a request to all workers and wait for all answers; return the workers that failed."""
        if not self._finalizer.alive:
            raise WorkerError(f"the batch of {self.spec.id} is closed; make a new one")
        requests = dict.fromkeys(range(len(self._workers)), Request(ask, self._slot))
        failures = ask_workers(self._workers, requests, self._settings.timeout_s)
        if ask is Ask.STEP:
            for number in requests.keys() - failures.keys():
                self._steps_since_fault[number] += 1
        return list(failures.items())

    def _replace(self, number: int, failure: Failure, *, restart_games: bool = True) -> None:
        """Note a failure and put a new process in the worker's place; raise WorkerError after too many in a row."""
        worker = self._workers[number]
        games = range(worker.first, worker.last)
        current: Failure | None = failure
        while current is not None:
            worker.stop()
            self._note(number, current)
            self._block.resets.fill(False)
            self._block.resets[worker.first : worker.last] = True
            current = worker.start() or worker.wait(self._settings.start_timeout_s)
            if restart_games:
                if current is None:
                    current = worker.ask(Request(Ask.RESET, self._slot)) or worker.wait(self._settings.timeout_s)
                self._begin(games)  # also if that failed: its seeds may be the reason, so they are given up

    def _note(self, number: int, failure: Failure) -> None:
        """Keep and log a fault, and end the batch if there were too many in a row."""
        worker, settings = self._workers[number], self._settings
        fault = WorkerFault(
            kind=failure.kind,
            reason=failure.reason,
            worker=number,
            games=tuple(self.first_game + game for game in range(worker.first, worker.last)),
            game=None if failure.game is None else self.first_game + failure.game,
            seed=self.seed,
            episode_seeds=tuple(self._running_seeds[worker.first : worker.last]),
            traceback=failure.traceback,
        )
        self.faults.append(fault)
        if self._steps_since_fault[number] >= settings.progress_steps:
            self._faults_in_row[number] = 0
        self._faults_in_row[number] += 1
        self._steps_since_fault[number] = 0
        if self._faults_in_row[number] >= settings.max_faults_in_row:
            self.close()
            raise WorkerError(
                f"{self.spec.id} stops: worker {number} failed {self._faults_in_row[number]} times in a row, with "
                f"fewer than {settings.progress_steps} steps in between (max_faults_in_row). The last time, {fault}"
            )
        kind = (fault.reason, fault.traceback)
        if len(self._seen_faults) >= _MOST_KINDS and kind not in self._seen_faults:
            kind = ("", "")  # all that are still new are one kind
        self._seen_faults[kind] += 1
        times = self._seen_faults[kind]
        if times.bit_count() > 1:  # a repeated fault is logged the 1st, 2nd, 4th, 8th ... time
            return
        text = fault.summary if times > 1 and fault.traceback else fault
        again = f", {times} of this kind" if times > 1 else ""
        _LOGGER.warning(
            "[WARN] %s: %s\nThe worker is restarted (fault %d%s).", self.spec.id, text, len(self.faults), again
        )
