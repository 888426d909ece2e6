"""Plot of the payoff matrix: the score of each player against each other, the strongest first."""

import io
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ludus.core.files import write_atomic
from ludus.evaluation.tournament import Tournament

_COLOURS = "RdBu"  # red for a loss, white for even, blue for a win
_MAX_LETTERS = 28
_MAX_NUMBERS = 30  # players up to which every cell shows its number
_DPI = 110


def plot_payoffs(tournament: Tournament, path: Path) -> None:
    """Plot the scores of all pairs, in per cent with draws as half a win, into a PNG file."""
    names = [entry.name for entry in tournament.ranking]
    count = len(names)
    scores = np.full((count, count), np.nan)
    for row, first in enumerate(names):
        for column, second in enumerate(names):
            if row != column:
                scores[row, column] = tournament.record(first, second).score
    side = 2.6 + 0.62 * count
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    figure = Figure(figsize=(side + 1.4, side), dpi=_DPI, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)  # draws into memory, with or without a screen
    axes = figure.subplots()
    axes.set_facecolor("0.88")  # the diagonal
    image = axes.imshow(scores, cmap=_COLOURS, vmin=0.0, vmax=1.0)
    _label_axes(axes, names)
    if count <= _MAX_NUMBERS:
        _write_numbers(axes, scores)
    matches = next(iter(tournament.records.values())).matches
    title = f"{tournament.entries.world}: score of the row against the column, %"
    axes.set_title(f"{title}\n{matches} matches per pair, strongest first", loc="left", fontsize=10.5)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, ticks=[0.0, 0.25, 0.5, 0.75, 1.0])
    bar.ax.set_yticklabels(["0 %", "25 %", "50 %", "75 %", "100 %"], fontsize=9)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    write_atomic(path, picture.getbuffer())


def _label_axes(axes: Axes, names: list[str]) -> None:
    places = range(len(names))
    axes.set_xticks(places, [_shown(name) for name in names], rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(places, [_shown(name) for name in names])
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_parse_math(False)  # a name with two dollar signs is not a formula
        label.set_fontsize(9)
    axes.set_xticks([place - 0.5 for place in places], minor=True)
    axes.set_yticks([place - 0.5 for place in places], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)


def _write_numbers(axes: Axes, scores: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    for (row, column), score in np.ndenumerate(scores):
        if np.isfinite(score):
            colour = "white" if abs(score - 0.5) > 0.28 else "0.1"
            axes.text(column, row, f"{100 * score:.0f}", ha="center", va="center", color=colour, fontsize=9)


def _shown(name: str) -> str:
    """Return a name in ASCII; only its end if it is long, which is where paths differ."""
    plain = name.encode("ascii", "backslashreplace").decode("ascii")
    return plain if len(plain) <= _MAX_LETTERS else f"...{plain[3 - _MAX_LETTERS :]}"
