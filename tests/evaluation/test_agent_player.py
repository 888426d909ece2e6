"""Agents in seats: the same actions as `Agent.predict`, a memory for every seat, games that are left early."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from ludus.core.errors import ConfigError
from ludus.envs.registry import make_env
from ludus.evaluation.exhibition import Exhibition
from ludus.evaluation.players import AgentPlayer, BotPlayer, BotRoster, one_seat
from ludus.networks.recurrent import RecurrentConfig
from ludus.networks.strategy import StrategyConfig
from ludus.policies.agent import Agent
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

MakePolicy = Callable[..., Policy]
REMEMBERING = PolicyConfig(recurrent=RecurrentConfig(size=8), strategy=StrategyConfig.preset("tiny", "streaming"))
SHORT = {"step_limit": 30}


def test_an_agent_in_a_seat_does_what_predict_says_match_after_match(fresh: MakePolicy) -> None:
    policy = fresh("brawl", REMEMBERING)
    with make_env("brawl", seed=4, config=SHORT) as env:
        match = Exhibition(
            env, (BotPlayer(env, 0, "random"), AgentPlayer(env, one_seat(env, 1), policy, deterministic=True))
        )
        agent = Agent(policy)
        seen = {name: tensor.clone() for name, tensor in env.reset(seed=4).items()}
        for _ in range(2):
            state, actions, replayed = None, [], None
            for _ in range(30):
                action, state = agent.predict(seen["vector"][0, 1].numpy(), state, deterministic=True)
                actions.append(action)
                match.step()
                seen = {name: tensor.clone() for name, tensor in match._observations.items()}
            replayed = match.replay()
            assert replayed is not None
            assert np.array_equal(replayed.actions[:, 1].numpy(), np.stack(actions))
            match.restart()


def test_leaving_games_changes_nothing_in_the_others(fresh: MakePolicy) -> None:
    policy = fresh("brawl", REMEMBERING)
    played = []
    for leaves in (False, True):
        with make_env("brawl", 6, seed=1) as env:
            observations = env.reset(seed=1)
            seats = torch.tensor([[True, False], [False, True]] * 3)
            agent = AgentPlayer(env, seats, policy, deterministic=True)
            bots = BotRoster(env, ["based"], torch.where(seats, -1, 0).int())
            actions = torch.zeros((6, 2, 10), dtype=torch.int8)
            kept = torch.tensor([True, False, True, True, False, True])
            trace = []
            for step in range(40):
                if leaves and step == 12:
                    agent.keep(kept)
                    bots.keep(kept)
                    actions[~kept] = 0
                for actor in (agent, bots):
                    actor.act(observations, actions, first=step == 0)
                observations = env.step(actions).observations
                trace.append(actions[kept].clone())
            assert bool(actions[~kept].any()) != leaves
            played.append(torch.stack(trace))
    assert torch.equal(played[0], played[1])


def test_seeds_decide_what_is_drawn(fresh: MakePolicy) -> None:
    policy = fresh("brawl")
    with make_env("brawl", 8) as env:
        observations, drawn = env.reset(), []
        for seed in (1, 1, 2):
            actions = torch.zeros((8, 2, 10), dtype=torch.int8)
            AgentPlayer(env, one_seat(env, 0), policy, seed=seed).act(observations, actions, first=True)
            assert not actions[:, 1].any()
            drawn.append(actions)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_noise_is_held_where_the_head_holds_it(fresh: MakePolicy) -> None:
    config = PolicyConfig(state_dependent_exploration=True)
    with make_env("point", 4) as env:
        observations = {name: tensor.clone() for name, tensor in env.reset().items()}
        for settings, same in ((config, True), (PolicyConfig(), False)):
            agent = AgentPlayer(env, one_seat(env, 0), fresh("point", settings))
            first, second, third = (torch.zeros((4, 1, 2)) for _ in range(3))
            agent.act(observations, first, first=True)
            agent.act(observations, second, first=False)
            agent.act(observations, third, first=True)
            assert torch.equal(first, second) == same
            assert not torch.equal(first, third)


def test_an_agent_must_be_where_the_games_are() -> None:
    with make_env("duel") as env:
        policy = Policy(env.spec, PolicyConfig(), "meta")
        with pytest.raises(ConfigError, match="the agent is on meta, the games are on cpu"):
            AgentPlayer(env, one_seat(env, 0), policy)
