"""Schedules: numbers that change with training progress (0 at the start, 1 at the end), and the KL-adaptive rate.

A schedule is a frozen config object that can be asked for its value. In a config file a plain number is a
constant: `clip: 0.2` and `clip: {kind: linear, start: 0.2, end: 0.05}` are both a `ScheduleConfig`.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from ludus.core.errors import ConfigError, UnknownNameError

Fraction: TypeAlias = Annotated[float, Field(gt=0.0, le=1.0)]


class _Schedule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ConstantSchedule(_Schedule):
    """The same value throughout."""

    kind: Literal["constant"] = "constant"
    level: float

    def value(self, progress: float) -> float:  # noqa: ARG002 - every schedule is asked in the same way
        """Returns the level, whatever the progress."""
        return self.level


class _Ramp(_Schedule):
    """From `start` to `end`, reached at progress `until` and held from there on."""

    start: float
    end: float
    until: Fraction = 1.0

    def _share(self, progress: float) -> float:
        """Returns how much of the way is done, 0..1."""
        return min(max(progress / self.until, 0.0), 1.0)


class LinearSchedule(_Ramp):
    """A straight line from `start` to `end`, reached at progress `until`."""

    kind: Literal["linear"] = "linear"

    def value(self, progress: float) -> float:
        """Returns the value at `progress`, which is clamped to 0..1."""
        share = self._share(progress)
        return (1.0 - share) * self.start + share * self.end


class ExponentialSchedule(_Ramp):
    """Changes by equal factors in equal times from `start` to `end`; both have the same sign and are not 0."""

    kind: Literal["exponential"] = "exponential"

    @model_validator(mode="after")
    def _check_signs(self) -> Self:
        if self.start * self.end <= 0.0:
            raise ValueError(f"start {self.start} and end {self.end} must have the same sign and not be 0; use linear")
        return self

    def value(self, progress: float) -> float:
        """Returns the value at `progress`, which is clamped to 0..1."""
        share = self._share(progress)
        return self.end if share == 1.0 else self.start * (self.end / self.start) ** share


class CosineSchedule(_Ramp):
    """Half a cosine wave from `start` to `end`: slow at both ends, fastest in the middle."""

    kind: Literal["cosine"] = "cosine"

    def value(self, progress: float) -> float:
        """Returns the value at `progress`, which is clamped to 0..1."""
        share = 0.5 - 0.5 * math.cos(math.pi * self._share(progress))
        return (1.0 - share) * self.start + share * self.end


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
        """Takes the KL divergence of the last update and returns the rate for the next one.

        NaN leaves the rate as it is: finding the cause is not the rate's business.
        """
        config = self.config
        if kl > config.target * config.band:
            self.rate = max(self.rate / config.factor, config.minimum)
        elif kl < config.target / config.band:
            self.rate = min(self.rate * config.factor, config.maximum)
        return self.rate

    def load(self, rate: float) -> None:
        """Takes the rate of an earlier run; it must lie within the configured bounds."""
        if not self.config.minimum <= rate <= self.config.maximum:
            raise ConfigError(
                f"saved learning rate {rate} is outside {self.config.minimum}..{self.config.maximum}; "
                "widen minimum and maximum"
            )
        self.rate = rate


Schedule: TypeAlias = ConstantSchedule | LinearSchedule | ExponentialSchedule | CosineSchedule
SCHEDULE_KINDS = ("constant", "linear", "exponential", "cosine")


def _number_is_constant(raw: object) -> object:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return {"kind": "constant", "level": raw}
    return raw


ScheduleConfig = Annotated[Schedule, Field(discriminator="kind"), BeforeValidator(_number_is_constant)]
"""A config field that takes a number or a mapping with `kind`."""

LearningRateConfig = Annotated[
    Schedule | KlAdaptiveConfig, Field(discriminator="kind"), BeforeValidator(_number_is_constant)
]
"""A config field that takes what `ScheduleConfig` takes, or `kind: kl_adaptive`."""

_adapter: TypeAdapter[Schedule] = TypeAdapter(ScheduleConfig)


def make_schedule(config: Schedule | Mapping[str, Any] | float) -> Schedule:
    """Makes a schedule of a number (a constant), a mapping with `kind`, or a schedule.

    Raises:
        UnknownNameError: The kind is unknown.
        ConfigError: A value is missing, superfluous or out of range.
    """
    if isinstance(config, Mapping):
        kind = config.get("kind")
        if kind not in SCHEDULE_KINDS:
            raise UnknownNameError("schedule kind", str(kind), SCHEDULE_KINDS)
    try:
        return _adapter.validate_python(config)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'value'}: {fault['msg']}" for fault in error.errors())
        raise ConfigError(f"schedule {config!r} cannot be used: {faults}") from error
