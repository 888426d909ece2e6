"""training_curves.png: how a run went, in one picture, drawn from the run's files alone."""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.files import write_atomic
from ludus.core.tables import Numbers, Table, phase_starts, read_table, row_labels
from ludus.training.callbacks import BaseCallback, Counters
from ludus.training.loggers.progress import group_opponents

# Matplotlib is imported when a picture is drawn, at the end of a run, rather than while a user waits for its start.
if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 400  # a curve in a picture shows no more
_MOST_PIECES = 80
_ROWS_A_PIECE = 10  # at least, where there are enough: quantiles of fewer say little


@dataclass(frozen=True, slots=True)
class CurveData:
    """Everything that is drawn; see `read_run` for the files."""

    metrics: Table
    episodes: Table
    terms: Table
    evaluations: Table
    opponents: Table


def read_run(folder: Path) -> CurveData:
    """Read the files of a run folder."""
    return CurveData(
        metrics=read_table(folder / "metrics.jsonl"),
        episodes=read_table(folder / "monitor.csv"),
        terms=read_table(folder / "reward_breakdown.csv"),
        evaluations=read_table(folder / "evaluation_results.csv"),
        opponents=read_table(folder / "opponents.csv"),
    )


# Okabe and Ito's colours, which people with other colour vision tell apart too, and four darker ones.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F", "#B8A800",
    "#004B76", "#8A4F00", "#00573F", "#7A2E5D",
)  # fmt: skip


_LEGEND_COLUMNS = 5
_DASHES = ("-", (0, (4, 1.5)))  # each colour serves two curves
MOST_CURVES = len(COLOURS) * len(_DASHES)  # that can be told apart


def look(index: int) -> dict[str, Any]:
    """Return colour and line style of the curve at a place among up to `MOST_CURVES`, for `Axes.plot`."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": _DASHES[index // len(COLOURS) % len(_DASHES)]}


def style(axes: "Axes", title: str, has_data: bool) -> None:
    """Style a panel; one without data says so."""
    from matplotlib.ticker import EngFormatter

    # With y given, Matplotlib does not look for the highest tick label before it draws the title.
    axes.set_title(title, loc="left", y=1.0, fontsize=11, fontweight="bold", pad=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("0.5")
    axes.tick_params(colors="0.3", labelsize=8.5)
    if not has_data:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center", color="0.6")
        return
    axes.grid(color="0.9", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.margins(x=0.02)


def style_twins(axes: "Axes", twins: Sequence["Axes"]) -> None:
    """Colour the left and the right axis like their curves."""
    for twin in twins:
        twin.spines[["top", "left", "bottom"]].set_visible(False)
        twin.spines["right"].set_color("0.5")
        for one, side in ((axes, "left"), (twin, "right")):
            colour = one.get_lines()[0].get_color()
            one.tick_params(axis="y", colors=colour, labelsize=8.5)
            one.spines[side].set_color(colour)


def mark_phases(axes: "Axes", starts: Sequence[tuple[float, str]], *, with_names: bool) -> None:
    """Draw where phases of the curriculum begin; the first one needs no line."""
    for index, (step, name) in enumerate(starts):
        if index:
            axes.axvline(step, color="0.55", linewidth=0.9, linestyle=(0, (2, 2)))
        if with_names:
            axes.annotate(
                name, (step, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -2), textcoords="offset points",
                va="top", fontsize=8, color="0.35",
            )  # fmt: skip


def legend(axes: "Axes", others: Sequence["Axes"] = ()) -> None:
    """Name the curves of a panel beside it, if there are several."""
    handles, labels = axes.get_legend_handles_labels()
    for other in others:
        more_handles, more_labels = other.get_legend_handles_labels()
        handles, labels = handles + more_handles, labels + more_labels
    if len(labels) > 1:
        axes.legend(
            handles, labels, loc="upper left", ncols=_LEGEND_COLUMNS, fontsize=8, frameon=False, borderaxespad=0.0,
            handlelength=2.2, columnspacing=1.2,
        )  # fmt: skip


_MOST_BANDS = 6  # of more curves, intervals would cover each other
_WINDOW_MATCHES = 200
_OTHERS = "others"
_SCORES = {"win_rate": "matches won", "mean_return": "return", "mean_length": "steps"}  # and their names on the axis


def draw_win_rates(axes: "Axes", data: CurveData) -> bool:
    """Share of matches won against each opponent in training."""
    steps, outcomes = data.episodes.numbers("env_steps"), data.episodes.texts("outcome")
    if not np.isin(outcomes, ("won", "lost")).any():  # a world without winners
        return False
    groups = opponent_groups(data)
    met = np.array([groups.get(str(name), "") for name in data.episodes.texts("opponent")], dtype=np.str_)
    for index, name in enumerate(_group_names(groups)):
        rows = (met == name) & (outcomes != "")
        window = min(max(int(rows.sum()) // 15, 10), _WINDOW_MATCHES)
        x, y = moving_average(steps[rows], (outcomes[rows] == "won").astype(np.float64), window)
        _line(axes, (x, y), look(index), name)
    _as_share(axes)
    return bool(groups)


def draw_terms(axes: "Axes", data: CurveData) -> bool:
    """Draw what each reward term gives; if there are too many, the largest ones by their size."""
    steps = data.terms.numbers("env_steps")
    names = [name for name in data.terms.names if name not in ("iteration", "env_steps", "total")]
    values = {name: data.terms.numbers(name) for name in names}
    sizes = {name: float(np.nanmean(np.abs(v))) for name, v in values.items() if np.isfinite(v).any()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:MOST_CURVES]
    for index, name in enumerate(name for name in names if name in largest):
        _line(axes, moving_average(steps, values[name], _window(steps)), look(index), name)
    _note_left_out(axes, len(sizes) - len(largest), "smaller")
    if largest and "total" in data.terms.names:
        total = moving_average(steps, data.terms.numbers("total"), _window(steps))
        axes.plot(*total, color="black", label="total", linewidth=1.8, linestyle=(0, (4, 1.5)))
    if largest:
        axes.axhline(0.0, color="0.6", linewidth=0.8)
    return bool(largest)


def draw_evaluations(axes: "Axes", data: CurveData) -> bool:
    """Share of evaluation matches won against each opponent, or else the score, in each scenario."""
    table, groups = data.evaluations, opponent_groups(data)
    outcome = judged_by(table)
    steps, rates = table.numbers("env_steps"), table.numbers(outcome)
    low, high = table.numbers(f"{outcome}_low"), table.numbers(f"{outcome}_high")
    opponents = row_labels(table)
    order = [*_group_names(groups), *dict.fromkeys(opponents.tolist())]
    looks = {name: look(index) for index, name in enumerate(dict.fromkeys(order))}  # as in the panel of the training
    known = {name: rows for name in looks if (rows := (opponents == name) & np.isfinite(rates)).any()}
    lowest = sorted(known, key=lambda name: float(rates[known[name]][-1]))[:MOST_CURVES]
    for name in (name for name in known if name in lowest):
        rows = known[name]
        if len(lowest) <= _MOST_BANDS:
            axes.fill_between(steps[rows], low[rows], high[rows], color=looks[name]["color"], alpha=0.15, linewidth=0)
        axes.plot(steps[rows], rates[rows], **looks[name], label=name, marker="o", markersize=3, linewidth=1.4)
    _note_left_out(axes, len(known) - len(lowest), "higher")
    if known:
        axes.set_ylabel(_SCORES.get(outcome, outcome), fontsize=9, color="0.3")
    if known and outcome == "win_rate":
        _as_share(axes)
    return bool(known)


def draw_score(axes: "Axes", data: CurveData) -> bool:
    """The score by which the best agent is kept."""
    steps, scores = data.evaluations.numbers("env_steps"), data.evaluations.numbers("score")
    known = np.isfinite(scores) & np.isfinite(steps)
    when, first = np.unique(steps[known], return_index=True)
    score = scores[known][first]
    if len(when):
        axes.plot(when, score, color=COLOURS[0], label="score", marker="o", markersize=3, linewidth=1.6)
        top = int(np.argmax(score))
        axes.plot(when[top], score[top], color=COLOURS[5], label="highest", marker="*", markersize=12, linestyle="none")
    return bool(len(when))


def draw_update(axes: "Axes", data: CurveData) -> bool:
    """Draw how well values explain returns, and how much was clipped."""
    drawn = _draw_twins(axes, data, {"explained_variance": "explained variance", "clip_fraction": "clipped"})
    if _has(data, "explained_variance") and axes.get_ylim()[0] < -1.0:
        axes.set_ylim(-1.0, 1.05)  # before anything is learned it can be any number below zero
    return drawn


def opponent_groups(data: CurveData) -> dict[str, str]:
    """Return for each opponent of the episodes the curve it belongs to.

    Bots have curves of their own. Snapshots share one, and so do those met least often if there are too many.
    """
    names, counts = np.unique(data.episodes.texts("opponent"), return_counts=True)
    met = {str(name): int(count) for name, count in zip(names, counts, strict=True) if name}
    kinds = dict(zip(data.opponents.texts("opponent").tolist(), data.opponents.texts("kind").tolist(), strict=True))
    groups = group_opponents(met, kinds)
    sizes: dict[str, int] = {}
    for name, group in groups.items():
        sizes[group] = sizes.get(group, 0) + met[name]
    own = sorted(sizes, key=lambda group: (-sizes[group], group))
    if len(own) > MOST_CURVES:
        kept = set(own[: MOST_CURVES - 1])
        others = f"{_OTHERS} ({len(own) - len(kept)})"
        groups = {name: group if group in kept else others for name, group in groups.items()}
    return groups


def judged_by(table: Table) -> str:
    """Return the column of an evaluation that is drawn: the win rate, or else the one that the score is made of."""
    candidates = [*_SCORES, *(name for name in table.names if name not in ("iteration", "env_steps", "score"))]
    known = [name for name in candidates if np.isfinite(table.numbers(name)).any()]
    trials, scores = table.texts("trial"), table.numbers("score")
    first = trials == trials[0] if len(trials) else np.zeros(0, np.bool_)
    same = (name for name in known if np.array_equal(table.numbers(name)[first], scores[first]))
    fallback = known[0] if known else "win_rate"
    return "win_rate" if "win_rate" in known else next(same, fallback)


def _draw_episodes(axes: "Axes", data: CurveData, column: str, metric: str, colour: str) -> bool:
    """Draw the mean, and the middle 80 % of the episodes."""
    x, mean, low, high = band(data.episodes.numbers("env_steps"), data.episodes.numbers(column))
    if not len(x):
        return _draw_metrics(axes, data, [(metric, column, colour)])
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0, label="80 % of the episodes")
    _line(axes, (x, mean), {"color": colour}, "mean")
    return True


def _draw_twins(axes: "Axes", data: CurveData, kinds: Mapping[str, str]) -> bool:
    """Draw two kinds of metrics, by column and name: the first on the left axis, the other on the right one.

    A kind has a curve per mode, as `rating_elo/1v1`.
    """
    drawn = False
    for first, (kind, title) in zip((0, 5), kinds.items(), strict=True):
        names = [name for name in data.metrics.names if name.partition("/")[0] == kind and _has(data, name)]
        shown = [
            (name, " ".join([title, *name.split("/")[1:]]), COLOURS[(first + index) % len(COLOURS)])
            for index, name in enumerate(names)
        ]
        drawn = _draw_metrics(axes.twinx() if drawn and names else axes, data, shown) or drawn
    return drawn


def _draw_metrics(axes: "Axes", data: CurveData, curves: Sequence[tuple[str, str, str]]) -> bool:
    drawn = [(name, label, colour) for name, label, colour in curves if _has(data, name)]
    for name, label, colour in drawn:
        steps, values = data.metrics.numbers("env_steps"), data.metrics.numbers(name)
        window = _window(steps)
        if window > 1:
            axes.plot(*moving_average(steps, values, 1), color=colour, alpha=0.25, linewidth=0.8)
        _line(axes, moving_average(steps, values, window), {"color": colour}, label)
    return bool(drawn)


def _note_left_out(axes: "Axes", count: int, which: str) -> None:
    """Say in the legend how many curves are not drawn; they are those of higher or smaller values."""
    if count:
        axes.plot([], [], " ", label=f"{count} {which} ones not drawn")


def _line(axes: "Axes", points: tuple[Numbers, Numbers], style: Mapping[str, Any], label: str) -> None:
    """Draw a curve; one of few points has them marked, as a single one would not be seen."""
    marker = "o" if len(points[0]) < 8 else None
    axes.plot(*points, **style, label=label, linewidth=1.6, marker=marker, markersize=3.5)


def _has(data: CurveData, name: str) -> bool:
    return "env_steps" in data.metrics and bool(np.isfinite(data.metrics.numbers(name)).any())


def _group_names(groups: dict[str, str]) -> list[str]:
    """Return the curves in an order that does not change from picture to picture; the leftovers last."""
    return sorted(set(groups.values()), key=lambda name: (name.startswith(f"{_OTHERS} ("), name))


def _window(steps: Numbers) -> int:
    return max(len(steps) // 25, 1)


def _as_share(axes: "Axes") -> None:
    from matplotlib.ticker import PercentFormatter

    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


FILE = "training_curves.png"
_SIZE_INCHES, _DOTS_AN_INCH, _COLUMNS = (15.5, 21.0), 110, 2
_TOP_INCHES, _BOTTOM_INCHES, _SIDE_INCHES, _BETWEEN_INCHES = 0.4, 0.3, 0.65, 1.3
_TITLE_INCHES, _TICKS_INCHES, _LEGEND_INCHES = 0.4, 0.32, 0.18  # above a panel, below it, and per row of its legend

Draw: TypeAlias = Callable[["Axes", CurveData], bool]

draw_reward = partial(_draw_episodes, column="r", metric="episode_return", colour=COLOURS[0])
draw_length = partial(_draw_episodes, column="l", metric="episode_length", colour=COLOURS[2])
draw_losses = partial(_draw_twins, kinds={"policy_loss": "policy loss", "value_loss": "value loss"})
draw_entropy = partial(_draw_twins, kinds={"entropy": "entropy", "approx_kl": "KL divergence"})
draw_ratings = partial(_draw_twins, kinds={"rating_elo": "Elo", "rating_openskill": "openskill"})

PANELS: tuple[tuple[str, Draw], ...] = (
    ("Reward per episode", draw_reward),
    ("Episode length, steps", draw_length),
    ("Matches won in training", draw_win_rates),
    ("Reward terms", draw_terms),
    ("Evaluation by opponent or scenario", draw_evaluations),
    ("Evaluation score", draw_score),
    ("Elo and openskill rating in training", draw_ratings),
    ("Losses", draw_losses),
    ("Entropy and KL divergence", draw_entropy),
    ("Explained variance and clipping", draw_update),
)


class CurvesLogger(BaseCallback):
    """Draws the picture when training ends."""

    def __init__(self, run_folder: Path) -> None:
        self._run_folder = run_folder

    def on_training_end(self, counters: Counters) -> None:
        """Draw it, also after an error or a stop."""
        draw_curves(self._run_folder)


def draw_curves(run_folder: Path) -> Path:
    """Draw `training_curves.png` from the tables in a run folder and return its path; any of them may be missing."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = read_run(run_folder)
    figure = Figure(figsize=_SIZE_INCHES, dpi=_DOTS_AN_INCH, facecolor="white")
    FigureCanvasAgg(figure)  # draws into memory, whatever screen there is
    figure.suptitle(_title(run_folder, data), x=0.01, y=0.99, ha="left", va="top", fontsize=14, fontweight="bold")
    figure.supxlabel("environment steps", y=0.005, fontsize=9.5, color="0.3")
    starts = phase_starts(data.episodes)
    grid = figure.subplots(len(PANELS) // _COLUMNS, _COLUMNS)
    for axes, (title, draw) in zip(grid.flat, PANELS, strict=True):
        _draw_panel(axes, title, draw, data, starts)
    _place_panels(grid)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    path = run_folder / FILE
    write_atomic(path, picture.getbuffer())
    return path


def _place_panels(grid: NDArray[Any]) -> None:
    """Give all panels the same height and room below each row for its legends.

    The layout engines of Matplotlib draw everything twice to measure it, which takes longer than drawing.
    """
    width, height = _SIZE_INCHES
    below = [_TICKS_INCHES + _LEGEND_INCHES * max(_legend_rows(axes) for axes in row) for row in grid]
    panel = (height - _TOP_INCHES - _BOTTOM_INCHES - sum(below) - _TITLE_INCHES * len(grid)) / len(grid)
    across = (width - 2 * _SIDE_INCHES - _BETWEEN_INCHES * (_COLUMNS - 1)) / _COLUMNS
    top = height - _TOP_INCHES
    for row, used in zip(grid, below, strict=True):
        top -= _TITLE_INCHES + panel
        for column, axes in enumerate(row):
            left = _SIDE_INCHES + column * (across + _BETWEEN_INCHES)
            for twin in axes.get_shared_x_axes().get_siblings(axes):
                twin.set_position((left / width, top / height, across / width, panel / height))
            if (names := axes.get_legend()) is not None:
                names.set_bbox_to_anchor((0.0, -_TICKS_INCHES / panel), axes.transAxes)
        top -= used


def _legend_rows(axes: "Axes") -> int:
    names = axes.get_legend()
    return 0 if names is None else math.ceil(len(names.get_texts()) / _LEGEND_COLUMNS)


def _draw_panel(axes: "Axes", title: str, draw: Draw, data: CurveData, phases: Sequence[tuple[float, str]]) -> None:
    has_data = draw(axes, data)
    twins = [twin for twin in axes.get_shared_x_axes().get_siblings(axes) if twin is not axes]
    style(axes, title, has_data)
    style_twins(axes, twins)
    legend(axes, twins)
    if has_data:
        axes.set_xlim(0.0, 1.01 * max(_last_step(data), 1.0))  # the last point is not cut in half
        mark_phases(axes, phases, with_names=draw is draw_reward)


def _last_step(data: CurveData) -> float:
    tables = (data.episodes, data.terms, data.evaluations, data.metrics)
    columns = [table.numbers("env_steps") for table in tables]
    return max((float(np.nanmax(column)) for column in columns if np.isfinite(column).any()), default=0.0)


def _title(run_folder: Path, data: CurveData) -> str:
    parts = [run_folder.resolve().name, f"{_last_step(data):,.0f} steps"]
    if len(data.episodes):
        parts.append(f"{len(data.episodes):,} episodes")
    return "   ".join(parts)


def moving_average(steps: Numbers, values: Numbers, window: int) -> tuple[Numbers, Numbers]:
    """Return steps and the mean of the `window` finite values around each; thinned out to what a picture shows.

    Steps `(rows,)` rise; of rows with the same step one point is made. At the ends the window holds fewer rows.
    """
    steps, values = _known(steps, values)
    count = len(values)
    if count == 0:
        return steps, values
    sums = np.concatenate([[0.0], np.cumsum(values)])
    rows = np.arange(count)
    starts, ends = np.maximum(rows - window // 2, 0), np.minimum(rows + (window + 1) // 2, count)
    means = (sums[ends] - sums[starts]) / (ends - starts)
    distinct, place, rows_a_step = np.unique(steps, return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=means) / rows_a_step
    shown = np.unique(np.linspace(0, len(distinct) - 1, min(len(distinct), _MOST_POINTS)).round().astype(np.int64))
    return distinct[shown], means[shown]


def band(steps: Numbers, values: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Cut rows into pieces; return each one's mean step, mean, 10 % and 90 % quantile, without NaN.

    Steps `(rows,)` rise; rows with the same step stay together.
    """
    steps, values = _known(steps, values)
    firsts = np.unique(steps, return_index=True)[1]
    count = min(len(firsts), _MOST_PIECES, max(len(values) // _ROWS_A_PIECE, 5))
    if count == 0:
        return steps, values, values, values
    cuts = [int(piece[0]) for piece in np.array_split(firsts, count)][1:]
    step_pieces, value_pieces = np.split(steps, cuts), np.split(values, cuts)
    return (
        np.array([piece.mean() for piece in step_pieces]),
        np.array([piece.mean() for piece in value_pieces]),
        np.array([np.quantile(piece, 0.1) for piece in value_pieces]),
        np.array([np.quantile(piece, 0.9) for piece in value_pieces]),
    )


def _known(steps: Numbers, values: Numbers) -> tuple[Numbers, Numbers]:
    known = np.isfinite(values) & np.isfinite(steps)
    return steps[known], values[known]
