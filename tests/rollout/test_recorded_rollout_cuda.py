"""Whole rollouts as CUDA graphs: the same games as without, past selves and sets included, and times by part."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.algorithms.ppo.learner import PpoLearner
from ludus.rewards.weights import RewardConfig, WeightPath
from ludus.training.components import Components
from ludus.training.config import TrainConfig

pytestmark = pytest.mark.cuda

KEPT = ("actions", "rewards", "dones", "values", "episode_starts", "advantages", "last_values")
POLICIES: dict[str, dict[str, Any]] = {
    "mlp": {},
    "lstm": {"recurrent": {"size": 16}},
    "strategy": {
        "recurrent": {"size": 16},
        "strategy": {"layers": 1, "heads": 2, "width": 16, "feedforward": 32, "window": 9, "predict_actions": 1.0},
    },
}
EVENTS = {"block": ["self", "opponent"], "events": ["self.state_stun"], "predict_before_events": True}
IN_BRAWL = POLICIES | {"events": {"strategy": POLICIES["strategy"]["strategy"] | EVENTS}}


def make_config(world: str, policy: dict[str, Any], *, cuda_graphs: bool, matches: int = 1) -> TrainConfig:
    settings = {"matches_per_episode": matches, "step_limit": 30} if matches > 1 else {}
    bots = {"brawl": "based", "rocket": "chaser", "roshambo": "cycle"}
    return TrainConfig.model_validate(
        {
            "world": {"name": world, "num_envs": 64, "device": "cuda", "settings": settings},
            "policy": {"net_arch": {"pi": [16], "vf": [16]}, **policy},
            "ppo": {"n_steps": 16, "batch_size": 256, "n_epochs": 1, "cuda_graphs": cuda_graphs, "native": False},
            "opponents": {"self": 1, bots[world]: 1},
            "league": {"keep": 4},
        }
    )


def rollouts(config: TrainConfig, count: int) -> list[dict[str, Tensor]]:
    """Return what several rollouts held; a snapshot joins after the third."""
    seen = []
    with Components(config) as components:
        learner, opponents = components.learner, components.opponents
        assert isinstance(learner, PpoLearner)
        assert opponents is not None
        collector = learner.collector
        generator = torch.Generator("cuda").manual_seed(5)
        for number in range(count):
            collector.collect(generator)
            buffer = collector.buffer
            kept = {name: getattr(buffer, name) for name in KEPT}
            kept |= {"metrics": collector.device_metrics(), "explained": collector.explained_variance}
            seen.append({name: tensor.cpu().clone() for name, tensor in kept.items()})
            episodes = components.trace.read()
            seen[-1] |= {"returns": torch.from_numpy(episodes.rewards), "lengths": torch.from_numpy(episodes.lengths)}
            if number == 2:
                opponents.add_snapshot("self-0001", 0, components.policy.state())
        assert (collector._graph is not None) == config.hyperparameters.cuda_graphs
        assert (collector._end_graph is not None) == config.hyperparameters.cuda_graphs
    return seen


@pytest.mark.parametrize(
    ("world", "policy"),
    [
        (world, policy)
        for world in ("brawl", "rocket", "roshambo")
        for policy in (IN_BRAWL if world == "brawl" else POLICIES)
    ],
)
def test_a_recorded_rollout_is_the_same(world: str, policy: str) -> None:
    graphs, plain = (
        rollouts(make_config(world, IN_BRAWL[policy], cuda_graphs=cuda_graphs), 8) for cuda_graphs in (True, False)
    )
    for number, (one, other) in enumerate(zip(graphs, plain, strict=True)):
        for name, tensor in one.items():
            assert torch.equal(tensor.nan_to_num(), other[name].nan_to_num()), f"{name} of rollout {number}"


def test_shared_rewards_are_recorded() -> None:
    graphs, plain = (
        rollouts(
            make_config("rocket", {}, cuda_graphs=cuda_graphs).model_copy(
                update={"rewards": RewardConfig(base="dense", team_spirit=WeightPath(points=((0, 0.3),)))}
            ),
            8,
        )
        for cuda_graphs in (True, False)
    )
    assert all(torch.equal(one["rewards"], other["rewards"]) for one, other in zip(graphs, plain, strict=True))
    assert any(one["rewards"].any() for one in graphs)


def test_memory_is_kept_over_sets_in_a_recording() -> None:
    graphs, plain = (
        rollouts(make_config("brawl", POLICIES["lstm"], cuda_graphs=cuda_graphs, matches=2), 6)
        for cuda_graphs in (True, False)
    )
    assert all(torch.equal(one["actions"], other["actions"]) for one, other in zip(graphs, plain, strict=True))


def test_the_times_of_a_recording_are_told_apart() -> None:
    config = make_config("brawl", {}, cuda_graphs=True)
    with Components(config) as components:
        learner = components.learner
        assert isinstance(learner, PpoLearner)
        for _ in range(4):
            learner.iterate()
            times = learner.times_s()
        assert learner.collector._graph is not None
        assert {"simulation", "inference", "opponents"} <= set(times)
        assert min(times.values()) >= 0.0
        assert times["simulation"] > 0.0


@pytest.mark.parametrize("policy", ["mlp", "lstm"])
def test_bfloat16_policies_read_what_the_buffer_holds(policy: str) -> None:
    config = make_config("brawl", POLICIES[policy] | {"bfloat16": True}, cuda_graphs=True)
    with Components(config) as components:
        learner = components.learner
        assert isinstance(learner, PpoLearner)
        for _ in range(3):
            learner.iterate()
        learner.collect()
        buffer = learner.collector.buffer
        size = components.policy.observations.sizes["vector"]
        batch = buffer.minibatch(torch.arange(buffer.segments, device="cuda"))
        inputs = batch.observations["vector"]
        assert inputs.dtype == torch.bfloat16
        assert inputs.shape[-1] % 8 == 0
        assert inputs[..., size:].abs().max() == 0.0
        seen = {"vector": inputs[..., :size].float()}
        with torch.no_grad():
            wide, narrow = (
                components.policy.unroll(entries, batch.memory, batch.episode_starts, batch.actions)
                for entries in (batch.observations, seen)
            )
        torch.testing.assert_close(wide.values, narrow.values, atol=0.02, rtol=0.02)
        torch.testing.assert_close(wide.log_probs, batch.targets.log_probs, atol=0.05, rtol=0.05)


def test_weights_that_change_are_not_recorded() -> None:
    with Components(make_config("brawl", {}, cuda_graphs=True)) as components:
        learner = components.learner
        assert isinstance(learner, PpoLearner)
        collector, rewards = learner.collector, components.rewards
        for _ in range(4):
            learner.collect()
        assert collector._end_graph is not None
        before = collector.buffer.rewards.abs().sum()
        rewards.set_factors(dict.fromkeys(rewards.names, 0.0))
        rewards.set_time(0)
        learner.collect()
        assert before > 0.0
        assert collector.buffer.rewards.abs().sum() == 0.0
