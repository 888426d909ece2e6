"""City's own commands: `ludus audit city`, `ludus audit guide` and `ludus bench vision`."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ludus.cli.bench import print_measured
from ludus.cli.console import echo, print_json, print_table
from ludus.cli.options import AsJson, RunFolder, latest_run

if TYPE_CHECKING:
    from ludus.core.intervals import Interval


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


def audit_guide(run: RunFolder = None, json: AsJson = False) -> None:
    """Tell how often the guide of a run was asked, answered and followed, and whether following it paid."""
    from ludus.core.intervals import Interval
    from ludus.reports.run_data import read_run
    from ludus.worlds.city.guide_report import guide_report

    report = guide_report(read_run(Path(run or latest_run())).episode_metrics)
    if json:
        print_json({name: _ends(part) if isinstance(part, Interval) else part for name, part in report.items()})
        return
    print_table(("count", "total"), [(name, f"{total:,.0f}") for name, total in report["counts"].items()])
    estimates = {
        "share of advice that was followed": report["followed_share"],
        "people until the next question, followed": report["gain_followed"],
        "people until the next question, ignored": report["gain_ignored"],
        "difference": report["difference"],
    }
    rows = [
        (name, "none", "") if found is None else (name, f"{found.estimate:.3g}", f"{found.low:.3g} to {found.high:.3g}")
        for name, found in estimates.items()
    ]
    print_table(("estimate", "value", "95 % interval"), rows)
    echo("A correlation: the agent chose when to follow, so other things than the advice may explain the difference.")


def _ends(interval: "Interval") -> dict[str, float | None]:
    """Return the parts of an interval; None where it has no end."""
    return {name: value if math.isfinite(value) else None for name, value in interval._asdict().items()}


def bench_vision(
    game: Annotated[str, typer.Option(help="Game to measure: embedded or micropolis.")] = "embedded",
    seconds: Annotated[float, typer.Option(min=0.1, help="Time to measure for.")] = 6.0,
    json: AsJson = False,
) -> None:
    """Measure City's perception: pictures per second, milliseconds per stage, steps per second of one game."""
    from ludus.worlds.city.bench_vision import run_vision_bench

    print_measured(run_vision_bench(game, seconds), json=json)
