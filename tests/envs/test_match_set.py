"""Episodes that are sets of matches: what is won, what stays over a set, and what a snapshot holds."""

from typing import Any

import pytest
import torch
from tests.own_networks import StepCounter
from torch import Tensor

import ludus
from ludus import make_env
from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.errors import ConfigError, SnapshotError
from ludus.envs import bots
from ludus.envs.base import BatchedEnv
from ludus.envs.bots import BotObservation
from ludus.envs.match_set import MatchSetEnv
from ludus.envs.registry import settings_model
from ludus.envs.settings import MatchSettings
from ludus.envs.world import registered_envs
from ludus.evaluation.evaluate import evaluate
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.policies import register_network
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.collector import Collector

ROUNDS, MATCHES = 4, 3
SET = ROUNDS * MATCHES  # steps
ROCK, PAPER, SCISSORS = range(3)


def duel(games: int = 1, rounds: int = 1, matches: int = MATCHES, **settings: Any) -> MatchSetEnv:
    env = make_env("duel", games, config={"rounds": rounds, "matches_per_episode": matches}, **settings)
    assert isinstance(env, MatchSetEnv)
    return env


def play(env: BatchedEnv, *throws: tuple[int, int]) -> list[dict[str, Tensor]]:
    """Returns the events of every step, copied, with `ended`."""
    seen = []
    for pair in throws:
        result = env.step(torch.tensor([pair]).repeat(env.num_envs, 1))
        events = {name: tensor.clone() for name, tensor in result.events.items()}
        seen.append(events | {"ended": result.ended.clone()})
    return seen


@pytest.mark.parametrize(
    ("throws", "outcome"),
    [
        ([(PAPER, ROCK), (ROCK, PAPER), (PAPER, ROCK)], "wins"),
        ([(PAPER, ROCK), (ROCK, PAPER), (ROCK, ROCK)], "draws"),
        ([(PAPER, ROCK), (ROCK, PAPER), (ROCK, PAPER)], "losses"),
    ],
)
def test_who_wins_more_matches_wins_the_set(throws: list[tuple[int, int]], outcome: str) -> None:
    env = duel()
    env.reset(seed=1)
    for _ in range(2):  # the next set begins at 0 to 0
        *before, last = play(env, *throws)
        for events in before:
            assert not events["ended"].item()
            assert all(float(events[name].sum()) == 0.0 for name in ("wins", "losses", "draws"))
        assert last["ended"].item()
        assert [name for name in ("wins", "losses", "draws") if float(last[name][0, 0])] == [outcome]
        won = [[float(events[f"wins_match_{number}"][0, 0]) for number in (1, 2, 3)] for events in (*before, last)]
        assert won == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, float(outcome == "wins")]]
        assert [float(events["reward"][0, 0]) for events in before] == [1.0, -1.0]  # of the match, as ever


def test_matches_are_those_of_the_games_without_sets() -> None:
    plain, env = make_env("duel", 5, seed=3, config={"rounds": 2}), duel(5, 2, seed=3)
    first, second = plain.reset(), env.reset()
    draw = torch.Generator().manual_seed(0)
    for step in range(24):
        assert torch.equal(first["vector"], second["vector"])
        actions = torch.randint(0, 3, (5, 2), generator=draw)
        one, other = plain.step(actions), env.step(actions)
        assert other.ended.tolist() == [step % 6 == 5] * 5
        assert torch.equal(one.events["reward"], other.events["reward"])
        first, second = one.observations, other.observations


def test_the_length_and_the_games_of_the_world() -> None:
    env = duel(2, 5)
    assert env.spec.step_limit == 15
    assert env.spec.id == "duel-v1"
    assert env.unwrapped is env.games
    assert env.unwrapped.unwrapped is env.unwrapped
    assert not isinstance(make_env("duel", config={"matches_per_episode": 1}), MatchSetEnv)


@pytest.mark.parametrize("matches", [0, 21, 1.5, True])
def test_sets_that_cannot_be(matches: Any) -> None:
    with pytest.raises(ConfigError, match="matches_per_episode"):
        make_env("duel", config={"matches_per_episode": matches})
    with pytest.raises(ConfigError, match="matches_per_episode"):
        make_env("point", config={"matches_per_episode": 2})


def test_worlds_with_this_setting_have_winners() -> None:
    found = [world for world in registered_envs() if issubclass(settings_model(world) or int, MatchSettings)]
    assert {"brawl-v1", "duel-v1", "rocket-v2", "tug-v1"} <= set(found)
    for world in found:
        with make_env(world, config={"matches_per_episode": 2}) as env:
            assert isinstance(env, MatchSetEnv)


def test_a_snapshot_holds_the_place_within_the_set() -> None:
    env, other = duel(2), duel(2)
    env.reset(seed=4)
    play(env, (PAPER, ROCK), (PAPER, ROCK))
    other.restore(env.snapshot())
    (events,) = play(other, (ROCK, PAPER))
    assert events["ended"].all()
    assert events["wins"][:, 0].tolist() == [1.0, 1.0]
    broken = env.snapshot()
    broken["match_set/match"][0] = MATCHES
    with pytest.raises(SnapshotError, match="match"):
        other.restore(broken)


def test_games_that_restart_begin_a_new_set() -> None:
    env = duel(2)
    env.reset(seed=1)
    play(env, (PAPER, ROCK))
    env.reset(torch.tensor([True, False]))
    ended = [events["ended"].tolist() for events in play(env, *[(ROCK, ROCK)] * 3)]
    assert ended == [[False, False], [False, True], [True, False]]


def test_bots_of_brawl_keep_their_habits_over_a_set_also_after_a_restart() -> None:
    """A habit is drawn by the number of the match over the length of a set, so sets must not get out of step."""
    settings = {"step_limit": 30, "matches_per_episode": 2, "weapon_spawns": False}
    env = make_env("brawl", 64, seed=2, config=settings)
    env.reset()
    env.step(torch.zeros((64, 2, 10), dtype=torch.int8))
    env.reset(torch.ones(64, dtype=torch.bool))
    episodes = env.unwrapped.snapshot()["matches"][:, 0]
    env.reset(torch.ones(64, dtype=torch.bool))
    assert ((env.unwrapped.snapshot()["matches"][:, 0] - episodes) % 2 == 0).all()


def counting_collector(weights: dict[str, float], steps: int = 2 * SET) -> tuple[Collector, LeagueOpponents]:
    env = duel(6, ROUNDS)
    policy = Policy(env.spec, PolicyConfig(module=register_network(StepCounter), module_kwargs={"period": ROUNDS}))
    league = LeagueOpponents(env, policy, weights, LeagueConfig(), seed=7)
    config = PpoConfig.model_validate({"n_steps": steps, "sequence_length": steps, "batch_size": steps})
    collector = Collector(env, policy, config, learner=league.learner, opponents=league)
    league.attach(collector.rows)
    return collector, league


def test_the_learner_remembers_over_a_set_and_forgets_at_its_start() -> None:
    collector, _ = counting_collector({"rock": 1.0})
    for _ in range(2):
        collector.collect(torch.Generator().manual_seed(0))
        buffer, steps = collector.buffer, torch.arange(2 * SET)
        # Rock in the first match of a set, paper in the second, scissors in the third.
        assert torch.equal(buffer.actions, (steps % SET // ROUNDS).unsqueeze(1).expand(-1, 6))
        assert torch.equal(buffer.dones, (steps % SET == SET - 1).unsqueeze(1).expand(-1, 6))


def test_a_past_self_remembers_over_the_set_as_the_learner_does() -> None:
    collector, _ = counting_collector({"self": 1.0})
    collector.collect(torch.Generator().manual_seed(0))
    # Both count the same steps, so all throws are ties: a past self that forgot in every match would lose to paper.
    assert torch.equal(collector.buffer.rewards, torch.zeros(2 * SET, 6))


def test_opponent_and_side_stay_for_a_set() -> None:
    env = duel(12)
    observations = env.reset()
    league = LeagueOpponents(
        env, Policy(env.spec, PolicyConfig()), {"rock": 1, "cycle": 1, "random": 1}, LeagueConfig(), 7
    )
    actions = torch.zeros(12, 2, dtype=torch.int64)
    drawn = []
    for _ in range(3 * MATCHES):
        drawn.append((league.opponents.tolist(), league.learner[:, 0].tolist()))
        league.act(observations, actions)
        league.after_step(env.step(actions))
    sets = [drawn[first : first + MATCHES] for first in range(0, 3 * MATCHES, MATCHES)]
    assert all(each == group[0] for group in sets for each in group)
    assert sets[0][0] != sets[1][0] != sets[2][0]


def test_a_bot_in_python_draws_its_parameters_once_per_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bots, "_REGISTERED", {})
    seen: list[list[float]] = []

    def watcher(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        seen.append(observation.parameter().tolist())
        return torch.zeros_like(observation.frame), state

    ludus.register_bot("duel", "watcher")(watcher)
    env = duel(3, 2, seed=4)
    observations = env.reset()
    league = LeagueOpponents(env, Policy(env.spec, PolicyConfig()), {"watcher": 1.0}, LeagueConfig(), seed=7)
    actions = torch.zeros(3, 2, dtype=torch.int64)
    for _ in range(2 * 2 * MATCHES):
        league.act(observations, actions)
        league.after_step(env.step(actions))
    first, second = seen[: 2 * MATCHES], seen[2 * MATCHES :]
    assert first == [first[0]] * len(first)
    assert second == [second[0]] * len(second) != first


def test_evaluations_count_sets_and_the_matches_of_each_number() -> None:
    env = make_env("duel", config={"rounds": ROUNDS})
    config = PolicyConfig(module=register_network(StepCounter), module_kwargs={"period": ROUNDS})
    counter = Policy(env.spec, config)
    settings = {"rounds": ROUNDS, "matches_per_episode": MATCHES}
    (row,) = evaluate(counter, ["rock"], matches=20, config=settings).rows
    # Rock ties, paper wins, scissors lose: a draw.
    assert (row["matches"], row["wins"], row["draws"], row["losses"]) == (20, 0, 20, 0)
    assert [row[f"win_rate_match_{number}"] for number in (1, 2, 3)] == [0.0, 1.0, 0.0]
    assert row["mean_length"] == SET
    (plain,) = evaluate(counter, ["rock"], matches=20, config={"rounds": ROUNDS}).rows
    assert not any("_match_" in name for name in plain)
