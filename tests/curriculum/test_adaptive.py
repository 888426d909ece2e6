"""Adaptive curricula, and effects of kinds of action against numbers computed by hand."""

from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from ludus.core.errors import StateError
from ludus.curriculum import adaptive as module
from ludus.curriculum.adaptive import Adaptive, Effects, Strategic, broken_windows, count_stuck, goal_factors
from ludus.curriculum.config import AdaptiveConfig, StrategicConfig

CONFIG = AdaptiveConfig(measure="people", patience=3)


@pytest.fixture(autouse=True)
def ten_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEWEST", 10)


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
        modes.append(adaptive.is_exploring)
    # Between the two bounds the run keeps doing what it does.
    assert modes == [False, *[True] * 4, *[False] * 3]
    assert frequencies == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.25, 0.2, 0.15, 0.1])
    for _ in range(20):
        adaptive.record(10, 10)
    assert adaptive.frequency == 0.5
    assert [text is not None for text in told] == [False, True, False, False, False, True, False, False]
    assert told[1] == "exploring: people had not grown for 3 decisions in 70% of the games"


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
    with pytest.raises(StateError, match=r"course\.steering\.is_exploring is missing"):
        other.load_state({"frequency": 0.2})


KINDS = ("wait", "build", "paint")
BUILD, PAINT = 1, 2
EFFECT = 0.5  # of building; painting does nothing


def _rollout(random: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """A rollout of 32 games: where times are good, everything grows, and the policy builds just then."""
    steps, games = 40, 32
    times = 0.2 * random.normal(size=(steps, games)).cumsum(axis=0)
    logits = np.stack((np.zeros_like(times), 1.5 * times, -times), axis=-1)
    shares = np.exp(logits)
    shares = 0.7 * shares / shares.sum(axis=-1, keepdims=True) + 0.1
    chosen = (shares.cumsum(axis=-1) < random.random((steps, games, 1))).sum(axis=-1)
    changes = 2.0 * times + np.array((0.0, EFFECT, 0.0))[chosen] + random.normal(size=times.shape)
    return chosen, shares, changes[None]


def _effects() -> Effects:
    return Effects(KINDS, ("houses",), 0)


def test_an_effect_by_hand() -> None:
    effects = Effects(("wait", "build"), ("houses",), 0)
    # Two blocks of two decisions each. Building was likely in the first step (0.8) and not in the second (0.2).
    chosen = np.array([[1, 0], [1, 0]])
    shares = np.array([[[0.2, 0.8]] * 2, [[0.8, 0.2]] * 2])
    changes = np.array([[[3.0, 1.0], [4.0, 2.0]]])
    effects.totals += effects.measure(chosen, shares, changes)
    # Weights of building 0.2 and 0.8, of waiting 0.8 and 0.2.
    built, waited = 0.2 * 3.0 + 0.8 * 4.0, 0.8 * 1.0 + 0.2 * 2.0
    found = effects.effect(1, 0)
    assert found is not None
    assert found.mean == pytest.approx(built - waited)
    assert found.decisions == 2
    assert effects.effect(0, 0) is None  # it is not compared with itself


def test_intervals_contain_a_known_effect_and_a_naive_comparison_does_not() -> None:
    random, trials = np.random.default_rng(0), 60
    inside, sure, naive = 0, 0, []
    for _ in range(trials):
        effects, rollouts = _effects(), [_rollout(random) for _ in range(4)]
        for rollout in rollouts:
            effects.totals += effects.measure(*rollout)
        built, painted = effects.effect(BUILD, 0), effects.effect(PAINT, 0)
        assert built is not None
        assert painted is not None
        inside += built.low <= EFFECT <= built.high
        sure += painted.is_sure
        chosen, changes = (np.concatenate([rollout[part] for rollout in rollouts], axis=-1) for part in (0, 2))
        naive.append(changes[0][chosen == BUILD].mean() - changes[0][chosen == 0].mean())
    assert inside >= 52  # of 60; fewer than that has a chance below 1 % at 95 %
    assert sure <= 5  # what does nothing is hardly ever taken for sure
    assert min(naive) > 2.0 * EFFECT


def test_what_is_not_known_does_not_count() -> None:
    random = np.random.default_rng(2)
    chosen, shares, changes = _rollout(random)
    hidden = changes.copy()
    hidden[:, ::2] = np.nan
    whole, half = _effects(), _effects()
    half.totals += half.measure(chosen, shares, hidden)
    whole.totals += whole.measure(chosen[1::2], shares[1::2], changes[:, 1::2])
    assert half.effect(BUILD, 0) == pytest.approx(whole.effect(BUILD, 0))


def test_few_blocks_are_never_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    random, effects = np.random.default_rng(3), _effects()
    for _ in range(12):
        effects.totals += effects.measure(*_rollout(random))
    assert effects.sure(0)[BUILD] > 0.0
    monkeypatch.setattr(module, "FEWEST", 1_000)
    assert not effects.sure(0).any()


def test_sure_is_stricter_than_one_interval() -> None:
    effects = Effects(KINDS, tuple("abcdefghij"), 0)
    single = NormalDist().inv_cdf(0.975)
    assert effects.sure_z == pytest.approx(NormalDist().inv_cdf(1.0 - 0.025 / 20))
    assert effects.sure_z > single


def test_factors_turn_to_what_is_behind() -> None:
    assert goal_factors((0.5, 0.5)) == [1.0, 1.0]
    assert goal_factors((0.9, 0.3)) == pytest.approx([0.25, 1.75])
    assert goal_factors((1.0, 0.0)) == pytest.approx([0.25, 2.0])  # never less than a quarter
    assert goal_factors((1.0, 1.2)) == [1.0, 1.0]


def _strategic() -> Strategic:
    return Strategic(StrategicConfig(goals=("houses", "joy")), KINDS)


def test_only_sure_effects_are_favoured(monkeypatch: pytest.MonkeyPatch) -> None:
    random, strategic = np.random.default_rng(5), _strategic()
    for _ in range(12):
        chosen, shares, changes = _rollout(random)
        both = np.concatenate((changes, random.normal(size=changes.shape)))
        strategic.record(strategic.effects.measure(chosen, shares, both), (0.2, 0.8))
    weights = strategic.favour()
    assert weights[BUILD] == pytest.approx(0.8 * EFFECT, abs=0.1)
    assert (weights[0], weights[PAINT]) == (0.0, 0.0)
    # Behind by 0.8 and 0.2, with a mean of 0.5: factors go a tenth of the way to 1.6 and 0.4 in every iteration.
    left = 0.9**12
    assert strategic.factors == pytest.approx({"goal_houses": 1.6 - 0.6 * left, "goal_joy": 0.4 + 0.6 * left})
    monkeypatch.setattr(module, "FEWEST", 10_000)
    assert strategic.favour() == [0.0, 0.0, 0.0]


def test_state_of_effects_is_all_there_is() -> None:
    random, one, other = np.random.default_rng(6), _strategic(), _strategic()
    rollout = _rollout(random)
    measured = one.effects.measure(rollout[0], rollout[1], np.repeat(rollout[2], 2, axis=0))
    one.record(measured, (0.1, 0.2))
    other.load_state(one.state())
    for each in (one, other):
        each.record(measured, (0.3, 0.2))
    assert other.state() == one.state()
    with pytest.raises(StateError, match=r"course\.steering\.progress has \['houses'\]"):
        other.load_state(one.state() | {"progress": {"houses": 0.1}})
    for totals in ([], one.state()["totals"][:2], [[[0.0]] * 2] * 3):
        with pytest.raises(StateError, match=r"course\.steering\.totals"):
            other.load_state(one.state() | {"totals": totals})
