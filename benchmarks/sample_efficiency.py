"""How fast PPO, SAC and TD3 learn a world: evaluations against env steps and against seconds of training.

Every algorithm trains the same world with the same settings, apart from those that `--preset` and `--set` give to one
of them alone; the seconds are those of its iterations, without evaluations and checkpoints. Writes a JSON file and a
picture of the first number.

    python benchmarks/sample_efficiency.py gym:Pendulum-v1 --env-steps 20_000 --seeds 3 --set world.num_envs=4 \
        --set sac:sac.learning_rate=1e-3 --out pendulum
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from ludus.training import Trainer
from ludus.training.callbacks import BaseCallback, Evaluated
from ludus.training.config import TrainConfig
from ludus.training.presets import load_run_config

mpl.use("Agg")
from matplotlib import pyplot as plt

ALGORITHMS = {"ppo": "#2563eb", "sac": "#ea580c", "td3": "#16a34a"}
AXES = {"env_steps": "env steps", "seconds": "seconds of training"}
QUIET = ("monitoring.console=off", "monitoring.tensorboard=false", "monitoring.curves=false")
Run = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains everything that is asked for, and writes what came of it."""
    options = _read(arguments)
    runs: list[Run] = []
    for seed in range(options.seeds):
        for algorithm in options.algorithms:
            config = make_config(options, algorithm, seed)
            runs.append({"algorithm": algorithm, "seed": seed, "points": learn(config, options.numbers)})
            last = runs[-1]["points"][-1]
            print(f"{algorithm} seed {seed}: {last[options.numbers[0]]:.4g} after {last['env_steps']:,} env steps, "
                  f"{last['seconds']:.0f} s", flush=True)  # fmt: skip
            report = {"world": options.world, "presets": options.presets, "settings": options.settings}
            report |= {"numbers": options.numbers, "runs": runs}
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.with_suffix(".json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    draw(runs, options.numbers[0], f"{options.world}: {options.numbers[0]}", options.out.with_suffix(".png"))


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world")
    parser.add_argument("--preset", action="append", default=[], metavar="[ALGORITHM:]PRESET", dest="presets")
    parser.add_argument("--algorithms", nargs="+", choices=tuple(ALGORITHMS), default=list(ALGORITHMS))
    parser.add_argument("--env-steps", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--evaluations", type=int, default=20, help="of each run, evenly over its env steps")
    parser.add_argument("--matches", type=int, default=20, help="episodes of an evaluation")
    parser.add_argument(
        "--numbers", nargs="+", default=["score"], help="score, or columns of an evaluation's first row"
    )
    parser.add_argument("--set", action="append", default=[], metavar="[ALGORITHM:]KEY=VALUE", dest="settings")
    parser.add_argument("--out", type=Path, default=Path("sample_efficiency"), help="without suffix")
    return parser.parse_args(arguments)


def make_config(options: argparse.Namespace, algorithm: str, seed: int) -> TrainConfig:
    """Returns the settings of one run."""
    every = max(options.env_steps // options.evaluations, 1)
    overrides = [
        f"algorithm={algorithm}",
        f"seed={seed}",
        f"total_env_steps={options.env_steps}",
        f"evaluation.every_env_steps={every}",
        f"evaluation.matches={options.matches}",
        "evaluation.deterministic=true",
        "evaluation.sooner=null",
        "checkpoints.every_env_steps=null",
        *QUIET,
    ]
    if algorithm != "ppo":
        overrides.append(f"{algorithm}.checkpoint_buffer=false")
    presets = own(options.presets, algorithm)
    return load_run_config(
        options.world, presets[-1] if presets else None, overrides=[*overrides, *own(options.settings, algorithm)]
    )


def own(options: Sequence[str], algorithm: str) -> list[str]:
    """Returns the options that are for all algorithms or for this one, without its name."""
    found = []
    for option in options:
        whose, _, rest = option.partition(":")
        is_for_one = whose in ALGORITHMS and bool(rest)
        if not is_for_one or whose == algorithm:
            found.append(rest if is_for_one else option)
    return found


class _Points(BaseCallback):
    """Writes down every evaluation."""

    def __init__(self, numbers: Sequence[str]) -> None:
        self.points: list[dict[str, float]] = []
        self._numbers = numbers

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Adds a point."""
        counters, seconds = evaluated.counters, round(self.trainer.training_s, 3)
        found = {**evaluated.rows[0], "score": evaluated.score}
        point = {"env_steps": counters.env_steps, "updates": counters.updates, "seconds": seconds}
        self.points.append(point | {name: float(found[name]) for name in self._numbers})


def learn(config: TrainConfig, numbers: Sequence[str]) -> list[dict[str, float]]:
    """Trains one run in a folder that is gone afterwards; returns its evaluations."""
    recorder = _Points(numbers)
    with (
        tempfile.TemporaryDirectory(prefix="ludus-efficiency-") as folder,
        Trainer(config, Path(folder), [recorder]) as trainer,
    ):
        trainer.run()
    return recorder.points


def draw(runs: Sequence[Run], number: str, title: str, file: Path) -> None:
    """Draws the mean of a number over seeds with its range: against env steps, and against seconds."""
    by_algorithm: dict[str, list[list[dict[str, float]]]] = defaultdict(list)
    for run in runs:
        by_algorithm[run["algorithm"]].append(run["points"])
    figure, panels = plt.subplots(1, len(AXES), figsize=(4.6 * len(AXES), 3.4), sharey=True)
    for panel, (axis, label) in zip(panels, AXES.items(), strict=True):
        for algorithm, seeds in by_algorithm.items():
            ends = [points[-1][axis] for points in seeds]
            grid = np.linspace(max(points[0][axis] for points in seeds), min(ends), 60)
            lines = np.stack(
                [np.interp(grid, [p[axis] for p in points], [p[number] for p in points]) for points in seeds]
            )
            color = ALGORITHMS[algorithm]
            panel.plot(grid, lines.mean(0), color=color, label=algorithm.upper())
            panel.fill_between(grid, lines.min(0), lines.max(0), color=color, alpha=0.18, linewidth=0)
        panel.set_xlabel(label)
        panel.grid(alpha=0.3)
    panels[1].set_xscale("log")
    panels[0].set_ylabel("evaluation")
    panels[0].legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
