"""Drift: where switches are found, what time constants come out, and that wandering is not taken for drift."""

import numpy as np
import pytest

from ludus.analysis.drift import SwitchPoint, difference, find_switches, measure_drift, time_constant
from ludus.analysis.probe import Probe, fit_probe
from ludus.analysis.recording import Recording
from ludus.core.intervals import Interval

pytestmark = pytest.mark.train

STEP_S, SAMPLES, MATCHES = 0.1, 200, 12


def recording(time_constant_s: float | None) -> Recording:
    """Two styles by turns of 10 s; the feature follows with a time constant, or not at all; a match is 20 s."""
    times_s = np.arange(SAMPLES, dtype=np.float64) * STEP_S
    styles = np.repeat((times_s >= 10.0).astype(np.int64)[:, None], MATCHES, 1)
    styles[:, ::2] = 1 - styles[:, ::2]
    gone_s = np.maximum(times_s - 10.0, 0.0)
    way = np.zeros(SAMPLES) if time_constant_s is None else 1.0 - np.exp(-gone_s / time_constant_s)
    level = np.abs(styles[0] - way[:, None])
    features = np.random.default_rng(0).normal(scale=0.2, size=(SAMPLES, MATCHES, 3))
    features[..., 1] += 4.0 * level
    return Recording(
        styles=("switcher",),
        labels=np.zeros(MATCHES, np.int64),
        times_s=times_s,
        valid=np.ones((SAMPLES, MATCHES), np.bool_),
        features={"trained": features.astype(np.float32)},
        styles_now=styles + 5,
        clips={},
        clip_labels=np.zeros(0, np.int64),
        clip_frames=np.zeros(0, np.int64),
    )


def probe_of_pure_styles() -> Probe:
    features = np.random.default_rng(1).normal(scale=0.2, size=(400, 3))
    labels = np.repeat([0, 1], 200)
    features[:, 1] += 4.0 * labels
    return fit_probe(features.astype(np.float32), labels, 2)


def test_switches_by_hand() -> None:
    styles = np.array([[1, 1, 1, 2, 2, 2, 2, 2, 3, 3]]).T
    everywhere = np.ones_like(styles, dtype=np.bool_)
    switches, amid = find_switches(styles, everywhere, 2, 3)
    assert switches == [SwitchPoint(3, 0, 1, 2)]  # the second one lasts too short
    assert amid == [SwitchPoint(5, 0, 2, 2)]  # 3, 4 before and 5, 6, 7 after
    ended = everywhere.copy()
    ended[5:] = False
    assert find_switches(styles, ended, 2, 3) == ([], [])


@pytest.mark.parametrize("wanted_s", [0.3, 1.0, 2.5])
def test_a_time_constant_is_found_again(wanted_s: float) -> None:
    times_s = np.arange(40, dtype=np.float64) * 0.1
    assert time_constant(times_s, 3.0 * (1.0 - np.exp(-times_s / wanted_s))) == pytest.approx(wanted_s, rel=0.05)
    assert time_constant(times_s, -times_s) is None
    assert time_constant(times_s, times_s) is None


@pytest.mark.parametrize("wanted_s", [0.4, 1.0])
def test_features_that_follow(wanted_s: float) -> None:
    drift = measure_drift(recording(wanted_s), probe_of_pure_styles(), {5: 0, 6: 1})
    assert drift is not None
    assert drift.switches == MATCHES
    assert drift.times_s[0] == pytest.approx(-2.0)
    assert drift.settled.low > 0.5
    assert drift.time_constant_s == pytest.approx(wanted_s, rel=0.3)
    assert drift.new_style[:19].max() < 0.05
    assert drift.new_style[-5:].min() > 0.95
    assert drift.old_style == pytest.approx(1.0 - drift.new_style)
    assert drift.probe_time_constant_s is not None
    assert drift.as_json()["settled"]["estimate"] == drift.settled.estimate


def test_features_that_do_not_follow() -> None:
    drift = measure_drift(recording(None), probe_of_pure_styles(), {5: 0, 6: 1})
    assert drift is not None
    assert drift.settled.low < 0.0 < drift.settled.high
    assert drift.time_constant_s is None
    assert drift.probe_time_constant_s is None


def test_styles_that_the_probe_does_not_know_are_left_out() -> None:
    assert measure_drift(recording(1.0), probe_of_pure_styles(), {5: 0}) is None


def test_the_difference_of_two_intervals_by_hand() -> None:
    found = difference(Interval(0.9, 0.6, 0.94), Interval(0.5, 0.47, 0.9))
    assert found.estimate == pytest.approx(0.4)
    assert found.low == pytest.approx(0.4 - 0.5)  # 0.3 and 0.4 by squares
    assert found.high == pytest.approx(0.4 + 0.05)  # 0.04 and 0.03
