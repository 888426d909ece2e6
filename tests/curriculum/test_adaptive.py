"""Adaptive curricula, and effects of kinds of action against numbers computed by hand."""

from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from ludus.core.errors import StateError
from ludus.curriculum.adaptive import Constraint, Effects, Strategic, broken_windows, goal_factors
from ludus.curriculum.config import ConstraintConfig, StrategicConfig


def test_windows_that_an_end_breaks() -> None:
    ends = np.array([[0, 0, 1, 0, 0, 0]], np.bool_).T
    # Windows of 2 begin after steps 0 to 3; the end of step 2 is within the second, and the third begins with it.
    assert broken_windows(ends, 2)[:, 0].tolist() == [False, True, True, False]


def test_a_multiplier_follows_the_violations_of_a_limit() -> None:
    config = ConstraintConfig(measure="funds", term="debt", limit=0.1, rate=5.0, lowest=1.0, highest=3.0)
    constraint, prices = Constraint(config), []
    for violations in (30, 50, 20, 0, 0, 0):
        constraint.record(violations, 100)
        prices.append(constraint.multiplier)
    # 1 + 5 (0.3 - 0.1), then 4 cut off at 3, then 3.5 cut off, then 0.5 less each.
    assert prices == pytest.approx([2.0, 3.0, 3.0, 2.5, 2.0, 1.5])
    other = Constraint(config)
    other.load_state(constraint.state())
    assert other.state() == constraint.state() == {"multiplier": pytest.approx(1.5), "share": 0.0}
    with pytest.raises(StateError, match=r"course\.steering\.share is missing"):
        other.load_state({"multiplier": 1.0})
    with pytest.raises(ValidationError, match=r"lowest 9.*highest 3"):
        ConstraintConfig(measure="funds", term="debt", lowest=9.0, highest=3.0)


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


def _effects(against: int | None = 0, fewest: int = 10) -> Effects:
    return Effects(KINDS, ("houses",), against, 0.95, fewest)


def test_an_effect_by_hand() -> None:
    effects = Effects(("wait", "build"), ("houses",), 0, 0.95, 2)
    # Two blocks of two decisions each. Building was likely in the first step (0.8) and not in the second (0.2).
    chosen = np.array([[1, 0], [1, 0]])
    shares = np.array([[[0.2, 0.8]] * 2, [[0.8, 0.2]] * 2])
    changes = np.array([[[3.0, 1.0], [4.0, 2.0]]])
    effects.add(effects.measure(chosen, shares, changes))
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
            effects.add(effects.measure(*rollout))
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


def test_other_kinds_as_comparison() -> None:
    random, effects = np.random.default_rng(1), _effects(against=None)
    for _ in range(12):
        effects.add(effects.measure(*_rollout(random)))
    built = effects.effect(BUILD, 0)
    assert built is not None
    assert built.low <= EFFECT <= built.high
    assert built.is_sure


def test_what_is_not_known_does_not_count() -> None:
    random = np.random.default_rng(2)
    chosen, shares, changes = _rollout(random)
    hidden = changes.copy()
    hidden[:, ::2] = np.nan
    whole, half = _effects(), _effects()
    half.add(half.measure(chosen, shares, hidden))
    whole.add(whole.measure(chosen[1::2], shares[1::2], changes[:, 1::2]))
    assert half.effect(BUILD, 0) == pytest.approx(whole.effect(BUILD, 0))


def test_few_blocks_are_never_sure() -> None:
    random = np.random.default_rng(3)
    many, few = _effects(fewest=10), _effects(fewest=1_000)
    for _ in range(12):
        rollout = _rollout(random)
        for effects in (many, few):
            effects.add(effects.measure(*rollout))
    assert many.sure(0)[BUILD] > 0.0
    assert not few.sure(0).any()


def test_sure_is_stricter_than_one_interval() -> None:
    effects = Effects(KINDS, tuple("abcdefghij"), 0, 0.95, 2)
    single = NormalDist().inv_cdf(0.975)
    assert effects.sure_z == pytest.approx(NormalDist().inv_cdf(1.0 - 0.025 / 20))
    assert effects.sure_z > single


def test_old_observations_count_less() -> None:
    random = np.random.default_rng(4)
    first, second = _rollout(random), _rollout(random)
    effects, alone = _effects(), _effects()
    effects.add(effects.measure(*first))
    effects.add(effects.measure(*second), kept=0.0)
    alone.add(alone.measure(*second))
    assert effects.effect(BUILD, 0) == alone.effect(BUILD, 0)


def test_factors_turn_to_what_is_behind() -> None:
    assert goal_factors((0.5, 0.5), 4.0) == [1.0, 1.0]
    assert goal_factors((0.9, 0.3), 4.0) == pytest.approx([0.25, 1.75])
    assert goal_factors((1.0, 0.0), 4.0) == pytest.approx([0.25, 2.0])  # never less than a quarter
    assert goal_factors((1.0, 1.2), 4.0) == [1.0, 1.0]


def _strategic(fewest: int = 10) -> Strategic:
    config = StrategicConfig(goals=("houses", "joy"), inertia=0.5, fewest=fewest)
    return Strategic(config, KINDS)


def test_only_sure_effects_are_favoured() -> None:
    random, strategic, unsure = np.random.default_rng(5), _strategic(), _strategic(fewest=10_000)
    for _ in range(12):
        chosen, shares, changes = _rollout(random)
        both = np.concatenate((changes, random.normal(size=changes.shape)))
        for each in (strategic, unsure):
            each.record(each.effects.measure(chosen, shares, both), (0.2, 0.8), 1280)
    weights = strategic.favour()
    assert weights[BUILD] == pytest.approx(0.8 * EFFECT, abs=0.1)
    assert (weights[0], weights[PAINT]) == (0.0, 0.0)
    assert unsure.favour() == [0.0, 0.0, 0.0]
    # Behind by 0.8 and 0.2, with a mean of 0.5: factors go half of the way in every iteration.
    assert strategic.factors == pytest.approx({"goal_houses": 1.6, "goal_joy": 0.4}, abs=1e-3)


def test_state_of_effects_is_all_there_is() -> None:
    random, one, other = np.random.default_rng(6), _strategic(), _strategic()
    rollout = _rollout(random)
    measured = one.effects.measure(rollout[0], rollout[1], np.repeat(rollout[2], 2, axis=0))
    one.record(measured, (0.1, 0.2), 1280)
    other.load_state(one.state())
    for each in (one, other):
        each.record(measured, (0.3, 0.2), 1280)
    assert other.state() == one.state()
    with pytest.raises(StateError, match=r"course\.steering\.progress has \['houses'\]"):
        other.load_state(one.state() | {"progress": {"houses": 0.1}})
    with pytest.raises(StateError, match="other kinds"):
        Effects(KINDS, ("cars",), 0, 0.95, 2).load_state(_effects().state())
