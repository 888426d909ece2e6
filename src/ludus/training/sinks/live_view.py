"""The live view of a run in a terminal, drawn with rich: a picture of what a `Watch` knows."""

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ludus.training.sinks.gpu import GpuReading
from ludus.training.sinks.lines import evaluation_line
from ludus.training.sinks.text import duration, memory, number, percent, plain
from ludus.training.sinks.watch import Watch

_MOST_OPPONENTS = 8
_TIME_COLOURS = {"simulation": "green", "inference": "cyan", "update": "magenta"}
_LEARNING = (
    ("policy_loss", "policy loss"),
    ("value_loss", "value loss"),
    ("entropy", "entropy"),
    ("approx_kl", "KL"),
    ("clip_fraction", "clipped"),
    ("explained_variance", "explained"),
    ("gradient_norm", "gradient"),
    ("learning_rate", "rate"),
)


def render(watch: Watch, gpu: GpuReading | None) -> RenderableType:
    """Draws the whole view."""
    columns = Table.grid(padding=(0, 3), expand=True)
    for ratio in (10, 10, 8):
        columns.add_column(ratio=ratio)
    columns.add_row(_speed(watch, gpu), _play(watch), _learning(watch))
    title = Text(plain(watch.title), style="bold")
    if watch.stage:
        title.append(f" - stage {plain(watch.stage)}", style="cyan")
    return Panel(Group(_progress(watch), Text(), columns, *_footer(watch)), title=title, title_align="left")


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
    for name, shown in _LEARNING:
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
    """Makes a table of names at the left and numbers at the right."""
    table = Table(box=None, expand=True, padding=0, pad_edge=False, header_style="bold dim")
    table.add_column(heading, no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("", justify="right", no_wrap=True, min_width=7)
    return table
