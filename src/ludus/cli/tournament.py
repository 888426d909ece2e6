"""`ludus tournament`: agents and bots, all against all, with ratings, cycles and a bracket."""

import csv
import io
import json as json_format
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from ludus.cli.completion import complete_agent
from ludus.cli.console import ShareLine, echo, print_json, print_ok, print_warning, show_table
from ludus.cli.options import (
    Address,
    AsJson,
    Deterministic,
    Device,
    Games,
    Names,
    OnRay,
    Plugin,
    Seed,
    check_address,
    load_plugins,
    plugin_paths,
)

if TYPE_CHECKING:
    from ludus.evaluation.bracket import Bracket, Meeting
    from ludus.evaluation.entries import Entry
    from ludus.evaluation.matches import MatchSchedule
    from ludus.evaluation.tournament import Tournament

_MOST_CYCLES = 20  # that are printed; all of them are in --json
_MOST_COLUMNS = 12  # players up to which the table of all pairs is printed; it is in --json and --out


def tournament(
    players: Annotated[
        Names,
        Argument(
            help="Names, folders or files of agents, and bots such as based.",
            autocompletion=complete_agent,
        ),
    ] = None,
    bots: Annotated[bool, Option("--bots", help="Every bot of the world takes part too.")] = False,
    world: Annotated[
        str | None, Option(help="World; by default that of most agents. Agents of other worlds are rejected.")
    ] = None,
    matches: Annotated[int, Option(min=1, help="Matches per pair, half of them on either side.")] = 100,
    elimination: Annotated[
        bool, Option("--elimination", help="Play a double elimination after the round robin.")
    ] = False,
    best_of: Annotated[int, Option(min=1, help="Games per pairing in the elimination.")] = 9,
    seeding: Annotated[
        Literal["rating", "order"], Option(help="How the elimination is seeded: by rating, or as named.")
    ] = "rating",
    out: Annotated[Path | None, Option(help="Folder for tournament.json, payoffs.csv and payoffs.png.")] = None,
    set_: Annotated[Names, Option("--set", help="World setting as key=value; may be repeated.")] = None,
    seed: Seed = 0,
    device: Device = "auto",
    games: Games = 4096,
    deterministic: Deterministic = False,
    ray: OnRay = False,
    address: Address = None,
    plugin: Plugin = None,
    json: AsJson = False,
) -> None:
    """Play all against all and rate them; untrusted files are safe to load."""
    check_address(address, ray)
    load_plugins(plugin, world or "")
    from ludus.evaluation.display import display_settings
    from ludus.evaluation.entries import load_entries
    from ludus.evaluation.matches import MatchSchedule
    from ludus.evaluation.tournament import run_tournament

    settings = display_settings(world or "", words=set_ or ()) or None
    entries = load_entries(players or (), world=world, all_bots=bots, config=settings, device=device)
    place = entries.device
    for refusal in entries.rejected:
        print_warning(f"REFUSED {refusal.source}: {refusal.reason}")
    if entries.rejected:
        print_warning(f"continuing with {len(entries.accepted)} players; {len(entries.rejected)} rejected")
    line, bracket_line = ShareLine("round robin"), ShareLine("elimination")
    playing = [each.player for each in entries.accepted]
    schedule = MatchSchedule(entries.world, playing, place, settings, seed, deterministic, games)
    with ExitStack() as stack:
        if ray:
            schedule = _spread(stack, schedule, address, plugin)
        played = run_tournament(
            entries,
            schedule,
            matches=matches,
            best_of=best_of if elimination else None,
            seeded_by_rating=seeding == "rating",
            progress=line.tell,
            bracket_progress=bracket_line.tell,
        )
    line.close()
    bracket_line.close()
    document = {"seed": seed, "deterministic": deterministic, "device": place, "matches": matches} | played.as_json()
    if json:
        print_json(document)
    else:
        _show(played)
        count = sum(record.matches for record in played.records.values())
        print_ok(f"{count} matches of {len(entries.accepted)} players in {played.seconds:.1f} s on {place}")
    if out is not None:  # last: a full disk must not cost the results
        _write(played, json_format.dumps(document, indent=2), out)
        if not json:
            print_ok(f"written to {out}")


def _spread(stack: ExitStack, schedule: "MatchSchedule", address: str | None, plugin: Names) -> "MatchSchedule":
    """Open Ray, and return a schedule that plays the same matches there."""
    from ludus.scale.spread import spread_schedule, spreading

    stack.enter_context(spreading(address, "ludus tournament --ray"))
    return spread_schedule(schedule, plugin_paths(plugin))


def _write(played: "Tournament", document: str, folder: Path) -> None:
    from ludus.core.files import write_text_atomic
    from ludus.evaluation.payoff_plot import plot_payoffs

    write_text_atomic(folder / "tournament.json", document + "\n")
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(("first", "second", "matches", "wins", "draws", "losses"))
    writer.writerows((*pair, record.matches, *record) for pair, record in played.records.items())
    write_text_atomic(folder / "payoffs.csv", rows.getvalue())
    plot_payoffs(played, folder / "payoffs.png")
    if played.bracket is not None:
        write_text_atomic(folder / "bracket.txt", "\n".join(bracket_lines(played.bracket)) + "\n")


def _show(played: "Tournament") -> None:
    ranking = played.ranking
    cells = []
    for place, entry in enumerate(ranking, 1):
        rating, total = played.ratings[entry.name], played.total(entry.name)
        score = "-" if total.score is None else f"{total.score:.1%}".removesuffix("%")
        numbers = (f"{rating.estimate:.0f} ({rating.low:.0f} to {rating.high:.0f})", *map(str, total), score)
        cells.append((str(place), entry.name, *numbers, _decides(entry)))
    header = ("place", "player", "rating", "won", "drawn", "lost", "score %", "decides in ms")
    show_table(header, cells, title=f"{played.entries.world}: Bradley-Terry ratings with 95 % intervals, mean 0")
    if len(ranking) <= _MOST_COLUMNS:
        echo("\nscore of the row against the column, %, draws as half a win:")
        show_table(("player", *(f"{place:3}" for place in range(1, len(ranking) + 1))), _matrix(played))
    _show_pace(ranking)
    _show_cycles(played)
    if played.bracket is not None:
        echo()
        for text in bracket_lines(played.bracket):
            echo(text)


def _matrix(played: "Tournament") -> list[list[str]]:
    rows = []
    for place, entry in enumerate(played.ranking, 1):
        others = (other.name for other in played.ranking)
        scores = [None if name == entry.name else played.record(entry.name, name).score for name in others]
        cells = ("-".rjust(3) if score is None else f"{100 * score:3.0f}" for score in scores)
        rows.append([f"{place} {entry.name}", *cells])
    return rows


def _decides(entry: "Entry") -> str:
    reaction = entry.reaction
    if reaction is None:
        return "bot"
    flag = "" if reaction.pace == "in time" else f" {reaction.pace.upper()}"
    return f"{1e3 * reaction.median_s:.2f}, p99 {1e3 * reaction.p99_s:.2f}{flag}"


def _show_pace(ranking: "Sequence[Entry]") -> None:
    for entry in ranking:
        reaction = entry.reaction
        if reaction is not None and reaction.pace != "in time":
            print_warning(
                f"{entry.name} is {reaction.pace} for real time: a decision takes {1e3 * reaction.median_s:.1f} ms, "
                f"one in a hundred {1e3 * reaction.p99_s:.1f} ms, a frame {1e3 * reaction.frame_s:.1f} ms"
            )


def _show_cycles(played: "Tournament") -> None:
    echo()
    if not played.cycles:
        echo("no cycles: nowhere does one surely beat another, who surely beats a third, who surely beats the first")
    for cycle in played.cycles[:_MOST_CYCLES]:
        echo(f"cycle: {' beats '.join((*cycle, cycle[0]))}")
    if len(played.cycles) > _MOST_CYCLES:
        echo(f"and {len(played.cycles) - _MOST_CYCLES} cycles more; --json has all of them")


def bracket_lines(bracket: "Bracket") -> list[str]:
    """Return a bracket as lines of text: round by round, and who came where."""
    width = max(len(standing.name) for standing in bracket.standings)
    lines = []
    for each in bracket.rounds:
        meetings = [meeting for meeting in each.meetings if meeting.winner is not None]
        if meetings:
            lines += [each.name, *(f"  {_meeting(meeting, width)}" for meeting in meetings)]
    lines.append("standings")
    return [*lines, *(f"  {standing.place:3}  {standing.name}" for standing in bracket.standings)]


def _meeting(meeting: "Meeting", width: int) -> str:
    if meeting.score is None:
        return f"{str(meeting.winner).ljust(width)}  has a bye"
    wins, draws, losses, _ = meeting.score
    said = f"{str(meeting.first).ljust(width)}  {wins:3} : {losses:<3} {str(meeting.second).ljust(width)}"
    drawn = f", {draws} drawn" if draws else ""
    seed = ", tied: the better seed advances" if wins == losses else ""
    return f"{said} -> {meeting.winner}{drawn}{seed}"
