"""How fast a world runs: steps per second, beside a reference workload measured in the same run."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ludus.envs.base import BatchedEnv, StepResult, action_dtypes
from ludus.envs.registry import make_env
from ludus.envs.world_parts import bench_of, reward_sets
from ludus.rewards.manager import RewardManager
from ludus.rewards.step_info import StepInfo
from ludus.rewards.weights import RewardConfig

WINDOWS = 5


def run_sim_bench(
    world: str, games: int, device: str = "cpu", threads: int | None = None, seconds: float = 5.0
) -> dict[str, Any]:
    """Measure a world and the reference workload alternately in short windows, so that noise affects both.

    A step includes observations, events and the random keys of all seats, made on the device; in worlds of teams the
    rewards too. `unit` says whether it is a step of a game or of every seat in it.

    Args:
        world: Name of the world.
        games: Games in the batch.
        device: Device of the games.
        threads: Host threads on a CPU; None for all cores.
        seconds: Time for each of the two.

    Returns:
        `steps_per_s` (median of the windows), `yardstick_steps_per_s`, `ratio`, `start_s` (making the environment,
        compilation included where there was one) and what was measured.
    """
    started = time.perf_counter()
    bench = bench_of(world)
    config = {"threads": threads} if threads is not None else None
    with make_env(world, games, device, config=config) as env, _torch_threads(threads):
        play = random_play(env, bench.rewards)
        play()
        _wait(env.device)
        start_s = time.perf_counter() - started
        yardstick = bench.yardstick(env.spec)
        steps = games * (env.spec.seats if bench.agent_steps else 1)
        rates, yardstick_rates = [], []
        for _ in range(WINDOWS):
            rates.append(steps * _rate(play, seconds / WINDOWS, env.device))
            yardstick_rates.append(yardstick.steps * _rate(yardstick.step, seconds / WINDOWS, torch.device("cpu")))
        yardstick.close()
        rate, yardstick_rate = sorted(rates)[WINDOWS // 2], sorted(yardstick_rates)[WINDOWS // 2]
        return {
            "world": env.spec.id,
            "games": games,
            "device": _device_name(env.device),
            "threads": threads,
            "unit": "step of a seat" if bench.agent_steps else "step of a game",
            "steps_per_s": rate,
            "steps_per_s_low": min(rates),
            "steps_per_s_high": max(rates),
            "yardstick": yardstick.name,
            "yardstick_steps_per_s": yardstick_rate,
            "ratio": rate / yardstick_rate,
            "start_s": start_s,
        }


def random_play(env: BatchedEnv, rewards: str | None) -> Callable[[], object]:
    """Return a function that lets random players play a step, and computes the rewards of a named set."""
    play = _random_step(env)
    if rewards is None:
        return play
    name, spec = env.spec.name, env.spec
    manager = RewardManager(name, spec.events, (RewardConfig(base=rewards),), reward_sets(name), spec.teams)

    def rewarded() -> None:
        result = play()
        manager.contributions(StepInfo(result.events, result.state_metrics, 1.0 / spec.rate_hz))

    return rewarded


def _random_step(env: BatchedEnv) -> Callable[[], StepResult]:
    shape = (env.num_envs, env.spec.seats, *(env.spec.action_space.shape or ()))
    actions = torch.zeros(shape, dtype=action_dtypes(env.spec.action_space)[0], device=env.device)
    if "random" in env.spec.bots:
        bots = env.bots(["random"])
        everyone = torch.zeros(shape[:2], dtype=torch.int32, device=env.device)

        def step() -> StepResult:
            bots.act(everyone, actions)
            return env.step(actions)

        return step
    pool = [_sampled(env, shape) for _ in range(8)]
    turn = 0

    def step_from_pool() -> StepResult:
        nonlocal turn
        turn = (turn + 1) % len(pool)
        return env.step(pool[turn])

    return step_from_pool


def _sampled(env: BatchedEnv, shape: tuple[int, ...]) -> Tensor:
    """Random actions, drawn before the clock starts, for worlds without a random bot."""
    draws = [torch.as_tensor(env.spec.action_space.sample()) for _ in range(shape[0] * shape[1])]
    return torch.stack(draws).view(shape).to(env.device, action_dtypes(env.spec.action_space)[0])


@contextmanager
def _torch_threads(threads: int | None) -> Iterator[None]:
    """Let torch, in which some worlds compute a part of their step, use no more threads than asked for."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(threads or before, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _rate(step: Callable[[], object], seconds: float, device: torch.device) -> float:
    """Return calls per second, measured over at least `seconds`."""
    _wait(device)
    calls, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        for _ in range(10):
            step()
        calls += 10
        _wait(device)
    return calls / (time.perf_counter() - started)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
