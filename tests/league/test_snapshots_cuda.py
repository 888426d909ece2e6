"""The league on a CUDA device: the games of the host, as graphs, without ever waiting for the device."""

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.league.payoffs import Payoffs
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.learner_batch import LearnerBatch

if TYPE_CHECKING:
    from tests.conftest import NoCudaSync

pytestmark = pytest.mark.cuda

GAMES, STEPS = 256, 24


def _play(
    device: str, no_cuda_sync: "NoCudaSync", *, cuda_graphs: bool, bfloat16: bool
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Returns actions, opponents and the learner's rows of every step."""
    env = make_env("duel", GAMES, device, config={"rounds": 5})
    policy = Policy(env.spec, PolicyConfig.model_validate({"recurrent": {"size": 16}, "bfloat16": bfloat16}), device)
    config = LeagueConfig(keep=5, recent_share=1.0, recent_window=100, live=3)
    opponents = LeagueOpponents(env, policy, {"cycle": 1.0, "self": 3.0}, config, seed=3, cuda_graphs=cuda_graphs)
    rows = LearnerBatch(env, opponents.learner)
    opponents.attach(rows)
    for action in range(3):
        state = {name: torch.zeros_like(tensor) for name, tensor in policy.state().items()}
        state["parameter.head.linear.bias"][action] = 1e4  # it plays one move, whatever the noise
        opponents.add_snapshot(f"s{action}", action, state)
    opponents.refresh(Payoffs())
    opponents.restart()
    observations, seen = env.reset(), []
    actions = torch.zeros((GAMES, 2), dtype=torch.int64, device=device)
    for t in range(STEPS):
        # The first two steps load libraries and record the graphs.
        with no_cuda_sync() if t >= 2 and device == "cuda" else nullcontext():
            actions.zero_()
            opponents.act(observations, actions)
            result = env.step(actions)
            opponents.after_step(result)
        seen.append((actions.cpu().clone(), opponents.opponents.cpu().clone(), rows.index.cpu().clone()))
        observations = result.observations
    return seen


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("cuda_graphs", [False, True])
def test_a_gpu_plays_what_the_host_plays(cuda_graphs: bool, bfloat16: bool, no_cuda_sync: "NoCudaSync") -> None:
    on_host = _play("cpu", no_cuda_sync, cuda_graphs=False, bfloat16=False)
    on_device = _play("cuda", no_cuda_sync, cuda_graphs=cuda_graphs, bfloat16=bfloat16)
    for host, device in zip(on_host, on_device, strict=True):
        for ours, theirs in zip(host, device, strict=True):
            assert torch.equal(ours, theirs)
    assert len(set(on_host[-1][1].tolist())) == 4
