"""On a CUDA device: the same bits as on the CPU, with random controls and with bots, across restarts and kickoffs."""

from typing import Any

import pytest
import torch

from ludus.envs.base import action_dtypes
from ludus.envs.registry import make_env
from ludus.worlds.rocket.bots import BOT_NAMES
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.rules import SETTERS

pytestmark = pytest.mark.cuda

GAMES = 130
SETTINGS: dict[str, dict[str, Any]] = {
    "goals": {"mode": "2v2", "setters": dict.fromkeys(SETTERS, 1.0), "no_touch_s": 6.0},
    "matches": {"mode": "1v2", "episode": "match", "match_s": 12.0},
    "pairs": {"actions": "continuous", "episode_s": 9.0, "setters": {"random": 1.0}},
}


def rocket(device: str, settings: dict[str, Any]) -> RocketEnv:
    env = make_env("rocket", GAMES, device, seed=12, config=settings)
    assert isinstance(env, RocketEnv)
    return env


@pytest.mark.parametrize("name", SETTINGS)
def test_a_gpu_computes_the_same_bits_as_the_cpu(name: str) -> None:
    envs = [rocket("cpu", SETTINGS[name]), rocket("cuda", SETTINGS[name])]
    rosters = [env.bots(BOT_NAMES) for env in envs]
    seats = torch.arange(GAMES * envs[0].spec.seats, dtype=torch.int32).view(GAMES, -1)
    assignment = (seats * 5 + seats // 13) % len(BOT_NAMES)
    for step in range(250):
        results, chosen = [], []
        for env, roster in zip(envs, rosters, strict=True):
            space = env.spec.action_space
            shape, dtype = (GAMES, env.spec.seats, *(space.shape or ())), action_dtypes(space)[0]
            actions = torch.zeros(shape, dtype=dtype, device=env.device)
            roster.act(assignment.to(env.device), actions)
            chosen.append(actions.cpu())
            results.append(env.step(actions))
        assert torch.equal(*chosen), step
        for key, tensor in envs[0].snapshot().items():
            assert torch.equal(tensor, envs[1].snapshot()[key].cpu()), (step, key)
        host, device = results
        assert torch.equal(host.observations["vector"], device.observations["vector"].cpu()), step
        assert torch.equal(host.terminated, device.terminated.cpu()), step
        assert torch.equal(host.truncated, device.truncated.cpu()), step
        for key in host.events:
            assert torch.equal(host.events[key], device.events[key].cpu()), (step, key)
        for key in host.state_metrics:
            assert torch.equal(host.state_metrics[key], device.state_metrics[key].cpu()), (step, key)


def test_a_snapshot_of_the_cpu_goes_on_on_the_gpu() -> None:
    host, device = (rocket(name, {"actions": "continuous"}) for name in ("cpu", "cuda"))
    controls = torch.rand((60, GAMES, 2, 8), generator=torch.Generator().manual_seed(2)) * 2 - 1
    for step in range(30):
        host.step(controls[step])
    device.restore(host.snapshot())
    for step in range(30, 60):
        host.step(controls[step])
        device.step(controls[step].cuda())
    assert torch.equal(host.cars, device.cars.cpu())
