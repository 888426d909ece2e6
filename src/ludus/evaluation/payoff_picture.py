"""The payoff matrix as a picture: what each player scored against each other, the strongest first."""

import io
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ludus.core.files import write_atomic
from ludus.evaluation.tournament import Tournament

_COLOURS = "RdBu"  # red for who loses, white for even, blue for who wins
_MOST_LETTERS = 28
_MOST_NUMBERS = 30  # players up to which every cell says its number
_DOTS_AN_INCH = 110


def draw_payoffs(tournament: Tournament, path: Path) -> None:
    """Draws the scores of all pairs, in per cent with draws as half a win, into a PNG file."""
    names = [entrant.name for entrant in tournament.ranking]
    count = len(names)
    scores = np.full((count, count), np.nan)
    for row, first in enumerate(names):
        for column, second in enumerate(names):
            if row != column:
                scores[row, column] = tournament.record(first, second).score
    side = 2.6 + 0.62 * count
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    figure = Figure(figsize=(side + 1.4, side), dpi=_DOTS_AN_INCH, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)  # draws into memory, whatever screen there is
    axes = figure.subplots()
    axes.set_facecolor("0.88")  # who would play against itself
    image = axes.imshow(scores, cmap=_COLOURS, vmin=0.0, vmax=1.0)
    _write_names(axes, names)
    if count <= _MOST_NUMBERS:
        _write_numbers(axes, scores)
    matches = next(iter(tournament.records.values())).matches
    title = f"{tournament.entries.world}: score of the row against the column, %"
    axes.set_title(f"{title}\n{matches} matches a pair, strongest first", loc="left", fontsize=10.5)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, ticks=[0.0, 0.25, 0.5, 0.75, 1.0])
    bar.ax.set_yticklabels(["0 %", "25 %", "50 %", "75 %", "100 %"], fontsize=9)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    write_atomic(path, picture.getbuffer())


def _write_names(axes: Axes, names: list[str]) -> None:
    places = range(len(names))
    axes.set_xticks(places, [_shown(name) for name in names], rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(places, [_shown(name) for name in names])
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_parse_math(False)  # a name with two dollar signs is no formula
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
    """Returns a name in letters that every font has, its end if it is long: that is where paths differ."""
    plain = name.encode("ascii", "backslashreplace").decode("ascii")
    return plain if len(plain) <= _MOST_LETTERS else f"...{plain[3 - _MOST_LETTERS :]}"
