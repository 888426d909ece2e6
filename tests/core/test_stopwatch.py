"""The stopwatch on a CUDA device, with events that say when they were recorded."""

import pytest
import torch

from ludus.core.stopwatch import Stopwatch


class Clock:
    """A device whose time is set by hand."""

    now_ms = 0.0
    is_recording = False
    readings = 0


class Event:
    """Takes the time when it is recorded; one in a graph is recorded again in every replay."""

    def __init__(self, *, enable_timing: bool, external: bool = False) -> None:
        assert enable_timing
        self.at_ms = 0.0

    def record(self) -> None:
        self.at_ms = Clock.now_ms

    def elapsed_time(self, later: "Event") -> float:
        Clock.readings += 1
        return later.at_ms - self.at_ms


def _replay(stopwatch: Stopwatch, marks: list[tuple[str, Event]], lengths_ms: list[float]) -> dict[str, float]:
    """Replay a graph between two marks of 1 ms each and return what was read."""
    stopwatch.start()
    for (_, event), length_ms in zip(marks, lengths_ms, strict=True):
        Clock.now_ms += length_ms
        event.record()
    stopwatch.replayed(marks)  # type: ignore[arg-type]
    Clock.now_ms += 1.0
    stopwatch.lap("update")
    return stopwatch.read()


def test_the_time_of_a_graph_is_divided_as_when_all_its_marks_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: Clock.is_recording)
    stopwatch = Stopwatch(torch.device("cuda"))
    Clock.is_recording = True
    for name in ("inference", "simulation", "inference", "simulation"):
        stopwatch.lap(name)
    Clock.is_recording = False
    marks = stopwatch.take_recorded()
    for replay in range(17):
        Clock.readings = 0
        is_whole = replay % 8 == 0
        read = _replay(stopwatch, marks, [1.0, 3.0, 1.0, 5.0] if is_whole else [4.0, 4.0, 4.0, 8.0])  # type: ignore[arg-type]
        assert Clock.readings == (5 if is_whole else 2)
        # Of 10 ms, 2 are inference; of the 20 ms of the other replays, likewise one part in five.
        expected = (0.002, 0.008) if is_whole else (0.004, 0.016)
        assert (read["inference"], read["simulation"]) == pytest.approx(expected)
        assert read["update"] == pytest.approx(0.001)
