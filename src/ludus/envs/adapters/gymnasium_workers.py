"""Gymnasium games in worker processes that may die, raise or hang without taking the run with them."""

import json
import logging
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, WorkerError
from ludus.envs.adapters import gymnasium_worker
from ludus.envs.adapters.gymnasium_games import GymnasiumBatch, GymnasiumSettings
from ludus.envs.adapters.gymnasium_worker import Ask, Plan
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

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerFault:
    """A worker process that failed and was replaced.

    Attributes:
        kind: It died, raised or hung.
        reason: In a few words, such as `signal SIGKILL`.
        worker: Number of the worker.
        games: Indices of the games that it hosted; their episodes were cut off.
        game: The game that it was busy with, if it could say so.
        seed: Seed of the batch.
        episode_seeds: For each of `games`, what its environment was reset with: `env.reset(seed=...)` and the same
            actions bring the fault back.
        traceback: Where it was, if that is known.
    """

    kind: Literal["died", "raised", "hung"]
    reason: str
    worker: int
    games: tuple[int, ...]
    game: int | None
    seed: int
    episode_seeds: tuple[int, ...]
    traceback: str

    def __str__(self) -> str:
        busy = "" if self.game is None else f", busy with game {self.game}"
        text = (
            f"worker {self.worker} {self.kind}: {self.reason} (games {self.games[0]} to {self.games[-1]}{busy}; "
            f"seed {self.seed}, episode seeds {', '.join(map(str, self.episode_seeds))})"
        )
        text += f"\n{self.traceback.rstrip()}" if self.traceback else ""
        return text.encode("ascii", "backslashreplace").decode()


class WorkerBatch(GymnasiumBatch):
    """Games spread over worker processes.

    A worker that fails is replaced; the step in which it failed does not count for its games, whose episodes are
    reported as truncated with the last observation as the final one. `faults` lists all that happened.
    """

    def __init__(self, spec: EnvSpec, plan: Plan, request: EnvRequest, settings: GymnasiumSettings) -> None:
        try:
            json.dumps(plan.env_kwargs)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"env_kwargs must be JSON values to reach a worker: {error}") from error
        fields = plan.fields()
        memory_file = make_memory_file(fields)
        super().__init__(spec, plan, map_block(fields, memory_file), request)
        self.faults: list[WorkerFault] = []
        self._settings = settings
        self._lost: dict[int, dict[str, NDArray[Any]]] = {}  # last observations of games that a reset has lost
        hosting = Hosting(Path(gymnasium_worker.__file__), plan.to_json(), fields, memory_file, {})
        self._workers = make_workers(hosting, request.num_games, settings.workers)
        self._steps_since_fault = [0] * settings.workers
        self._faults_in_row = [0] * settings.workers
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
        """Ends all workers; none is left when this returns."""
        self._finalizer()

    def _start_marked(self) -> None:
        marked = self._block.resets.copy()
        seen = self._block.slots[self._slot]
        for number, failure in self._ask_all(Ask.RESET):
            worker = self._workers[number]
            for game in range(worker.first, worker.last):
                if not marked[game]:
                    # Nobody asked for this one to start anew: the next step reports that it was cut off.
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
        for game, last_seen in self._lost.items():
            self._cut_off(game, last_seen)
        self._lost.clear()

    def _cut_off(self, game: int, last_seen: Mapping[str, NDArray[Any]]) -> None:
        """Reports a game as truncated after `last_seen`; whatever it did in this step does not count."""
        block = self._block
        block.rewards[game], block.terminated[game], block.truncated[game] = 0.0, False, True
        for name, values in last_seen.items():
            block.final[name][game] = values

    def _ask_all(self, ask: Ask) -> list[tuple[int, Failure]]:
        """Sends a request to all workers and waits for all answers; returns the workers that failed."""
        if not self._finalizer.alive:
            raise WorkerError(f"the batch of {self.spec.id} is closed; make a new one")
        requests = dict.fromkeys(range(len(self._workers)), Request(ask, self._slot))
        failures = ask_workers(self._workers, requests, self._settings.timeout_s)
        if ask is Ask.STEP:
            for number in requests.keys() - failures.keys():
                self._steps_since_fault[number] += 1
        return list(failures.items())

    def _replace(self, number: int, failure: Failure, *, restart_games: bool = True) -> None:
        """Notes a failure and puts a new process in the worker's place, with new episodes of its games.

        Raises:
            WorkerError: It has failed too often in a row; all workers are ended.
        """
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
        """Keeps and logs a fault, and ends the batch if there were too many in a row."""
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
        _LOGGER.warning("[WARN] %s: %s\nThe worker is restarted (fault %d).", self.spec.id, fault, len(self.faults))
