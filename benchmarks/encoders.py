"""The streaming strategy encoder beside the window encoder: how fast each is learned with, and how well.

Speed: env steps a second of whole iterations on rock-paper-scissors against a hidden style, same encoder size, batch
and epochs, in turns so that noise of the machine meets both; medians. Learning: the return over the last tenth of the
training at equal samples, several seeds of each. Prints a table, or with `--json` the raw data.

    python benchmarks/encoders.py --output docs/data/encoders.json
"""

import argparse
import json
import multiprocessing
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import torch

from ludus.core.intervals import mean_interval
from ludus.training.components import Components
from ludus.training.config import TrainConfig

Kind = Literal["streaming", "window"]
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"layers": 1, "heads": 2, "width": 32, "feedforward": 64, "window": 9},
    "small": {"layers": 2, "heads": 4, "width": 64, "feedforward": 256, "window": 33},
    "medium": {"layers": 4, "heads": 4, "width": 128, "feedforward": 512, "window": 65},
    "full": {"layers": 6, "heads": 8, "width": 256, "feedforward": 1024, "window": 65},
}
KINDS: tuple[Kind, ...] = ("streaming", "window")
BEST_PLAY = 14.0  # of 16 rounds the first two are open


@dataclass(frozen=True, slots=True)
class Batch:
    """How much is collected and how it is learned from, the same for both encoders."""

    games: int
    steps: int
    batch_size: int
    epochs: int


LEARNING = Batch(32, 32, 256, 4)
SPEED = dict.fromkeys(SIZES, LEARNING) | {"full": Batch(4, 32, 128, 2)}
RATE = {"kind": "linear", "start": 1e-3, "end": 1e-4}


def main() -> None:
    """Measures what is asked for and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", default=["tiny", "small", "full"], choices=tuple(SIZES))
    parser.add_argument("--repeats", type=int, default=3, help="timed iterations; the full size takes one")
    parser.add_argument("--learn-size", default="tiny", choices=tuple(SIZES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=100, help="of each training, 1,024 env steps each")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at a time, one thread each")
    parser.add_argument("--output", type=Path, help="file for the raw data")
    parser.add_argument("--json", action="store_true", help="print the raw data instead of the tables")
    options = parser.parse_args()
    report: dict[str, Any] = {
        "threads": torch.get_num_threads(),
        "speed": [measure_speed(size, 1 if size == "full" else options.repeats) for size in options.sizes],
        "learning": measure_learning(options.learn_size, options.seeds, options.iterations, options.jobs),
    }
    text = json.dumps(report, indent=1)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text if options.json else "\n\n".join((speed_table(report["speed"]), learning_table(report["learning"]))))


def make_config(kind: Kind, size: str, batch: Batch, seed: int = 0) -> TrainConfig:
    """Returns the settings of a training with one of the encoders, which differ in nothing else."""
    return TrainConfig.model_validate(
        {
            "world": {"name": "rps", "num_envs": batch.games, "device": "cpu"},
            "seed": seed,
            "policy": {"strategy": {"kind": kind} | SIZES[size]},
            "ppo": {
                "n_steps": batch.steps,
                "batch_size": batch.batch_size,
                "n_epochs": batch.epochs,
                "sequence_length": batch.steps,
                "learning_rate": RATE,
                "ent_coef": 0.01,
            },
        }
    )


def measure_speed(size: str, repeats: int) -> dict[str, Any]:
    """Returns env steps a second of whole iterations with both encoders, and their ratio."""
    batch = SPEED[size]
    seconds: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    with (
        Components(make_config("streaming", size, batch)) as one,
        Components(make_config("window", size, batch)) as two,
    ):
        benches: dict[Kind, Components] = {"streaming": one, "window": two}
        for turn, kind in product(range(repeats + 1), KINDS):
            started = time.perf_counter()
            benches[kind].learner.iterate()
            if turn > 0:
                seconds[kind].append(time.perf_counter() - started)
    rates = {kind: batch.games * batch.steps / statistics.median(seconds[kind]) for kind in KINDS}
    return {
        "size": size,
        **{name: SIZES[size][name] for name in ("layers", "heads", "width", "window")},
        **asdict(batch),
        "repeats": repeats,
        "streaming_steps_per_s": rates["streaming"],
        "window_steps_per_s": rates["window"],
        "ratio": rates["streaming"] / rates["window"],
    }


def measure_learning(size: str, seeds: int, iterations: int, jobs: int) -> dict[str, Any]:
    """Trains all seeds of both encoders; returns their curves and returns over the last tenth."""
    runs = list(product(KINDS, range(seeds)))
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        curves = list(pool.map(train, *zip(*((kind, size, seed, iterations) for kind, seed in runs), strict=True)))
    late = max(1, iterations // 10)
    report: dict[str, Any] = {
        "size": size,
        **asdict(LEARNING),
        "env_steps": iterations * LEARNING.games * LEARNING.steps,
        "best_play": BEST_PLAY,
    }
    for kind in KINDS:
        own = [curve for (other, _), curve in zip(runs, curves, strict=True) if other == kind]
        finals = [statistics.fmean(curve[-late:]) for curve in own]
        report[kind] = {"final_returns": finals, "mean": statistics.fmean(finals), "curves": own}
    pairs = zip(report["streaming"]["final_returns"], report["window"]["final_returns"], strict=True)
    report["difference"] = mean_interval([one - other for one, other in pairs])._asdict() if seeds > 1 else None
    return report


def train(kind: Kind, size: str, seed: int, iterations: int) -> list[float]:
    """Returns the mean episode return of every iteration; on one thread, so that trainings can run side by side."""
    torch.set_num_threads(1)
    with Components(make_config(kind, size, LEARNING, seed)) as components:
        return [round(components.learner.iterate(i / iterations)["episode_return"], 3) for i in range(iterations)]


def speed_table(rows: list[dict[str, Any]]) -> str:
    """Returns the markdown table of speeds."""
    lines = [
        "| encoder (layers x width, window) | games x steps, batch, epochs | streaming, env steps/s | window | ratio |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        encoder = f"{row['size']} ({row['layers']} x {row['width']}, {row['window']})"
        batch = f"{row['games']} x {row['steps']}, {row['batch_size']}, {row['epochs']}"
        rates = f"{row['streaming_steps_per_s']:,.0f} | {row['window_steps_per_s']:,.1f} | {row['ratio']:.1f}"
        lines.append(f"| {encoder} | {batch} | {rates} |")
    return "\n".join(lines)


def learning_table(report: dict[str, Any]) -> str:
    """Returns the markdown table of learning, and the difference of the two."""
    lines = ["| encoder | env steps | mean final return | every seed |", "|---|---|---|---|"]
    for kind in KINDS:
        seeds = ", ".join(f"{value:.1f}" for value in report[kind]["final_returns"])
        lines.append(f"| {kind} | {report['env_steps']:,} | {report[kind]['mean']:.1f} | {seeds} |")
    gap = report["difference"]
    if gap is not None:
        lines += ["", f"Streaming minus window: {gap['estimate']:.1f} (95 %: {gap['low']:.1f} to {gap['high']:.1f})"]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
