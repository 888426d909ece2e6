"""Samplers: hand-computed chances, and what holds for all of them."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ludus.core.errors import ConfigError
from ludus.league.config import LeagueConfig
from ludus.league.samplers import by_rating, by_win_rate, evenly, latest, mostly_recent, sample, thin_out

SAMPLERS = ("latest", "uniform", "recent", "pfsp", "rating")
rates = st.lists(st.none() | st.floats(0.0, 1.0), min_size=1, max_size=60)


def test_hand_computed_chances() -> None:
    assert latest(3).tolist() == [0.0, 0.0, 1.0]
    assert evenly(4).tolist() == [0.25] * 4
    assert mostly_recent(5, 0.9, 2).tolist() == pytest.approx([0.1 / 3] * 3 + [0.45, 0.45])
    assert mostly_recent(2, 0.9, 5).tolist() == pytest.approx([0.5, 0.5])
    # (1 - p)^2 of win rates 0.5, 0.8 and an unknown one: 0.25, 0.04, 0.25.
    assert by_win_rate([0.5, 0.8, None], "hard", 2.0).tolist() == pytest.approx([25 / 54, 4 / 54, 25 / 54])
    # p (1 - p): 0.25, 0.16, 0.
    assert by_win_rate([0.5, 0.8, 1.0], "even", 2.0).tolist() == pytest.approx([25 / 41, 16 / 41, 0.0])
    assert by_win_rate([1.0, 1.0], "hard", 2.0).tolist() == [0.5, 0.5]
    # A bell curve one and two deviations away: exp(-1 / 2) and exp(-2).
    weights = np.exp([-0.5, -2.0, 0.0])
    assert by_rating([1200.0, 600.0, None], 1000.0, 200.0).tolist() == pytest.approx(list(weights / weights.sum()))
    assert by_rating([0.0, 1.0], 1e6, 10.0).sum() == pytest.approx(1.0)


@given(rates, st.sampled_from(SAMPLERS), st.sampled_from(["hard", "even"]), st.floats(-2000.0, 2000.0))
def test_chances_add_up_to_one(win_rates: Sequence[float | None], sampler: str, weighting: str, learner: float) -> None:
    config = LeagueConfig.model_validate({"sampler": sampler, "pfsp_weighting": weighting})
    ratings = [None if rate is None else 3000.0 * rate - 1000.0 for rate in win_rates]
    chances = sample(config, win_rates, ratings, learner)
    assert chances.shape == (len(win_rates),)
    assert chances.sum() == pytest.approx(1.0)
    assert (chances >= 0.0).all()
    if sampler == "latest":
        assert chances[-1] == 1.0
    if sampler == "recent":
        assert chances[-10:].sum() == pytest.approx(0.99 if len(win_rates) > 10 else 1.0)


@given(rates, st.integers(1, 40), st.floats(0.0, 1.0, exclude_max=True))
def test_thinning_leaves_few_and_takes_none_of_the_likely(
    win_rates: Sequence[float | None], live: int, offset: float
) -> None:
    chances = by_win_rate(win_rates, "hard", 2.0)
    thinned = thin_out(chances, live, offset)
    assert thinned.sum() == pytest.approx(1.0)
    assert np.count_nonzero(thinned) <= live
    assert (thinned[chances == 0.0] == 0.0).all()
    assert (thinned[chances > 1.001 / live] > 0.0).all()
    assert (np.abs(thinned - chances) <= 1.0 / live + 1e-9).all()


def test_thinning_is_fair_on_average() -> None:
    chances = np.array([0.01, 0.04, 0.15, 0.2, 0.6])
    average = np.mean([thin_out(chances, 3, (i + 0.5) / 1000) for i in range(1000)], axis=0)
    assert average.tolist() == pytest.approx(chances.tolist(), abs=1e-3)
    assert thin_out(chances, 5, 0.3) is chances


def test_nothing_to_draw_from_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no snapshot"):
        evenly(0)
    with pytest.raises(ConfigError, match="no snapshot"):
        sample(LeagueConfig(sampler="rating"), [], [], 0.0)


def test_live_snapshots_are_fewer_than_a_sixteenth_of_the_games() -> None:
    config = LeagueConfig()
    assert [config.live_for(games) for games in (1, 16, 64, 512, 4096)] == [1, 1, 4, 32, 32]
