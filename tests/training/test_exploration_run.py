"""Runs that explore: schedules and phases decide how often, evaluations do not, and stopped runs go on exactly."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from ludus.core.errors import ConfigError
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Iteration, TrainConfig, Trainer, train
from ludus.training.config import differences
from ludus.training.preflight import verify

PER_ITERATION = 8 * 4
ANNEALED = {"frequency": {"kind": "linear", "start": 0.8, "end": 0.0}}


def _config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "dig", "num_envs": 4},
            "total_env_steps": 4 * PER_ITERATION,
            "policy": {"net_arch": {"pi": [8], "vf": [8]}, "exploration": ANNEALED},
            "ppo": {"n_steps": 8, "batch_size": 16, "n_epochs": 1},
            "checkpoints": {"every_env_steps": None},
        }
        | changes
    )


STAGES: list[dict[str, Any]] = [
    {
        "name": "early",
        "opponents": {"rock": 1},
        "exploration": {"frequency": 1.0},
        "promotion": {"after_env_steps": 64},
    },
    {"name": "late", "opponents": {"rock": 1}},
]


class _Stop(BaseCallback):
    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == 2:
            self.trainer.stop()


def _frequencies(folder: Path) -> list[float]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [row["exploration_frequency"] for row in rows]


@pytest.mark.parametrize(
    ("config", "frequencies"),
    [
        (_config(), [0.8, 0.6, 0.4, 0.2]),
        (_config(world={"name": "duel", "num_envs": 4}, curriculum=STAGES), [1.0, 1.0, 0.4, 0.2]),
    ],
)
def test_a_stopped_run_goes_on_exactly(config: TrainConfig, frequencies: list[float], tmp_path: Path) -> None:
    train(config, tmp_path / "straight")
    stop = _Stop()
    with Trainer(config, tmp_path / "stopped", [stop]) as trainer:
        assert trainer.run().iterations == 2
    train(config, tmp_path / "stopped")
    assert _frequencies(tmp_path / "straight") == pytest.approx(frequencies)
    one, other = (load_checkpoint(tmp_path / name / "checkpoints" / "final") for name in ("straight", "stopped"))
    assert one.documents == other.documents
    for group, tensors in one.tensors.items():
        assert all(torch.equal(tensor, other.tensors[group][name]) for name, tensor in tensors.items()), group
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("straight", "stopped")]
    assert metrics[0] == metrics[1]


def test_a_stage_cannot_explore_with_a_policy_that_was_not_made_for_it() -> None:
    duel = {"world": {"name": "duel", "num_envs": 4}, "curriculum": STAGES}
    with pytest.raises(ValueError, match="phase 'early' has its own exploration"):
        _config(**duel, policy={})
    phase = _config(**duel).at_phase(0).policy.exploration
    assert phase is not None
    assert phase.frequency.value(0.5) == 1.0
    assert _config(**duel).at_phase(1).policy == _config(**duel).policy


def test_verification_and_other_algorithms() -> None:
    assert len(list(verify(_config()))) > 5
    with pytest.raises(ValueError, match=r"algorithm sac cannot do policy\.exploration"):
        _config(world={"name": "point"}, algorithm="sac")
    with pytest.raises(ConfigError, match=r"policy\.exploration\.frequency"):
        TrainConfig.from_json({"world": {"name": "dig"}, "policy": {"exploration": {"frequency": 1.5}}})


def test_settings_that_are_new_since_a_run_began_do_not_stop_it() -> None:
    began: Any = _config(policy={}).to_json()
    for name in ("exploration", "sees_action_mask"):
        del began["policy"][name]
    assert differences(began, _config(policy={}).to_json()) == []
    assert differences(began, _config().to_json())
