"""Numbers of a synthetic walk whose every step was laid out by hand, and the published bands."""

import numpy as np
import pytest

from ludus.worlds.mimic.norms import KINDS, Band, norm_band
from ludus.worlds.mimic.walk_analysis import (
    CURVE_POINTS,
    GaitNumbers,
    WalkRecord,
    asymmetry_percent,
    joint_band,
    joint_symmetry,
    mean_numbers,
    measure_walk,
    norm_distance,
    stride_curves,
)

STRIDE, RATE_HZ, STRIDES = 100, 100.0, 4  # a stride of 1.00 s
RIGHT_STANCE, LEFT_STANCE = 60, 64  # samples on the ground
LATER = 48  # the left foot strikes 0.48 s after the right one, which strikes 0.52 s after it
STRIDE_M, RIGHT_AHEAD_M = 1.2, 0.63  # of which the right heel is so far in front as it strikes
ASIDE_M = 0.05  # of each heel, from the middle of the way
TOES_STANDING_M, LIFT_M = 0.02, 0.015


def walk(strides: int = STRIDES, *, left_later: int = LATER) -> WalkRecord:
    """Return a walk that begins with a strike of the right foot: heels jump ahead as they strike, and stay there."""
    samples = strides * STRIDE + 1
    time = np.arange(samples)
    down, strikes = np.zeros((samples, 2), bool), np.zeros((samples, 2), bool)
    heels, toes = np.zeros((samples, 2, 3)), np.zeros((samples, 2, 3))
    for foot, (later, stance, sign) in enumerate(((0, RIGHT_STANCE, -1.0), (left_later, LEFT_STANCE, 1.0))):
        place, number = (time - later) % STRIDE, (time - later) // STRIDE
        down[:, foot] = place < stance
        strikes[:, foot] = (place == 0) & (time >= later)
        heels[:, foot, 0] = STRIDE_M * number + (0.0 if foot == 0 else STRIDE_M - RIGHT_AHEAD_M)
        heels[:, foot, 1] = sign * ASIDE_M
        toes[:, foot, 2] = np.where(down[:, foot], TOES_STANDING_M, TOES_STANDING_M + LIFT_M)
    hips = np.stack((STRIDE_M * time / STRIDE, np.zeros(samples), np.ones(samples)), axis=1)
    turns = 2.0 * np.pi * time / STRIDE
    angles = np.stack((30.0 * np.cos(turns), 30.0 * np.cos(turns - np.pi) + 4.0), axis=1)
    energy = np.full(samples, 736.0 / samples)
    return WalkRecord(RATE_HZ, ("right_hip", "left_hip"), angles, down, strikes, heels, toes, hips, energy, 80.0)


def test_times_lengths_and_symmetry_by_hand() -> None:
    numbers = measure_walk(walk())
    expected = {
        # 5 right and 4 left strikes, from 0 to 4.00 s.
        "strides": 4.0, "speed_m_s": 1.2, "cadence_steps_min": 60.0 * 8 / 4.0, "stride_time_s": 1.0,
        "stride_length_m": 1.2, "step_width_m": 0.1, "step_time_right_s": 0.52, "step_time_left_s": 0.48,
        "step_length_right_m": 0.63, "step_length_left_m": 0.57, "stance_share": 0.62, "stride_time_variation": 0.0,
        # Both stand from 48 to 60 % (the left foot has just struck) and from 0 to 12 % (it leaves at 48 + 64 = 112).
        "double_support_share": 0.24,
        "toe_clearance_mm": 15.0,
        "cost_of_transport": 736.0 / (80.0 * 9.81 * 4.8),
        "step_time_asymmetry": 100.0 * 0.04 / 0.5, "step_length_asymmetry": 100.0 * 0.06 / 0.6,
        "stance_asymmetry": 100.0 * 0.04 / 0.62,
    }  # fmt: skip
    for name, value in expected.items():
        assert getattr(numbers, name) == pytest.approx(value, rel=1e-6, abs=1e-9), name


def test_what_a_short_walk_does_not_define_is_none() -> None:
    stand = walk(1)
    still = WalkRecord(
        RATE_HZ, stand.joints, stand.angles_deg, np.ones_like(stand.down), np.zeros_like(stand.strikes),
        stand.heels_m, stand.toes_m, 0.0 * stand.hips_m, stand.energy_j, 80.0,
    )  # fmt: skip
    assert measure_walk(still) == GaitNumbers(strides=0.0, speed_m_s=0.0)
    assert joint_band([still], "hip", "right") is None
    assert joint_symmetry([still], "hip") is None
    assert asymmetry_percent(0.0, 0.0) is None
    assert asymmetry_percent(1.0, None) is None


def test_means_leave_out_what_is_not_defined() -> None:
    mean = mean_numbers([GaitNumbers(2.0, speed_m_s=1.0), GaitNumbers(3.0, speed_m_s=2.0, stride_time_s=1.1)])
    assert mean == GaitNumbers(5.0, speed_m_s=1.5, stride_time_s=1.1)


def test_curves_run_from_strike_to_strike_of_their_own_foot() -> None:
    record = walk()
    right, left = stride_curves(record, "right_hip", 0), stride_curves(record, "left_hip", 1)
    assert right.shape == (STRIDES, CURVE_POINTS)
    assert left.shape == (STRIDES - 1, CURVE_POINTS)
    turns = 2.0 * np.pi * np.arange(CURVE_POINTS) / 100
    np.testing.assert_allclose(right, np.tile(30.0 * np.cos(turns), (STRIDES, 1)), atol=1e-9)
    # The left foot strikes at 48 %, its hip is highest at 50 %: 2 % later.
    np.testing.assert_allclose(left[0], 4.0 + 30.0 * np.cos(turns - 0.04 * np.pi), atol=1e-9)
    band = joint_band([record, record], "hip", "right")
    assert band is not None
    np.testing.assert_allclose(band.deviation, 0.0, atol=1e-9)


def test_joints_are_compared_half_a_stride_apart() -> None:
    """The left hip does what the right one does half a stride later, 4 degrees further: that is its difference."""
    symmetry = joint_symmetry([walk()], "hip")
    assert symmetry is not None
    assert symmetry.difference_deg == pytest.approx(4.0)
    assert symmetry.correlation == pytest.approx(1.0)
    record = walk()
    record.angles_deg[:, 1] = record.angles_deg[:, 0]  # both at the same time: as far apart as can be
    together = joint_symmetry([record], "hip")
    assert together is not None
    assert together.correlation == pytest.approx(-1.0)
    assert together.difference_deg == pytest.approx(30.0 * np.sqrt(2.0))  # of 60 cos
    record.angles_deg[:] = 7.0
    assert joint_symmetry([record], "hip") == (0.0, None)


def test_the_distance_from_a_band_is_counted_in_its_deviations() -> None:
    band = Band(np.zeros(4), np.array([1.0, 2.0, 2.0, 4.0]))
    found = norm_distance(np.array([1.0, -4.0, 6.0, 0.0]), band)  # 1, 2, 3 and 0 deviations
    assert found.rms_deg == pytest.approx(np.sqrt(53.0 / 4.0))
    assert found.rms_deviations == pytest.approx(np.sqrt(14.0 / 4.0))
    assert (found.share_within, found.share_within_two) == (0.5, 0.75)


def test_a_curve_that_is_late_lags() -> None:
    """A cosine of 10 degrees that is 5 % late, and 2 degrees too high: without the lag 2 degrees are left."""
    turns = 2.0 * np.pi * np.linspace(0.0, 1.0, 101)
    band = Band(10.0 * np.cos(turns), np.ones(101))
    found = norm_distance(2.0 + 10.0 * np.cos(turns - 0.1 * np.pi), band)
    assert found.lag_percent == pytest.approx(5.0)
    assert found.rms_without_lag_deg == pytest.approx(2.0)
    assert found.rms_deg > 2.5


def test_the_published_bands_have_their_published_values() -> None:
    """At 0, 40 and 72 % of the stride, in degrees, as printed; series are within half a degree of them."""
    phases = np.array([0.0, 0.40, 0.72])
    published = {
        "hip": ((35.83, 1.62, 21.39), (5.43, 6.71, 6.01)),
        "knee": ((5.55, 6.24, 59.13), (5.66, 5.74, 5.88)),
        "ankle": ((-2.10, 11.15, -7.87), (5.56, 4.40, 6.79)),
    }
    assert set(published) == set(KINDS)
    for kind, (means, deviations) in published.items():
        band = norm_band(kind, phases, trunk_lean_deg=11.7)  # as much as their pelvis
        np.testing.assert_allclose(band.mean, means, atol=0.55)
        np.testing.assert_allclose(band.deviation, deviations, atol=0.55)
    moved = norm_band("hip", phases, trunk_lean_deg=2.7).mean
    np.testing.assert_allclose(moved, norm_band("hip", phases, trunk_lean_deg=11.7).mean - 9.0)
