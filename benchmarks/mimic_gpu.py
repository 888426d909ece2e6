"""Measures control steps per second of mimic on a GPU, and what of a step is physics.

    python benchmarks/mimic_gpu.py [--walkers 1024 8192 32768] [--walker walker-8] [--deterministic] [--json FILE]

Walkers get random actions; a step includes observations, events, metrics and restarts. `start_s` is the time to the
first step, in which kernels are compiled once per machine. Every rate is the median of five windows.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import warp as wp

from ludus.envs.registry import make_env
from ludus.envs.warp_tools import stream_from_torch
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.warp_physics import WarpPhysics

WINDOWS = 5


def main() -> None:
    """Measures all sizes and prints a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--walkers", type=int, nargs="+", default=[1024, 8192, 32768])
    parser.add_argument("--walker", default="walker-8")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each rate")
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    settings = {"walker": asked.walker, "deterministic": asked.deterministic, "physics": "warp"}
    rows = []
    for walkers in asked.walkers:
        rows.append(measure(walkers, asked.device, settings, asked.seconds) | settings)
        print(json.dumps(rows[-1]), flush=True)
    if asked.json is not None:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def measure(walkers: int, device: str, settings: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Returns the rates of one size."""
    started = time.perf_counter()
    with make_env("mimic", walkers, device, config=settings) as env:
        assert isinstance(env, MimicEnv)
        joints = len(env.walker.joints)
        pool = (2.0 * torch.rand(16, walkers, 1, joints, device=device) - 1.0).unbind(0)
        turn = 0

        def step() -> None:
            nonlocal turn
            turn = (turn + 1) % len(pool)
            env.step(pool[turn])

        step()
        _wait(env.device)
        start_s = time.perf_counter() - started
        whole = walkers * _rate(step, env.device, seconds)
        physics = walkers * _rate(_physics_alone(env), env.device, seconds)
    return {
        "device": torch.cuda.get_device_name(device) if device != "cpu" else device,
        "walkers": walkers,
        "start_s": round(start_s, 1),
        "steps_per_s": round(whole),
        "physics_steps_per_s": round(physics),
    }


def _physics_alone(env: MimicEnv) -> Callable[[], None]:
    """Returns what replays the physics of a step, recorded without the rest."""
    physics = env._physics  # noqa: SLF001 - a part that the environment does not show
    assert isinstance(physics, WarpPhysics)
    with wp.ScopedDevice(str(env.device)), wp.ScopedCapture() as recording:
        physics.steps()
    stream = stream_from_torch(torch.cuda.current_stream()) if env.device.type == "cuda" else None
    return lambda: wp.capture_launch(recording.graph, stream=stream)


def _rate(work: Callable[[], None], device: torch.device, seconds: float) -> float:
    """Returns calls per second."""
    rates = []
    for _ in range(WINDOWS):
        calls, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds / WINDOWS:
            for _ in range(10):
                work()
            calls += 10
            _wait(device)
        rates.append(calls / (time.perf_counter() - started))
    return sorted(rates)[WINDOWS // 2]


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
