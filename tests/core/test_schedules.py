"""Schedules: values by hand, clamping, plain numbers in configs, typed errors, the KL-adaptive rate."""

import math

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from ludus.core.errors import ConfigError
from ludus.core.schedules import (
    ConstantSchedule,
    CosineSchedule,
    ExponentialSchedule,
    KlAdaptiveConfig,
    KlAdaptiveRate,
    LearningRateConfig,
    LinearSchedule,
    Schedule,
    ScheduleConfig,
)

SCHEDULES: TypeAdapter[Schedule] = TypeAdapter(ScheduleConfig)


class Example(BaseModel):
    clip: ScheduleConfig = ConstantSchedule(level=0.2)
    rate: LearningRateConfig = ConstantSchedule(level=1e-3)


@pytest.mark.parametrize(
    ("config", "values"),
    [
        (0.3, [0.3, 0.3, 0.3, 0.3]),
        ({"kind": "constant", "level": 2}, [2.0, 2.0, 2.0, 2.0]),
        ({"kind": "linear", "start": 1.0, "end": 0.2}, [1.0, 0.8, 0.6, 0.2]),
        ({"kind": "linear", "start": 0.0, "end": 4.0, "until": 0.5}, [0.0, 2.0, 4.0, 4.0]),
        ({"kind": "exponential", "start": 1.0, "end": 1e-4}, [1.0, 0.1, 0.01, 1e-4]),
        ({"kind": "exponential", "start": -16.0, "end": -1.0}, [-16.0, -8.0, -4.0, -1.0]),
        # cos(pi/4) = sqrt(1/2): a quarter of the way in time is (1 - sqrt(1/2)) / 2 of the way in value
        ({"kind": "cosine", "start": 1.0, "end": 0.0}, [1.0, 0.5 + math.sqrt(0.125), 0.5, 0.0]),
    ],
)
def test_values_at_start_quarter_half_and_end(config: float | dict[str, object], values: list[float]) -> None:
    schedule = SCHEDULES.validate_python(config)
    assert [schedule.value(progress) for progress in (0.0, 0.25, 0.5, 1.0)] == pytest.approx(values)
    assert (schedule.value(-3.0), schedule.value(7.0)) == (values[0], values[-1])


def test_ends_are_exact() -> None:
    for schedule in (LinearSchedule(start=0.3, end=0.1), ExponentialSchedule(start=0.3, end=0.1)):
        assert (schedule.value(0.0), schedule.value(1.0)) == (0.3, 0.1)
    assert CosineSchedule(start=0.3, end=0.1).value(1.0) == 0.1


def test_a_config_takes_numbers_and_mappings_and_survives_json() -> None:
    example = Example.model_validate({"clip": 1, "rate": {"kind": "kl_adaptive", "start": 1e-3}})
    assert example.clip == ConstantSchedule(level=1.0)
    assert isinstance(example.rate, KlAdaptiveConfig)
    assert Example.model_validate_json(example.model_dump_json()) == example
    with pytest.raises(ValidationError, match="'constant', 'linear', 'exponential', 'cosine'"):
        Example.model_validate({"clip": {"kind": "kl_adaptive", "start": 1e-3}})
    with pytest.raises(ValidationError):
        Example.model_validate({"clip": True})


def test_schedules_are_frozen_and_pass_through() -> None:
    schedule = LinearSchedule(start=1.0, end=0.0)
    assert SCHEDULES.validate_python(schedule) == schedule
    with pytest.raises(ValidationError, match="frozen"):
        schedule.end = 2.0


def test_an_unknown_kind_is_refused_and_the_valid_ones_are_named() -> None:
    with pytest.raises(ValidationError, match=r"'linaer'.*'constant', 'linear', 'exponential', 'cosine'"):
        SCHEDULES.validate_python({"kind": "linaer", "start": 1.0, "end": 0.0})
    with pytest.raises(ValidationError, match="'kind'"):
        SCHEDULES.validate_python({"start": 1.0})


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"kind": "linear", "start": 1.0}, "end"),
        ({"kind": "linear", "start": 1.0, "end": 0.0, "stop": 1}, "stop"),
        ({"kind": "linear", "start": 1.0, "end": 0.0, "until": 0.0}, "until"),
        ({"kind": "exponential", "start": 1.0, "end": 0.0}, "exponential"),
        (float("nan"), "level"),
    ],
)
def test_bad_values_are_refused_by_their_key(config: float | dict[str, object], key: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SCHEDULES.validate_python(config)
    assert [fault["loc"][-1] for fault in caught.value.errors()] == [key]


def test_kl_rate_moves_only_outside_the_band_and_stays_within_bounds() -> None:
    rate = KlAdaptiveRate(KlAdaptiveConfig(start=1.0, target=0.01, band=2.0, factor=2.0, minimum=0.25, maximum=4.0))
    assert [rate.update(kl) for kl in (0.02, 0.005, 0.01, math.nan)] == [1.0, 1.0, 1.0, 1.0]
    assert [rate.update(kl) for kl in (0.021, math.inf, 0.5)] == [0.5, 0.25, 0.25]
    assert [rate.update(kl) for kl in (0.0, 0.004, -0.001, 0.0, 0.0)] == [0.5, 1.0, 2.0, 4.0, 4.0]


def test_kl_rate_is_its_own_state() -> None:
    config = KlAdaptiveConfig(start=1e-3)
    first, second = KlAdaptiveRate(config), KlAdaptiveRate(config)
    first.update(1.0)
    second.load(first.rate)
    assert second.update(1.0) == first.update(1.0) == pytest.approx(1e-3 / 1.5**2)
    with pytest.raises(ConfigError, match=r"adaptive_rate 1\.0"):
        second.load(1.0)
    with pytest.raises(ValidationError, match="between minimum"):
        KlAdaptiveConfig(start=1.0)
