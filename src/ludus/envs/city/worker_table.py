"""A table of embedded games in worker processes: drawing and reading are Python's work, so that one uses one core."""

import json
import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from ludus.core.errors import ConfigError, SnapshotError, WorkerError
from ludus.envs.base import EnvRequest, check_snapshot
from ludus.envs.city import worker_games
from ludus.envs.city.advice import Advice, Question
from ludus.envs.city.config import CityConfig
from ludus.envs.city.drivers.city_games import embedded_layout
from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.embedded_table import EMBEDDED_FIELDS, table_catalogue
from ludus.envs.city.interface.menus import MENUS
from ludus.envs.city.perception.opencv import opencv
from ludus.envs.city.table import CityTable, Pictures, Sight
from ludus.envs.city.worker_games import BEGUN, DECISIONS, ONE_THREAD, SIGHT, Ask, advice_from_json
from ludus.envs.worker_process import (
    Failure,
    Hosting,
    Request,
    WorkerProcess,
    ask_workers,
    close_workers,
    make_memory_file,
    make_workers,
)
from ludus.envs.worker_program import Fields, map_block

LEAST_GAMES = 16  # of a worker; two with 8 each are a fifth faster than one process, less than their start is worth
_START_S = 600.0  # for a worker to come up; kernels may have to be compiled and letters to be learnt
_ANSWER_S = 300.0


def worker_count(config: CityConfig, games: int) -> int:
    """Returns how many worker processes draw and read so many games; 0 for none."""
    if config.workers is not None:
        return min(config.workers, games)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(cores, games // LEAST_GAMES)
    return workers if workers > 1 and os.name == "posix" else 0


class WorkerTable(CityTable):
    """Embedded games, each worker process with a slice of them.

    They are the games of one batch, whatever the number of workers. What is seen of them lies in memory that all share.
    """

    advises = True

    def __init__(self, config: CityConfig, request: EnvRequest, workers: int) -> None:
        """Starts the workers and waits until their games are made.

        Raises:
            ConfigError: The themes show different parts of the map.
            UnsupportedError: This system has no such workers.
            WorkerError: One did not come up.
        """
        opencv("seeing the map")  # if it is missing, that is told here rather than by a worker
        self.num_games, self._size = request.num_games, (config.display.height, config.display.width)
        layouts = [embedded_layout(name, config.display, config.rules) for name in config.display.themes]
        self.catalogue = table_catalogue(config, layouts)
        self.fields, self.menus = EMBEDDED_FIELDS, len(MENUS)
        self.sight = Sight(self.num_games, len(self.fields), self.catalogue, Pictures.wanted_by(config))
        shared = self._shared()
        memory_file = make_memory_file(shared)
        views = map_block(shared, memory_file)
        self._decisions: NDArray[np.int64] = views[DECISIONS]
        self._begun: NDArray[np.bool_] = views[BEGUN]
        self.sight.live_in({name: views[f"{SIGHT}{name}"] for name in self.sight.arrays()})
        hosting = Hosting(Path(worker_games.__file__), _plan(config, request), shared, memory_file, ONE_THREAD)
        self._workers = make_workers(hosting, self.num_games, workers)
        self._finalizer = weakref.finalize(self, close_workers, self._workers, memory_file)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def worker_pids(self) -> tuple[int | None, ...]:
        """Process ids of the workers."""
        return tuple(worker.pid for worker in self._workers)

    def begin(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> Sight:
        """Begins new cities; see `CityTable.begin`."""
        if seed is not None:
            self._ask_all(Ask.BEGIN, json.dumps(seed).encode())
        else:
            self._begun[:] = True if games is None else games
            busy = [
                number for number, worker in enumerate(self._workers) if self._begun[worker.first : worker.last].any()
            ]
            self._ask(dict.fromkeys(busy, Request(Ask.BEGIN)))
        return self.sight

    def play(self, decisions: NDArray[np.int64]) -> Sight:
        """Carries out decisions; see `CityTable.play`."""
        self._decisions[:] = decisions
        self._ask_all(Ask.PLAY)
        return self.sight

    def picture(self, game: int) -> Frame:
        """Returns a copy of the present picture of a game."""
        number = self._owner(game)
        worker = self._workers[number]
        self._ask({number: Request(Ask.PICTURE, payload=json.dumps(game - worker.first).encode())})
        return np.frombuffer(worker.answer, np.uint8).reshape(*self._size, 3).copy()

    def advise(self, questions: Sequence[Question]) -> list[Advice]:
        """Asks strategies what they would do now, each in the process of its game."""
        owners = [self._owner(question.game) for question in questions]
        requests = {}
        for number in sorted(set(owners)):
            first = self._workers[number].first
            own = [question for question, owner in zip(questions, owners, strict=True) if owner == number]
            asked = [question._replace(game=question.game - first) for question in own]
            requests[number] = Request(Ask.ADVISE, payload=json.dumps(asked).encode())
        self._ask(requests)
        given = {number: iter(advice_from_json(self._workers[number].answer)) for number in requests}
        return [next(given[owner]) for owner in owners]

    def close(self) -> None:
        """Ends all workers; none is left when this returns. May be called twice."""
        self._finalizer()

    def snapshot(self) -> dict[str, Tensor]:
        """Returns the whole state as tensors that later decisions do not touch: those of one table of all games."""
        self._ask_all(Ask.SNAPSHOT)
        parts = [tensors_from_bytes(worker.answer) for worker in self._workers]
        return {name: _joined([part[name] for part in parts]) for name in parts[0]}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Sight:
        """Takes the state of a snapshot; raises SnapshotError, and stays as it is, if it does not fit."""
        before = self.snapshot()
        check_snapshot(snapshot, before, "the table of embedded games")
        refusals = self._restore(snapshot)
        if refusals:  # others have taken their parts already
            self._restore(before)
            raise SnapshotError(refusals[0])
        return self.sight

    def _restore(self, snapshot: Mapping[str, Tensor]) -> list[str]:
        """Gives every worker its part and returns what those say whom it does not fit."""
        requests = {
            number: Request(Ask.RESTORE, payload=tensors_to_bytes(_part(snapshot, worker)))
            for number, worker in enumerate(self._workers)
        }
        self._ask(requests)
        return [worker.answer.decode() for worker in self._workers if worker.answer]

    def _owner(self, game: int) -> int:
        """Returns the number of the worker that has a game."""
        if not 0 <= game < self.num_games:
            raise ConfigError(f"game {game} does not exist; valid: 0 to {self.num_games - 1}")
        return next(number for number, worker in enumerate(self._workers) if game < worker.last)

    def _shared(self) -> Fields:
        """Shapes and types of the arrays that lie in shared memory."""
        asked: Fields = {
            DECISIONS: ((self.num_games, 2), np.dtype(np.int64)),
            BEGUN: ((self.num_games,), np.dtype(np.bool_)),
        }
        seen = {f"{SIGHT}{name}": (array.shape, array.dtype) for name, array in self.sight.arrays().items()}
        return {**asked, **seen}

    def _start(self) -> None:
        """Starts all at once, then waits for each."""
        failures = {number: worker.start() for number, worker in enumerate(self._workers)}
        for number, worker in enumerate(self._workers):
            failure = failures[number] or worker.wait(_START_S)
            if failure is not None:
                raise WorkerError(self._story({number: failure}))

    def _ask_all(self, ask: Ask, payload: bytes = b"") -> None:
        self._ask(dict.fromkeys(range(len(self._workers)), Request(ask, payload=payload)))

    def _ask(self, requests: Mapping[int, Request]) -> None:
        """Asks workers, by number, and waits for their answers; if one fails, all are ended."""
        if not self._finalizer.alive:
            raise WorkerError("the games of city-v1 are closed; make a new environment")
        failures = ask_workers(self._workers, requests, _ANSWER_S)
        if failures:
            self.close()
            raise WorkerError(self._story(failures))

    def _story(self, failures: Mapping[int, Failure]) -> str:
        lines = ["city-v1 stops"]
        for number, failure in failures.items():
            worker = self._workers[number]
            games = f"games {worker.first} to {worker.last - 1}"
            lines.append(f"worker {number} ({games}) {failure.kind}: {failure.reason}\n{failure.traceback}".rstrip())
        return "; ".join(lines).encode("ascii", "backslashreplace").decode()


def _plan(config: CityConfig, request: EnvRequest) -> dict[str, Any]:
    """Returns what workers are told, as JSON values."""
    alone = config.model_copy(update={"workers": 0, "rules": config.rules.model_copy(update={"threads": 1})})
    return {"config": alone.model_dump_json(), "seed": request.seed, "first_game": request.first_game}


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Puts the parts of a batch together; what has no games in it is the same in all of them."""
    return parts[0] if parts[0].dim() == 0 else torch.cat(list(parts))


def _part(snapshot: Mapping[str, Tensor], worker: WorkerProcess) -> dict[str, Tensor]:
    """Returns the part of a snapshot that concerns the games of a worker."""
    return {
        name: tensor if tensor.dim() == 0 else tensor[worker.first : worker.last].contiguous()
        for name, tensor in snapshot.items()
    }
