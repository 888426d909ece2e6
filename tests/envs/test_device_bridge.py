"""Games on one device, tensors on another: the same games, to the last bit."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.core.errors import ActionError, DeviceError
from ludus.envs.base import BatchedEnv, StepResult, action_dtypes
from ludus.envs.device_bridge import DeviceBridge
from ludus.envs.registry import make_env

# Vectors and pictures, one and two teams, with and without bots, metrics and snapshots.
WORLDS: dict[str, dict[str, Any]] = {
    "duel": {},
    "mimic": {"episode_s": 0.2, "physics": "mujoco"},
    "city": {"steps": 4},
    "gym:CartPole-v1": {},
}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


def bridged(world: str, games: int, device: str, **options: Any) -> tuple[BatchedEnv, DeviceBridge]:
    config = WORLDS[world] or None
    bare = make_env(world, games, config=config, **options)
    return bare, DeviceBridge(make_env(world, games, config=config, **options), device)


def random_actions(env: BatchedEnv, generator: torch.Generator) -> Tensor:
    space = env.spec.action_space
    shape = (env.num_envs, env.spec.seats, *(space.shape or ()))
    space.seed(int(torch.randint(2**31, (), generator=generator)))
    rows = [torch.as_tensor(space.sample()) for _ in range(env.num_envs * env.spec.seats)]
    return torch.stack(rows).view(shape).to(action_dtypes(space)[0])


def assert_equal_steps(own: StepResult, other: StepResult) -> None:
    for name, tensor in own.observations.items():
        torch.testing.assert_close(other.observations[name].cpu(), tensor, rtol=0.0, atol=0.0)
    assert torch.equal(own.terminated, other.terminated.cpu())
    assert torch.equal(own.truncated, other.truncated.cpu())
    assert other.any_truncated == bool(own.truncated.any())
    for kind in ("events", "state_metrics"):
        mine, theirs = getattr(own, kind), getattr(other, kind)
        assert tuple(mine) == tuple(theirs)
        for name in mine:
            torch.testing.assert_close(theirs[name].cpu(), mine[name], rtol=0.0, atol=0.0, equal_nan=True)
    ended = own.ended
    for name, tensor in own.final_observations.items():
        assert torch.equal(other.final_observations[name].cpu()[ended], tensor[ended])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("world", WORLDS)
def test_it_plays_the_same_games(world: str, device: str) -> None:
    bare, bridge = bridged(world, 3, device, seed=7, first_game=2)
    generator, ended = torch.Generator().manual_seed(1), 0
    with bare, bridge:
        assert (bridge.seed, bridge.first_game, bridge.games_device.type) == (7, 2, "cpu")
        assert bridge.device.type == device
        first, second = bare.reset(), bridge.reset()
        assert all(torch.equal(second[name].cpu(), tensor) for name, tensor in first.items())
        for _ in range(30):
            actions = random_actions(bare, generator)
            own = bare.step(actions)
            assert_equal_steps(own, bridge.step(actions.to(bridge.device)))
            ended += int(own.ended.sum())
        assert ended, "no game ended: the test does not see final observations"
        first, second = bare.reset(seed=11), bridge.reset(seed=11)
        assert bridge.seed == 11
        assert all(torch.equal(second[name].cpu(), tensor) for name, tensor in first.items())


@pytest.mark.parametrize("device", DEVICES)
def test_bots_masks_and_snapshots_pass_through(device: str) -> None:
    bare, bridge = bridged("duel", 4, device, seed=3)
    with bare, bridge:
        name = bare.spec.bots[0]
        own, other = bare.bots([name]), bridge.bots([name])
        assert own.names == other.names
        assignment = torch.tensor([[0, -1]] * 4, dtype=torch.int32)
        bare.reset(), bridge.reset()
        for step in range(12):
            if step == 6:
                kept = bridge.snapshot()
            actions = torch.zeros((4, 2, *(bare.spec.action_space.shape or ())), dtype=torch.int64)
            there = actions.to(bridge.device)
            own.act(assignment, actions)
            other.act(assignment.to(bridge.device), there)
            assert torch.equal(actions, there.cpu())
            result = bridge.step(there)
            assert_equal_steps(bare.step(actions), result)
        last = {entry: tensor.cpu().clone() for entry, tensor in result.observations.items()}
        bridge.restore(kept)
        for _ in range(6):
            there = torch.zeros_like(there)
            other.act(assignment.to(bridge.device), there)
            result = bridge.step(there)
        assert all(torch.equal(result.observations[entry].cpu(), tensor) for entry, tensor in last.items())
        mask = torch.tensor([True, False, False, True])
        seen, there_seen = bare.reset(mask), bridge.reset(mask.to(bridge.device))
        assert seen.keys() == there_seen.keys()


@pytest.mark.parametrize("device", DEVICES)
def test_wrong_calls_are_refused(device: str) -> None:
    _, bridge = bridged("gym:CartPole-v1", 2, device)
    with bridge:
        bridge.reset()
        with pytest.raises(ActionError, match=r"bool mask of shape \(2,\)"):
            bridge.reset(torch.tensor([1, 0]))
        with pytest.raises(ActionError, match="must have shape"):
            bridge.step(torch.zeros((3, 1), dtype=torch.int64, device=bridge.device))


def test_a_device_that_is_not_here_is_refused_and_the_games_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match="no CUDA device"):
        make_env("gym:CartPole-v1", 2, "cuda", games_device="cpu")


@pytest.mark.cuda
@pytest.mark.parametrize("world", ["mimic", "city", "gym:CartPole-v1"])
def test_worlds_of_the_cpu_are_played_there_and_seen_on_the_gpu(world: str) -> None:
    with make_env(world, 2, "cuda", config=WORLDS[world] or None) as env:
        assert (env.device.type, env.games_device.type) == ("cuda", "cpu")
        assert all(tensor.is_cuda for tensor in env.reset().values())


@pytest.mark.cuda
def test_host_buffers_are_pinned_and_take_turns() -> None:
    _, bridge = bridged("gym:CartPole-v1", 2, "cuda")
    with bridge:
        bridge.reset()
        buffers = bridge._buffers
        assert buffers is not None
        assert all(buffer.is_pinned() for buffer in buffers._host)
        before = buffers._next
        bridge.step(torch.zeros((2, 1), dtype=torch.int64, device="cuda"))
        assert buffers._next != before


@pytest.mark.cuda
def test_a_gpu_that_does_not_exist_is_named() -> None:
    with pytest.raises(DeviceError, match=r"'cuda:99'.*cuda:0"):
        make_env("duel", 1, "cuda:99")
