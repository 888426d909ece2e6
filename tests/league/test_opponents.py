"""League opponents: teams and opponents are drawn per game and episode, rows follow, the state is enough."""

from collections.abc import Mapping

import pytest
import torch

from ludus import make_env
from ludus.core.errors import ConfigError, StateError, UnknownNameError
from ludus.envs.base import BatchedEnv
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.learner_batch import LearnerBatch

GAMES = 2000


def make_opponents(env: BatchedEnv, weights: Mapping[str, float], seed: int = 0) -> LeagueOpponents:
    """Opponents of a small learner."""
    return LeagueOpponents(env, Policy(env.spec, PolicyConfig()), weights, LeagueConfig(), seed)


def _seated(env: BatchedEnv) -> tuple[LeagueOpponents, LearnerBatch]:
    opponents = make_opponents(env, {"rock": 1.0, "cycle": 3.0}, seed=3)
    rows = LearnerBatch(env, opponents.learner)
    opponents.attach(rows)
    return opponents, rows


def test_each_game_has_one_learner_and_bots_by_their_weights() -> None:
    env = make_env("duel", GAMES)
    opponents, rows = _seated(env)
    assert opponents.names == ("rock", "cycle")
    assert torch.equal(opponents.learner.sum(1), torch.ones(GAMES, dtype=torch.int64))
    assert torch.equal(rows.index // 2, torch.arange(GAMES))
    # Three standard deviations of a share p among 2,000 are at most 3 * sqrt(p (1 - p) / 2000) = 0.034.
    assert opponents.learner[:, 0].float().mean().item() == pytest.approx(0.5, abs=0.034)
    assert (opponents.opponents == 1).float().mean().item() == pytest.approx(0.75, abs=0.03)


def test_games_that_end_are_seated_anew_and_others_stay() -> None:
    env = make_env("duel", GAMES, config={"rounds": 2})
    observations = env.reset()
    opponents, rows = _seated(env)
    first, bots = rows.index.clone(), opponents.opponents.clone()
    actions = torch.zeros(GAMES, 2, dtype=torch.int64)
    for round_number in range(2):
        opponents.act(observations, actions)
        result = env.step(actions)
        opponents.after_step(result)
        assert torch.equal(first, rows.index) == (round_number == 0)
    assert (first != rows.index).float().mean().item() == pytest.approx(0.5, abs=0.034)
    assert (bots != opponents.opponents).float().mean().item() == pytest.approx(2 * 0.25 * 0.75, abs=0.034)
    assert torch.equal(rows.index, opponents.learner.flatten().nonzero().squeeze(1))


def test_bots_play_all_seats_but_the_learners() -> None:
    env = make_env("duel", 64)
    observations = env.reset()
    opponents = make_opponents(env, {"cycle": 1.0})
    actions = torch.full((64, 2), 7)
    opponents.act(observations, actions)  # cycle begins with rock
    assert torch.equal(actions == 7, opponents.learner)
    assert torch.equal(actions == 0, ~opponents.learner)


def test_a_part_of_a_larger_batch_is_seated_like_the_whole() -> None:
    whole = make_opponents(make_env("duel", 10), {"rock": 1.0, "random": 1.0}, seed=5)
    part = make_opponents(make_env("duel", 4, first_game=3), {"rock": 1.0, "random": 1.0}, seed=5)
    assert torch.equal(whole.learner[3:7], part.learner)
    assert torch.equal(whole.opponents[3:7], part.opponents)


def test_a_new_mix_holds_for_episodes_that_start_later() -> None:
    env = make_env("duel", 64, config={"rounds": 1})
    observations = env.reset()
    opponents = make_opponents(env, {"rock": 1.0, "cycle": 0.0})
    opponents.set_mix({"cycle": 5.0})
    assert torch.equal(opponents.opponents, torch.zeros(64, dtype=torch.int64))
    actions = torch.zeros(64, 2, dtype=torch.int64)
    opponents.act(observations, actions)
    opponents.after_step(env.step(actions))
    assert torch.equal(opponents.opponents, torch.ones(64, dtype=torch.int64))


def test_the_state_restores_seats_opponents_and_the_mix() -> None:
    env = make_env("duel", 50)
    opponents, rows = _seated(env)
    opponents.episodes.add_(torch.arange(50))
    opponents.restart()
    opponents.set_mix({"rock": 1.0})
    other, other_rows = _seated(env)
    assert not torch.equal(rows.index, other_rows.index)
    other.load_state(opponents.state())
    assert torch.equal(rows.index, other_rows.index)
    assert torch.equal(opponents.opponents, other.opponents)
    other.restart()
    assert torch.equal(other.opponents, torch.zeros(50, dtype=torch.int64))
    with pytest.raises(StateError, match="50 games"):
        other.load_state(opponents.state() | {"episodes": torch.zeros(3, dtype=torch.int64)})


def test_wrong_names_weights_and_worlds_are_refused() -> None:
    with pytest.raises(ConfigError, match="one seat"):
        make_opponents(make_env("rps", 2), {"rock": 1.0})
    with pytest.raises(UnknownNameError, match="did you mean 'rock'"):
        make_opponents(make_env("duel", 2), {"rok": 1.0})
    opponents = make_opponents(make_env("duel", 2), {"rock": 1.0, "cycle": 1.0})
    with pytest.raises(UnknownNameError, match="did you mean 'cycle'"):
        opponents.set_mix({"cicle": 1.0})
    for weight in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="from 0 on"):
            opponents.set_mix({"rock": weight})
    with pytest.raises(ConfigError, match="at least one"):
        opponents.set_mix({"rock": 0.0})
