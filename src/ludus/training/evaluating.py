"""Evaluation during training: when it is due, how the agent did, and whether it is the best one so far."""

import math
from collections.abc import Mapping
from typing import Any

from ludus.evaluation.duels import Evaluation, evaluate
from ludus.policies.policy import Policy
from ludus.training.callbacks import Counters, Evaluated
from ludus.training.config import LOWEST_WIN_RATE, MEAN_WIN_RATE, EvaluationConfig, PlateauConfig, TrainConfig

STEPS_TO_CONVERGENCE = "steps_to_convergence"


class Evaluator:
    """Evaluates the policy on games of its own, and remembers the best score.

    Attributes:
        best: The highest score so far; minus infinity before the first evaluation.
        since_best: Evaluations since then.
        is_due: Whether the agent is to be evaluated before the run goes on.
        every_env_steps: How far evaluations are apart at present.
        steps_to_convergence: Env steps at the first evaluation in which the agent had converged; None before.
    """

    def __init__(self, config: TrainConfig) -> None:
        self._config, self._world, self._modes = config.evaluation, config.world.name, config.judged_modes()
        self._names_modes = config.names_modes
        self._plateau = config.guard.plateau
        self.best = -math.inf
        self.since_best = 0
        self.is_due = False
        self.every_env_steps = 1 if self._config is None else self._config.every_env_steps
        self.steps_to_convergence: int | None = None

    def pass_steps(self, before: Counters, after: Counters, *, is_last: bool) -> bool:
        """Notes an iteration that moved the counters, and says whether an evaluation is due; after the last always."""
        if self._config is not None:
            every = self.every_env_steps
            self.is_due = is_last or before.env_steps // every < after.env_steps // every
        return self.is_due

    def begin_games(self) -> None:
        """Forgets the best score if it was one of other games than those that are evaluated from now on."""
        if not self._modes:
            self.best, self.since_best = -math.inf, 0

    def evaluate(self, policy: Policy, counters: Counters, settings: Mapping[str, Any]) -> Evaluated:
        """Plays the matches; the policy and its statistics stay as they are.

        Args:
            policy: Who plays.
            counters: How far the run is.
            settings: Of the world, in which it is evaluated at present; not used where there are modes.

        Raises:
            UnknownNameError: The settings name a number that the rows do not have; the valid ones are listed.
        """
        config = self._config
        assert config is not None  # noqa: S101 - it was due
        result = evaluate(
            policy,
            config.opponents,
            trials=config.trials,
            modes=self._modes,
            world=self._world,
            matches=config.matches,
            seed=config.seed,
            config=None if self._modes else settings or None,
            deterministic=config.deterministic,
        )
        first = Evaluation(result.world, result.rows[:1], result.seconds)
        numbers = {name: first.mean(name) for name in config.numbers()}
        score = score_of(result, config)
        improvement = self._plateau.improvement if self._plateau is not None else 0.0
        is_best = score > self.best - config.tolerance
        self.since_best = 0 if score > self.best + improvement else self.since_best + 1
        self.best = score if score > self.best else self.best  # a score that is no number is never the best
        self.every_env_steps = cadence(config, numbers)
        messages = self._note_convergence(numbers, counters)
        rows = tuple(result.as_json()["opponents"])
        if self._names_modes and not self._modes:  # whatever the stage is, all rows of the run have the same columns
            rows = tuple(
                {"opponent": row["opponent"], "mode": result.mode, "side": row.get("side", result.mode)} | row
                for row in rows
            )
        judged_by = config.score if config.score in numbers else result.judged_by
        return Evaluated(counters, rows, score, is_best, judged_by, self.milestones, messages)

    @property
    def milestones(self) -> dict[str, int | None]:
        """Env steps at which something was reached first, by name, where that is watched; None where it was not yet."""
        is_watched = self._config is not None and self._config.converged is not None
        return {STEPS_TO_CONVERGENCE: self.steps_to_convergence} if is_watched else {}

    def _note_convergence(self, numbers: Mapping[str, float], counters: Counters) -> tuple[str, ...]:
        """Notes when the agent has converged for the first time, and returns what there is to say of it."""
        wanted = {} if self._config is None else self._config.converged or {}
        if not wanted or self.steps_to_convergence is not None:
            return ()
        if not all(numbers[name] >= least for name, least in wanted.items()):
            return ()
        self.steps_to_convergence = counters.env_steps
        reached = ", ".join(f"{name} {numbers[name]:.4g}" for name in wanted)
        return (f"converged at {counters.env_steps:,} env steps: {reached}",)

    def plateau(self) -> PlateauConfig | None:
        """Returns what to do about a plateau if there is one since the last evaluation, else None."""
        rule = self._plateau
        if rule is None or self.since_best == 0 or self.since_best % rule.evaluations:
            return None
        return rule

    def state(self) -> dict[str, Any]:
        """Returns what it remembers, for JSON."""
        return {
            "best": self.best if math.isfinite(self.best) else None,
            "since_best": self.since_best,
            "is_due": self.is_due,
            "every_env_steps": self.every_env_steps,
            STEPS_TO_CONVERGENCE: self.steps_to_convergence,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave; what runs before these numbers were kept do not have stays as it is."""
        self.best = -math.inf if state["best"] is None else float(state["best"])
        self.since_best = int(state["since_best"])
        self.is_due = bool(state["is_due"])
        self.every_env_steps = int(state.get("every_env_steps", self.every_env_steps))
        self.steps_to_convergence = state.get(STEPS_TO_CONVERGENCE)


def score_of(result: Evaluation, config: EvaluationConfig) -> float:
    """Returns the score by which the best agent is kept; see `EvaluationConfig.score`."""
    if config.score == LOWEST_WIN_RATE and result.mean_win_rate is not None:
        return min(float(row["win_rate"]) for row in result.rows)
    return result.score if config.score in (MEAN_WIN_RATE, LOWEST_WIN_RATE) else result.mean(config.score)


def cadence(config: EvaluationConfig, numbers: Mapping[str, float]) -> int:
    """Returns how many env steps the next evaluations are apart; see `EvaluationConfig.sooner`."""
    every = config.every_env_steps
    if config.sooner is not None:
        for bound, steps in config.sooner.steps:
            every = steps if numbers[config.sooner.number] >= bound else every
    return every
