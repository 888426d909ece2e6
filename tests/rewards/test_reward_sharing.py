"""Shared rewards: team spirit and zero-sum by hand, an account that adds up bit for bit, and no cost when off."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ludus.core.errors import ConfigError
from ludus.rewards import manager as manager_module
from ludus.rewards.manager import GRID, RewardManager
from ludus.rewards.sharing import Sharing, share_rewards
from ludus.rewards.step_info import StepInfo
from ludus.rewards.weights import RewardConfig

EVENTS = ("goals", "fouls")
TWO_ON_TWO = (0, 0, 1, 1)


def step_info(goals: list[list[float]], fouls: list[list[float]]) -> StepInfo:
    return StepInfo({"goals": torch.tensor(goals), "fouls": torch.tensor(fouls)}, {}, 0.5)


def manager(teams: tuple[int, ...], *configs: dict[str, object]) -> RewardManager:
    models = tuple(RewardConfig.model_validate(config) for config in configs)
    return RewardManager("pitch", EVENTS, models, {}, teams)


def test_team_spirit_by_hand() -> None:
    rewards = manager(TWO_ON_TWO, {"weights": {"goals": 4.0, "fouls": -1.0}, "team_spirit": 0.25})
    parts = rewards.contributions(step_info([[1.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 2.0, 0.0]]))
    # 0.75 * 4 + 0.25 * (4 + 0) / 2 = 3.5 for who scored, 0.25 * 2 = 0.5 for the other of the team.
    assert parts[0].tolist() == [[3.5, 0.5, 0.0, 0.0]]
    assert parts[1].tolist() == [[0.0, 0.0, -1.75, -0.25]]


def test_zero_sum_by_hand() -> None:
    rewards = manager(TWO_ON_TWO, {"weights": {"goals": 4.0, "fouls": -1.0}, "zero_sum": True})
    parts = rewards.contributions(step_info([[1.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 2.0, 0.0]]))
    # The scorer keeps 4; each opponent loses blue's mean of 2. The foul's -2 is a mean of -1, which blue is given.
    assert parts[0].tolist() == [[4.0, 0.0, -2.0, -2.0]]
    assert parts[1].tolist() == [[1.0, 1.0, -2.0, 0.0]]


def test_both_at_once_in_unequal_teams_by_hand() -> None:
    rewards = manager((0, 1, 1), {"weights": {"goals": 1.0, "fouls": -1.0}, "team_spirit": 0.5, "zero_sum": True})
    parts = rewards.contributions(step_info([[8.0, 4.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    # Alone: 8 - mean(4, 0) = 6. The pair shares to 3 and 1 (mean 2 stays), less 8.
    assert parts[0].tolist() == [[6.0, -5.0, -7.0], [0.0, 0.0, 0.0]]
    # -1 is shared to -0.25 and -0.75; the other side gets back the mean of 0.5.
    assert parts[1].tolist() == [[0.0, 0.0, 0.0], [0.5, -0.25, -0.75]]


def test_three_teams_take_from_each_other() -> None:
    shared = share_rewards(torch.tensor([[[6.0, 0.0, 0.0, 3.0]]]), (0, 1, 1, 2), Sharing(zero_sum=1.0))
    # 6 - (0 + 0 + 3) / 3, 0 - (6 + 3) / 2 twice, 3 - (6 + 0 + 0) / 3.
    assert shared.tolist() == [[[5.0, -4.5, -4.5, 1.0]]]


def test_games_side_by_side_do_not_mix() -> None:
    rewards = manager((0, 1), {"weights": {"goals": 1.0, "fouls": -1.0}, "zero_sum": True})
    flat = rewards.contributions(step_info([[1.0, 0.0, 0.0, 2.0]], [[0.0] * 4]))
    assert flat[0].tolist() == [[1.0, -1.0, -2.0, 2.0]]
    by_game = rewards.contributions(step_info([[1.0, 0.0], [0.0, 2.0]], [[0.0] * 2] * 2))
    assert by_game[0].tolist() == [[1.0, -1.0], [-2.0, 2.0]]


number = st.floats(-3, 3, width=32)


@given(
    rows=st.lists(st.tuples(*[st.tuples(number, number)] * 3), min_size=1, max_size=60),
    weights=st.tuples(st.floats(0.125, 9), st.floats(-9, -0.125)),
    spirit=st.floats(0, 1),
    zero_sum=st.booleans(),
)
def test_the_account_adds_up_bit_for_bit(
    rows: list[tuple[tuple[float, float], ...]], weights: tuple[float, float], spirit: float, zero_sum: bool
) -> None:
    config = {
        "weights": {"goals": weights[0], "fouls": weights[1]}, "team_spirit": spirit, "zero_sum": zero_sum,
    }  # fmt: skip
    values = torch.tensor(rows)  # (games, seats, terms)
    rewards = manager((0, 1, 1), config)
    parts = rewards.contributions(StepInfo(dict(zip(EVENTS, values.unbind(-1), strict=True)), {}, 0.5))
    per_step = parts.sum(0)
    assert per_step.double().sum().item() == parts.double().sum().item() == parts.flip(1).double().sum((1, 0, 2)).item()
    assert torch.equal(parts / GRID, (parts / GRID).round())
    if zero_sum:  # what the mean of one team gets, the mean of the other loses
        assert (per_step[:, 0] + per_step[:, 1:].mean(-1)).abs().max().item() < 1e-4


def test_nothing_is_done_when_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> torch.Tensor:
        raise AssertionError("shared although it is off")

    monkeypatch.setattr(manager_module, "share_rewards", never)
    rewards = manager(TWO_ON_TWO, {"weights": {"goals": 1.0, "fouls": -1.0}})
    assert not rewards.shares
    assert "shared_from" not in rewards.state()
    # Three rows are not all seats of a game: nobody asks.
    assert rewards.contributions(step_info([[1.0, 2.0, 3.0]], [[0.0] * 3]))[0].tolist() == [[1.0, 2.0, 3.0]]


def test_spirit_can_grow_and_glides_between_stages() -> None:
    phases = (
        {"weights": {"goals": 1.0}, "team_spirit": {"points": [[0, 0.25], [1000, 0.75]]}},
        {"weights": {"goals": 1.0}, "team_spirit": 1.0, "zero_sum": True, "glide_env_steps": 1000},
    )
    rewards = manager(TWO_ON_TWO, *phases)
    assert rewards.shares
    assert rewards.sharing == Sharing(0.25, 0.0)
    rewards.set_time(500)
    assert rewards.sharing == Sharing(0.5, 0.0)
    rewards.set_phase(1, 500)
    rewards.set_time(1000)
    assert rewards.sharing == Sharing(0.75, 0.5)
    again = manager(TWO_ON_TWO, *phases)
    again.load_state(rewards.state(), 1000)
    assert again.sharing == rewards.sharing
    rewards.set_time(9000)
    assert rewards.sharing == Sharing(1.0, 1.0)


def test_what_cannot_be_shared_is_refused() -> None:
    with pytest.raises(ConfigError, match="pitch has one team"):
        manager((0, 0), {"weights": {"goals": 1.0}, "zero_sum": True})
    with pytest.raises(ConfigError, match="without teams"):
        manager((), {"weights": {"goals": 1.0}, "team_spirit": 0.5})
    with pytest.raises(ConfigError, match=r"4 seats .*got 3 rows"):
        manager(TWO_ON_TWO, {"weights": {"goals": 1.0}, "team_spirit": 0.5}).contributions(
            step_info([[1.0, 2.0, 3.0]], [[0.0] * 3])
        )
    with pytest.raises(ValidationError, match=r"from 0 to 1, got 1\.5"):
        RewardConfig.model_validate({"team_spirit": 1.5})
