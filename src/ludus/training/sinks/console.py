"""The console: a live view on a terminal, plain ASCII lines anywhere else."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ludus.training.callbacks import Counters, Evaluated, Iteration, QuietCallback
from ludus.training.sinks.gpu import GpuReader, open_gpu
from ludus.training.sinks.lines import end_line, evaluation_line, message_line, progress_line
from ludus.training.sinks.live_view import render
from ludus.training.sinks.text import plain
from ludus.training.sinks.watch import Watch

_LINE_EVERY_S = 5.0
_VIEW_EVERY_S = 0.25
_DEAREST_SHARE = 0.02  # of the time that drawing may take: a slow terminal is drawn less often


class PlainConsole(QuietCallback):
    """Writes a line every few seconds, and one for each thing that happens."""

    def __init__(
        self,
        watch: Watch,
        stream: TextIO,
        *,
        every_s: float = _LINE_EVERY_S,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._watch, self._stream, self._every_s, self._clock = watch, stream, every_s, clock
        self._next_s = 0.0

    def on_start(self, counters: Counters) -> None:
        """Says what begins or goes on."""
        self._watch.start(counters)
        self._next_s = self._clock() + self._every_s
        self._write(f"[OK] {_start_line(self._watch)}")

    def on_iteration(self, iteration: Iteration) -> None:
        """Says how far the run is, if the last such line is some seconds old."""
        self._watch.iteration(iteration)
        if self._clock() >= self._next_s:
            self._write(progress_line(self._watch))
            self._next_s = self._clock() + self._every_s

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Says how the agent did."""
        self._watch.evaluated(evaluated)
        self._write(f"[OK] {evaluation_line(evaluated)}")

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """Says what was saved."""
        self._watch.saved(folder.name)
        self._write(f"[OK] checkpoint {plain(folder.name)} saved at {counters.env_steps:,} steps")

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """Passes a message on."""
        self._watch.message(level, text, counters)
        self._write(message_line(level, text))

    def on_end(self, counters: Counters) -> None:
        """Says how far it got."""
        if self._watch.counters.env_steps > 0:
            self._write(progress_line(self._watch))
        self._watch.counters = counters
        self._write(f"[OK] {end_line(self._watch)}")

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


class LiveConsole(QuietCallback):
    """Redraws a view in place, at most four times a second; warnings also stay in the scrollback."""

    def __init__(
        self,
        watch: Watch,
        console: Console,
        gpu: GpuReader | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._watch, self._console, self._gpu, self._clock = watch, console, gpu, clock
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=True, redirect_stderr=True)
        self._next_s = 0.0

    def on_start(self, counters: Counters) -> None:
        """Opens the view."""
        self._watch.start(counters)
        self._live.start()
        self._draw()

    def on_iteration(self, iteration: Iteration) -> None:
        """Draws anew if the view is old enough."""
        self._watch.iteration(iteration)
        if self._clock() >= self._next_s:
            self._draw()

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Shows how the agent did."""
        self._watch.evaluated(evaluated)
        self._draw()

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:  # noqa: ARG002
        """Is shown with the next iteration."""
        self._watch.saved(folder.name)

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """Shows warnings and alarms, and writes every message above the view."""
        self._watch.message(level, text, counters)
        self._console.print(Text(message_line(level, text)))

    def on_end(self, counters: Counters) -> None:
        """Draws the last view, which stays, and gives the terminal back."""
        self._watch.counters = counters
        try:
            self._draw()
        finally:
            self._live.stop()
            if self._gpu is not None:
                self._gpu.close()
        self._console.print(Text(f"[OK] {end_line(self._watch)}"))

    def _draw(self) -> None:
        started_s = self._clock()
        self._live.update(render(self._watch, None if self._gpu is None else self._gpu.read()), refresh=True)
        took_s = self._clock() - started_s
        self._next_s = started_s + max(_VIEW_EVERY_S, took_s / _DEAREST_SHARE)


def make_console(
    kind: Literal["auto", "rich", "plain"],
    *,
    title: str,
    total_env_steps: int,
    device: str = "cpu",
    stream: TextIO | None = None,
) -> PlainConsole | LiveConsole:
    """Makes a console; `auto` is the live view if the stream is a terminal that can show it.

    Args:
        kind: Which one.
        title: What is trained.
        total_env_steps: The budget.
        device: Of the run; a GPU's use is shown in the live view.
        stream: Where to write; None is the standard output.
    """
    stream = sys.stdout if stream is None else stream
    watch = Watch(title, total_env_steps)
    console = Console(file=stream, force_terminal=True if kind == "rich" else None, highlight=False, markup=False)
    if kind == "plain" or (kind == "auto" and not (console.is_terminal and not console.is_dumb_terminal)):
        return PlainConsole(watch, stream)
    return LiveConsole(watch, console, open_gpu(device))


def _start_line(watch: Watch) -> str:
    steps, total = watch.counters.env_steps, watch.total_env_steps
    return plain(f"{watch.title}: " + (f"goes on at {steps:,} of {total:,} steps" if steps else f"{total:,} steps"))
