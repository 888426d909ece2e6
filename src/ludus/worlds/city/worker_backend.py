"""The backend for embedded games in worker processes.

Drawing and reading run in Python, so one process uses one core.
"""

import json
import os
import weakref
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from ludus.core.errors import ConfigError, SnapshotError, WorkerError
from ludus.core.text import plain_text
from ludus.envs.base import EnvRequest, check_snapshot
from ludus.envs.settings import MOST_WORKERS
from ludus.envs.worker_process import (
    Failure,
    Hosting,
    Request,
    ask_workers,
    close_workers,
    make_memory_file,
    make_workers,
)
from ludus.envs.worker_program import Fields, map_block
from ludus.worlds.city.backend import CityBackend, Sight
from ludus.worlds.city.config import CityConfig
from ludus.worlds.city.drivers.city_games import embedded_layout
from ludus.worlds.city.drivers.driver import Frame
from ludus.worlds.city.embedded_backend import EMBEDDED_FIELDS, EmbeddedBackend, backend_catalogue
from ludus.worlds.city.interface.menus import MENUS
from ludus.worlds.city.perception.pictures import opencv
from ludus.worlds.city.strategies import Advice, Question

DECISIONS, BEGUN, SIGHT = "decisions", "begun", "sight/"  # names of shared arrays; those of a sight have a prefix
# There is one worker per core: more threads in each would only compete.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Ask(IntEnum):
    """What a worker is asked for; codes of messages."""

    BEGIN = 16  # begin cities in the games that are marked, the first ones of the seed of the payload if it has one
    PLAY = 17  # carry out the decisions
    SNAPSHOT = 18  # answer with the state
    RESTORE = 19  # take the state of the payload; answers why not if it does not fit
    PICTURE = 20  # answer with the pixels of the game of the payload
    ADVISE = 21  # answer the questions of the payload


class WorkerGames:
    """Games of a worker process; see `ludus.envs.worker_program.Host`."""

    current = None

    def __init__(self, backend: EmbeddedBackend, decisions: NDArray[np.int64], begun: NDArray[np.bool_]) -> None:
        """Take games and the shared memory of what they are to do: `(games, 2)` decisions, `(games,)` to begin."""
        self._backend, self._decisions, self._begun = backend, decisions, begun

    def answer(self, code: int, _slot: int, payload: bytes) -> bytes:
        """Do what is asked for."""
        backend = self._backend
        if code == Ask.PLAY:
            backend.play(self._decisions)
        elif code == Ask.BEGIN:
            backend.begin(self._begun.copy(), seed=json.loads(payload))
        elif code == Ask.SNAPSHOT:
            return tensors_to_bytes(backend.snapshot())
        elif code == Ask.RESTORE:
            try:
                backend.restore(tensors_from_bytes(payload))
            except SnapshotError as error:
                return str(error).encode()
        elif code == Ask.PICTURE:
            return backend.picture(json.loads(payload)).tobytes()
        elif code == Ask.ADVISE:
            questions = [Question(name, game, seed, tuple(middle)) for name, game, seed, middle in json.loads(payload)]
            return json.dumps(backend.advise(questions)).encode()
        else:
            raise ValueError(f"{code} is no code of a request; valid: {', '.join(map(str, Ask))}")
        return b""


def host(plan: dict[str, Any], arrays: Mapping[str, NDArray[Any]], first: int, last: int) -> WorkerGames:
    """Make games `first ... last - 1` of a batch."""
    torch.set_num_threads(1)
    opencv("seeing the map").setNumThreads(1)
    request = EnvRequest(last - first, seed=plan["seed"], first_game=plan["first_game"] + first)
    backend = EmbeddedBackend(CityConfig.model_validate_json(plan["config"]), request)
    backend.sight.live_in({name: arrays[f"{SIGHT}{name}"][first:last] for name in backend.sight.arrays()})
    return WorkerGames(backend, arrays[DECISIONS][first:last], arrays[BEGUN][first:last])


LEAST_GAMES = 16  # of a worker; two with 8 each are a fifth faster than one process, less than their start is worth
_START_S = 600.0  # for a worker to come up; kernels may have to be compiled and letters to be learned
_ANSWER_S = 300.0


def worker_count(config: CityConfig, games: int) -> int:
    """Return the number of worker processes for a number of games; 0 for none."""
    if config.workers is not None:
        return min(config.workers, games, MOST_WORKERS)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(cores, games // LEAST_GAMES)
    return workers if workers > 1 and os.name == "posix" else 0


class WorkerBackend(CityBackend):
    """Embedded games, each worker process with a slice of them.

    The games do not depend on the number of workers. What is seen of them lies in shared memory.
    """

    advises = True

    def __init__(self, config: CityConfig, request: EnvRequest, workers: int) -> None:
        """Start the workers and wait until their games are made; raise WorkerError if one does not come up."""
        opencv("seeing the map")  # a missing package is reported here rather than by a worker
        self.num_envs, self._size = request.num_envs, (config.display.height, config.display.width)
        layouts = [embedded_layout(name, config.display, config.rules) for name in config.display.themes]
        self.catalogue = backend_catalogue(config, layouts)
        self.fields, self.menus = EMBEDDED_FIELDS, tuple(menu.name for menu in MENUS)
        self.sight = Sight(self.num_envs, len(self.fields), self.catalogue, config)
        seen = {f"{SIGHT}{name}": (array.shape, array.dtype) for name, array in self.sight.arrays().items()}
        shared: Fields = {
            DECISIONS: ((self.num_envs, 2), np.dtype(np.int64)),
            BEGUN: ((self.num_envs,), np.dtype(np.bool_)),
            **seen,
        }
        memory_file = make_memory_file(shared)
        views = map_block(shared, memory_file)
        self._decisions: NDArray[np.int64] = views[DECISIONS]
        self._begun: NDArray[np.bool_] = views[BEGUN]
        self.sight.live_in({name: views[f"{SIGHT}{name}"] for name in self.sight.arrays()})
        alone = config.model_copy(update={"workers": 0, "rules": config.rules.model_copy(update={"threads": 1})})
        plan = {"config": alone.model_dump_json(), "seed": request.seed, "first_game": request.first_game}
        hosting = Hosting(Path(__file__), plan, shared, memory_file, ONE_THREAD)
        self._workers = make_workers(hosting, self.num_envs, workers)
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
        """Start new cities; see `CityBackend.begin`."""
        self._begun[:] = True if games is None else games
        busy = [number for number, worker in enumerate(self._workers) if self._begun[worker.first : worker.last].any()]
        self._ask(dict.fromkeys(busy, Request(Ask.BEGIN, payload=json.dumps(seed).encode())))
        return self.sight

    def play(self, decisions: NDArray[np.int64]) -> Sight:
        """Carry out decisions; see `CityBackend.play`."""
        self._decisions[:] = decisions
        self._ask(dict.fromkeys(range(len(self._workers)), Request(Ask.PLAY)))
        return self.sight

    def picture(self, game: int) -> Frame:
        """Return a copy of the present picture of a game."""
        number = self._owner(game)
        worker = self._workers[number]
        self._ask({number: Request(Ask.PICTURE, payload=json.dumps(game - worker.first).encode())})
        return np.frombuffer(worker.answer, np.uint8).reshape(*self._size, 3).copy()

    def advise(self, questions: Sequence[Question]) -> list[Advice]:
        """Ask strategies what they would do now, each in the process of its game."""
        owners = [self._owner(question.game) for question in questions]
        asked: dict[int, list[Question]] = {owner: [] for owner in owners}
        for question, owner in zip(questions, owners, strict=True):
            asked[owner].append(question._replace(game=question.game - self._workers[owner].first))
        self._ask({owner: Request(Ask.ADVISE, payload=json.dumps(own).encode()) for owner, own in asked.items()})
        given = {owner: iter(json.loads(self._workers[owner].answer)) for owner in asked}
        return [Advice(kind, cell, tuple(middle)) for kind, cell, middle in (next(given[owner]) for owner in owners)]

    def close(self) -> None:
        """End all workers; none is left when this returns. May be called twice."""
        self._finalizer()

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as a copy: that of one backend with all games."""
        self._ask(dict.fromkeys(range(len(self._workers)), Request(Ask.SNAPSHOT)))
        parts = [tensors_from_bytes(worker.answer) for worker in self._workers]
        # What has no games in it is the same in all of them.
        return {
            name: torch.cat([part[name] for part in parts]) if first.dim() else first
            for name, first in parts[0].items()
        }

    def restore(self, snapshot: Mapping[str, Tensor]) -> Sight:
        """Restore the state returned by `snapshot()`; raise SnapshotError and change nothing if it does not fit."""
        before = self.snapshot()
        check_snapshot(snapshot, before, "the backend of embedded games")
        refusals = self._restore(snapshot)
        if refusals:  # others have taken their parts already
            self._restore(before)
            raise SnapshotError(refusals[0])
        return self.sight

    def _restore(self, snapshot: Mapping[str, Tensor]) -> list[str]:
        """Give every worker its part and return what those say whom it does not fit."""
        requests = {}
        for number, worker in enumerate(self._workers):
            part = {
                name: tensor[worker.first : worker.last].contiguous() if tensor.dim() else tensor
                for name, tensor in snapshot.items()
            }
            requests[number] = Request(Ask.RESTORE, payload=tensors_to_bytes(part))
        self._ask(requests)
        return [worker.answer.decode() for worker in self._workers if worker.answer]

    def _owner(self, game: int) -> int:
        """Return the number of the worker that has a game."""
        if not 0 <= game < self.num_envs:
            raise ConfigError(f"game {game} does not exist; valid: 0 to {self.num_envs - 1}")
        return next(number for number, worker in enumerate(self._workers) if game < worker.last)

    def _start(self) -> None:
        """Start all at once, then wait for each."""
        failures = [worker.start() for worker in self._workers]
        for number, worker in enumerate(self._workers):
            failure = failures[number] or worker.wait(_START_S)
            if failure is not None:
                raise WorkerError(self._story({number: failure}))

    def _ask(self, requests: Mapping[int, Request]) -> None:
        """Ask workers, by number, and wait for their answers; if one fails, all are ended."""
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
        return plain_text("; ".join(lines))
