"""Stacked policies on a CUDA device: in both precisions, as graphs, and without ever waiting for the device."""

from typing import TYPE_CHECKING, Any

import pytest
import torch

from ludus import make_env
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.policies.stacked import StackedPolicy
from ludus.rollout.inference import make_inference

if TYPE_CHECKING:
    from tests.conftest import NoCudaSync

pytestmark = pytest.mark.cuda

ROWS, SLOTS, STEPS = 300, 40, 12
STRATEGY = {"layers": 2, "heads": 2, "width": 32, "feedforward": 64, "window": 9}
KINDS: dict[str, dict[str, Any]] = {
    "mlp": {"normalize": {"observations": True}},
    "lstm": {"recurrent": {"size": 32}},
    "streaming": {"strategy": STRATEGY, "recurrent": {"size": 32}},
    "encoder": {"strategy": STRATEGY},
}


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_stacked_graph_equals_each_snapshots_own_step(kind: str, bfloat16: bool, no_cuda_sync: "NoCudaSync") -> None:
    spec = make_env("duel-v1", 1, "cuda").spec
    config = PolicyConfig.model_validate(KINDS[kind] | {"bfloat16": bfloat16})
    torch.manual_seed(0)
    policies = {slot: Policy(spec, config, "cuda") for slot in (0, 7, 39)}
    stacked = StackedPolicy(policies[0], SLOTS)
    for slot, policy in policies.items():
        stacked.load(slot, policy.state())
    generator = torch.Generator("cuda").manual_seed(0)
    inference = make_inference(stacked, ROWS, cuda_graphs=True)
    memory, memories = stacked.initial(ROWS), {slot: policy.initial(ROWS) for slot, policy in policies.items()}
    choices = torch.tensor([0, 7, 39, -1], device="cuda")
    slots = torch.full((ROWS,), -1, device="cuda")
    tolerance = 3e-2 if bfloat16 else 1e-4
    for t in range(STEPS):
        episode_starts = torch.rand(ROWS, generator=generator, device="cuda") < (1.0 if t == 0 else 0.2)
        drawn = choices[torch.randint(0, 4, (ROWS,), generator=generator, device="cuda")]
        slots = torch.where(episode_starts, drawn, slots)
        frames = {"vector": torch.randn(ROWS, 8, generator=generator, device="cuda")}
        noise = stacked.draw_noise(1, ROWS, generator)[0]
        if t < 2:  # the first calls load libraries and record the graph
            stacked.choose(slots)
            step = inference.step(frames, memory, episode_starts, noise)
        else:
            with no_cuda_sync():
                stacked.choose(slots)
                step = inference.step(frames, memory, episode_starts, noise)
        memory = step.memory
        assert all(tensor.isfinite().all() for tensor in memory.values())
        for slot, policy in policies.items():
            own = policy.step(frames, memories[slot], episode_starts, noise)
            memories[slot] = own.memory
            rows = (slots == slot) & (own.actions == step.actions)  # noise near a border may fall to either side
            assert rows.sum() >= 0.95 * (slots == slot).sum()
            torch.testing.assert_close(step.log_probs[rows], own.log_probs[rows], atol=tolerance, rtol=tolerance)
            torch.testing.assert_close(step.values[rows], own.values[rows], atol=tolerance, rtol=tolerance)
