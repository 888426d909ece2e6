"""Use and memory of the GPU that a run is on, read through NVML; quietly nothing where there is none."""

import contextlib
import time
from dataclasses import dataclass
from typing import Any

import torch

_EVERY_S = 1.0  # NVML averages the use over about as long, so asking more often tells nothing new


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What one look at the GPU gave.

    Attributes:
        use: Share of the last second in which a kernel ran, 0 to 1; None where the driver does not tell.
        used_bytes: Memory in use, by all processes.
        total_bytes: Memory there is.
    """

    use: float | None
    used_bytes: int
    total_bytes: int


class GpuReader:
    """Looks at one GPU, at most once a second."""

    def __init__(self, nvml: Any, handle: Any) -> None:  # noqa: ANN401 - the library has no types
        self._nvml, self._handle = nvml, handle
        self._last: GpuReading | None = None
        self._next_s = 0.0

    def read(self) -> GpuReading | None:
        """Returns the last reading, a new one if it is old; None if the driver stopped answering."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + _EVERY_S
            self._last = self._look()
        return self._last

    def close(self) -> None:
        """Lets go of the driver; may be called twice."""
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    def _look(self) -> GpuReading | None:
        try:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handle)
        except self._nvml.NVMLError:
            return None
        use = None
        with contextlib.suppress(self._nvml.NVMLError):  # a slice of a GPU has memory, but no use of its own
            use = self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu / 100.0
        return GpuReading(use, int(memory.used), int(memory.total))


def open_gpu(device: str) -> GpuReader | None:
    """Returns a reader for the GPU that torch calls `device`; None without GPU, driver or library."""
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
