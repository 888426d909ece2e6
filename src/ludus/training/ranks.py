"""The processes of a run that share its work: joining them, deciding together, failing together, sending states.

Everything here goes over a gloo group of its own, on the host: it works beside NCCL, and a process that ends closes
its connections, at which the others notice. With one process nothing is sent and nothing waits.
"""

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self, TypeVar

import torch
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor, distributed

from ludus.core.errors import DeviceError, RankError
from ludus.training.place import ALONE, Place

_T = TypeVar("_T")


class Ranks:
    """The group of processes of a run, as one of them sees it; every method but `leave` is called by all of them.

    Attributes:
        place: Which one this is.
    """

    def __init__(self, place: Place = ALONE) -> None:
        self.place = place
        self._group: distributed.ProcessGroup | None = None
        self._is_host = False  # whether this object joined the processes, and so takes them apart

    @classmethod
    def join(cls, place: Place, device: str) -> Self:
        """Meets the other processes, over NCCL if the device is a GPU and over gloo otherwise.

        Args:
            place: Which process this is, as `find_place` says.
            device: Of this process.

        Raises:
            DeviceError: There are more processes on this machine than it has GPUs.
        """
        ranks = cls(place)
        if place.count == 1:
            return ranks
        on_gpu = torch.device(device).type == "cuda"
        if on_gpu:
            gpus = torch.cuda.device_count()
            if place.local_rank >= gpus:
                raise DeviceError(
                    f"process {place.local_rank} of this machine needs {device}, but it has {gpus} "
                    "GPUs; start no more processes on it than that, or use world.device 'cpu'"
                )
            torch.cuda.set_device(device)
        if not distributed.is_initialized():
            backend = "nccl" if on_gpu else "gloo"
            distributed.init_process_group(backend, rank=place.rank, world_size=place.count)
            ranks._is_host = True
        ranks._group = distributed.new_group(backend="gloo")
        return ranks

    @property
    def is_writer(self) -> bool:
        """Whether this process writes metrics and checkpoints, and tells callbacks."""
        return self.place.rank == 0

    def any(self, flag: bool) -> bool:
        """Says whether the flag is set on any process."""
        if self._group is None:
            return flag
        flags = torch.tensor([flag], dtype=torch.int32)
        distributed.all_reduce(flags, distributed.ReduceOp.MAX, group=self._group)
        return bool(flags.item())

    def together(self, work: Callable[[], _T]) -> _T:
        """Does local work, in which no process waits for another, and goes on only if it succeeded on all of them.

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
        told = self.gather_texts("" if own is None else f"{type(own).__name__}: {own}")
        if own is not None:
            raise own
        rank, text = next((rank, text) for rank, text in enumerate(told) if text)
        raise RankError(f"process {rank} of {self.place.count} failed, so all end: {text}")

    def gather_texts(self, text: str) -> list[str]:
        """Returns the texts of all processes, by rank."""
        if self._group is None:
            return [text]
        raw = _to_tensor(text.encode())
        sizes = [int(size) for (size,) in self.gather_numbers([raw.numel()])]
        parts = [torch.zeros(max(sizes), dtype=torch.uint8) for _ in sizes]
        padded = torch.nn.functional.pad(raw, (0, max(sizes) - raw.numel()))
        distributed.all_gather(parts, padded, group=self._group)
        return [_to_bytes(part[:size]).decode() for part, size in zip(parts, sizes, strict=True)]

    def gather_numbers(self, numbers: Sequence[float]) -> list[list[float]]:
        """Returns the numbers of all processes, by rank; all must give equally many."""
        own = torch.tensor(numbers, dtype=torch.float64)
        if self._group is None:
            return [own.tolist()]
        parts = [torch.zeros_like(own) for _ in range(self.place.count)]
        distributed.all_gather(parts, own, group=self._group)
        return [part.tolist() for part in parts]

    def send_tensors(self, tensors: Mapping[str, Tensor], rank: int) -> None:
        """Sends named tensors to another process, which calls `receive_tensors` for this one."""
        raw = tensors_to_bytes({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
        distributed.send(_to_tensor(struct.pack("<q", len(raw))), rank, group=self._group)
        distributed.send(_to_tensor(raw), rank, group=self._group)

    def receive_tensors(self, rank: int) -> dict[str, Tensor]:
        """Receives what another process sends to this one, on the host."""
        size = torch.zeros(8, dtype=torch.uint8)
        distributed.recv(size, rank, group=self._group)
        raw = torch.zeros(struct.unpack("<q", _to_bytes(size))[0], dtype=torch.uint8)
        distributed.recv(raw, rank, group=self._group)
        return tensors_from_bytes(_to_bytes(raw))

    @contextmanager
    def naming_losses(self) -> Iterator[None]:
        """Turns errors about the connection to another process into RankError."""
        try:
            yield
        except RuntimeError as error:
            # Gloo's errors have no type of their own; they begin with the file that they come from.
            lost = isinstance(error, distributed.DistError) or "gloo" in str(error).partition("]")[0]
            if self._group is None or not lost:
                raise
            raise RankError(
                f"process {self.place.rank} of {self.place.count} lost the connection to another one, so it ends: see "
                "the other's log for the cause; starting the run again goes on from its newest checkpoint"
            ) from error

    def leave(self) -> None:
        """Closes the connections, at which processes that still wait for this one fail; may be called twice."""
        group, self._group = self._group, None
        if group is None or not distributed.is_initialized():
            return
        if self._is_host:
            distributed.destroy_process_group()
        else:
            distributed.destroy_process_group(group)


def find_place() -> Place:
    """Returns the place of this process: in the group that it is in already, else as the environment says.

    Raises:
        ConfigError: The environment's variables contradict each other.
    """
    if not distributed.is_initialized():
        return Place.read(os.environ)
    rank = distributed.get_rank()
    return Place(rank, distributed.get_world_size(), int(os.environ.get("LOCAL_RANK", rank)))


def _to_tensor(raw: bytes) -> Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.zeros(0, dtype=torch.uint8)


def _to_bytes(tensor: Tensor) -> bytes:
    return tensor.numpy().tobytes()
