"""On a CUDA device: the same bits as on the CPU, with random keys and with bots, across restarts."""

import pytest
import torch

from ludus.envs.registry import make_env
from ludus.worlds.brawl.bots import BOT_NAMES
from ludus.worlds.brawl.env import BrawlEnv

pytestmark = pytest.mark.cuda

GAMES = 130


def brawl(device: str, rules: str = "standard") -> BrawlEnv:
    settings = {"step_limit": 250, "rules": rules}
    env = make_env("brawl", GAMES, device, seed=12, config=settings)
    assert isinstance(env, BrawlEnv)
    return env


@pytest.mark.parametrize("rules", ["standard", "clash"])
@pytest.mark.parametrize("with_bots", [False, True])
def test_a_gpu_computes_the_same_bits_as_the_cpu(with_bots: bool, rules: str) -> None:
    envs = [brawl(device, rules) for device in ("cpu", "cuda")]
    names = (*BOT_NAMES, "habits")
    rosters = [env.bots(names) for env in envs]
    seats = torch.arange(GAMES * 2, dtype=torch.int32).view(GAMES, 2)
    assignment = (seats * 5 + seats // 13) % len(names)
    draw = torch.Generator().manual_seed(1)
    for step in range(700):
        drawn = torch.randint(0, 2, (GAMES, 2, 10), generator=draw, dtype=torch.int8)
        results, pressed = [], []
        for env, roster in zip(envs, rosters, strict=True):
            actions = drawn.to(env.device, copy=True)
            if with_bots:
                roster.act(assignment.to(env.device), actions)
            pressed.append(actions.cpu())
            results.append(env.step(actions))
        assert torch.equal(*pressed), step
        for name, tensor in envs[0].snapshot().items():
            assert torch.equal(tensor, envs[1].snapshot()[name].cpu()), (step, name)
        host, device = results
        assert torch.equal(host.observations["vector"], device.observations["vector"].cpu()), step
        assert torch.equal(host.terminated, device.terminated.cpu()), step
        ended, finals = host.terminated, [result.final_observations["vector"].cpu() for result in results]
        assert torch.equal(finals[0][ended], finals[1][ended]), step
        for name in host.events:
            assert torch.equal(host.events[name], device.events[name].cpu()), (step, name)


def test_a_snapshot_of_the_cpu_goes_on_on_the_gpu() -> None:
    host, device = brawl("cpu"), brawl("cuda")
    draw = torch.Generator().manual_seed(2)
    keys = torch.randint(0, 2, (200, GAMES, 2, 10), generator=draw, dtype=torch.int8)
    for step in range(100):
        host.step(keys[step])
    device.restore(host.snapshot())
    for step in range(100, 200):
        expected = host.step(keys[step]).observations["vector"]
        assert torch.equal(expected, device.step(keys[step].cuda()).observations["vector"].cpu()), step
    assert torch.equal(host.players, device.players.cpu())
