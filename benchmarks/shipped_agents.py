"""Measure the shipped agents again with the command that their cards name, and write the result into the cards.

python benchmarks/shipped_agents.py            # all of them
python benchmarks/shipped_agents.py champion
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from ludus.config.yaml import dump_yaml
from ludus.core.files import write_text_atomic
from ludus.policies.shipped import CARD_SUFFIX, agent_card, agent_names, agent_path, describe_agent

# What counts in a world without opponents: a number of `ludus eval`, and the sentence that tells its mean.
_SENTENCES = {
    "mimic-v1": ("stable", "walks stably in {percent:.1f} % of {matches:,} episodes"),
    "city-v1": ("population_most", "reaches {mean:,.0f} inhabitants, mean of {matches:,} games"),
}


def main() -> None:
    """Measure the named agents, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="shipped agents; all by default")
    for name in parser.parse_args().names or agent_names():
        described = describe_agent(name)
        words = shlex.split(described.measured_with)[1:]
        done = subprocess.run(
            [sys.executable, "-m", "ludus", *words, "--json"], stdout=subprocess.PIPE, text=True, check=True
        )
        result = sentence(described.world, json.loads(done.stdout))
        front = dump_yaml(described.model_copy(update={"result": result}).model_dump())
        write_text_atomic(agent_path(name).with_suffix(CARD_SUFFIX), f"---\n{front}---\n\n{agent_card(name)}")
        print(f"{name}: {result}")


def sentence(world: str, evaluation: Mapping[str, Any]) -> str:
    """Return the result of an evaluation, the JSON of `ludus eval`, in one sentence."""
    rows = evaluation["opponents"]
    matches = sum(row["matches"] for row in rows)
    if rows[0]["opponent"]:
        opponents = len({row["opponent"] for row in rows})
        mean = sum(row["matches"] * row["win_rate"] for row in rows) / matches
        return f"wins {100 * mean:.1f} % of {matches:,} matches against {opponents} bots"
    number, form = _SENTENCES[world]
    mean = sum(row["matches"] * row[number] for row in rows) / matches
    return form.format(mean=mean, percent=100 * mean, matches=matches)


if __name__ == "__main__":
    main()
