"""Learning curves on Gymnasium's classics: our PPO and Stable-Baselines3's at equal samples and equal settings.

Every learner and seed writes the mean return of the episodes that ended in each rollout to docs/data/curves.csv; the
table and the picture in docs/research/learner.md are made from it. `--plot-only` draws them again without training.

    python benchmarks/gymnasium_curves.py --seeds 5
"""

import argparse
import csv
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

from ludus.core.intervals import mean_interval
from ludus.training.components import Components
from ludus.training.config import TrainConfig

mpl.use("Agg")
from matplotlib import pyplot as plt

DOCS = Path(__file__).parents[1] / "docs"
DATA = DOCS / "data" / "curves.csv"
PICTURE = DOCS / "images" / "curves.png"
Record = Callable[[int, float], None]


@dataclass(frozen=True, slots=True)
class Task:
    """A world with the settings that both learners get."""

    world: str
    total: int
    games: int
    steps: int
    batch: int
    epochs: int
    rate: float
    gamma: float
    gae_lambda: float


TASKS = (
    Task("CartPole-v1", 61_440, 8, 128, 256, 10, 1e-3, 0.98, 0.9),
    Task("Acrobot-v1", 98_304, 16, 256, 256, 4, 1e-3, 0.99, 0.94),
    Task("Pendulum-v1", 98_304, 4, 1024, 256, 10, 1e-3, 0.9, 0.95),
)


def main() -> None:
    """Trains what is asked for and draws everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--worlds", nargs="*", default=[task.world for task in TASKS])
    parser.add_argument("--plot-only", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.plot_only:
        train_all([task for task in TASKS if task.world in options.worlds], options.seeds)
    curves = read_curves()
    draw(curves)
    print_table(curves)


def train_all(tasks: list[Task], seeds: int) -> None:
    """Appends the curves of all learners and seeds to the data."""
    DATA.parent.mkdir(parents=True, exist_ok=True)
    fresh = not DATA.exists()
    with DATA.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(("world", "learner", "seed", "env_steps", "episode_return"))
        for task in tasks:
            for seed in range(seeds):
                for name, learn in (("ludus", learn_ludus), ("sb3", learn_sb3)):

                    def record(
                        env_steps: int, value: float, name: str = name, task: Task = task, seed: int = seed
                    ) -> None:
                        writer.writerow((task.world, name, seed, env_steps, f"{value:.3f}"))

                    learn(task, seed, record)
                    file.flush()


def learn_ludus(task: Task, seed: int, record: Record) -> None:
    """Trains our PPO."""
    config = TrainConfig.model_validate(
        {
            "world": {"name": f"gym:{task.world}", "num_envs": task.games},
            "seed": seed,
            "ppo": {
                "n_steps": task.steps,
                "batch_size": task.batch,
                "n_epochs": task.epochs,
                "learning_rate": task.rate,
                "gamma": task.gamma,
                "gae_lambda": task.gae_lambda,
            },
        }
    )
    with Components(config) as components:
        while components.learner.env_steps < task.total:
            value = components.learner.iterate()["episode_return"]
            if math.isfinite(value):
                record(components.learner.env_steps, value)


def learn_sb3(task: Task, seed: int, record: Record) -> None:
    """Trains Stable-Baselines3's PPO."""
    model = PPO(
        "MlpPolicy",
        make_vec_env(task.world, task.games, seed=seed),
        n_steps=task.steps,
        batch_size=task.batch,
        n_epochs=task.epochs,
        learning_rate=task.rate,
        gamma=task.gamma,
        gae_lambda=task.gae_lambda,
        seed=seed,
        device="cpu",
    )
    model.learn(task.total, callback=_Returns(record))


class _Returns(BaseCallback):
    """Records the mean return of the episodes that ended in each rollout."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self._record, self._returns = record, list[float]()

    def _on_step(self) -> bool:
        self._returns += [float(info["episode"]["r"]) for info in self.locals["infos"] if "episode" in info]
        return True

    def _on_rollout_end(self) -> None:
        if self._returns:
            self._record(self.num_timesteps, sum(self._returns) / len(self._returns))
        self._returns = []


Curves = dict[tuple[str, str], dict[int, list[tuple[int, float]]]]


def read_curves() -> Curves:
    """Reads `(world, learner) -> seed -> points`."""
    curves: Curves = defaultdict(lambda: defaultdict(list))
    with DATA.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            point = (int(row["env_steps"]), float(row["episode_return"]))
            curves[row["world"], row["learner"]][int(row["seed"])].append(point)
    return curves


def draw(curves: Curves) -> None:
    """Draws the mean over seeds with the range of the seeds."""
    worlds = list(dict.fromkeys(world for world, _ in curves))
    figure, axes = plt.subplots(1, len(worlds), figsize=(4.2 * len(worlds), 3.4), squeeze=False)
    for axis, world in zip(axes[0], worlds, strict=True):
        for learner, color in (("ludus", "#2563eb"), ("sb3", "#ea580c")):
            seeds = curves[world, learner].values()
            last = min(points[-1][0] for points in seeds)
            grid = np.linspace(max(points[0][0] for points in seeds), last, 60)
            lines = np.stack([np.interp(grid, *np.array(points).T) for points in seeds])
            axis.plot(grid, lines.mean(0), color=color, label=learner)
            axis.fill_between(grid, lines.min(0), lines.max(0), color=color, alpha=0.18, linewidth=0)
        axis.set_title(world)
        axis.set_xlabel("env steps")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("episode return")
    axes[0][0].legend()
    figure.tight_layout()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


def print_table(curves: Curves) -> None:
    """Prints the return over the last tenth of the training: mean over seeds with its 95 % interval."""
    print("| world | env steps | seeds | Ludus | Stable-Baselines3 |\n|---|---|---|---|---|")
    for world in dict.fromkeys(world for world, _ in curves):
        cells, total, count = [], 0, 0
        for learner in ("ludus", "sb3"):
            finals = []
            for points in curves[world, learner].values():
                total = max(total, points[-1][0])
                late = [value for step, value in points if step > 0.9 * points[-1][0]]
                finals.append(sum(late) / len(late))
            count = len(finals)
            interval = mean_interval(finals)
            cells.append(f"{interval.estimate:.0f} ({interval.low:.0f} to {interval.high:.0f})")
        print(f"| {world} | {total:,} | {count} | {cells[0]} | {cells[1]} |")


if __name__ == "__main__":
    main()
