"""The panels of `training_curves.png`: each draws one question's answer into its axes, and says whether it had any."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from ludus.core.labels import row_label
from ludus.training.sinks.curve_data import CurveData, Numbers, Table
from ludus.training.sinks.groups import group_opponents
from ludus.training.sinks.looks import COLOURS
from ludus.training.sinks.smoothing import band, moving_average

_MOST_CURVES = 10
_WINDOW_MATCHES = 200
_OTHERS = "others"
_OUTCOMES = {"win_rate": "matches won", "mean_return": "return", "mean_length": "steps"}  # and their names on the axis


def draw_reward(axes: Axes, data: CurveData) -> bool:
    """Reward an episode: mean, and the middle 80 % of the episodes."""
    return _draw_episodes(axes, data, "reward", "episode_return", COLOURS[0])


def draw_length(axes: Axes, data: CurveData) -> bool:
    """Length of an episode."""
    return _draw_episodes(axes, data, "length", "episode_length", COLOURS[2])


def draw_win_rates(axes: Axes, data: CurveData) -> bool:
    """Share of matches won against each opponent in training."""
    steps, outcomes = data.episodes.numbers("env_steps"), data.episodes.numbers("outcome")
    if not np.any(outcomes[np.isfinite(outcomes)]):  # a world without winners
        return False
    groups = opponent_groups(data)
    met = np.array([groups.get(str(name), "") for name in data.episodes.texts("opponent")], dtype=np.str_)
    for index, name in enumerate(_group_names(groups)):
        rows = (met == name) & np.isfinite(outcomes)
        window = min(max(int(rows.sum()) // 15, 10), _WINDOW_MATCHES)
        x, y = moving_average(steps[rows], (outcomes[rows] > 0.0).astype(np.float64), window)
        _line(axes, (x, y), COLOURS[index], name)
    _as_share(axes)
    return bool(groups)


def draw_terms(axes: Axes, data: CurveData) -> bool:
    """What each reward term gives; the largest ones by their size."""
    steps = data.terms.numbers("env_steps")
    names = [name for name in data.terms.names if name not in ("iteration", "env_steps", "total")]
    values = {name: data.terms.numbers(name) for name in names}
    sizes = {name: float(np.nanmean(np.abs(v))) for name, v in values.items() if np.isfinite(v).any()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_MOST_CURVES]
    for index, name in enumerate(name for name in names if name in largest):
        _line(axes, moving_average(steps, values[name], _window(steps)), COLOURS[index], name)
    if largest and "total" in data.terms.names:
        total = moving_average(steps, data.terms.numbers("total"), _window(steps))
        axes.plot(*total, color="black", label="total", linewidth=1.8, linestyle=(0, (4, 1.5)))
    if largest:
        axes.axhline(0.0, color="0.6", linewidth=0.8)
    return bool(largest)


def draw_evaluations(axes: Axes, data: CurveData) -> bool:
    """Share of evaluation matches won against each opponent, or else what decides over the score, in each trial."""
    table, groups = data.evaluations, opponent_groups(data)
    outcome = judged_by(table)
    steps, rates = table.numbers("env_steps"), table.numbers(outcome)
    low, high = table.numbers(f"{outcome}_low"), table.numbers(f"{outcome}_high")
    opponents = _labels(table)
    order = [*_group_names(groups), *dict.fromkeys(opponents.tolist())]
    names = [name for name in dict.fromkeys(order) if name in set(opponents.tolist())][:_MOST_CURVES]
    drawn = False
    for name in names:
        rows = (opponents == name) & np.isfinite(rates)
        if rows.any():
            colour = COLOURS[list(dict.fromkeys(order)).index(name) % len(COLOURS)]
            axes.fill_between(steps[rows], low[rows], high[rows], color=colour, alpha=0.15, linewidth=0)
            axes.plot(steps[rows], rates[rows], color=colour, label=name, marker="o", markersize=3, linewidth=1.4)
            drawn = True
    if drawn:
        axes.set_ylabel(_OUTCOMES.get(outcome, outcome), fontsize=9, color="0.3")
    if drawn and outcome == "win_rate":
        _as_share(axes)
    return drawn


def draw_score(axes: Axes, data: CurveData) -> bool:
    """The score by which the best agent is kept, and ratings where there are any."""
    steps, scores = data.evaluations.numbers("env_steps"), data.evaluations.numbers("score")
    known = np.isfinite(scores) & np.isfinite(steps)
    when, first = np.unique(steps[known], return_index=True)
    score = scores[known][first]
    if len(when):
        axes.plot(when, score, color=COLOURS[0], label="score", marker="o", markersize=3, linewidth=1.6)
        top = int(np.argmax(score))
        axes.plot(when[top], score[top], color=COLOURS[5], label="highest", marker="*", markersize=12, linestyle="none")
    # Elo comes first: where there are several modes, each has its own, and not all numbers find room.
    ratings = sorted((name for name in data.metrics if name.startswith("rating")), key=lambda name: name.split("/")[0])
    on = axes.twinx() if len(when) and ratings else axes
    drawn = _draw_metrics(on, data, [(name, name, COLOURS[2 + index]) for index, name in enumerate(ratings[:4])])
    return bool(len(when)) or drawn


def draw_losses(axes: Axes, data: CurveData) -> bool:
    """Policy loss at the left, value loss at the right."""
    return _draw_pair(axes, data, ("policy_loss", "policy loss"), ("value_loss", "value loss"))


def draw_entropy(axes: Axes, data: CurveData) -> bool:
    """Entropy at the left, KL divergence of an update at the right."""
    return _draw_pair(axes, data, ("entropy", "entropy"), ("approx_kl", "KL divergence"))


def draw_update(axes: Axes, data: CurveData) -> bool:
    """How well values explain returns, how much was clipped."""
    drawn = _draw_pair(axes, data, ("explained_variance", "explained variance"), ("clip_fraction", "clipped"))
    if _has(data, "explained_variance") and axes.get_ylim()[0] < -1.0:
        axes.set_ylim(-1.0, 1.05)  # before anything is learned it can be any number below zero
    return drawn


def opponent_groups(data: CurveData) -> dict[str, str]:
    """Returns for each opponent of the episodes the curve it belongs to.

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
    if len(own) > _MOST_CURVES:
        kept = set(own[: _MOST_CURVES - 1])
        groups = {name: group if group in kept else _OTHERS for name, group in groups.items()}
    return groups


def _labels(table: Table) -> NDArray[np.str_]:
    """Returns what each row of an evaluation is of, `(rows,)`."""
    columns = {name: table.texts(name).tolist() for name in ("trial", "opponent", "side", "mode")}
    labels = [row_label(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    return np.array(labels, dtype=np.str_)


def judged_by(table: Table) -> str:
    """Returns the column of an evaluation that is drawn: the win rate, or else the one that the score is made of."""
    candidates = [*_OUTCOMES, *(name for name in table.names if name not in ("iteration", "env_steps", "score"))]
    known = [name for name in candidates if np.isfinite(table.numbers(name)).any()]
    trials, scores = table.texts("trial"), table.numbers("score")
    first = trials == trials[0] if len(trials) else np.zeros(0, np.bool_)
    same = (name for name in known if np.array_equal(table.numbers(name)[first], scores[first]))
    fallback = known[0] if known else "win_rate"
    return "win_rate" if "win_rate" in known else next(same, fallback)


def _draw_episodes(axes: Axes, data: CurveData, column: str, metric: str, colour: str) -> bool:
    x, mean, low, high = band(data.episodes.numbers("env_steps"), data.episodes.numbers(column))
    if not len(x):
        return _draw_metrics(axes, data, [(metric, column, colour)])
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0, label="80 % of the episodes")
    _line(axes, (x, mean), colour, "mean")
    return True


def _draw_pair(axes: Axes, data: CurveData, left: tuple[str, str], right: tuple[str, str]) -> bool:
    drawn = _draw_metrics(axes, data, [(*left, COLOURS[0])])
    if not _has(data, right[0]):
        return drawn
    other = axes.twinx() if drawn else axes
    return _draw_metrics(other, data, [(*right, COLOURS[5])])


def _draw_metrics(axes: Axes, data: CurveData, curves: Sequence[tuple[str, str, str]]) -> bool:
    drawn = [(name, label, colour) for name, label, colour in curves if _has(data, name)]
    for name, label, colour in drawn:
        steps, values = data.metrics["env_steps"], data.metrics[name]
        window = _window(steps)
        if window > 1:
            axes.plot(*moving_average(steps, values, 1), color=colour, alpha=0.25, linewidth=0.8)
        _line(axes, moving_average(steps, values, window), colour, label)
    return bool(drawn)


def _line(axes: Axes, points: tuple[Numbers, Numbers], colour: str, label: str) -> None:
    """Draws a curve; one of few points has them marked, as a single one would not be seen."""
    marker = "o" if len(points[0]) < 8 else None
    axes.plot(*points, color=colour, label=label, linewidth=1.6, marker=marker, markersize=3.5)


def _has(data: CurveData, name: str) -> bool:
    return "env_steps" in data.metrics and name in data.metrics and bool(np.isfinite(data.metrics[name]).any())


def _group_names(groups: dict[str, str]) -> list[str]:
    """Returns the curves in an order that does not change from picture to picture; the leftovers last."""
    return sorted(set(groups.values()), key=lambda name: (name == _OTHERS, name))


def _window(steps: Numbers) -> int:
    return max(len(steps) // 25, 1)


def _as_share(axes: Axes) -> None:
    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
