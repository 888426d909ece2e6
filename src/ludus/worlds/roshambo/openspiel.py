"""The 43 bots of OpenSpiel's RoShamBo collection as opponents, played by worker processes."""

import weakref
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ludus.core.errors import ConfigError, MissingDependencyError, UnknownNameError, WorkerError
from ludus.core.random import stream_hash_tensor
from ludus.envs.base import EnvSpec
from ludus.envs.settings import CORES, MOST_WORKERS
from ludus.envs.worker_process import (
    Hosting,
    Request,
    WorkerProcess,
    ask_workers,
    close_workers,
    make_memory_file,
    make_workers,
)
from ludus.envs.worker_program import Fields, map_block
from ludus.worlds.roshambo.config import RoshamboConfig
from ludus.worlds.roshambo.rules import SEATS, Stream

FAMILY = "openspiel"  # before the colon of their names
OPENSPIEL_BOTS = (
    *("actr_lag2_decay", "adddriftbot2", "addshiftbot3", "antiflatbot", "antirotnbot", "biopic", "boom", "copybot"),
    *("debruijn81", "driftbot", "flatbot3", "foxtrotbot", "freqbot2", "granite", "greenberg", "halbot", "inocencio"),
    *("iocainebot", "marble", "markov5", "markovbails", "mixed_strategy", "mod1bot", "multibot", "peterbot"),
    *("phasenbott", "pibot", "piedra", "predbot", "r226bot", "randbot", "robertot", "rockbot", "rotatebot"),
    *("russrocker4", "shofar", "sunCrazybot", "sunNervebot", "sweetrock", "switchalot", "switchbot", "textbot"),
    "zq_move",
)
MOST_THROWS = 1_000  # `openspiel_worker.THROWS`
_WORKER_FILE = Path(__file__).with_name("openspiel_worker.py")
_ACT_CODE = 16  # `openspiel_worker.Ask.ACT`; that file imports OpenSpiel
_SEATS_PER_WORKER = 16  # fewer are not worth a process
_TIMEOUT_S = 600.0  # a resumed run replays its matches in the first step


class OpenSpielArena(Protocol):
    """What the processes need of the environment that they play in."""

    spec: EnvSpec
    config: RoshamboConfig
    num_envs: int
    seed: int
    first_game: int
    device: torch.device
    history: Tensor

    def fields(self) -> dict[str, Tensor]:
        """Return the counters of all games."""


class OpenSpielProcesses:
    """Worker processes that play OpenSpiel's bots in the games of one environment; started when they are needed.

    They hold nothing that cannot be made again: a bot that does not know the match is given its throws so far. So
    snapshots, resets and resumed runs need no more than the environment's own state.
    """

    def __init__(self, env: OpenSpielArena) -> None:
        # A reference cycle would keep the processes until the garbage collector runs.
        self._env = weakref.ref(env)
        self._workers: list[WorkerProcess] = []
        self._finalizer: weakref.finalize[..., OpenSpielProcesses] | None = None
        self._expected: tuple[int, Tensor] | None = None  # seed, and episodes and frames of the next step

    @property
    def env(self) -> OpenSpielArena:
        """The environment."""
        env = self._env()
        if env is None:
            raise WorkerError("the environment of these bots is gone; make a new one")
        return env

    @property
    def pids(self) -> list[int]:
        """Ids of the processes that run now."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    def throw(self, bots: Tensor) -> Tensor:
        """Return the throws of bots `(games, seats)`, index into `OPENSPIEL_BOTS` or -1, on the host."""
        if self._finalizer is None or not self._finalizer.alive:
            self._start(int((bots >= 0).sum()))
        self._arrays["bots"][:] = bots.numpy()
        self._tell()
        requests = dict.fromkeys(range(len(self._workers)), Request(_ACT_CODE))
        for number, failure in ask_workers(self._workers, requests, _TIMEOUT_S).items():
            self.close()
            where = "" if failure.game is None else f" in game {failure.game}"
            raise WorkerError(
                f"worker {number} with bots of OpenSpiel {failure.kind}{where}: {failure.reason}\n{failure.traceback}"
            )
        return torch.from_numpy(self._arrays["throws"])

    def close(self) -> None:
        """End the processes; may be called twice."""
        if self._finalizer is not None:
            self._finalizer()
        self._expected = None

    def _start(self, seats: int) -> None:
        env = self.env
        throws, games = env.config.throws, env.num_envs
        count = min(env.config.workers or CORES, MOST_WORKERS, max(1, seats // _SEATS_PER_WORKER), games)
        fields: Fields = {
            "bots": ((games, SEATS), np.dtype(np.int16)),
            "seeds": ((games, SEATS), np.dtype(np.uint32)),
            "episodes": ((games,), np.dtype(np.int32)),
            "frames": ((games,), np.dtype(np.int32)),
            "history": ((games, throws), np.dtype(np.int8)),
            "throws": ((games, SEATS), np.dtype(np.int8)),
        }
        memory_file = make_memory_file(fields)
        self._arrays = map_block(fields, memory_file)
        plan = {"names": OPENSPIEL_BOTS, "stride": count}
        hosting = Hosting(_WORKER_FILE, plan, fields, memory_file, {})
        # Every worker is known by its number alone: games of one bot lie side by side, and a slow bot is shared by all.
        self._workers = make_workers(hosting, count, count)
        self._finalizer = weakref.finalize(self, close_workers, self._workers, memory_file)
        failures = [worker.start() for worker in self._workers]
        for worker, failure in zip(self._workers, failures, strict=True):
            failed = failure or worker.wait(_TIMEOUT_S)
            if failed is not None:
                self.close()
                raise WorkerError(f"a worker with bots of OpenSpiel {failed.kind}: {failed.reason}\n{failed.traceback}")

    def _tell(self) -> None:
        """Write what has happened since the last step: mostly one throw per game."""
        env, arrays = self.env, self._arrays
        clock = torch.stack([env.fields()[name] for name in ("episode", "frame")]).cpu()
        episodes, frames = clock
        is_next = self._expected is not None and self._expected[0] == env.seed
        if is_next and self._expected is not None:
            is_next = bool(((clock == self._expected[1]).all(0) | (frames == 0)).all())
        if is_next:
            last = (frames - 1).clamp(min=0)
            throws = env.history.gather(1, last.to(env.device, torch.int64).unsqueeze(1)).squeeze(1)
            arrays["history"][np.arange(env.num_envs), last.numpy()] = throws.cpu().numpy()
        else:
            arrays["history"][:] = env.history.cpu().numpy()
        if not is_next or bool((frames == 0).any()):
            games = (env.first_game + torch.arange(env.num_envs)).unsqueeze(1)
            seats = int(Stream.OPENSPIEL) + torch.arange(SEATS)
            arrays["seeds"][:] = stream_hash_tensor(env.seed, games, episodes.unsqueeze(1), seats).numpy()
        arrays["episodes"][:] = episodes.numpy()
        arrays["frames"][:] = frames.numpy()
        self._expected = env.seed, torch.stack([episodes, frames + 1])


class OpenSpielBots:
    """A roster of OpenSpiel's bots; see `ludus.envs.base.Bots`."""

    def __init__(self, processes: OpenSpielProcesses, names: Sequence[str]) -> None:
        """Find the bots.

        Raises:
            UnknownNameError: OpenSpiel has no such bot.
            ConfigError: Its bots do not play matches of this length.
            MissingDependencyError: OpenSpiel is not installed.
        """
        self.names = tuple(names)
        short = [name.partition(":")[2] for name in names]
        for name in short:
            if name not in OPENSPIEL_BOTS:
                raise UnknownNameError("bot of OpenSpiel", name, OPENSPIEL_BOTS)
        throws = processes.env.config.throws
        if throws > MOST_THROWS:
            raise ConfigError(f"bots of OpenSpiel play at most {MOST_THROWS} throws, got throws = {throws}")
        if find_spec("pyspiel") is None:
            raise MissingDependencyError("open_spiel", "openspiel", f"the bot {self.names[0]!r}")
        self._processes = processes
        # By index into `names`; the last entry is that of -1, a seat without a bot.
        self._places = torch.tensor([*(OPENSPIEL_BOTS.index(name) for name in short), -1], dtype=torch.int32)

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Write the bots' actions; see `ludus.envs.base.Bots.act`."""
        bots = self._places[assignment.cpu().long()]
        played = bots >= 0
        if bool(played.any()):
            throws = self._processes.throw(bots).to(actions.dtype)
            actions.copy_(torch.where(played.to(actions.device), throws.to(actions.device), actions))
