"""Where the time of an iteration goes, on the host and on a CUDA device."""

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import torch

Marks: TypeAlias = list[tuple[str, torch.cuda.Event]]

_GRAPH = "graph"  # the whole time of a graph, from the mark before it to its last one
# A recorded rollout has four marks per step, and asking CUDA for the time between two takes the host microseconds.
_REPLAYS_PER_READING = 8  # of a graph: in the first of so many all its marks are read, in the others the last one


class Stopwatch:
    """Adds up the time between marks by the name of what was done in it.

    On a CUDA device the marks are events in its stream: they cost the host a few microseconds and wait for nothing;
    the times are read when the host has waited for the device anyway. The time of a CUDA graph is always read; how it
    is divided among its parts, in one of several replays.
    """

    def __init__(self, device: torch.device) -> None:
        self._is_cuda = device.type == "cuda"
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._last_s = time.perf_counter()
        self._marks: Marks = []
        self._recorded: Marks = []  # in the CUDA graph that is being recorded
        self._owned: set[int] = set()  # events of graphs, which record them again in every replay
        self._replays = 0  # of the last graph
        self._shares: dict[str, float] = {}  # of its time, by name, when all its marks were read
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

    def take_recorded(self) -> Marks:
        """Return the marks of a CUDA graph that has been recorded, for `replayed`."""
        marks, self._recorded = self._recorded, []
        self._owned |= {id(event) for _, event in marks}
        self._replays = 0
        return marks

    def replayed(self, marks: Sequence[tuple[str, torch.cuda.Event]]) -> None:
        """Note that a graph with these marks was replayed; it must not be again before the next reading."""
        self._marks += [(_GRAPH, marks[-1][1])] if self._replays % _REPLAYS_PER_READING else marks
        self._replays += 1

    def read(self) -> dict[str, float]:
        """Return the seconds by name since the last reading; the device must have done all that was marked."""
        in_graph: defaultdict[str, float] = defaultdict(float)
        for (_, before), (name, after) in zip(self._marks, self._marks[1:], strict=False):
            passed_s = before.elapsed_time(after) / 1000.0 if name else 0.0
            if name == _GRAPH:
                for part, share in self._shares.items():
                    self._sums[part] += share * passed_s
            elif name:
                self._sums[name] += passed_s
                if id(after) in self._owned:
                    in_graph[name] += passed_s
        if (whole_s := sum(in_graph.values())) > 0.0:
            self._shares = {part: seconds / whole_s for part, seconds in in_graph.items()}
        self._spare += [event for _, event in self._marks if id(event) not in self._owned]
        self._marks.clear()
        sums = dict(self._sums)
        self._sums.clear()
        return sums

    def _mark(self, name: str) -> None:
        if torch.cuda.is_current_stream_capturing():
            event = torch.cuda.Event(enable_timing=True, external=True)  # type: ignore[no-untyped-call]
            event.record()
            self._recorded.append((name, event))
            return
        event = self._spare.pop() if self._spare else torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        self._marks.append((name, event))
