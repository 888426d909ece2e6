"""Policies with masks, factors that do not always count, and exploration: all entrances, files and other forms."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ludus import make_env
from ludus.core.errors import ConfigError, ObservationError, StateError, UnsupportedError
from ludus.envs.base import ActionKinds, EnvSpec
from ludus.envs.spaces import are_allowed
from ludus.nn.distributions import MultiCategoricalHead
from ludus.nn.heads import MaskedCategoricalHead
from ludus.policies.agent import DOCUMENT, Agent, agent_checkpoint
from ludus.policies.config import ExplorationConfig, PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy
from ludus.policies.stacked import StackedPolicy
from ludus.store import save_checkpoint

pytestmark = pytest.mark.train

ROWS, STEPS = 12, 10
EXPLORING = PolicyConfig.model_validate({"exploration": {"frequency": 0.5}, "net_arch": {"pi": [16], "vf": [16]}})
SPEC = make_env("dig-v1", 1).spec


def _policy(config: PolicyConfig = EXPLORING, seed: int = 0) -> Policy:
    torch.manual_seed(seed)
    policy = Policy(SPEC, config)
    for parameter in policy.head.parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)  # heads start nearly even
    return policy


def _frames(seed: int = 0, rows: int = ROWS) -> dict[str, Tensor]:
    env = make_env("dig-v1", rows, seed=seed)
    return {name: tensor[:, 0] for name, tensor in env.reset().items()}


def _episode_starts(rows: int = ROWS) -> Tensor:
    return torch.zeros(rows, dtype=torch.bool)


@pytest.mark.parametrize("memory", [{}, {"recurrent": {"size": 8}}])
@pytest.mark.parametrize("explore", [False, True])
def test_step_and_unroll_agree(memory: dict[str, Any], explore: bool) -> None:
    settings = {"net_arch": {"pi": [16], "vf": [16]}, **({"exploration": {"frequency": 0.5}} if explore else {})}
    policy = _policy(PolicyConfig.model_validate(settings | memory))
    generator = torch.Generator().manual_seed(1)
    noise = policy.draw_noise(STEPS, ROWS, generator, explore=True)
    assert noise.shape == (STEPS, ROWS, 5 if explore else 3)
    frames = [_frames(seed) for seed in range(STEPS)]
    before, steps = policy.initial(ROWS), []
    state = policy.initial(ROWS)
    for frame, drawn in zip(frames, noise, strict=True):
        steps.append(policy.step(frame, state, _episode_starts(), drawn))
        state = steps[-1].memory
        assert are_allowed(SPEC.choices, frame["mask"], steps[-1].actions).all()
    observations = {name: torch.stack([frame[name] for frame in frames]) for name in frames[0]}
    actions = torch.stack([step.actions for step in steps])
    found = policy.unroll(observations, before, torch.zeros(STEPS, ROWS, dtype=torch.bool), actions)
    torch.testing.assert_close(found.log_probs, torch.stack([step.log_probs for step in steps]), atol=2e-6, rtol=1e-5)
    assert found.entropies.isfinite().all()


def test_plain_noise_plays_without_exploration() -> None:
    plain, exploring = _policy(PolicyConfig(net_arch=EXPLORING.net_arch)), _policy()
    exploring.load_state(plain.state())  # exploration has no parameters of its own
    frames, noise = _frames(), plain.draw_noise(1, ROWS, torch.Generator().manual_seed(0))[0]
    ours, theirs = (policy.step(frames, {}, _episode_starts(), noise) for policy in (exploring, plain))
    assert torch.equal(ours.actions, theirs.actions)
    assert torch.equal(ours.log_probs, theirs.log_probs)
    assert torch.equal(
        exploring.step(frames, {}, _episode_starts()).actions, plain.step(frames, {}, _episode_starts()).actions
    )
    with pytest.raises(ConfigError, match=r"set policy\.exploration"):
        plain.explore(ExplorationConfig(), 0.0)


def test_schedules_decide_how_often_it_explores() -> None:
    policy = _policy()
    assert policy.mixture is not None
    assert policy.mixture.rates.tolist() == pytest.approx([0.5, 0.2])
    config = ExplorationConfig.model_validate({"frequency": {"kind": "linear", "start": 0.8, "end": 0.1}})
    for progress, expected in ((0.0, 0.8), (0.5, 0.45), (1.0, 0.1)):
        policy.explore(config, progress)
        assert policy.mixture.rates[0].item() == pytest.approx(expected)
    policy.explore(None, 0.0)
    assert policy.mixture.rates.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match=r"frequency\n.*0 and 1.*0\.5 to -1"):
        ExplorationConfig.model_validate({"frequency": {"kind": "linear", "start": 0.5, "end": -1.0}})


def test_the_mask_is_fed_to_the_networks_only_if_wanted() -> None:
    blind = _policy()
    seeing = _policy(EXPLORING.model_copy(update={"sees_action_mask": True}))
    assert blind.observations.output_size == 7
    assert seeing.observations.output_size == 17
    frames = _frames()
    other = frames | {"mask": torch.ones_like(frames["mask"])}
    assert torch.equal(blind.value(frames, {}, _episode_starts()), blind.value(other, {}, _episode_starts()))
    assert not torch.equal(seeing.value(frames, {}, _episode_starts()), seeing.value(other, {}, _episode_starts()))
    alone = EnvSpec(
        name="alone", version=1, teams=(0,), action_space=spaces.Discrete(2), rate_hz=1.0, step_limit=None,
        observation_space=spaces.Dict({"mask": spaces.Box(0, 1, (2,), np.int8)}), actions=ActionKinds(mask="mask"),
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"set policy\.sees_action_mask"):
        Policy(alone, PolicyConfig())
    assert Policy(alone, PolicyConfig(sees_action_mask=True)).observations.output_size == 2


def test_worlds_that_say_nothing_keep_their_plain_heads() -> None:
    spec = EnvSpec(
        name="plain", version=1, teams=(0,), action_space=spaces.MultiDiscrete([2, 3]), rate_hz=1.0, step_limit=None,
        observation_space=spaces.Dict({"vector": spaces.Box(0.0, 1.0, (2,), np.float32)}),
    )  # fmt: skip
    assert type(Policy(spec, PolicyConfig()).head) is MultiCategoricalHead
    assert type(Policy(spec, EXPLORING).head) is MaskedCategoricalHead
    with pytest.raises(UnsupportedError, match="choices"):
        Policy(make_env("point-v1", 1).spec, EXPLORING)


def test_snapshots_are_stacked_and_do_not_explore() -> None:
    policies = {slot: _policy(seed=slot) for slot in range(3)}
    stacked = StackedPolicy(policies[0], 3)
    for slot, policy in policies.items():
        stacked.load(slot, policy.state())
    slots = torch.arange(ROWS) % 3
    stacked.choose(slots)
    frames, noise = _frames(), stacked.draw_noise(1, ROWS, torch.Generator().manual_seed(0))[0]
    assert noise.shape == (ROWS, 3)
    step = stacked.step(frames, {}, _episode_starts(), noise)
    for slot, policy in policies.items():
        own, rows = policy.step(frames, {}, _episode_starts(), noise), slots == slot
        assert torch.equal(step.actions[rows], own.actions[rows])
        torch.testing.assert_close(step.log_probs[rows], own.log_probs[rows], atol=1e-5, rtol=1e-5)


def _save(folder: Path, policy: Policy, without: tuple[str, ...] = ()) -> Path:
    checkpoint = agent_checkpoint(policy.spec, policy.config, policy.state())
    document: Any = checkpoint.documents[DOCUMENT]
    for name in without:
        document.pop(name, None)
        document["config"].pop(name, None)
    save_checkpoint(folder, checkpoint)
    return folder


def test_an_agent_comes_back_with_its_choices_and_keeps_to_masks(tmp_path: Path) -> None:
    policy = _policy()
    agent = Agent.load(_save(tmp_path / "agent", policy))
    assert agent.spec.actions.uses == SPEC.actions.uses
    assert agent.spec.actions.exploratory == (2, 3)
    assert agent.policy.config == policy.config
    agent.check_world(SPEC)
    frames = _frames(rows=200)
    seen = {name: tensor.numpy() for name, tensor in frames.items()}
    for deterministic in (False, True):
        actions, _ = agent.predict(seen, deterministic=deterministic)
        assert are_allowed(SPEC.choices, frames["mask"], torch.as_tensor(actions)).all()
    only_rest = np.zeros((200, 10))
    only_rest[:, 0] = 1
    for observation in (seen, seen["vector"]):
        actions, _ = agent.predict(observation, action_masks=only_rest)
        assert not actions.any()
    one, _ = agent.predict(seen["vector"][0], action_masks=only_rest[0])
    assert one.tolist() == [0, 0, 0]


def test_masks_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    agent = Agent.load(_save(tmp_path / "agent", _policy()))
    vector = np.zeros((2, 7), dtype=np.float32)
    with pytest.raises(ObservationError, match=r"mask, vector.*vector"):
        agent.predict({"vector": vector})
    with pytest.raises(ObservationError, match="has the shapes"):
        agent.predict(vector, action_masks=np.ones((2, 9)))
    with pytest.raises(ObservationError, match="leave out action_masks"):
        Agent(Policy(make_env("identity-v1", 1).spec, PolicyConfig())).predict(
            np.zeros(4, dtype=np.float32), action_masks=np.ones(4)
        )
    other = Agent(Policy(make_env("dig-v1", 1, config={"rows": 4}).spec, PolicyConfig()))
    with pytest.raises(StateError, match="does not fit the world"):
        other.check_world(SPEC)


def test_a_description_with_an_unknown_key_is_refused() -> None:
    policy = Policy(make_env("identity-v1", 1).spec, PolicyConfig())
    document: Any = agent_checkpoint(policy.spec, policy.config, policy.state()).documents[DOCUMENT]
    with pytest.raises(ConfigError, match=r"format.*version"):
        PolicyDescription.read(document | {"format": 99})


def test_onnx_files_keep_to_masks(tmp_path: Path) -> None:
    onnxruntime: Any = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from ludus.policies.export import write_onnx

    policy = _policy().eval()
    write_onnx(Agent(policy), tmp_path / "agent.onnx")
    session = onnxruntime.InferenceSession((tmp_path / "agent.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    frames = _frames(rows=64)
    fed = {f"observation.{name}": tensor.numpy() for name, tensor in frames.items()}
    wanted = {given.name for given in session.get_inputs()}
    fed |= {"starts": np.zeros(64, dtype=bool)}
    actions, parameters = session.run(["actions", "parameters"], {name: fed[name] for name in wanted})
    assert np.array_equal(actions, policy.step(frames, {}, _episode_starts(64)).actions.numpy())
    assert np.array_equal(parameters == np.float32(-1e30), ~frames["mask"].numpy())
