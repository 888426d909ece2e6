"""Evaluation during training: when it is due, how the agent did, and whether it is the best one so far."""

import math
import time
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from ludus.core.state import Count, StateModel
from ludus.envs.base import EnvSpec
from ludus.envs.world_parts import choose_scenarios
from ludus.evaluation.evaluate import Evaluation, evaluate
from ludus.evaluation.matches import Progress
from ludus.policies.policy import Policy
from ludus.training.callbacks import Counters, Evaluated
from ludus.training.config import LOWEST_WIN_RATE, MEAN_WIN_RATE, EvaluationConfig, PlateauConfig, TrainConfig

STEPS_TO_CONVERGENCE = "steps_to_convergence"
MAX_SHARE = 0.1  # of a run's time on a GPU, where matches last as long however few are played


class EvaluationState(StateModel):
    """What `EvaluationCallback` saves as JSON: its attributes.

    Attributes:
        best: None stands for minus infinity, which JSON does not have.
    """

    best: float | None
    since_best: Count
    is_due: bool
    every_env_steps: Annotated[int, Field(ge=1, lt=2**63)]
    steps_to_convergence: Count | None


class EvaluationCallback:
    """Evaluates the policy on its own games, and remembers the best score."""

    def __init__(self, config: TrainConfig, *, is_limited: bool = False) -> None:
        """Begin without a score; evaluations that are limited take at most a tenth of the run's time."""
        self._config, self._world, self._modes = config.evaluation, config.world.name, config.judged_modes()
        self._names_modes = config.names_modes
        self._plateau = config.guard.plateau
        self.best, self.since_best = -math.inf, 0  # the highest score so far, and evaluations since then
        self.is_due = False  # whether the agent is to be evaluated before the run continues
        self.every_env_steps = 1 if self._config is None else self._config.every_env_steps  # at present
        self.steps_to_convergence: int | None = None  # env steps at the first evaluation in which it had converged
        self.warnings: tuple[str, ...] = ()  # of the last evaluation
        self._is_limited = is_limited
        self._trained_s = self._evaluated_s = self._last_s = 0.0  # of iterations, all evaluations, the last one
        self._wanted_at: int | None = None  # env steps at which an evaluation came due that is put off

    def pass_steps(self, before: Counters, after: Counters, *, is_last: bool, elapsed_s: float = 0.0) -> bool:
        """Record an iteration that moved the counters; return whether an evaluation is due, always after the last."""
        self._trained_s += elapsed_s
        if self._config is not None:
            every = self.every_env_steps
            if self._wanted_at is None and before.env_steps // every < after.env_steps // every:
                self._wanted_at = after.env_steps
            self.is_due = is_last or (self._wanted_at is not None and self._is_affordable())
        return self.is_due

    def _is_affordable(self) -> bool:
        """Return whether an evaluation as long as the last one keeps all of them within their share of the time."""
        evaluated_s = self._evaluated_s + self._last_s
        return not self._is_limited or evaluated_s <= MAX_SHARE * (self._trained_s + evaluated_s)

    def begin_games(self) -> None:
        """Drop the best score if it is from other games than those evaluated from now on."""
        if not self._modes:
            self.best, self.since_best = -math.inf, 0

    def describe(self, spec: EnvSpec) -> str:
        """Say what an evaluation plays."""
        config = self._config
        if config is None:
            return "no evaluation"
        if len(set(spec.teams)) == 1:
            scenarios = choose_scenarios(self._world, config.scenarios)
            where = f" in each of {', '.join(scenarios)}" if scenarios else ""
            return f"evaluation, {config.matches} episodes{where}"
        count = len(spec.bots if config.opponents is None else config.opponents)
        modes = f" in each of {', '.join(self._modes)}" if self._modes else ""
        return f"evaluation, {config.matches} matches against each of {count} opponents{modes}"

    def evaluate(
        self, policy: Policy, counters: Counters, settings: Mapping[str, Any], progress: Progress = lambda _: None
    ) -> Evaluated:
        """Play the matches; the policy and its statistics stay as they are.

        `progress` is called with the fraction done. The agent is evaluated in `settings` of the world, unless there are
        modes.

        Raises:
            UnknownNameError: The settings name a number that the rows do not have; the valid ones are listed.
        """
        config = self._config
        assert config is not None  # noqa: S101 - it was due
        started_s = time.perf_counter()
        result = evaluate(
            policy, config.opponents, scenarios=config.scenarios, modes=self._modes, world=self._world,
            config=None if self._modes else settings or None, matches=config.matches,
            seed=config.seed, deterministic=config.deterministic, progress=progress,
        )  # fmt: skip
        self.warnings = result.warnings
        first = Evaluation(result.world, result.rows[:1], result.seconds)
        numbers = {name: first.mean(name) for name in config.numbers()}
        score = score_of(result, config)
        improvement = self._plateau.improvement if self._plateau is not None else 0.0
        is_best = score > self.best - config.tolerance
        self.since_best = 0 if score > self.best + improvement else self.since_best + 1
        self.best = score if score > self.best else self.best  # a score that is no number is never the best
        self.every_env_steps = cadence(config, numbers)
        messages = self._note_convergence(numbers, counters) + self._note_delay(counters)
        rows = tuple(result.as_json()["opponents"])
        if self._names_modes and not self._modes:  # whatever the phase is, all rows of the run have the same columns
            mode = {"mode": result.mode, "side": result.mode}
            rows = tuple({"opponent": row["opponent"]} | mode | row for row in rows)
        judged_by = config.score if config.score in numbers else result.judged_by
        seconds = self._last_s = time.perf_counter() - started_s
        self._evaluated_s += seconds
        return Evaluated(
            counters, rows, score, is_best, judged_by, self.milestones, messages, seconds, self.every_env_steps
        )

    @property
    def milestones(self) -> dict[str, int | None]:
        """Env steps at which something was reached first, by name, where that is watched; None where it was not yet."""
        is_watched = self._config is not None and self._config.converged is not None
        return {STEPS_TO_CONVERGENCE: self.steps_to_convergence} if is_watched else {}

    def _note_convergence(self, numbers: Mapping[str, float], counters: Counters) -> tuple[str, ...]:
        """Record when the agent has converged for the first time, and return the messages about it."""
        wanted = {} if self._config is None else self._config.converged or {}
        if not wanted or self.steps_to_convergence is not None:
            return ()
        if not all(numbers[name] >= least for name, least in wanted.items()):
            return ()
        self.steps_to_convergence = counters.env_steps
        reached = ", ".join(f"{name} {numbers[name]:.4g}" for name in wanted)
        return (f"converged at {counters.env_steps:,} env steps: {reached}",)

    def _note_delay(self, counters: Counters) -> tuple[str, ...]:
        """Forget since when the evaluation was due, and return a message if it was put off."""
        late = 0 if self._wanted_at is None else counters.env_steps - self._wanted_at
        self._wanted_at = None
        text = f"the evaluation was put off by {late:,} env steps: all of them take at most {MAX_SHARE:.0%} of the time"
        return (text,) if late else ()

    def plateau(self) -> PlateauConfig | None:
        """Return what to do about a plateau if there is one since the last evaluation, else None."""
        rule = self._plateau
        if rule is None or self.since_best == 0 or self.since_best % rule.evaluations:
            return None
        return rule

    def state(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            "best": self.best if math.isfinite(self.best) else None,
            "since_best": self.since_best,
            "is_due": self.is_due,
            "every_env_steps": self.every_env_steps,
            STEPS_TO_CONVERGENCE: self.steps_to_convergence,
        }

    def load_state(self, state: object) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: A part of it is missing or out of range.
        """
        saved = EvaluationState.read(state, "course.evaluation")
        self.best = -math.inf if saved.best is None else saved.best
        self.since_best, self.is_due = saved.since_best, saved.is_due and self._config is not None
        self.every_env_steps, self.steps_to_convergence = saved.every_env_steps, saved.steps_to_convergence


def score_of(result: Evaluation, config: EvaluationConfig) -> float:
    """Return the score by which the best agent is kept; see `EvaluationConfig.score`."""
    if config.score == LOWEST_WIN_RATE and result.mean_win_rate is not None:
        return min(float(row["win_rate"]) for row in result.rows)
    return result.score if config.score in (MEAN_WIN_RATE, LOWEST_WIN_RATE) else result.mean(config.score)


def cadence(config: EvaluationConfig, numbers: Mapping[str, float]) -> int:
    """Return how many env steps the next evaluations are apart; see `EvaluationConfig.sooner`."""
    every = config.every_env_steps
    if config.sooner is not None:
        for bound, steps in config.sooner.steps:
            every = steps if numbers[config.sooner.number] >= bound else every
    return every
