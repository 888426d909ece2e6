"""Overlapping iterations on a CUDA device: two streams give what one gives, learn, survive faults and go on."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.training import BaseCallback, Iteration, TrainConfig, Trainer, train
from ludus.training.components import Components

pytestmark = pytest.mark.cuda

STRATEGY = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32, "window": 9, "predict_actions": 1.0}
POLICIES: dict[str, dict[str, Any]] = {
    "mlp": {"normalize": {"observations": True, "returns": True}},
    "lstm": {"recurrent": {"size": 32}},
    "strategy": {"recurrent": {"size": 16}, "strategy": STRATEGY},
    "bfloat16": {"recurrent": {"size": 32}, "bfloat16": True},
}


def make_config(policy: dict[str, Any], **changes: Any) -> TrainConfig:
    ppo = {"n_steps": 16, "batch_size": 512, "n_epochs": 2, "learning_rate": 1e-3, "overlap": True}
    return TrainConfig.model_validate(
        {
            "world": {"name": "brawl", "num_envs": 128, "device": "cuda"},
            "policy": {"net_arch": {"pi": [64], "vf": [64]}, **policy},
            "opponents": {"self": 1, "based": 1},
            "ppo": ppo | changes.pop("ppo", {}),
        }
        | changes
    )


def learner_of(components: Components) -> PpoLearner:
    assert isinstance(components.learner, PpoLearner)
    return components.learner


def trained(config: TrainConfig, count: int, *, in_one_stream: bool) -> list[dict[str, Tensor]]:
    """Return policy, rollout and metrics after every iteration."""
    seen = []
    with Components(config) as components:
        learner = learner_of(components)
        assert learner._player is not None
        if in_one_stream:
            learner._player._stream = None
        for number in range(count):
            metrics = learner.iterate(number / count)
            buffer = learner.collector.buffer
            kept = {"log_probs": buffer.log_probs, "rewards": buffer.rewards, "advantages": buffer.advantages}
            kept |= {"updates": torch.tensor(metrics["updates"]), "return": torch.tensor(metrics["episode_return"])}
            seen.append({name: tensor.cpu().clone() for name, tensor in (components.policy.state() | kept).items()})
            components.trace.read()
    return seen


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cuda_graphs", [True, False])
def test_two_streams_give_what_one_gives(policy: str, cuda_graphs: bool) -> None:
    config = make_config(POLICIES[policy], ppo={"cuda_graphs": cuda_graphs})
    one, two = (trained(config, 8, in_one_stream=in_one_stream) for in_one_stream in (True, False))
    for number, (expected, found) in enumerate(zip(one, two, strict=True)):
        assert found["updates"] == (8 if number else 0)
        for name, tensor in expected.items():
            torch.testing.assert_close(
                found[name], tensor, atol=2e-4, rtol=1e-3, equal_nan=True, msg=f"{number} {name}"
            )


def test_many_minibatches_beside_a_rollout() -> None:
    config = make_config(POLICIES["mlp"], ppo={"batch_size": 32})  # 64 in each of two epochs: too many for one graph
    one, two = (trained(config, 5, in_one_stream=in_one_stream) for in_one_stream in (True, False))
    for name, tensor in one[-1].items():
        torch.testing.assert_close(two[-1][name], tensor, atol=2e-3, rtol=1e-2, equal_nan=True, msg=name)


def test_rollouts_become_graphs_and_times_are_told_apart() -> None:
    with Components(make_config(POLICIES["lstm"])) as components:
        learner = learner_of(components)
        for number in range(6):
            assert learner.collector.is_recorded == (number > 1)
            learner.iterate()
            times = learner.times_s()
        assert {"simulation", "inference", "opponents", "update"} <= set(times)
        assert min(times.values()) >= 0.0
        assert times["simulation"] > 0.0


def test_recordings_of_both_streams_were_made_in_different_ones() -> None:
    """cuBLAS has a workspace per stream, which recordings keep."""
    with Components(make_config(POLICIES["mlp"])) as components:
        learner = learner_of(components)
        for _ in range(4):
            learner.iterate()
        assert learner._player is not None
        assert learner._player._stream is not None
        recording = torch.cuda.graph.default_capture_stream
        assert recording is not None  # that of the update
        assert recording.cuda_stream != learner._player._stream.cuda_stream
        assert learner._player._stream.priority < recording.priority


def test_it_learns() -> None:
    torch.manual_seed(0)
    env = make_env("identity-v1", 32, "cuda")
    ppo = {"n_steps": 32, "batch_size": 256, "n_epochs": 4, "learning_rate": 2e-3, "ent_coef": 0.01, "overlap": True}
    learner = PpoLearner(env, Policy(env.spec, PolicyConfig(), "cuda"), PpoConfig.model_validate(ppo))
    assert max(learner.iterate(i / 40)["episode_return"] for i in range(40)) > 3.8


def test_a_state_is_taken_back() -> None:
    with Components(make_config(POLICIES["lstm"])) as components:
        learner = learner_of(components)
        for _ in range(4):
            learner.iterate()
        state = components.state()
        waiting = state.tensors["waiting"]
        learner.iterate()
        components.load_state(state)
        taken = learner.state()[0]["waiting"]
        assert all(torch.equal(taken[name].cpu(), tensor.cpu()) for name, tensor in waiting.items())
        assert [learner.iterate()["updates"] for _ in range(4)] == [8] * 4


def test_games_on_the_cpu(tmp_path: Path) -> None:
    world, place = {"name": "brawl", "num_envs": 32, "device": "cpu"}, {"learner_device": "cuda"}
    config = make_config(POLICIES["lstm"], world=world, total_env_steps=4 * 16 * 32, **place)
    assert train(config, tmp_path).iterations == 4


class Saboteur(BaseCallback):
    """Loses a parameter after the third iteration and stops the run after the fifth."""

    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == 3:
            self.trainer.components.policy.value_head.bias.data.fill_(math.nan)
        if iteration.counters.iterations == 5:
            self.trainer.stop()


def test_faults_and_stops(tmp_path: Path) -> None:
    config = make_config(POLICIES["mlp"], total_env_steps=8 * 16 * 128, checkpoints={"every_iterations": 2})
    with Trainer(config, tmp_path, [Saboteur()]) as trainer:
        assert trainer.run().iterations == 5
        assert trainer.rollbacks == 1
    assert train(config, tmp_path).iterations == 8
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == list(range(1, 9))
    assert [line["policy_loss"] is None for line in lines] == [True, *[False] * 7]
