"""Evaluation during training: when it is due, how the agent did, and whether it is the best one so far."""

import math
from collections.abc import Mapping
from typing import Any

from ludus.evaluation.duels import Evaluation, evaluate
from ludus.policies.policy import Policy
from ludus.training.callbacks import Counters, Evaluated
from ludus.training.config import EvaluationConfig, PlateauConfig, TrainConfig


class Evaluator:
    """Evaluates the policy on games of its own, and remembers the best score.

    Attributes:
        best: The highest score so far; minus infinity before the first evaluation.
        since_best: Evaluations since then.
        is_due: Whether the agent is to be evaluated before the run goes on.
    """

    def __init__(self, config: TrainConfig) -> None:
        self._config, self._world = config.evaluation, config.world
        self._plateau = config.guard.plateau
        self.best = -math.inf
        self.since_best = 0
        self.is_due = False

    def pass_steps(self, before: Counters, after: Counters, *, is_last: bool) -> bool:
        """Notes an iteration that moved the counters, and says whether an evaluation is due; after the last always."""
        if self._config is not None:
            every = self._config.every_env_steps
            self.is_due = is_last or before.env_steps // every < after.env_steps // every
        return self.is_due

    def evaluate(self, policy: Policy, counters: Counters) -> Evaluated:
        """Plays the matches; the policy and its statistics stay as they are."""
        assert self._config is not None  # noqa: S101 - it was due
        result = evaluate(
            policy,
            self._config.opponents,
            world=self._world.name,
            matches=self._config.matches,
            seed=self._config.seed,
            config=self._world.settings or None,
            deterministic=self._config.deterministic,
        )
        score = score_of(result, self._config)
        improvement = self._plateau.improvement if self._plateau is not None else 0.0
        is_best = score > self.best
        self.since_best = 0 if score > self.best + improvement else self.since_best + 1
        self.best = max(score, self.best)
        return Evaluated(counters, tuple(result.as_json()["opponents"]), score, is_best)

    def plateau(self) -> PlateauConfig | None:
        """Returns what to do about a plateau if there is one since the last evaluation, else None."""
        rule = self._plateau
        if rule is None or self.since_best == 0 or self.since_best % rule.evaluations:
            return None
        return rule

    def state(self) -> dict[str, Any]:
        """Returns what it remembers, for JSON."""
        best = self.best if math.isfinite(self.best) else None
        return {"best": best, "since_best": self.since_best, "is_due": self.is_due}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave."""
        self.best = -math.inf if state["best"] is None else float(state["best"])
        self.since_best = int(state["since_best"])
        self.is_due = bool(state["is_due"])


def score_of(result: Evaluation, config: EvaluationConfig) -> float:
    """Returns the score by which the best agent is kept; see `EvaluationConfig.score`."""
    if result.mean_win_rate is None or config.score == "mean_win_rate":
        return result.score
    return min(float(row["win_rate"]) for row in result.rows)
