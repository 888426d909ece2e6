"""ONNX files: onnxruntime takes the same actions as the agent, over many steps with episode starts among them."""

import builtins
import functools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from gymnasium import spaces
from tests import own_networks
from torch import Tensor

from ludus import make_env
from ludus.core.errors import ConfigError, MissingDependencyError, UnsupportedError
from ludus.envs.base import EnvSpec
from ludus.policies.agent import Agent
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.export import write_onnx
from ludus.policies.policy import Policy

pytestmark = pytest.mark.package

STEPS, ROWS = 100, 4


@pytest.fixture(scope="module", autouse=True)
def one_registry() -> Iterator[None]:
    """Let torch build its table of ONNX functions once; it builds one per export, a quarter of the time."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry  # which takes long to import

    build = functools.cache(ONNXRegistry.from_torchlib)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", lambda *_, **options: build(**options))
        yield


def make_policy(spec: EnvSpec, settings: PolicyConfig) -> Policy:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return Policy(spec, settings).eval()


def draw(spec: EnvSpec, generator: torch.Generator) -> dict[str, Tensor]:
    drawn: dict[str, Tensor] = {}
    for name, space in spec.observation_space.items():
        shape = (ROWS, *(space.shape or ()))
        if space.dtype == np.uint8:
            drawn[name] = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
        else:
            drawn[name] = torch.randn(shape, generator=generator)
    return drawn


def play_both(path: Path, policy: Policy) -> None:
    """Steps the file and the policy side by side, each with its own memory."""
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    inputs = {given.name: given for given in session.get_inputs()}
    state: dict[str, Any] = {
        name: tensor.numpy().copy()
        for name, tensor in policy.initial(ROWS).items()
        if not name.startswith("critic_recurrent")
    }
    # Zeros, as the manual says; a user's own network may have other first states, which `starts` brings.
    assert all(not array.any() for name, array in state.items() if not name.startswith("network."))
    state = {name: np.zeros_like(array) for name, array in state.items()}
    memory, generator = policy.initial(ROWS), torch.Generator().manual_seed(1)
    for step in range(STEPS):
        episode_starts = torch.rand(ROWS, generator=generator) < (1.0 if step == 0 else 0.1)
        frame = draw(policy.spec, generator)
        expected = policy.step(frame, memory, episode_starts)
        memory = expected.memory
        fed = {f"observation.{name}": tensor.numpy() for name, tensor in frame.items()} | {
            "starts": episode_starts.numpy()
        }
        fed |= {f"memory.{name}": array for name, array in state.items()}
        found = dict(zip(outputs, session.run(None, {name: fed[name] for name in inputs}), strict=True))
        actions = policy.clip_actions(expected.actions).numpy()
        if np.issubdtype(actions.dtype, np.floating) and found["actions"].dtype.kind == "f":
            np.testing.assert_allclose(found["actions"], actions, atol=1e-5)
        else:
            np.testing.assert_array_equal(found["actions"], actions)
        state = {name: found[f"next_memory.{name}"] for name in state}


@pytest.mark.parametrize("kind", ["mlp-normalised", "lstm-separate", "streaming", "streaming-lstm", "film-lstm", "cnn"])
def test_the_same_actions(kind: str, policy_kinds: dict[str, PolicyConfig], make_arena: Any, tmp_path: Path) -> None:
    env = make_arena(2, picture=kind == "cnn")
    policy = make_policy(env.spec, policy_kinds[kind])
    policy.train().observe({name: 3.0 * tensor for name, tensor in env.reset().items()})
    parts = dict(policy.named_modules())
    write_onnx(Agent(policy, settings={"a": 1}), tmp_path / "agent.onnx")
    assert dict(policy.named_modules()) == parts  # the agent itself is left as it was
    play_both(tmp_path / "agent.onnx", policy)
    model = onnx.load(tmp_path / "agent.onnx")
    said = {entry.key: entry.value for entry in model.metadata_props}
    assert PolicyDescription.read(said["ludus.agent"]).settings == {"a": 1}


@pytest.mark.parametrize("world", ["point-v1", "rps-v1"])
def test_continuous_actions_and_choices(world: str, tmp_path: Path) -> None:
    with make_env(world) as env:
        policy = make_policy(env.spec, PolicyConfig.model_validate({"net_arch": {"pi": [8], "vf": [8]}}))
    write_onnx(Agent(policy), tmp_path / "agent.onnx")
    play_both(tmp_path / "agent.onnx", policy)


def test_networks_of_users(tmp_path: Path) -> None:
    with make_env("duel-v1") as env:
        policy = make_policy(env.spec, PolicyConfig(module=f"{own_networks.__name__}:RecurrentActions"))
    write_onnx(Agent(policy), tmp_path / "agent.onnx")
    play_both(tmp_path / "agent.onnx", policy)


def test_what_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NotImplementedError("no such operator")

    with make_env("rps-v1") as env:
        agent = Agent(make_policy(env.spec, PolicyConfig()))
    with pytest.raises(ConfigError, match=r"\.onnx"):
        write_onnx(agent, tmp_path / "agent.pt")
    monkeypatch.setattr(torch.onnx, "export", refuse)
    with pytest.raises(UnsupportedError, match=r"ONNX.*no such operator"):
        write_onnx(agent, tmp_path / "agent.onnx")
    assert not list(tmp_path.iterdir())


def test_without_the_libraries_the_install_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("onnx"):
            raise ImportError(name)
        return plain(name, *rest)

    with make_env("rps-v1") as env:
        agent = Agent(make_policy(env.spec, PolicyConfig()))
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r'pip install -e ".*\[onnx\]"'):
        write_onnx(agent, tmp_path / "agent.onnx")


def named(name: str, settings: dict[str, Any] | None = None) -> Agent:
    """Returns an untrained agent that observes one entry of a name."""
    with make_env("rps") as env:
        space = spaces.Dict({name: spaces.Box(-1.0, 1.0, (3,), np.float32)})
        spec = replace(env.spec, observation_space=space, blocks={}, fields={})
    return Agent(
        make_policy(spec, PolicyConfig.model_validate({"net_arch": {"pi": [4], "vf": [4]}})), settings=settings
    )


@pytest.mark.parametrize(
    "name", ["a\x1b[2J", "a\nb", "a\x00b", "a\u202eb", "a\u00e9", "n" * 201, "n" * 1_000_000], ids=range(7)
)
def test_a_name_that_others_could_not_print_is_refused(name: str, tmp_path: Path) -> None:
    fault = "name of an input" if len(name) <= 200 else "observation_space"
    with pytest.raises(UnsupportedError, match=fault) as caught:
        write_onnx(named(name), tmp_path / "a.onnx")
    assert len(str(caught.value)) < 400
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("settings", [{"a": "\udc80"}, {"a" * (2 << 20): 1}, {"a": "b" * (2 << 20)}], ids=range(3))
def test_settings_that_are_no_text_or_too_long_are_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        write_onnx(named("a", settings), tmp_path / "a.onnx")
    assert len(str(caught.value)) < 400


def test_an_odd_name_makes_a_valid_file(tmp_path: Path) -> None:
    name, text = "/etc/a|<b>", "</script>\x1b\u202e"
    write_onnx(named(name, {"table": text}), tmp_path / "a.onnx")
    model = onnx.load(tmp_path / "a.onnx")
    onnx.checker.check_model(model)
    assert [each.name for each in model.graph.input] == [f"observation.{name}", "starts"]
    [said] = [each.value for each in model.metadata_props if each.key == "ludus.agent"]
    assert json.loads(said)["settings"] == {"table": text}
