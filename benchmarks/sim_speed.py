"""Measures how fast a world runs: steps per second, beside a reference workload ("yardstick") in the same run.

    python benchmarks/sim_speed.py brawl --games 4096 --device cpu --threads 1 --seconds 5

The yardstick of a world that names none in `BENCHES` is Gymnasium's CartPole. Prints one JSON object.
"""

import argparse
import json
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.files import temporary_folder, write_atomic
from ludus.envs.base import BatchedEnv, EnvSpec, StepResult, action_dtypes
from ludus.envs.registry import make_env
from ludus.envs.world_parts import reward_sets
from ludus.rewards.manager import RewardManager
from ludus.rewards.step_info import StepInfo
from ludus.rewards.weights import RewardConfig
from ludus.worlds.rocket.rules import TICK_HZ, Control

WINDOWS = 5
_BACK_EVERY = 100  # calls of RocketSim
_POOL = 64  # controls drawn before timing starts


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A simulator of others that is measured in the same run."""

    name: str  # what is measured
    step: Callable[[], None]  # advances it once
    steps: int  # steps that a call counts for
    close: Callable[[], None]  # releases it


def gymnasium_yardstick(env_id: str) -> Yardstick:
    """Make one Gymnasium environment with random actions."""
    env = gym.make(env_id)
    env.reset(seed=0)
    env.action_space.seed(0)

    def step() -> None:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()

    return Yardstick(f"Gymnasium {env_id}, one environment", step, 1, env.close)


def cartpole(spec: EnvSpec) -> Yardstick:
    """Make the yardstick of worlds without a comparable Gymnasium environment."""
    del spec
    return gymnasium_yardstick("CartPole-v1")


def walker(spec: EnvSpec) -> Yardstick:
    """Make Gymnasium's `Walker2d-v5`, which needs the extra `gymnasium-mujoco`."""
    del spec
    return gymnasium_yardstick("Walker2d-v5")


def rocketsim(spec: EnvSpec) -> Yardstick:
    """Make one arena of RocketSim with random controls; CartPole where the package `rocketsim` is missing.

    Floor, ceiling and side walls are RocketSim's own planes. The collision meshes for the rest of the arena belong to a
    game and are not used; without them it is about twice as fast.
    """
    try:
        import RocketSim  # type: ignore[import-not-found,unused-ignore]  # optional, without types
    except ImportError:
        return cartpole(spec)
    _show_mesh(RocketSim)
    arena: Any = RocketSim.Arena(RocketSim.GameMode.SOCCAR)
    teams = (RocketSim.Team.BLUE, RocketSim.Team.ORANGE)
    cars = [arena.add_car(teams[team]) for team in spec.teams]
    ticks, calls = round(TICK_HZ / spec.rate_hz), 0
    pool = [_controls(RocketSim, row) for row in np.random.default_rng(0).integers(-1, 2, (_POOL, len(Control)))]

    def step() -> None:
        nonlocal calls
        for place, car in enumerate(cars):
            car.set_controls(pool[(calls + 7 * place) % _POOL])
        arena.step(ticks)
        calls += 1
        if calls % _BACK_EVERY == 0:
            arena.reset_kickoff()  # there are no back walls: return what has rolled away

    mode = f"{spec.teams.count(0)}v{spec.teams.count(1)}"
    name = f"RocketSim {mode} between plane walls, one arena, physics alone"
    return Yardstick(name, step, len(cars), lambda: None)


def _show_mesh(simulator: Any) -> None:  # noqa: ANN401 - RocketSim has no types
    """Give RocketSim the mesh that it requires: one unreachable triangle."""
    with temporary_folder("ludus-mesh-") as folder:
        triangle = struct.pack("<5i9f", 1, 3, 0, 1, 2, *(0.0, 0.0, -90.0, 1.0, 0.0, -90.0, 0.0, 1.0, -90.0))
        write_atomic(folder / "soccar" / "far.cmf", triangle)
        try:
            simulator.init(str(folder))
        except RuntimeError as error:  # it can be initialised once per process
            if "Already" not in str(error):
                raise


def _controls(simulator: Any, row: NDArray[np.int64]) -> Any:  # noqa: ANN401 - RocketSim has no types
    """Return controls of a row of numbers from -1 to 1; a button is pressed above 0."""
    named = {control.name.lower(): value for control, value in zip(Control, row.tolist(), strict=True)}
    keys = {name: named.pop(name) > 0 for name in ("jump", "boost", "handbrake")}
    return simulator.CarControls(**{name: float(value) for name, value in named.items()}, **keys)


@dataclass(frozen=True, slots=True)
class SimBench:
    """What is measured of a world."""

    yardstick: Callable[[EnvSpec], Yardstick] = cartpole  # makes it for a world of these seats
    agent_steps: bool = False  # whether every seat's decision is a step, rather than every game's
    rewards: str | None = None  # set of reward weights that is computed in every step as well; None for none


BENCHES: Mapping[str, SimBench] = {
    "mimic": SimBench(walker),
    "rocket": SimBench(rocketsim, agent_steps=True, rewards="dense"),
}


def main() -> None:
    """Measure one world and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world")
    parser.add_argument("--games", type=int, default=4096, help="games in the batch")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, help="host threads on a CPU; all cores by default")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each of the two")
    options = parser.parse_args()
    print(json.dumps(run_sim_bench(**vars(options)), indent=1))


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
    bench = BENCHES.get(world, SimBench())
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


if __name__ == "__main__":
    main()
