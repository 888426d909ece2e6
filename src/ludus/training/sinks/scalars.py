"""The numbers of an iteration and of an evaluation under the names that TensorBoard and W&B show them by."""

import math
from collections.abc import Mapping
from numbers import Real

from ludus.core.labels import match_label, row_label
from ludus.training.callbacks import Evaluated, Iteration
from ludus.training.sinks.recent import RecentMatches

_MOST_OPPONENTS = 24  # curves of their own; bots come first in a run, later snapshots share one curve
_OTHERS = "others"
_EVALUATION_KEYS = ("opponent", "trial", "mode", "side", "matches")


class ScalarNames:
    """Turns what the loop tells into a flat mapping of names to finite numbers."""

    def __init__(self) -> None:
        self._recent = RecentMatches()
        self._own_curve: set[str] = set()
        self._env_steps = 0

    def start(self, env_steps: int) -> None:
        """Says where the run begins or goes on."""
        self._env_steps = env_steps

    def of_iteration(self, iteration: Iteration) -> dict[str, float]:
        """Returns metrics, episodes, win rates over the last matches, reward terms a step, behaviour and speed."""
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
        """Returns the score, milestones that were reached, and every number of every opponent or trial."""
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
            if len(self._own_curve) < _MOST_OPPONENTS:
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
    return found | {f"behaviour/{name}": float(values.mean()) for name, values in episodes.behaviour.items()}


def _finite(found: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}
