"""Findings of a diagnosis, and what several diagnoses share: parts of a run, comparisons and settings."""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from ludus.core.tables import Numbers, Table
from ludus.reports.run_data import RunData

SELF = "self"  # kind of snapshots in opponents.csv
POINTS: Mapping[str, float] = {"won": 1.0, "drawn": 0.5, "lost": 0.0}
FEWEST_EPISODES = 40  # in each of two compared parts
FEWEST_IN_ALL = 200  # before progress is judged
_Z = 1.96  # of a 95 % interval
_PART = 0.2  # share of the episodes that counts as late
_FIRST_PART = 0.1


@dataclass(frozen=True, slots=True)
class Change:
    """A setting to change, by its path such as `ppo.ent_coef`: what the run had, and what to try."""

    setting: str
    now: Any
    better: Any

    @property
    def line(self) -> str:
        """The change in text form: `ppo.ent_coef: 0.001 -> 0.01`."""
        return f"{self.setting}: {flow(self.now)} -> {flow(self.better)}"

    @property
    def override(self) -> str:
        """The change as a command-line override: `ppo.ent_coef=0.01`."""
        return f"{self.setting}={flow(self.better)}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a run."""

    what: str  # the problem in one sentence
    evidence: tuple[str, ...]  # the numbers that show it, each with its file
    remedy: str  # what to do
    changes: tuple[Change, ...] = ()  # settings to change, the most promising first; none where no setting helps

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        changes = [asdict(change) | {"override": change.override} for change in self.changes]
        return {"what": self.what, "evidence": list(self.evidence), "remedy": self.remedy, "changes": changes}

    def overrides(self) -> str:
        """Return all changes as shell arguments."""
        return " ".join(shlex.quote(change.override) for change in self.changes)


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is too little data for a verdict; the reason says what is missing."""

    reason: str


Verdict: TypeAlias = Sequence[Finding] | Unknown
Diagnosis: TypeAlias = Callable[[RunData], Verdict]


def flow(value: object) -> str:
    """Return a setting as one line of YAML; a constant schedule or weight as its number."""
    if isinstance(value, Mapping):
        if value.get("kind") == "constant" and "level" in value:
            return flow(value["level"])
        points = value.get("points")
        if isinstance(points, Sequence) and len(points) == 1:
            return flow(points[0][1])
        return "{" + ", ".join(f"{key}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Early against late episodes of a run."""

    name: str  # what is compared: `win rate` (a draw counts half) or `return`
    early: float  # mean of the early ones
    late: float  # mean of the late ones
    gain_low: float  # lower end of the 95 % interval of late minus early
    gain_high: float  # upper end
    spread: float  # standard deviation of single episodes
    count: int  # episodes in both parts together

    @property
    def is_better(self) -> bool:
        """Whether the late ones are significantly better."""
        return self.gain_low > 0.0

    @property
    def is_flat(self) -> bool:
        """Whether a gain of more than a fifth of the standard deviation of episodes is excluded."""
        return self.gain_high < max(0.2 * self.spread, 1e-9)

    def text(self) -> str:
        """Return the comparison in words."""
        return (
            f"{self.name} {self.early:.3g} early and {self.late:.3g} late, a gain of {self.gain_low:.3g} to "
            f"{self.gain_high:.3g} ({self.count} episodes in monitor.csv)"
        )


def finite(values: Numbers) -> Numbers:
    """Return the finite numbers."""
    return values[np.isfinite(values)]


def late_part(table: Table) -> Table:
    """Return the rows of the last part of a table's env steps."""
    steps = table.numbers("env_steps")
    return table.rows(steps > steps[-1] - _PART * (steps[-1] - steps[0]) - 1e-9) if len(steps) else table


def settled_episodes(data: RunData) -> Table:
    """Return the episodes whose results are comparable: of the last phase, and not against snapshots.

    Snapshots improve with the learner, so results against them do not measure its progress.
    """
    episodes, kinds = data.episodes, data.opponents
    if not len(episodes):
        return episodes
    phases = episodes.texts("stage")
    selves = set(kinds.texts("opponent")[kinds.texts("kind") == SELF].tolist())
    is_settled = phases == phases[-1]
    if selves:
        is_settled &= ~np.isin(episodes.texts("opponent"), sorted(selves))
    return episodes.rows(is_settled)


def compare(name: str, early: Numbers, late: Numbers) -> Comparison:
    """Compare two samples of episodes."""
    gain, both = float(late.mean() - early.mean()), np.concatenate([early, late])
    error = _Z * math.sqrt(early.var() / len(early) + late.var() / len(late))
    means = float(early.mean()), float(late.mean())
    return Comparison(name, *means, gain - error, gain + error, float(both.std()), len(both))


def progress(data: RunData) -> list[Comparison]:
    """Compare the first tenth of the episodes with the last fifth: by win rate where matches are won, and by return.

    Nothing where there are too few, or where reward weights are scheduled, so that returns are not comparable.
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
        returns = episodes.numbers("r")
        found.append(compare("return", returns[:first], returns[-last:]))
    return found


def outcome_points(episodes: Table) -> Numbers | None:
    """Return `(episodes,)` points, 1 for a win and a half for a draw; None where there are no wins or losses."""
    outcomes = episodes.texts("outcome").tolist()
    if not {"won", "lost"} & set(outcomes):
        return None
    return np.array([POINTS.get(outcome, math.nan) for outcome in outcomes])


def has_weight_paths(data: RunData) -> bool:
    """Return whether any reward weight is scheduled."""
    weights = data.setting("rewards.weights", {})
    phases = data.setting("curriculum", []) or []
    all_weights = [weights, *((phase.get("rewards") or {}).get("weights", {}) for phase in phases)]
    each = (weight for part in all_weights if isinstance(part, Mapping) for weight in part.values())
    return any(isinstance(weight, Mapping) and len(weight.get("points", ())) > 1 for weight in each)


def scaled_rate(data: RunData, factor: float) -> Change:
    """Return the change that multiplies the algorithm's learning rate."""
    path = f"{data.algorithm}.learning_rate"
    return Change(path, data.setting(path), scaled(data.setting(path), factor))


def scaled(schedule: Any, factor: float) -> Any:  # noqa: ANN401 - a number or a mapping, as settings are
    """Multiply all numbers of a schedule; a constant one becomes a number."""
    if not isinstance(schedule, Mapping):
        return schedule * factor if isinstance(schedule, int | float) else schedule
    if schedule.get("kind") == "constant":
        return float(schedule["level"]) * factor
    numbers = {name: schedule[name] * factor for name in ("start", "end", "minimum", "maximum") if name in schedule}
    return dict(schedule) | numbers


def highest(schedule: Any) -> float:  # noqa: ANN401
    """Return the highest number of a schedule; NaN if it is not one."""
    if isinstance(schedule, Mapping):
        found = [float(schedule[name]) for name in ("level", "start", "end") if name in schedule]
        return max(found, default=math.nan)
    return float(schedule) if isinstance(schedule, int | float) else math.nan


def more_entropy(data: RunData) -> Change:
    """Return the change that makes PPO explore more: ten times the entropy bonus, at least 0.01."""
    now = data.setting("ppo.ent_coef")
    return Change("ppo.ent_coef", now, max(10.0 * highest(now), 0.01) if highest(now) > 0 else 0.01)


def weight_now(data: RunData, term: str) -> Any:  # noqa: ANN401 - a number, a path, or words
    """Return the weight of a reward term; that of a named set is not in the run's files."""
    weight = (data.setting("rewards.weights") or {}).get(term)
    if weight is not None:
        return weight
    return f"as in the set {data.setting('rewards.base')}" if term in data.rewards else "not set"


def is_early(data: RunData) -> bool:
    """Return whether a run is in the first fifth of its budget, in which bad play means nothing yet."""
    return bool(data.metrics.last("env_steps") < _PART * float(data.setting("total_env_steps", 0)))
