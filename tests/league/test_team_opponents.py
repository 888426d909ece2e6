"""Opponents in games of teams: mirrored games, both sides of unequal teams, every seat with its own memory."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.envs.base import BatchedEnv
from ludus.league.config import LeagueConfig
from ludus.league.opponents import START_NAME, LeagueOpponents
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy, reset_recurrent_state
from ludus.rollout.learner_batch import LearnerBatch

NOBODY = 7


def _games(games: int, blue: int, orange: int, rounds: int = 2) -> BatchedEnv:
    return make_env("tug", games, config={"blue": blue, "orange": orange, "rounds": rounds})


def _seat(env: BatchedEnv, weights: dict[str, float], **policy: Any) -> tuple[LeagueOpponents, LearnerBatch, Policy]:
    learner = Policy(env.spec, PolicyConfig.model_validate(policy))
    opponents = LeagueOpponents(env, learner, weights, LeagueConfig(keep=3, recent_share=1.0), seed=1)
    rows = LearnerBatch(env, opponents.learner)
    opponents.attach(rows)
    return opponents, rows, learner


def _step(env: BatchedEnv, opponents: LeagueOpponents, observations: dict[str, Tensor]) -> tuple[Tensor, Any]:
    """Lets the opponents act, and plays on with answers of the learner that do not matter; returns both."""
    actions = torch.full((env.num_envs, env.spec.seats), NOBODY)
    opponents.act(observations, actions)
    result = env.step(torch.where(actions == NOBODY, 0, actions))
    opponents.after_step(result)
    return actions, result


def test_mirrored_games_have_no_opponent_and_rows_stay_as_many() -> None:
    env = _games(8, 2, 2, rounds=1)
    opponents, rows, _ = _seat(env, {"mirror": 3, "strong": 1, "self": 1})
    assert opponents.mirrored == 5  # 4.8
    observations = env.reset()
    moved = set()
    for _ in range(6):
        assert opponents.opponents[:5].tolist() == [-1] * 5
        assert opponents.opponents[5:].min() >= 0
        assert rows.index[:20].tolist() == list(range(20))
        assert rows.count == 20 + 3 * 2
        learner = opponents.learner.clone()
        assert torch.equal(rows.index, learner.flatten().nonzero().squeeze(1))
        moved.add(tuple(rows.index[20:].tolist()))
        actions, result = _step(env, opponents, observations)
        assert (actions[:5] == NOBODY).all()
        assert torch.equal(actions == NOBODY, learner)
        observations = result.observations
    assert len(moved) > 1


def test_a_mirror_alone_needs_nobody_else() -> None:
    env = _games(3, 1, 2)
    opponents, rows, _ = _seat(env, {"mirror": 1, "self": 0, "idle": 0})
    assert rows.count == 9
    assert opponents.pool is not None
    assert opponents.pool.is_empty, "no game needs a first snapshot"
    observations = env.reset()
    for _ in range(3):
        actions, result = _step(env, opponents, observations)
        assert (actions == NOBODY).all()
        observations = result.observations
    assert opponents.playing() == frozenset()
    opponents.load_state(opponents.state())
    opponents.set_mix({"mirror": 1})
    assert (opponents.opponents == -1).all()


def test_the_state_restores_mirrored_games_too() -> None:
    env = _games(6, 1, 2, rounds=1)
    opponents, rows, _ = _seat(env, {"mirror": 1, "random": 1, "self": 1})
    observations = env.reset()
    for _ in range(3):
        observations = _step(env, opponents, observations)[1].observations
    other, other_rows, _ = _seat(env, {"mirror": 1, "random": 1, "self": 1})
    other.load_state(opponents.state())
    assert torch.equal(rows.index, other_rows.index)
    assert torch.equal(opponents.opponents, other.opponents)


def test_in_one_against_two_bots_and_past_selves_play_either_side() -> None:
    env = _games(40, 1, 2, rounds=1)
    opponents, _, policy = _seat(env, {"strong": 1, "self": 1})
    opponents.add_snapshot("past", 1, policy.state())
    assert opponents.sides == ("1v2", "2v1") * 20
    observations = env.reset()
    sides: dict[bool, set[str]] = {True: set(), False: set()}
    for _ in range(4):
        is_bot = opponents.opponents == 0
        playing = ~opponents.learner
        actions, result = _step(env, opponents, observations)
        assert torch.equal(actions != NOBODY, playing)
        strong = playing & is_bot.unsqueeze(1)
        assert result.events["pulls"][strong].all(), "the bot in all seats of its team"
        for game, side in enumerate(opponents.sides):
            assert int(playing[game].sum()) == int(side[-1])
            sides[bool(is_bot[game])].add(side)
        observations = result.observations
    assert sides == {True: {"1v2", "2v1"}, False: {"1v2", "2v1"}}


@pytest.mark.parametrize("mirror", [0.0, 1.0])
def test_two_past_selves_of_a_team_have_a_memory_each(mirror: float) -> None:
    """The stacked snapshot does in every seat what the policy itself does with a memory for each seat."""
    env = _games(12, 2, 2, rounds=5)
    opponents, _, policy = _seat(env, {"self": 1.0, "mirror": mirror}, recurrent={"size": 6})
    state = policy.state()
    generator = torch.Generator().manual_seed(5)
    state = {name: torch.randn(tensor.shape, generator=generator) for name, tensor in state.items()}
    state["parameter.head.linear.weight"] *= 1e4  # sure of itself, so that noise changes nothing
    policy.load_state(state)
    opponents.add_snapshot("sure", 9, state)
    opponents.remove(START_NAME)
    observations = env.reset()
    seats = env.num_envs * env.spec.seats
    memory, episode_starts = policy.initial(seats), torch.ones(seats, dtype=torch.bool)
    compared, differing = 0, 0
    for _ in range(12):
        flat = {name: tensor.flatten(0, 1).clone() for name, tensor in observations.items()}
        step = policy.step(flat, reset_recurrent_state(memory, policy.initial(seats), episode_starts), episode_starts)
        playing, expected = ~opponents.learner, step.actions.view(env.num_envs, -1)
        memory = {name: tensor.clone() for name, tensor in step.memory.items()}
        actions, result = _step(env, opponents, observations)
        assert torch.equal(actions[playing], expected[playing])
        compared += int(playing.sum())
        cells = next(iter(memory.values())).view(env.num_envs, env.spec.seats, -1)
        differing += int((cells[:, 0] != cells[:, 1]).any())
        episode_starts = result.ended.repeat_interleave(env.spec.seats)
        observations = result.observations
    assert compared == (12 - opponents.mirrored) * 2 * 12
    assert differing > 8, "team mates remember different things"
