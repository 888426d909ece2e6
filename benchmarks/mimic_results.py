"""Trains a preset of mimic over several seeds with the command line, and measures how the walkers walk.

    python benchmarks/mimic_results.py --preset walk --seeds 3 --out walk.json --picture gait.png
    python benchmarks/mimic_results.py --runs runs/a runs/b runs/c     # evaluates runs that are there already

Every number comes from `ludus eval --json` over all trials with 20 deterministic walks each. The picture shows joint
angles of the best agents over the gait cycle at 1.25 m/s against the reference. Training time is the sum of the
iterations; evaluations, checkpoints and start-up are in the wall time beside it.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from numpy.typing import NDArray

from ludus.envs.base import EnvRequest
from ludus.evaluation.players import load_agent
from ludus.worlds.mimic.env import MimicEnv

LUDUS = [sys.executable, "-m", "ludus.cli.main"]
WALKS = 20
SPEED_M_S = 1.25
BINS = 50  # of a stride, in the picture
WARM_UP_S = 2.0  # left out: walkers begin on the reference
SHOWN = ("right_hip", "right_knee", "right_ankle", "right_hip_frontal")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="walk")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("runs/results"))
    parser.add_argument("--runs", type=Path, nargs="*", help="evaluate these instead of training")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("overrides", nargs="*", help="settings as key=value, after --")
    asked = parser.parse_args()
    runs = asked.runs or [
        train(asked.preset, seed, asked.folder / f"{asked.preset}-{seed}", asked.overrides)
        for seed in range(asked.seeds)
    ]
    results = [evaluate(run) for run in runs]
    if asked.out is not None:
        asked.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    if asked.picture is not None:
        draw(runs, asked.picture)


def train(preset: str, seed: int, folder: Path, overrides: list[str]) -> Path:
    """Trains one seed; a run that is there already goes on or is taken as it is."""
    command = ["train", "mimic", "--preset", preset, "--seed", str(seed), "--run-dir", str(folder), *overrides]
    started_s = time.perf_counter()
    subprocess.run([*LUDUS, *command], check=True, stdout=sys.stderr)
    print(f"[OK] {folder}: {time.perf_counter() - started_s:.0f} s of wall time", file=sys.stderr)
    return folder


def evaluate(run: Path) -> dict[str, Any]:
    """Returns what `ludus eval` says of a run's best agent in every trial, and what the run says of itself.

    Walks are those of MuJoCo on the CPU, wherever the run was trained.
    """
    command = ["eval", str(run), "--matches", str(WALKS), "--seed", "20", "--deterministic", "--device", "cpu"]
    done = subprocess.run([*LUDUS, *command, "--json"], check=True, stdout=subprocess.PIPE, text=True)
    document = json.loads(done.stdout)
    description = json.loads((run / "run.json").read_text())
    return {
        "run": run.name,
        "seed": description["seed"],
        "env_steps": description["sessions"][-1]["env_steps"],
        "training_s": sum(session.get("training_s", 0.0) for session in description["sessions"]),
        "steps_to_convergence": description.get("steps_to_convergence"),
        "machine": description["sessions"][-1]["machine"],
        "trials": document["opponents"],
    }


def table(results: list[dict[str, Any]]) -> str:
    """Returns the numbers of the first trial by seed, then speeds and survival of the others."""
    names = [name for name, value in results[0]["trials"][0].items() if isinstance(value, float)]
    header = ["walk", *(f"seed {result['seed']}" for result in results)]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += [
        "| " + " | ".join([name, *(f"{result[name] or 0:,.0f}" for result in results)]) + " |"
        for name in ("training_s", "steps_to_convergence")
    ]
    for name in names:
        cells = [name, *(f"{result['trials'][0][name]:.3g}" for result in results)]
        lines.append("| " + " | ".join(cells) + " |")
    for index, trial in enumerate(row["trial"] for row in results[0]["trials"]):
        rows = [result["trials"][index] for result in results]
        walked = (f"{row['speed_m_s']:.3f} m/s, {row['survived']:.0%} to the end" for row in rows)
        lines.append("| " + " | ".join([trial, *walked]) + " |")
    return "\n".join(lines)


def walk(run: Path) -> tuple[NDArray[np.float64], MimicEnv]:
    """Returns angles in degrees over the stride, `(bins, joints, 2)` mean and deviation, and the walkers."""
    agent = load_agent(str(run))
    fixed = {"starts": "fixed", "speed": SPEED_M_S, "episode_s": 15.0, "start_noise": 0.0}
    env = MimicEnv(EnvRequest(WALKS, "cpu", 0, 0, {**agent.settings, **fixed}))
    policy = agent.policy
    observations, memory = env.reset(), policy.initial(WALKS)
    starts = torch.ones(WALKS, dtype=torch.bool)
    found: list[list[NDArray[np.float64]]] = [[] for _ in range(BINS)]
    for number in range(env.spec.step_limit or 0):
        step = policy.step({name: tensor[:, 0] for name, tensor in observations.items()}, memory, starts, None)
        result = env.step(policy.clip_actions(step.actions).unsqueeze(1))
        observations, memory, starts = result.observations, step.memory, result.ended
        if number < WARM_UP_S * env.spec.rate_hz or bool(result.ended.any()):
            continue
        bins = (result.state_metrics["phase"][:, 0] * BINS).long().clamp(max=BINS - 1).tolist()
        for game, place in enumerate(bins):
            found[place].append(np.rad2deg(env.positions(game)[7:]))
    return np.array([[np.mean(each, axis=0), np.std(each, axis=0)] for each in found]).swapaxes(1, 2), env


def draw(runs: list[Path], picture: Path) -> None:
    """Draws joint angles over the gait cycle: a line and a band of one deviation for each run, the reference dashed."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SHOWN), figsize=(13, 3.4), layout="constrained")
    phases = 100.0 * (np.arange(BINS) + 0.5) / BINS
    for number, run in enumerate(runs):
        angles, env = walk(run)
        names = [joint.name for joint in env.walker.joints]
        at = torch.from_numpy(phases / 100.0).float()
        reference = np.rad2deg(env.reference.at(torch.full_like(at, SPEED_M_S), at).angles.numpy())
        for axis, name in zip(axes, SHOWN, strict=True):
            mean, deviation = angles[:, names.index(name)].T
            if number == 0:
                own = reference[:, names.index(name)]
                axis.fill_between(phases, own - 5.0, own + 5.0, color="0.88", label="reference +- 5 deg")
                axis.plot(phases, own, "k--", linewidth=1.2, label="reference")
                axis.set(title=name.removeprefix("right_").replace("_", " "), xlabel="% of the stride")
            axis.plot(phases, mean, color=f"C{number}", linewidth=1.4, label=run.name)
            axis.fill_between(phases, mean - deviation, mean + deviation, color=f"C{number}", alpha=0.2, linewidth=0)
    axes[0].set_ylabel("degrees")
    axes[1].legend(fontsize=7, loc="upper left")
    figure.suptitle(f"Trained walkers at {SPEED_M_S} m/s over the gait cycle, right leg, from heel contact")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
