"""`ludus audit`: compares what a world's perception reads with the hidden truth."""

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import typer

from ludus.cli.console import print_table
from ludus.cli.options import AsJson

audit = typer.Typer(
    help="Compare what is read off screens with the truth.", no_args_is_help=True, rich_markup_mode=None
)


@audit.callback()
def _group() -> None:
    pass


@audit.command()
def city(
    game: Annotated[str, typer.Option(help="Game to audit: embedded or micropolis.")] = "embedded",
    states: Annotated[int, typer.Option(min=1, help="States to compare, drawn at random.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the states.")] = 0,
    letters: Annotated[
        Path | None, typer.Option(help="Folder to keep learnt letters in; without it they are learnt anew.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare every reading of City's perception with the truth: accuracy by field with 95 % intervals, and latency."""
    from ludus.envs.city.audit import audit_city

    measured: dict[str, Any] = audit_city(game, states, seed, letters)
    if json:
        typer.echo(json_format.dumps(measured, indent=2))
        return
    rows = [
        (
            str(field["field"]),
            f"{field['accuracy']:.2%}",
            f"{field['low']:.2%} to {field['high']:.2%}",
            f"{field['wrong']:.2%}",
            f"{field['unreadable']:.2%}",
            f"{field['latency_ms']:.3f}",
        )
        for field in measured["fields"]
    ]
    print_table(("field", "accuracy", "95 % interval", "wrong", "unreadable", "ms"), rows)
