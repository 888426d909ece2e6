"""A batch whose games are played in worker processes, which may die, raise or hang."""

import json
import logging
import weakref
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ludus.core.errors import ConfigError, WorkerError
from ludus.core.text import plain_text
from ludus.envs.adapters.game_batch import GameBatch, GymnasiumSettings
from ludus.envs.adapters.games import Ask, Plan
from ludus.envs.base import EnvRequest, EnvSpec
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

_MOST_SEEDS = 8  # of the games of a worker that failed, in the log
_MOST_KINDS = 16  # of faults that the log distinguishes

_LOGGER = logging.getLogger(__name__)


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


class WorkerBatch(GameBatch):
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
        failures = ask_workers(self._workers, requests, self.config.timeout_s)
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
            current = worker.start() or worker.wait(self.config.start_timeout_s)
            if restart_games:
                if current is None:
                    current = worker.ask(Request(Ask.RESET, self._slot)) or worker.wait(self.config.timeout_s)
                self._begin(games)  # also if that failed: its seeds may be the reason, so they are given up

    def _note(self, number: int, failure: Failure) -> None:
        """Keep and log a fault, and end the batch if there were too many in a row."""
        worker, settings = self._workers[number], self.config
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
