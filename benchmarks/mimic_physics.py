"""Compares integrators, step lengths and solver iterations of mimic: control steps a second, and how far they stray.

    python benchmarks/mimic_physics.py [--games 256] [--seconds 2] [--json FILE]

Every setting drives the same walkers with the same torques from the same starts, one thread, in turns with the default
settings (the yardstick: ratio 1). `stray_deg` is how far joint angles are after 0.1 s from those of the finest setting
(RK4 at 0.5 ms, 100 iterations), root mean square over joints and walkers, in degrees.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ludus.envs.base import EnvRequest
from ludus.worlds.mimic.env import MimicEnv

DEFAULT: dict[str, Any] = {}
SETTINGS: dict[str, dict[str, Any]] = {
    "implicitfast 5 ms (default)": DEFAULT,
    "implicitfast 5 ms, 2 iterations": {"solver_iterations": 2},
    "implicitfast 5 ms, 20 iterations": {"solver_iterations": 20},
    "implicitfast 2.5 ms": {"physics_step_s": 0.0025},
    "implicitfast 1 ms": {"physics_step_s": 0.001},
    "implicitfast 10 ms": {"physics_step_s": 0.01},
    "Euler 5 ms": {"integrator": "Euler"},
    "Euler 1 ms": {"integrator": "Euler", "physics_step_s": 0.001},
    "implicit 5 ms": {"integrator": "implicit"},
    "RK4 5 ms": {"integrator": "RK4"},
    "RK4 1 ms": {"integrator": "RK4", "physics_step_s": 0.001},
}
FINEST = {"integrator": "RK4", "physics_step_s": 0.0005, "solver_iterations": 100}
STEPS = 10  # control steps that walkers are driven for from each start: 0.1 s


def make(games: int, settings: dict[str, Any]) -> MimicEnv:
    """Makes walkers that never restart within the steps that are compared."""
    free = {"lowest_height": 0.2, "largest_tilt_deg": 120.0, "start_noise": 0.0, "mirror": False, "threads": 1}
    return MimicEnv(EnvRequest(games, "cpu", 0, 0, free | settings))


def drive(env: MimicEnv, actions: torch.Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Returns joint angles `(games, joints)` after the actions `(steps, games, 1, joints)` from the first starts."""
    env.reset(seed=0)
    for action in actions:
        env.step(action)
    return np.stack([env.positions(game)[7:] for game in range(env.num_envs)])


def rate(env: MimicEnv, actions: torch.Tensor, seconds: float) -> float:
    """Returns control steps for each second of processor time."""
    env.reset(seed=0)
    done, started, wall = 0, time.process_time(), time.perf_counter()
    while time.perf_counter() - wall < seconds:
        for action in actions:
            env.step(action)
        env.reset(seed=0)
        done += len(actions) * env.num_envs
    return done / (time.process_time() - started)


def main() -> None:
    """Measures all settings and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", type=Path, default=None)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    actions = 0.6 * torch.rand(STEPS, asked.games, 1, 8, generator=torch.Generator().manual_seed(0)) - 0.3
    truth = drive(make(asked.games, FINEST), actions)
    yardstick = make(asked.games, DEFAULT)
    rows = []
    print("| setting | control steps/s a core | ratio | stray_deg |\n|---|---|---|---|")
    for name, settings in SETTINGS.items():
        env = make(asked.games, settings)
        stray = float(np.rad2deg(np.sqrt(np.mean((drive(env, actions) - truth) ** 2))))
        base, own = rate(yardstick, actions, asked.seconds), rate(env, actions, asked.seconds)
        rows.append({"setting": name, "steps_per_s": own, "ratio": own / base, "stray_deg": stray})
        print(f"| {name} | {own:,.0f} | {own / base:.2f} | {stray:.2f} |", flush=True)
        env.close()
    if asked.json is not None:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
