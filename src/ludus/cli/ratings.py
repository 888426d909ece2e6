"""`ludus ratings`: who is how strong in a run, rebuilt from its table of matches alone."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ludus.cli.console import show_table
from ludus.core.errors import ConfigError


def ratings(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Rate the learner's eras, its past selves and the bots of a run by their matches."""
    from ludus.league.payoffs import Payoffs
    from ludus.league.ratings import LiveRatings, bradley_terry
    from ludus.training.records import OPPONENTS, parse_table

    file = run / OPPONENTS
    if not file.is_file():
        raise ConfigError(f"{run} has no {OPPONENTS}: pass the folder of a run with opponents")
    rows = parse_table(file.read_text(encoding="utf-8"))
    payoffs, live = Payoffs.from_rows(rows), LiveRatings.from_rows(rows)
    names, points = payoffs.matrix()
    fitted = bradley_terry(names, points)
    kinds = dict.fromkeys(payoffs.opponents.values())
    by_kind = {kind: payoffs.total(kind=kind) for kind in kinds}
    if as_json:
        document = {
            "players": [
                {
                    "name": name,
                    "rating": fitted[name].estimate,
                    "rating_low": fitted[name].low,
                    "rating_high": fitted[name].high,
                    "elo": live.elo[name],
                    "openskill": live.ordinal(name),
                }
                for name in names
            ],
            "payoffs": {"names": list(names), "points": points.tolist()},
            "win_rates": {kind: {"matches": record.matches, "win_rate": record.win_rate, "score": record.score}
                          for kind, record in by_kind.items()},
        }  # fmt: skip
        typer.echo(json.dumps(document))
        return
    strongest = sorted(names, key=lambda name: -fitted[name].estimate)
    show_table(
        ("player", "rating", "from", "to", "elo", "openskill"),
        [
            (name, *(f"{number:.0f}" for number in (fitted[name].estimate, fitted[name].low, fitted[name].high)),
             f"{live.elo[name]:.0f}", f"{live.ordinal(name):.1f}")
            for name in strongest
        ],
        "Bradley-Terry over all matches, with 95 % intervals; live numbers beside it",
    )  # fmt: skip
    show_table(
        ("against", "matches", "won", "drawn", "lost"),
        [(kind, *map(str, (record.matches, *record))) for kind, record in by_kind.items()],
        "The learner's matches by kind of opponent",
    )
