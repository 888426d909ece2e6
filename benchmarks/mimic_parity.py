"""Measures how far the walkers of MuJoCo Warp are from those of MuJoCo, and whether agents walk on both.

    python benchmarks/mimic_parity.py [AGENT ...] [--device cuda] [--walks 20] [--json FILE]

*Driven*: walkers start from the same states and get the same actions, those of the first agent in MuJoCo, so that only
the physics differs. Differences are the largest over all walks, and their median: of joint angles in degrees, of the
hips' place in mm. MuJoCo whose contact solver converges (100 iterations instead of 4) is measured beside it.
*Walking*: every agent decides by itself in all scenarios of the world, in MuJoCo on the CPU and in MuJoCo Warp on the
device. Agents are names of shipped ones, runs, or files of `ludus export`.
"""

import argparse
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ludus.envs.registry import make_env
from ludus.evaluation.evaluate import evaluate
from ludus.evaluation.players import load_agent
from ludus.policies.agent import Agent
from ludus.worlds.mimic.env import MimicEnv

MOMENTS_S = (0.1, 0.5, 2.0)
FIXED: dict[str, Any] = {"starts": "fixed", "speed_change_s": 0.0, "start_noise": 0.0, "episode_s": 3_600.0}
CONVERGED = {"solver_iterations": 100}
NUMBERS = ("stable_walks", "rmse_deg", "imitation", "speed_m_s", "speed_error", "survived")
Floats = NDArray[np.float64]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="*", default=["walker"])
    parser.add_argument("--device", default="cpu", help="of MuJoCo Warp")
    parser.add_argument("--walks", type=int, default=20)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    result = {
        "device": torch.cuda.get_device_name(asked.device) if asked.device != "cpu" else "cpu",
        "versions": {name: version(name) for name in ("mujoco", "mujoco-warp", "warp-lang")},
        "walks": asked.walks,
        "driven": driven(load_agent(asked.agents[0]), asked.walks, asked.device),
        "walking": [row for name in asked.agents for row in walking(name, asked.walks, asked.device)],
    }
    print(json.dumps(result, indent=1))
    if asked.json is not None:
        asked.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


@torch.no_grad()
def driven(agent: Agent, walks: int, device: str) -> dict[str, dict[str, dict[str, float]]]:
    """Returns the differences by pair of physics and by seconds."""
    steps = round(max(MOMENTS_S) * agent.spec.rate_hz)
    settings = {**agent.settings, **FIXED}
    with _make(walks, "cpu", settings | {"physics": "mujoco"}) as env:
        observations, memory = env.reset(seed=0), agent.policy.initial(walks)
        start, starts, actions = env.snapshot(), torch.ones(walks, dtype=torch.bool), []
        for _ in range(steps):
            step = agent.policy.step({name: seen[:, 0] for name, seen in observations.items()}, memory, starts, None)
            actions.append(agent.policy.clip_actions(step.actions).unsqueeze(1).clone())
            observations, memory, starts = env.step(actions[-1]).observations, step.memory, torch.zeros_like(starts)
    sides: dict[str, tuple[str, dict[str, Any]]] = {
        "MuJoCo": ("cpu", {"physics": "mujoco"}),
        "converged MuJoCo": ("cpu", {"physics": "mujoco", **CONVERGED}),
        "MuJoCo Warp": (device, {"physics": "warp"}),
    }
    places = {name: _drive(walks, place, settings | own, start, actions) for name, (place, own) in sides.items()}
    pairs = [("MuJoCo Warp", "MuJoCo"), ("MuJoCo Warp", "converged MuJoCo"), ("MuJoCo", "converged MuJoCo")]
    return {
        f"{one}, {other}": {
            f"{moment:g}": _difference(*(places[name][round(moment * agent.spec.rate_hz)] for name in (one, other)))
            for moment in MOMENTS_S
        }
        for one, other in pairs
    }


def _make(walks: int, device: str, settings: dict[str, Any]) -> MimicEnv:
    env = make_env("mimic", walks, device, config=settings)
    assert isinstance(env, MimicEnv)
    return env


def _drive(
    walks: int, device: str, settings: dict[str, Any], start: dict[str, torch.Tensor], actions: list[torch.Tensor]
) -> list[Floats]:
    """Returns the positions `(walks, 7 + joints)` at the start and after every action; NaN once a walker has fallen."""
    with _make(walks, device, settings) as env:
        env.restore(start)
        places, fallen = [_places(env)], np.zeros(walks, dtype=bool)
        for action in actions:
            fallen |= env.step(action.to(env.device)).terminated.cpu().numpy()
            places.append(np.where(fallen[:, None], np.nan, _places(env)))
        return places


def _places(env: MimicEnv) -> Floats:
    return np.stack([env.positions(game) for game in range(env.num_envs)])


def _difference(one: Floats, other: Floats) -> dict[str, float]:
    """Returns the largest and the median difference over the walks that have not fallen."""
    upright = ~np.isnan(one[:, 0] + other[:, 0])
    joints = np.degrees(np.abs(one[upright, 7:] - other[upright, 7:]).max(axis=1))
    hips = 1e3 * np.linalg.norm(one[upright, :3] - other[upright, :3], axis=1)
    return {
        "walks": int(upright.sum()),
        "joints_deg": float(joints.max()),
        "joints_deg_median": float(np.median(joints)),
        "hips_mm": float(hips.max()),
        "hips_mm_median": float(np.median(hips)),
    }


def walking(name: str, walks: int, device: str) -> list[dict[str, Any]]:
    """Returns how an agent walks in every scenario, a row for each of the two physics."""
    rows = []
    for physics, place in (("mujoco", "cpu"), ("warp", device)):
        agent = load_agent(name, place)
        settings = {**agent.settings, "physics": physics}
        found = evaluate(agent, config=settings, matches=walks, seed=20, deterministic=True)
        for row in found.as_json()["opponents"]:
            kept = {key: row[key] for key in NUMBERS}
            rows.append({"agent": Path(name).stem, "physics": physics, "scenario": row["trial"], **kept})
    return rows


if __name__ == "__main__":
    main()
