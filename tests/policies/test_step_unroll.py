"""`step` and `unroll` are the same function, for every kind of memory and with episode ends anywhere."""

import pytest
import torch
from torch import Tensor

from ludus.envs.base import BatchedEnv
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy, clone_recurrent_state, reset_recurrent_state

pytestmark = pytest.mark.train

STEPS, BEFORE, ROWS = 32, 20, 6


def _draw(env: BatchedEnv, steps: int) -> list[dict[str, Tensor]]:
    return [{name: tensor.flatten(0, 1).clone() for name, tensor in env.reset().items()} for _ in range(steps)]


@pytest.mark.parametrize("start_chance", [0.0, 0.15, 1.0])
def test_step_equals_unroll(policy_kind: tuple[str, PolicyConfig], make_arena: type, start_chance: float) -> None:
    name, config = policy_kind
    env = make_arena(ROWS // 2, picture=name.startswith("cnn"))
    torch.manual_seed(0)
    policy = Policy(env.spec, config)
    generator = torch.Generator().manual_seed(1)
    frames = _draw(env, BEFORE + STEPS)
    policy.observe(frames[0])
    episode_starts = torch.rand(BEFORE + STEPS, ROWS, generator=generator) < start_chance
    noise = policy.draw_noise(BEFORE + STEPS, ROWS, generator)
    memory, steps = policy.initial(ROWS), []
    stored = memory
    for t, frame in enumerate(frames):
        if t == BEFORE:
            stored = clone_recurrent_state(memory)
        step = policy.step(frame, memory, episode_starts[t], noise[t])
        memory = step.memory
        # Asking for the value of another frame in between must leave no trace.
        policy.value(frames[t - 1], memory, torch.zeros(ROWS, dtype=torch.bool))
        steps.append(step)
    observations = {key: torch.stack([frame[key] for frame in frames[BEFORE:]]) for key in frames[0]}
    actions = torch.stack([step.actions for step in steps[BEFORE:]])
    evaluation = policy.unroll(observations, stored, episode_starts[BEFORE:], actions)
    torch.testing.assert_close(
        evaluation.log_probs, torch.stack([step.log_probs for step in steps[BEFORE:]]), atol=2e-6, rtol=1e-5
    )
    torch.testing.assert_close(
        evaluation.values, torch.stack([step.values for step in steps[BEFORE:]]), atol=2e-6, rtol=1e-5
    )


def test_a_start_is_the_same_as_a_fresh_memory(policy_kind: tuple[str, PolicyConfig], make_arena: type) -> None:
    name, config = policy_kind
    env = make_arena(ROWS // 2, picture=name.startswith("cnn"))
    policy = Policy(env.spec, config)
    memory = policy.initial(ROWS)
    nothing, everything = torch.zeros(ROWS, dtype=torch.bool), torch.ones(ROWS, dtype=torch.bool)
    for frame in _draw(env, 5):
        memory = policy.step(frame, memory, nothing).memory
    frame = _draw(env, 1)[0]
    some = torch.arange(ROWS) % 2 == 0
    by_start = policy.step(frame, clone_recurrent_state(memory), some)
    by_mask = policy.step(frame, reset_recurrent_state(memory, policy.initial(ROWS), some), nothing)
    fresh = policy.step(frame, policy.initial(ROWS), everything)
    torch.testing.assert_close(by_start.values, by_mask.values)
    torch.testing.assert_close(by_start.values[some], fresh.values[some])
    if policy.has_memory:
        assert (by_start.values[~some] - fresh.values[~some]).abs().max() > 1e-6


def test_without_noise_it_takes_the_most_likely_action(make_arena: type) -> None:
    policy = Policy(make_arena(3).spec, PolicyConfig())
    frame = _draw(make_arena(3), 1)[0]
    episode_starts = torch.zeros(6, dtype=torch.bool)
    step = policy.step(frame, {}, episode_starts)
    parameters = policy.action_parameters({"vector": frame["vector"].unsqueeze(0)}, {}, episode_starts.unsqueeze(0))
    assert torch.equal(step.actions, (parameters[0] > 0).to(torch.int8))
