"""The mix: shares of bots and snapshots, and the cuts between them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ludus import make_env
from ludus.core.errors import ConfigError
from ludus.league.config import LeagueConfig
from ludus.league.mix import (
    OpponentMix,
    by_win_rate,
    cut,
    mirrored_games,
    mostly_recent,
    normalised,
    thin_out,
)
from ludus.league.payoffs import Payoffs
from ludus.league.snapshots import SnapshotPool
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy


def test_nobody_gets_a_share_that_has_none() -> None:
    cuts = cut(torch.tensor([0.0, 0.7, 0.0, 0.2, 0.1, 0.0], dtype=torch.float64))
    assert cuts.tolist() == pytest.approx([0.0, 0.7, 0.7, 0.9, 2.0, 2.0])
    chances = torch.tensor([0.0, 0.6999, cuts[1].item(), 0.8999, 0.91, 1.0 - 2.0**-24])
    assert torch.searchsorted(cuts, chances, right=True).tolist() == [1, 1, 3, 3, 4, 4]


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30), st.lists(st.integers(0, 2**24 - 1), min_size=1))
def test_only_parts_that_are_not_empty_are_drawn(parts: list[float], numbers: list[int]) -> None:
    sizes = torch.tensor(parts, dtype=torch.float64)
    if not sizes.sum() > 0.0:
        return
    chances = torch.tensor([*numbers, 0, 2**24 - 1], dtype=torch.float32) * 2.0**-24
    drawn = torch.searchsorted(cut(sizes), chances, right=True)
    assert (sizes[drawn] > 0.0).all()


UNIFORM = {"recent_share": 1.0, "recent_window": 100}


def _mix(league: dict[str, Any], live: int = 32) -> tuple[OpponentMix, SnapshotPool]:
    policy = Policy(make_env("duel", 1).spec, PolicyConfig())
    pool = SnapshotPool(policy, keep=6)
    mix = OpponentMix(("rock", "cycle"), pool, LeagueConfig.model_validate(league), live=live, seed=0)
    mix.set({"rock": 1.0, "self": 3.0, "cycle": 4.0})
    return mix, pool


def _add(pool: SnapshotPool, name: str, env_steps: int) -> None:
    policy = Policy(make_env("duel", 1).spec, PolicyConfig())
    pool.add(name, env_steps, policy.state(), ())


def test_bots_share_what_is_due_to_past_selves_until_there_are_any() -> None:
    mix, pool = _mix(UNIFORM)
    assert mix.thresholds().tolist() == pytest.approx([0.2, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    _add(pool, "s1", 10)
    assert mix.thresholds().tolist() == pytest.approx([1 / 8, 5 / 8, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    _add(pool, "s2", 20)
    # Before a refresh the newest has it all.
    assert mix.thresholds().tolist() == pytest.approx([1 / 8, 5 / 8, 5 / 8, 2.0, 2.0, 2.0, 2.0, 2.0])
    mix.refresh(Payoffs(), 0)
    assert mix.thresholds().tolist() == pytest.approx([1 / 8, 5 / 8, 6.5 / 8, 2.0, 2.0, 2.0, 2.0, 2.0])
    mix.set({"self": 1.0})
    assert mix.thresholds().tolist() == pytest.approx([0.0, 0.0, 0.5, 2.0, 2.0, 2.0, 2.0, 2.0])


def test_payoffs_decide_who_plays() -> None:
    mix, pool = _mix({"sampler": "pfsp"})
    for i in range(3):
        _add(pool, f"s{i}", i)
    mix.set({"self": 1.0})
    payoffs = Payoffs()
    payoffs.record("s3", "s0", 100, 0, 0, kind="self")
    payoffs.record("s3", "s1", 50, 0, 50, kind="self")
    payoffs.record("s3", "s2", 90, 0, 10, kind="self")
    mix.refresh(payoffs, 0)
    shares = mix.thresholds().clamp(max=1.0).diff(prepend=torch.zeros(1))[2:5].tolist()
    assert shares == pytest.approx([0.0, 25 / 26, 1 / 26])  # (1 - p)^2: 0, 0.25, 0.01
    mix.refresh(Payoffs(), 0)  # nothing known: all alike
    shares = mix.thresholds().clamp(max=1.0).diff(prepend=torch.zeros(1))[2:5].tolist()
    assert shares == pytest.approx([1 / 3] * 3)


def test_few_are_live_at_a_time_and_everyone_in_the_long_run() -> None:
    mix, pool = _mix(UNIFORM, live=2)
    for i in range(6):
        _add(pool, f"s{i}", i)
    mix.set({"self": 1.0})
    total = torch.zeros(6)
    for generation in range(300):
        mix.refresh(Payoffs(), generation)
        shares = mix.thresholds().clamp(max=1.0).diff(prepend=torch.zeros(1))[2:]
        assert sorted(shares.tolist()) == pytest.approx([0.0] * 4 + [0.5] * 2)
        total += shares
    assert (total / 300).tolist() == pytest.approx([1 / 6] * 6, abs=0.07)


def test_the_state_leads_back() -> None:
    mix, pool = _mix({}, live=2)
    for i in range(6):
        _add(pool, f"s{i}", i)
    mix.refresh(Payoffs(), 0)
    other = OpponentMix(("rock", "cycle"), pool, LeagueConfig(), live=2, seed=0)
    other.load_state(mix.state())
    assert torch.equal(other.thresholds(), mix.thresholds())
    for each in (mix, other):
        each.refresh(Payoffs(), 1)
    assert torch.equal(other.thresholds(), mix.thresholds())


@pytest.mark.parametrize(
    ("weights", "games", "mirrored"),
    [
        ({"mirror": 85, "self": 15}, 64, 54),  # 54.4
        ({"mirror": 0.85, "self": 0.1, "rock": 0.05}, 1000, 850),
        ({"mirror": 99, "self": 1}, 4, 3),  # somebody else gets a game
        ({"mirror": 1, "self": 99}, 4, 1),
        ({"mirror": 1}, 5, 5),
        ({"mirror": 2, "rock": 0}, 5, 5),
        ({"mirror": 0, "rock": 1}, 5, 0),
        ({"self": 1}, 5, 0),
    ],
)
def test_the_mirror_has_a_fixed_part_of_the_games(weights: dict[str, float], games: int, mirrored: int) -> None:
    assert mirrored_games(weights, games) == mirrored


def test_one_game_cannot_be_shared_with_the_mirror() -> None:
    with pytest.raises(ConfigError, match="got 1"):
        mirrored_games({"mirror": 1, "self": 1}, 1)
    with pytest.raises(ConfigError, match="from 0 on"):
        mirrored_games({"mirror": -1}, 4)


rates = st.lists(st.none() | st.floats(0.0, 1.0), min_size=1, max_size=60)


def test_hand_computed_chances() -> None:
    assert mostly_recent(3, 1.0, 1).tolist() == [0.0, 0.0, 1.0]
    assert mostly_recent(4, 1.0, 9).tolist() == [0.25] * 4
    assert mostly_recent(5, 0.9, 2).tolist() == pytest.approx([0.1 / 3] * 3 + [0.45, 0.45])
    assert mostly_recent(2, 0.9, 5).tolist() == pytest.approx([0.5, 0.5])
    # (1 - p)^2 of win rates 0.5, 0.8 and an unknown one: 0.25, 0.04, 0.25.
    assert by_win_rate([0.5, 0.8, None], 2.0).tolist() == pytest.approx([25 / 54, 4 / 54, 25 / 54])
    assert by_win_rate([1.0, 1.0], 2.0).tolist() == [0.5, 0.5]


@given(rates)
def test_chances_add_up_to_one(win_rates: Sequence[float | None]) -> None:
    recent = mostly_recent(len(win_rates), 0.99, 10)
    for chances in (recent, by_win_rate(win_rates, 2.0)):
        assert chances.shape == (len(win_rates),)
        assert chances.sum() == pytest.approx(1.0)
        assert (chances >= 0.0).all()
    assert recent[-10:].sum() == pytest.approx(0.99 if len(win_rates) > 10 else 1.0)


@given(rates, st.integers(1, 40), st.floats(0.0, 1.0, exclude_max=True))
def test_thinning_leaves_few_and_takes_none_of_the_likely(
    win_rates: Sequence[float | None], live: int, offset: float
) -> None:
    chances = by_win_rate(win_rates, 2.0)
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
        normalised(np.ones(0))


def test_live_snapshots_are_fewer_than_a_sixteenth_of_the_games() -> None:
    config = LeagueConfig()
    assert [config.live_for(games) for games in (1, 16, 64, 512, 4096)] == [1, 1, 4, 32, 32]
