"""Agents: found, loaded and asked on any device; descriptions that lie and observations of other worlds are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ludus import make_env
from ludus.core.errors import CheckpointError, ConfigError, DeviceError, ObservationError, StateError, UnsupportedError
from ludus.policies.agent import DOCUMENT, TENSORS, Agent, agent_checkpoint, build_policy
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy
from ludus.store import Checkpoint, save_checkpoint


def _document(policy: Policy) -> Any:
    return agent_checkpoint(policy.spec, policy.config, policy.state()).documents[DOCUMENT]


def _save(folder: Path, policy: Policy, sequence: int = 0) -> None:
    save_checkpoint(folder, agent_checkpoint(policy.spec, policy.config, policy.state()), sequence=sequence)


def _policy(world: str, part: dict[str, Any] | None = None, seed: int = 0) -> Policy:
    torch.manual_seed(seed)
    return Policy(make_env(world, 1).spec, PolicyConfig.model_validate(part or {}))


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
    _save(folder, policy)
    agent = Agent.load(folder)
    assert agent.policy.config == config
    memory, state, start = policy.initial(4), None, np.ones(4, dtype=bool)
    for frame in frames:
        step = policy.step(frame, memory, torch.as_tensor(start))
        memory = step.memory
        actions, state = agent.predict({key: tensor.numpy() for key, tensor in frame.items()}, state, start, True)
        assert np.array_equal(actions, step.actions.numpy())
        start = np.zeros(4, dtype=bool)


def test_the_strategy_latent_is_what_the_policy_uses() -> None:
    policy = _policy("duel", {"strategy": {"layers": 1, "heads": 2, "width": 8, "feedforward": 8, "window": 5}})
    agent, env, state = Agent(policy), make_env("duel", 3), None
    strategy = policy.memory.strategy
    assert strategy is not None
    used: list[torch.Tensor] = []
    own_step = policy.memory.strategy_step

    def watched(*arguments: Any) -> Any:
        latent, memory = own_step(*arguments)
        used.append(latent)
        return latent, memory

    policy.memory.strategy_step = watched  # type: ignore[assignment]
    observation = env.reset()["vector"][:, 0]
    for _ in range(3):
        latent = agent.strategy_latent(observation, state)
        actions, state = agent.predict(observation, state, deterministic=True)
        assert latent.shape == (3, policy.config.strategy.latent if policy.config.strategy else 0)
        assert torch.equal(latent, used[-1])
        observation = env.step(actions.unsqueeze(1).expand(3, 2)).observations["vector"][:, 0]
    single = agent.strategy_latent(observation[0].numpy())
    assert isinstance(single, np.ndarray)
    assert np.allclose(single, agent.strategy_latent(observation)[0], atol=1e-6)
    with pytest.raises(UnsupportedError, match=r"policy\.strategy"):
        Agent(_policy("duel")).strategy_latent(observation)


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
    assert state is not None
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
    save_checkpoint(tmp_path / "other", Checkpoint({TENSORS: {"x": torch.zeros(1)}}, {DOCUMENT: {"world": "x-v1"}}))
    with pytest.raises(CheckpointError, match="description"):
        Agent.load(tmp_path / "other")
    save_checkpoint(tmp_path / "empty", Checkpoint({}, {"counters": 1}))
    with pytest.raises(CheckpointError, match="agent, policy"):
        Agent.load(tmp_path / "empty")
    with pytest.raises(CheckpointError, match="manifest"):
        Agent.load(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["../../x", "a.b", "", "training", "forward", "." * 1_000_000], ids=range(6))
def test_entries_that_no_module_can_be_of_are_refused(name: str, tmp_path: Path) -> None:
    policy = _policy("rps")
    checkpoint = agent_checkpoint(policy.spec, policy.config, policy.state())
    document: Any = checkpoint.documents[DOCUMENT]
    document["observation_space"] = [[name, space] for _, space in document["observation_space"]]
    document["blocks"] = document["fields"] = {}
    save_checkpoint(tmp_path / "agent", checkpoint, step=0, sequence=0)
    with pytest.raises(CheckpointError) as caught:
        Agent.load(tmp_path / "agent")
    assert len(str(caught.value)) < 2_000


def test_endless_layers_and_memories_are_refused_at_once() -> None:
    small = {"layers": 1, "heads": 2, "width": 8, "feedforward": 8, "window": 5}
    policy = _policy("duel", {"strategy": small})
    for key in ("layers", "window"):
        document = _document(policy)
        document["config"]["strategy"][key] = 10**9
        with pytest.raises(ConfigError, match=f"config.strategy.{key}"):
            PolicyDescription.read(document)


def test_a_run_folder_means_its_best_then_its_final_then_its_newest_agent(tmp_path: Path) -> None:
    policies = [_policy("identity", seed=seed) for seed in range(4)]
    weights = [policy.value_head.weight for policy in policies]
    for expected, (name, policy) in enumerate(
        zip(("step-000000000010", "step-000000000020", "final", "best"), policies, strict=True)
    ):
        _save(tmp_path / "checkpoints" / name, policy, sequence=expected + 1)
        for path in (tmp_path, str(tmp_path / "checkpoints")):
            assert torch.equal(Agent.load(path).policy.value_head.weight, weights[expected])
    single = Agent.load(tmp_path / "checkpoints" / "step-000000000010")
    assert torch.equal(single.policy.value_head.weight, weights[0])


def test_a_damaged_newest_agent_gives_way_to_the_one_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for step, policy in enumerate((_policy("identity", seed=0), _policy("identity", seed=1))):
        _save(tmp_path / "checkpoints" / f"step-{step}", policy, sequence=step + 1)
    tensors = tmp_path / "checkpoints" / "step-1" / "policy.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1] + b"x")
    assert torch.equal(Agent.load(tmp_path).policy.value_head.weight, _policy("identity", seed=0).value_head.weight)
    assert "policy.safetensors" in caplog.text


def test_the_kind_of_array_that_comes_in_goes_out() -> None:
    agent = Agent(_policy("point"))
    assert isinstance(agent.predict(np.zeros(agent.spec.observation_space["vector"].shape or ()))[0], np.ndarray)
    rows = torch.zeros(2, *(agent.spec.observation_space["vector"].shape or ()))
    actions, state = agent.predict({"vector": rows}, deterministic=True)
    assert isinstance(actions, torch.Tensor)
    assert actions.shape == (2, *(agent.spec.action_space.shape or ()))
    assert state is None, "this policy remembers nothing"


def test_episode_starts_forget_and_drawn_actions_follow_the_seed() -> None:
    policy = _policy("recall", {"recurrent": {"size": 8}})
    agents = [Agent(policy, seed=seed) for seed in (5, 5, 6)]
    shape = policy.spec.observation_space["vector"].shape or ()
    frames = torch.randn(50, 3, *shape, generator=torch.Generator().manual_seed(0))
    draws = [torch.stack([agent.predict(frame)[0] for frame in frames]) for agent in agents]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    _, state = agents[0].predict(frames[0])
    _, fresh = agents[0].predict(frames[1])
    _, started = agents[0].predict(frames[1], state, np.array([True, False, True]))
    assert state is not None
    assert fresh is not None
    assert started is not None
    assert [torch.equal(fresh["recurrent.hidden"][row], started["recurrent.hidden"][row]) for row in range(3)] == [
        True, False, True,
    ]  # fmt: skip


def test_observations_of_another_world_are_refused_by_name_and_shape() -> None:
    agent = Agent(_policy("duel", {"recurrent": {"size": 4}}))
    with pytest.raises(ObservationError, match=r"duel-v1 has the shapes .*\(8,\).*got .*\(7,\)"):
        agent.predict(np.zeros(7))
    with pytest.raises(ObservationError, match=r"got .*2, 2, 8"):
        agent.predict(np.zeros((2, 2, 8)))
    with pytest.raises(ObservationError, match=r"vector.*pixels"):
        agent.predict({"pixels": np.zeros(8)})
    _, state = agent.predict(np.zeros((2, 8)))
    with pytest.raises(ObservationError, match="3 rows"):
        agent.predict(np.zeros((3, 8)), state)
    with pytest.raises(ObservationError, match="episode_start"):
        agent.predict(np.zeros((2, 8)), state, np.zeros(3, dtype=bool))


def test_another_world_is_refused() -> None:
    agent = Agent(_policy("duel"))
    agent.check_world(make_env("duel", 2).spec)
    with pytest.raises(StateError, match="it plays duel-v1, not rps-v1; use the world that it was made for"):
        agent.check_world(make_env("rps", 1).spec)


def test_a_device_that_is_not_here_is_named(tmp_path: Path) -> None:
    _save(tmp_path / "agent", _policy("identity"))
    with pytest.raises(DeviceError, match="nosuch"):
        Agent.load(tmp_path / "agent", "nosuch")
