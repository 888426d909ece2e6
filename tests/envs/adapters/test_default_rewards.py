"""Users of Gymnasium, PettingZoo and SB3 optimise the reward that `ludus train` optimises, in every world."""

from typing import Any

import numpy as np
import pytest
import torch

from ludus.envs.adapters.gymnasium_env import LudusVectorEnv
from ludus.envs.adapters.pettingzoo_env import LudusParallelEnv
from ludus.envs.adapters.sb3 import LudusVecEnv
from ludus.envs.adapters.seating import SeatRewards
from ludus.envs.base import EnvSpec, StepResult
from ludus.envs.registry import make_env
from ludus.envs.world import registered_envs
from ludus.rewards.step_info import StepInfo
from ludus.training.components import make_rewards
from ludus.training.presets import load_run_config

pytestmark = pytest.mark.fault


def trained_rewards(world: str, spec: EnvSpec) -> Any:
    """The rewards of `ludus train WORLD`, as its preset says."""
    return make_rewards(spec, load_run_config(world))


@pytest.mark.parametrize("world", [*registered_envs(), "gym:CartPole-v1"])
def test_the_default_reward_is_that_of_ludus_train(world: str) -> None:
    with make_env(world, 2) as env:
        trained, adapted = trained_rewards(world, env.spec), SeatRewards(env.spec, None)
        assert adapted.weights == trained.weights
        assert not trained.shares
        env.reset(seed=3)
        result = random_step(env)
        info = StepInfo(result.events, result.state_metrics, 1.0 / env.spec.rate_hz)
        expected = trained.contributions(info).sum(0)  # rounded term by term, so that its account adds up
        assert torch.allclose(adapted.total(result), expected, rtol=0.0, atol=len(trained.names) * 2.0**-17)


def random_step(env: Any) -> StepResult:
    env.spec.action_space.seed(0)
    played = [[env.spec.action_space.sample() for _ in range(env.spec.seats)] for _ in range(env.num_envs)]
    step: StepResult = env.step(torch.as_tensor(np.array(played)))
    return step


@pytest.mark.parametrize("world", ["brawl", "rocket", "mimic"])
def test_every_adapter_gives_the_reward_of_the_learners_seat(world: str) -> None:
    seats = make_env(world).spec.seats
    opponent = {"brawl": "aggressive", "rocket": "chaser"}.get(world)
    vector = LudusVectorEnv(world, 3, opponent=opponent, seat=0)
    stable = LudusVecEnv(world, 3, opponent=opponent, seat=0, actions="native")
    with make_env(world, 3) as env:
        bots = env.bots([opponent]) if opponent else None
        rewards = SeatRewards(env.spec, None)
        env.reset(seed=5)
        vector.reset(seed=5)
        stable.seed(5)
        stable.reset()
        vector.action_space.seed(1)
        actions = torch.zeros((3, seats, *(env.spec.action_space.shape or ())), dtype=torch.int64)
        total = np.zeros(3, np.float32)
        for _ in range(20):
            chosen = vector.action_space.sample()
            actions = actions.to(torch.as_tensor(chosen).dtype)
            if bots is not None:
                bots.act(torch.zeros(3, seats, dtype=torch.int32), actions)
            actions[:, 0] = torch.as_tensor(chosen)
            expected = rewards.total(env.step(actions))[:, 0].numpy()
            assert np.array_equal(vector.step(chosen)[1], expected)
            assert np.array_equal(stable.step(chosen)[1], expected)
            total += expected
    assert (total != 0.0).any()


def test_pettingzoo_gives_every_seat_its_reward() -> None:
    parallel = LudusParallelEnv("brawl")
    with make_env("brawl") as env:
        rewards = SeatRewards(env.spec, None)
        env.reset(seed=2)
        parallel.reset(seed=2)
        keys = torch.zeros(1, 2, 10, dtype=torch.int8)
        keys[0, 0, 3] = 1  # walks, so that it comes nearer
        for _ in range(10):
            expected = rewards.total(env.step(keys))[0].tolist()
            given = parallel.step({f"seat_{seat}": keys[0, seat].numpy() for seat in range(2)})[1]
            assert list(given.values()) == expected
        assert expected[0] != 0.0


def test_terms_and_events_can_be_weighed_alike() -> None:
    with make_env("brawl", 4) as env:
        env.reset(seed=1)
        result = random_step(env)
        mixed = SeatRewards(env.spec, {"many_keys": 2.0, "attacks": 0.5})
        assert mixed.weights == {"many_keys": 2.0, "attacks": 0.5}
        by_hand = 2.0 * SeatRewards(env.spec, {"many_keys": 1.0}).total(result) + 0.5 * result.events["attacks"]
        assert torch.equal(mixed.total(result), by_hand)
