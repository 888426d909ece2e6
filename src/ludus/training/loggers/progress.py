"""What a run looks like just now: smoothed rates, recent matches and metrics, as numbers and in words."""

import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeAlias

import psutil

from ludus.core.text import match_label, plain_text, row_label
from ludus.rollout.episodes import Episodes
from ludus.training.callbacks import Counters, Evaluated, Iteration
from ludus.training.loggers.resources import GpuReading

WINDOW = 200  # matches per opponent over which the win rate is shown
_MOST_OPPONENTS = 64  # a long self-play run meets thousands of snapshots; those not met for longest are forgotten

_NO_CURVES: Mapping[str, str] = MappingProxyType({})
Clock: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True)
class WinRate:
    """How it went against one opponent, or several taken together: matches in the window, and those won, not drawn."""

    name: str
    matches: int
    wins: int

    @property
    def share(self) -> float:
        """Wins of all matches, 0 to 1."""
        return self.wins / max(self.matches, 1)


class RecentMatches:
    """Counts the last matches by opponent, and by side where sides are not alike."""

    def __init__(self, window: int = WINDOW) -> None:
        self.has_winners = False  # whether any match so far was won or lost; without one the world knows no winners
        self._window = window
        self._outcomes: dict[str, deque[int]] = {}

    def add(self, episodes: Episodes, curves: Mapping[str, str] = _NO_CURVES) -> None:
        """Add what ended in one iteration; episodes without an opponent are no matches.

        `curves` says under which name some opponents are counted together.
        """
        self.has_winners = self.has_winners or bool(episodes.outcomes.any())
        for opponent, side, outcomes in episodes.grouped():
            label = match_label(opponent, side)
            name = curves.get(label, label)
            seen = self._outcomes.pop(name, None) or deque(maxlen=self._window)
            seen.extend(outcomes[-self._window :].tolist())
            self._outcomes[name] = seen  # last in the mapping: met last
        while len(self._outcomes) > _MOST_OPPONENTS:
            del self._outcomes[next(iter(self._outcomes))]

    def rates(self, most: int) -> list[WinRate]:
        """Return the groups met most often, by name; snapshots share an entry, and so does what is over `most`."""
        if not self.has_winners:
            return []
        groups: dict[str, list[deque[int]]] = {}
        for name, group in group_opponents(self._outcomes).items():
            groups.setdefault(group, []).append(self._outcomes[name])
        rates = [
            WinRate(group, sum(map(len, members)), sum(seen.count(1) for seen in members))
            for group, members in groups.items()
        ]
        rates.sort(key=lambda rate: (-rate.matches, rate.name))
        shown, rest = (rates, []) if len(rates) <= most else (rates[: most - 1], rates[most - 1 :])
        shown = sorted(shown, key=lambda rate: rate.name)  # so that no line of a view changes its place all the time
        if rest:
            matches, wins = sum(rate.matches for rate in rest), sum(rate.wins for rate in rest)
            shown.append(WinRate(f"{len(rest)} others", matches, wins))
        return shown

    def shares(self) -> dict[str, float]:
        """Return the win rate against each opponent."""
        if not self.has_winners:
            return {}
        return {name: seen.count(1) / len(seen) for name, seen in self._outcomes.items()}


_SPEED_WINDOW_S = 10.0  # of training, over which the speed "now" is taken
_TIME_DECAY = 0.9  # of an iteration's times in the shares of the next one
_TIME_ORDER = {"simulation": 0, "inference": 1, "opponents": 2, "update": 3}
_LAST_MESSAGES = 4


class Watch:
    """Follows a run of which `title` says what is trained and `counters` how far it is."""

    def __init__(self, title: str, total_env_steps: int, clock: Clock = time.perf_counter) -> None:
        self.title, self.total_env_steps = title, total_env_steps
        self.phase = ""  # of the curriculum; empty without one
        self.metrics: dict[str, float] = {}  # the newest number of each name
        self.recent = RecentMatches()
        self.evaluation: Evaluated | None = None  # the last one
        self.best_score: float | None = None  # of the agent kept as the best, of those evaluated in this session
        self.milestones: dict[str, int] = {}  # env steps at which something was reached, by name; only what was
        self.checkpoints, self.checkpoint = 0, ""  # saved in this session, and the name of the last one
        self.messages: deque[tuple[str, str, int]] = deque(maxlen=_LAST_MESSAGES)  # warnings: level, text, env steps
        self.activity = ""  # what the run does if not an iteration, such as an evaluation
        self.activity_share: float | None = None  # how much of that is done, 0 to 1; None if that is not known
        self._activity_began_s = 0.0
        self._rewards: deque[float] = deque(maxlen=WINDOW)
        self._lengths: deque[int] = deque(maxlen=WINDOW)
        self._times_s: dict[str, float] = {}
        self._process = psutil.Process()
        self._clock = clock
        self.start(Counters())

    def start(self, counters: Counters) -> None:
        """Take the start of a run, or of a session that resumes one."""
        self.counters, self._started_steps = counters, counters.env_steps
        self._started_s = self._clock()
        # Time of this session's iterations. Evaluations, checkpoints and logging are no part of it, so that speeds and
        # the time left do not depend on them.
        self.training_s = 0.0
        self._marks = deque([(0.0, counters.env_steps)])

    def iteration(self, iteration: Iteration) -> None:
        """Take a finished iteration."""
        self.activity = ""
        self.counters, self.phase = iteration.counters, iteration.phase
        self.metrics |= {name: value for name, value in iteration.metrics.items() if value is not None}
        self.recent.add(iteration.episodes)
        self._rewards.extend(iteration.episodes.rewards[-WINDOW:].tolist())
        self._lengths.extend(iteration.episodes.lengths[-WINDOW:].tolist())
        for name, seconds in iteration.times_s.items():
            self._times_s[name] = _TIME_DECAY * self._times_s.get(name, 0.0) + seconds
        self.training_s += iteration.elapsed_s
        self._marks.append((self.training_s, self.counters.env_steps))
        while len(self._marks) > 2 and self.training_s - self._marks[0][0] > _SPEED_WINDOW_S:
            self._marks.popleft()

    def begin(self, text: str, share: float | None) -> None:
        """Take what the run does, and how much of it is done."""
        if text != self.activity:
            self._activity_began_s = self._clock()
        self.activity, self.activity_share = text, share

    def evaluated(self, evaluated: Evaluated) -> None:
        """Take an evaluation."""
        self.activity, self.evaluation = "", evaluated
        self.milestones |= {name: steps for name, steps in evaluated.milestones.items() if steps is not None}
        if evaluated.is_best or self.best_score is None or evaluated.score > self.best_score:
            self.best_score = evaluated.score

    def saved(self, name: str) -> None:
        """Take the name of a checkpoint that is safe."""
        self.activity, self.checkpoint = "", name
        self.checkpoints += 1

    def message(self, level: str, text: str, counters: Counters) -> None:
        """Record a message; information is not kept."""
        if level != "info":
            self.messages.append((level, text, counters.env_steps))

    @property
    def progress(self) -> float:
        """Share of the budget that is used up, 0 to 1."""
        return min(self.counters.env_steps / max(self.total_env_steps, 1), 1.0)

    @property
    def elapsed_s(self) -> float:
        """Time since the start of this session."""
        return self._clock() - self._started_s

    @property
    def speed_now(self) -> float:
        """Env steps per second in the last seconds of training."""
        (first_s, first_steps), (last_s, last_steps) = self._marks[0], self._marks[-1]
        return (last_steps - first_steps) / max(last_s - first_s, 1e-9)

    @property
    def speed_average(self) -> float:
        """Env steps per second of training in this session."""
        return (self.counters.env_steps - self._started_steps) / max(self.training_s, 1e-9)

    @property
    def left_s(self) -> float | None:
        """Time to the end: training at the present speed, and evaluations like the last one; None before any step."""
        left, speed = max(self.total_env_steps - self.counters.env_steps, 0), self.speed_now
        if speed <= 0.0:
            return None
        every = self.evaluation.every_env_steps if self.evaluation is not None else 0
        if not left or not every or self.evaluation is None:
            return left / speed
        # One whenever a multiple is passed, and one at the end.
        evaluations = -(-self.total_env_steps // every) - self.counters.env_steps // every
        return left / speed + evaluations * self.evaluation.seconds

    @property
    def activity_left_s(self) -> float | None:
        """Estimated time until the present activity ends; None if unknown."""
        share = self.activity_share
        return (self._clock() - self._activity_began_s) * (1.0 / share - 1.0) if share else None

    @property
    def time_shares(self) -> dict[str, float]:
        """Where the time of the last iterations went; the shares add up to 1."""
        total_s = sum(self._times_s.values())
        if total_s <= 0.0:
            return {}
        names = sorted(self._times_s, key=lambda name: (_TIME_ORDER.get(name, len(_TIME_ORDER)), name))
        return {name: self._times_s[name] / total_s for name in names}

    @property
    def mean_reward(self) -> float | None:
        """Of the last episodes."""
        return sum(self._rewards) / len(self._rewards) if self._rewards else self.metrics.get("episode_return")

    @property
    def mean_length(self) -> float | None:
        """Of the last episodes, in steps."""
        return sum(self._lengths) / len(self._lengths) if self._lengths else self.metrics.get("episode_length")

    @property
    def resident_bytes(self) -> int:
        """Memory of this process."""
        return int(self._process.memory_info().rss)


_NUMBERED = re.compile(r"(.*?)[-_:@# ]*\d+")  # snapshots differ in a number at the end
_FEW = 3  # members of a family that still have lines of their own


def group_opponents(names: Iterable[str], kinds: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return for each opponent the group it belongs to: itself, or `family (size)` of a family of many.

    A bot stands for itself, other kinds are families; where the kind is not known, names that differ in a number at
    their end are.
    """
    kinds = kinds or {}
    families: dict[str, set[str]] = {}
    for name in names:
        families.setdefault(_family(name, kinds.get(name, "")), set()).add(name)
    return {
        name: f"{family} ({len(members)})" if family and len(members) > _FEW else name
        for family, members in families.items()
        for name in members
    }


def _family(name: str, kind: str) -> str:
    if kind:
        return "" if kind == "bot" else kind
    numbered = _NUMBERED.fullmatch(name)
    return "" if numbered is None else numbered.group(1) or "numbered"


_MOST_CURVES = 24  # curves of their own; bots come first in a run, later snapshots share one curve
_OTHERS = "others"
_EVALUATION_KEYS = ("opponent", "trial", "mode", "side", "matches")


class ScalarNames:
    """Turns what the loop tells into a flat mapping of names to finite numbers."""

    def __init__(self) -> None:
        self._recent = RecentMatches()
        self._own_curve: set[str] = set()
        self._env_steps = 0

    def start(self, env_steps: int) -> None:
        """Store where the run starts or resumes."""
        self._env_steps = env_steps

    def of_iteration(self, iteration: Iteration) -> dict[str, float]:
        """Return metrics, episodes, recent win rates, reward terms per step, episode metrics and speed."""
        steps = iteration.counters.env_steps - self._env_steps
        self._env_steps = iteration.counters.env_steps
        found: dict[str, float | None] = {f"train/{name}": value for name, value in iteration.metrics.items()}
        found["train/updates"] = iteration.counters.updates
        found["train/iterations"] = iteration.counters.iterations
        found |= _of_episodes(iteration) | self._win_rates(iteration)
        if steps > 0:
            found |= {f"reward_terms/{name}": total / steps for name, total in iteration.rewards.items()}
            if iteration.elapsed_s > 0.0:
                found["speed/env_steps_per_s"] = steps / iteration.elapsed_s
        total_s = sum(iteration.times_s.values())
        if total_s > 0.0:
            found |= {f"speed/share_{name}": seconds / total_s for name, seconds in iteration.times_s.items()}
        return _finite(found)

    def of_evaluation(self, evaluated: Evaluated) -> dict[str, float]:
        """Return the score, milestones that were reached, and every number of every opponent or scenario."""
        found: dict[str, float | None] = {"evaluation/score": evaluated.score}
        found |= {f"evaluation/{name}": steps for name, steps in evaluated.milestones.items()}
        for row in evaluated.rows:
            for column, value in row.items():
                if column not in _EVALUATION_KEYS and isinstance(value, Real):
                    found[f"evaluation/{column}/{row_label(row)}".rstrip("/")] = float(value)
        return _finite(found)

    def _win_rates(self, iteration: Iteration) -> dict[str, float]:
        met = [match_label(opponent, side) for opponent, side, _ in iteration.episodes.grouped()]
        for label in met:
            if len(self._own_curve) < _MOST_CURVES:
                self._own_curve.add(label)
        curves = {label: label if label in self._own_curve else _OTHERS for label in met}
        self._recent.add(iteration.episodes, curves)
        shares = self._recent.shares()
        return {f"win_rate/{curve}": shares[curve] for curve in curves.values() if shares}


def _of_episodes(iteration: Iteration) -> dict[str, float]:
    episodes = iteration.episodes
    if not len(episodes):
        return {}
    found = {"episodes/reward": float(episodes.rewards.mean()), "episodes/length": float(episodes.lengths.mean())}
    return found | {f"behaviour/{name}": float(values.mean()) for name, values in episodes.episode_metrics.items()}


def _finite(found: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}


_GIB = 1 << 30
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60
_MOST_SHOWN = 5
_MARKS = {"info": "[OK]", "warning": "[WARN]", "alarm": "[WARN] alarm:"}


def plain(text: str) -> str:
    """Return one printable ASCII line; see `plain_text`."""
    return plain_text(" ".join(text.split()))


def duration(seconds: float) -> str:
    """Return `4.2 s`, `3 min 05 s`, `2 h 07 min` or `1 d 04 h`."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S:02d} s"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S:02d} min"
    return f"{whole // _DAY_S} d {whole % _DAY_S // _HOUR_S:02d} h"


def percent(share: float) -> str:
    """Return a share of 1 as `56 %`; only exactly all is `100 %`, only exactly nothing `0 %`."""
    whole = round(100.0 * share)
    if share < 1.0 and whole == 100:
        return f"{min(100.0 * share, 99.9):.1f} %"
    if share > 0.0 and whole == 0:
        return f"{max(100.0 * share, 0.1):.1f} %"
    return f"{whole} %"


def number(value: float) -> str:
    """Return four significant digits."""
    return f"{value:.4g}"


def memory(used_bytes: float, total_bytes: float | None = None) -> str:
    """Return `1.3 GiB`, or `1.3 of 140 GiB`."""
    of_total = "" if total_bytes is None else f" of {total_bytes / _GIB:.0f}"
    return f"{used_bytes / _GIB:.1f}{of_total} GiB"


def progress_line(watch: Watch, gpu: GpuReading | None = None) -> str:
    """Return how far the run is, how fast it goes, how well the agent plays and what it takes of memory and GPU."""
    steps, total = watch.counters.env_steps, watch.total_env_steps
    parts = [
        f"{100.0 * watch.progress:5.1f} %  {steps:,} of {total:,} steps",
        f"{watch.speed_now:,.0f}/s (average {watch.speed_average:,.0f}/s)",
    ]
    if watch.left_s:
        parts.append(f"left {duration(watch.left_s)}")
    if watch.phase:
        parts.append(f"phase {watch.phase}")
    if watch.mean_reward is not None:
        parts.append(f"reward {number(watch.mean_reward)}")
    if watch.mean_length is not None:
        parts.append(f"length {watch.mean_length:.0f}")
    rates = watch.recent.rates(_MOST_SHOWN)
    if rates:
        parts.append("wins " + ", ".join(f"{rate.name} {percent(rate.share)}" for rate in rates))
    learning = {"entropy": "entropy", "approx_kl": "KL"}
    parts += [f"{shown} {number(watch.metrics[name])}" for name, shown in learning.items() if name in watch.metrics]
    if watch.time_shares:
        parts.append("time " + ", ".join(f"{name} {percent(share)}" for name, share in watch.time_shares.items()))
    parts.append(f"memory {memory(watch.resident_bytes)}")
    if gpu is not None:
        use = "" if gpu.use is None else f"{percent(gpu.use)}, "
        parts.append(f"GPU {use}{memory(gpu.used_bytes, gpu.total_bytes)}")
    return plain(" | ".join(parts))


def activity_line(watch: Watch) -> str:
    """Say what the run does if it is no iteration, and how far that is; empty otherwise."""
    if not watch.activity:
        return ""
    share, left_s = watch.activity_share, watch.activity_left_s
    done = "" if share is None else f": {percent(share)}"
    return plain(watch.activity + done + (f", {duration(left_s)} left" if left_s else ""))


def evaluation_line(evaluated: Evaluated) -> str:
    """Return how an evaluation went, by opponent or scenario."""
    best = " (best)" if evaluated.is_best else ""
    rows = ", ".join(filter(None, (_row(row, evaluated.judged_by) for row in evaluated.rows)))
    steps = evaluated.counters.env_steps
    return plain(f"evaluation at {steps:,} steps: score {number(evaluated.score)}{best}{': ' if rows else ''}{rows}")


def message_line(level: str, text: str) -> str:
    """Prefix a message with the mark of its level; an unknown level counts as a warning."""
    return f"{_MARKS.get(level, '[WARN]')} {plain(text)}"


def end_line(watch: Watch) -> str:
    """Return how a session of training ended."""
    best = "" if watch.best_score is None else f", best score {number(watch.best_score)}"
    best += "".join(f", {name} {reached:,}" for name, reached in watch.milestones.items())
    steps, total = watch.counters.env_steps, watch.total_env_steps
    state = "finished" if steps >= total else "stopped"
    return plain(
        f"{watch.title} {state} at {steps:,} of {total:,} steps after {duration(watch.elapsed_s)}, of which training "
        f"{duration(watch.training_s)} ({watch.speed_average:,.0f} steps/s){best}"
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
