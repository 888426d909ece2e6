"""`ludus eval`: an agent plays hundreds of matches against every opponent, and the numbers become a table."""

import json as json_format
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ludus.cli.console import ShareLine, print_ok, show_table
from ludus.cli.plugins import Plugin, load_plugins
from ludus.core.errors import DeviceError

if TYPE_CHECKING:
    from ludus.envs.base import EnvSpec

# Column -> number of a row and its format; columns that no row has are left out. All numbers are in --json. At each
# space a title is broken on a terminal, so that the table of brawl fits into 80 columns.
_COLUMNS: Mapping[str, tuple[str, str]] = {
    "opponent": ("opponent", ""),
    "matches": ("matches", "d"),
    "won %": ("win_rate", ".1%"),
    "drawn": ("draws", "d"),
    "return": ("mean_return", ".2f"),
    "steps": ("mean_length", ".0f"),
    "damage ratio": ("damage_ratio", ".2f"),
    "knock outs": ("knockouts", ".2f"),
    "survival s": ("survival_s", ".1f"),
}
_OUTCOMES = ("win_rate", "mean_return")


def evaluate(
    agent: Annotated[str, typer.Argument(help="Folder of a run, whose best agent is meant, or of a checkpoint.")],
    against: Annotated[
        list[str] | None,
        typer.Option(help="Bot, or folder of an agent; repeat it for several. Every bot of the world if left out."),
    ] = None,
    matches: Annotated[int, typer.Option(min=1, help="Matches against each opponent.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all matches.")] = 0,
    device: Annotated[str, typer.Option(help="Device: auto, cpu, cuda or cuda:N.")] = "auto",
    games: Annotated[int, typer.Option(min=1, help="Most games in one batch.")] = 4096,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Agents take their most likely action instead of drawing one.")
    ] = False,
    plugin: Plugin = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play an agent against bots and agents, and print how often it wins, with intervals."""
    load_plugins(plugin)
    from ludus.envs.registry import make_env
    from ludus.evaluation import duels
    from ludus.evaluation.contenders import load_agent

    loaded = load_agent(agent)
    with make_env(loaded.spec.id) as env:
        place = _choose_device(device, env.spec)
    if place != "cpu":
        loaded = load_agent(agent, place)
    line = ShareLine("evaluation")
    evaluation = duels.evaluate(
        loaded,
        against or None,
        matches=matches,
        seed=seed,
        deterministic=deterministic,
        max_games=games,
        progress=line.tell,
    )
    line.close()
    if json:
        asked = {"agent": agent, "seed": seed, "deterministic": deterministic, "device": place}
        typer.echo(json_format.dumps(asked | evaluation.as_json(), indent=2))
        return
    columns = {title: part for title, part in _COLUMNS.items() if any(part[0] in row for row in evaluation.rows)}
    if "survival s" in columns:  # says the same
        del columns["steps"]
    cells = [[_cell(row, *part) for part in columns.values()] for row in evaluation.rows]
    show_table(tuple(columns), cells, title=f"{agent} in {evaluation.world}")
    total = "" if evaluation.mean_win_rate is None else f", mean win rate {evaluation.mean_win_rate:.1%}"
    count = sum(row["matches"] for row in evaluation.rows)
    print_ok(f"{count} matches in {evaluation.seconds:.1f} s on {place}{total}")


def _cell(row: Mapping[str, Any], name: str, form: str) -> str:
    """Returns a number, with its interval in brackets if it is an outcome."""
    keys = (name, f"{name}_low", f"{name}_high") if name in _OUTCOMES else (name,)
    value, *ends = (format(row[key], form).removesuffix("%") if key in row else "" for key in keys)
    return f"{value} ({' to '.join(ends)})" if ends else value


def _choose_device(asked: str, spec: "EnvSpec") -> str:
    """Returns the device to play on; `auto` takes a GPU if there is one and the world can live on it."""
    import torch

    if asked != "auto":
        if asked.partition(":")[0] not in spec.device_types:
            raise DeviceError(f"{spec.id} lives on {' or '.join(spec.device_types)}, not on {asked}; or use auto")
        return asked
    return "cuda" if torch.cuda.is_available() and "cuda" in spec.device_types else "cpu"
