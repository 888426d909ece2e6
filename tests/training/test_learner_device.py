"""Learner and games on different devices: who decides, what is said, and that it learns the same."""

from pathlib import Path
from typing import Any

import pytest
import torch

from ludus.core.errors import ConfigError, DeviceError
from ludus.envs import registry
from ludus.envs.device_bridge import DeviceBridge
from ludus.evaluation.evaluate import evaluate
from ludus.policies.agent import Agent
from ludus.store import load_checkpoint
from ludus.training import TrainConfig, resolve, train
from ludus.training.components import Components
from ludus.training.distributed import Process
from ludus.training.preflight import verify
from ludus.training.summary import summarise

SMALL = {"net_arch": {"pi": [8], "vf": [8]}, "normalize": {"observations": True, "returns": True}}


def make_config(name: str = "duel", **changes: Any) -> TrainConfig:
    settings: dict[str, Any] = {
        "world": {"name": name, "num_envs": 8, "device": "cpu"},
        "total_env_steps": 3 * 8 * 8,
        "policy": SMALL | {"recurrent": {"size": 8}},
        "ppo": {"n_steps": 8, "sequence_length": 4, "batch_size": 32, "n_epochs": 2},
        "checkpoints": {"every_iterations": 1},
    }
    if name == "duel":
        settings["opponents"] = {"rock": 1, "self": 1}
        settings["evaluation"] = {"every_env_steps": 100, "matches": 4, "opponents": ["rock"]}
    return TrainConfig.model_validate(settings | changes)


@pytest.fixture
def always_bridged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch of games is behind a bridge, though both sides are on the CPU."""
    monkeypatch.setattr(registry, "_on_device", DeviceBridge)


def learned(config: TrainConfig, folder: Path) -> dict[str, torch.Tensor]:
    train(config, folder)
    groups = load_checkpoint(folder / "checkpoints" / "final").tensors
    return {f"{group}.{name}": tensor for group in groups for name, tensor in groups[group].items()}


@pytest.mark.parametrize("world", ["duel", "gym:CartPole-v1"])
def test_a_run_behind_a_bridge_learns_the_same_bytes(
    world: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    own = learned(make_config(world), tmp_path / "own")
    request.getfixturevalue("always_bridged")
    with Components(make_config(world)) as components:
        assert isinstance(components.env, DeviceBridge)
    bridged = learned(make_config(world), tmp_path / "bridged")
    assert own.keys() == bridged.keys()
    assert [name for name, tensor in own.items() if not torch.equal(tensor, bridged[name])] == []


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which torch sees a GPU that duel can live on; nothing is made there."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for module in (registry, resolve):
        monkeypatch.setattr(module, "can_live_on", lambda _, world, __=None: world == "duel")


def devices(name: str, world_device: str, learner_device: str, **changes: Any) -> tuple[str, str]:
    config = make_config(name, learner_device=learner_device, **changes)
    world = config.world.model_copy(update={"device": world_device})
    run = resolve.resolve(config.model_copy(update={"world": world}), Process())
    assert run.config.learner_device == learner_device
    assert run.device == run.whole.learner_device
    return run.whole.world.device, run.whole.learner_device


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("name", "asked", "chosen"),
    [
        ("duel", ("auto", "auto"), ("cuda", "cuda")),
        ("duel", ("cuda:1", "auto"), ("cuda:1", "cuda:1")),
        ("duel", ("cpu", "auto"), ("cpu", "cpu")),
        ("duel", ("cpu", "cuda"), ("cpu", "cuda")),
        ("duel", ("auto", "cpu"), ("cuda", "cpu")),
        ("gym:CartPole-v1", ("cuda:1", "auto"), ("cpu", "cuda:1")),  # who asks for the GPU gets it
        ("gym:CartPole-v1", ("auto", "auto"), ("cpu", "cpu")),  # eight neurons are not worth a GPU
        ("gym:CartPole-v1", ("auto", "cuda"), ("cpu", "cuda")),
        ("gym:CartPole-v1", ("cpu", "auto"), ("cpu", "cpu")),
    ],
)
def test_who_lives_where(name: str, asked: tuple[str, str], chosen: tuple[str, str]) -> None:
    assert devices(name, *asked) == chosen


@pytest.mark.usefixtures("gpu")
def test_a_large_network_beside_games_on_the_cpu_goes_to_the_gpu() -> None:
    large = {"net_arch": {"pi": [1024, 1024], "vf": [1024, 1024]}}  # 0.24 GFLOP
    assert devices("gym:CartPole-v1", "auto", "auto", policy=large) == ("cpu", "cuda")


@pytest.mark.usefixtures("gpu")
def test_the_run_says_where_its_learner_lives_and_why() -> None:
    config = make_config("gym:CartPole-v1")
    world = config.world.model_copy(update={"device": "auto"})
    run = resolve.resolve(config.model_copy(update={"world": world}), Process())
    lines = list(summarise(run, None, "", brief=True))
    assert any("on cpu (" in line and "a GPU pays from" in line for line in lines)


def test_work_counts_convolutions_rows_and_epochs() -> None:
    config = make_config("gym:CartPole-v1", policy={"net_arch": {"pi": [8], "vf": [16]}})
    # A row: actor 4x8 and 8x2, critic 4x16 and 16x1, two operations per product.
    assert resolve.learner_work(config) == 2 * (4 * 8 + 8 * 2 + 4 * 16 + 16) * 8 * (1 + 3 * 2)


def test_without_a_gpu_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert devices("gym:CartPole-v1", "auto", "auto") == ("cpu", "cpu")
    with pytest.raises(DeviceError, match="no CUDA device"):
        Components(make_config("gym:CartPole-v1", learner_device="cuda"))


def test_each_process_takes_its_own_gpu() -> None:
    shared = Process(1, 2, 1).share(make_config(learner_device="cuda"))
    assert (shared.world.device, shared.learner_device) == ("cpu", "cuda:1")
    with pytest.raises(ConfigError, match="learner_device 'cuda:0' names one device"):
        Process(1, 2, 1).share(make_config(learner_device="cuda:0"))


@pytest.mark.cuda
@pytest.mark.parametrize("world", ["duel", "gym:CartPole-v1"])
def test_games_on_the_cpu_learner_on_cuda(world: str, tmp_path: Path) -> None:
    config = make_config(world, learner_device="cuda")
    assert any("cpu" in line for line in verify(config))
    assert train(config, tmp_path).iterations == 3
    agent = Agent.load(tmp_path, "cuda")
    assert agent.device.type == "cuda"
    assert evaluate(agent, ["rock"] if world == "duel" else None, matches=4).rows


@pytest.mark.cuda
def test_a_run_moves_between_devices_when_it_is_resumed(tmp_path: Path) -> None:
    assert train(make_config("gym:CartPole-v1", learner_device="cuda"), tmp_path).iterations == 3
    longer = {"total_env_steps": 5 * 8 * 8, "extended_from": [3 * 8 * 8]}
    assert train(make_config("gym:CartPole-v1", **longer, learner_device="cuda"), tmp_path).iterations == 5


@pytest.mark.cuda
@pytest.mark.parametrize("algorithm", ["sac", "td3"])
def test_off_policy_learners_on_cuda(algorithm: str, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    settings = {"train_freq": 4, "gradient_steps": 2, "batch_size": 16, "learning_starts": 32, "buffer_size": 200}
    config = make_config(
        "gym:Pendulum-v1", algorithm=algorithm, policy=SMALL | {"activation": "relu"}, ppo={}, learner_device="cuda",
        **{algorithm: settings},
    )  # fmt: skip
    assert train(config, tmp_path).env_steps >= config.total_env_steps
