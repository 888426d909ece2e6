"""The league on a CUDA device: the games of the host, as graphs, without ever waiting for the device."""

import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.algorithms.ppo.seats import Rows
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.league.payoffs import Payoffs
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore:Synchronization debug mode"),
]

GAMES, STEPS = 256, 24


def _play(device: str, *, cuda_graphs: bool, bfloat16: bool) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Returns actions, opponents and the learner's rows of every step."""
    env = make_env("duel", GAMES, device, config={"rounds": 5})
    policy = Policy(env.spec, PolicyConfig.model_validate({"recurrent": {"size": 16}, "bfloat16": bfloat16}), device)
    config = LeagueConfig(keep=5, sampler="uniform", live=3)
    opponents = LeagueOpponents(env, policy, {"cycle": 1.0, "self": 3.0}, config, seed=3, cuda_graphs=cuda_graphs)
    rows = Rows(env, opponents.learner)
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
        if t == 2 and device == "cuda":  # by now libraries are loaded and graphs recorded
            torch.cuda.set_sync_debug_mode("error")
        try:
            actions.zero_()
            opponents.act(observations, actions)
            result = env.step(actions)
            opponents.after_step(result)
        finally:
            if device == "cuda":
                torch.cuda.set_sync_debug_mode("default")
        seen.append((actions.cpu().clone(), opponents.opponents.cpu().clone(), rows.index.cpu().clone()))
        observations = result.observations
    return seen


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("cuda_graphs", [False, True])
def test_a_gpu_plays_what_the_host_plays(cuda_graphs: bool, bfloat16: bool) -> None:
    on_host = _play("cpu", cuda_graphs=False, bfloat16=False)
    on_device = _play("cuda", cuda_graphs=cuda_graphs, bfloat16=bfloat16)
    for host, device in zip(on_host, on_device, strict=True):
        for ours, theirs in zip(host, device, strict=True):
            assert torch.equal(ours, theirs)
    assert len(set(on_host[-1][1].tolist())) == 4
