"""Memory and where the time goes, in the run folder's `resources.csv`.

Times and memory differ from run to run, so they have a file of their own: all other tables of equal runs are equal, but
not this one. It belongs to no checkpoint; a run that goes on appends to it, and its times begin at 0 again.
"""

import time
from collections.abc import Callable
from pathlib import Path

import psutil

from ludus.training.append_log import AppendLog
from ludus.training.callbacks import Counters, Evaluated, Iteration, QuietCallback
from ludus.training.sinks.gpu import GpuReader, open_gpu

FILE = "resources.csv"
PARTS = ("simulation", "inference", "opponents", "update", "other", "evaluation", "checkpoints", "logging")
COLUMNS = (
    "iteration", "env_steps", "elapsed_s", "resident_mib", *(f"{part}_s" for part in PARTS), "gpu_use", "gpu_mib",
)  # fmt: skip
# A row comes when this share of the time so far has passed since the last one: a row an iteration at first, and about
# 300 more for each time that a run grows to three times its length.
_SHARE = 1.0 / 256.0
_MIB = 1024.0**2
_INTERRUPTED = "interrupted"


class ResourcesSink(QuietCallback):
    """Writes a row now and then: memory at that time, and the seconds of each part since the row before."""

    def __init__(self, run_folder: Path, device: str = "cpu", clock: Callable[[], float] = time.perf_counter) -> None:
        self._log = AppendLog(run_folder / FILE)
        self._gpu: GpuReader | None = open_gpu(device)
        self._process = psutil.Process()
        self._clock = clock
        self._parts_s = dict.fromkeys(PARTS, 0.0)
        self._started_s = self._last_row_s = self._last_event_s = clock()

    def on_start(self, counters: Counters) -> None:  # noqa: ARG002
        """Begins to measure."""
        self._started_s = self._last_row_s = self._last_event_s = self._clock()

    def on_iteration(self, iteration: Iteration) -> None:
        """Counts the iteration's times; what the loop took beside them since it last said something is logging."""
        passed_s = self._pass()
        for name, seconds in iteration.times_s.items():
            self._parts_s[name if name in self._parts_s else "other"] += seconds
        self._parts_s["other"] += max(iteration.elapsed_s - sum(iteration.times_s.values()), 0.0)
        self._parts_s["logging"] += max(passed_s - iteration.elapsed_s, 0.0)
        now_s = self._last_event_s
        if now_s - self._last_row_s >= _SHARE * (now_s - self._started_s):
            self._write(iteration.counters)

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:  # noqa: ARG002 - told to all alike
        """Counts the time since the loop last said something as that of the checkpoint.

        Before `interrupted` it may have been an iteration that was broken off.
        """
        self._parts_s["other" if folder.name == _INTERRUPTED else "checkpoints"] += self._pass()

    def on_evaluation(self, evaluated: Evaluated) -> None:  # noqa: ARG002
        """Counts the time since the loop last said something as that of the evaluation."""
        self._parts_s["evaluation"] += self._pass()

    def on_end(self, counters: Counters) -> None:
        """Writes what is left to tell as the last row, if anything is, and closes the file."""
        if any(self._parts_s.values()):
            self._write(counters)
        self._log.close()
        if self._gpu is not None:
            self._gpu.close()
            self._gpu = None

    def _pass(self) -> float:
        """Returns the seconds since this was last asked for."""
        now_s = self._clock()
        passed_s, self._last_event_s = now_s - self._last_event_s, now_s
        return passed_s

    def _write(self, counters: Counters) -> None:
        reading = self._gpu.read() if self._gpu is not None else None
        use = "" if reading is None or reading.use is None else f"{reading.use:.2f}"
        memory = "" if reading is None else f"{reading.used_bytes / _MIB:.1f}"
        now_s = self._clock()
        cells = (
            str(counters.iterations),
            str(counters.env_steps),
            f"{now_s - self._started_s:.3f}",
            f"{self._process.memory_info().rss / _MIB:.1f}",
            *(f"{self._parts_s[part]:.4f}" for part in PARTS),
            use,
            memory,
        )
        header = ",".join(COLUMNS) + "\n" if self._log.is_empty else ""
        self._log.append(header + ",".join(cells) + "\n")
        self._last_row_s = now_s
        self._parts_s = dict.fromkeys(PARTS, 0.0)
