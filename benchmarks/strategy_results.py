"""Does the strategy encoder earn its place? The full agent beside the same without encoder, and without any memory.

    python benchmarks/strategy_results.py --env-steps 10_000_000 --seeds 3 --out docs/data/strategy_results.json

Trains every variant over several seeds on the same preset of brawl, once with equal samples and once with equal
training time: the faster variants then get as many env steps as they can do in the time that the slowest one took for
its samples. Every agent then meets all styles, the switching bot, which no training shows, bots with reaction delays
and noise that no training shows, and all styles while it sees late or through noise itself. A linear probe is asked
what latent or memory know; the full agents are ablated too. Prints a table in Markdown and writes everything as JSON.
A run that is there already goes on or is taken as it is, so a benchmark that was cut off can be started again.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ludus.core.intervals import mean_interval
from ludus.envs.registry import make_env
from ludus.evaluation.contenders import find_contenders
from ludus.evaluation.duels import MOST_GAMES, Duels
from ludus.evaluation.hindrances import Hindrance
from ludus.evaluation.strategy_analysis import analyse
from ludus.evaluation.strategy_switches import switching_bots
from ludus.policies.agent import Agent
from ludus.training.config import TrainConfig
from ludus.training.devices import choose_device
from ludus.training.loop import Trainer
from ludus.training.presets import load_run_config

# What each variant changes of the preset, which has both a strategy encoder and a recurrent memory.
VARIANTS: dict[str, tuple[str, ...]] = {
    "full": (),
    "predicting": ("policy.strategy.predict=1.0", "policy.strategy.predict_ahead=8"),
    "lstm": ("policy.strategy=null",),
    "mlp": ("policy.strategy=null", "policy.recurrent=null"),
}
UNSEEN = {"delay": "delay=10", "noise": "noise=0.25"}  # the styles' own are 4 frames and 5 %
HINDERED = {"seeing late": Hindrance(delay_frames=3), "seeing noise": Hindrance(noise=0.1)}
GROUPS = ("styles", "switcher", "delay", "noise", *HINDERED)
_MINDLESS = ("constant", "random", "clockwork")  # delay and noise change nothing about them
_SEED = 20  # of evaluations; training uses others


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, evaluates and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="competition")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["full", "lstm", "mlp"])
    parser.add_argument("--env-steps", type=int, default=10_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--matches", type=int, default=100, help="against each opponent")
    parser.add_argument("--probe-matches", type=int, default=40, help="against each style, for the probe")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE for every run")
    parser.add_argument("--folder", type=Path, default=Path("runs/strategy-results"))
    parser.add_argument("--out", type=Path, help="file for the raw data")
    options = parser.parse_args(arguments)
    runs = [run for seed in range(options.seeds) for run in both_budgets(options, seed)]
    report = {
        "preset": options.preset,
        "env_steps": options.env_steps,
        "matches": options.matches,
        "runs": runs,
        "table": summarise(runs),
    }
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(markdown(report["table"]))


def both_budgets(options: argparse.Namespace, seed: int) -> list[dict[str, Any]]:
    """Trains one seed of all variants with equal samples, then the faster ones with equal time; evaluates them all."""
    equal_samples = {
        variant: trained(options, variant, seed, options.env_steps, "samples") for variant in options.variants
    }
    slowest_s = max(run["training_s"] for run in equal_samples.values())
    runs = []
    for variant, run in equal_samples.items():
        runs.append(run | {"budget": "samples"})
        steps = round(options.env_steps * slowest_s / run["training_s"])
        if run["training_s"] == slowest_s:
            runs.append(run | {"budget": "time"})
        else:
            runs.append(trained(options, variant, seed, steps, "time") | {"budget": "time"})
    return runs


def trained(options: argparse.Namespace, variant: str, seed: int, env_steps: int, budget: str) -> dict[str, Any]:
    """Returns the results of one run; made anew unless its folder has them."""
    folder = options.folder / f"{variant}-{seed}-{budget}"
    results = folder / "strategy_results.json"
    if results.exists():
        found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
        return found
    config = make_config(options.preset, variant, seed, env_steps, options.set)
    document = {"variant": variant, "seed": seed} | train_timed(config, folder)
    device = str(choose_device(config).world.device)
    document |= judge(folder, options.matches, options.probe_matches, device)
    results.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


def train_timed(config: TrainConfig, folder: Path) -> dict[str, Any]:
    """Trains, or goes on; returns how far it got and how long that took, also if it was cut off in between."""
    notes = folder / "strategy_training.json"
    if notes.exists():
        found: dict[str, Any] = json.loads(notes.read_text(encoding="utf-8"))
        return found
    with Trainer(config, folder) as trainer:
        begun = trainer.counters.env_steps
        done = trainer.run().env_steps
        # What was done before it was cut off took as long a step as what was done now.
        training_s = trainer.training_s * done / max(done - begun, 1)
        parameters = sum(parameter.numel() for parameter in trainer.bench.policy.parameters())
    document = {"env_steps": done, "training_s": training_s, "parameters": parameters}
    notes.write_text(json.dumps(document) + "\n", encoding="utf-8")
    return document


def make_config(preset: str, variant: str, seed: int, env_steps: int, changes: Sequence[str] = ()) -> TrainConfig:
    """Returns the settings of a run: the preset against all styles but the switching bot, and itself."""
    with make_env("brawl") as env:
        styles = [bot for bot in env.spec.bots if bot not in switching_bots(env)]
    mix = ", ".join(f"{style}: {50 / len(styles):.4g}" for style in styles)
    overrides = [f"opponents={{self: 50, {mix}}}", f"total_env_steps={env_steps}", f"seed={seed}", *changes]
    return load_run_config("brawl", preset, overrides=[*overrides, *VARIANTS[variant]])


def judge(folder: Path, matches: int, probe_matches: int, device: str) -> dict[str, Any]:
    """Evaluates the best agent of a run against every group, and probes what it knows."""
    agent = Agent.load(folder, device)
    with make_env("brawl", config=agent.settings or None) as env:
        switchers = switching_bots(env)
        styles = [bot for bot in env.spec.bots if bot not in switchers]
    minded = [style for style in styles if style not in _MINDLESS]
    play = partial(win_rates, agent, matches=matches)
    rates = {"styles": play(styles), "switcher": play(switchers)}
    rates |= {name: play([f"{style}:{setting}" for style in minded]) for name, setting in UNSEEN.items()}
    rates |= {name: play(minded, hindrance=hindrance) for name, hindrance in HINDERED.items()}
    return {"win_rates": rates, "means": {name: statistics.fmean(row.values()) for name, row in rates.items()}} | probe(
        agent, probe_matches
    )


def win_rates(
    agent: Agent, opponents: Sequence[str], *, matches: int, hindrance: Hindrance | None = None
) -> dict[str, float]:
    """Returns the win rate against each opponent."""
    games = min(len(opponents) * matches, MOST_GAMES)
    with make_env("brawl", games, agent.device, seed=_SEED, config=agent.settings or None) as env:
        found = find_contenders(opponents, env)
        duels = Duels(env, found, matches=matches, seed=_SEED, hindrance=hindrance)
        return {row["opponent"]: row["win_rate"] for row in duels.play(agent.policy).rows}


def probe(agent: Agent, matches: int) -> dict[str, Any]:
    """Analyses latent or memory of an agent that has one; the ablation is for latents."""
    has_latent = agent.policy.strategy is not None
    if not has_latent and agent.policy.recurrent is None:
        return {"analysis": None}
    analysis = analyse(
        agent, matches=matches, features="latent" if has_latent else "memory", ablation=has_latent, seed=_SEED
    )
    document = analysis.as_json()
    return {"analysis": {name: document[name] for name in ("features", "chance", "probes", "separation", "ablation")}}


def summarise(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row for each budget and variant: means over seeds with their intervals."""
    rows = []
    for budget in ("samples", "time"):
        for variant in VARIANTS:
            own = [run for run in runs if (run["budget"], run["variant"]) == (budget, variant)]
            if not own:
                continue
            probes = [run["analysis"]["probes"]["trained"] for run in own if run["analysis"] is not None]
            rows.append(
                {
                    "budget": budget,
                    "variant": variant,
                    "seeds": len(own),
                    "env_steps": statistics.fmean(run["env_steps"] for run in own),
                    "training_s": statistics.fmean(run["training_s"] for run in own),
                    **{group: spread([run["means"][group] for run in own]) for group in GROUPS},
                    "probe_frames": spread([found["frames"]["estimate"] for found in probes]) if probes else None,
                    "probe_matches": spread([found["matches"]["estimate"] for found in probes]) if probes else None,
                }
            )
    return rows


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Returns the mean over seeds with Student's interval; one seed has none."""
    mean, low, high = mean_interval(values)
    known = len(values) > 1
    return {"mean": mean, "low": low if known else None, "high": high if known else None}


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Returns the table: win rates by group and what the probe knows, in %."""
    names = (*GROUPS, "probe_frames", "probe_matches")
    titles = ("equal", "agent", "env steps", "training, s", *(name.replace("_", ", ") for name in names))
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for row in rows:
        cells = [row["budget"], row["variant"], f"{row['env_steps']:,.0f}", f"{row['training_s']:.0f}"]
        lines.append("| " + " | ".join([*cells, *(_cell(row[name]) for name in names)]) + " |")
    return "\n".join(lines)


def _cell(found: dict[str, float | None] | None) -> str:
    if found is None or found["mean"] is None:
        return ""
    if found["low"] is None or found["high"] is None:
        return f"{100 * found['mean']:.1f}"
    return f"{100 * found['mean']:.1f} ({100 * found['low']:.1f} to {100 * found['high']:.1f})"


if __name__ == "__main__":
    main()
