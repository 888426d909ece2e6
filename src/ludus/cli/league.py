"""`ludus league`: learners and evaluators of one league on Ray, on this machine or on many."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from ludus.cli.console import print_json, print_ok, print_warning, show_table
from ludus.cli.options import AsJson, Names, Plugin, load_plugins, plugin_paths
from ludus.core.files import RUNS_FOLDER

if TYPE_CHECKING:
    from ludus.scale.league_head import LeagueResult, Listener
    from ludus.scale.population import LeaguePlan

LEAGUES_FOLDER = "leagues"  # beside runs, so that `runs/latest` stays a run
_EXIT_STOPPED = 3  # as of a run that ends before its budget
_PAGE_EVERY_S = 20.0
_MOST_LETTERS, _MOST_LEARNERS = 200, 3_000  # of what a file says
_MOST_ROWS = 20  # of the table; all members are in state.json

league = Typer(no_args_is_help=True, help="Train a league of main agents and exploiters, on one machine or many.")

_Folder = Annotated[Path, Argument(help="League folder.")]
_Address = Annotated[
    str | None,
    Option(help="Address of a Ray cluster whose machines share the league folder; this machine alone by default."),
]


@league.command()
def start(
    config: Annotated[str, Argument(help="World with a league among its presets, such as brawl; or your own file.")],
    overrides: Annotated[Names, Argument(help="Settings as key=value, such as population.evaluators=2.")] = None,
    preset: Annotated[str | None, Option(help="League of the world: alphastar or debug.")] = None,
    out: Annotated[Path | None, Option(help="League folder; a new one under runs/leagues/ by default.")] = None,
    address: _Address = None,
    plugin: Plugin = None,
) -> None:
    """Start a league: main agents, main exploiters, league exploiters and evaluators with one payoff table."""
    from ludus.scale.cluster import require_ray

    require_ray("ludus league", libraries=("ray",))  # before torch is imported
    options = load_plugins(plugin)
    from ludus.config import read_user_defaults
    from ludus.scale.league import start_league
    from ludus.scale.population import find_league, load_league
    from ludus.training.presets import run_title
    from ludus.training.run_folder import new_run_folder

    file = find_league(config, preset)
    plan = load_league(file, overrides or ())
    runs = read_user_defaults().runs_folder or RUNS_FOLDER
    folder = out or new_run_folder(runs / LEAGUES_FOLDER, run_title(plan.base.world.name, file=file))
    _print_plan(plan, folder)
    _end(start_league(plan, folder, address=address, plugins=plugin_paths(plugin), listener=_listener(folder)), options)


@league.command()
def resume(folder: _Folder, address: _Address = None, plugin: Plugin = None) -> None:
    """Continue a league that was stopped or killed; nothing that was reported is lost."""
    from ludus.scale.cluster import require_ray

    require_ray("ludus league", libraries=("ray",))
    options = load_plugins(plugin)
    from ludus.scale.league import resume_league
    from ludus.scale.population import read_league

    _print_plan(read_league(folder), folder)
    _end(resume_league(folder, address=address, plugins=plugin_paths(plugin), listener=_listener(folder)), options)


@league.command()
def scale(
    folder: _Folder,
    changes: Annotated[list[str], Argument(metavar="KEY=VALUE", help="Such as evaluators=4 or main.learners=2.")],
) -> None:
    """Change the number of learners or evaluators of a league, also while it runs."""
    from ludus.scale.league import scale_league

    config = scale_league(folder, changes).config
    names = ", ".join(name for name, _ in config.learner_names())
    print_ok(f"{folder}: {names}; {config.evaluators} evaluators")
    print_ok("a league that is running follows within seconds")


@league.command()
def show(folder: _Folder, json: AsJson = False) -> None:
    """Print the learners and members of a league, with ratings by the payoff table."""
    _show(folder, as_json=json)


def _listener(folder: Path) -> "Listener":
    """Return a listener that prints what happens, and rewrites the page now and then."""
    from ludus.reports.league_page import STATE, write_league_page

    written_s = 0.0

    def tell(level: str, text: str) -> None:
        nonlocal written_s
        (print_warning if level == "warning" else print_ok)(text)
        sys.stdout.flush()
        if time.monotonic() - written_s >= _PAGE_EVERY_S and (folder / STATE).is_file():
            written_s = time.monotonic()
            write_league_page(folder)

    return tell


def _print_plan(plan: "LeaguePlan", folder: Path) -> None:
    config = plan.config
    names = ", ".join(name for name, _ in config.learner_names())
    print_ok(f"league of {plan.base.world.name} in {folder}: {names}; {config.evaluators} evaluators")
    print_ok(f"watch the learners with: ludus watch {folder}; page of the league: {folder / 'league.html'}")
    sys.stdout.flush()


def _show(folder: Path, *, as_json: bool = False) -> None:
    from ludus.reports.league_page import read_league_state

    document = read_league_state(folder)
    if as_json:
        print_json(document)
        return
    learners = [
        (each["name"], each["state"], str(each["generation"]), f"{each['earlier_env_steps'] + each['env_steps']:,}",
         str(each["replaced"]), each["reason"])
        for each in document["learners"][:_MOST_LEARNERS]
    ]  # fmt: skip
    header = ("learner", "state", "generation", "env steps", "replaced", "reason")
    show_table(header, [tuple(cell[:_MOST_LETTERS] for cell in row) for row in learners])
    best = sorted(document["members"], key=lambda member: -member["rating"])
    rows = [
        (each["name"][:_MOST_LETTERS], f"{each['rating']:.0f}", f"{each['env_steps']:,}") for each in best[:_MOST_ROWS]
    ]
    print_ok(f"{len(best)} members, {document['matches']:,} matches; ratings are Bradley-Terry with mean 0")
    show_table(("member", "rating", "env steps"), rows)


def _end(result: "LeagueResult", options: str) -> None:
    from ludus.reports.league_page import write_league_page

    page = write_league_page(result.folder)
    _show(result.folder)
    print_ok(f"page: {page}")
    if result.reason:
        print_warning(f"ended before the main agents had used up their budgets: {result.reason}")
        print_ok(f"resume it with: ludus league resume {result.folder}{options}")
    if result.signal_number:
        sys.exit(128 + result.signal_number)
    if result.reason:
        sys.exit(_EXIT_STOPPED)
