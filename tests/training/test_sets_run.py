"""Runs in sets of matches: exact resume in the middle of a set, and adaptation that is learned."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import ludus
from ludus.envs import bots
from ludus.envs.bots import BotObservation
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Iteration, TrainConfig, Trainer
from ludus.training.components import Components

pytestmark = pytest.mark.train

GAMES, STEPS = 8, 10


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": GAMES, "settings": {"rounds": 3, "matches_per_episode": 7}},
            "total_env_steps": 8 * GAMES * STEPS,
            "policy": {"recurrent": {"size": 8}, "net_arch": {"pi": [4], "vf": [4]}},
            "ppo": {"n_steps": STEPS, "sequence_length": STEPS, "n_minibatches": 2, "n_epochs": 1},
            "opponents": {"self": 1, "random": 1, "cycle": 1},
            "league": {"snapshot_every_env_steps": GAMES * STEPS, "keep": 4},
            "checkpoints": {"every_iterations": 2, "keep": 1},
            **changes,
        }
    )


class Stop(BaseCallback):
    """Stops the run after some iterations."""

    def __init__(self, after: int) -> None:
        self._left = after

    def on_iteration(self, iteration: Iteration) -> None:
        self._left -= 1
        if self._left == 0:
            self.trainer.stop()


def run(config: TrainConfig, folder: Path, stop_after: int = 0) -> None:
    with Trainer(config, folder, [Stop(stop_after)]) as trainer:
        trainer.run()


def test_a_run_resumes_exactly_in_the_middle_of_a_set(tmp_path: Path) -> None:
    config = make_config()
    run(config, tmp_path / "straight")
    for stop_after in (3, 2):  # after 30 and 50 steps: sets have 21
        run(config, tmp_path / "stopped", stop_after)
    run(config, tmp_path / "stopped")
    for name in ("metrics.jsonl", "monitor.csv", "opponents.csv"):
        assert (tmp_path / "straight" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes(), name
    one, other = (load_checkpoint(tmp_path / name / "checkpoints" / "final") for name in ("straight", "stopped"))
    for group, tensors in one.tensors.items():
        for name, tensor in tensors.items():
            assert tensor.equal(other.tensors[group][name]), f"{group}.{name}"


def test_what_an_opponent_did_in_the_first_match_is_used_in_the_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches of two throws against bots that always throw the same: the first throw of a match shows nothing of it."""
    monkeypatch.setattr(bots, "_REGISTERED", {})

    def stubborn(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        return (3.0 * observation.parameter()).long(), state

    ludus.register_bot("duel", "stubborn")(stubborn)
    config = make_config(
        world={"name": "duel", "num_envs": 64, "settings": {"rounds": 2, "matches_per_episode": 3}},
        opponents={"stubborn": 1},
        policy={"recurrent": {"size": 16}, "net_arch": {"pi": [16], "vf": [16]}},
        ppo={"n_steps": 12, "sequence_length": 12, "n_minibatches": 4, "n_epochs": 4, "learning_rate": 0.005},
    )
    torch.manual_seed(0)
    with Components(config) as components:
        for _ in range(40):
            components.learner.iterate(0.0)
        rewards = components.buffer.rewards
    assert float(rewards[[0, 6]].mean()) < 0.4  # a set begins
    assert float(rewards[[2, 4, 8, 10]].mean()) > 0.9  # its second and third match
