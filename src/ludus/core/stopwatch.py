"""Where the time of an iteration goes, on the host and on a CUDA device."""

import time
from collections import defaultdict

import torch


class Stopwatch:
    """Adds up the time between marks by the name of what was done in it.

    On a CUDA device the marks are events in its stream: they cost the host a few microseconds and wait for nothing;
    the times are read when the host has waited for the device anyway.
    """

    def __init__(self, device: torch.device) -> None:
        self._is_cuda = device.type == "cuda"
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._last_s = time.perf_counter()
        self._marks: list[tuple[str, torch.cuda.Event]] = []
        self._spare: list[torch.cuda.Event] = []

    def start(self) -> None:
        """Begin to measure from here."""
        if self._is_cuda:
            self._mark("")
        else:
            self._last_s = time.perf_counter()

    def lap(self, name: str) -> None:
        """Count the time since the last mark for `name`."""
        if self._is_cuda:
            self._mark(name)
            return
        now_s = time.perf_counter()
        self._sums[name] += now_s - self._last_s
        self._last_s = now_s

    def read(self) -> dict[str, float]:
        """Return the seconds by name since the last reading; the device must have done all that was marked."""
        for (_, before), (name, after) in zip(self._marks, self._marks[1:], strict=False):
            if name:
                self._sums[name] += before.elapsed_time(after) / 1000.0
        self._spare += [event for _, event in self._marks]
        self._marks.clear()
        sums = dict(self._sums)
        self._sums.clear()
        return sums

    def _mark(self, name: str) -> None:
        event = self._spare.pop() if self._spare else torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        self._marks.append((name, event))
