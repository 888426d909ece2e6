"""Several processes that share one run, started by torchrun: who does which part, and what they tell each other.

`world.num_envs` and `batch_size` are those of the whole run, however many processes share it: games keep their index,
so that all of them together play the games that one process would.
"""

import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import torch
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor, distributed

from ludus.algorithms.learner import Fault, Learner
from ludus.core.errors import ConfigError, DeviceError, RankError
from ludus.core.random import stream_hash
from ludus.core.text import blame
from ludus.curriculum.config import PhaseConfig
from ludus.rollout.episodes import Episodes
from ludus.training.config import TrainConfig

_STREAM_RANK = 0x4A4B
_NEEDED = ("MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True)
class Process:
    """One process among those of a run."""

    rank: int = 0  # its number, from 0; rank 0 writes
    count: int = 1  # processes of the run
    local_rank: int = 0  # its number on its machine, which is also the number of its GPU

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read rank and world size as `torchrun` sets them; without them, or with a size of 1, the process is alone.

        Raises:
            ConfigError: The variables contradict each other or are no whole numbers.
        """
        if "RANK" not in environment or "WORLD_SIZE" not in environment:
            return cls()
        rank, count = _whole(environment, "RANK"), _whole(environment, "WORLD_SIZE")
        local_rank = _whole(environment, "LOCAL_RANK") if "LOCAL_RANK" in environment else rank
        if not 0 <= rank < count:
            raise ConfigError(f"RANK is {rank} and WORLD_SIZE {count}; RANK must be 0 to {count - 1}; use torchrun")
        missing = [name for name in _NEEDED if name not in environment]
        if count > 1 and missing:
            raise ConfigError(f"WORLD_SIZE is {count}, but {', '.join(missing)} not set; start the run by torchrun")
        return cls(rank, count, local_rank) if count > 1 else cls()

    def share(self, config: TrainConfig) -> TrainConfig:
        """Return the settings of this process's part: games, minibatch and device are its own.

        Raises:
            ConfigError: The games or the minibatch cannot be divided evenly, or the device or the algorithm is not for
                several.
        """
        if self.count == 1:
            return config
        world = config.world
        games = self._part(world.num_envs, "world.num_envs")
        shared = config.with_hyperparameters(config.method.share(config.hyperparameters, self.count))
        return shared.model_copy(
            update={
                "world": world.model_copy(
                    update={"num_envs": games, "device": self._device("world.device", world.device)}
                ),
                "learner_device": self._device("learner_device", config.learner_device),
                "curriculum": tuple(self._share_phase(phase, i) for i, phase in enumerate(config.curriculum)),
            }
        )

    def _share_phase(self, phase: PhaseConfig, index: int) -> PhaseConfig:
        if phase.world is None or phase.world.num_envs is None:
            return phase
        games = self._part(phase.world.num_envs, f"curriculum.{index}.world.num_envs")
        return phase.model_copy(update={"world": phase.world.model_copy(update={"num_envs": games})})

    def seed(self, seed: int) -> int:
        """Return the seed of its exploration and minibatches, 0 to 2**63 - 1; rank 0 has the run's own."""
        if self.rank == 0:
            return seed
        high, low = (stream_hash(seed, self.rank, half, _STREAM_RANK) for half in (0, 1))
        return high << 31 | low >> 1

    def _part(self, whole: int, name: str) -> int:
        if whole % self.count:
            below, above = whole // self.count * self.count, -(-whole // self.count) * self.count
            valid = f"{below} or {above}" if below else str(above)
            raise ConfigError(
                f"{name} {whole} cannot be divided evenly among {self.count} processes; use a multiple of "
                f"{self.count}, such as {valid}, or another number of processes"
            )
        return whole // self.count

    def _device(self, key: str, asked: str) -> str:
        kind, _, number = asked.partition(":")
        if number:
            raise ConfigError(
                f"{key} {asked!r} names one device for {self.count} processes; use {kind!r}, of which every "
                "process takes its own"
            )
        return asked if kind == "cpu" else f"{kind}:{self.local_rank}"


SINGLE_PROCESS = Process()


def _whole(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise ConfigError(f"{name} is {environment[name]!r}; it must be a whole number; use torchrun") from None


_T = TypeVar("_T")


class ProcessGroup:
    """The group of processes of a run, as one of them sees it; every method but `leave` is called by all of them."""

    def __init__(self, process: Process = SINGLE_PROCESS) -> None:
        self.process = process
        self._group: distributed.ProcessGroup | None = None
        self._is_host = False  # whether this object joined the processes, and so takes them apart

    @classmethod
    def join(cls, process: Process, device: str) -> Self:
        """Connect to the other processes, over NCCL if the device of this one is a GPU and over gloo otherwise.

        Raises:
            DeviceError: There are more processes on this machine than it has GPUs.
        """
        processes = cls(process)
        if process.count == 1:
            return processes
        on_gpu = torch.device(device).type == "cuda"
        if on_gpu:
            gpus = torch.cuda.device_count()
            if process.local_rank >= gpus:
                raise DeviceError(
                    f"process {process.local_rank} of this machine needs {device}, but it has {gpus} "
                    "GPUs; start no more processes on it than that, or use world.device 'cpu'"
                )
            torch.cuda.set_device(device)
        if not distributed.is_initialized():
            backend = "nccl" if on_gpu else "gloo"
            distributed.init_process_group(backend, rank=process.rank, world_size=process.count)
            processes._is_host = True
        processes._group = distributed.new_group(backend="gloo")
        return processes

    @property
    def is_writer(self) -> bool:
        """Whether this process writes metrics and checkpoints, and tells callbacks."""
        return self.process.rank == 0

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set on any process."""
        if self._group is None:
            return flag
        flags = torch.tensor([flag], dtype=torch.int32)
        distributed.all_reduce(flags, distributed.ReduceOp.MAX, group=self._group)
        return bool(flags.item())

    def together(self, work: Callable[[], _T]) -> _T:
        """Run local work, in which no process waits for another; raise on all processes if it failed on one.

        Raises:
            RankError: It failed on another process; where it failed, its own error is raised.
        """
        if self._group is None:
            return work()
        own: BaseException | None = None
        try:
            result = work()
        except BaseException as error:
            own = error
        if not self.any(own is not None):
            return result
        told = self.gather_texts("" if own is None else blame(own))
        if own is not None:
            raise own
        rank, text = next((rank, text) for rank, text in enumerate(told) if text)
        raise RankError(f"process {rank} of {self.process.count} failed, so all end: {text}")

    def gather_texts(self, text: str) -> list[str]:
        """Return the texts of all processes, by rank."""
        if self._group is None:
            return [text]
        raw = _to_tensor(text.encode())
        sizes = [int(size) for (size,) in self.gather_numbers([raw.numel()])]
        parts = [torch.zeros(max(sizes), dtype=torch.uint8) for _ in sizes]
        padded = torch.nn.functional.pad(raw, (0, max(sizes) - raw.numel()))
        distributed.all_gather(parts, padded, group=self._group)
        return [_to_bytes(part[:size]).decode() for part, size in zip(parts, sizes, strict=True)]

    def gather_numbers(self, numbers: Sequence[float]) -> list[list[float]]:
        """Return the numbers of all processes, by rank; all must give equally many."""
        own = torch.tensor(numbers, dtype=torch.float64)
        if self._group is None:
            return [own.tolist()]
        parts = [torch.zeros_like(own) for _ in range(self.process.count)]
        distributed.all_gather(parts, own, group=self._group)
        return [part.tolist() for part in parts]

    def send_tensors(self, tensors: Mapping[str, Tensor], rank: int) -> None:
        """Send named tensors to another process, which calls `receive_tensors` for this one."""
        raw = tensors_to_bytes({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
        distributed.send(_to_tensor(struct.pack("<q", len(raw))), rank, group=self._group)
        distributed.send(_to_tensor(raw), rank, group=self._group)

    def receive_tensors(self, rank: int) -> dict[str, Tensor]:
        """Receive what another process sends to this one, on the host."""
        size = torch.zeros(8, dtype=torch.uint8)
        distributed.recv(size, rank, group=self._group)
        raw = torch.zeros(struct.unpack("<q", _to_bytes(size))[0], dtype=torch.uint8)
        distributed.recv(raw, rank, group=self._group)
        return tensors_from_bytes(_to_bytes(raw))

    @contextmanager
    def naming_losses(self) -> Iterator[None]:
        """Turn errors about the connection to another process into RankError."""
        try:
            yield
        except RuntimeError as error:
            # Gloo's errors have no type of their own; they begin with the file that they come from.
            lost = isinstance(error, distributed.DistError) or "gloo" in str(error).partition("]")[0]
            if self._group is None or not lost:
                raise
            raise RankError(
                f"process {self.process.rank} of {self.process.count} lost the connection to another one, so it ends: "
                "see the log of the other for the cause; starting the run again resumes from its newest checkpoint"
            ) from error

    def leave(self) -> None:
        """Close the connections, at which processes that still wait for this one fail; may be called twice."""
        group, self._group = self._group, None
        if group is None or not distributed.is_initialized():
            return
        distributed.destroy_process_group(None if self._is_host else group)


def find_process() -> Process:
    """Return the place of this process: in the group that it is in already, else as the environment says.

    Raises:
        ConfigError: The environment's variables contradict each other.
    """
    if not distributed.is_initialized():
        return Process.read(os.environ)
    rank = distributed.get_rank()
    return Process(rank, distributed.get_world_size(), int(os.environ.get("LOCAL_RANK", rank)))


def _to_tensor(raw: bytes) -> Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.zeros(0, dtype=torch.uint8)


def _to_bytes(tensor: Tensor) -> bytes:
    return tensor.numpy().tobytes()


_ORDER = ("observation", "reward", "policy output", "loss", "gradient", "parameter")  # causes before effects
_COLUMNS = ("rewards", "lengths", "outcomes", "opponents", "leads", "sides")  # arrays of `Episodes`


def join_faults(processes: ProcessGroup, fault: Fault | None) -> Fault | None:
    """Return one fault for all processes: the first cause that any of them found; None if none did."""
    if processes.process.count == 1 or not processes.any(fault is not None):
        return fault
    told = processes.gather_texts("" if fault is None else f"{fault.kind}\n{fault.place}")
    found = [(_ORDER.index(text.partition("\n")[0]), rank, text) for rank, text in enumerate(told) if text]
    _, rank, text = min(found)
    kind, _, place = text.partition("\n")
    return Fault(kind, f"{place}, on process {rank}")


def join_metrics(processes: ProcessGroup, metrics: Mapping[str, float], learner: Learner) -> dict[str, float]:
    """Return the metrics of the whole batch: what the update measured is joined already, the rollouts are not."""
    if processes.process.count == 1:
        return dict(metrics)
    return learner.join_metrics(metrics, processes.gather_numbers)


def join_episodes(
    processes: ProcessGroup, episodes: Episodes, rewards: Mapping[str, float]
) -> tuple[Episodes, dict[str, float]]:
    """Return the episodes of all processes, by rank, and the sums of their reward terms; the same on each of them."""
    if processes.process.count == 1:
        return episodes, dict(rewards)
    own = {
        "columns": {name: getattr(episodes, name).tolist() for name in _COLUMNS},
        "terms": {name: values.tolist() for name, values in episodes.terms.items()},
        "episode_metrics": {name: values.tolist() for name, values in episodes.episode_metrics.items()},
        "rewards": dict(rewards),
    }
    told: list[dict[str, Any]] = [json.loads(text) for text in processes.gather_texts(json.dumps(own))]
    columns = _joined(told, "columns", {name: getattr(episodes, name).dtype for name in _COLUMNS})
    full = [each for each in told if each["columns"]["rewards"]]  # without episodes there are no names of their parts
    terms, metrics = (
        _joined(full, part, dict.fromkeys(full[0][part] if full else (), np.float64))
        for part in ("terms", "episode_metrics")
    )
    joined = replace(episodes, **columns, terms=terms, episode_metrics=metrics)
    return joined, {name: sum(each["rewards"][name] for each in told) for name in rewards}


def _joined(told: Sequence[Mapping[str, Any]], part: str, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of a part, by name and with their dtypes; each is that of all processes joined."""
    lists = {name: [each[part][name] for each in told] for name in kinds}
    return {name: np.concatenate([np.asarray(one, dtype=kinds[name]) for one in all_]) for name, all_ in lists.items()}
