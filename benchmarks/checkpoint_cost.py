"""How long a checkpoint stops a run: written while the run waits, and written by another thread while it trains on.

Both ways are the same run with a checkpoint after every iteration, in turns, so that noise of the machine meets both.
What counts is the time in which the loop does nothing but save: in the second way the copy of the state, and what is
left of the write when the next iteration has ended.

    python benchmarks/checkpoint_cost.py
    python benchmarks/checkpoint_cost.py --device cuda --json > docs/data/checkpoint_cost_h200.json
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ludus.training.config import TrainConfig
from ludus.training.loop import Trainer
from ludus.training.presets import load_run_config

CASES = {"brawl": "quick", "rocket": "quick", "mimic": "walk", "roshambo": "quick"}
_ITERATIONS = 6  # of a run; the first one warms up


def main() -> None:
    """Measures and prints a table, or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each way")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(world, options.device, options.repeats) for world in options.worlds]
    name = "cpu" if options.device == "cpu" else torch.cuda.get_device_name(options.device).removeprefix("NVIDIA ")
    report = {"device": name, "cores": os.cpu_count(), "machine": platform.machine(), "rows": rows}
    if options.json:
        print(json.dumps(report, indent=1))
        return
    for row in rows:
        print(
            f"[OK] {row['world']}: {row['mib']:.1f} MiB; an iteration takes {row['iteration_ms']:.0f} ms; "
            f"stopped per checkpoint {row['waiting_ms']:.1f} ms waiting, {row['background_ms']:.1f} ms in background"
        )


def measure(world: str, device: str, repeats: int) -> dict[str, Any]:
    """Times both ways of one world."""
    words = (f"world.device={device}", "evaluation=null", "checkpoints.every_iterations=1", "monitoring.curves=false")
    config = load_run_config(world, CASES[world], None, words)
    stopped_s: dict[str, list[float]] = {"waiting": [], "background": []}
    iterations_s: list[float] = []
    size = 0
    for _ in range(repeats):
        for way, times in stopped_s.items():
            with tempfile.TemporaryDirectory() as folder:
                saved_s, iterated_s, size = run(config, Path(folder), waits=way == "waiting")
            times += saved_s
            iterations_s += iterated_s
    return {
        "world": world,
        "preset": CASES[world],
        "mib": size / 1024.0**2,
        "checkpoints": len(stopped_s["waiting"]),
        "iteration_ms": 1000.0 * statistics.median(iterations_s),
        **{f"{way}_ms": 1000.0 * statistics.median(times) for way, times in stopped_s.items()},
        **{f"{way}_ms_worst": 1000.0 * max(times) for way, times in stopped_s.items()},
    }


def run(config: TrainConfig, folder: Path, *, waits: bool) -> tuple[list[float], list[float], int]:
    """Trains; returns how long each checkpoint stopped the loop, the times of iterations, and bytes per checkpoint."""
    saved_s, iterated_s = [0.0] * _ITERATIONS, [0.0] * _ITERATIONS
    with Trainer(config, folder) as trainer:
        trainer.save("init")

        def timed(function: Callable[..., Any], sums: list[float], number: int) -> Any:  # noqa: ANN401
            started_s = time.perf_counter()
            result = function()
            sums[number] += time.perf_counter() - started_s
            return result

        for number in range(_ITERATIONS):
            timed(trainer._iterate, iterated_s, number)  # noqa: SLF001 - the parts of the loop
            timed(trainer._end_save, saved_s, number)  # noqa: SLF001
            name = f"step-{number}"
            save = trainer.save if waits else trainer._save_in_background  # noqa: SLF001
            timed(lambda save=save, name=name: save(name), saved_s, number)
        trainer.save("final")
        size = sum(file.stat().st_size for file in (folder / "checkpoints" / "final").iterdir())
    return saved_s[1:], iterated_s[1:], size


if __name__ == "__main__":
    main()
