"""Plot of the score over the matches of a set: whether an agent adapts to an opponent that it meets again."""

import io
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ludus.core.errors import ConfigError
from ludus.core.files import write_atomic
from ludus.evaluation.evaluate import Evaluation

_DPI = 110
_COLOUR, _FAINT = "#1f6fb4", "0.55"
_MAX_NAMES = 12  # opponents up to which every line has its name
_MAX_LETTERS = 28
_LINE = 0.04  # height of a name, as a share of the axis
_AXES = {"win_rate": "matches won", "mean_return": "mean return", "mean_length": "mean length in steps"}


def plot_by_match(evaluation: Evaluation, path: Path, title: str = "") -> None:
    """Plot an evaluation's score by match number within a set into a PNG file: the mean bold, each opponent faint.

    Args:
        evaluation: An evaluation in sets.
        path: The file.
        title: What is evaluated; the world by default.

    Raises:
        ConfigError: It has no sets.
    """
    if evaluation.gain is None:
        raise ConfigError("there is no score by match number without sets; evaluate with best_of 2 or more")
    figure = Figure(figsize=(8.4, 5.0), dpi=_DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)  # draws into memory, with or without a screen
    axes = figure.subplots()
    score, numbers = evaluation.judged_by, np.arange(1, evaluation.best_of + 1)
    curves = [[row[f"{score}_match_{number}"] for number in numbers] for row in evaluation.rows]
    for curve in curves if len(curves) > 1 else ():
        axes.plot(numbers, curve, color=_FAINT, alpha=0.45, linewidth=1.0)
    estimates, low, high = np.array(evaluation.by_match).T
    errors = np.nan_to_num(np.stack([estimates - low, high - estimates]), posinf=0.0)
    label = "mean of all opponents" if len(curves) > 1 else _shown(evaluation.rows[0])
    axes.errorbar(
        numbers, estimates, yerr=np.maximum(errors, 0.0), color=_COLOUR, linewidth=2.2, marker="o", markersize=5,
        capsize=3, elinewidth=1.3, label=f"{label}, 95 % interval",
    )  # fmt: skip
    if score == "win_rate":
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("match of the set")
    axes.set_ylabel(_AXES[score])
    sets = evaluation.rows[0]["matches"] // evaluation.best_of
    axes.set_title(
        f"{title or evaluation.world}: {_AXES[score]} over a set, {sets} sets per opponent\n"
        f"last minus first match: {gain_text(evaluation)}", loc="left", fontsize=11,
    ).set_parse_math(False)  # fmt: skip
    if 1 < len(curves) <= _MAX_NAMES:
        _name_curves(axes, [(curve[-1], _shown(row)) for row, curve in zip(evaluation.rows, curves, strict=True)])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)
    figure.legend(loc="outside lower center", frameon=False, fontsize=9)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    write_atomic(path, picture.getbuffer())


def _name_curves(axes: Axes, ends: list[tuple[float, str]]) -> None:
    """Write the names of curves beside their ends, as far apart as it takes to read them."""
    low, high = axes.get_ylim()
    least, place = _LINE * (high - low), -np.inf
    for end, name in sorted(ends):
        place = max(end, place + least)
        text = axes.text(
            1.01, place, name, transform=axes.get_yaxis_transform(), va="center", fontsize=8, color="0.4"
        )  # fmt: skip
        text.set_parse_math(False)  # a name with two dollar signs is not a formula


def gain_text(evaluation: Evaluation) -> str:
    """Return the gain over a set with its interval, in percentage points for a win rate."""
    if evaluation.gain is None:
        return ""
    if evaluation.judged_by == "win_rate":
        value, low, high = (100.0 * number for number in evaluation.gain)
        return f"{value:+.1f} points ({low:+.1f} to {high:+.1f})"
    value, low, high = evaluation.gain
    return f"{value:+.2f} ({low:+.2f} to {high:+.2f})"


def _shown(row: dict[str, object]) -> str:
    """Return whom a row is of in ASCII, with mode and side; only the end if it is long, which is where paths differ."""
    text = " ".join(str(row[key]) for key in ("opponent", "mode", "side") if row.get(key))
    plain = text.encode("ascii", "backslashreplace").decode("ascii")
    return plain if len(plain) <= _MAX_LETTERS else f"...{plain[3 - _MAX_LETTERS :]}"
