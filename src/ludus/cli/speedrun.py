"""`ludus speedrun`: train until a world's target score is reached, and enter the seconds that it took on a board."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ludus.cli.console import StatusLine, print_ok
from ludus.cli.options import Plugin, load_plugins
from ludus.cli.train import Overrides
from ludus.core.errors import ConfigError


def speedrun(
    world: Annotated[str, Argument(help="World: brawl, rocket, mimic, or one of your own that declares a speedrun.")],
    overrides: Overrides = None,
    board: Annotated[
        Path | None, Option(help="Page to add the result to; docs/speedrun.md in a checkout by default.")
    ] = None,
    run_dir: Annotated[Path | None, Option(help="New run folder; one under runs/ by default.")] = None,
    seed: Annotated[int | None, Option(min=0, help="Seed; short for seed=N.")] = None,
    device: Annotated[str | None, Option(help="Device; short for world.device=D.")] = None,
    plugin: Plugin = None,
) -> None:
    """Train a world's recipe to its target score, and add the seconds since the command to a board.

    An evaluation on other seeds has to confirm the score. Nothing is added if the target is not reached.
    """
    load_plugins(plugin, world)
    import psutil

    from ludus.config import read_user_defaults
    from ludus.core.files import RUNS_FOLDER
    from ludus.training.loggers.run_log import held_warnings
    from ludus.training.preflight import verify
    from ludus.training.resolve import resolve
    from ludus.training.run_folder import new_run_folder
    from ludus.training.session import ended_by_signals, run_training
    from ludus.training.speedrun import (
        BOARD,
        SpeedrunCallback,
        add_to_board,
        read_board,
        speedrun_config,
        speedrun_of,
    )

    started_s = psutil.Process().create_time()
    if board is None and not BOARD.is_file():
        raise ConfigError(f"there is no {BOARD} here, as in a checkout; name the page to add to: --board speedrun.md")
    board = board or BOARD
    read_board(board)  # before anyone waits for a result that cannot be added
    words = list(overrides or [])
    words += [f"seed={seed}"] if seed is not None else []
    words += [f"world.device={device}"] if device is not None else []
    config, target = speedrun_config(world, words), speedrun_of(world, words)
    if run_dir is not None and run_dir.exists() and any(run_dir.iterdir()):
        raise ConfigError(f"{run_dir} is not empty, and a speedrun starts from scratch; choose another --run-dir")
    run = resolve(config)
    if run.process.count > 1:
        raise ConfigError("a speedrun is of one process; start it without torchrun")
    callback = SpeedrunCallback(config, target, started_s)
    title = f"{world}-speedrun"
    with ended_by_signals() as received:
        line = StatusLine()
        with held_warnings() as warnings:
            for check in verify(run):
                line.show(f"checking the run: {check.partition(':')[0]} is right")
        line.close()
        folder = run_dir or new_run_folder(read_user_defaults().runs_folder or RUNS_FOLDER, title)
        print_ok(f"speedrun of {world} to {target.goal}; run folder {folder}")
        outcome = run_training(run, folder, received, title=title, callbacks=[callback], warnings=warnings)
    if received.number and callback.entry is None:
        sys.exit(outcome.exit_code)
    shown = [word for word in words if not word.startswith(("seed=", "world.device=", "monitoring."))]
    entry = callback.finish(world, shown, config, folder)
    add_to_board(board, entry)
    print_ok(f"{target.goal} after {entry['seconds']:,.1f} s, confirmed with {entry['confirmed_score']:.4g}: {board}")
