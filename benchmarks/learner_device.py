"""Training on worlds that live on the CPU: learner on the CPU against learner on the GPU, games on the CPU in both.

Every case is a preset with another width of its networks or another number of games. The two learners take turns,
iteration by iteration; medians are compared. The work is what `learner_device: auto` decides by.

    python benchmarks/learner_device.py          # docs/data/learner_device.csv
"""

import argparse
import csv
import statistics
import time
from pathlib import Path

import torch

from ludus.policies.config import NetArch
from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.presets import load_run_config
from ludus.training.resolve import learner_work, set_up_device

DATA = Path(__file__).parents[1] / "docs" / "data" / "learner_device.csv"
FIELDS = ("world", "games", "layers", "gflop_per_step", "cpu_steps_per_s", "gpu_steps_per_s", "ratio", "threads")

# World, preset, and for each case the games and the width of both hidden layers; None as the preset has it.
CASES: tuple[tuple[str, str | None, tuple[tuple[int | None, int | None], ...]], ...] = (
    ("gym:CartPole-v1", None, ((None, None), (64, 64), (64, 256), (64, 1024))),
    ("mimic", "walk", ((64, 64), (None, None), (512, 256), (512, 512), (512, 1024), (2048, 512))),
    ("city", "quick", ((16, None), (None, None), (None, 256), (256, None))),
)


def main() -> None:
    """Measure every case and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="of the second learner")
    parser.add_argument("--repeats", type=int, default=5, help="iterations of each learner")
    parser.add_argument("--worlds", nargs="*", default=[world for world, _, _ in CASES])
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args()
    set_up_device(options.device)
    kept = []
    if options.out.exists():
        with options.out.open(newline="", encoding="utf-8") as file:
            kept = [row for row in csv.DictReader(file) if row["world"] not in options.worlds]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
        for world, preset, sizes in CASES:
            for games, width in sizes if world in options.worlds else ():
                row = measure(with_sizes(load_run_config(world, preset), games, width), options.device, options.repeats)
                writer.writerow(row)
                file.flush()  # an interrupted measurement keeps what it has
                print(*(f"{name} {row[name]}" for name in FIELDS), sep=", ", flush=True)


def with_sizes(config: TrainConfig, games: int | None, width: int | None) -> TrainConfig:
    """Return a run with so many games and layers so wide; its minibatches grow with the games."""
    world, policy, ppo = config.world, config.policy, config.hyperparameters
    if games is not None:
        ppo = ppo.model_copy(update={"batch_size": max(1, ppo.batch_size * games // world.num_envs)})
        world = world.model_copy(update={"num_envs": games})
    if width is not None:
        policy = policy.model_copy(update={"net_arch": NetArch(pi=(width, width), vf=(width, width))})
    return config.model_copy(update={"world": world, "policy": policy}).with_hyperparameters(ppo)


def measure(config: TrainConfig, device: str, repeats: int) -> dict[str, object]:
    """Return a row of the table."""
    world = config.world.model_copy(update={"device": "cpu"})
    config = config.model_copy(update={"world": world, "evaluation": None})
    rates: list[list[float]] = [[], []]
    both = [Components(config.model_copy(update={"learner_device": place})) for place in ("cpu", device)]
    try:
        for turn in range(repeats + 2):  # the first two make buffers, graphs and compiled functions
            for components, measured in zip(both, rates, strict=True):
                rate = iterate(components)
                if turn >= 2:
                    measured.append(rate)
    finally:
        for components in both:
            components.close()
    cpu, gpu = (statistics.median(measured) for measured in rates)
    layers = "x".join(map(str, config.policy.net_arch.pi))
    values = (
        *(world.name, world.num_envs, layers, round(learner_work(config) / 1e9, 4)),
        *(round(cpu), round(gpu), round(gpu / cpu, 2), torch.get_num_threads()),
    )
    return dict(zip(FIELDS, values, strict=True))


def iterate(components: Components) -> float:
    """Do one iteration and return its env steps per second."""
    before, started_s = components.env_steps, time.perf_counter()
    components.learner.collect()
    components.learner.update()
    components.learner.metrics()  # waits for the device
    components.trace.read()
    return (components.env_steps - before) / (time.perf_counter() - started_s)


if __name__ == "__main__":
    main()
