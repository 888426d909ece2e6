"""The GPU's use and memory: read where there is one, quietly nothing where there is none."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ludus.training.loggers.resources import GpuReader, GpuReading, open_gpu


class NoNvidiaError(Exception):
    """What the stand-in for the library raises."""


def library(use: int | None = 50, memory: bool = True) -> Any:
    def rates(handle: str) -> Any:
        if use is None:
            raise NoNvidiaError(handle)
        return SimpleNamespace(gpu=use)

    def memory_info(handle: str) -> Any:
        if not memory:
            raise NoNvidiaError(handle)
        return SimpleNamespace(used=3, total=8)

    def shutdown() -> None:
        raise NoNvidiaError("was closed before")

    return SimpleNamespace(
        NVMLError=NoNvidiaError,
        nvmlDeviceGetUtilizationRates=rates,
        nvmlDeviceGetMemoryInfo=memory_info,
        nvmlShutdown=shutdown,
    )


def test_it_reads_use_and_memory() -> None:
    assert GpuReader(library(), "handle").read() == GpuReading(0.5, 3, 8)


def test_a_driver_that_does_not_tell_the_use_still_tells_the_memory() -> None:
    assert GpuReader(library(use=None), "handle").read() == GpuReading(None, 3, 8)


def test_a_driver_that_stops_answering_is_no_fault() -> None:
    reader = GpuReader(library(memory=False), "handle")
    assert reader.read() is None
    reader.close()


def test_it_asks_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 10.0
    monkeypatch.setattr("ludus.training.loggers.resources.time.monotonic", lambda: now_s)
    nvml = library(use=50)
    reader = GpuReader(nvml, "handle")
    assert reader.read() == GpuReading(0.5, 3, 8)
    nvml.nvmlDeviceGetMemoryInfo = lambda handle: SimpleNamespace(used=4, total=8)  # noqa: ARG005
    now_s = 10.9
    assert reader.read() == GpuReading(0.5, 3, 8)
    now_s = 11.1
    assert reader.read() == GpuReading(0.5, 4, 8)


def test_a_run_on_the_cpu_has_no_gpu() -> None:
    assert open_gpu("cpu") is None


def test_no_gpu_no_reader() -> None:
    assert open_gpu("cuda") is None


def test_no_driver_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml  # type: ignore[import-untyped]

    def init() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(pynvml, "nvmlInit", init)
    assert open_gpu("cuda") is None


@pytest.mark.cuda
def test_the_gpu_that_torch_uses_is_the_one_that_is_read() -> None:
    reader = open_gpu("cuda")
    assert reader is not None
    ballast = torch.zeros(2**30, dtype=torch.uint8, device="cuda")
    reading = reader.read()
    assert reading is not None
    assert reading.used_bytes > ballast.numel()
    assert reading.total_bytes > torch.cuda.get_device_properties("cuda").total_memory * 0.9
    reader.close()
    reader.close()
