"""What several diagnoses need: the first and last part of a run, and how well its learner did in either."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ludus.reports.run_data import Numbers, RunData, Table

SELF = "self"  # kind of past selves in opponents.csv
POINTS: Mapping[str, float] = {"won": 1.0, "drawn": 0.5, "lost": 0.0}
FEWEST_EPISODES = 40  # in each of two parts that are compared
FEWEST_IN_ALL = 200  # before anything is said of progress
_Z = 1.96  # of a 95 % interval
_PART = 0.2  # of the episodes that count as the last ones
_FIRST_PART = 0.1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Episodes early in a run against late ones.

    Attributes:
        name: What is compared: `win rate` (a draw counts half) or `return`.
        early: Mean of the early ones.
        late: Mean of the late ones.
        gain_low: Lower end of the 95 % interval of late minus early.
        gain_high: Upper end.
        spread: Standard deviation of single episodes.
        count: Episodes in both parts together.
    """

    name: str
    early: float
    late: float
    gain_low: float
    gain_high: float
    spread: float
    count: int

    @property
    def is_better(self) -> bool:
        """Whether the late ones are surely better."""
        return self.gain_low > 0.0

    @property
    def is_flat(self) -> bool:
        """Whether they are surely not better by more than a fifth of what single episodes differ by."""
        return self.gain_high < max(0.2 * self.spread, 1e-9)

    def text(self) -> str:
        """Returns it in words."""
        return (
            f"{self.name} {self.early:.3g} early and {self.late:.3g} late, a gain of {self.gain_low:.3g} to "
            f"{self.gain_high:.3g} ({self.count} episodes in monitor.csv)"
        )


def finite(values: Numbers) -> Numbers:
    """Returns the numbers that are finite."""
    return values[np.isfinite(values)]


def late_part(table: Table, share: float = _PART) -> Table:
    """Returns the rows of the last part of the env steps that a table covers."""
    steps = table.numbers("env_steps")
    if not len(steps):
        return table
    return table.rows(steps > steps[-1] - share * (steps[-1] - steps[0]) - 1e-9)


def settled_episodes(data: RunData) -> Table:
    """Returns the episodes whose results can be compared: of the last stage, and not against past selves.

    Past selves grow with the learner, so results against them say nothing of its progress.
    """
    episodes, kinds = data.episodes, data.opponents
    if not len(episodes):
        return episodes
    stages = episodes.texts("stage")
    selves = set(kinds.texts("opponent")[kinds.texts("kind") == SELF].tolist())
    is_settled = stages == stages[-1]
    if selves:
        is_settled &= ~np.isin(episodes.texts("opponent"), sorted(selves))
    return episodes.rows(is_settled)


def compare(name: str, early: Numbers, late: Numbers) -> Comparison:
    """Compares two samples of episodes."""
    gain = float(late.mean() - early.mean())
    error = math.sqrt(early.var() / len(early) + late.var() / len(late))
    spread = float(np.concatenate([early, late]).std())
    count = len(early) + len(late)
    return Comparison(
        name, float(early.mean()), float(late.mean()), gain - _Z * error, gain + _Z * error, spread, count
    )


def progress(data: RunData) -> list[Comparison]:
    """Compares the first tenth of the episodes with the last fifth: by win rate where matches are won, and by return.

    Nothing where there are too few, or where the weights of the rewards change, which makes returns another thing.
    """
    episodes = settled_episodes(data)
    first = max(int(len(episodes) * _FIRST_PART), FEWEST_EPISODES)
    last = max(int(len(episodes) * _PART), FEWEST_EPISODES)
    if len(episodes) < FEWEST_IN_ALL:
        return []
    found = []
    points = outcome_points(episodes)
    if points is not None:
        found.append(compare("win rate", points[:first], points[-last:]))
    if not has_weight_paths(data):
        returns = episodes.numbers("reward")
        found.append(compare("return", returns[:first], returns[-last:]))
    return found


def outcome_points(episodes: Table) -> Numbers | None:
    """Returns `(episodes,)` points, 1 for a win and a half for a draw; None where nothing is won or lost."""
    outcomes = episodes.texts("outcome").tolist()
    if not {"won", "lost"} & set(outcomes):
        return None
    return np.array([POINTS.get(outcome, math.nan) for outcome in outcomes])


def has_weight_paths(data: RunData) -> bool:
    """Says whether a weight of the run's rewards changes with time."""
    weights = data.setting("rewards.weights", {})
    stages = data.setting("curriculum", []) or []
    all_weights = [weights, *((stage.get("rewards") or {}).get("weights", {}) for stage in stages)]
    return any(_is_path(weight) for part in all_weights if isinstance(part, Mapping) for weight in part.values())


def _is_path(weight: object) -> bool:
    return isinstance(weight, Mapping) and len(weight.get("points", ())) > 1


def rate_setting(data: RunData) -> str:
    """Returns the path of the learning rate of the run's algorithm."""
    return "ppo.learning_rate" if data.setting("algorithm", "ppo") == "ppo" else "off_policy.learning_rate"


def scaled(schedule: Any, factor: float) -> Any:  # noqa: ANN401 - a number or a mapping, as settings are
    """Returns a schedule whose numbers are all multiplied; a constant one as a number."""
    if not isinstance(schedule, Mapping):
        return schedule * factor if isinstance(schedule, int | float) else schedule
    if schedule.get("kind") == "constant":
        return float(schedule["level"]) * factor
    numbers = {name: schedule[name] * factor for name in ("start", "end", "minimum", "maximum") if name in schedule}
    return dict(schedule) | numbers


def highest(schedule: Any) -> float:  # noqa: ANN401
    """Returns the highest number of a schedule; NaN if it is none."""
    if isinstance(schedule, Mapping):
        found = [float(schedule[name]) for name in ("level", "start", "end") if name in schedule]
        return max(found, default=math.nan)
    return float(schedule) if isinstance(schedule, int | float) else math.nan


def weight_now(data: RunData, term: str) -> Any:  # noqa: ANN401 - a number, a path, or words
    """Returns the weight of a reward term as far as the files tell: that of a named set is not in them."""
    weight = (data.setting("rewards.weights") or {}).get(term)
    if weight is not None:
        return weight
    return f"as in the set {data.setting('rewards.base')}" if term in data.rewards else "not set"


def is_early(data: RunData) -> bool:
    """Says whether a run is still in the first fifth of its budget, in which agents may play as badly as they like."""
    return bool(data.metrics.last("env_steps") < _PART * float(data.setting("total_env_steps", 0)))
