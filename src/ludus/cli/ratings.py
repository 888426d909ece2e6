"""`ludus ratings`: how strong a run's agent, its snapshots and the bots are, from the run's tables alone."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ludus.cli.console import print_json, print_ok, show_table
from ludus.cli.options import RunFolder, latest_run
from ludus.core.errors import ConfigError
from ludus.core.files import MAX_TABLE_BYTES, read_regular_text, suggest_run

if TYPE_CHECKING:
    from ludus.core.intervals import Interval
    from ludus.league.payoffs import Payoffs, Record
    from ludus.league.ratings import RatingsTable
    from ludus.reports.run_data import AgentResults

_COUNTS = ("matches", "wins", "draws", "losses")


def ratings(
    run: RunFolder = None, as_json: Annotated[bool, Option("--json", help="Print everything as JSON.")] = False
) -> None:
    """Rate a run's best agent, its snapshots and the bots by their matches, per mode."""
    from ludus.core.tables import read_table
    from ludus.envs.stored import CONFIG_FILE
    from ludus.league.ratings import RatingsTable
    from ludus.reports.run_data import EVALUATIONS, read_agent_results
    from ludus.training.loggers.csv_logger import OPPONENTS, naming_table, parse_table

    folder = Path(run or latest_run())
    file = folder / OPPONENTS
    if not os.path.lexists(file):
        other = "" if (folder / CONFIG_FILE).is_file() else suggest_run(folder)
        raise ConfigError(f"{file} is missing: ratings need a run with opponents{other}")
    with naming_table(file):
        rows = parse_table(read_regular_text(file, limit=MAX_TABLE_BYTES))
        ratings_table = RatingsTable.from_rows(rows)
    if not ratings_table.modes:
        raise ConfigError(f"{file} has no matches yet; try again when the run has played some")
    evaluated = read_agent_results(folder, read_table(folder / EVALUATIONS))
    found = dict.fromkeys((*(evaluated.records if evaluated else ()), *ratings_table.modes))
    modes = {mode: _rate(folder, ratings_table, mode, rows, evaluated) for mode in found}
    if as_json:
        only = next(iter(modes.values())) if len(modes) == 1 else {}
        print_json(only | {"modes": modes})
    else:
        _show(modes)


def _rate(
    run: Path, table: "RatingsTable", mode: str, rows: Sequence[Mapping[str, str]], evaluated: "AgentResults | None"
) -> dict[str, Any]:
    """Return everything about the matches of a mode, as JSON."""
    from ludus.league.payoffs import SELF_KIND, Payoffs
    from ludus.league.ratings import FIRST_MODE, bradley_terry

    payoffs, live = table.payoffs(mode), table.ratings(mode)
    names, points = payoffs.matrix()
    played = [row for row in rows if (row.get("mode") or FIRST_MODE) == mode]
    sides = {side: Payoffs.from_rows(row for row in played if row.get("side") == side)
             for side in sorted({row.get("side") or "" for row in played})}  # fmt: skip
    has_selves = len(payoffs.snapshot_ids) > 1 or SELF_KIND in payoffs.opponents.values()
    snapshot_ids = [_player(name, rating) | {"elo": live.elo[name], "openskill": live.ordinal(name)}
            for name, rating in bradley_terry(names, points).items()]  # fmt: skip
    if evaluated is not None and mode in evaluated.records:
        agent = f"{run} {evaluated.checkpoint}"
        rated_by = f"its evaluation at {evaluated.env_steps:,} env steps"
        players = _rate_agent(agent, evaluated.records[mode])
    elif has_selves:
        agent, rated_by, players = live.learner, "all training matches", snapshot_ids
    else:
        agent, rated_by = f"{run} learner", "its newest training matches"
        players = _rate_agent(agent, {name: payoffs.recent(opponent=name) for name in payoffs.opponents})
    return {
        "agent": agent,
        "rated_by": rated_by,
        "players": players,
        "eras": snapshot_ids if has_selves else [],
        "payoffs": {"names": list(names), "points": points.tolist()},
        "win_rates": _win_rates(payoffs),
        "sides": {side: _win_rates(each) for side, each in sides.items()} if len(sides) > 1 else {},
    }


def _rate_agent(agent: str, records: "Mapping[str, Record]") -> list[dict[str, Any]]:
    """Return an agent and its opponents with their ratings, and how the agent fared against each of them."""
    from ludus.league.ratings import rate_by_results

    fitted = rate_by_results(agent, {name: record.points for name, record in records.items()})
    counts = {name: {"matches": record.matches, **record._asdict()} for name, record in records.items()}
    return [_player(name, rating) | counts.get(name, {}) for name, rating in fitted.items()]


def _player(name: str, rating: "Interval") -> dict[str, Any]:
    return {"name": name, "rating": rating.estimate, "rating_low": rating.low, "rating_high": rating.high}


def _win_rates(payoffs: "Payoffs") -> dict[str, Any]:
    records = {kind: payoffs.total(kind=kind) for kind in dict.fromkeys(payoffs.opponents.values())}
    return {
        kind: {"matches": record.matches, "win_rate": record.win_rate, "score": record.score, **record._asdict()}
        for kind, record in records.items()
    }


def _show(modes: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the tables; modes and sides have columns where there are several."""
    modal = ("mode",) if len(modes) > 1 else ()
    agents, snapshot_ids, matches = [], [], []
    has_sides = any(document["sides"] for document in modes.values())
    for mode, document in modes.items():
        where = (mode,) if modal else ()
        if document["players"] != document["eras"]:
            print_ok(f"{', '.join([*where, document['agent']])}: rated by {document['rated_by']}")
            agents += [(*where, *row) for row in _rows(document["players"], _COUNTS)]
        snapshot_ids += [(*where, *row) for row in _rows(document["eras"], ("elo", "openskill"))]
        for side, rates in (document["sides"] or {mode: document["win_rates"]}).items():
            for kind, rate in rates.items():
                counts = (str(rate[name]) for name in _COUNTS)
                matches.append((*where, *((side,) if has_sides else ()), kind, *counts))
    header = (*modal, "player", "rating", "from", "to")
    if agents:
        title = "Bradley-Terry ratings with 95 % intervals, and the agent's matches against each player"
        show_table((*header, "matches", "won", "drawn", "lost"), agents, title)
    if snapshot_ids:
        title = "The learner until each snapshot, by all training matches; live Elo and openskill ratings beside it"
        show_table((*header, "elo", "openskill"), snapshot_ids, title)
    header = (*modal, *(("side",) if has_sides else ()), "in training against", "matches", "won", "drawn", "lost")
    show_table(header, matches, "The learner's training matches by kind of opponent, from the first to the last")


def _rows(players: Sequence[Mapping[str, Any]], others: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the cells of players with some other numbers of theirs, the strongest player first."""
    shown = ("rating", "rating_low", "rating_high", *others)
    return [
        (player["name"], *(f"{player[name]:.{int(name == 'openskill')}f}" if name in player else "" for name in shown))
        for player in sorted(players, key=lambda player: -player["rating"])
    ]
