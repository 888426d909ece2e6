"""City's own commands: `ludus city audit` and `city new-profile`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ludus.cli.console import echo, print_json, print_table
from ludus.cli.options import AsJson


def audit(
    game: Annotated[
        str, typer.Option(help="Game to audit: embedded, micropolis, or a profile beside typed figures.")
    ] = "embedded",
    states: Annotated[int, typer.Option(min=1, help="States to compare, drawn at random.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the states.")] = 0,
    letters: Annotated[
        Path | None, typer.Option(help="Cache of learned letters; without it they are relearned.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare every reading of City's perception with the truth: accuracy by field with 95 % intervals, and latency."""
    from ludus.worlds.city.audit import audit_city

    measured: dict[str, Any] = audit_city(game, states, seed, letters)
    if json:
        print_json(measured)
    else:
        _print_audit(measured)


def _print_audit(measured: dict[str, Any]) -> None:
    columns = {
        "field": "{field}",
        "accuracy": "{accuracy:.2%}",
        "95 % interval": "{low:.2%} to {high:.2%}",
        "wrong": "{wrong:.2%}",
        "unreadable": "{unreadable:.2%}",
        "ms": "{latency_ms:.3f}",
    }
    rows = [tuple(form.format(**field) for form in columns.values()) for field in measured["fields"]]
    print_table(tuple(columns), rows)


def new_profile(
    folder: Annotated[Path, typer.Argument(help="Folder of the profile, its pictures and typed figures.")],
    command: Annotated[str | None, typer.Option(help="Command that starts the game, with its arguments.")] = None,
    base: Annotated[Path | None, typer.Option(help="YAML file with the parts of the profile that are known.")] = None,
    size: Annotated[str, typer.Option(help="Width and height of the virtual screen.")] = "1024x768",
    package: Annotated[list[str] | None, typer.Option(help="Debian package of the game; may be repeated.")] = None,
    pictures: Annotated[int, typer.Option(min=2, max=99, help="Pictures to take.")] = 12,
    every: Annotated[float, typer.Option(min=0.1, max=60.0, help="Seconds that the game runs between them.")] = 2.0,
    live: Annotated[int, typer.Option(min=0, help="Live readings to print.")] = 0,
) -> None:
    """Make a profile for a new game, step by step: propose it, show live readings, audit it by figures that you type.

    The first call starts the game and proposes regions, figures, palette and map grid. Correct profile.yaml and type
    into figures.csv what the pictures say, then call again without --command: readings are audited, letters learned.
    """
    from ludus.worlds.city.audit import FIGURES, audit_city
    from ludus.worlds.city.new_profile import PROFILE, PROPOSAL, known_parts, live_readings, make_profile
    from ludus.worlds.city.profile import load_profile

    file = folder / PROFILE
    if command is not None or base is not None:
        known = known_parts(command, base, size, package or ())
        profile = make_profile(folder, known, pictures=pictures, every_s=every, say=echo)
        echo(f"[OK] {file}: {len(profile.readings)} figures, {len(profile.tools)} buttons; see {folder / PROPOSAL}")
        echo(
            f"Correct {file}, type what the pictures say into {folder / FIGURES}, then run: "
            f"ludus city new-profile {folder}"
        )
        return
    for readings in live_readings(load_profile(str(file)), live):
        echo("  ".join(f"{name} {reading.value} ({reading.confidence:.0%})" for name, reading in readings.items()))
    if not live:
        measured: dict[str, Any] = audit_city(str(file))
        _print_audit(measured)
        echo(f"Letters are learned. Train with: ludus train city --game {file} --preset quick")
