"""Weights of reward terms: constant, or annealed smoothly over env steps."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from ludus.core.schedules import MAX_ENV_STEPS, MAX_FACTOR

Point: TypeAlias = tuple[
    Annotated[int, Field(ge=0, le=MAX_ENV_STEPS)], Annotated[float, Field(ge=-MAX_FACTOR, le=MAX_FACTOR)]
]


class WeightPath(BaseModel):
    """A weight that goes through points and never jumps.

    Attributes:
        points: `[env_steps, weight]` each, by rising env steps; before the first and after the last the weight stays.
        kind: How it goes from point to point: in straight lines, or in half cosine waves.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    points: Annotated[tuple[Point, ...], Field(min_length=1)]
    kind: Literal["linear", "cosine"] = "linear"

    @model_validator(mode="after")
    def _rise(self) -> Self:
        steps = [step for step, _ in self.points]
        if any(later <= earlier for earlier, later in pairwise(steps)):
            raise ValueError(f"env steps of the points must rise, got {', '.join(map(str, steps))}")
        return self

    @property
    def highest(self) -> float:
        """The highest weight that it ever reaches."""
        return max(weight for _, weight in self.points)

    def value(self, env_steps: int) -> float:
        """Return the weight after so many env steps."""
        if len(self.points) == 1:
            return self.points[0][1]
        place = bisect_right([step for step, _ in self.points], env_steps)
        if place in (0, len(self.points)):
            return self.points[max(place - 1, 0)][1]
        (begin, start), (end, goal) = self.points[place - 1 : place + 1]
        share = (env_steps - begin) / (end - begin)
        if self.kind == "cosine":
            share = 0.5 - 0.5 * math.cos(math.pi * share)
        return (1.0 - share) * start + share * goal


def _number_is_constant(raw: object) -> object:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return {"points": [[0, raw]]}
    return raw


Weight = Annotated[WeightPath, BeforeValidator(_number_is_constant)]
"""A config field that takes a number, or a mapping with `points` and `kind`."""


class RewardConfig(BaseModel):
    """What the learner is rewarded for.

    Attributes:
        base: Name of a set of weights that the world ships; None starts with none.
        weights: Weight of each term, added to the set or replacing its value; 0 removes a term.
        team_spirit: Share of the team's mean in the reward of each of its seats, from 0 to 1.
        glide_env_steps: Env steps over which weights change from the old to the new ones when a phase changes them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    removed_keys: ClassVar[Mapping[str, str]] = {
        "style": "mimic.md#a-learned-reward",
        "zero_sum": "rocket.md#what-was-compared-for-quick",
    }

    base: str | None = None
    weights: dict[str, Weight] = Field(default_factory=dict)
    team_spirit: Weight = WeightPath(points=((0, 0.0),))
    glide_env_steps: int = Field(default=0, ge=0, le=MAX_ENV_STEPS)

    @field_validator("team_spirit")
    @classmethod
    def _is_share(cls, path: WeightPath) -> WeightPath:
        wrong = [weight for _, weight in path.points if not 0.0 <= weight <= 1.0]
        if wrong:
            raise ValueError(f"must be from 0 to 1, got {wrong[0]:g}")
        return path
