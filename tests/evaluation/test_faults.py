"""Agents that take too long, decide NaN or take much memory: refused where they are seated, else they lose."""

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import ludus
from ludus.core.errors import AgentError
from ludus.envs.registry import make_env
from ludus.evaluation.benchmark import run_benchmark
from ludus.evaluation.entries import Entry, load_entries
from ludus.evaluation.evaluate import evaluate
from ludus.evaluation.live_match import LiveMatch
from ludus.evaluation.matches import MatchSchedule
from ludus.evaluation.players import Player, games_at_once, load_agent, seat_by_team
from ludus.evaluation.suite import Suite, SuiteRow
from ludus.evaluation.tournament import run_tournament
from ludus.policies import LoadLimits
from ludus.policies.agent import Agent
from ludus.policies.cost import Allowance
from ludus.policies.policy import Policy, Step

MakePolicy = Callable[..., Policy]
SaveAgent = Callable[[Policy, Path], Path]
Load = Callable[..., Agent]
ROCK, PAPER = [9.0, -9.0, -9.0], [-9.0, 9.0, -9.0]


@pytest.fixture
def load(stubborn: MakePolicy, save_agent: SaveAgent, tmp_path: Path) -> Load:
    """Loads an agent from a file that always does the same: `load(PAPER)` wins every match against rock."""

    def make(parameters: list[float], name: str = "agent", world: str = "duel", **limits: float) -> Agent:
        run = save_agent(stubborn(world, parameters), tmp_path / name)
        return load_agent(run, limits=LoadLimits(**limits))

    return make


def allowance(agent: Agent) -> Allowance:
    assert agent.policy.allowance is not None
    return agent.policy.allowance


def make_slow(agent: Agent, monkeypatch: pytest.MonkeyPatch, after: int = 0, seconds: float = 11.0) -> list[int]:
    """Lets the clock go on by some seconds in each of an agent's decisions from a number on; returns their rows."""
    step, clock, rows = agent.policy.step, [0.0], list[int]()

    def slow(*arguments: Any) -> Step:
        rows.append(arguments[2].numel())
        clock[0] += seconds if len(rows) > after else 0.0
        return step(*arguments)

    monkeypatch.setattr(agent.policy, "step", slow)
    for name in ("perf_counter", "process_time"):
        monkeypatch.setattr(time, name, lambda: clock[0])
    return rows


def make_nan(agent: Agent, monkeypatch: pytest.MonkeyPatch, after: int, every: int = 1) -> None:
    """Makes the decisions of every few rows NaN after some steps, as a memory that overflows would."""
    step, calls = agent.policy.step, [0]

    def wrong(*arguments: Any) -> Step:
        calls[0] += 1
        given = step(*arguments)
        if calls[0] > after:
            given.log_probs[::every] = math.nan
        return given

    monkeypatch.setattr(agent.policy, "step", wrong)


def outcome(row: dict[str, Any]) -> tuple[int, int, int]:
    return row["wins"], row["draws"], row["losses"]


def test_the_first_slow_decision_ends_all_matches_as_losses(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = load(PAPER)
    assert outcome(evaluate(paper, ["rock"], matches=6, deterministic=True).rows[0]) == (6, 0, 0)
    asked = make_slow(paper, monkeypatch, after=3)
    evaluation = evaluate(paper, ["rock"], matches=6, max_envs=4, deterministic=True)
    assert outcome(evaluation.rows[0]) == (0, 0, 6)
    assert asked == [4, 4, 4, 4]  # not once more, in the second batch either
    assert evaluation.rows[0]["mean_length"] == pytest.approx((4 * 4 + 2 * 1) / 6)
    assert "took 11.0 s over a decision in 4 seats; its limit is 10.0 s" in evaluation.warnings[-1]
    assert "took 11.0 s" in str(evaluation.as_json()["warnings"])


def test_the_time_limit_grows_with_the_operations_of_a_batch(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = load(PAPER)
    allowance(paper).cost.flops = 10**10  # 6 seats take 6e10, three times what the limit is for
    make_slow(paper, monkeypatch, seconds=29.0)
    assert outcome(evaluate(paper, ["rock"], matches=6, deterministic=True).rows[0]) == (6, 0, 0)
    make_slow(paper, monkeypatch, seconds=31.0)
    assert outcome(evaluate(paper, ["rock"], matches=6, deterministic=True).rows[0]) == (0, 0, 6)


def test_a_slow_opponent_loses_and_other_matches_go_on(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = load(PAPER)
    make_slow(slow, monkeypatch)
    rows = evaluate(load(ROCK, "rock"), [slow, "cycle"], matches=4, deterministic=True).rows
    assert outcome(rows[0]) == (4, 0, 0)
    assert rows[1]["mean_length"] == 10.0


def test_the_time_of_other_processes_does_not_count(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = load(PAPER)
    make_slow(paper, monkeypatch)
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    assert outcome(evaluate(paper, ["rock"], matches=2, deterministic=True).rows[0]) == (2, 0, 0)


def test_policies_of_this_process_have_no_time_limit(stubborn: MakePolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = Agent(stubborn("duel", PAPER))
    make_slow(paper, monkeypatch)
    assert outcome(evaluate(paper, ["rock"], matches=2, deterministic=True).rows[0]) == (2, 0, 0)


def test_games_in_which_a_decision_is_nan_are_lost(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = load(PAPER)
    make_nan(paper, monkeypatch, after=3, every=2)
    evaluation = evaluate(paper, ["rock"], matches=6, deterministic=True)
    assert outcome(evaluation.rows[0]) == (3, 0, 3)
    assert "decided NaN or infinity" in evaluation.warnings[-1]


def test_a_set_is_lost_with_its_matches_to_come(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = load(PAPER)
    make_nan(paper, monkeypatch, after=12)  # in the second match of three
    sets = {"matches_per_episode": 3}
    row = evaluate(paper, ["rock"], matches=2, config=sets, deterministic=True).rows[0]
    assert outcome(row) == (0, 0, 2)
    assert [row[f"win_rate_match_{number}"] for number in (1, 2, 3)] == [1.0, 0.0, 0.0]


def test_a_world_without_winners_cannot_count_such_a_game(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = load([0.0], world="point")
    make_nan(agent, monkeypatch, after=3)
    with pytest.raises(AgentError, match=r"decided NaN or infinity; point-v1 has no winners"):
        evaluate(agent, scenarios=(), matches=2, deterministic=True)


@pytest.mark.parametrize("which", [0, 1])
def test_a_live_match_is_lost_too(load: Load, monkeypatch: pytest.MonkeyPatch, which: int) -> None:
    agent = load(PAPER)
    make_slow(agent, monkeypatch, after=4)
    sides = [Player("paper", agent.policy), Player("rock")]
    with make_env("duel") as env:
        match = LiveMatch(env, seat_by_team(env, sides[::-1] if which else sides, deterministic=True))
        outcome = None
        while outcome is None:
            outcome = match.step()
        assert (outcome.winner, outcome.steps) == (1 - which, 5)
        assert "took 11.0 s" in outcome.reason
        assert "took 11.0 s" in outcome.describe(match.sides)
        match.restart()
        with pytest.raises(AgentError, match=r"took 11\.0 s"):
            match.step()


def test_a_live_match_after_nan_starts_anew(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = load(PAPER)
    with make_env("duel") as env:
        match = LiveMatch(env, seat_by_team(env, [Player("paper", agent.policy), Player("rock")], deterministic=True))
        with monkeypatch.context() as patched:
            make_nan(agent, patched, after=2)
            assert [match.step() is None for _ in range(3)] == [True, True, False]
        match.restart()
        outcome = None
        while outcome is None:
            outcome = match.step()
        assert (outcome.winner, outcome.steps, outcome.reason) == (0, 10, "")


def test_play_match_tells_the_reason(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = load(PAPER)
    make_nan(agent, monkeypatch, after=2)
    result = ludus.play_match(agent, "rock", deterministic=True)
    assert (result.winner, result.steps) == ("rock", 3)
    assert "decided NaN" in result.reason


def test_a_tournament_refuses_an_agent_that_is_slow_at_once(
    load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    load(PAPER, "slow")
    asked: list[int] = []
    real = Policy.step

    def slow(policy: Policy, *arguments: Any) -> Step:
        asked.append(1)
        clock[0] += 11.0
        return real(policy, *arguments)

    clock = [0.0]
    monkeypatch.setattr(Policy, "step", slow)
    for name in ("perf_counter", "process_time"):
        monkeypatch.setattr(time, name, lambda: clock[0])
    entries = load_entries([str(tmp_path / "slow"), "rock", "cycle"], world="duel")
    assert [entry.name for entry in entries.accepted] == ["rock", "cycle"]
    assert "took 11.0 s over a decision" in entries.rejected[0].reason
    assert len(asked) == 1  # when it was loaded


def test_a_tournament_goes_on_when_an_agent_becomes_slow_or_nan(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, other = load(PAPER, "paper"), load(PAPER, "other")
    players = [Player("paper", agent.policy), Player("other", other.policy), Player("rock")]
    entries = dataclasses.replace(
        load_entries(["rock", "cycle"], world="duel"),
        accepted=tuple(Entry(player.name, player.name, player) for player in players),
    )
    schedule = MatchSchedule("duel", players, deterministic=True)
    make_nan(agent, monkeypatch, after=0)  # also in the first decision: the entry was checked before
    make_slow(other, monkeypatch, after=3)
    played = run_tournament(entries, schedule, matches=4)
    assert played.record("paper", "rock") == (0, 0, 4)
    assert played.record("other", "rock") == (0, 0, 4)
    assert played.record("other", "paper") == (4, 0, 0)  # it won before it became slow
    assert len(played.faults) == 2
    assert played.as_json()["faults"] == list(played.faults)


@pytest.mark.parametrize(
    "play",
    [
        lambda agent: evaluate(agent, ["rock"], matches=2),
        lambda agent: evaluate(agent, ["rock"], matches=2, deterministic=True),
        lambda agent: evaluate(agent, matches=2),
        lambda agent: ludus.play_match(agent, "rock"),
        lambda agent: run_benchmark(agent, Suite(rows=(SuiteRow(opponent="rock"),), matches=2)),
    ],
    ids=["eval", "deterministic", "all bots", "play_match", "benchmark"],
)
def test_an_agent_whose_first_decision_is_nan_is_refused(play: Callable[[Agent], object], load: Load) -> None:
    agent = load(PAPER)
    with torch.no_grad():
        for parameter in agent.policy.parameters():
            parameter.fill_(3e38)
    with pytest.raises(AgentError, match="first decision is NaN or Inf"):
        play(agent)


def test_batches_are_divided_so_that_the_state_of_all_rows_fits(load: Load) -> None:
    agent = load(PAPER, batch_bytes=1.0)
    allowance(agent).cost.state_bytes, allowance(agent).cost.working_bytes = 0, 1
    one = allowance(agent)
    one.limits = dataclasses.replace(one.limits, batch_bytes=6.0)
    assert games_at_once([agent.policy, None], 2, 4096) == 3
    assert games_at_once([None], 2, 4096) == 4096
    assert outcome(evaluate(agent, ["rock"], matches=10, deterministic=True).rows[0]) == (10, 0, 0)
    schedule = MatchSchedule("duel", [Player("paper", agent.policy), Player("rock")], deterministic=True)
    assert schedule.play([(0, 1)], 10) == [(10, 0, 0)]


def test_more_seats_than_fit_are_refused(load: Load) -> None:
    agent = load(PAPER)
    one = allowance(agent)
    one.cost.state_bytes, one.cost.working_bytes, one.limits = 2**20, 0, LoadLimits(batch_bytes=4 * 2**20)
    with make_env("duel", 12) as env, pytest.raises(AgentError, match=r"12 seats at once.* may play 4; .*--games"):
        Player("paper", agent.policy).seat(env, 0)
    with make_env("duel", 4) as env:
        Player("paper", agent.policy).seat(env, 0)
