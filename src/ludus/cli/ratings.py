"""`ludus ratings`: who is how strong in a run, rebuilt from its table of matches alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ludus.cli.console import show_table
from ludus.core.errors import ConfigError

if TYPE_CHECKING:
    from ludus.league.payoffs import Payoffs
    from ludus.league.standings import Standings


def ratings(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Rate the learner's eras, its past selves and the bots of a run by their matches, each mode apart."""
    from ludus.league.standings import Standings
    from ludus.training.records import OPPONENTS, parse_table

    file = run / OPPONENTS
    if not file.is_file():
        raise ConfigError(f"{run} has no {OPPONENTS}: pass the folder of a run with opponents")
    rows = parse_table(file.read_text(encoding="utf-8"))
    standings = Standings.from_rows(rows)
    if not standings.modes:
        raise ConfigError(f"{file} has no matches yet; try again when the run has played some")
    modes = {mode: _rate(standings, mode, rows) for mode in standings.modes}
    if as_json:
        only = next(iter(modes.values())) if len(modes) == 1 else {}
        typer.echo(json.dumps(only | {"modes": modes}))
        return
    _show(modes)


def _rate(standings: "Standings", mode: str, rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Returns everything about the matches of a mode, as JSON."""
    from ludus.league.payoffs import Payoffs
    from ludus.league.ratings import bradley_terry
    from ludus.league.standings import FIRST_MODE

    payoffs, live = standings.payoffs(mode), standings.ratings(mode)
    names, points = payoffs.matrix()
    fitted = bradley_terry(names, points)
    played = [row for row in rows if (row.get("mode") or FIRST_MODE) == mode]
    sides = {side: Payoffs.from_rows(row for row in played if row.get("side") == side)
             for side in sorted({row.get("side") or "" for row in played})}  # fmt: skip
    return {
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
        "win_rates": _win_rates(payoffs),
        "sides": {side: _win_rates(each) for side, each in sides.items()} if len(sides) > 1 else {},
    }


def _win_rates(payoffs: "Payoffs") -> dict[str, Any]:
    records = {kind: payoffs.total(kind=kind) for kind in dict.fromkeys(payoffs.opponents.values())}
    return {
        kind: {"matches": record.matches, "win_rate": record.win_rate, "score": record.score, **record._asdict()}
        for kind, record in records.items()
    }


def _show(modes: Mapping[str, Mapping[str, Any]]) -> None:
    """Prints the tables; modes and sides have columns where there are several."""
    players, matches = [], []
    has_sides = any(document["sides"] for document in modes.values())
    for mode, document in modes.items():
        where = (mode,) if len(modes) > 1 else ()
        for player in sorted(document["players"], key=lambda player: -player["rating"]):
            numbers = (f"{player[name]:.0f}" for name in ("rating", "rating_low", "rating_high", "elo"))
            players.append((*where, player["name"], *numbers, f"{player['openskill']:.1f}"))
        for side, rates in (document["sides"] or {mode: document["win_rates"]}).items():
            for kind, rate in rates.items():
                counts = (str(rate[name]) for name in ("matches", "wins", "draws", "losses"))
                matches.append((*where, *((side,) if has_sides else ()), kind, *counts))
    modal = ("mode",) if len(modes) > 1 else ()
    show_table(
        (*modal, "player", "rating", "from", "to", "elo", "openskill"),
        players,
        "Bradley-Terry over all matches, with 95 % intervals; live numbers beside it",
    )
    show_table(
        (*modal, *(("side",) if has_sides else ()), "against", "matches", "won", "drawn", "lost"),
        matches,
        "The learner's matches by kind of opponent",
    )
