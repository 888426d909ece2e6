"""`ludus eval`: an agent plays hundreds of matches against every opponent or in every trial, for a table of numbers."""

import json as json_format
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from ludus.cli.console import ShareLine, print_ok, show_table
from ludus.cli.options import AsJson, Deterministic, Device, Games, Seed
from ludus.cli.plugins import Plugin, load_plugins
from ludus.core.errors import UnknownNameError

# Column -> number of a row and its format; columns that no row has are left out. All numbers are in --json. At each
# space a title is broken on a terminal, so that the table of brawl fits into 80 columns.
_COLUMNS: Mapping[str, tuple[str, str]] = {
    "opponent": ("opponent", ""),
    "trial": ("trial", ""),
    "mode": ("mode", ""),
    "side": ("side", ""),
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
_LARGEST = {"damage_ratio": 999}  # quotients; above, they are by next to nothing
_WIDTH = 80  # letters in a line of the second table


def evaluate(
    agent: Annotated[str, typer.Argument(help="Run folder, whose best agent is meant, checkpoint, or exported file.")],
    against: Annotated[
        list[str] | None,
        typer.Option(help="Bot, or folder or file of an agent; repeat it for several. Every bot if left out."),
    ] = None,
    trial: Annotated[
        list[str] | None,
        typer.Option(help="Trial of a world without opponents; repeat it for several. All of them if left out."),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            help="Mode of the run's evaluation.modes; repeat it for several. All of them if left out, none with --set."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Setting of the world as key=value, laid over the agent's own; repeat it."),
    ] = None,
    matches: Annotated[
        int, typer.Option(min=1, help="Matches against each opponent in each mode, episodes in each trial.")
    ] = 400,
    seed: Seed = 0,
    device: Device = "auto",
    games: Games = 4096,
    deterministic: Deterministic = False,
    plugin: Plugin = None,
    json: AsJson = False,
) -> None:
    """Play an agent against bots and agents, or in trials, and print how well it does, with intervals."""
    load_plugins(plugin)
    from ludus.envs.registry import place_for
    from ludus.evaluation import duels
    from ludus.evaluation.contenders import load_agent
    from ludus.evaluation.stage import stage_settings

    loaded = load_agent(agent)
    place = place_for(device, loaded.spec.id)
    if place != "cpu":
        loaded = load_agent(agent, place)
    world, words = loaded.spec.id, set_ or ()
    modes = _choose_modes(agent, mode, has_words=bool(words))
    line = ShareLine("evaluation")
    evaluation = duels.evaluate(
        loaded,
        against or None,
        trials=trial or None,
        modes={name: stage_settings(world, settings, words=words) for name, settings in modes.items()},
        config=stage_settings(world, loaded.settings, words=words) or None,
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
    _show(evaluation.rows, title=f"{agent} in {evaluation.world}")
    total = "" if evaluation.mean_win_rate is None else f", mean win rate {evaluation.mean_win_rate:.1%}"
    count = sum(row["matches"] for row in evaluation.rows)
    print_ok(f"{count} matches in {evaluation.seconds:.1f} s on {place}{total}")


def _choose_modes(agent: str, names: Sequence[str] | None, *, has_words: bool) -> Mapping[str, Mapping[str, Any]]:
    """Returns the settings of the named modes of an agent's run; of all if none is named, or of none with words."""
    from ludus.evaluation.modes import stored_modes

    if names is None and has_words:
        return {}
    known = stored_modes(agent)
    for name in names or ():
        if name not in known:
            raise UnknownNameError("mode", name, known or ["none: the agent's run names no evaluation.modes"])
    return {name: known[name] for name in names} if names else known


def _show(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """Prints a line for each opponent or trial; where nobody is played against, all other numbers line by line too."""
    columns = {name: part for name, part in _COLUMNS.items() if any(row.get(part[0], "") != "" for row in rows)}
    if "survival s" in columns:  # says the same
        del columns["steps"]
    show_table(tuple(columns), [[_cell(row, *part) for part in columns.values()] for row in rows], title=title)
    if any(row["opponent"] for row in rows):
        return
    shown = {key for name, _ in columns.values() for key in (name, f"{name}_low", f"{name}_high")}
    numbers = [name for name, value in rows[0].items() if name not in shown and not isinstance(value, str)]
    if numbers:
        _show_numbers(rows, numbers)


def _show_numbers(rows: Sequence[Mapping[str, Any]], numbers: Sequence[str]) -> None:
    """Prints a line for each number and a column for each trial, in several tables if they do not fit into one."""
    trials = [str(row.get("trial", "")) for row in rows]
    width = max(len("-1.234e-05"), *map(len, trials))
    fitting = max(1, (_WIDTH - max(map(len, numbers))) // (width + 2))
    for first in range(0, len(rows), fitting):
        some = slice(first, first + fitting)
        cells = [[name, *(f"{row[name]:{width}.4g}" for row in rows[some])] for name in numbers]
        typer.echo("")
        show_table(("number", *(trial.rjust(width) for trial in trials[some])), cells)


def _cell(row: Mapping[str, Any], name: str, form: str) -> str:
    """Returns a number, with its interval in brackets if it is an outcome."""
    if name in _LARGEST and row.get(name, 0.0) > _LARGEST[name]:
        return f"> {_LARGEST[name]}"
    keys = (name, f"{name}_low", f"{name}_high") if name in _OUTCOMES else (name,)
    value, *ends = (format(row[key], form).removesuffix("%") if key in row else "" for key in keys)
    return f"{value} ({' to '.join(ends)})" if ends else value
