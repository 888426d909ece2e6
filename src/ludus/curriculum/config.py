"""The settings of a curriculum's stages."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.policies.config import ExplorationConfig
from ludus.rewards.weights import RewardConfig

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PromotionConfig(_Frozen):
    """When a stage is passed. What is given must all hold; `at_latest_env_steps` passes it in any case.

    Attributes:
        win_rate: Share of the last `matches` matches that must have been won.
        matches: How many of the last matches count; fewer than that decide nothing.
        against: Only matches against these opponents count; all if None.
        rating: Live Elo rating that the learner must have in the stage's mode; all begin with 1,000.
        after_env_steps: Env steps that the stage lasts at least.
        at_latest_env_steps: Env steps after which the stage is passed whatever the win rate and rating.
    """

    win_rate: Share | None = None
    matches: int = Field(default=200, ge=1)
    against: tuple[str, ...] | None = None
    rating: float | None = None
    after_env_steps: int | None = Field(default=None, ge=0)
    at_latest_env_steps: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _can_be_passed(self) -> Self:
        if all(rule is None for rule in (self.win_rate, self.rating, self.after_env_steps, self.at_latest_env_steps)):
            raise ValueError(
                "needs win_rate, rating, after_env_steps or at_latest_env_steps, or the stage would never end"
            )
        return self


class DemotionConfig(_Frozen):
    """When a run falls back to the stage before.

    Attributes:
        win_rate: It does when fewer than this share of the last matches were won.
        matches: How many of the last matches count; fewer than that decide nothing.
        against: Only matches against these opponents count; all if None.
    """

    win_rate: Share
    matches: int = Field(default=200, ge=1)
    against: tuple[str, ...] | None = None


class StageWorldConfig(_Frozen):
    """In which a stage's games differ from the run's.

    Attributes:
        num_games: Games in the batch; None keeps the run's.
        settings: The world's own settings in the place of the run's: what is not named stays.
    """

    num_games: int | None = Field(default=None, ge=1)
    settings: dict[str, Any] = Field(default_factory=dict)


class StageConfig(_Frozen):
    """One stage.

    Attributes:
        name: What people are shown.
        opponents: Share of each opponent, `self` for past selves, `mirror` for games that the learner plays alone.
        world: In which its games differ from the run's; None not at all. What is seen and done must be the same.
        rewards: What is rewarded in it; None keeps the run's own.
        exploration: How the policy explores in it; None keeps the run's own, `policy.exploration`.
        promotion: When it is passed; None in a stage that lasts to the end.
        demotion: When the run falls back to the stage before; None never.
    """

    name: str = Field(min_length=1)
    opponents: dict[str, Annotated[float, Field(ge=0.0)]]
    world: StageWorldConfig | None = None
    rewards: RewardConfig | None = None
    exploration: ExplorationConfig | None = None
    promotion: PromotionConfig | None = None
    demotion: DemotionConfig | None = None


def check_stages(stages: tuple[StageConfig, ...]) -> None:
    """Raises ValueError unless the stages make a curriculum: different names, and all but the last can be passed."""
    idle = [stage.name for stage in stages if not any(stage.opponents.values())]
    if idle:
        raise ValueError(f"stage {idle[0]!r} needs an opponent with a weight above 0")
    names = [stage.name for stage in stages]
    if len(set(names)) != len(names):
        raise ValueError(f"stages need different names, got {', '.join(names)}")
    stuck = [stage.name for stage in stages[:-1] if stage.promotion is None]
    if stuck:
        raise ValueError(f"stage {stuck[0]!r} needs a promotion rule, since others come after it")
    if stages and stages[0].demotion is not None:
        raise ValueError(f"stage {stages[0].name!r} is the first one, so it cannot have a demotion rule")
