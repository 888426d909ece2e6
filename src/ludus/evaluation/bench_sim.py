"""How fast a world runs: game steps a second, beside a yardstick measured in the same run."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor

from ludus.envs.base import BatchedEnv, action_dtypes
from ludus.envs.registry import make_env

YARDSTICK = "CartPole-v1"
_YARDSTICKS = {"mimic": "Walker2d-v5"}  # worlds that are measured beside their like
WINDOWS = 5


def run_sim_bench(
    world: str, games: int, device: str = "cpu", threads: int | None = None, seconds: float = 5.0
) -> dict[str, Any]:
    """Measures a world and the yardstick, one after the other in short windows, so that noise meets both.

    A game step includes observations, events and the random keys of all seats, made on the device.

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
    config = {"threads": threads} if threads is not None else None
    with make_env(world, games, device, config=config) as env, _torch_threads(threads):
        step = _random_play(env)
        step()
        _wait(env.device)
        start_s = time.perf_counter() - started
        name = _YARDSTICKS.get(env.spec.name, YARDSTICK)
        yardstick_step, close_yardstick = _yardstick(name)
        rates, yardstick_rates = [], []
        for _ in range(WINDOWS):
            rates.append(games * _rate(step, seconds / WINDOWS, env.device))
            yardstick_rates.append(_rate(yardstick_step, seconds / WINDOWS, torch.device("cpu")))
        close_yardstick()
        rate, yardstick = sorted(rates)[WINDOWS // 2], sorted(yardstick_rates)[WINDOWS // 2]
        return {
            "world": env.spec.id,
            "games": games,
            "device": _device_name(env.device),
            "threads": threads,
            "steps_per_s": rate,
            "steps_per_s_low": min(rates),
            "steps_per_s_high": max(rates),
            "yardstick": f"Gymnasium {name}, one environment",
            "yardstick_steps_per_s": yardstick,
            "ratio": rate / yardstick,
            "start_s": start_s,
        }


def _random_play(env: BatchedEnv) -> Callable[[], None]:
    shape = (env.num_games, env.spec.seats, *(env.spec.action_space.shape or ()))
    actions = torch.zeros(shape, dtype=action_dtypes(env.spec.action_space)[0], device=env.device)
    if "random" in env.spec.bots:
        bots = env.bots(["random"])
        everyone = torch.zeros(shape[:2], dtype=torch.int32, device=env.device)

        def step() -> None:
            bots.act(everyone, actions)
            env.step(actions)

        return step
    pool = [_sampled(env, shape) for _ in range(8)]
    turn = 0

    def step_from_pool() -> None:
        nonlocal turn
        turn = (turn + 1) % len(pool)
        env.step(pool[turn])

    return step_from_pool


def _sampled(env: BatchedEnv, shape: tuple[int, ...]) -> Tensor:
    """Random actions, drawn before the clock starts, for worlds without a random bot."""
    draws = [torch.as_tensor(env.spec.action_space.sample()) for _ in range(shape[0] * shape[1])]
    return torch.stack(draws).view(shape).to(env.device, action_dtypes(env.spec.action_space)[0])


@contextmanager
def _torch_threads(threads: int | None) -> Iterator[None]:
    """Lets torch, in which some worlds compute a part of their step, use no more threads than asked for."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(threads or before, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _yardstick(name: str) -> tuple[Callable[[], None], Callable[[], None]]:
    env = gym.make(name)
    env.reset(seed=0)
    env.action_space.seed(0)

    def step() -> None:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()

    return step, env.close


def _rate(step: Callable[[], None], seconds: float, device: torch.device) -> float:
    """Calls a second over at least `seconds`."""
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
