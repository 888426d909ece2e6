"""Evaluation: known outcomes, sides, first matches, batches, determinism, and policies that stay as they are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import ConfigError, StateError, UnknownNameError
from ludus.core.intervals import mean_interval, wilson_interval
from ludus.envs.base import BatchedEnv, EnvSpec, Observations, StepResult
from ludus.envs.registry import make_env
from ludus.envs.world_parts import metrics_of
from ludus.evaluation import matches as matches_module
from ludus.evaluation.evaluate import Evaluation, PolicyEvaluator, evaluate
from ludus.evaluation.players import Player, find_players
from ludus.evaluation.results import metric_names
from ludus.nn.recurrent import RecurrentConfig
from ludus.policies.agent import Agent
from ludus.policies.config import NormalizationConfig, PolicyConfig
from ludus.policies.policy import Policy

MakePolicy = Callable[..., Policy]
ROCK, PAPER, SCISSORS = [9.0, -9.0, -9.0], [-9.0, 9.0, -9.0], [-9.0, -9.0, 9.0]
NO_KEYS = [-20.0] * 10
SECOND = {"step_limit": 30}


class UnevenEnv(BatchedEnv):
    """Two seats; the first wins short matches of 2 steps (even games), the second long ones of 40 (odd games)."""

    def __init__(self, games: int, teams: tuple[int, ...] = (0, 1), *, limit: int | None = 40) -> None:
        self.spec = EnvSpec(
            name="uneven",
            version=1,
            teams=teams,
            observation_space=spaces.Dict({"vector": spaces.Box(-1.0, 1.0, (2,), np.float32)}),
            action_space=spaces.Discrete(2),
            rate_hz=10.0,
            step_limit=limit,
            events=("wins", "losses", "reward"),
        )
        self.num_envs, self.device, self.seed, self.first_game = games, torch.device("cpu"), 0, 0
        even = torch.arange(games) % 2 == 0
        self._lengths = torch.where(even, 2, 40)
        first = torch.tensor([team == teams[0] for team in teams])
        self._winners = first == even.unsqueeze(1)
        self._frame = torch.zeros(games, dtype=torch.int64)

    def _observe(self) -> Observations:
        return {"vector": torch.zeros(self.num_envs, self.spec.seats, 2)}

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        self._frame.zero_()
        return self._observe()

    def _advance(self, actions: Tensor) -> StepResult:
        self._frame += 1
        ended = self._frame == self._lengths if self.spec.step_limit else torch.zeros_like(self._winners[:, 0])
        over = ended.unsqueeze(1)
        events = {
            "wins": (over & self._winners).float(),
            "losses": (over & ~self._winners).float(),
            "reward": actions.float(),
        }
        self._frame[ended] = 0
        return StepResult(self._observe(), ended, torch.zeros_like(ended), self._observe(), events, {})


def uneven_policy(env: UnevenEnv) -> Policy:
    return Policy(env.spec, PolicyConfig())


def row(evaluation: Evaluation, opponent: str) -> dict[str, Any]:
    return next(row for row in evaluation.rows if row["opponent"] == opponent)


def test_known_outcomes_of_rock_paper_scissors(stubborn: MakePolicy) -> None:
    # In 10 rounds the cycle plays rock 4 times, paper and scissors 3 times.
    paper = evaluate(stubborn("duel", PAPER), ["rock", "cycle"], matches=6)
    against_rock = row(paper, "rock")
    assert (against_rock["wins"], against_rock["draws"], against_rock["losses"]) == (6, 0, 0)
    assert (against_rock["mean_return"], against_rock["mean_length"]) == (10.0, 10.0)
    interval = wilson_interval(6, 6)
    assert (against_rock["win_rate"], against_rock["win_rate_low"]) == (1.0, interval.low)
    assert row(paper, "cycle")["mean_return"] == 1.0  # 4 won, 3 lost
    assert paper.mean_win_rate == paper.score == 1.0
    rock = evaluate(stubborn("duel", ROCK), ["rock", "cycle"], matches=4)
    assert [(each["wins"], each["draws"], each["losses"]) for each in rock.rows] == [(0, 4, 0), (0, 4, 0)]
    assert rock.mean_win_rate == 0.0  # a draw is not won
    scissors = evaluate(stubborn("duel", SCISSORS), ["rock"], matches=4)
    assert row(scissors, "rock")["losses"] == 4


def test_agents_and_bots_play_in_one_batch(stubborn: MakePolicy) -> None:
    others: list[str | Player] = [
        Player("a rock", stubborn("duel", ROCK)),
        "rock",
        Player("some scissors", stubborn("duel", SCISSORS)),
    ]
    evaluation = evaluate(stubborn("duel", PAPER), others, matches=5)
    assert [each["opponent"] for each in evaluation.rows] == ["a rock", "rock", "some scissors"]
    assert [each["win_rate"] for each in evaluation.rows] == [1.0, 1.0, 0.0]
    assert evaluation.mean_win_rate == pytest.approx(2 / 3)
    in_turn = evaluate(stubborn("duel", PAPER), others, matches=5, max_envs=4, deterministic=True)
    assert [each["win_rate"] for each in in_turn.rows] == [1.0, 1.0, 0.0]
    assert [each["matches"] for each in in_turn.rows] == [5, 5, 5]


def test_who_presses_nothing_draws_with_who_stands_still(stubborn: MakePolicy) -> None:
    evaluation = evaluate(stubborn("brawl", NO_KEYS), ["constant"], matches=4, config=SECOND)
    (only,) = evaluation.rows
    assert (only["draws"], only["win_rate"], only["mean_length"]) == (4, 0.0, 30.0)
    for name in ("damage_dealt", "damage_taken", "knockouts", "self_destructs", "attack_rate", "danger_share"):
        assert only[name] == 0.0
    assert only["survival_s"] == 1.0


def test_the_behaviour_is_the_agents_own(stubborn: MakePolicy) -> None:
    evaluation = evaluate(stubborn("brawl", NO_KEYS), ["aggressive"], matches=16, seed=5, config={"step_limit": 450})
    (beaten,) = evaluation.rows
    assert beaten["losses"] > 12
    assert beaten["damage_taken"] > 30.0
    assert beaten["knocked_out"] > 0.0 == beaten["damage_dealt"] == beaten["damage_ratio"]
    assert beaten["knockouts"] == beaten["pickups"] == beaten["attack_rate"] == 0.0
    assert beaten["survival_s"] == pytest.approx(beaten["mean_length"] / 30.0)


def test_both_sides_count_alike_and_short_matches_no_more_than_long_ones() -> None:
    with UnevenEnv(16) as env:
        policy = uneven_policy(env)
        (only,) = PolicyEvaluator(env, [Player("self", policy)], matches=16).play(policy).rows
    # Even games are short and won by the first seat, in which the agent sits just there: it wins every match.
    assert (only["wins"], only["losses"], only["matches"]) == (16, 0, 16)
    assert only["mean_length"] == 21.0
    with UnevenEnv(15) as env:
        (first, second) = PolicyEvaluator(env, [Player("a", policy), Player("b", policy)], matches=15).play(policy).rows
    # In the second batch game 0 is match 15 of all, so match 0 against b: again an even game, again the first seat.
    assert (first["wins"], second["wins"]) == (15, 15)
    assert first["mean_length"] == pytest.approx((8 * 2 + 7 * 40) / 15)


def test_a_team_is_played_by_one_side_and_counts_as_one_match() -> None:
    with UnevenEnv(8, teams=(0, 1, 1)) as env:
        policy = uneven_policy(env)
        single, pair = PolicyEvaluator(env, [Player("self", policy)], matches=8).play(policy).rows
    assert (single["side"], single["matches"], single["wins"]) == ("1v2", 4, 4)
    assert (pair["side"], pair["matches"], pair["wins"]) == ("2v1", 4, 4)
    with UnevenEnv(8, teams=(0, 0)) as env:  # nobody to play against
        (alone,) = PolicyEvaluator(env, [], matches=8).play(policy).rows
    assert (alone["opponent"], alone["matches"], alone["wins"]) == ("", 8, 4)


def test_matches_without_an_end_are_cut_off_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(matches_module, "_MAX_STEPS", 50)
    with UnevenEnv(4, limit=None) as env:
        policy = uneven_policy(env)
        (only,) = PolicyEvaluator(env, [Player("self", policy)], matches=4).play(policy).rows
    assert (only["draws"], only["mean_length"]) == (4, 50.0)
    assert "4 of 4" in caplog.text


def test_a_world_of_one_seat_gives_returns_with_intervals(stubborn: MakePolicy) -> None:
    evaluation = evaluate(stubborn("gym:CartPole-v1", [-9.0, 9.0]), matches=12, seed=3)
    (only,) = evaluation.rows
    assert only["opponent"] == ""
    assert only["mean_return"] == only["mean_length"]  # a point a step
    assert 8.0 <= only["mean_return_low"] < only["mean_return"] < only["mean_return_high"] <= 11.0  # it falls over
    assert "win_rate" not in only
    assert evaluation.mean_win_rate is None
    assert evaluation.score == evaluation.mean_return == only["mean_return"]
    with make_env("gym:CartPole-v1", 12) as env:
        env.reset(seed=3)
        lengths, push = [0] * 12, torch.ones((12, 1), dtype=torch.int64)
        for step in range(1, 12):
            for game in env.step(push).ended.nonzero().flatten().tolist():
                lengths[game] = lengths[game] or step
    assert only["mean_length_high"] == mean_interval(lengths).high


def test_equal_seeds_give_equal_numbers_also_on_used_games(fresh: MakePolicy) -> None:
    config = PolicyConfig(recurrent=RecurrentConfig(size=8), normalize=NormalizationConfig(observations=True))
    policy = fresh("brawl", config)
    policy.observe({"vector": torch.randn(64, 156)})
    before, was_training = policy.state(), policy.training
    settings = {"step_limit": 120}
    with make_env("brawl", 24, config=settings) as env:
        evaluator = PolicyEvaluator(env, find_players(["based", "random"], env), matches=12, seed=1)
        first, again = evaluator.play(policy).rows, evaluator.play(policy).rows
        other = PolicyEvaluator(env, find_players(["based", "random"], env), matches=12, seed=2).play(policy).rows
    assert first == again
    assert first != other
    assert first == evaluate(policy, ["based", "random"], matches=12, seed=1, config=settings).rows
    drawn, likely = (
        evaluate(policy, ["based"], matches=8, config=settings, deterministic=choice).rows for choice in (False, True)
    )
    assert drawn != likely
    assert policy.training == was_training
    assert all(torch.equal(before[name], tensor) for name, tensor in policy.state().items())


def test_a_learner_keeps_its_parameters_and_its_random_numbers(fresh: MakePolicy) -> None:
    policy = fresh("duel")
    places = [parameter.data_ptr() for parameter in policy.parameters()]
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = evaluate(policy, ["random"], matches=50)
    assert torch.equal(torch.get_rng_state(), before)
    assert [parameter.data_ptr() for parameter in policy.parameters()] == places
    with torch.no_grad():
        policy.get_parameter("head.linear.bias").copy_(torch.tensor(PAPER))
    later = evaluate(policy, ["rock"], matches=50)  # sees what was learned in between
    assert first.score < 1.0 == later.score


def test_more_matches_than_games_are_played_in_batches_of_other_seeds(fresh: MakePolicy) -> None:
    shares: list[float] = []
    evaluation = evaluate(
        fresh("duel"), ["rock", "random"], matches=10, max_envs=8, progress=shares.append, deterministic=True
    )
    assert [each["matches"] for each in evaluation.rows] == [10, 10]
    assert shares == sorted(shares)
    assert len(shares) == 3  # one look a batch: its matches take 10 steps
    assert shares[-1] == 1.0
    with make_env("duel", 4) as env:
        evaluator = PolicyEvaluator(env, find_players(["random"], env), matches=4 * 25, seed=0)
        returns = evaluator.play(fresh("duel"))
    # The same four games again and again would repeat their returns, and the mean would be one of quarters.
    assert returns.rows[0]["mean_return"] % 0.25 != 0.0


def test_an_evaluation_as_json_has_no_infinity(stubborn: MakePolicy) -> None:
    evaluation = evaluate(stubborn("duel", PAPER), ["rock"], matches=1)
    assert evaluation.rows[0]["mean_return_low"] == -float("inf")
    document = evaluation.as_json()
    assert document["opponents"][0]["mean_return_low"] is None
    assert document["opponents"][0]["win_rate"] == document["mean_win_rate"] == 1.0
    assert document["world"] == "duel-v1"


def test_every_bot_is_the_default_and_wrong_requests_are_refused(stubborn: MakePolicy) -> None:
    paper = stubborn("duel", PAPER)
    assert [each["opponent"] for each in evaluate(paper, matches=2).rows] == ["rock", "cycle", "random"]
    with pytest.raises(ConfigError, match=r"matches.*got 0"):
        evaluate(paper, matches=0)
    with pytest.raises(ConfigError, match="max_envs"):
        evaluate(paper, max_envs=0)
    with pytest.raises(ConfigError, match="rock, cycle, random"):
        evaluate(paper, [])
    with pytest.raises(ConfigError, match="more than once: rock;"):
        evaluate(paper, ["rock", "cycle", "rock"])
    with pytest.raises(ConfigError, match=r"rps-v1.*rock"):
        evaluate(stubborn("rps", ROCK), [Player("rock", paper)])
    with pytest.raises(StateError, match="it plays rps-v1, not duel-v1"):
        evaluate(Agent(stubborn("rps", ROCK)), world="duel")


@pytest.mark.usefixtures("stroll_world")
def test_each_trial_has_a_row(stubborn: MakePolicy) -> None:
    policy = stubborn("stroll", [0.8, 0.8])  # straight on, at 0.8 m/s in calm weather
    shares: list[float] = []
    evaluation = evaluate(policy, matches=3, config={"step_limit": 20}, deterministic=True, progress=shares.append)
    calm, wind, storm = evaluation.rows
    assert [row["trial"] for row in evaluation.rows] == ["calm", "wind", "storm"]
    assert {row["opponent"] for row in evaluation.rows} == {""}
    assert list(calm)[:3] == ["opponent", "trial", "matches"]
    assert (calm["matches"], calm["stable_walks"], storm["mean_length"]) == (3, 3.0, 10.0)
    # Turned a little at the start, the walker loses a little of its way.
    assert calm["speed_m_s"] == pytest.approx(0.8, rel=0.01)
    assert calm["distance_min_m"] <= calm["distance_m"] <= calm["distance_max_m"] <= 1.6 + 1e-6
    assert wind["speed_m_s"] == pytest.approx(0.3, rel=0.01)
    assert 0.1 < storm["speed_m_s"] < wind["speed_m_s"]
    assert evaluation.score == evaluation.mean("mean_length") == 20.0  # of the first trial, though the storm is shorter
    assert evaluation.judged_by == "mean_length"
    assert evaluation.mean("distance_m") == calm["distance_m"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert [row["trial"] for row in evaluation.as_json()["opponents"]] == ["calm", "wind", "storm"]


@pytest.mark.usefixtures("stroll_world")
def test_trials_by_name(stubborn: MakePolicy) -> None:
    policy = stubborn("stroll", [0.8, 0.8])
    chosen = evaluate(policy, scenarios=["storm", "calm"], matches=2)
    assert [row["trial"] for row in chosen.rows] == ["storm", "calm"]
    assert chosen.score == 10.0
    (plain,) = evaluate(policy, scenarios=[], matches=2).rows
    assert "trial" not in plain
    with pytest.raises(UnknownNameError, match="storm"):
        evaluate(policy, scenarios=["strom"], matches=2)
    with pytest.raises(ConfigError, match=r"duel-v1.*calm"):
        evaluate(stubborn("duel", ROCK), scenarios=["calm"], matches=2)
    with pytest.raises(ConfigError, match=r"stroll.*self"):
        evaluate(policy, [Player("self", policy)], matches=2)


@pytest.mark.usefixtures("stroll_world")
def test_the_numbers_of_rows_are_known_before_any_match(stubborn: MakePolicy) -> None:
    for world, parameters, opponents in (
        ("stroll", [0.8, 0.8], None),
        ("duel", ROCK, None),
        ("brawl", NO_KEYS, ["based"]),
    ):
        row = evaluate(stubborn(world, parameters), opponents, matches=2, config=None).rows[0]
        with make_env(world) as env:
            names = metric_names(env.spec, metrics_of(world))
        assert names == tuple(name for name in row if name not in ("opponent", "trial"))
