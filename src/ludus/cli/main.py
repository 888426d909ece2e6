"""The command `ludus`: the only place that reads arguments, prints and exits.

Commands import what they need when they run, so that `ludus --help` never pays for torch.
"""

import sys
from typing import Annotated

import typer

from ludus import __version__
from ludus.cli.analyze import analyze
from ludus.cli.audit import audit
from ludus.cli.bench import bench
from ludus.cli.benchmark import benchmark
from ludus.cli.config import config
from ludus.cli.console import print_error
from ludus.cli.demo import demo
from ludus.cli.doctor import doctor
from ludus.cli.envs import envs
from ludus.cli.evaluate import evaluate
from ludus.cli.export import export
from ludus.cli.motion import motion
from ludus.cli.play import play
from ludus.cli.ratings import ratings
from ludus.cli.replay import replay
from ludus.cli.report import report
from ludus.cli.tournament import tournament
from ludus.cli.train import resume, train
from ludus.cli.verify import verify
from ludus.core.errors import LudusError

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="ludus",
    help="Trains agents that play games: thousands of games in one batch, on one device.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain ASCII on every terminal, and no import of rich
    pretty_exceptions_enable=False,
)
app.command()(train)
app.command()(resume)
app.command()(verify)
app.command()(play)
app.command()(replay)
app.command()(demo)
app.command()(doctor)
app.command()(envs)
app.command(name="eval")(evaluate)
app.command()(analyze)
app.command()(benchmark)
app.command()(tournament)
app.command()(ratings)
app.command()(report)
app.command()(export)
app.add_typer(audit, name="audit")
app.add_typer(bench, name="bench")
app.add_typer(config, name="config")
app.add_typer(motion, name="motion")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ludus {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line; an error on purpose becomes one line and exit code 2."""
    try:
        app()
    except LudusError as error:
        print_error(str(error))
        sys.exit(EXIT_ERROR)
    except KeyboardInterrupt:
        print_error("interrupted")
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
