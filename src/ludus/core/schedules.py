"""Numbers in configs: bounds that settings share, and schedules that change a number with training progress.

A schedule is a frozen config object that can be asked for its value at a progress of 0 (start) to 1 (end). In a config
file a plain number is a constant: `clip_range: 0.2` and `clip_range: {kind: linear, start: 0.2, end: 0.05}` are both a
`ScheduleConfig`.
"""

import math
from functools import partial
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ludus.core.errors import ConfigError

# Bounds far beyond any sensible value, so that a typo is refused before it costs a night.
MAX_ENV_STEPS = 10**15  # a year at 30 million steps per second
MAX_ITERATIONS = 10**12
MAX_ENVS = 2**31 - 1  # kernels number them with int32
MAX_MATCHES = 10**6
MAX_STEPS = 10**6  # of one rollout, segment or window of decisions
MAX_WIDTH = 2**16  # of one layer
MAX_LAYERS = 64
MAX_FACTOR = 1e6  # of a loss or a reward

Width: TypeAlias = Annotated[int, Field(ge=1, le=MAX_WIDTH)]
Widths: TypeAlias = Annotated[tuple[Width, ...], Field(max_length=MAX_LAYERS)]
Name: TypeAlias = Annotated[str, Field(max_length=200)]  # of something that a file may name
Fraction: TypeAlias = Annotated[float, Field(gt=0.0, le=1.0)]


class _Schedule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ConstantSchedule(_Schedule):
    """The same value throughout."""

    kind: Literal["constant"] = "constant"
    level: float

    def value(self, progress: float) -> float:
        """Return the level, whatever the progress."""
        return self.level


class _Ramp(_Schedule):
    """From `start` to `end`, reached at progress `until` and held from there on."""

    start: float
    end: float
    until: Fraction = 1.0

    def _share(self, progress: float) -> float:
        """Return how much of the way is done, 0..1."""
        return min(max(progress / self.until, 0.0), 1.0)

    def value(self, progress: float) -> float:
        """Return the value at `progress`, which is clamped to 0..1."""
        share = self._share(progress)
        return (1.0 - share) * self.start + share * self.end


class LinearSchedule(_Ramp):
    """A straight line from `start` to `end`, reached at progress `until`."""

    kind: Literal["linear"] = "linear"


class ExponentialSchedule(_Ramp):
    """Changes by equal factors in equal times from `start` to `end`; both have the same sign and are not 0."""

    kind: Literal["exponential"] = "exponential"

    @model_validator(mode="after")
    def _check_signs(self) -> Self:
        if self.start * self.end <= 0.0:
            raise ValueError(f"start {self.start} and end {self.end} must have the same sign and not be 0; use linear")
        return self

    def value(self, progress: float) -> float:
        """Return the value at `progress`, which is clamped to 0..1."""
        share = self._share(progress)
        return self.end if share == 1.0 else self.start * (self.end / self.start) ** share


class CosineSchedule(_Ramp):
    """Half a cosine wave from `start` to `end`: slow at both ends, fastest in the middle."""

    kind: Literal["cosine"] = "cosine"

    def _share(self, progress: float) -> float:
        return 0.5 - 0.5 * math.cos(math.pi * super()._share(progress))


class KlAdaptiveConfig(_Schedule):
    """A learning rate that follows the measured KL divergence between the policies before and after an update."""

    kind: Literal["kl_adaptive"] = "kl_adaptive"
    start: float = Field(gt=0.0)
    target: float = Field(default=0.01, gt=0.0)
    band: float = Field(default=2.0, gt=1.0)
    factor: float = Field(default=1.5, gt=1.0)
    minimum: float = Field(default=1e-5, gt=0.0)
    maximum: float = Field(default=1e-2, gt=0.0)

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if not self.minimum <= self.start <= self.maximum:
            raise ValueError(f"start {self.start} must lie between minimum {self.minimum} and maximum {self.maximum}")
        return self


class KlAdaptiveRate:
    """Lowers the rate by a factor when KL is above `target * band`, raises it when KL is below `target / band`.

    The rate is the only state: keep `rate` in a checkpoint and give it to `load`.
    """

    def __init__(self, config: KlAdaptiveConfig) -> None:
        self.config = config
        self.rate = config.start

    def update(self, kl: float) -> float:
        """Take the KL divergence of the last update and return the next one's rate; NaN leaves it as it is."""
        config = self.config
        if kl > config.target * config.band:
            self.rate = max(self.rate / config.factor, config.minimum)
        elif kl < config.target / config.band:
            self.rate = min(self.rate * config.factor, config.maximum)
        return self.rate

    def load(self, rate: float) -> None:
        """Take the rate of an earlier run; it must lie within the configured bounds."""
        if not self.config.minimum <= rate <= self.config.maximum:
            raise ConfigError(
                f"saved adaptive_rate {rate} is outside {self.config.minimum}..{self.config.maximum}; "
                "widen minimum and maximum"
            )
        self.rate = rate


Schedule: TypeAlias = ConstantSchedule | LinearSchedule | ExponentialSchedule | CosineSchedule


def _number_is_constant(raw: object) -> object:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return {"kind": "constant", "level": raw}
    return raw


ScheduleConfig = Annotated[Schedule, Field(discriminator="kind"), BeforeValidator(_number_is_constant)]
"""A config field that takes a number or a mapping with `kind`."""


def check_ends(schedule: Schedule, low: float, high: float = math.inf) -> Schedule:
    """Return a schedule whose values all lie between two bounds; raise ValueError for any other.

    Schedules go straight from their first value to their last, so that these two decide.
    """
    first, last = schedule.value(0.0), schedule.value(1.0)
    if not (low <= min(first, last) and max(first, last) <= high):
        limits = f"{low:g} or more" if high == math.inf else f"between {low:g} and {high:g}"
        raise ValueError(f"must be {limits} at all times, got {first:g} to {last:g}")
    return schedule


NonNegativeScheduleConfig = Annotated[ScheduleConfig, AfterValidator(partial(check_ends, low=0.0))]
"""A `ScheduleConfig` that is never negative."""

ShareScheduleConfig = Annotated[ScheduleConfig, AfterValidator(partial(check_ends, low=0.0, high=1.0))]
"""A `ScheduleConfig` from 0 to 1."""

LearningRateConfig = Annotated[
    Schedule | KlAdaptiveConfig,
    Field(discriminator="kind"),
    BeforeValidator(_number_is_constant),
    AfterValidator(lambda rate: rate if isinstance(rate, KlAdaptiveConfig) else check_ends(rate, 0.0)),
]
"""A config field that takes what `NonNegativeScheduleConfig` takes, or `kind: kl_adaptive`."""


def describe_schedule(schedule: BaseModel) -> str:
    """Describe a schedule in a few words: `0.001`, or `linear start 0.001 end 0`."""
    fields = schedule.model_dump()
    if fields["kind"] == "constant":
        return f"{fields['level']:g}"
    return " ".join([str(fields["kind"]), *(f"{name} {fields[name]:g}" for name in ("start", "end") if name in fields)])
