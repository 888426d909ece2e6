"""What each change to the recipe of brawl's preset `quick` is worth: win rate over env steps and over CPU seconds.

Every variant is a set of overrides of the recipe that `quick` had before the search (`BEFORE`). It is trained in one
thread, so that CPU seconds can be compared on a machine that does other work too, and evaluated against all bots
several times on the way. CPU seconds are those of the iterations: collecting, learning and logging, without start-up,
evaluations and checkpoints. Runs that the file has already are not repeated, so the command goes on where it was cut
off.

    python benchmarks/quick_recipe.py                                # all variants, seed 0
    python benchmarks/quick_recipe.py epochs --seeds 3 --env-steps 6500000
"""

import argparse
import json
import logging
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded

import torch

import ludus
from ludus.training.callbacks import BaseCallback, Counters, Evaluated, Iteration
from ludus.training.presets import load_run_config

DATA = Path(__file__).parents[1] / "docs" / "data" / "quick_recipe.json"
ENV_STEPS = 3_000_000
QUIET = ("monitoring.console=off", "monitoring.tensorboard=false", "monitoring.curves=false")


class Variant(NamedTuple):
    """A change to the recipe: what it is in words, and the settings that make it, on top of those of `base`."""

    label: str
    settings: tuple[str, ...]
    base: str = "before"


# All that the search changed, as it was before.
BEFORE = (
    "world.num_envs=512", "ppo.n_steps=64", "ppo.batch_size=4096", "ppo.n_epochs=2",
    "ppo.learning_rate={kind: linear, start: 1.0e-3, end: 1.0e-4}", "ppo.gae_lambda=0.95", "ppo.ent_coef=0.001",
    "policy.activation=tanh", "policy.canonical=false", "policy.net_arch={pi: [128, 128], vf: [128, 128]}",
    "rewards.weights.draw=0.0",
)  # fmt: skip
VARIANTS = {
    "before": Variant("before: 512 games x 64 steps, batch 4,096, 2 epochs, tanh", ()),
    "short": Variant(
        "512 games x 16 steps, batch 1,024, 1 epoch", ("ppo.n_steps=16", "ppo.batch_size=1024", "ppo.n_epochs=1")
    ),
    "hard": Variant(
        "the same, more of the hard opponents",
        (
            "opponents={constant: 2, random: 1, clockwork: 1, based: 1, based-safe: 2, aggressive: 1, defensive: 3, "
            "hit-and-run: 1, aerial: 1, heavy-spammer: 3, weapon-seeker: 1, edge-guarder: 2}",
        ),
        "short",
    ),
    "canonical": Variant(
        "512 x 16, 1 epoch, canonical views, relu", ("policy.canonical=true", "policy.activation=relu"), "short"
    ),
    "rate": Variant(
        "canonical, learning rate from 3e-3",
        ("ppo.learning_rate={kind: linear, start: 3.0e-3, end: 1.0e-4}",),
        "canonical",
    ),
    "games": Variant("canonical, 256 games x 32 steps", ("world.num_envs=256", "ppo.n_steps=32"), "canonical"),
    "epochs": Variant("canonical, 2 epochs", ("ppo.n_epochs=2",), "canonical"),
    "draws": Variant("canonical, 2 epochs, a draw is as bad as a loss", ("rewards.weights.draw=-1.0",), "epochs"),
    "draws-hard": Variant(
        "the same, more of the hard opponents",
        (
            "opponents={constant: 3, random: 1, clockwork: 1, based: 2, based-safe: 3, aggressive: 1, defensive: 2, "
            "hit-and-run: 1, aerial: 1, heavy-spammer: 2, weapon-seeker: 1, edge-guarder: 2}",
        ),
        "draws",
    ),
    "draws-small": Variant("draws, networks of 64x64", ("policy.net_arch={pi: [64, 64], vf: [64, 64]}",), "draws"),
    "draws-anneal": Variant(
        "draws, learning rate from 1.5e-3 to 1e-5",
        ("ppo.learning_rate={kind: linear, start: 1.5e-3, end: 1.0e-5}",),
        "draws",
    ),
    "draws-96": Variant(
        "draws, 1.5e-3 to 1e-5, networks of 96x96", ("policy.net_arch={pi: [96, 96], vf: [96, 96]}",), "draws-anneal"
    ),
    "draws-small-anneal": Variant(
        "draws, 1.5e-3 to 1e-5, networks of 64x64", ("policy.net_arch={pi: [64, 64], vf: [64, 64]}",), "draws-anneal"
    ),
    "small-hard": Variant(
        "draws-small-anneal, more of the hard opponents",
        (
            "opponents={constant: 3, random: 1, clockwork: 1, based: 2, based-safe: 3, aggressive: 1, defensive: 2, "
            "hit-and-run: 1, aerial: 1, heavy-spammer: 2, weapon-seeker: 1, edge-guarder: 2}",
        ),
        "draws-small-anneal",
    ),
    "small-rate": Variant(
        "draws-small-anneal, learning rate from 2.5e-3",
        ("ppo.learning_rate={kind: linear, start: 2.5e-3, end: 1.0e-5}",),
        "draws-small-anneal",
    ),
    "small-closing": Variant(
        "draws, 1.5e-3 to 1e-5, 64x64, closing in pays twice as much",
        ("rewards.weights.closing=1.0",),
        "draws-small-anneal",
    ),
    "small-entropy": Variant(
        "draws, 1.5e-3 to 1e-5, 64x64, ent_coef 0.003 (`quick`)", ("ppo.ent_coef=0.003",), "draws-small-anneal"
    ),
    "draws-long": Variant("draws, 512 x 32 steps, batch 2,048", ("ppo.n_steps=32", "ppo.batch_size=2048"), "draws"),
    "draws-rate": Variant(
        "draws, learning rate from 2e-3",
        ("ppo.learning_rate={kind: linear, start: 2.0e-3, end: 1.0e-4}",),
        "draws",
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains what is missing, and writes the file after each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", default=list(VARIANTS), metavar="VARIANT", help=", ".join(VARIANTS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--env-steps", type=int, default=ENV_STEPS)
    parser.add_argument("--evaluations", type=int, default=1, help="of each run, evenly over its env steps")
    parser.add_argument("--matches", type=int, default=40, help="of an evaluation, per bot")
    parser.add_argument("--folder", type=Path, default=Path("runs/recipe"), help="where the runs are kept")
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    logging.getLogger("ludus").setLevel(logging.WARNING)
    runs: list[dict[str, Any]] = json.loads(options.out.read_text())["runs"] if options.out.is_file() else []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for name in options.variants:
            key = {"variant": name, "seed": seed, "env_steps": options.env_steps}
            if any(all(run[part] == value for part, value in key.items()) for run in runs):
                continue
            settings = overrides(name, seed, options.env_steps, options.evaluations, options.matches)
            points = learn(settings, options.folder / f"{name}-{seed}-{options.env_steps}")
            runs.append(key | {"label": VARIANTS[name].label, "matches": options.matches, "points": points})
            curve = " ".join(f"{point['win_rate']:.3f}" for point in points)
            print(f"[OK] {name} seed {seed}: {curve} after {points[-1]['cpu_s']:.0f} CPU s", flush=True)
            options.out.write_text(
                json.dumps({"short_env_steps": ENV_STEPS, "runs": runs}, indent=1) + "\n", encoding="utf-8"
            )


def settings_of(name: str) -> tuple[str, ...]:
    """Returns the overrides of a variant, those of its base first."""
    variant = VARIANTS[name]
    return (BEFORE if name == "before" else settings_of(variant.base)) + variant.settings


def overrides(name: str, seed: int, env_steps: int, evaluations: int, matches: int) -> list[str]:
    """Returns all overrides of one run."""
    return [
        *settings_of(name), *QUIET, f"seed={seed}", f"total_env_steps={env_steps}",
        "world.device=cpu", "world.settings.threads=1", f"evaluation.every_env_steps={env_steps // evaluations}",
        f"evaluation.matches={matches}", "checkpoints.every_env_steps=null",
    ]  # fmt: skip


class _Recorder(BaseCallback):
    """Counts CPU seconds of the iterations and keeps the evaluations."""

    def __init__(self) -> None:
        self.points: list[dict[str, Any]] = []
        self.cpu_s = self._began_s = 0.0

    def on_rollout_start(self, counters: Counters) -> None:
        """Start the clock."""
        self._began_s = time.process_time()

    def on_iteration(self, iteration: Iteration) -> None:
        """Stop the clock."""
        self.cpu_s += time.process_time() - self._began_s

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Keep the win rates."""
        self.points.append({
            "env_steps": evaluated.counters.env_steps, "cpu_s": round(self.cpu_s, 2),
            "win_rate": round(evaluated.score, 4),
            "bots": {row["opponent"]: round(row["win_rate"], 4) for row in evaluated.rows},
        })  # fmt: skip


def learn(settings: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Trains one run; returns its curve."""
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was cut off, whose CPU seconds are not known
    recorder = _Recorder()
    run = ludus.train(load_run_config("brawl", "quick", overrides=settings), callbacks=recorder, folder=folder)
    if run.stop_reason:
        raise SystemExit(f"[ERROR] {folder} ended early: {run.stop_reason}")
    return recorder.points


if __name__ == "__main__":
    main()
