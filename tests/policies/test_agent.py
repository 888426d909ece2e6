"""Agents: saved, loaded and asked; descriptions that lie are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ludus import make_env
from ludus.core.errors import ConfigError, StateError
from ludus.policies.agent import DOCUMENT, TENSORS, Agent, build_policy
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy
from ludus.store import Checkpoint, save_checkpoint


def _document(policy: Policy) -> Any:
    return json.loads(PolicyDescription.of(policy.spec, policy.config).model_dump_json())


def test_a_loaded_agent_plays_as_the_saved_policy(
    policy_kind: tuple[str, PolicyConfig], make_arena: type, tmp_path: Path
) -> None:
    name, config = policy_kind
    env = make_arena(2, picture=name.startswith("cnn"))
    torch.manual_seed(3)
    policy = Policy(env.spec, config)
    frames = [{key: tensor.flatten(0, 1) for key, tensor in env.reset().items()} for _ in range(4)]
    policy.observe(frames[0])
    folder = tmp_path / "checkpoint"
    save_checkpoint(folder, Checkpoint({TENSORS: policy.state()}, {DOCUMENT: _document(policy)}))
    agent = Agent.load(folder)
    assert agent.policy.config == config
    memory, state, start = policy.initial(4), None, np.ones(4, dtype=bool)
    for frame in frames:
        step = policy.step(frame, memory, torch.as_tensor(start))
        memory = step.memory
        actions, state = agent.predict({key: tensor.numpy() for key, tensor in frame.items()}, state, start)
        assert np.array_equal(actions, step.actions.numpy())
        start = np.zeros(4, dtype=bool)


@pytest.mark.parametrize("world", ["identity-v1", "point-v1", "duel-v1"])
def test_one_row_or_many_drawn_or_not(world: str) -> None:
    env = make_env(world, 3)
    policy = Policy(env.spec, PolicyConfig.model_validate({"recurrent": {"size": 4}, "log_std": 3.0}))
    agent = Agent(build_policy(PolicyDescription.of(env.spec, policy.config), policy.state(), "cpu"))
    observation = env.reset()["vector"][:, 0].numpy()
    many, state = agent.predict(observation, deterministic=False)
    one, _ = agent.predict(observation[0])
    assert many.shape == (3, *(env.spec.action_space.shape or ()))
    assert one.shape == (env.spec.action_space.shape or ())
    assert env.spec.action_space.contains(one.item() if one.shape == () else one)
    before = {name: tensor.clone() for name, tensor in state.items()}
    agent.predict(observation, state)
    assert all(torch.equal(before[name], state[name]) for name in before)  # a state can be used again
    if world == "point-v1":
        assert np.abs(many).max() <= 1.0  # clipped to the action space, whatever was drawn


def test_descriptions_that_lie_are_refused_before_memory_is_taken() -> None:
    policy = Policy(make_env("identity-v1", 1).spec, PolicyConfig())
    document = _document(policy)
    document["config"]["net_arch"]["pi"] = [60_000, 60_000]  # 14 GB of weights
    with pytest.raises(StateError, match="the description asks for"):
        build_policy(PolicyDescription.read(document), policy.state(), "cpu")
    with pytest.raises(ConfigError, match="wrong at world"):
        PolicyDescription.read({**_document(policy), "world": 3})
    with pytest.raises(ConfigError, match="wrong at extra"):
        PolicyDescription.read({**_document(policy), "extra": 1})


def test_a_checkpoint_without_an_agent_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "empty", Checkpoint({TENSORS: {"x": torch.zeros(1)}}, {DOCUMENT: {"world": "x-v1"}}))
    with pytest.raises(ConfigError, match="description"):
        Agent.load(tmp_path / "empty")
