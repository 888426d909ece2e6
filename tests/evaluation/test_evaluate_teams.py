"""Evaluation in worlds of teams: all seats of a team, both sides of unequal teams, several modes, tournaments."""

from pathlib import Path
from typing import Any

import pytest
import torch

from ludus.core.errors import CheckpointError, ConfigError, StateError
from ludus.envs.registry import make_env
from ludus.evaluation.evaluate import PolicyEvaluator, evaluate, stored_modes
from ludus.evaluation.matches import MatchSchedule
from ludus.evaluation.players import Player, find_players
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import Checkpoint, save_checkpoint

PAIRS = {"blue": 2, "orange": 2}
UNEQUAL = {"blue": 1, "orange": 2}


@pytest.fixture
def strong() -> Policy:
    """A policy that answers every call."""
    with make_env("tug") as env:
        policy = Policy(env.spec, PolicyConfig.model_validate({"net_arch": {"pi": [], "vf": []}}))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        policy.get_parameter("head.linear.weight")[:, 3:6] = 100.0 * torch.eye(3)
    return policy


def _numbers(rows: tuple[dict[str, Any], ...], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_a_team_is_played_by_one_and_a_match_counts_once(strong: Policy) -> None:
    found = evaluate(strong, ["idle", "strong"], config=PAIRS, matches=10)
    assert _numbers(found.rows, "opponent", "matches", "wins", "draws") == [("idle", 10, 10, 0), ("strong", 10, 0, 10)]
    assert "side" not in found.rows[0]
    # Two that pull in each of ten rounds against two that do not.
    assert found.rows[0]["mean_return"] == 20.0


def test_unequal_teams_have_a_row_for_each_side(strong: Policy) -> None:
    found = evaluate(strong, ["strong", "idle"], config=UNEQUAL, matches=11)
    assert _numbers(found.rows, "opponent", "side", "matches", "wins", "losses") == [
        ("strong", "1v2", 6, 0, 6),
        ("strong", "2v1", 5, 5, 0),
        ("idle", "1v2", 6, 6, 0),
        ("idle", "2v1", 5, 5, 0),
    ]
    assert found.mean_win_rate == pytest.approx(0.75), "each row counts alike"
    assert _numbers(found.rows, "mean_return")[:2] == [(-10.0,), (10.0,)]
    small = evaluate(strong, ["strong", "idle"], config=UNEQUAL, matches=11, max_envs=3)
    columns = ("side", "matches", "wins")
    assert _numbers(small.rows, *columns) == _numbers(found.rows, *columns)


def test_a_side_without_matches_has_no_row(strong: Policy) -> None:
    found = evaluate(strong, ["idle"], config=UNEQUAL, matches=1)
    assert _numbers(found.rows, "side", "matches") == [("1v2", 1)]


def test_agents_can_be_the_opponents_of_either_side(strong: Policy) -> None:
    with make_env("tug", 12, config=UNEQUAL) as env:
        rows = PolicyEvaluator(env, [Player("twin", strong), *find_players(["idle"], env)], matches=6).play(strong).rows
    assert _numbers(rows[:2], "opponent", "side", "wins", "losses") == [("twin", "1v2", 0, 3), ("twin", "2v1", 3, 0)]


def test_modes_are_evaluated_one_after_the_other(strong: Policy) -> None:
    told: list[float] = []
    modes: dict[str, dict[str, Any]] = {"1v1": {}, "uneven": UNEQUAL, "2v2": PAIRS}
    found = evaluate(strong, ["strong"], modes=modes, config={"rounds": 3}, matches=4, progress=told.append)
    assert _numbers(found.rows, "opponent", "mode", "side", "matches", "wins", "draws") == [
        ("strong", "1v1", "", 4, 0, 4),
        ("strong", "uneven", "1v2", 2, 0, 0),
        ("strong", "uneven", "2v1", 2, 2, 0),
        ("strong", "2v2", "", 4, 0, 4),
    ]
    assert {tuple(row) for row in found.rows} == {tuple(found.rows[0])}, "all rows have the same columns"
    assert {row["mean_length"] for row in found.rows} == {3.0}, "modes are laid over the settings"
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert found.as_json()["opponents"][1]["mode"] == "uneven"


def test_modes_and_trials_do_not_mix(strong: Policy) -> None:
    with make_env("mimic") as env:
        policy = Policy(env.spec, PolicyConfig())
    with pytest.raises(ConfigError, match="1v1"):
        evaluate(policy, modes={"1v1": {}})
    with pytest.raises(StateError, match="duel"):
        evaluate(Agent(strong), ["rock"], world="duel", matches=1)


def test_tournaments_let_teams_meet_from_both_sides(strong: Policy) -> None:
    players = [Player("agent", strong), Player("strong"), Player("idle")]
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert MatchSchedule("tug", players, config=PAIRS).play(pairs, 6) == [(0, 6, 0), (6, 0, 0), (6, 0, 0)]
    # The pair wins between equals, whoever it is; against who never pulls both sides do.
    assert MatchSchedule("tug", players, config=UNEQUAL).play(pairs, 6) == [(3, 0, 3), (6, 0, 0), (6, 0, 0)]


def test_modes_are_read_from_the_checkpoint_of_a_run(strong: Policy, tmp_path: Path) -> None:
    agent = agent_checkpoint(strong.spec, strong.config, strong.state())
    evaluation = {"settings": {"rounds": 20}, "modes": {"1v1": {}, "2v2": PAIRS}}
    config: dict[str, Any] = {"world": {"name": "tug", "settings": {"rounds": 3, "blue": 1}}, "evaluation": evaluation}
    save_checkpoint(tmp_path / "best", Checkpoint(agent.tensors, {**agent.documents, "config": config}))
    assert stored_modes(tmp_path / "best") == {
        "1v1": {"rounds": 20, "blue": 1},
        "2v2": {"rounds": 20, "blue": 2, "orange": 2},
    }
    save_checkpoint(tmp_path / "alone", agent)
    assert stored_modes(tmp_path / "alone") == {}
    faults: list[dict[str, Any]] = [{"evaluation": []}, {"world": 3}, {"world": {"settings": "x"}}]
    for number, wrong in enumerate(faults):
        documents = {**agent.documents, "config": config | wrong}
        save_checkpoint(tmp_path / f"wrong-{number}", Checkpoint(agent.tensors, documents))
    assert stored_modes(tmp_path / "wrong-0") == {}
    for number in (1, 2):
        with pytest.raises(CheckpointError, match=r"config\.json"):
            stored_modes(tmp_path / f"wrong-{number}")
