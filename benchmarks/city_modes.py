"""Every mode of City, and variants of `quick`, after equally many decisions: how the same cities end.

    python -m benchmarks.city_modes --lanes 12                                # all modes, 3 seeds
    python -m benchmarks.city_modes guided tax --out city_variants.json   # variants of `quick`

Every run is a process with one thread; `--lanes` of them work side by side. The final agents, not those that a run's
own evaluations found best, then build the same cities as `city_results.py`, which training did not use, for 300
decisions each, whatever a mode's own episodes last. Agents see pictures and readings alone; scripted strategies see the
truth. Finished runs and checkpoints are kept in `--folder`, so that a command that was cut off goes on where it was.
Training time is the sum of the iterations: collecting and learning, without start-up and evaluation.
"""

import argparse
import json
import logging
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from benchmarks.city_results import SEED, play
from benchmarks.tables.markdown import DATA

import ludus
from ludus.policies.agent import Agent
from ludus.training.presets import load_run_config

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
PICTURE = DATA.parent / "images" / "city-modes.png"
ENV_STEPS = 24_576
STEPS = 300  # decisions per city
BOTS = ("random", "greedy", "balanced")
FOUND = ("discovered", "new_menus")  # what exploring finds, summed over a city
QUIET = ("monitoring.console=off", "monitoring.tensorboard=false", "monitoring.curves=false")


class Variant(NamedTuple):
    """What is trained: what it is in words, a preset, and settings on top of it."""

    label: str
    preset: str = "quick"
    settings: tuple[str, ...] = ()


TAX = "world.settings.actions=[build, street, bulldoze, tax]"
MODES = {name: Variant(name, name) for name in ("autonomous", "discovery", "strategic", "adaptive", "goal", "quick")}
GUIDED = (
    "ppo.imitation={bot: balanced, coef: {kind: linear, start: 1.0, end: 0.0, until: 0.9}}",
    "ppo.n_epochs=6", "ppo.max_grad_norm=2.0",
)  # fmt: skip
CANDIDATES = {
    "guided": Variant("quick with the tax, imitating balanced at first", settings=(TAX, *GUIDED)),
    "tax": Variant("quick with the tax", settings=(TAX,)),
}
VARIANTS = MODES | CANDIDATES


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and evaluate what is missing, and write what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", default=list(MODES), metavar="VARIANT", help=", ".join(VARIANTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--env-steps", type=int, default=ENV_STEPS, help="decisions of every run")
    parser.add_argument("--cities", type=int, default=48)
    parser.add_argument("--lanes", type=int, default=2, help="runs side by side")
    parser.add_argument("--folder", type=Path, default=Path("runs/city-modes"), help="where finished runs are kept")
    parser.add_argument("--out", type=Path, default=DATA / "city_modes.json")
    parser.add_argument("--one", nargs=2, metavar=("VARIANT", "SEED"), help="one run, in this process")
    parser.add_argument("--picture", type=Path, help="draw what --out has, and stop")
    asked = parser.parse_args(arguments)
    if asked.picture is not None:
        draw(json.loads(asked.out.read_text()), asked.picture)
        return
    if asked.one is not None:
        run(asked.one[0], int(asked.one[1]), asked.env_steps, asked.cities, asked.folder)
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    # The slowest modes come first in VARIANTS, so that no lane is left with one of them at the end.
    jobs = [(name, seed) for name in (*BOTS, *asked.variants) for seed in range(1 if name in BOTS else asked.seeds)]
    with ThreadPoolExecutor(asked.lanes) as lanes:
        waiting = [lanes.submit(start, asked, name, seed) for name, seed in jobs]
        failed = [why for job in waiting if (why := job.result())]
    for why in failed:
        print(f"[ERROR] {why}", file=sys.stderr)
    raise SystemExit(len(failed) > 0)


def file_of(folder: Path, name: str, seed: int, env_steps: int, cities: int) -> Path:
    """Return the file of a finished run."""
    return folder / f"{name}-{seed}-{0 if name in BOTS else env_steps}-{cities}.json"


def start(asked: argparse.Namespace, name: str, seed: int) -> str:
    """Run a process unless its file is there, then write everything that is finished; return what went wrong."""
    file = file_of(asked.folder, name, seed, asked.env_steps, asked.cities)
    if not file.exists():
        sizes = ["--env-steps", str(asked.env_steps), "--cities", str(asked.cities), "--folder", str(asked.folder)]
        log = asked.folder / f"{file.stem}.log"
        with log.open("w", encoding="utf-8") as output:
            command = [sys.executable, "-m", "benchmarks.city_modes", "--one", name, str(seed), *sizes]
            done = subprocess.run(command, stdout=output, stderr=output, env=os.environ | ONE_THREAD, check=False)
        if done.returncode or not file.exists():
            return f"{name}, seed {seed}: exit status {done.returncode}: {log.read_text()[-300:]}"
    write(asked)
    result = json.loads(file.read_text())
    people = result["outcome"]["population"]
    mean = sum(people) / len(people)
    print(f"[OK] {name}, seed {seed}: {mean:,.0f} people, trained {result['training_s']:.0f} s", flush=True)
    return ""


def write(asked: argparse.Namespace) -> None:
    """Write the finished runs of the asked variants to one file, replacing it as a whole."""
    runs = [
        json.loads(file.read_text())
        for name in (*BOTS, *asked.variants)
        for seed in range(asked.seeds)
        if (file := file_of(asked.folder, name, seed, asked.env_steps, asked.cities)).exists()
    ]
    machine = {"system": platform.platform(), "cores": os.cpu_count(), "lanes": asked.lanes}
    document = {"env_steps": asked.env_steps, "cities": asked.cities, "seed": SEED, "machine": machine, "runs": runs}
    part = asked.out.with_suffix(f".{time.monotonic_ns()}.part")
    part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    part.replace(asked.out)


def run(name: str, seed: int, env_steps: int, cities: int, folder: Path) -> None:
    """Train one variant with one seed, let it play, and keep the outcome; a bot only plays."""
    torch.set_num_threads(1)
    logging.getLogger("ludus").setLevel(logging.WARNING)
    quick = load_run_config("city", "quick").world.settings
    training_s, learned = 0.0, 0
    if name in BOTS:
        outcome = play({**quick, "steps": STEPS, "workers": 0}, cities, bot=name, sums=FOUND)
    else:
        agent, training_s, learned = learn(name, seed, env_steps, folder / f"{name}-{seed}-{env_steps}")
        outcome = play({**agent.settings, "steps": STEPS}, cities, agent=agent, sums=FOUND)
    label = name if name in BOTS else VARIANTS[name].label
    result = {"variant": name, "label": label, "seed": seed, "env_steps": learned, "training_s": round(training_s, 1)}
    result["outcome"] = {column: [round(value, 2) for value in values] for column, values in outcome.items()}
    file = file_of(folder, name, seed, env_steps, cities)
    file.with_suffix(".part").write_text(json.dumps(result), encoding="utf-8")
    file.with_suffix(".part").replace(file)


def learn(name: str, seed: int, env_steps: int, folder: Path) -> tuple[Agent, float, int]:
    """Train one run in this process; return its final agent, the seconds that it trained, and its decisions."""
    variant = VARIANTS[name]
    settings = [
        *variant.settings, *QUIET, f"seed={seed}", f"total_env_steps={env_steps}", "world.settings.workers=0",
        "evaluation=null", "checkpoints.every_env_steps=16384",
    ]  # fmt: skip
    done = ludus.train(load_run_config("city", variant.preset, overrides=settings), folder=folder)
    if done.stop_reason:
        raise SystemExit(f"[ERROR] {folder} ended early: {done.stop_reason}")
    sessions = json.loads((folder / "run.json").read_text())["sessions"]
    return Agent.load(folder, seed=SEED), sum(session.get("training_s", 0.0) for session in sessions), done.env_steps


def draw(document: dict[str, Any], file: Path) -> None:
    """Draw the mean population of every seed as a dot and of all seeds as a bar, with scripted players as lines."""
    import matplotlib as mpl  # not needed where the runs are

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    means: dict[str, list[float]] = {}
    for result in document["runs"]:
        people = result["outcome"]["population"]
        means.setdefault(result["variant"], []).append(sum(people) / len(people))
    trained = sorted((name for name in means if name not in BOTS), key=lambda name: sum(means[name]) / len(means[name]))
    figure, axis = plt.subplots(figsize=(7.0, 0.42 * len(trained) + 1.2), layout="constrained")
    for place, name in enumerate(trained):
        color = "#2563eb" if name in MODES else "#64748b"
        axis.barh(place, sum(means[name]) / len(means[name]), color=color, alpha=0.35)
        axis.plot(means[name], [place] * len(means[name]), "o", color=color, markersize=5)
    for name in BOTS:
        if name in means:
            axis.axvline(means[name][0], color="#ea580c", linestyle="--", linewidth=1)
            axis.annotate(name, (means[name][0], len(trained) - 0.45), color="#ea580c", fontsize=8, ha="center")
    axis.set_yticks(range(len(trained)), [VARIANTS[name].label for name in trained])
    axis.set_ylim(-0.6, len(trained))
    axis.set_xlabel(f"people in a city, after {document['env_steps']:,} decisions of training; dots are seeds")
    figure.savefig(file, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
