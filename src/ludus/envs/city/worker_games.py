"""A slice of embedded games that a worker process draws and reads for `worker_table.WorkerTable`."""

import json
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes

from ludus.core.errors import SnapshotError
from ludus.envs.base import EnvRequest
from ludus.envs.city.advice import Advice, Question
from ludus.envs.city.config import CityConfig
from ludus.envs.city.embedded_table import EmbeddedTable
from ludus.envs.city.perception.opencv import opencv

DECISIONS, BEGUN, SIGHT = "decisions", "begun", "sight/"  # names of shared arrays; those of a sight have a prefix
# The workers are as many as the cores: threads of their own would only be in each other's way.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Ask(IntEnum):
    """What a worker is asked for; codes of messages."""

    BEGIN = 16  # begin cities in the games that are marked, or with the seed of the payload in all
    PLAY = 17  # carry out the decisions
    SNAPSHOT = 18  # answer with the state
    RESTORE = 19  # take the state of the payload; answers why not if it does not fit
    PICTURE = 20  # answer with the pixels of the game of the payload
    ADVISE = 21  # answer the questions of the payload


class WorkerGames:
    """Games of a worker process; see `ludus.envs.worker_program.Host`."""

    current = None

    def __init__(self, table: EmbeddedTable, decisions: NDArray[np.int64], begun: NDArray[np.bool_]) -> None:
        """Takes games and the shared memory of what they are to do: `(games, 2)` decisions, `(games,)` to begin."""
        self._table, self._decisions, self._begun = table, decisions, begun

    def answer(self, code: int, _slot: int, payload: bytes) -> bytes:
        """Does what is asked for."""
        table = self._table
        if code == Ask.PLAY:
            table.play(self._decisions)
        elif code == Ask.BEGIN and payload:
            table.begin(seed=json.loads(payload))
        elif code == Ask.BEGIN:
            table.begin(self._begun.copy())
        elif code == Ask.SNAPSHOT:
            return tensors_to_bytes(table.snapshot())
        elif code == Ask.RESTORE:
            try:
                table.restore(tensors_from_bytes(payload))
            except SnapshotError as error:
                return str(error).encode()
        elif code == Ask.PICTURE:
            return table.picture(json.loads(payload)).tobytes()
        elif code == Ask.ADVISE:
            return json.dumps(table.advise(questions_from_json(payload))).encode()
        else:
            raise ValueError(f"{code} is no code of a request; valid: {', '.join(map(str, Ask))}")
        return b""


def questions_from_json(payload: bytes) -> list[Question]:
    """Returns the questions of a message."""
    return [Question(name, game, seed, tuple(middle)) for name, game, seed, middle in json.loads(payload)]


def advice_from_json(payload: bytes) -> list[Advice]:
    """Returns what a worker has answered."""
    return [Advice(kind, cell, tuple(middle)) for kind, cell, middle in json.loads(payload)]


def host(plan: dict[str, Any], arrays: Mapping[str, NDArray[Any]], first: int, last: int) -> WorkerGames:
    """Makes games `first ... last - 1` of a batch."""
    torch.set_num_threads(1)
    opencv("seeing the map").setNumThreads(1)
    request = EnvRequest(last - first, seed=plan["seed"], first_game=plan["first_game"] + first)
    table = EmbeddedTable(CityConfig.model_validate_json(plan["config"]), request)
    table.sight.live_in({name: arrays[f"{SIGHT}{name}"][first:last] for name in table.sight.arrays()})
    return WorkerGames(table, arrays[DECISIONS][first:last], arrays[BEGUN][first:last])
