"""resources.csv: memory, GPU and where the time goes; the only file that differs between equal runs."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch

from ludus.training.callbacks import BaseCallback, Counters, Evaluated, Iteration
from ludus.training.loggers.csv_logger import AppendLog

_EVERY_S = 1.0  # NVML averages the use over about as long, so asking more often tells nothing new


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What one look at the GPU gave."""

    use: float | None  # share of the last second in which a kernel ran, 0 to 1; None where the driver does not tell
    used_bytes: int  # by all processes
    total_bytes: int


class GpuReader:
    """Reads the state of one GPU, at most once per second."""

    def __init__(self, nvml: Any, handle: Any) -> None:  # noqa: ANN401 - the library has no types
        self._nvml, self._handle = nvml, handle
        self._last: GpuReading | None = None
        self._next_s = 0.0

    def read(self) -> GpuReading | None:
        """Return the last reading, a new one if it is old; None if the driver stopped answering."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + _EVERY_S
            self._last = self._look()
        return self._last

    def close(self) -> None:
        """Release the driver; may be called twice."""
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    def _look(self) -> GpuReading | None:
        try:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handle)
        except self._nvml.NVMLError:
            return None
        use = None
        with contextlib.suppress(self._nvml.NVMLError):  # a MIG slice of a GPU reports memory, but no utilisation
            use = self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu / 100.0
        return GpuReading(use, int(memory.used), int(memory.total))


def open_gpu(device: str) -> GpuReader | None:
    """Return a reader for the GPU that torch calls `device`; None without GPU, driver or library."""
    if torch.device(device).type != "cuda" or not torch.cuda.is_available():
        return None
    try:
        import pynvml as nvml  # type: ignore[import-untyped]
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        # By its identifier: CUDA_VISIBLE_DEVICES gives torch other numbers than NVML has.
        identifier = str(torch.cuda.get_device_properties(device).uuid).removeprefix("GPU-")
        handle = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{identifier}")
    except nvml.NVMLError:
        return None
    return GpuReader(nvml, handle)


FILE = "resources.csv"
PARTS = ("simulation", "inference", "opponents", "update", "other", "evaluation", "checkpoints", "logging")
COLUMNS = (
    "iteration", "env_steps", "elapsed_s", "resident_mib", *(f"{part}_s" for part in PARTS), "gpu_use", "gpu_mib",
)  # fmt: skip
# A row is written when this share of the time so far has passed since the last: one per iteration at first, and about
# 300 more for each time that a run grows to three times its length.
_SHARE = 1.0 / 256.0
_MIB = 1024.0**2
_INTERRUPTED = "interrupted"


class ResourcesLogger(BaseCallback):
    """Writes a row now and then: memory at that time, and the seconds of each part since the row before."""

    def __init__(self, run_folder: Path, device: str = "cpu", clock: Callable[[], float] = time.perf_counter) -> None:
        self._log = AppendLog(run_folder / FILE)
        self._gpu: GpuReader | None = open_gpu(device)
        self._process = psutil.Process()
        self._clock = clock
        self._parts_s = dict.fromkeys(PARTS, 0.0)
        self._until_checkpoint_s = 0.0  # from the callback before to that of a checkpoint, since the last iteration
        self._started_s = self._last_row_s = self._last_event_s = clock()

    def on_training_start(self, counters: Counters) -> None:
        """Start measuring."""
        self._started_s = self._last_row_s = self._last_event_s = self._clock()

    def on_iteration(self, iteration: Iteration) -> None:
        """Add the iteration's times; the rest of the time since the last callback is logging, and checkpoints.

        A checkpoint that was written during the iteration is told right before it, one that the run waited for
        before the iteration began.
        """
        passed_s, waited_s = self._pass(), self._until_checkpoint_s
        if waited_s and passed_s < iteration.elapsed_s:
            passed_s, waited_s = passed_s + iteration.elapsed_s, max(waited_s - iteration.elapsed_s, 0.0)
        self._parts_s["checkpoints"] += waited_s
        self._until_checkpoint_s = 0.0
        for name, seconds in iteration.times_s.items():
            self._parts_s[name if name in self._parts_s else "other"] += seconds
        self._parts_s["other"] += max(iteration.elapsed_s - sum(iteration.times_s.values()), 0.0)
        self._parts_s["logging"] += max(passed_s - iteration.elapsed_s, 0.0)
        now_s = self._last_event_s
        if now_s - self._last_row_s >= _SHARE * (now_s - self._started_s):
            self._write(iteration.counters)

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """Count the time since the last callback as that of the checkpoint, without an iteration in the same time.

        Before `interrupted` it may have been an iteration that was broken off.
        """
        if folder.name == _INTERRUPTED:
            self._parts_s["other"] += self._pass()
        else:
            self._until_checkpoint_s += self._pass()

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Count the time since the last callback as that of the evaluation."""
        self._parts_s["evaluation"] += self._pass()

    def on_training_end(self, counters: Counters) -> None:
        """Write the remaining times as the last row, if there are any, and close the file."""
        self._parts_s["checkpoints"] += self._until_checkpoint_s
        if any(self._parts_s.values()):
            self._write(counters)
        self._log.close()
        if self._gpu is not None:
            self._gpu.close()
            self._gpu = None

    def _pass(self) -> float:
        """Return the seconds since the last call."""
        now_s = self._clock()
        passed_s, self._last_event_s = now_s - self._last_event_s, now_s
        return passed_s

    def _write(self, counters: Counters) -> None:
        reading = self._gpu.read() if self._gpu is not None else None
        use = "" if reading is None or reading.use is None else f"{reading.use:.2f}"
        memory = "" if reading is None else f"{reading.used_bytes / _MIB:.1f}"
        now_s = self._clock()
        resident = f"{self._process.memory_info().rss / _MIB:.1f}"
        parts = (f"{self._parts_s[part]:.4f}" for part in PARTS)
        when = (str(counters.iterations), str(counters.env_steps), f"{now_s - self._started_s:.3f}")
        header = ",".join(COLUMNS) + "\n" if self._log.is_empty else ""
        self._log.append(header + ",".join((*when, resident, *parts, use, memory)) + "\n")
        self._last_row_s = now_s
        self._parts_s = dict.fromkeys(PARTS, 0.0)
