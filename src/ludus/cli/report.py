"""`ludus report`: one self-contained HTML file about one or several runs."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ludus.cli.console import print_ok, print_warning, show_table
from ludus.cli.plugins import Plugin, load_plugins
from ludus.core.errors import ConfigError, LudusError

if TYPE_CHECKING:
    from ludus.core.files import JSON
    from ludus.reports.page.runs import Group, Run

_HARDEST = 3  # opponents that are played if none is named
_REPLAYS_FOLDER = "replays"
_MOST_RECORDED = 20  # replay files of a run that are shown


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders; seeds of one config are merged.")],
    out: Annotated[Path | None, typer.Option(help="File to write. [RUN/report.html, or report.html here]")] = None,
    replays: Annotated[
        int, typer.Option(min=0, max=20, help="Matches to play of each group's best agent against each opponent.")
    ] = 0,
    against: Annotated[
        list[str] | None,
        typer.Option(help=f"Opponent or trial of the replays; repeat it. [the {_HARDEST} hardest of the evaluation]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
    plugin: Plugin = None,
) -> None:
    """Write one HTML file about runs: curves, evaluations, rewards, ratings, times, settings and replays."""
    load_plugins(plugin)
    from ludus.reports.page.writing import default_file, read_groups, write_report

    if against and not replays:
        raise ConfigError(f"--against {against[0]} says whom to replay; say how many matches with --replays 1")
    groups = read_groups(runs)
    strips = [*_recorded(groups), *(_played(groups, replays, against or ()) if replays else ())]
    written = write_report(groups, out or default_file(runs), strips)
    for title in written.left_out:
        print_warning(f"{title} is left out: the file would be larger than a page should be")
    if as_json:
        typer.echo(json.dumps(written.describe()))
        return
    show_table(
        ("run", "seed", "state", "steps", "steps/s", "best score"),
        [
            (run.name, _shown(run.seed), run.state, f"{run.env_steps:,}", _shown(run.steps_per_s, "{:,.0f}"),
             _shown(run.best_score, "{:.3f}"))
            for group in groups for run in group.runs
        ],
    )  # fmt: skip
    print_ok(f"report of {_count(len(runs), 'run')} written to {written.file} ({written.size_bytes / 1e6:.1f} MB)")


def _recorded(groups: "Sequence[Group]") -> "Iterator[dict[str, JSON]]":
    """Gives the replay files that are in the run folders; one that cannot be played is reported."""
    for group in groups:
        for run in group.runs:
            files = sorted(path for path in (run.folder / _REPLAYS_FOLDER).glob("*") if path.is_file())
            for file in files[:_MOST_RECORDED]:
                from ludus.evaluation.strips import replay_strip

                try:
                    strip = replay_strip(file)
                except LudusError as error:
                    print_warning(str(error))
                    continue
                if strip is not None:
                    yield strip | {"title": f"{run.name}: {file.name}"}


def _played(groups: "Sequence[Group]", matches: int, against: Sequence[str]) -> "Iterator[dict[str, JSON]]":
    """Plays matches of the best agent of each group."""
    for group in groups:
        run = max(group.runs, key=lambda run: -1.0 if run.best_score is None else run.best_score)
        opponents = list(against) or _hardest(group)
        try:
            yield from _matches(run, opponents, matches)
        except LudusError as error:
            if against:
                raise
            print_warning(f"no replays of {run.name}: {error}")


def _matches(run: "Run", opponents: Sequence[str], matches: int) -> "Iterator[dict[str, JSON]]":
    from ludus.evaluation.contenders import Contender, find_contender, load_agent, sit_by_team
    from ludus.evaluation.exhibition import Exhibition
    from ludus.evaluation.stage import make_stage, shown_settings, stage_settings
    from ludus.evaluation.strips import match_strip

    agent = load_agent(str(run.folder))
    is_alone = agent.spec.seats == 1
    for opponent in opponents or ([""] if is_alone else list(agent.spec.bots[:_HARDEST])):
        for seed in range(matches):
            shown = shown_settings(agent.spec.id, agent.settings)
            settings = stage_settings(agent.spec.id, shown, (opponent or None) if is_alone else None)
            with make_stage(agent.spec.id, seed=seed, settings=settings, left_first=True) as env:
                contenders = [Contender(str(run.folder), agent.policy)]
                if not is_alone:
                    contenders.append(find_contender(opponent, env))
                players = sit_by_team(env, contenders, seed=seed)
                strip = match_strip(Exhibition(env, players), _title(run.name, opponent, is_alone, seed))
            if strip is None:
                return
            yield strip


def _title(run: str, opponent: str, is_alone: bool, seed: int) -> str:
    what = (f": {opponent}" if opponent else "") if is_alone else f" against {opponent}"
    return f"{run}{what}, match {seed + 1}"


def _hardest(group: "Group") -> list[str]:
    """Returns the opponents of the last evaluation that won most, or the first trials; nobody if there was none."""
    from ludus.reports.page.evaluations import WIN_RATE, read_evaluations

    found = read_evaluations(group)
    if found is None:
        return []
    if WIN_RATE not in found.lines or found.kind == "trial":
        return [label for label in found.labels[:_HARDEST] if label]
    last = {label: float(line.value[-1]) for label, line in found.lines[WIN_RATE].items() if len(line.value)}
    hardest = sorted((label for label in last if label), key=lambda label: last[label])
    return list(dict.fromkeys(found.opponents[label] for label in hardest))[:_HARDEST]


def _shown(value: float | None, form: str = "{}") -> str:
    return "-" if value is None else form.format(value)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
