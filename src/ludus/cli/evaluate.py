"""`ludus eval`: an agent plays hundreds of matches against every opponent or in every scenario, as a table."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from typer import Option

from ludus.cli.completion import complete_agent
from ludus.cli.console import ShareLine, echo, print_json, print_ok, show_table
from ludus.cli.options import AgentName, AsJson, Deterministic, Device, Games, Plugin, Seed, load_agent_on, load_plugins
from ludus.core.errors import UnknownNameError

# Column -> number of a row and its format; columns that no row has are left out. All numbers are in --json. At each
# space a title is broken on a terminal, so that the table of brawl fits into 80 columns.
_COLUMNS: Mapping[str, tuple[str, str]] = {
    "opponent": ("opponent", ""), "trial": ("trial", ""), "mode": ("mode", ""), "side": ("side", ""),
    "matches": ("matches", "d"), "won %": ("win_rate", ".1%"), "drawn": ("draws", "d"),
    "return": ("mean_return", ".2f"), "steps": ("mean_length", ".0f"), "damage ratio": ("damage_ratio", ".2f"),
    "knock outs": ("knockouts", ".2f"), "survival s": ("survival_s", ".1f"),
}  # fmt: skip
_OUTCOMES = ("win_rate", "mean_return")
_LARGEST = {"damage_ratio": 999}  # quotients; above, they are by next to nothing
_WIDTH = 80  # letters in a line of the second table


def evaluate(
    agent: AgentName = None,
    against: Annotated[
        list[str] | None,
        Option(
            help="Bot, or name, folder or file of an agent; may be repeated. Every bot by default.",
            autocompletion=complete_agent,
        ),
    ] = None,
    scenario: Annotated[
        list[str] | None, Option(help="Scenario of a world without opponents; may be repeated. All by default.")
    ] = None,
    mode: Annotated[
        list[str] | None,
        Option(help="Mode of the run's evaluation.modes; may be repeated. All by default, none with --set."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        Option("--set", help="World setting as key=value that overrides the agent's own; may be repeated."),
    ] = None,
    matches: Annotated[
        int, Option(min=1, help="Matches against each opponent in each mode, episodes in each scenario.")
    ] = 400,
    seed: Seed = 0,
    device: Device = "auto",
    games: Games = 4096,
    deterministic: Deterministic = False,
    plugin: Plugin = None,
    json: AsJson = False,
) -> None:
    """Play an agent against bots and agents, or in scenarios, and print how well it does, with intervals."""
    load_plugins(plugin)
    from ludus.evaluation.display import display_settings
    from ludus.evaluation.evaluate import evaluate as evaluate_agent

    agent, loaded, place = load_agent_on(agent, device)
    world, words = loaded.spec.id, set_ or ()
    modes = _choose_modes(agent, mode, has_words=bool(words))
    line = ShareLine("evaluation")
    evaluation = evaluate_agent(
        loaded, against or None, scenarios=scenario or None,
        modes={name: display_settings(world, settings, words=words) for name, settings in modes.items()},
        config=display_settings(world, loaded.stored, words=words) or None,
        matches=matches, seed=seed, deterministic=deterministic, max_envs=games, progress=line.tell,
    )  # fmt: skip
    line.close()
    if json:
        asked = {"agent": agent, "seed": seed, "deterministic": deterministic, "device": place}
        print_json(asked | evaluation.as_json())
        return
    _show(evaluation.rows, title=f"{agent} in {evaluation.world}")
    total = "" if evaluation.mean_win_rate is None else f", mean win rate {evaluation.mean_win_rate:.1%}"
    count = sum(row["matches"] for row in evaluation.rows)
    print_ok(f"{count} matches in {evaluation.seconds:.1f} s on {place}{total}")


def _choose_modes(agent: str, names: Sequence[str] | None, *, has_words: bool) -> Mapping[str, Mapping[str, Any]]:
    """Return the settings of the named modes of an agent's run; of all if none is named, or of none with words."""
    from ludus.evaluation.evaluate import stored_modes

    if names is None and has_words:
        return {}
    known = stored_modes(agent)
    for name in names or ():
        if name not in known:
            raise UnknownNameError("mode", name, known or ["none: the agent's run names no evaluation.modes"])
    return {name: known[name] for name in names} if names else known


def _show(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """Print a line for each opponent or scenario; without opponents, all other numbers line by line too."""
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
    """Print a line for each number and a column for each scenario, in several tables if they do not fit into one."""
    scenarios = [str(row.get("trial", "")) for row in rows]
    width = max(len("-1.234e-05"), *map(len, scenarios))
    fitting = max(1, (_WIDTH - max(map(len, numbers))) // (width + 2))
    for first in range(0, len(rows), fitting):
        some = slice(first, first + fitting)
        cells = [[name, *(f"{row[name]:{width}.4g}" for row in rows[some])] for name in numbers]
        echo()
        show_table(("number", *(scenario.rjust(width) for scenario in scenarios[some])), cells)


def _cell(row: Mapping[str, Any], name: str, form: str) -> str:
    """Return a number, with its interval in brackets if it is an outcome."""
    if name in _LARGEST and row.get(name, 0.0) > _LARGEST[name]:
        return f"> {_LARGEST[name]}"
    is_outcome = name in _OUTCOMES or name.endswith("_gain")
    keys = (name, f"{name}_low", f"{name}_high") if is_outcome else (name,)
    value, *ends = (format(row[key], form).removesuffix("%") if key in row else "" for key in keys)
    return f"{value} ({' to '.join(ends)})" if ends else value
