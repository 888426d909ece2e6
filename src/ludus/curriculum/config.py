"""The settings of a curriculum: its phases, and what a run adapts to the results of its games."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.core.schedules import MAX_ENV_STEPS, MAX_ENVS, MAX_FACTOR, MAX_ITERATIONS, MAX_MATCHES, MAX_STEPS
from ludus.policies.config import ExplorationConfig
from ludus.rewards.weights import RewardConfig

Share = Annotated[float, Field(ge=0.0, le=1.0)]

Name = Annotated[str, Field(min_length=1)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PromotionConfig(_Frozen):
    """When a phase is passed: all rules that are given must hold.

    Attributes:
        win_rate: Share of the last `matches` matches that must have been won.
        matches: Number of last matches that count; with fewer, nothing is decided.
        against: Opponents whose matches count; None is all.
        rating: Live Elo rating that the learner must reach in the phase's mode; ratings start at 1,000.
        after_env_steps: Shortest length of the phase in env steps.
    """

    removed_keys: ClassVar[Mapping[str, str]] = {"at_latest_env_steps": "rocket.md#curriculum-rules"}

    win_rate: Share | None = None
    matches: int = Field(default=200, ge=1, le=MAX_MATCHES)
    against: tuple[str, ...] | None = None
    rating: float | None = Field(default=None, ge=-100_000.0, le=100_000.0)
    after_env_steps: int | None = Field(default=None, ge=0, le=MAX_ENV_STEPS)

    @model_validator(mode="after")
    def _can_be_passed(self) -> Self:
        if self.win_rate is None and self.rating is None and self.after_env_steps is None:
            raise ValueError("needs win_rate, rating or after_env_steps, or the phase would never end")
        return self


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
    """

    removed_keys: ClassVar[Mapping[str, str]] = {"demotion": "rocket.md#curriculum-rules"}

    name: str = Field(min_length=1)
    opponents: dict[str, Annotated[float, Field(ge=0.0, le=MAX_FACTOR)]]
    world: PhaseWorldConfig | None = None
    rewards: RewardConfig | None = None
    exploration: ExplorationConfig | None = None
    promotion: PromotionConfig | None = None


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


class AdaptiveConfig(_Frozen):
    """Explores more while the games are stuck and less while they get on.

    Attributes:
        kind: `adaptive`.
        measure: State metric of the world that has to grow.
        patience: Decisions without growth after which a game is stuck; fewer than `ppo.n_steps`.
        exploring: Factors of reward terms while the run explores.
    """

    kind: Literal["adaptive"] = "adaptive"
    measure: Name
    patience: int = Field(default=40, ge=1, le=MAX_STEPS)
    exploring: dict[str, Annotated[float, Field(ge=0.0, le=MAX_FACTOR)]] = Field(default_factory=dict)


class StrategicConfig(_Frozen):
    """Measures which kind of action moves which number, and turns to the goals that are furthest behind.

    A goal NAME of a world is a measure `goal_NAME`, how far it is reached from 0 to 1, and a reward term of that name.

    Attributes:
        kind: `strategic`.
        goals: Names of goals.
        metrics: Further state metrics whose effects are measured.
        ahead: Decisions over which an effect is measured, the decision itself among them; fewer than `ppo.n_steps`.
        against: The kind of action that others are compared with.
        lean: Share of exploration that goes to kinds that help; 0 only measures.
        every_iterations: Iterations between rows of `effects.csv`.
    """

    removed_keys: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("confidence", "fewest", "most", "inertia", "half_life_env_steps", "sample"), "city.md#every-mode"
    )

    kind: Literal["strategic"] = "strategic"
    goals: Annotated[tuple[Name, ...], Field(min_length=1)]
    metrics: tuple[Name, ...] = ()
    ahead: int = Field(default=10, ge=1, le=MAX_STEPS)
    against: Name = "wait"
    lean: Share = 0.5
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


AdaptiveCurriculumConfig = Annotated[AdaptiveConfig | StrategicConfig, Field(discriminator="kind")]


def goal_term(goal: str) -> str:
    """Return the name of a goal's measure and reward term."""
    return f"goal_{goal}"
