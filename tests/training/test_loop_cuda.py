"""The loop on a CUDA device: trains, goes back after a fault, stops, goes on; its agent plays on the CPU."""

import json
import math
from pathlib import Path

import pytest
import torch

from ludus.policies.agent import Agent
from ludus.training import BaseCallback, Iteration, TrainConfig, Trainer, train

pytestmark = pytest.mark.cuda


class Saboteur(BaseCallback):
    """Loses a parameter after the second iteration and stops the run after the fourth."""

    trainer: Trainer

    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == 2:
            self.trainer.components.policy.value_head.bias.data.fill_(math.nan)
        if iteration.counters.iterations == 4:
            self.trainer.stop()


def test_faults_stops_and_agents(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": 64, "device": "cuda"},
            "total_env_steps": 6 * 16 * 64,
            "policy": {"recurrent": {"size": 16}, "normalize": {"observations": True, "returns": True}},
            "ppo": {"n_steps": 16, "sequence_length": 8, "batch_size": 256, "n_epochs": 2},
            "opponents": {"rock": 1, "random": 1},
            "checkpoints": {"every_iterations": 2},
        }
    )
    saboteur = Saboteur()
    with Trainer(config, tmp_path, [saboteur]) as trainer:
        saboteur.trainer = trainer
        assert trainer.run().iterations == 4
        assert trainer.rollbacks == 1
    assert "NaN or Inf in iteration 3, first seen in the parameter (value_head.bias" in caplog.text
    assert train(config, tmp_path).iterations == 6
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line["rollbacks"] for line in lines] == [0, 0, 1, 1, 1, 1]
    frames = torch.randn(5, 8, 8)
    actions = []
    for device in ("cpu", "cuda"):
        agent, state = Agent.load(tmp_path, device), None
        for frame in frames:
            chosen, state = agent.predict(frame, state, deterministic=True)
            assert chosen.device.type == device
        actions.append(chosen.cpu())
    assert torch.equal(*actions)
