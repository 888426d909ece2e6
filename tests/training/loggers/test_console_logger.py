"""The console: plain lines that are few and ASCII, a live view that is cheap and gives the terminal back."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ludus.training.callbacks import Counters, Evaluated, Iteration
from ludus.training.loggers.console import LiveConsole, PlainConsole, make_console, render
from ludus.training.loggers.progress import Watch
from ludus.training.loggers.resources import GpuReader

Clock = Any
TOTAL = 10_000


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


class SlowWatchClock:
    """A clock that moves by a fixed time whenever it is looked at."""

    def __init__(self, tick_s: float) -> None:
        self._now_s, self._tick_s = 0.0, tick_s

    def __call__(self) -> float:
        self._now_s += self._tick_s
        return self._now_s


def make_plain(clock: Clock) -> tuple[PlainConsole, io.StringIO]:
    stream = io.StringIO()
    return PlainConsole(Watch("duel, seed 0", TOTAL, clock), stream, every_s=5.0, clock=clock), stream


def screen(width: int) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, width=width, height=40, force_terminal=True, color_system=None), stream


def test_plain_lines_tell_everything_in_ascii(
    clock: Clock,
    make_iteration: Callable[..., Iteration],
    make_evaluated: Callable[..., Evaluated],
) -> None:
    console, stream = make_plain(clock)
    console.on_training_start(Counters())
    clock.now_s += 5.0
    console.on_iteration(make_iteration(1, phase="first", seconds=5.0))
    console.on_evaluation(make_evaluated(1, 0.8))
    console.on_checkpoint(Path("run/checkpoints/step-1"), Counters(1000, 1, 8))
    console.on_message("info", "phase 'first' done", Counters(1000, 1, 8))
    console.on_message("warning", "disk is full \u2713\nnext line", Counters(1000, 1, 8))
    console.on_message("alarm", "no progress", Counters(1000, 1, 8))
    console.on_training_end(Counters(1000, 1, 8))
    lines = stream.getvalue().splitlines()
    progress = (
        r"10\.0 % 1,000 of 10,000 steps \| 200/s \(average 200/s\) \| left 45 s \| phase first \| reward 0\.3333 \| "
        r"length 100 \| wins based 50 %, random 100 % \| entropy 2 \| KL 0\.01 \| "
        r"time simulation 40 %, inference 20 %, update 30 %, other 10 % \| memory \d+\.\d GiB"
    )
    assert lines[0] == "[OK] duel, seed 0: 10,000 steps"
    assert re.fullmatch(progress, lines[1]), lines[1]
    assert lines[2:7] == [
        "[OK] evaluation at 1,000 steps: score 0.8 (best): based 80 % (67-89)",
        "[OK] checkpoint step-1 saved at 1,000 steps",
        "[OK] phase 'first' done",
        "[WARN] disk is full \\u2713 next line",
        "[WARN] alarm: no progress",
    ]
    assert re.fullmatch(progress, lines[7])
    ended = "stopped at 1,000 of 10,000 steps after 5.0 s, of which training 5.0 s (200 steps/s), best score 0.8"
    assert lines[8] == f"[OK] duel, seed 0 {ended}"
    assert len(lines) == 9
    assert stream.getvalue().isascii()


@pytest.mark.parametrize(("use", "shown"), [(93, "GPU 93 %, 2.0 of 140 GiB"), (None, "GPU 2.0 of 140 GiB")])
def test_plain_lines_show_the_gpu(
    clock: Clock, make_iteration: Callable[..., Iteration], use: int | None, shown: str
) -> None:
    stream = io.StringIO()
    nvml = FakeNvml(use=use, used=2 * 2**30, total=140 * 2**30)
    console = PlainConsole(Watch("duel", TOTAL, clock), stream, GpuReader(nvml, "handle"), every_s=5.0, clock=clock)
    console.on_training_start(Counters())
    clock.now_s += 5.0
    console.on_iteration(make_iteration(1))
    console.on_training_end(Counters(1000, 1, 8))
    progress = [line for line in stream.getvalue().splitlines() if " of 10,000 steps |" in line]
    assert len(progress) == 2
    assert all(line.endswith(f" GiB | {shown}") for line in progress), progress
    assert nvml.is_shut_down


def test_plain_progress_comes_every_few_seconds_only(clock: Clock, make_iteration: Callable[..., Iteration]) -> None:
    console, stream = make_plain(clock)
    console.on_training_start(Counters(500))
    for number in range(1, 101):  # 10 s
        clock.now_s += 0.1
        console.on_iteration(make_iteration(number))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[OK] duel, seed 0: resumed at 500 of 10,000 steps"
    assert len(lines) in (2, 3)  # one at 5 s, one at 10 s if the sum of a hundred tenths reaches it


def test_the_live_view_shows_everything_and_fits(
    clock: Clock,
    make_iteration: Callable[..., Iteration],
    make_evaluated: Callable[..., Evaluated],
) -> None:
    watch = Watch("duel [red]x[/red]\x1b[2J", TOTAL, clock)
    watch.start(Counters())
    clock.now_s += 5.0
    watch.iteration(make_iteration(1, phase="first", seconds=5.0))
    watch.evaluated(make_evaluated(1, 0.8))
    watch.saved("step-1")
    watch.message("alarm", "no progress", Counters(1000))
    fake = FakeNvml(use=93, used=2 * 2**30, total=140 * 2**30)
    for width in (80, 120):
        console, stream = screen(width)
        console.print(render(watch, GpuReader(fake, "handle").read()))
        text = stream.getvalue()
        for expected in (
            "duel [red]x[/red]\\x1b[2J - phase first", "10.0 %", "1,000 of 10,000 steps  45 s left", "200",
            "simulation", "40 %", "based", "50 %", "random", "100 %", "policy loss", "-0.01", "entropy", "KL",
            "evaluation at 1,000 steps: score 0.8 (best): based 80 % (67-89) | best 0.8",
            "checkpoints: 1, last step-1", "alarm at 1,000: no progress", "GPU", "93 %", "2.0 of 140 GiB", "GiB",
        ):  # fmt: skip
            assert expected in text, expected
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) == width
        assert len(text.splitlines()) < 24


def test_the_live_view_is_drawn_at_most_four_times_a_second(
    clock: Clock, make_iteration: Callable[..., Iteration]
) -> None:
    console, stream = screen(100)
    logger = LiveConsole(Watch("duel", TOTAL, clock), console, clock=clock)
    logger.on_training_start(Counters())
    draws = stream.getvalue().count("duel")
    assert draws == 1
    for number in range(1, 101):  # 2 s; drawing takes no time by this clock
        clock.now_s += 0.02
        logger.on_iteration(make_iteration(number))
    assert 7 <= stream.getvalue().count("duel") - draws <= 8
    logger.on_training_end(Counters(10_000, 10, 80))
    assert "100.0 %" in stream.getvalue()
    last = stream.getvalue().splitlines()[-1].rpartition("\x1b[?25h")[2]
    assert last == "[OK] duel finished at 10,000 of 10,000 steps after 2.0 s, of which training 50 s (200 steps/s)"


def test_a_slow_terminal_is_drawn_less_often(make_iteration: Callable[..., Iteration]) -> None:
    console, stream = screen(100)
    logger = LiveConsole(Watch("duel", TOTAL, lambda: 0.0), console, clock=SlowWatchClock(0.1))  # 0.1 s for a drawing
    logger.on_training_start(Counters())
    for number in range(1, 101):  # at least 10 s: the rule of 2 % allows one in 5 s
        logger.on_iteration(make_iteration(number))
    assert 2 <= stream.getvalue().count("duel") <= 4


def test_messages_stay_in_the_scrollback_and_the_cursor_comes_back(clock: Clock) -> None:
    console, stream = screen(100)
    logger = LiveConsole(Watch("duel", TOTAL, clock), console, clock=clock)
    logger.on_training_start(Counters())
    logger.on_message("warning", "slow disk", Counters())
    logger.on_training_end(Counters())
    text = stream.getvalue()
    assert "[WARN] slow disk" in text
    assert text.index("\x1b[?25l") < text.index("\x1b[?25h"), "the cursor was hidden and is shown again"


@pytest.mark.parametrize(
    ("kind", "stream", "term", "expected"),
    [
        ("auto", io.StringIO(), "xterm", PlainConsole),
        ("auto", Terminal(), "xterm", LiveConsole),
        ("auto", Terminal(), "dumb", PlainConsole),
        ("plain", Terminal(), "xterm", PlainConsole),
        ("rich", io.StringIO(), "xterm", LiveConsole),
    ],
)
def test_which_console_it_is(
    kind: Any, stream: io.StringIO, term: str, expected: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", term)
    assert type(make_console(kind, title="duel", total_env_steps=TOTAL, stream=stream)) is expected


class FakeNvml:
    """Stands in for the driver's library."""

    class NVMLError(Exception):
        """What it raises."""

    def __init__(self, use: int | None, used: int, total: int) -> None:
        self._use, self.used, self.total = use, used, total
        self.is_shut_down = False

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> "FakeNvml":  # noqa: N802
        if handle != "handle":
            raise self.NVMLError
        return self

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:  # noqa: N802
        if self._use is None:
            raise self.NVMLError(handle)
        return type("Rates", (), {"gpu": self._use})

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.is_shut_down = True


def test_an_evaluation_is_shown_with_its_progress(
    clock: Clock, make_iteration: Callable[..., Iteration], make_evaluated: Callable[..., Evaluated]
) -> None:
    plain, lines = make_plain(clock)
    console, stream = screen(100)
    live = LiveConsole(Watch("duel", TOTAL, clock), console, clock=clock)
    for logger in (plain, live):
        logger.on_training_start(Counters())
        logger.on_iteration(make_iteration(10))
        logger.on_activity("evaluation, 50 matches", 0.0, Counters(10_000))
    assert "evaluation, 50 matches: 0 %" in stream.getvalue()
    for share in (0.25, 0.5, 0.75):
        clock.now_s += 3.0
        for logger in (plain, live):
            logger.on_activity("evaluation, 50 matches", share, Counters(10_000))
        left = f"evaluation, 50 matches: {share:.0%}".replace("%", f" %, {3.0 / 0.25 * (1 - share):.1f} s left")
        assert left in stream.getvalue()
    assert [line for line in lines.getvalue().splitlines() if line.startswith("evaluation,")] == [
        "evaluation, 50 matches: 50 %, 6.0 s left"  # a line every five seconds
    ]
    drawn = stream.tell()
    for logger in (plain, live):
        logger.on_evaluation(make_evaluated(10, 0.5))
    assert "matches: " not in stream.getvalue()[drawn:]
    assert ": 75 %" not in stream.getvalue()[drawn:]
    live.on_training_end(Counters(10_000))
