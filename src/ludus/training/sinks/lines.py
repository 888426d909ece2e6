"""One-line descriptions of a run for consoles that are no terminals, for scrollback and for chat."""

from collections.abc import Mapping
from typing import Any

from ludus.core.labels import row_label
from ludus.training.callbacks import Evaluated
from ludus.training.sinks.text import duration, memory, number, percent, plain
from ludus.training.sinks.watch import Watch

_MOST_OPPONENTS = 5
_MARKS = {"info": "[OK]", "warning": "[WARN]", "alarm": "[WARN] alarm:"}


def progress_line(watch: Watch) -> str:
    """Says how far the run is, how fast it goes and how well the agent plays."""
    steps, total = watch.counters.env_steps, watch.total_env_steps
    parts = [
        f"{100.0 * watch.progress:5.1f} %  {steps:,} of {total:,} steps",
        f"{watch.speed_now:,.0f}/s (average {watch.speed_average:,.0f}/s)",
    ]
    if watch.left_s:
        parts.append(f"left {duration(watch.left_s)}")
    if watch.stage:
        parts.append(f"stage {watch.stage}")
    if watch.mean_reward is not None:
        parts.append(f"reward {number(watch.mean_reward)}")
    if watch.mean_length is not None:
        parts.append(f"length {watch.mean_length:.0f}")
    rates = watch.recent.rates(_MOST_OPPONENTS)
    if rates:
        parts.append("wins " + ", ".join(f"{rate.name} {percent(rate.share)}" for rate in rates))
    parts += [
        f"{shown} {number(watch.metrics[name])}"
        for name, shown in (("entropy", "entropy"), ("approx_kl", "KL"))
        if name in watch.metrics
    ]
    if watch.time_shares:
        parts.append("time " + ", ".join(f"{name} {percent(share)}" for name, share in watch.time_shares.items()))
    return plain(" | ".join([*parts, f"memory {memory(watch.resident_bytes)}"]))


def evaluation_line(evaluated: Evaluated) -> str:
    """Says how an evaluation went, opponent by opponent or trial by trial."""
    best = " (best)" if evaluated.is_best else ""
    rows = ", ".join(filter(None, (_row(row, evaluated.judged_by) for row in evaluated.rows)))
    steps = evaluated.counters.env_steps
    return plain(f"evaluation at {steps:,} steps: score {number(evaluated.score)}{best}{': ' if rows else ''}{rows}")


def message_line(level: str, text: str) -> str:
    """Puts the mark of its level before a message; a level that is not known is taken for a warning."""
    return f"{_MARKS.get(level, '[WARN]')} {plain(text)}"


def end_line(watch: Watch) -> str:
    """Says how a session of training ended."""
    best = "" if watch.best_score is None else f", best score {number(watch.best_score)}"
    best += "".join(f", {name} {reached:,}" for name, reached in watch.milestones.items())
    steps, total = watch.counters.env_steps, watch.total_env_steps
    state = "finished" if steps >= total else "stopped"
    return plain(
        f"{watch.title} {state} at {steps:,} of {total:,} steps after {duration(watch.elapsed_s)} "
        f"({watch.speed_average:,.0f} steps/s){best}"
    )


def _row(row: Mapping[str, Any], judged_by: str) -> str:
    text = row_label(row)
    if judged_by != "win_rate":
        value = row.get(judged_by)
        return f"{text} {number(value)}" if text and value is not None else text
    if row.get("win_rate") is not None:
        text += f" {percent(row['win_rate'])}"
    if row.get("win_rate_low") is not None and row.get("win_rate_high") is not None:
        text += f" ({100.0 * row['win_rate_low']:.0f}-{100.0 * row['win_rate_high']:.0f})"
    return text
