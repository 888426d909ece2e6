"""Evaluation in sets: memory is kept, the score is told by match number, and the gain is paired by set."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.agents import MakePolicy
from tests.own_networks import StepCounter

from ludus import make_env
from ludus.core.errors import ConfigError
from ludus.core.intervals import Interval, mean_of_intervals, paired_difference, wilson_interval
from ludus.envs.bots import BotObservation
from ludus.evaluation.evaluate import PolicyEvaluator, evaluate
from ludus.evaluation.players import Player, find_players
from ludus.evaluation.results import MatchResults, by_match_columns
from ludus.evaluation.set_plot import plot_by_match
from ludus.policies import register_network
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

ROUNDS = 4
SETTINGS = {"rounds": ROUNDS}


def counting_policy() -> Policy:
    """Rock in the first match that it remembers, paper in the second, scissors in the third."""
    with make_env("duel", config=SETTINGS) as env:
        config = PolicyConfig(module=register_network(StepCounter), module_kwargs={"period": ROUNDS})
        return Policy(env.spec, config)


def results(wins: list[int], opponents: list[int] | None = None) -> MatchResults:
    """Return matches of one seat each, of ten steps and without other events."""
    count, won = len(wins), np.array(wins, np.float64)
    lengths = np.full(count, 10)
    return MatchResults(
        np.array(opponents or [0] * count), np.ones(count, np.bool_), lengths, np.zeros(count, np.int64),
        {"wins": won, "losses": 1.0 - won}, {},
    )  # fmt: skip


def test_the_score_is_told_by_match_number_and_the_memory_lasts_for_the_set() -> None:
    evaluation = evaluate(counting_policy(), ["rock"], matches=24, best_of=3, config=SETTINGS)
    (row,) = evaluation.rows
    assert (row["matches"], row["wins"], row["draws"], row["losses"]) == (24, 8, 8, 8)
    assert row["mean_length"] == ROUNDS
    assert [row[f"win_rate_match_{number}"] for number in (1, 2, 3)] == [0.0, 1.0, 0.0]
    assert row["win_rate_match_2_low"] == wilson_interval(8, 8).low
    assert row["win_rate_gain"] == 0.0
    assert row["win_rate_gain_low"] < 0.0 < row["win_rate_gain_high"]
    longer = evaluate(counting_policy(), ["rock"], matches=10, best_of=2, config=SETTINGS)
    assert longer.gain is not None
    assert longer.gain.estimate == 1.0


def test_an_opponent_with_a_memory_keeps_it_too() -> None:
    evaluation = evaluate(counting_policy(), [Player("twin", counting_policy())], matches=6, best_of=3, config=SETTINGS)
    assert evaluation.rows[0]["draws"] == 6  # a twin that forgot in every match would lose to paper


def test_matches_are_rounded_up_to_whole_sets_in_any_batches() -> None:
    policy = counting_policy()
    whole, parts = (
        evaluate(policy, ["rock", "cycle"], matches=10, best_of=3, config=SETTINGS, max_envs=games, deterministic=True)
        for games in (100, 3)
    )
    assert [row["matches"] for row in whole.rows] == [12, 12]
    strip = [{key: value for key, value in row.items() if key != "side"} for row in parts.rows]
    assert strip == list(whole.rows)


def test_matches_of_uneven_length_stay_in_step_with_their_sets(stubborn: MakePolicy) -> None:
    policy = stubborn("brawl", [-9.0] * 10)
    with make_env("brawl", 8, config={"step_limit": 300, "stocks": 1}) as env:
        evaluator = PolicyEvaluator(env, find_players(["aggressive"], env), matches=16, best_of=2)
        first, second = evaluator.play_sets(policy)
    assert len({*first.lengths.tolist(), *second.lengths.tolist()}) > 2
    assert first.lengths.tolist() != second.lengths.tolist()
    assert (first.events["wins"] + first.events["losses"] <= 1.0).all()
    assert float(first.events["losses"].sum()) > 4.0


def test_bots_begin_every_match_and_keep_their_parameters_over_the_set() -> None:
    seen: list[tuple[list[int], list[float]]] = []

    def watcher(observation: BotObservation, state: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        state = torch.zeros_like(observation.frame) if state is None else state + 1
        seen.append((state.tolist(), observation.parameter().tolist()))
        return torch.zeros_like(observation.frame), state

    evaluate(counting_policy(), [watcher], matches=3 * 2, best_of=3, config=SETTINGS)
    assert [steps for steps, _ in seen[: 3 * ROUNDS]] == [[step, step] for step in list(range(ROUNDS)) * 3]
    assert len({tuple(drawn) for _, drawn in seen}) == 1


def test_columns_of_constructed_results_by_hand() -> None:
    row = by_match_columns([results([0, 0, 1, 0]), results([1, 0, 1, 0]), results([1, 1, 1, 0])])
    assert [row[f"win_rate_match_{number}"] for number in (1, 2, 3)] == [0.25, 0.5, 0.75]
    assert (row["win_rate_match_1_low"], row["win_rate_match_1_high"]) == wilson_interval(1, 4)[1:]
    assert row["win_rate_gain"] == 0.5
    assert by_match_columns([results([1, 0])]) == {}
    without_winners = [
        MatchResults(each.opponents, each.leads, each.lengths, each.teams, {"reward": reward}, {})
        for each, reward in ((results([0, 0]), np.array([1.0, 2.0])), (results([0, 0]), np.array([4.0, 5.0])))
    ]
    row = by_match_columns(without_winners)
    assert (row["mean_return_match_1"], row["mean_return_match_2"]) == (1.5, 4.5)
    assert (row["mean_return_gain"], row["mean_return_gain_low"], row["mean_return_gain_high"]) == (3.0, 3.0, 3.0)


def test_paired_differences_by_hand() -> None:
    # Pairs: 20 both, 12 gained, 2 lost, 16 neither. Wilson: 0.64 (0.5014 to 0.7586) and 0.44 (0.3116 to 0.5769).
    # phi = (20 * 16 - 12 * 2 - 50 / 2) / sqrt(32 * 18 * 22 * 28) = 0.4550. Below: 0.1386 and 0.1369 give
    # sqrt(0.1386^2 - 2 phi 0.1386 * 0.1369 + 0.1369^2) = 0.1438; above: 0.1186 and 0.1284 give 0.1292.
    first = [True] * 20 + [False] * 12 + [True] * 2 + [False] * 16
    second = [True] * 20 + [True] * 12 + [False] * 2 + [False] * 16
    assert paired_difference(first, second) == pytest.approx((0.2, 0.0562, 0.3292), abs=5e-5)
    same = paired_difference([True] * 10, [True] * 10)
    assert same.estimate == 0.0
    assert same.low == pytest.approx(wilson_interval(10, 10).low - 1.0)
    with pytest.raises(ConfigError):
        paired_difference([True], [True, False])


def test_a_mean_of_intervals_by_hand() -> None:
    # Distances of 3 and 4 below, 6 and 8 above: sqrt(9 + 16) / 2 and sqrt(36 + 64) / 2.
    mean = mean_of_intervals([Interval(10.0, 7.0, 16.0), Interval(20.0, 16.0, 28.0)])
    assert mean == (15.0, 12.5, 20.0)
    assert mean_of_intervals([Interval(1.0, -math.inf, math.inf)]) == (1.0, -math.inf, math.inf)


def test_the_mean_curve_and_the_gain_are_in_the_json() -> None:
    evaluation = evaluate(counting_policy(), ["rock", "random"], matches=20, best_of=2, config=SETTINGS)
    document = evaluation.as_json()
    assert (document["best_of"], document["score"]) == (2, "win_rate")
    assert [each["match"] for each in document["by_match"]] == [1, 2]
    assert document["by_match"][1]["estimate"] == pytest.approx(
        sum(row["win_rate_match_2"] for row in evaluation.rows) / 2
    )
    assert set(document["gain"]) == {"estimate", "low", "high"}
    plain = evaluate(counting_policy(), ["rock"], matches=4, config=SETTINGS)
    assert plain.gain is None
    assert plain.by_match == ()
    assert "by_match" not in plain.as_json()
    assert not any("_match_" in name for name in plain.rows[0])


@pytest.mark.parametrize("best_of", [0, 101, True, 2.5])
def test_a_set_has_one_to_a_hundred_matches(best_of: int) -> None:
    with pytest.raises(ConfigError, match="best_of"):
        evaluate(counting_policy(), ["rock"], matches=4, best_of=best_of, config=SETTINGS)


def test_a_world_of_one_team_has_no_sets(stubborn: MakePolicy) -> None:
    with pytest.raises(ConfigError, match="one team"):
        evaluate(stubborn("gym:CartPole-v1", [-9.0, 9.0]), matches=4, best_of=2)


def test_the_plot_is_a_picture_and_needs_sets(tmp_path: Path) -> None:
    evaluation = evaluate(counting_policy(), ["rock", "cycle"], matches=12, best_of=3, config=SETTINGS)
    plot_by_match(evaluation, tmp_path / "sets.png", "$a$ counter")
    assert (tmp_path / "sets.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match="best_of"):
        plot_by_match(evaluate(counting_policy(), ["rock"], matches=4, config=SETTINGS), tmp_path / "none.png")
