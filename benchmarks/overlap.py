"""What `ppo.overlap` changes: env steps per second on a GPU, and win rates after equal env steps.

- Without `--learning`, two runs that differ in that setting alone are trained side by side in one process. They take
  turns of some iterations each, so that other work on the machine meets both; medians over the turns are compared. An
  iteration is that of a run: with its logs and the copy of its state, to which overlapping adds the waiting rollout.
  The cases are brawl's preset `competition` with all of its opponents, and those of `learn_speed.py`, by their names
  there, at their sizes against the random bot.
- With `--learning`, runs of a preset are trained with and without, each over several seeds, and evaluated against all
  bots at the end. Runs that the file has already are not repeated.

    python benchmarks/overlap.py --device cuda --json docs/data/overlap.json
    python benchmarks/overlap.py --learning --device cuda --seeds 3 --json docs/data/overlap.json
    python benchmarks/overlap.py --learning --seeds 1 --env-steps 65536 --matches 4    # whether it works, on a CPU

Each way keeps what the file holds of the other one.
"""

import argparse
import json
import logging
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from benchmarks import learn_speed

import ludus
from ludus.training import BaseCallback, TrainConfig, Trainer
from ludus.training.callbacks import Evaluated
from ludus.training.presets import load_run_config
from ludus.training.resolve import set_up_device
from ludus.training.run_folder import changed_config

WORLD = "brawl"
PRESET = "competition"
CASES = (PRESET, "mlp", "mlp_one_epoch", "lstm", "lstm_one_epoch")
WAYS = {"off": False, "on": True}
# Iterations before a run is timed. On a GPU they record graphs, once more when the first snapshot joins the league.
_WARM_UP = {"cpu": 1, "cuda": 24}
_QUIET = ("monitoring.console=off", "monitoring.tensorboard=false", "monitoring.curves=false",
          "checkpoints.every_env_steps=null", "checkpoints.every_iterations=null")  # fmt: skip
_ENDLESS = 10**12  # env steps: no run of the first part reaches its budget


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print one line per case or run, and write a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--learning", action="store_true", help="compare win rates instead of speed")
    parser.add_argument("--cases", nargs="*", default=list(CASES), help=f"of: {', '.join(CASES)}")
    parser.add_argument("--repeats", type=int, default=7, help="turns of each way")
    parser.add_argument("--iterations", type=int, default=8, help="per turn")
    parser.add_argument("--set", nargs="*", default=[], help="settings of all runs, such as world.num_envs=64")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--env-steps", type=int, help="of a run with --learning; those of the preset if left out")
    parser.add_argument("--matches", type=int, default=100, help="of an evaluation, per bot")
    parser.add_argument("--folder", type=Path, default=Path("runs/overlap"), help="where runs with --learning are kept")
    parser.add_argument("--json", type=Path, help="file to write")
    options = parser.parse_args(arguments)
    logging.getLogger("ludus").setLevel(logging.WARNING)
    report: dict[str, Any] = {}
    if options.json is not None and options.json.is_file():
        report = json.loads(options.json.read_text(encoding="utf-8"))
    for part in measure_learning(options, report) if options.learning else measure_speed(options):
        report |= part
        if options.json is not None:  # an interrupted measurement keeps what it has
            options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def device_name(device: str) -> str:
    """Return the name of a GPU, or `cpu`."""
    is_cuda = torch.device(device).type == "cuda"
    return torch.cuda.get_device_name(device).removeprefix("NVIDIA ") if is_cuda else "cpu"


def measure_speed(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the measurements of all cases so far, after each of them."""
    set_up_device(options.device)
    rows: list[dict[str, Any]] = []
    for case in options.cases:
        rows.append(compare_speed(case, options))
        rates = rows[-1]["steps_per_s"]
        print(
            f"[OK] {case}: {rates['off']:,.0f} env steps/s without overlap, {rates['on']:,.0f} with it (ratio "
            f"{rows[-1]['ratio']:.3f}); update {rows[-1]['update_share']:.0%} of the time without",
            flush=True,
        )
        yield {"speed": {"device": device_name(options.device), "rows": rows}}


def compare_speed(case: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the rates of a case with and without overlap."""
    words = [f"world.device={options.device}", *_QUIET, "evaluation=null", f"total_env_steps={_ENDLESS}", *options.set]
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runs: dict[str, Any] = {}  # generators
        shares = Shares()
        for way, is_on in WAYS.items():
            config = changed_config(load_case(case), [*words, f"ppo.overlap={str(is_on).lower()}"])
            trainer = stack.enter_context(Trainer(config, folder / way, () if is_on else [shares]))
            runs[way] = trainer.turns()
            stack.callback(runs[way].close)
            run_on(runs[way], _WARM_UP[torch.device(options.device).type])
        shares.times_s.clear()
        for _ in range(options.repeats):
            for way, turns in runs.items():
                seconds[way].append(timed_s(turns, options.iterations, options.device))
        env_steps = trainer.components.learner.rollout.steps * trainer.components.learner.rows.count
    rates = {way: options.iterations * env_steps / statistics.median(times) for way, times in seconds.items()}
    ppo = config.hyperparameters
    return {
        "case": case,
        "overrides": options.set,
        "games": config.world.num_envs,
        "n_steps": ppo.n_steps,
        "n_epochs": ppo.n_epochs,
        "iterations": options.iterations,
        "update_share": shares.times_s.get("update", 0.0) / max(sum(shares.times_s.values()), 1e-9),
        "steps_per_s": rates,
        "ratio": rates["on"] / rates["off"],
        "seconds": seconds,
    }


def load_case(case: str) -> TrainConfig:
    """Return the settings of a case: the preset, or one of the learners in `learn_speed.py`."""
    if case == PRESET:
        return load_run_config(WORLD, PRESET)
    games, policy, ppo = learn_speed.CASES["cuda"][case]
    return TrainConfig.model_validate(
        {"world": {"name": WORLD, "num_envs": games}, "policy": policy, "ppo": ppo, "opponents": {"random": 1.0}}
    )


class Shares(BaseCallback):
    """Adds up where the time of a run went."""

    def __init__(self) -> None:
        self.times_s: dict[str, float] = {}

    def on_iteration(self, iteration: ludus.training.Iteration) -> None:
        """Add the times of an iteration."""
        for name, seconds in iteration.times_s.items():
            self.times_s[name] = self.times_s.get(name, 0.0) + seconds


def run_on(turns: Iterator[None], iterations: int) -> None:
    """Let a run do so many iterations more."""
    for _ in range(iterations):
        next(turns)


def timed_s(turns: Iterator[None], iterations: int, device: str) -> float:
    """Return how long so many iterations take until the device has done them."""
    wait(device)
    started_s = time.perf_counter()
    run_on(turns, iterations)
    wait(device)
    return time.perf_counter() - started_s


def wait(device: str) -> None:
    """Wait until a GPU has done all that it was given."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def measure_learning(options: argparse.Namespace, before: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all runs so far, those of before included, after each new one."""
    runs: list[dict[str, Any]] = list(before.get("learning", ()))
    for seed in range(options.seeds):
        for way in WAYS:
            config = learning_config(options, seed, way)
            key = {"preset": options.preset, "overrides": options.set, "overlap": way, "seed": seed}
            key |= {"env_steps": config.total_env_steps, "matches": options.matches}
            if any(all(run.get(part) == value for part, value in key.items()) for run in runs):
                continue
            evaluated = learn(config, options.folder / f"{options.preset}-{way}-{seed}-{config.total_env_steps}")
            bots = {row["opponent"]: round(row["win_rate"], 4) for row in evaluated.rows}
            win_rate = statistics.fmean(row["win_rate"] for row in evaluated.rows)
            runs.append(key | {"device": device_name(options.device), "win_rate": round(win_rate, 4), "bots": bots})
            steps = f"{config.total_env_steps:,}"
            print(f"[OK] overlap {way}, seed {seed}: wins {win_rate:.1%} after {steps} env steps", flush=True)
            yield {"learning": runs}


def learning_config(options: argparse.Namespace, seed: int, way: str) -> TrainConfig:
    """Return the settings of one run, which is evaluated once, at its end."""
    preset = load_run_config(WORLD, options.preset)
    env_steps = preset.total_env_steps if options.env_steps is None else options.env_steps
    words = [
        *_QUIET, f"world.device={options.device}", f"seed={seed}", f"total_env_steps={env_steps}",
        f"evaluation.every_env_steps={env_steps}", f"evaluation.matches={options.matches}",
        f"ppo.overlap={str(WAYS[way]).lower()}", *options.set,
    ]  # fmt: skip
    return changed_config(preset, words)


class LastEvaluation(BaseCallback):
    """Keeps the last evaluation of a run."""

    def __init__(self) -> None:
        self.evaluated: Evaluated | None = None

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Keep it."""
        self.evaluated = evaluated


def learn(config: TrainConfig, folder: Path) -> Evaluated:
    """Train one run in an empty folder, and return its evaluation."""
    shutil.rmtree(folder, ignore_errors=True)
    last = LastEvaluation()
    run = ludus.train(config, callbacks=last, folder=folder)
    if run.stop_reason or last.evaluated is None:
        raise SystemExit(f"[ERROR] {folder} ended without an evaluation: {run.stop_reason}")
    return last.evaluated


if __name__ == "__main__":
    main()
