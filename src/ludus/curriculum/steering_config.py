"""The settings of steering: what a run changes by itself while it goes on, by what its games show."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.curriculum.config import Share

Name = Annotated[str, Field(min_length=1)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AdaptiveConfig(_Frozen):
    """Explores more while the games are stuck and less while they get on.

    Attributes:
        kind: `adaptive`.
        measure: The measure of the world that has to grow.
        patience: Decisions without growth after which a game is stuck; fewer than `ppo.steps`.
        explore_above: Share of stuck games at which the run begins to explore.
        build_below: Share of stuck games below which it goes back to building.
        lowest: Exploration frequency that building falls to, and that the run begins with.
        highest: Exploration frequency that exploring rises to.
        step: By how much the frequency changes in an iteration.
        exploring: Factors of reward terms while the run explores.
    """

    kind: Literal["adaptive"] = "adaptive"
    measure: Name
    patience: int = Field(default=30, ge=1)
    explore_above: Share = 0.6
    build_below: Share = 0.4
    lowest: Share = 0.05
    highest: Share = 0.6
    step: Annotated[float, Field(gt=0.0, le=1.0)] = 0.05
    exploring: dict[str, Annotated[float, Field(ge=0.0)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.build_below > self.explore_above:
            raise ValueError(f"build_below {self.build_below:g} must not exceed explore_above {self.explore_above:g}")
        if self.lowest > self.highest:
            raise ValueError(f"lowest {self.lowest:g} must not exceed highest {self.highest:g}")
        return self


class StrategicConfig(_Frozen):
    """Measures which kind of action moves which number, and turns to the goals that are furthest behind.

    A goal NAME of a world is a measure `goal_NAME`, how far it is reached from 0 to 1, and a reward term of that name.

    Attributes:
        kind: `strategic`.
        goals: Names of goals.
        metrics: Measures of the world whose effects are measured beside those of the goals.
        ahead: Decisions over which an effect is measured, the decision itself among them; fewer than `ppo.steps`.
        against: The kind of action that others are compared with, or `others` for all others.
        confidence: Of the intervals.
        fewest: Rollouts of a game in which a kind must have been played, and what it is compared with, before its
            effect counts.
        lean: Share of exploring that goes to kinds with effects that help; 0 only measures.
        most: Factor by which the reward of a goal grows or shrinks at most.
        inertia: Share of the old factors in the new ones, an iteration.
        half_life_env_steps: Env steps after which an observation counts half; None lets all count alike.
        sample: Decisions of an iteration that are looked at; more cost time.
        every_iterations: How often `effects.csv` gets rows.
    """

    kind: Literal["strategic"] = "strategic"
    goals: Annotated[tuple[Name, ...], Field(min_length=1)]
    metrics: tuple[Name, ...] = ()
    ahead: int = Field(default=10, ge=1)
    against: Name = "wait"
    confidence: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.95
    fewest: int = Field(default=50, ge=2)
    lean: Share = 0.5
    most: Annotated[float, Field(ge=1.0)] = 4.0
    inertia: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    half_life_env_steps: int | None = Field(default=None, ge=1)
    sample: int = Field(default=4096, ge=1)
    every_iterations: int = Field(default=10, ge=1)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        names = self.measures()
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} named more than once; name each once")
        return self

    def measures(self) -> tuple[str, ...]:
        """Returns the measures whose effects are measured, those of goals first."""
        return (*map(goal_term, self.goals), *self.metrics)


SteeringConfig = Annotated[AdaptiveConfig | StrategicConfig, Field(discriminator="kind")]


def goal_term(goal: str) -> str:
    """Returns the name of a goal's measure and reward term."""
    return f"goal_{goal}"
