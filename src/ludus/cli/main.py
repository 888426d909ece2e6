"""The command `ludus`: the only place that reads arguments, prints and exits.

Commands import what they need when they run, so that `ludus --help` never pays for torch.
"""

import gc
import logging
import os
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from typer import Exit, Option, Typer
from typer.core import TyperGroup
from typer.main import get_command

from ludus import __version__
from ludus.cli.agents import agents
from ludus.cli.analyze import analyze
from ludus.cli.benchmark import benchmark
from ludus.cli.completion import completion
from ludus.cli.config import config
from ludus.cli.console import echo, print_error, set_up_logging
from ludus.cli.demo import demo
from ludus.cli.doctor import doctor
from ludus.cli.envs import envs
from ludus.cli.evaluate import evaluate
from ludus.cli.export import export
from ludus.cli.league import league
from ludus.cli.options import refuse_infinite
from ludus.cli.play import play, replay
from ludus.cli.ratings import ratings
from ludus.cli.report import report
from ludus.cli.share import share
from ludus.cli.sweep import sweep
from ludus.cli.tournament import tournament
from ludus.cli.train import resume, train, verify
from ludus.cli.watch import watch
from ludus.core.errors import LudusError
from ludus.core.faults import let_pass
from ludus.core.files import DISK_ERRORS
from ludus.core.text import blame
from ludus.envs.world import registered_worlds, resolve

IS_TERMINAL = sys.stdout.isatty()  # elsewhere rich is not even imported

TRAIN, LOOK, MEASURE, SHARE, SET_UP = "Train", "Look", "Measure", "Share", "Set up"

PANEL = "Worlds"

_PACKAGE = Path(__file__).parents[1]
_ENDING = {"typer", "click"}  # libraries that end a command by SystemExit

logger = logging.getLogger(__name__)

EXIT_DEFECT = 1
EXIT_ERROR = 2
EXIT_INTERRUPTED = 130


class CommandGroup(TyperGroup):
    """Lists commands by group in plain text as rich does in colour, and cuts no description."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - Click's, which Typer may hold inside
        """Write all commands, each below the title of its group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                group = getattr(command, "rich_help_panel", None)
                title = group if isinstance(group, str) else "Commands"
                groups.setdefault(title, []).append((name, command.get_short_help_str(sys.maxsize)))
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def examples(*lines: str) -> str:
    """Return examples for the end of a help, one per line."""
    title = ("[bold]Examples[/bold]",) if IS_TERMINAL else ("\b", "Examples:")
    return "\n".join((*title, *(f"  {line}" for line in lines)))


def add_world_commands(app: Typer) -> None:
    """Add the commands of every world that has some, as a group of its name."""
    for world in registered_worlds():
        group = Typer(help=f"Commands of {world.name}: {', '.join(world.commands)}.", no_args_is_help=True)
        group.callback()(_group)
        for name, part in world.commands.items():
            try:
                command = resolve(part)
            except BaseException as error:  # a world of others can raise anything; the other commands still work
                let_pass(error)
                logger.warning("[WARN] the command %s of %s cannot be loaded: %s", name, world.id, blame(error))
                continue
            if isinstance(command, Typer):
                group.add_typer(command, name=name)
            else:
                group.command(name)(command)
        if group.registered_commands or group.registered_groups:
            app.add_typer(group, name=world.name, rich_help_panel=PANEL)


def _group() -> None:
    """Make Typer treat an app with one command as a group."""


app = Typer(
    name="ludus",
    cls=CommandGroup,
    help="Train agents that play games: thousands of games in one batch, on one device.",
    epilog=examples(
        "ludus train brawl --preset quick        train a fighter; runs/latest then points to the run",
        "ludus eval                              how often it wins against every bot",
        "ludus demo --against aggressive         a match of it as demo.mp4",
        "ludus resume total_env_steps=40_000_000 train it further",
        "ludus report                            one HTML page about the run",
        "ludus completion --install              complete commands and options with the Tab key",
    ),
    no_args_is_help=True,
    rich_markup_mode="rich" if IS_TERMINAL else None,
    pretty_exceptions_enable=False,
)


def _add(command: Callable[..., None], panel: str, *lines: str, name: str | None = None) -> None:
    """Add a command to a panel of the help, with examples of its use."""
    app.command(name, rich_help_panel=panel, epilog=examples(*lines) if lines else None)(command)


_add(
    train,
    TRAIN,
    "ludus train brawl --preset quick",
    "ludus train rocket --seed 3 total_env_steps=20_000_000 ppo.n_epochs=4",
    "ludus train gym:CartPole-v1 --run-dir runs/cartpole",
    "ludus train brawl --config mine.yaml",
)
_add(
    resume,
    TRAIN,
    "ludus resume                                       the newest run",
    "ludus resume runs/mine total_env_steps=40_000_000  train it further",
    "ludus resume runs/mine --fork runs/other ppo.n_epochs=4",
)
_add(
    sweep,
    TRAIN,
    "ludus sweep my_sweep.yaml                          search for the best settings",
    "ludus sweep my_sweep.yaml sweep.trials=64 sweep.scheduler=pbt",
    "ludus sweep --resume runs/sweeps/latest            continue one that was stopped or killed",
)
app.add_typer(league, name="league", rich_help_panel=TRAIN)
_add(verify, TRAIN)
app.add_typer(config, name="config", rich_help_panel=TRAIN)
_add(
    demo,
    LOOK,
    "ludus demo                                         the agent of the newest run",
    "ludus demo runs/mine --against aggressive --video match.gif",
    "ludus demo brawl --left aerial --right defensive   two bots",
    "ludus demo mimic --agent walker                    a shipped agent",
    "ludus demo rocket --set mode=2v2 --window",
)
_add(
    watch,
    LOOK,
    "ludus watch                                        all runs in runs/, while they train",
    "ludus watch runs/mine --port 9000",
    "ludus train brawl --preset quick --watch           the same for a run that starts now",
)
_add(
    play,
    LOOK,
    "ludus play brawl --against champion",
    "ludus play rocket --set mode=2v2",
    "ludus play city",
    "ludus play mimic",
)
_add(replay, LOOK)
_add(envs, LOOK)
_add(agents, LOOK, "ludus agents", "ludus agents champion", "ludus play brawl --against champion")
_add(
    evaluate,
    MEASURE,
    "ludus eval                                         the agent of the newest run against every bot",
    "ludus eval runs/mine --against aggressive --against runs/other --matches 1000",
    "ludus eval agent.ludus --json",
    name="eval",
)
for _command in (doctor, benchmark, tournament, ratings, analyze):
    _add(_command, MEASURE)
_add(report, SHARE)
_add(export, SHARE, "ludus export --out agent.ludus --card agent.md", "ludus export runs/mine --onnx agent.onnx")
_add(
    share,
    SHARE,
    "ludus share champion --out champion.html           a page in which anyone plays against it",
    "ludus share runs/mine --snapshots 6 --against rookie",
)
_add(completion, SET_UP, "ludus completion --install", "ludus completion zsh > ~/.zfunc/_ludus")
add_world_commands(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"ludus {__version__}")
        raise Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@cache
def command_line() -> Callable[..., Any]:
    """Return the whole command line; Typer would build it again for every call, which takes 18 ms."""
    command, (option, *_) = get_command(app), get_command(_WITH_ALLOW_FILES).params
    option.expose_value = False
    _add_option(command, option)
    refuse_infinite(command)
    return command


def _add_option(command: Any, option: Any) -> None:  # noqa: ANN401 - Click's, which Typer may hold inside
    """Add `--allow-files` to all commands that read agents, replays or settings: those with `--plugin` or `--config`.

    It is added in one place, because a command that lacks it would leave its users no way to allow a file.
    """
    for inner in getattr(command, "commands", {}).values():
        _add_option(inner, option)
    if {"--plugin", "--config"} & {name for each in command.params for name in each.opts}:
        command.params.append(option)


def _allow_files(paths: list[str] | None) -> None:
    from ludus.envs.stored import allow_files

    for path in paths or ():
        allow_files(path)


_WITH_ALLOW_FILES = Typer(add_completion=False)


@_WITH_ALLOW_FILES.command()
def _with_allow_files(
    allow_files: Annotated[
        list[str] | None,
        Option(
            callback=_allow_files,
            metavar="PATH",
            help="File or folder that settings inside agents, replays and run folders may name; may be repeated.",
        ),
    ] = None,
) -> None:
    pass


def main() -> None:
    """Run the command line; a LudusError becomes one line and exit code 2, any other error a traceback and 1."""
    # Imports make objects that stay. Python looks for garbage after every 700 of them, by default: 0.5 of the 6.5 CPU
    # seconds of a training of 64 steps.
    gc.set_threshold(20_000, 10, 10)
    set_up_logging()
    try:
        command_line()(prog_name="ludus")
    except LudusError as error:
        print_error(str(error))
        sys.exit(EXIT_ERROR)
    except KeyboardInterrupt:
        print_error("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except BaseException as error:
        if isinstance(error, SystemExit) and not _is_of_user(error):
            raise
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:  # of the output, or of a file of a library
            print_error(f"{error.filename or 'the output'} could not be written: {error.strerror}; free some space")
            _drop_output()
            sys.exit(EXIT_ERROR)
        if not isinstance(error, Exception):  # of a network, say; games, bots and callbacks have errors of their own
            print_error(f"{blame(error)}: code of yours would have ended the command; let it raise an exception")
            sys.exit(EXIT_ERROR)
        from ludus.envs.worker_program import short_traceback

        # A defect of ours; its traceback may quote a file too.
        echo(short_traceback(error, 20_000).rstrip(), err=True)
        sys.exit(EXIT_DEFECT)


def _is_of_user(error: SystemExit) -> bool:
    """Return whether code of the user's wants to end the process, rather than the command or a library of it."""
    try:
        let_pass(error)
    except SystemExit:  # of a signal
        return False
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [place for place, file in enumerate(files) if file.is_relative_to(_PACKAGE)]
    called = files[ours[-1] + 1 :]
    return bool(called) and _ENDING.isdisjoint(called[0].parts)


def _drop_output() -> None:
    """Give up output that cannot be written, so that Python does not try again as it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
