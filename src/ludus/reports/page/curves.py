"""Charts over env steps with the mean and band of several seeds, and charts of speed, memory and time per part."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ludus.core.tables import Numbers, Table
from ludus.reports.page.runs import Group

MOST_POINTS = 1000
LEARNING, OPTIMISER, EPISODE_METRICS, STRATEGY = "learning", "optimiser", "behaviour", "strategy"
_FEWEST_POINTS = 60
_CURVE_BYTES = 2_400_000  # of all curves together
_POINT_BYTES = 26  # of x, mean, lowest and highest as JSON
# Section, title and note; other columns are shown under their own names.
_KNOWN: dict[str, tuple[str, str, str]] = {
    "episode_return": (LEARNING, "Episode return", "Sum of the weighted rewards, mean of the iteration's episodes"),
    "episode_length": (LEARNING, "Episode length", "Mean of the iteration's episodes"),
    "rating_elo": (LEARNING, "Elo rating, live", "Follows the training matches; starts at 1,000"),
    "episodes": (LEARNING, "Episodes per iteration", "Episodes that ended"),
    "reward": (LEARNING, "Reward per step", "Mean over the rollout"),
    "rating_openskill": (LEARNING, "openskill rating, live", "Mean minus three standard deviations"),
    "policy_loss": (OPTIMISER, "Policy loss", "Clipped surrogate objective; its size means little"),
    "value_loss": (OPTIMISER, "Value loss", "Squared error of the value estimate"),
    "entropy": (OPTIMISER, "Entropy", "Of the action distribution; near 0 exploration has ended"),
    "approx_kl": (OPTIMISER, "KL divergence", "Between the policy before and after the update, estimated"),
    "clip_fraction": (OPTIMISER, "Clip fraction", "Share of samples whose ratio was clipped"),
    "explained_variance": (OPTIMISER, "Explained variance", "Of the returns, by the value estimate; 1 is perfect"),
    "learning_rate": (OPTIMISER, "Learning rate", "As scheduled"),
    "exploration_frequency": (OPTIMISER, "Exploration", "Probability of the exploration mixture"),
    "gradient_norm": (OPTIMISER, "Gradient norm", "Before clipping"),
    "ratio_error": (OPTIMISER, "Ratio error", "Deviation of the first ratios from 1; rounding only if all is well"),
    "skipped_updates": (OPTIMISER, "Skipped updates", "Skipped because of the target KL, NaN or Inf"),
    "rollbacks": (OPTIMISER, "Rollbacks", "Number of rollbacks to a checkpoint"),
    "separation": (STRATEGY, "Separation of opponents", "Variance of latents between opponents over that within them"),
    "attention_entropy": (STRATEGY, "Attention entropy", "Over frames; 0 where one frame has all of it"),
    "latent_norm": (STRATEGY, "Size of the latent", "Mean length of the vector"),
    "latent_std": (STRATEGY, "Spread of the latent", "Mean standard deviation of its parts"),
    "latent_mean": (STRATEGY, "Mean of the latent", "Over all of its parts"),
    "drift_within_episodes": (STRATEGY, "Drift within an episode", "From the first to the last frame of a segment"),
    "survival_s": (EPISODE_METRICS, "Survival time", "Length of a match, however it ended"),
    "game_s": (EPISODE_METRICS, "Game time", ""),
    "drift_between_iterations": (STRATEGY, "Drift between rows", "How far the opponents' mean latents have moved"),
}
_SECTIONS = {"metrics": OPTIMISER, "episode_metrics": EPISODE_METRICS, "strategy": STRATEGY}  # of other columns
_COUNTS_OF_FAULTS = ("skipped_updates", "rollbacks")  # worth a chart only where there were any
_COUNTERS = ("iteration", "env_steps", "updates", "stage", "segments", "opponents")
_UNITS = {"episode_length": "steps", "entropy": "nats", "attention_entropy": "nats", "attack_rate": "per s"}
_UNIT_ENDINGS = {"_m_s": "m/s", "_s": "s", "_m": "m", "_deg": "degrees", "_a_minute": "per min"}  # the longest first

_TRAINING = ("simulation_s", "inference_s", "opponents_s", "update_s", "other_s")
_NO_PART = "elapsed_s"
_MEMORY = {
    "resident_mib": "Memory of the process, MiB", "gpu_mib": "Memory of the GPU, MiB", "gpu_use": "Use of the GPU",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a chart; all arrays are `(points,)`."""

    x: Numbers  # env steps
    y: Numbers  # mean over seeds
    low: Numbers  # lowest of the seeds and of all values merged into a point
    high: Numbers  # highest, likewise
    seeds: int  # number of runs

    @property
    def has_band(self) -> bool:
        """Whether lowest and highest differ anywhere."""
        return bool((self.low < self.high).any())


def curve_of(tables: Sequence[Table], column: str, most_points: int = MOST_POINTS) -> Curve | None:
    """Return the curve of a column over `env_steps`, from one table per seed; None where there is no number.

    Seeds that ended sooner count as far as they reach.
    """
    lines = [_finite(table.numbers("env_steps"), table.numbers(column)) for table in tables if len(table)]
    return merge_lines([line for line in lines if len(line[0])], most_points)


def merge_lines(lines: Sequence[tuple[Numbers, Numbers]], most_points: int = MOST_POINTS) -> Curve | None:
    """Return the curve of lines, each `(points,)` of x in order and of y; see `curve_of`."""
    if not lines:
        return None
    longest = max(lines, key=lambda line: (len(line[0]), line[0][-1]))
    if len(longest[0]) > most_points:
        return _binned(lines, most_points)
    first, last = min(x[0] for x, _ in lines), max(x[-1] for x, _ in lines)
    grid = np.unique(np.concatenate(([first], longest[0], [last])))
    rows = np.stack([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in lines])
    mean, low, high = _over_seeds(rows, rows, rows)
    return Curve(grid, mean, low, high, len(lines))


def _binned(lines: Sequence[tuple[Numbers, Numbers]], bins: int) -> Curve:
    first, last = min(x[0] for x, _ in lines), max(x[-1] for x, _ in lines)
    edges = np.linspace(first, last, bins + 1)
    means, lows, highs = [], [], []
    for x, y in lines:
        place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
        count = np.bincount(place, minlength=bins)
        low, high = np.full(bins, np.inf), np.full(bins, -np.inf)
        np.minimum.at(low, place, y)
        np.maximum.at(high, place, y)
        empty = count == 0
        means.append(np.where(empty, np.nan, np.bincount(place, y, bins) / np.maximum(count, 1)))
        lows.append(np.where(empty, np.nan, low))
        highs.append(np.where(empty, np.nan, high))
    mean, low, high = _over_seeds(np.stack(means), np.stack(lows), np.stack(highs))
    middle, known = (edges[:-1] + edges[1:]) / 2.0, np.isfinite(mean)
    return Curve(middle[known], mean[known], low[known], high[known], len(lines))


def _over_seeds(means: Numbers, lows: Numbers, highs: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Reduce `(seeds, points)` arrays to mean, minimum and maximum over the seeds that have the point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a bin without values stays NaN
        return np.nanmean(means, 0), np.nanmin(lows, 0), np.nanmax(highs, 0)


def _finite(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    known = np.isfinite(x) & np.isfinite(y)
    order = np.argsort(x[known], kind="stable")
    return x[known][order], y[known][order]


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of lines; `name` is its column, the unit may be empty."""

    name: str
    section: str
    title: str
    note: str
    unit: str
    curves: tuple[Curve | None, ...]  # one per group, None where a group has none


def make_panels(groups: Sequence[Group], most_points: int = MOST_POINTS) -> tuple[Panel, ...]:
    """Return one panel per number that any run logs; those with a known title come first, in their order."""
    found = list(_columns(groups))
    curves = max(len(found) * len(groups), 1)
    points = min(most_points, max(_FEWEST_POINTS, _CURVE_BYTES // (_POINT_BYTES * curves)))
    order = {name: place for place, name in enumerate(_KNOWN)}
    panels = []
    for table, name in sorted(found, key=lambda column: order.get(column[1].partition("/")[0], len(order))):
        lines = tuple(curve_of([getattr(run, table) for run in group.runs], name, points) for group in groups)
        if not any(lines) or (name in _COUNTS_OF_FAULTS and not any(line and line.high.any() for line in lines)):
            continue
        plain, _, mode = name.partition("/")  # numbers of a mode are named like rating_elo/1v1
        section, _, note = _KNOWN.get(plain, (_SECTIONS[table], "", ""))
        title, unit = title_of(plain)
        panels.append(Panel(name, section, f"{title}, {mode}" if mode else title, note, unit, lines))
    return tuple(panels)


def title_of(name: str) -> tuple[str, str]:
    """Return title and unit of a column; the unit may be empty."""
    ending = next((ending for ending in _UNIT_ENDINGS if name.endswith(ending)), "")
    title = _KNOWN[name][1] if name in _KNOWN else name.removesuffix(ending).replace("_", " ").capitalize()
    return title, _UNITS.get(name, _UNIT_ENDINGS.get(ending, ""))


def _columns(groups: Sequence[Group]) -> Iterator[tuple[str, str]]:
    """Yield table and column of everything logged per iteration, once."""
    runs = [run for group in groups for run in group.runs]
    for table in _SECTIONS:
        for name in dict.fromkeys(name for run in runs for name in getattr(run, table).names):
            if name not in _COUNTERS and (name != "episodes" or table == "metrics"):
                yield table, name


@dataclass(frozen=True, slots=True)
class Times:
    """Speed and resources of a group."""

    speed: Curve | None  # env steps per second over env steps, while training
    shares: dict[str, float]  # of the time by part, the largest first
    memory: dict[str, Curve]  # and GPU use over env steps, by title


def read_times(group: Group, most_points: int) -> Times | None:
    """Return the times of a group's seeds; None if no run recorded them."""
    tables = [run.resources for run in group.runs if len(run.resources)]
    if not tables:
        return None
    parts = [name for name in tables[0].names if name.endswith("_s") and name != _NO_PART]
    sums = {name: float(sum(np.nansum(table.numbers(name)) for table in tables)) for name in parts}
    total = sum(sums.values())
    largest = sorted((name for name in parts if sums[name] > 0.0), key=lambda name: -sums[name])
    shares = {name.removesuffix("_s"): sums[name] / total for name in largest}
    curves = {title: curve_of(tables, name, most_points) for name, title in _MEMORY.items()}
    memory = {title: curve for title, curve in curves.items() if curve is not None}
    return Times(curve_of([_with_speed(table) for table in tables], "speed", most_points), shares, memory)


def _with_speed(table: Table) -> Table:
    """Return env steps per second from row to row; every session starts over."""
    steps = table.numbers("env_steps")
    taken_s = np.nansum([table.numbers(name) for name in _TRAINING], axis=0)
    made = np.diff(steps, prepend=0.0)
    first = np.append(True, np.diff(table.numbers(_NO_PART)) < 0.0)  # the start of a session is unknown
    known = (made > 0.0) & (taken_s > 0.0) & ~first
    speed = np.where(known, made / np.where(known, taken_s, 1.0), np.nan)
    return Table({"env_steps": steps.tolist(), "speed": speed.tolist()})
