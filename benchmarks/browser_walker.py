"""Measures how far the walker of a web page (`ludus share walker`) is from the one that MuJoCo advances in training.

    python benchmarks/browser_walker.py [--agent walker] [--walks 20] [--seconds 15] [--json FILE]

Both begin at the same phases and speeds, without noise. *Driven*: the page's physics gets the actions and pushes of the
walk in Python, so that only the physics differs. *Walking*: the agent decides by itself in both. Differences are the
largest over all walks: of joint angles in degrees, of the hips' place in mm. Runs in node.
"""

import argparse
import json
import shutil
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.browser_parity import run_in_node
from numpy.typing import NDArray

from ludus.envs.registry import make_env
from ludus.evaluation.players import AgentPlayer, one_seat
from ludus.policies.agent import Agent
from ludus.share.precision import pack_agent
from ludus.share.viewer import page_program
from ludus.share.wasm import compile_program
from ludus.worlds.mimic.browser import describe
from ludus.worlds.mimic.env import MimicEnv

MOMENTS_S = (0.1, 0.5, 2.0, 15.0)
DRIVEN_S = 2.0  # how long walks are driven by given actions
PUSHES = {"impulse_ns": 8.0, "every_s": 1.0}
_FIXED = {"starts": "fixed", "speed_change_s": 0.0, "start_noise": 0.0, "threads": 1}
_ROOT = 7  # positions before the joints' angles

# Returns, for each walk, positions at every decision and likeness, driven by given actions or by the policy.
_WALK = """async (wasm, description, weights, policyDescription, live, table, walks, steps, isDriven) => {
  const engine = await LudusEngine.load(wasm, description), policy = engine.addPolicy(weights, policyDescription);
  const walker = new LiveWalker(live, new Float32Array(table.buffer), engine), found = [];
  for (const { phase, speed, actions, forces } of walks) {
    walker.desired = speed;
    walker.restart(phase);
    policy.reset(0);
    const positions = [Array.from(walker.physics.positions)];
    let likeness = 0;
    while (walker.steps < steps && !walker.isFallen) {
      const force = forces[walker.steps], pull = force ? { body: 0, point: [0, 0, 0], force: [...force, 0] } : null;
      if (isDriven) walker.advance(actions[walker.steps], pull);
      else walker.step(policy, pull);
      positions.push(Array.from(walker.physics.positions));
      likeness += walker.likeness();
    }
    found.push({ positions, likeness: likeness / walker.steps, isFallen: walker.isFallen });
  }
  return found;
}"""


@dataclass(frozen=True)
class Walks:
    """Walks of a batch in Python, `(walks, ...)` each."""

    phases: list[float]
    speeds: list[float]
    actions: NDArray[np.float32]  # (walks, steps, joints)
    forces: NDArray[np.float64]  # (walks, steps, 2)
    positions: NDArray[np.float64]  # (walks, 1 + steps, positions)
    likeness: NDArray[np.float64]  # mean of the walk
    lengths: list[int]  # decisions until it fell, or all


@torch.no_grad()
def walk_in_python(agent: Agent, walks: int, seconds: float, settings: dict[str, Any]) -> Walks:
    """Let an agent walk in the environment that it was trained in, without noise."""
    steps = round(seconds * agent.spec.rate_hz)
    config = {**agent.settings, **_FIXED, "episode_s": 3_600.0, **settings}
    with make_env(agent.spec.id, walks, config=config) as env:
        assert isinstance(env, MimicEnv)
        observations = env.reset(seed=0)
        snapshot = {name.rpartition("/")[2]: tensor for name, tensor in env.snapshot().items()}
        player = AgentPlayer(env, one_seat(env, 0), agent.policy, deterministic=True)
        actions = torch.zeros((walks, 1, len(env.walker.joints)))
        places = np.zeros((walks, 1 + steps, _ROOT + len(env.walker.joints)))
        taken = np.zeros((walks, steps, len(env.walker.joints)), np.float32)
        forces, likeness, lengths = np.zeros((walks, steps, 2)), np.zeros(walks), [steps] * walks
        for step in range(steps + 1):
            going = [game for game in range(walks) if lengths[game] == steps]
            for game in going:
                places[game, step] = env.positions(game)
                if step < steps:
                    forces[game, step] = env.view(game).push_n
            if step == steps:
                break
            player.act(observations, actions, first=step == 0)
            taken[:, step] = actions[:, 0].numpy()
            result = env.step(actions)
            observations = result.observations
            for game in going:
                likeness[game] += float(result.events["reward"][game, 0])
                if result.terminated[game]:
                    lengths[game] = step + 1
    return Walks(
        snapshot["phase"].tolist(), snapshot["desired"].tolist(), taken, forces, places, likeness / lengths, lengths
    )


def walk_in_page(agent: Agent, walks: Walks, seconds: float, *, is_driven: bool) -> list[dict[str, Any]]:
    """Let the agent walk in the page's engine, from the same starts; return what `_WALK` found of each walk."""
    steps = round(seconds * agent.spec.rate_hz)
    program, packed = page_program(agent.spec.id, agent.settings), pack_agent(agent)
    with make_env(program.world, config=program.settings) as env:
        assert isinstance(env, MimicEnv)
        live = describe(env)
        table = env.reference.table.numpy()
    kept = np.concatenate((table[..., :-13], table[..., -1:]), axis=-1)  # without the places of the feet
    given = [
        {"phase": phase, "speed": speed, "actions": actions[: steps if is_driven else 0].tolist(),
         "forces": forces[:steps].tolist()}
        for phase, speed, actions, forces in zip(walks.phases, walks.speeds, walks.actions, walks.forces, strict=True)
    ]  # fmt: skip
    folder = files("ludus.worlds.mimic")
    scripts = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("physics.js", "walker.js"))
    function = f"async (...given) => {{ {scripts.replace('if (typeof module', 'if (false && typeof module')}\n"
    function += f"return ({_WALK})(...given); }}"
    found: list[dict[str, Any]] = run_in_node(
        function, compile_program(program), program.describe(), packed.data, packed.description, live,
        np.ascontiguousarray(kept).tobytes(), given, steps, is_driven,
    )  # fmt: skip
    return found


def differences(walks: Walks, found: list[dict[str, Any]], rate_hz: float) -> dict[str, dict[str, float]]:
    """Return the largest differences of joint angles and of the hips' place, by seconds."""
    table: dict[str, dict[str, float]] = {}
    for moment in MOMENTS_S:
        step = round(moment * rate_hz)
        if step >= max(len(other["positions"]) for other in found):
            break
        angles, places = [0.0], [0.0]
        for own, other, length in zip(walks.positions, found, walks.lengths, strict=True):
            last = min(length if length == walks.actions.shape[1] else length - 1, len(other["positions"]) - 1)
            if step <= last:  # the environment begins anew in the step in which a walker falls
                here = np.array(other["positions"][step])
                angles.append(float(np.degrees(np.abs(own[step, _ROOT:] - here[_ROOT:]).max())))
                places.append(1e3 * float(np.linalg.norm(own[step, :3] - here[:3])))
        table[f"{moment:g}"] = {"joints_deg": max(angles), "hips_mm": max(places)}
    return table


def measure(agent_name: str, count: int, seconds: float) -> dict[str, Any]:
    """Return all numbers of an agent, with and without pushes."""
    import mujoco

    agent = Agent.load(agent_name)
    rate = agent.spec.rate_hz
    result: dict[str, Any] = {"agent": agent_name, "walks": count, "seconds": seconds, "mujoco": mujoco.__version__}
    for name, settings in (("undisturbed", {}), ("pushed", {"pushes": PUSHES})):
        walks = walk_in_python(agent, count, seconds, settings)
        driven = walk_in_page(agent, walks, DRIVEN_S, is_driven=True)
        walking = walk_in_page(agent, walks, seconds, is_driven=False)
        steps, lasted = round(seconds * rate), [len(each["positions"]) - 1 for each in walking]
        both = [game for game in range(count) if walks.lengths[game] == lasted[game] == steps]
        way = [walks.positions[game, -1, 0] - walking[game]["positions"][-1][0] for game in both]
        result[name] = {
            "driven": differences(walks, driven, rate),
            "walking": differences(walks, walking, rate),
            "upright_mujoco": sum(length == steps for length in walks.lengths),
            "upright_page": sum(not each["isFallen"] for each in walking),
            "same_length": sum(own == other for own, other in zip(walks.lengths, lasted, strict=True)),
            "speed_difference_m_s": float(np.abs(way).max(initial=0.0)) / seconds,
            "likeness_mujoco": float(walks.likeness.mean()),
            "likeness_page": float(np.mean([each["likeness"] for each in walking])),
        }
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="walker")
    parser.add_argument("--walks", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if shutil.which("node") is None:
        parser.error("needs node: apt-get install nodejs")
    began = time.perf_counter()
    result = measure(given.agent, given.walks, given.seconds)
    print(json.dumps(result, indent=2))
    print(f"[OK] {time.perf_counter() - began:.0f} s")
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
