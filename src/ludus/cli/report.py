"""`ludus report`: one self-contained HTML file about one or several runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ludus.cli.console import print_json, print_ok, print_warning, show_table
from ludus.cli.options import Names, Plugin, latest_run, load_plugins
from ludus.cli.report_matches import HARDEST, drawn_note, hardest_opponents, play_matches
from ludus.core.errors import ConfigError, LudusError

if TYPE_CHECKING:
    from ludus.core.files import JSON
    from ludus.reports.page.runs import Group

_REPLAYS_FOLDER = "replays"
_MOST_RECORDED = 20  # replay files of a run that are shown
_MOST_RECORDED_STEPS = 60_000  # of all replay files together: a thousand are played again per second


def report(
    runs: Annotated[
        list[Path] | None,
        Argument(metavar="RUN...", help="Run folders; seeds of one config are merged.", show_default="runs/latest"),
    ] = None,
    out: Annotated[
        Path | None, Option(help="File to write.", show_default="RUN/report.html, or report.html here")
    ] = None,
    replays: Annotated[
        int, Option(min=0, max=20, help="Matches to play of each group's best agent against each opponent.")
    ] = 0,
    against: Annotated[
        Names,
        Option(
            help="Opponent or scenario of the replays; may be repeated.",
            show_default=f"the {HARDEST} hardest of the evaluation",
        ),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print what was written as JSON.")] = False,
    plugin: Plugin = None,
) -> None:
    """Write one HTML file about runs: curves, evaluations, rewards, ratings, times, settings and replays."""
    load_plugins(plugin)
    from ludus.reports.page.document import default_file, read_groups, write_report

    if against and not replays:
        raise ConfigError(f"--against {against[0]} names the opponent of replays; set their number with --replays 1")
    runs = runs or [Path(latest_run())]
    groups = read_groups(runs)
    notes: list[str] = []  # why replays are missing, on the page too
    strips = [*_recorded(groups, notes), *(_played(groups, replays, against or (), notes) if replays else ())]
    painters = _painters({str(strip["world"]) for strip in strips})
    written = write_report(groups, out or default_file(runs), strips, notes, painters)
    for note in written.notes:
        print_warning(note)
    if as_json:
        print_json(written.describe())
        return
    rows = []
    for run in (run for group in groups for run in group.runs):
        speed, best = _shown(run.steps_per_s, "{:,.0f}"), _shown(run.best_score, "{:.3f}")
        rows.append((run.name, _shown(run.seed), run.state, f"{run.env_steps:,}", speed, best))
    show_table(("run", "seed", "state", "steps", "steps/s", "best score"), rows)
    for group in groups:
        score = group.score("best")
        if score is not None:
            seeds = f"best score over {len(group.runs)} seeds: {score.estimate:.3f}"
            print_ok(f"{group.label}: {seeds} (95 % interval {score.low:.3f} to {score.high:.3f})")
    count = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    print_ok(f"report of {count} written to {written.file} ({written.size_bytes / 1e6:.1f} MB)")


def _recorded(groups: "Sequence[Group]", notes: list[str]) -> "Iterator[dict[str, JSON]]":
    """Yield the replay files in the run folders; skip those that cannot be played, with a note."""
    from ludus.reports.run_data import is_inside

    left = _MOST_RECORDED_STEPS
    for group in groups:
        for run in group.runs:
            found = sorted(path for path in (run.folder / _REPLAYS_FOLDER).glob("*") if path.is_file())
            files = [path for path in found if is_inside(run.folder, path)]
            if len(files) > _MOST_RECORDED:
                notes.append(f"{run.name}: {len(files) - _MOST_RECORDED} of {len(files)} replay files are left out")
            for file in files[:_MOST_RECORDED]:
                from ludus.envs.replay import Replay
                from ludus.evaluation.trajectory import replay_trajectory

                try:
                    steps = Replay.load(file).steps
                    strip = replay_trajectory(file) if steps <= left else None
                except LudusError as error:
                    notes.append(f"{run.name}: {file.name} is left out: {error}")
                    continue
                if steps > left:
                    most = f"replay files of {_MOST_RECORDED_STEPS:,} steps in all"
                    notes.append(f"{run.name}: {file.name} is left out: its {steps:,} steps would be more than {most}")
                    continue
                left -= steps
                if strip is None:
                    notes.append(f"{run.name}: {file.name} is left out: {drawn_note()} alone")
                else:
                    yield strip | {"title": f"{run.name}: {file.name}"}


def _painters(worlds: set[str]) -> list[str]:
    """Return the scripts that draw the replays of some worlds."""
    from ludus.evaluation.trajectory import replay_view_of

    views = [replay_view_of(world) for world in sorted(worlds)]
    return [view.source() for view in views if view is not None]


def _played(
    groups: "Sequence[Group]", matches: int, against: Sequence[str], notes: list[str]
) -> "Iterator[dict[str, JSON]]":
    """Play matches of the best agent of each group."""
    for group in groups:
        run = max(group.runs, key=lambda run: -1.0 if run.best_score is None else run.best_score)
        opponents = list(against) or hardest_opponents(group)
        try:
            yield from play_matches(run.name, run.folder, opponents, range(matches))
        except LudusError as error:
            if against:
                raise
            notes.append(f"no replays of {run.name}: {error}")


def _shown(value: float | None, form: str = "{}") -> str:
    return "-" if value is None else form.format(value)
