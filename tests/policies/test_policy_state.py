"""A policy's state goes round, holds its statistics, and refuses what does not fit."""

import pytest
import torch

from ludus.core.errors import StateError
from ludus.policies.config import NetArch, PolicyConfig
from ludus.policies.policy import Policy


def test_state_goes_round(policy_kind: tuple[str, PolicyConfig], make_arena: type) -> None:
    name, config = policy_kind
    env = make_arena(2, picture=name.startswith("cnn"))
    torch.manual_seed(1)
    policy, other = Policy(env.spec, config), Policy(env.spec, config)
    frame = {key: tensor.flatten(0, 1) for key, tensor in env.reset().items()}
    policy.observe({key: tensor.float() * 3.0 for key, tensor in frame.items()})
    episode_starts = torch.ones(4, dtype=torch.bool)
    assert not torch.equal(
        policy.step(frame, policy.initial(4), episode_starts).values,
        other.step(frame, other.initial(4), episode_starts).values,
    )
    other.load_state(policy.state())
    assert torch.equal(
        policy.step(frame, policy.initial(4), episode_starts).values,
        other.step(frame, other.initial(4), episode_starts).values,
    )
    assert ("normaliser.observations.normalisers.vector.mean" in policy.state()) == config.normalize.observations


def test_evaluation_freezes_the_statistics(make_arena: type) -> None:
    config = PolicyConfig.model_validate({"normalize": {"observations": True}})
    policy = Policy(make_arena(1).spec, config).eval()
    before = policy.state()
    policy.observe({"vector": torch.randn(10, 12)})
    after = policy.state()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_state_is_a_copy(make_arena: type) -> None:
    policy = Policy(make_arena(1).spec, PolicyConfig())
    state = policy.state()
    with torch.no_grad():
        policy.value_head.bias.fill_(7.0)
    assert state["parameter.value_head.bias"] == 0.0


def test_state_of_another_policy_is_refused(make_arena: type) -> None:
    spec = make_arena(1).spec
    policy = Policy(spec, PolicyConfig())
    with pytest.raises(StateError, match="expected"):
        policy.load_state(Policy(spec, PolicyConfig(net_arch=NetArch(pi=(32, 64)))).state())
    with pytest.raises(StateError, match=r"'parameter\.actor\.layers\.1\.bias'.* is missing"):
        policy.load_state(Policy(spec, PolicyConfig(net_arch=NetArch(pi=(64,)))).state())
