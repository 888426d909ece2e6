"""Put agents into the package with their cards, and measure them again.

    python benchmarks/shipped_agents.py ship champion runs/mine --summary "a strong fighter"
    python benchmarks/shipped_agents.py measure            # all of them
    python benchmarks/shipped_agents.py measure champion --matches 1000

`ship` exports an agent and writes its model card, with the front matter that `ludus agents` lists. The command that
trained it is taken from its run; an agent without a run folder needs --command, and may bring its card with --card.
`measure` runs the command that a card names, and writes the result into the card.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ludus
from ludus.config.yaml import dump_yaml
from ludus.core.files import EXPORT_SUFFIX, write_text_atomic
from ludus.policies import shipped
from ludus.policies.shipped import CARD_SUFFIX, ShippedAgent, agent_card, agent_names, agent_path, describe_agent

FOLDER = Path(shipped.__file__).parents[1] / "agents"
# What counts in a world without opponents: a number of `ludus eval`, and the sentence that tells its mean.
_SENTENCES = {
    "mimic-v1": ("stable", "walks stably in {percent:.1f} % of {matches:,} episodes"),
    "city-v1": ("population_most", "reaches {mean:,.0f} inhabitants, mean of {matches:,} games"),
}


def main() -> None:
    """Read the arguments, and ship one agent or measure several."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    orders = parser.add_subparsers(dest="order", required=True)
    ship_order = orders.add_parser("ship", help="put an agent into the package")
    ship_order.add_argument("name", help="name of the shipped agent")
    ship_order.add_argument("agent", type=Path, help="its run folder, checkpoint or exported file")
    ship_order.add_argument("--summary", required=True, help="what it is, in a few words")
    ship_order.add_argument("--command", help="the command that trained it; by default that of its run")
    ship_order.add_argument("--card", type=Path, help="card that was written with it; by default a new one")
    measure_order = orders.add_parser("measure", help="measure shipped agents again")
    measure_order.add_argument("names", nargs="*", help="shipped agents; all by default")
    for order in (ship_order, measure_order):
        order.add_argument("--matches", type=int, help="matches per opponent; by default those of the card, or 400")
    given = parser.parse_args()
    if given.order == "ship":
        ship(given.name, given.agent, given.summary, given.command, given.card)
    for name in [given.name] if given.order == "ship" else given.names or agent_names():
        print(f"{name}: {measure(name, given.matches)}")


def ship(name: str, agent: Path, summary: str, command: str | None, card: Path | None) -> None:
    """Export an agent into the package, and write its card without a result."""
    FOLDER.mkdir(exist_ok=True)
    words = ["export", str(agent.absolute()), "--out", f"{name}{EXPORT_SUFFIX}", "--card", f"{name}{CARD_SUFFIX}"]
    subprocess.run([sys.executable, "-m", "ludus", *words], cwd=FOLDER, check=True)
    body = (card or FOLDER / f"{name}{CARD_SUFFIX}").read_text(encoding="utf-8")
    trained_with = re.search(r"\| command \| `(ludus train [^`]*)`", body)
    if command is None and trained_with is None:
        raise SystemExit(f"{agent} does not say how it was trained; pass --command")
    file = re.search(r"\| file \| `([^`]+)`", body)
    description = ShippedAgent(
        world=ludus.load_agent(agent_path(name)).spec.id,
        summary=summary,
        result="not measured",
        measured_with=f"ludus eval {name} --matches 400 --seed 1",
        command=command or (trained_with[1] if trained_with else ""),
    )
    write_card(name, description, body.replace(file[1], name) if file else body)


def measure(name: str, matches: int | None) -> str:
    """Measure a shipped agent with the command of its card, write the result there, and return it."""
    described = describe_agent(name)
    command = described.measured_with
    if matches is not None:
        command = re.sub(r"--matches \d+", f"--matches {matches}", command)
    words = [sys.executable, "-m", *shlex.split(command), "--json"]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    result = sentence(described.world, json.loads(done.stdout))
    measured = described.model_copy(update={"result": result, "measured_with": command})
    write_card(name, measured, agent_card(name))
    return result


def write_card(name: str, description: ShippedAgent, body: str) -> None:
    """Write a card with its front matter."""
    front = dump_yaml(description.model_dump())
    write_text_atomic(agent_path(name).with_suffix(CARD_SUFFIX), f"---\n{front}---\n\n{body}")


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
