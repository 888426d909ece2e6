"""What the policy sees and learns: its observation, the opponent's history, gradients into every parameter."""

import pytest
import torch
from tests.strategies import TINY_STRATEGY

from ludus.core.errors import ConfigError
from ludus.nn.recurrent import RecurrentConfig
from ludus.nn.strategy import StrategyConfig
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

STEPS, ROWS = 12, 6


def _policy(policy_kind: tuple[str, PolicyConfig], make_arena: type) -> tuple[Policy, dict[str, torch.Tensor]]:
    name, config = policy_kind
    env = make_arena(ROWS // 2, picture=name.startswith("cnn"))
    torch.manual_seed(0)
    frames = [env.reset() for _ in range(STEPS)]
    observations = {key: torch.stack([frame[key].flatten(0, 1) for frame in frames]) for key in frames[0]}
    return Policy(env.spec, config), observations


def test_replacing_the_current_observation_changes_the_actions(
    policy_kind: tuple[str, PolicyConfig], make_arena: type
) -> None:
    policy, observations = _policy(policy_kind, make_arena)
    episode_starts = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    memory = policy.initial(ROWS)
    parameters = policy.action_parameters(observations, memory, episode_starts)
    noisy = {name: tensor.clone() for name, tensor in observations.items()}
    noisy["vector"][-1, :, :6] = torch.randn(ROWS, 6)  # the own block alone, which no strategy encoder sees
    change = (policy.action_parameters(noisy, memory, episode_starts) - parameters).abs()
    assert change[-1].amax(dim=-1).min() > 1e-5
    assert change[:-1].max() == 0.0


@pytest.mark.parametrize("loss", ["policy", "value"])
def test_gradients_reach_every_parameter(policy_kind: tuple[str, PolicyConfig], make_arena: type, loss: str) -> None:
    policy, observations = _policy(policy_kind, make_arena)
    episode_starts = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    actions = torch.randint(0, 2, (STEPS, ROWS, 4), dtype=torch.int8)
    evaluation = policy.unroll(observations, policy.initial(ROWS), episode_starts, actions)
    (evaluation.log_probs if loss == "policy" else evaluation.values).sum().backward()  # type: ignore[no-untyped-call]
    other: tuple[str, ...] = ("critic", "memory.critic", "value_head") if loss == "policy" else ("actor", "head.")
    if policy.memory.critic_recurrent is not None and loss == "value":
        other = (*other, "memory.recurrent.")
    for name, parameter in policy.named_parameters():
        if name.startswith(other):
            assert parameter.grad is None, name
        else:
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0.0, name


_SKIP = PolicyConfig(strategy=TINY_STRATEGY, recurrent=RecurrentConfig(size=16, skip=True))
_SCALED = _SKIP.model_copy(update={"recurrent": RecurrentConfig(size=16, skip=True, memory_feature_scale=0.25)})


def test_a_scaled_memory_beside_the_observation_starts_unused(make_arena: type) -> None:
    policy, observations = _policy(("", _SCALED), make_arena)
    episode_starts = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    memory = policy.initial(ROWS)
    parameters = policy.action_parameters(observations, memory, episode_starts)
    first = policy.actor.layers[0]
    assert isinstance(first, torch.nn.Linear)
    # 16 features of the memory, 12 of the observation, 64 of the strategy latent.
    hidden = torch.tanh(observations["vector"] @ first.weight[:, 16:28].t() + first.bias)
    for layer in list(policy.actor.layers)[1:]:
        hidden = torch.tanh(layer(hidden))
    torch.testing.assert_close(parameters, policy.head(hidden))
    torch.testing.assert_close(first.weight[:, 16:28].t() @ first.weight[:, 16:28], 2.0 * torch.eye(12))
    for network in (policy.actor, policy.critic):
        weight = network.layers[0].weight
        assert isinstance(weight, torch.Tensor)
        assert weight[:, :16].abs().max() == 0.0
        assert weight[:, 28:].abs().max() == 0.0
        assert weight[:, 16:28].abs().min() > 0.0


def test_the_skip_scale_multiplies_memory_alone(make_arena: type) -> None:
    policy, observations = _policy(("", _SKIP), make_arena)
    scaled = Policy(policy.spec, _SCALED)
    episode_starts = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    state = policy.state()
    for name in ("parameter.actor.layers.0.weight", "parameter.critic.layers.0.weight"):
        state[name].normal_(generator=torch.Generator().manual_seed(0))
    policy.load_state(state)
    for name in ("parameter.actor.layers.0.weight", "parameter.critic.layers.0.weight"):
        state[name][:, :16] *= 4.0
    scaled.load_state(state)
    actions = torch.zeros(STEPS, ROWS, 4, dtype=torch.int8)
    ours, theirs = (p.unroll(observations, p.initial(ROWS), episode_starts, actions) for p in (scaled, policy))
    torch.testing.assert_close(ours, theirs)


def test_the_opponents_history_changes_the_latent(make_arena: type) -> None:
    config = StrategyConfig(layers=1, heads=2, width=16, window=9)
    policy, observations = _policy(("", PolicyConfig(strategy=config)), make_arena)
    episode_starts = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    latent = policy.strategy_latent(observations, policy.initial(ROWS), episode_starts)
    history = {"vector": observations["vector"].clone()}
    history["vector"][-4, :, 6:] += 1.0  # three frames ago
    changed = policy.strategy_latent(history, policy.initial(ROWS), episode_starts)
    assert (changed - latent)[-1].abs().max() > 1e-5
    assert torch.equal(changed[:-4], latent[:-4])
    own = {"vector": observations["vector"].clone()}
    own["vector"][:, :, :6] += 1.0  # the own block is none of its business
    assert torch.equal(policy.strategy_latent(own, policy.initial(ROWS), episode_starts), latent)
    assert set(policy.attention(observations, policy.initial(ROWS), episode_starts)) == {"layer0", "pooling"}


def test_a_block_that_the_world_lacks_is_refused(make_arena: type) -> None:
    with pytest.raises(ConfigError, match="valid: self, opponent"):
        Policy(make_arena(1).spec, PolicyConfig(strategy=StrategyConfig(block="enemy")))
    with pytest.raises(ConfigError, match="valid: vector"):
        Policy(make_arena(1).spec, PolicyConfig(strategy=StrategyConfig(entry="pixels")))
    with pytest.raises(ConfigError, match="no strategy encoder"):
        Policy(make_arena(1).spec, PolicyConfig()).attention({}, {}, torch.zeros(1, 1, dtype=torch.bool))
