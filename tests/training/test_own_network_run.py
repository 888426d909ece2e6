"""Runs with a network of the user's own: checked before they start, resumed bit by bit, met again as opponents."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.own_networks import Broken, Features, RecurrentActions

import ludus
from ludus.core.errors import ConfigError, NetworkError
from ludus.core.files import JSON
from ludus.policies import looped, register_network
from ludus.policies.agent import Agent
from ludus.policies.export import export_agent
from ludus.store import load_checkpoint, read_manifest
from ludus.training.callbacks import BaseCallback, Iteration
from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.loop import Trainer, train

pytestmark = pytest.mark.train

SETTINGS: dict[str, Any] = {
    "world": {"name": "duel-v1", "num_envs": 16},
    "total_env_steps": 1024,
    "ppo": {"n_steps": 16, "batch_size": 128, "n_epochs": 1},
    "checkpoints": {"every_iterations": 1},
    "monitoring": {"console": "off", "tensorboard": False, "curves": False},
}


def settings(network: type[torch.nn.Module], **changes: Any) -> dict[str, Any]:
    return SETTINGS | {"policy": {"module": register_network(network)}} | changes


class _Stop(BaseCallback):
    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == 2:
            self.trainer.stop()


@pytest.mark.parametrize("network", [Features, RecurrentActions])
def test_a_run_with_past_selves_resumes_to_the_same_bytes(network: type[torch.nn.Module], tmp_path: Path) -> None:
    league = {"opponents": {"self": 2, "rock": 1}, "league": {"snapshot_every_env_steps": 256, "keep": 3}}
    given = settings(network, **league)
    config = TrainConfig.model_validate(given)
    train(config, tmp_path / "whole")
    with Trainer(config, tmp_path / "cut", [_Stop()]) as trainer:
        assert trainer.run().iterations == 2
    assert train(config, tmp_path / "cut").env_steps == 1024
    whole, cut = (load_checkpoint(tmp_path / name / "checkpoints" / "final") for name in ("whole", "cut"))
    assert set(whole.tensors) == set(cut.tensors)
    for group, tensors in whole.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, cut.tensors[group][name]), f"{group} {name}"


def test_an_exported_agent_plays_as_opponent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    looped._notice.cache_clear()
    train(TrainConfig.model_validate(settings(RecurrentActions, total_env_steps=256)), tmp_path / "first")
    file = tmp_path / "champion.ludus"
    export_agent(tmp_path / "first", file)
    given = settings(Features, opponents={str(file): 1, "self": 1}, total_env_steps=512)
    train(TrainConfig.model_validate(given), tmp_path / "second")
    assert len([record for record in caplog.records if "cannot be stacked" in record.getMessage()]) == 2
    assert ludus.evaluate(tmp_path / "second", [str(file)], matches=4).rows[0]["matches"] == 4


@pytest.mark.parametrize("fault", ["raise", "NaN", "later"])
def test_a_bad_network_makes_no_run_folder(fault: str, tmp_path: Path) -> None:
    given = settings(Broken)
    given["policy"] = given["policy"] | {"module_kwargs": {"fault": fault}}
    with pytest.raises(NetworkError, match=r"own_networks\.py:\d+"):
        ludus.train(given, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_off_policy_algorithms_refuse_it() -> None:
    refused: list[dict[str, JSON]] = [{"module": register_network(Features)}, {"dropout": 0.1}]
    for changes in refused:
        name = next(iter(changes))
        with pytest.raises(ConfigError, match=rf"algorithm sac cannot do policy\.{name}"):
            TrainConfig.from_json({"world": {"name": "point"}, "algorithm": "sac", "policy": changes})


def test_layers_without_a_gradient_are_named_and_frozen_ones_stay(caplog: pytest.LogCaptureFixture) -> None:
    config = TrainConfig.model_validate(settings(PartlyUsed, ppo=SETTINGS["ppo"] | {"weight_decay": 0.1}))
    with Components(config) as components:
        components.learner.collect()
        network, gradients = config.method.dry_run(components.learner).lines
        assert network.endswith("returns 6 features")
        assert "finite in all" in gradients
        components.learner.update()
        state = components.policy.state()
    assert any("2 parameters get no gradient" in record.getMessage() for record in caplog.records)
    assert set(state["parameter.network.module.frozen.weight"].flatten().tolist()) == {0.5}


def test_a_network_that_fails_later_ends_the_run_with_everything_saved(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"forward failed: ZeroDivisionError: .*test_own_network_run\.py:\d+"):
        train(TrainConfig.model_validate(settings(Failing)), tmp_path)
    saved = Agent.load(tmp_path / "checkpoints" / "interrupted").policy.state()
    assert all(bool(tensor.isfinite().all()) for tensor in saved.values())
    assert read_manifest(tmp_path / "checkpoints" / "interrupted").step == 512


class Failing(Features):
    """Fails in the second rollout."""

    calls = 0

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        self.calls += 1
        return super().forward(observations) / (1 // (self.calls - 30) if self.calls == 30 else 1)


class PartlyUsed(Features):
    """Has a layer that it does not use, and one that does not learn."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.unused, self.frozen = torch.nn.Linear(2, 2), torch.nn.Linear(6, 6)
        torch.nn.init.constant_(self.frozen.weight, 0.5)
        self.frozen.requires_grad_(requires_grad=False)

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        features: torch.Tensor = self.frozen(super().forward(observations))
        return features
