"""Does the strategy encoder earn its place? The full agent beside the same without encoder, and without any memory.

    python benchmarks/strategy_results.py --env-steps 10_000_000 --seeds 3 --out docs/data/strategy_results.json

Trains every variant over several seeds on the same preset of brawl, once with equal samples and once with equal
training time: the faster variants then get as many env steps as they can do in the time that the full agent takes for
its samples. What an env step takes is measured before, alone on the machine. Every agent then meets all styles, the
switching bot, which no training shows, bots with reaction delays and noise that no training shows, and all styles while
it sees late or through noise itself. A linear probe is asked what latent or memory know; the full agents are ablated
too. Writes everything as JSON, which `benchmarks/tables` makes tables of.

A run that is there already goes on or is taken as it is, so a benchmark that was cut off can be started again. Runs
that share a GPU are started one by one, and the same command without `--only` then puts everything together:

    python benchmarks/strategy_results.py --only speed
    python benchmarks/strategy_results.py --only full-0-samples &
    python benchmarks/strategy_results.py --only mlp-0-time
"""

import argparse
import csv
import json
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ludus.analysis.summary import analyse
from ludus.envs.registry import make_env
from ludus.envs.world_parts import styles_of
from ludus.evaluation.evaluate import PolicyEvaluator
from ludus.evaluation.matches import MAX_ENVS
from ludus.evaluation.players import Perturbation, find_players
from ludus.policies.agent import Agent
from ludus.training.callbacks import BaseCallback, Iteration
from ludus.training.config import TrainConfig
from ludus.training.loop import Trainer
from ludus.training.presets import load_run_config
from ludus.training.resolve import resolve, set_up_device

PRESET = Path(__file__).parent / "presets" / "armed.yaml"
# What each variant changes of the preset, which has both a strategy encoder and a recurrent memory.
VARIANTS: dict[str, tuple[str, ...]] = {
    "full": (),
    "recognising": ("policy.strategy.classify=0.5",),
    "lstm": ("policy.strategy=null",),
    "mlp": ("policy.strategy=null", "policy.recurrent=null"),
}
UNSEEN = {"delay": "delay=10", "noise": "noise=0.25"}  # the styles' own are 4 frames and 5 %
PERTURBED = {"seeing late": Perturbation(delay_frames=3), "seeing noise": Perturbation(noise=0.1)}
_CURVE = ("knockouts", "pickups", "survival_s")
_HARMLESS = "constant"  # deals no damage, so there is no ratio
_MINDLESS = ("constant", "random", "clockwork")  # delay and noise change nothing about them
_SEED = 20  # of evaluations; training uses others
_TIMED, _UNTIMED = 50, 30  # iterations of the measurement of speed, after those that compile and fill the league
_SAME = 0.03  # budgets that differ by less are one


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, evaluates and reports."""
    options = parse(arguments)
    if options.only:
        for part in options.only:
            do_part(options, part)
        return
    speeds = {variant: speed(options, variant) for variant in options.variants}
    runs = [
        trained(options, variant, seed, budget) | {"budget": budget}
        for seed in range(options.seeds)
        for variant in options.variants
        for budget in budgets(options, variant)
    ]
    report = {
        "preset": options.preset,
        "settings": options.set,
        "env_steps": options.env_steps,
        "matches": options.matches,
        "seconds_a_million_env_steps": {variant: 1e6 * found for variant, found in speeds.items()},
        "runs": runs,
    }
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for run in runs:
        means = ", ".join(f"{name} {mean:.1%}" for name, mean in run["means"].items())
        print(f"[OK] {run['variant']}, seed {run['seed']}, equal {run['budget']}: {means}")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default=str(PRESET), help="name of a preset, or a file")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["full", "lstm", "mlp"])
    parser.add_argument("--env-steps", type=int, default=10_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--matches", type=int, default=100, help="against each opponent")
    parser.add_argument("--probe-matches", type=int, default=32, help="against each style, for the probe")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE for every run")
    parser.add_argument("--only", nargs="+", metavar="PART", help="speed, or VARIANT-SEED-BUDGET such as mlp-0-time")
    parser.add_argument("--folder", type=Path, default=Path("runs/strategy-results"))
    parser.add_argument("--out", type=Path, help="file for the raw data")
    return parser.parse_args(arguments)


def do_part(options: argparse.Namespace, part: str) -> None:
    """Measures the speed of all variants, or trains and evaluates one run; the results stay in the folder."""
    if part == "speed":
        for variant in options.variants:
            speed(options, variant)
        return
    variant, seed, budget = part.split("-")
    trained(options, variant, int(seed), budget)


def budgets(options: argparse.Namespace, variant: str) -> tuple[str, ...]:
    """Returns what a variant is trained with: those that cannot be compared with the full agent's time have one."""
    alone = "full" not in options.variants or variant == "recognising"
    return ("samples",) if alone else ("samples", "time")


def budget_steps(options: argparse.Namespace, variant: str, budget: str) -> int:
    """Returns the env steps of a run: equal ones, or those of the time that the full agent takes for them."""
    if budget == "samples":
        return int(options.env_steps)
    ratio = speed(options, "full") / speed(options, variant)
    return int(options.env_steps) if abs(ratio - 1.0) < _SAME else round(options.env_steps * ratio)


def speed(options: argparse.Namespace, variant: str) -> float:
    """Returns the seconds that an env step of training takes; measured anew unless the folder has it."""
    file = options.folder / f"speed-{variant}.json"
    if not file.exists():
        found = measure_speed(make_config(options.preset, variant, 0, options.env_steps, options.set))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found) + "\n", encoding="utf-8")
    return float(json.loads(file.read_text(encoding="utf-8"))["seconds_a_step"])


class _Watch(BaseCallback):
    """Notes how long iterations take."""

    def __init__(self) -> None:
        self.taken_s: list[float] = []

    def on_iteration(self, iteration: Iteration) -> None:
        """Notes one."""
        self.taken_s.append(iteration.elapsed_s)


def measure_speed(config: TrainConfig, callbacks: Sequence[BaseCallback] = ()) -> dict[str, float]:
    """Trains a few iterations and returns the median seconds of an env step, and how many steps an iteration has."""
    steps = config.world.num_envs * config.hyperparameters.n_steps
    league = config.league.model_copy(update={"snapshot_every_env_steps": steps})
    changes = {"total_env_steps": steps * (_UNTIMED + _TIMED), "evaluation": None, "league": league}
    watch = _Watch()
    set_up_device(resolve(config).device)
    with (
        tempfile.TemporaryDirectory() as folder,
        Trainer(config.model_copy(update=changes), Path(folder), [watch, *callbacks]) as trainer,
    ):
        done = trainer.run().env_steps
    per_iteration = done // len(watch.taken_s)
    seconds = statistics.median(watch.taken_s[_UNTIMED:])
    return {"seconds_a_step": seconds / per_iteration, "env_steps_an_iteration": per_iteration}


def trained(options: argparse.Namespace, variant: str, seed: int, budget: str) -> dict[str, Any]:
    """Returns the results of one run; made anew unless its folder has them."""
    env_steps = budget_steps(options, variant, budget)
    if env_steps == options.env_steps:
        budget = "samples"  # one run is both
    folder = options.folder / f"{variant}-{seed}-{budget}"
    results = folder / "strategy_results.json"
    if results.exists():
        found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
        return found
    config = make_config(options.preset, variant, seed, env_steps, options.set)
    document: dict[str, Any] = {"variant": variant, "seed": seed} | train_noted(config, folder)
    document["training_s"] = document["env_steps"] * speed(options, variant)
    agent = Agent.load(folder, str(resolve(config).device))
    document |= judge(agent, options.matches) | probe(agent, options.probe_matches)
    document["curve"] = read_curve(folder) if config.evaluation is not None else []
    results.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


def train_noted(config: TrainConfig, folder: Path, callbacks: Sequence[BaseCallback] = ()) -> dict[str, Any]:
    """Trains, or goes on; returns how far it got and how large the agent is."""
    notes = folder / "strategy_training.json"
    if notes.exists():
        found: dict[str, Any] = json.loads(notes.read_text(encoding="utf-8"))
        return found
    set_up_device(resolve(config).device)
    with Trainer(config, folder, callbacks) as trainer:
        done = trainer.run().env_steps
        parameters = sum(parameter.numel() for parameter in trainer.components.policy.parameters())
    document = {"env_steps": done, "parameters": parameters}
    notes.write_text(json.dumps(document) + "\n", encoding="utf-8")
    return document


def make_config(preset: str, variant: str, seed: int, env_steps: int, changes: Sequence[str] = ()) -> TrainConfig:
    """Returns the settings of a run; the preset's opponents are all styles but the switching bot, and itself."""
    overrides = [f"total_env_steps={env_steps}", f"seed={seed}", *changes]
    named, file = (None, Path(preset)) if preset.endswith(".yaml") else (preset, None)
    return load_run_config("brawl", named, file, [*overrides, *VARIANTS[variant]])


def judge(agent: Agent, matches: int) -> dict[str, Any]:
    """Lets an agent meet every group of opponents."""
    with make_env("brawl", 1, agent.device, config=agent.settings or None) as env:
        switchers = styles_of(env.spec.id).switching_bots
        styles = [bot for bot in env.spec.bots if bot not in switchers]
    minded = [style for style in styles if style not in _MINDLESS]
    play = partial(win_rates, agent, matches=matches)
    rates = {"styles": play(styles), "switcher": play(switchers)}
    rates |= {name: play([f"{style}:{setting}" for style in minded]) for name, setting in UNSEEN.items()}
    rates |= {name: play(minded, perturbation=perturbation) for name, perturbation in PERTURBED.items()}
    return {"win_rates": rates, "means": {name: statistics.fmean(row.values()) for name, row in rates.items()}}


def win_rates(
    agent: Agent, opponents: Sequence[str], *, matches: int, perturbation: Perturbation | None = None
) -> dict[str, float]:
    """Returns the win rate against each opponent."""
    games = min(len(opponents) * matches, MAX_ENVS)
    with make_env("brawl", games, agent.device, seed=_SEED, config=agent.settings or None) as env:
        found = find_players(opponents, env)
        evaluator = PolicyEvaluator(env, found, matches=matches, seed=_SEED, perturbation=perturbation)
        return {row["opponent"]: row["win_rate"] for row in evaluator.play(agent.policy).rows}


def probe(agent: Agent, matches: int) -> dict[str, Any]:
    """Analyses latent or memory of an agent that has one; the ablation is for latents."""
    has_latent = agent.policy.memory.strategy is not None
    if not has_latent and agent.policy.memory.recurrent is None:
        return {"analysis": None}
    analysis = analyse(
        agent, matches=matches, features="latent" if has_latent else "memory", ablation=has_latent, seed=_SEED
    )
    document = analysis.as_json()
    probes = {name: {part: found[part] for part in ("frames", "matches")} for name, found in document["probes"].items()}
    kept = {name: document[name] for name in ("features", "chance", "separation", "ablation")}
    return {"analysis": kept | {"probes": probes, "matches": matches}}


def read_curve(folder: Path) -> list[dict[str, Any]]:
    """Returns the evaluations of a run during its training: every win rate, and the means of other numbers."""
    with (folder / "evaluation_results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    curve = []
    for steps in sorted({int(row["env_steps"]) for row in rows}):
        own = [row for row in rows if int(row["env_steps"]) == steps]
        fighting = [row for row in own if row["opponent"] != _HARMLESS]
        means = {number: statistics.fmean(float(row[number]) for row in own) for number in _CURVE}
        means["damage_ratio"] = statistics.fmean(float(row["damage_ratio"]) for row in fighting)
        curve.append(
            {"env_steps": steps, "win_rates": {row["opponent"]: float(row["win_rate"]) for row in own}} | means
        )
    return curve


if __name__ == "__main__":
    main()
