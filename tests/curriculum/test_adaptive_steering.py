"""Adaptive steering: what counts as stuck, when a run switches, and how the frequency follows."""

import numpy as np
import pytest
from pydantic import ValidationError

from ludus.core.errors import StateError
from ludus.curriculum.adaptive import Adaptive, broken_windows, count_stuck
from ludus.curriculum.steering_config import AdaptiveConfig

CONFIG = AdaptiveConfig(
    measure="people", patience=3, explore_above=0.6, build_below=0.4, lowest=0.1, highest=0.3, step=0.1
)


def test_windows_that_an_end_breaks() -> None:
    ends = np.array([[0, 0, 1, 0, 0, 0]], np.bool_).T
    # Windows of 2 begin after steps 0 to 3; the end of step 2 is within the second, and the third begins with it.
    assert broken_windows(ends, 2)[:, 0].tolist() == [False, True, True, False]


def test_stuck_windows_by_hand() -> None:
    values = np.array([[5.0, 5, 6, 6, 6, 6], [0.0, 1, 2, 3, 4, 5], [9.0, 9, 9, 0, 0, 0]]).T
    ends = np.zeros((6, 3), np.bool_)
    ends[2, 2] = True
    # Row 0: 5 to 6, 5 to 6, 6 to 6. Row 1 grows. Row 2 begins anew after step 2: no window is whole.
    assert count_stuck(values, ends, 3) == (1, 6)


def test_exploring_rises_while_stuck_and_falls_while_it_grows() -> None:
    adaptive = Adaptive(CONFIG)
    told, frequencies, modes = [], [], []
    for stuck in (0, 7, 8, 5, 5, 3, 0, 0):
        told.append(adaptive.record(stuck, 10))
        frequencies.append(adaptive.frequency)
        modes.append(adaptive.mode)
    # Between the two bounds the run keeps doing what it does.
    assert modes == ["building", *["exploring"] * 4, *["building"] * 3]
    assert frequencies == pytest.approx([0.1, 0.2, 0.3, 0.3, 0.3, 0.2, 0.1, 0.1])
    assert [text is not None for text in told] == [False, True, False, False, False, True, False, False]
    assert told[1] == "exploring: people had not grown for 3 decisions in 70% of the games"
    assert adaptive.switches == 2


def test_an_iteration_without_whole_windows_changes_nothing() -> None:
    adaptive = Adaptive(CONFIG)
    adaptive.record(9, 10)
    before = adaptive.state()
    assert adaptive.record(0, 0) is None
    assert adaptive.state() == before


def test_state_is_all_there_is() -> None:
    one, other = Adaptive(CONFIG), Adaptive(CONFIG)
    one.record(9, 10)
    other.load_state(one.state())
    assert other.record(9, 10) == one.record(9, 10)
    assert other.state() == one.state()
    with pytest.raises(StateError, match="incomplete"):
        other.load_state({"frequency": 0.2})


def test_bounds_must_be_in_order() -> None:
    with pytest.raises(ValidationError, match=r"build_below 0\.7 must not exceed explore_above 0\.6"):
        AdaptiveConfig(measure="people", build_below=0.7)
    with pytest.raises(ValidationError, match=r"lowest 0\.9 must not exceed highest 0\.6"):
        AdaptiveConfig(measure="people", lowest=0.9)
