"""Opponents: seats and bots are drawn per game and episode, the learner's rows follow, the state is enough."""

import pytest
import torch

from ludus import make_env
from ludus.algorithms.ppo.seats import Rows
from ludus.core.errors import ConfigError, StateError, UnknownNameError
from ludus.envs.base import BatchedEnv
from ludus.training.opponents import BotOpponents

GAMES = 2000


def _seated(env: BatchedEnv) -> tuple[BotOpponents, Rows]:
    opponents = BotOpponents(env, {"rock": 1.0, "cycle": 3.0}, seed=3)
    rows = Rows(env, opponents.learner)
    opponents.attach(rows)
    return opponents, rows


def test_each_game_has_one_learner_and_bots_by_their_weights() -> None:
    env = make_env("duel", GAMES)
    opponents, rows = _seated(env)
    assert torch.equal(opponents.learner.sum(1), torch.ones(GAMES, dtype=torch.int64))
    assert torch.equal(rows.index // 2, torch.arange(GAMES))
    # Three standard deviations of a share p among 2,000 are at most 3 * sqrt(p (1 - p) / 2000) = 0.034.
    assert opponents.learner[:, 0].float().mean().item() == pytest.approx(0.5, abs=0.034)
    assert (opponents.bots == 1).float().mean().item() == pytest.approx(0.75, abs=0.03)


def test_games_that_end_are_seated_anew_and_others_stay() -> None:
    env = make_env("duel", GAMES, config={"rounds": 2})
    observations = env.reset()
    opponents, rows = _seated(env)
    first, bots = rows.index.clone(), opponents.bots.clone()
    actions = torch.zeros(GAMES, 2, dtype=torch.int64)
    for round_number in range(2):
        opponents.act(observations, actions)
        result = env.step(actions)
        opponents.after_step(result)
        assert torch.equal(first, rows.index) == (round_number == 0)
    assert (first != rows.index).float().mean().item() == pytest.approx(0.5, abs=0.034)
    assert (bots != opponents.bots).float().mean().item() == pytest.approx(2 * 0.25 * 0.75, abs=0.034)
    assert torch.equal(rows.index, opponents.learner.flatten().nonzero().squeeze(1))


def test_bots_play_all_seats_but_the_learners() -> None:
    env = make_env("duel", 64)
    observations = env.reset()
    opponents = BotOpponents(env, {"cycle": 1.0}, seed=0)
    actions = torch.full((64, 2), 7)
    opponents.act(observations, actions)  # cycle begins with rock
    assert torch.equal(actions == 7, opponents.learner)
    assert torch.equal(actions == 0, ~opponents.learner)


def test_a_part_of_a_larger_batch_is_seated_like_the_whole() -> None:
    whole = BotOpponents(make_env("duel", 10), {"rock": 1.0, "random": 1.0}, seed=5)
    part = BotOpponents(make_env("duel", 4, first_game=3), {"rock": 1.0, "random": 1.0}, seed=5)
    assert torch.equal(whole.learner[3:7], part.learner)
    assert torch.equal(whole.bots[3:7], part.bots)


def test_the_state_restores_seats_and_bots() -> None:
    env = make_env("duel", 50)
    opponents, rows = _seated(env)
    opponents.episodes += torch.arange(50)
    opponents.restart()
    other, other_rows = _seated(env)
    assert not torch.equal(rows.index, other_rows.index)
    other.load_state(opponents.state())
    assert torch.equal(rows.index, other_rows.index)
    assert torch.equal(opponents.bots, other.bots)
    with pytest.raises(StateError, match="50 games"):
        other.load_state({"episodes": torch.zeros(3, dtype=torch.int64)})


def test_wrong_names_and_worlds_are_refused() -> None:
    with pytest.raises(ConfigError, match="one seat"):
        BotOpponents(make_env("rps", 2), {"rock": 1.0}, seed=0)
    with pytest.raises(UnknownNameError, match="did you mean 'rock'"):
        BotOpponents(make_env("duel", 2), {"rok": 1.0}, seed=0)
