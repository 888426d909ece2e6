"""Settings of a Rocket environment."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from ludus.core.errors import did_you_mean
from ludus.envs.settings import MatchSettings
from ludus.worlds.rocket.rules import CLOCK_S, MAX_TEAM, SETTERS, TICK_HZ

TeamSize = Annotated[int, Field(ge=1, le=MAX_TEAM)]
Weight = Annotated[float, Field(ge=0, le=1e6, strict=False)]
Seconds = Annotated[float, Field(gt=0, le=36_000, strict=False)]


class RocketConfig(MatchSettings):
    """What can be set about the game itself.

    Attributes:
        mode: Both team sizes at once, such as `2v2` or `1v2` (blue first); instead of `blue` and `orange`.
        blue: Cars of blue, 1 to 3.
        orange: Cars of orange, 1 to 3; it need not be as many.
        ticks: Ticks of 1/120 s in a decision; 8 are 15 decisions per second.
        input_delay_ticks: Ticks at the start of a decision in which the controls of the decision before still hold, 0
            to `ticks`; at the start of an episode they are all 0.
        actions: `table` (90 useful combinations) or `continuous`.
        episode: `goal` (an episode is over with a goal) or `match` (a clock, kickoffs after goals, overtime).
        episode_s: An episode that ends with a goal is cut off after this time; None for never.
        no_touch_s: It is also cut off after this time without a touch of the ball; None for never.
        match_s: Length of a match.
        overtime_s: Longest overtime of a drawn match, after which it stays a draw; None for no end, 0 for no overtime.
        setters: Weights of the state setters that begin an episode.
        boost: `normal` or `unlimited`.
        shuffle: Whether the slots of other cars in the observations are permuted in each episode.
        threads: Host threads that advance the games on a CPU; None for all cores.
    """

    removed_keys: ClassVar[Mapping[str, str]] = {
        "bins": "rocket.md#removed",
        "observation": "rocket.md#removed",
    }

    mode: str | None = None
    blue: TeamSize = 1
    orange: TeamSize = 1
    ticks: Annotated[int, Field(ge=1, le=TICK_HZ)] = 8
    input_delay_ticks: Annotated[int, Field(ge=0, le=TICK_HZ)] = 0
    actions: Literal["table", "continuous"] = "table"
    episode: Literal["goal", "match"] = "goal"
    episode_s: Seconds | None = 300.0
    no_touch_s: Seconds | None = 30.0
    match_s: Seconds = CLOCK_S
    overtime_s: Annotated[float, Field(ge=0, le=36_000, strict=False)] | None = CLOCK_S
    setters: Annotated[Mapping[str, Weight], Field(strict=False)] = Field(default_factory=lambda: {"kickoff": 1.0})
    boost: Literal["normal", "unlimited"] = "normal"
    shuffle: bool = True
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _sizes_of_mode(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic hands over what was given
        """Read the team sizes out of `mode`."""
        if not isinstance(values, Mapping) or values.get("mode") is None:
            return values
        mode = values["mode"]
        found = re.fullmatch(rf"([1-{MAX_TEAM}])v([1-{MAX_TEAM}])", mode) if isinstance(mode, str) else None
        if found is None:
            raise ValueError(
                f"mode must name two team sizes of 1 to {MAX_TEAM}, such as 1v1, 1v2 or 3v3 (blue first), got {mode!r}"
            )
        sizes = {"blue": int(found[1]), "orange": int(found[2])}
        for team, size in sizes.items():
            if values.get(team, size) != size:
                raise ValueError(
                    f"mode {mode!r} says {team} {size}, but {team} is {values[team]!r}; leave one of them out"
                )
        return {**values, **sizes}

    @field_validator("setters")
    @classmethod
    def _known_setters(cls, setters: Mapping[str, float]) -> Mapping[str, float]:
        valid = ", ".join(SETTERS)
        for name, weight in setters.items():
            if name not in SETTERS:
                raise ValueError(f"unknown state setter {name!r}{did_you_mean(name, SETTERS)}; valid: {valid}")
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of {name!r} must be a number of at least 0, got {weight!r}")
        if not sum(setters.values()) > 0:
            raise ValueError(f"at least one state setter needs a weight above 0; valid: {valid}")
        return setters

    @model_validator(mode="after")
    def _delay_within_decision(self) -> Self:
        if self.input_delay_ticks > self.ticks:
            raise ValueError(
                f"input_delay_ticks is {self.input_delay_ticks}, but a decision has {self.ticks} ticks; "
                f"valid: 0 to {self.ticks}"
            )
        return self

    @property
    def seats(self) -> int:
        """Cars in a game."""
        return self.blue + self.orange

    @property
    def step_limit(self) -> int | None:
        """Decisions after which a game is over, whatever happens, or None."""
        if self.episode == "goal":
            return None if self.episode_s is None else self._decisions(self.episode_s)
        return None if self.overtime_s is None else self._decisions(self.match_s + self.overtime_s)

    def _decisions(self, seconds: float) -> int:
        return max(1, math.ceil(seconds * TICK_HZ / self.ticks))
