"""City's own commands: `ludus audit city` and `ludus bench vision`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ludus.cli.bench import print_measured
from ludus.cli.console import print_json, print_table
from ludus.cli.options import AsJson


def audit(
    game: Annotated[str, typer.Option(help="Game to audit: embedded or micropolis.")] = "embedded",
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


def bench_vision(
    game: Annotated[str, typer.Option(help="Game to measure: embedded or micropolis.")] = "embedded",
    seconds: Annotated[float, typer.Option(min=0.1, help="Time to measure for.")] = 6.0,
    json: AsJson = False,
) -> None:
    """Measure City's perception: pictures per second, milliseconds per stage, steps per second of one game."""
    from ludus.worlds.city.bench_vision import run_vision_bench

    print_measured(run_vision_bench(game, seconds), json=json)
