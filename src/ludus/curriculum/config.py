"""The settings of a curriculum: its phases, and what a run adapts to the results of its games."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.core.schedules import MAX_ENV_STEPS, MAX_ENVS, MAX_FACTOR, MAX_ITERATIONS, MAX_MATCHES, MAX_STEPS
from ludus.policies.config import ExplorationConfig
from ludus.rewards.weights import RewardConfig

Share = Annotated[float, Field(ge=0.0, le=1.0)]

Name = Annotated[str, Field(min_length=1)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PromotionConfig(_Frozen):
    """When a phase is passed. All rules that are given must hold; `at_latest_env_steps` passes it in any case.

    Attributes:
        win_rate: Share of the last `matches` matches that must have been won.
        matches: Number of last matches that count; with fewer, nothing is decided.
        against: Opponents whose matches count; None is all.
        rating: Live Elo rating that the learner must reach in the phase's mode; ratings start at 1,000.
        after_env_steps: Shortest length of the phase in env steps.
        at_latest_env_steps: Env steps after which the phase is passed in any case.
    """

    win_rate: Share | None = None
    matches: int = Field(default=200, ge=1, le=MAX_MATCHES)
    against: tuple[str, ...] | None = None
    rating: float | None = Field(default=None, ge=-100_000.0, le=100_000.0)
    after_env_steps: int | None = Field(default=None, ge=0, le=MAX_ENV_STEPS)
    at_latest_env_steps: int | None = Field(default=None, ge=1, le=MAX_ENV_STEPS)

    @model_validator(mode="after")
    def _can_be_passed(self) -> Self:
        if all(rule is None for rule in (self.win_rate, self.rating, self.after_env_steps, self.at_latest_env_steps)):
            raise ValueError(
                "needs win_rate, rating, after_env_steps or at_latest_env_steps, or the phase would never end"
            )
        return self


class DemotionConfig(_Frozen):
    """When a run falls back to the phase before.

    Attributes:
        win_rate: Share of the last matches below which the run falls back.
        matches: Number of last matches that count; with fewer, nothing is decided.
        against: Opponents whose matches count; None is all.
    """

    win_rate: Share
    matches: int = Field(default=200, ge=1, le=MAX_MATCHES)
    against: tuple[str, ...] | None = None


class PhaseWorldConfig(_Frozen):
    """How the games of a phase differ from the run's.

    Attributes:
        num_envs: Games in the batch; None keeps the run's.
        settings: World settings that override the run's.
    """

    num_envs: int | None = Field(default=None, ge=1, le=MAX_ENVS)
    settings: dict[str, Any] = Field(default_factory=dict)


class PhaseConfig(_Frozen):
    """One phase.

    Attributes:
        name: Name of the phase.
        opponents: Weight of each opponent; `self` for snapshots, `mirror` for games that the learner plays alone.
        world: How its games differ from the run's. Observations and actions must stay the same.
        rewards: Rewards of the phase; None keeps the run's own.
        exploration: Exploration of the phase; None keeps `policy.exploration`.
        promotion: When the phase is passed; None in a phase that lasts to the end.
        demotion: When the run falls back to the previous phase; None never.
    """

    name: str = Field(min_length=1)
    opponents: dict[str, Annotated[float, Field(ge=0.0, le=MAX_FACTOR)]]
    world: PhaseWorldConfig | None = None
    rewards: RewardConfig | None = None
    exploration: ExplorationConfig | None = None
    promotion: PromotionConfig | None = None
    demotion: DemotionConfig | None = None


def check_phases(phases: tuple[PhaseConfig, ...]) -> None:
    """Raise ValueError unless the phases make a curriculum: different names, and all but the last can be passed."""
    idle = [phase.name for phase in phases if not any(phase.opponents.values())]
    if idle:
        raise ValueError(f"phase {idle[0]!r} needs an opponent with a weight above 0")
    names = [phase.name for phase in phases]
    if len(set(names)) != len(names):
        raise ValueError(f"phases need different names, got {', '.join(names)}")
    stuck = [phase.name for phase in phases[:-1] if phase.promotion is None]
    if stuck:
        raise ValueError(f"phase {stuck[0]!r} needs a promotion rule, since others come after it")
    if phases and phases[0].demotion is not None:
        raise ValueError(f"phase {phases[0].name!r} is the first one, so it cannot have a demotion rule")


class StrategicConfig(_Frozen):
    """Measures which kind of action moves which number, and turns to the goals that are furthest behind.

    A goal NAME of a world is a measure `goal_NAME`, how far it is reached from 0 to 1, and a reward term of that name.

    Attributes:
        kind: `strategic`.
        goals: Names of goals.
        metrics: Further state metrics whose effects are measured.
        ahead: Decisions over which an effect is measured, the decision itself among them; fewer than `ppo.n_steps`.
        against: The kind of action that others are compared with, or `others` for all others.
        confidence: Confidence level of the intervals.
        fewest: Rollouts of a game in which both a kind and what it is compared with must have been played before its
            effect counts.
        lean: Share of exploration that goes to kinds that help; 0 only measures.
        most: Largest factor by which the reward of a goal grows or shrinks.
        inertia: Share of the old factors in the new ones, per iteration.
        half_life_env_steps: Env steps after which an observation counts half; None weights all alike.
        sample: Decisions per iteration that are used; more cost time.
        every_iterations: Iterations between rows of `effects.csv`.
    """

    kind: Literal["strategic"] = "strategic"
    goals: Annotated[tuple[Name, ...], Field(min_length=1)]
    metrics: tuple[Name, ...] = ()
    ahead: int = Field(default=10, ge=1, le=MAX_STEPS)
    against: Name = "wait"
    confidence: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.95
    fewest: int = Field(default=50, ge=2, le=10**9)
    lean: Share = 0.5
    most: Annotated[float, Field(ge=1.0, le=MAX_FACTOR)] = 4.0
    inertia: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    half_life_env_steps: int | None = Field(default=None, ge=1, le=MAX_ENV_STEPS)
    sample: int = Field(default=4096, ge=1, le=10**9)
    every_iterations: int = Field(default=10, ge=1, le=MAX_ITERATIONS)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        names = self.state_metrics()
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} named more than once; name each once")
        return self

    def state_metrics(self) -> tuple[str, ...]:
        """Return the state metrics whose effects are measured, those of goals first."""
        return (*map(goal_term, self.goals), *self.metrics)


class ConstraintConfig(_Frozen):
    """Holds a number of the games above a bound in nearly all decisions, by the price of a reward term.

    The price is a Lagrange multiplier: per iteration it changes by `rate * (share - limit)`, with `share` that of the
    decisions in which the number was below the bound, so it rises while the games violate the limit and falls else.

    Attributes:
        kind: `constraint`.
        measure: State metric of the world that is bounded, such as `funds`.
        at_least: Its lower bound.
        limit: Largest share of decisions in which it may be lower.
        term: Reward term whose weight is multiplied, such as `debt`.
        rate: Change of the multiplier per iteration and unit of violation.
        lowest: Lowest multiplier.
        highest: Highest multiplier.
    """

    kind: Literal["constraint"] = "constraint"
    measure: Name
    at_least: float = Field(default=0.0, ge=-1e12, le=1e12)
    limit: Share = 0.02
    term: Name
    rate: Annotated[float, Field(gt=0.0, le=MAX_FACTOR)] = 5.0
    lowest: Annotated[float, Field(ge=0.0, le=MAX_FACTOR)] = 1.0
    highest: Annotated[float, Field(ge=0.0, le=MAX_FACTOR)] = 20.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.lowest > self.highest:
            raise ValueError(f"lowest {self.lowest:g} must not exceed highest {self.highest:g}")
        return self


AdaptiveCurriculumConfig = Annotated[StrategicConfig | ConstraintConfig, Field(discriminator="kind")]


def goal_term(goal: str) -> str:
    """Return the name of a goal's measure and reward term."""
    return f"goal_{goal}"
