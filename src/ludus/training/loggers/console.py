"""The console logger: one line now and then, or a live view where there is a terminal."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ludus.training.callbacks import BaseCallback, Counters, Evaluated, Iteration
from ludus.training.loggers.progress import (
    Clock,
    Watch,
    activity_line,
    duration,
    end_line,
    evaluation_line,
    memory,
    message_line,
    number,
    percent,
    plain,
    progress_line,
)
from ludus.training.loggers.resources import GpuReader, GpuReading, open_gpu

_MOST_OPPONENTS = 8
_TIME_COLOURS = {"simulation": "green", "inference": "cyan", "update": "magenta"}
_LEARNING = {
    "policy_loss": "policy loss", "value_loss": "value loss", "entropy": "entropy", "approx_kl": "KL",
    "clip_fraction": "clipped", "explained_variance": "explained", "gradient_norm": "gradient", "learning_rate": "rate",
}  # fmt: skip


def render(watch: Watch, gpu: GpuReading | None) -> RenderableType:
    """Draw the whole view."""
    columns = Table.grid(padding=(0, 3), expand=True)
    for ratio in (10, 10, 8):
        columns.add_column(ratio=ratio)
    columns.add_row(_speed(watch, gpu), _play(watch), _learning(watch))
    title = Text(plain(watch.title), style="bold")
    if watch.phase:
        title.append(f" - phase {plain(watch.phase)}", style="cyan")
    activity = Text(activity_line(watch), style="cyan")
    return Panel(Group(_progress(watch), activity, columns, *_footer(watch)), title=title, title_align="left")


def _progress(watch: Watch) -> RenderableType:
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(no_wrap=True)
    row.add_column(ratio=1, min_width=10)
    row.add_column(no_wrap=True, justify="right")
    left = f"{duration(watch.left_s)} left" if watch.left_s else ""
    row.add_row(
        Text(f"{100.0 * watch.progress:.1f} %", style="bold"),
        ProgressBar(total=1.0, completed=watch.progress),
        Text(f"{watch.counters.env_steps:,} of {watch.total_env_steps:,} steps  {left}"),
    )
    return row


def _speed(watch: Watch, gpu: GpuReading | None) -> Table:
    table = _pairs("speed")
    table.add_row("steps/s", f"{watch.speed_now:,.0f}")
    table.add_row("average", f"{watch.speed_average:,.0f}")
    for name, share in watch.time_shares.items():
        table.add_row(Text(plain(name), style=_TIME_COLOURS.get(name, "dim")), percent(share))
    table.add_row("elapsed", duration(watch.elapsed_s))
    table.add_row("  training", duration(watch.training_s))
    table.add_row("memory", memory(watch.resident_bytes))
    if gpu is not None:
        table.add_row("GPU", "in use" if gpu.use is None else percent(gpu.use))
        table.add_row("  memory", memory(gpu.used_bytes, gpu.total_bytes))
    return table


def _play(watch: Watch) -> Table:
    rates = watch.recent.rates(_MOST_OPPONENTS)
    table = _pairs("last matches, won" if rates else "last episodes")
    if watch.mean_reward is not None:
        table.add_row("reward", number(watch.mean_reward))
    if watch.mean_length is not None:
        table.add_row("length", f"{watch.mean_length:.0f}")
    for rate in rates:
        colour = "green" if rate.share >= 0.5 else "yellow" if rate.share >= 0.25 else "red"
        table.add_row(plain(rate.name), Text(percent(rate.share), style=colour))
    return table


def _learning(watch: Watch) -> Table:
    table = _pairs("learning")
    table.add_row("iteration", f"{watch.counters.iterations:,}")
    for name, shown in _LEARNING.items():
        if name in watch.metrics:
            table.add_row(shown, number(watch.metrics[name]))
    return table


def _footer(watch: Watch) -> list[RenderableType]:
    lines: list[RenderableType] = [Text()]
    if watch.evaluation is not None:
        best = "" if watch.best_score is None else f" | best {number(watch.best_score)}"
        lines.append(Text(evaluation_line(watch.evaluation) + best))
    if watch.checkpoints:
        lines.append(Text(f"checkpoints: {watch.checkpoints}, last {plain(watch.checkpoint)}", style="dim"))
    for level, text, env_steps in watch.messages:
        style = "bold red" if level == "alarm" else "yellow"
        lines.append(Text(f"{level} at {env_steps:,}: {plain(text)}", style=style))
    return lines if len(lines) > 1 else []


def _pairs(heading: str) -> Table:
    """Make a table of names at the left and numbers at the right."""
    table = Table(box=None, expand=True, padding=0, pad_edge=False, header_style="bold dim")
    table.add_column(heading, no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("", justify="right", no_wrap=True, min_width=7)
    return table


_LINE_EVERY_S = 5.0
_VIEW_EVERY_S = 0.25
_DEAREST_SHARE = 0.02  # of the time that drawing may take: a slow terminal is drawn less often


class PlainConsole(BaseCallback):
    """Writes a line every few seconds, and one for each thing that happens."""

    def __init__(
        self,
        watch: Watch,
        stream: TextIO,
        gpu: GpuReader | None = None,
        *,
        every_s: float = _LINE_EVERY_S,
        clock: Clock = time.perf_counter,
    ) -> None:
        self._watch, self._stream, self._gpu, self._every_s, self._clock = watch, stream, gpu, every_s, clock
        self._next_s = 0.0

    def on_training_start(self, counters: Counters) -> None:
        """Print what starts or resumes."""
        self._watch.start(counters)
        self._next_s = self._clock() + self._every_s
        self._write(f"[OK] {_start_line(self._watch)}")

    def on_iteration(self, iteration: Iteration) -> None:
        """Print how far the run is, if the last such line is some seconds old."""
        self._watch.iteration(iteration)
        self._write_if_old(self._progress)

    def on_activity(self, text: str, share: float | None, counters: Counters) -> None:
        """Say what else the run does, if the last line is some seconds old."""
        self._watch.begin(text, share)
        self._write_if_old(activity_line)

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Print how the agent did."""
        self._watch.evaluated(evaluated)
        self._write(f"[OK] {evaluation_line(evaluated)}")

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """Print what was saved."""
        self._watch.saved(folder.name)
        self._write(f"[OK] checkpoint {plain(folder.name)} saved at {counters.env_steps:,} steps")

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """Pass a message on."""
        self._watch.message(level, text, counters)
        self._write(message_line(level, text))

    def on_training_end(self, counters: Counters) -> None:
        """Print how far it got."""
        if self._watch.counters.env_steps > 0:
            self._write(self._progress(self._watch))
        self._watch.counters = counters
        self._write(f"[OK] {end_line(self._watch)}")
        if self._gpu is not None:
            self._gpu.close()

    def _progress(self, watch: Watch) -> str:
        return progress_line(watch, None if self._gpu is None else self._gpu.read())

    def _write_if_old(self, line: Callable[[Watch], str]) -> None:
        if self._clock() >= self._next_s:
            self._write(line(self._watch))
            self._next_s = self._clock() + self._every_s

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


class LiveConsole(BaseCallback):
    """Redraws a view in place, at most four times per second; warnings also stay in the scrollback."""

    def __init__(
        self, watch: Watch, console: Console, gpu: GpuReader | None = None, clock: Clock = time.perf_counter
    ) -> None:
        self._watch, self._console, self._gpu, self._clock = watch, console, gpu, clock
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=True, redirect_stderr=True)
        self._next_s = 0.0

    def on_training_start(self, counters: Counters) -> None:
        """Open the view."""
        self._watch.start(counters)
        self._live.start()
        self._draw()

    def on_iteration(self, iteration: Iteration) -> None:
        """Redraw if the view is old enough."""
        self._watch.iteration(iteration)
        if self._clock() >= self._next_s:
            self._draw()

    def on_activity(self, text: str, share: float | None, counters: Counters) -> None:
        """Show at once that something else begins, and then how far it is."""
        begins = text != self._watch.activity
        self._watch.begin(text, share)
        if begins or self._clock() >= self._next_s:
            self._draw()

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Show how the agent did."""
        self._watch.evaluated(evaluated)
        self._draw()

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """Is shown with the next iteration."""
        self._watch.saved(folder.name)

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """Show warnings and alarms, and write every message above the view."""
        self._watch.message(level, text, counters)
        self._console.print(Text(message_line(level, text)), soft_wrap=True)

    def on_training_end(self, counters: Counters) -> None:
        """Draw the last view, which stays, and give the terminal back."""
        self._watch.counters = counters
        try:
            self._draw()
        finally:
            self._live.stop()
            if self._gpu is not None:
                self._gpu.close()
        self._console.print(Text(f"[OK] {end_line(self._watch)}"), soft_wrap=True)

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
    """Make a console; `auto` is the live view if the stream is a terminal that can show it.

    The stream is the standard output if it is None. Both show the use of a GPU.
    """
    stream = sys.stdout if stream is None else stream
    watch = Watch(title, total_env_steps)
    console = Console(file=stream, force_terminal=True if kind == "rich" else None, highlight=False, markup=False)
    if kind == "plain" or (kind == "auto" and not (console.is_terminal and not console.is_dumb_terminal)):
        return PlainConsole(watch, stream, open_gpu(device))
    return LiveConsole(watch, console, open_gpu(device))


def _start_line(watch: Watch) -> str:
    steps, total = watch.counters.env_steps, watch.total_env_steps
    return plain(f"{watch.title}: " + (f"resumed at {steps:,} of {total:,} steps" if steps else f"{total:,} steps"))
