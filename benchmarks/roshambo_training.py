"""Agents of Roshambo, trained against the 43 bots of OpenSpiel or without having met them, on the public yardstick.

    python benchmarks/roshambo_training.py --device cuda --lanes 3      # docs/data/roshambo_training.json

Every variant is trained over several seeds and then scored by `ludus benchmark --suite roshambo`: return over the
population minus what the best exploiter in it wins (Lanctot et al., arXiv 2303.03196). Variants differ from the preset
`population` in their memory, or in whom they train against. Runs that are done are not done again. Needs the extra
`openspiel`, and many cores: the bots of OpenSpiel take most of the time.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.training.presets import load_run_config
from ludus.training.run_folder import read_run_config

DATA = Path(__file__).parents[1] / "docs" / "data" / "roshambo_training.json"


@dataclass(frozen=True, slots=True)
class Variant:
    """What is changed of the preset `population`.

    Attributes:
        words: What it is, in a table.
        settings: Overrides.
        unmet: Whether it trains against the world's own styles, so that it has never met the 43 bots.
    """

    words: str
    settings: tuple[str, ...] = ()
    unmet: bool = False


VARIANTS = {
    "streaming": Variant("streaming encoder and LSTM"),
    "unmet": Variant("streaming encoder and LSTM", ("total_env_steps=80000000",), unmet=True),
    "lstm": Variant("LSTM", ("policy.strategy=null",)),
    "none": Variant("no memory", ("policy.strategy=null", "policy.recurrent=null")),
}


def main() -> None:
    """Train and score what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="*", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--matches", type=int, default=100, help="against each bot")
    parser.add_argument("--work", type=Path, default=Path("runs/roshambo"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--lanes", type=int, default=1, help="trainings at a time")
    parser.add_argument("--set", nargs="*", default=[], help="settings of all variants, to try some out")
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    jobs = list(itertools.product(options.variants, options.seeds))
    with ThreadPoolExecutor(options.lanes) as pool:
        for line in pool.map(lambda job: run(job[0], job[1], options), jobs):
            print(line, flush=True)
    results = {file.stem: json.loads(file.read_text()) for file in sorted(options.work.glob("*.json"))}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")


def run(name: str, seed: int, options: argparse.Namespace) -> str:
    """Train and score one agent, in processes of their own; return a line about it."""
    variant = VARIANTS[name]
    folder = options.work / f"{name}-{seed}"
    result = folder.with_suffix(".json")
    if result.exists():
        return f"{name}-{seed}: there already"
    settings = [*variant.settings, *options.set, "evaluation=null", "monitoring.console=plain"]
    if variant.unmet:
        styles = {**(load_run_config("roshambo", "quick").opponents or {}), **PREDICTORS}
        settings.append(f"opponents={json.dumps(styles)}")
    else:
        # Twice as many as there are cores: the bots of one training play while another one updates its policy.
        workers = max(1, 2 * (os.cpu_count() or 1) // options.lanes)
        settings.append(f"world.settings.workers={workers}")
    train = ["train", "roshambo", "--preset", "population", "--device", options.device, "--seed", str(seed)]
    started_s = time.monotonic()
    log = folder.with_suffix(".log")
    with log.open("a", encoding="utf-8") as output:
        subprocess.run([*_LUDUS, *train, "--run-dir", str(folder), *settings], check=True, stdout=output, stderr=output)
        trained_s = time.monotonic() - started_s
        score = ["benchmark", str(folder), "--suite", "roshambo", "--matches", str(options.matches), "--json"]
        printed = subprocess.run(
            [*_LUDUS, *score, "--device", options.device], check=True, stdout=subprocess.PIPE, stderr=output, text=True
        ).stdout
    scored: dict[str, Any] = json.loads(printed)
    returns = {row["opponent"]: row["numbers"]["mean_return"] for row in scored["rows"]}
    steps = read_run_config(folder).total_env_steps
    counts = {"env_steps": steps, "matches": options.matches, "seconds": round(trained_s, 1)}
    found = counts | {"returns": returns} | scored["population"]
    result.write_text(json.dumps(found, indent=1))
    return f"{name}-{seed}: aggregate {found['aggregate']['value']:.0f} in {trained_s:.0f} s"


# Whoever has never met the 43 bots is exploited by those that predict it, so it meets more that do.
PREDICTORS = {"meta": 6, "matcher": 4, "markov-1": 3, "markov-2": 3, "markov-3": 3}

_LUDUS = (sys.executable, "-m", "ludus")

if __name__ == "__main__":
    main()
