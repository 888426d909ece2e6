"""Shared rewards: team spirit by hand, an account that adds up bit for bit, and no cost when off."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ludus.core.errors import ConfigError
from ludus.rewards import manager as manager_module
from ludus.rewards.manager import GRID, RewardManager
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


def test_unequal_teams_by_hand() -> None:
    rewards = manager((0, 1, 1), {"weights": {"goals": 1.0, "fouls": -1.0}, "team_spirit": 0.5})
    parts = rewards.contributions(step_info([[8.0, 4.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    assert parts[0].tolist() == [[8.0, 3.0, 1.0], [0.0, 0.0, 0.0]]  # who is alone keeps 8; the pair has a mean of 2
    assert parts[1].tolist() == [[0.0, 0.0, 0.0], [0.0, -0.25, -0.75]]


def test_games_side_by_side_do_not_mix() -> None:
    rewards = manager((0, 0), {"weights": {"goals": 1.0, "fouls": -1.0}, "team_spirit": 1.0})
    flat = rewards.contributions(step_info([[1.0, 0.0, 0.0, 2.0]], [[0.0] * 4]))
    assert flat[0].tolist() == [[0.5, 0.5, 1.0, 1.0]]
    by_game = rewards.contributions(step_info([[1.0, 0.0], [0.0, 2.0]], [[0.0] * 2] * 2))
    assert by_game[0].tolist() == [[0.5, 0.5], [1.0, 1.0]]


number = st.floats(-3, 3, width=32)


@given(
    rows=st.lists(st.tuples(*[st.tuples(number, number)] * 3), min_size=1, max_size=60),
    weights=st.tuples(st.floats(0.125, 9), st.floats(-9, -0.125)),
    spirit=st.floats(0, 1),
)
def test_the_account_adds_up_bit_for_bit(
    rows: list[tuple[tuple[float, float], ...]], weights: tuple[float, float], spirit: float
) -> None:
    config = {"weights": {"goals": weights[0], "fouls": weights[1]}, "team_spirit": spirit}
    values = torch.tensor(rows)  # (games, seats, terms)
    rewards = manager((0, 1, 1), config)
    parts = rewards.contributions(StepInfo(dict(zip(EVENTS, values.unbind(-1), strict=True)), {}, 0.5))
    per_step = parts.sum(0)
    assert per_step.double().sum().item() == parts.double().sum().item() == parts.flip(1).double().sum((1, 0, 2)).item()
    assert torch.equal(parts / GRID, (parts / GRID).round())


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
        {"weights": {"goals": 1.0}, "team_spirit": 1.0, "glide_env_steps": 1000},
    )
    rewards = manager(TWO_ON_TWO, *phases)
    assert rewards.shares
    assert rewards.team_spirit == 0.25
    rewards.set_time(500)
    assert rewards.team_spirit == 0.5
    rewards.set_phase(1, 500)
    rewards.set_time(1000)
    assert rewards.team_spirit == 0.75
    again = manager(TWO_ON_TWO, *phases)
    again.load_state(rewards.state(), 1000)
    assert again.team_spirit == rewards.team_spirit
    rewards.set_time(9000)
    assert rewards.team_spirit == 1.0


def test_what_cannot_be_shared_is_refused() -> None:
    with pytest.raises(ConfigError, match="without teams"):
        manager((), {"weights": {"goals": 1.0}, "team_spirit": 0.5})
    with pytest.raises(ConfigError, match=r"4 seats .*got 3 rows"):
        manager(TWO_ON_TWO, {"weights": {"goals": 1.0}, "team_spirit": 0.5}).contributions(
            step_info([[1.0, 2.0, 3.0]], [[0.0] * 3])
        )
    with pytest.raises(ValidationError, match=r"from 0 to 1, got 1\.5"):
        RewardConfig.model_validate({"team_spirit": 1.5})
