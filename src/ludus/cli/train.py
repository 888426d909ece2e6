"""`ludus train`, `ludus resume`: from one command to an agent."""

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ludus.cli.console import print_ok, print_warning
from ludus.cli.plugins import Plugin, load_plugins

if TYPE_CHECKING:
    from ludus.training.config import TrainConfig

Overrides = Annotated[list[str] | None, typer.Argument(help="Settings as key=value, such as ppo.epochs=4.")]


def train(
    world: Annotated[str, typer.Argument(help="World to train in, such as brawl or gym:CartPole-v1.")],
    overrides: Overrides = None,
    preset: Annotated[str | None, typer.Option(help="Preset of the world; see `ludus config list`.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file of your own; it may extend a preset.")] = None,
    run_dir: Annotated[Path | None, typer.Option(help="Run folder; a new one under runs/ by default.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed; short for seed=N.")] = None,
    device: Annotated[str | None, typer.Option(help="Device; short for world.device=D.")] = None,
    game: Annotated[
        str | None,
        typer.Option(help="Game of a world that has several, such as micropolis or your own profile's file in city."),
    ] = None,
    plugin: Plugin = None,
) -> None:
    """Train an agent. A run folder that holds an unfinished run with the same settings goes on."""
    load_plugins(plugin)
    from ludus.config import read_user_defaults
    from ludus.training.presets import load_run_config
    from ludus.training.run_folder import new_run_folder

    words = list(overrides or [])
    words += [f"seed={seed}"] if seed is not None else []
    words += [f"world.device={device}"] if device is not None else []
    if game is not None:
        words.append(f"world.settings.game={game}")
        named = _preset_for(world, game)
        preset = named if preset is None and config is None else preset
    settings = load_run_config(world, preset, config, words)
    defaults = read_user_defaults()
    title = f"{world.replace(':', '-')}-{preset or (config.stem if config else 'run')}"
    runs = defaults.runs_folder or Path("runs")
    _run(settings, lambda: run_dir or new_run_folder(runs, title), title=title, user=defaults.name or "")


def _preset_for(world: str, game: str) -> str | None:
    """Returns the preset of a world that is named after a game, if there is one.

    Raises:
        ConfigError: The world has no games to choose among.
    """
    from ludus.config import Shelf
    from ludus.core.errors import ConfigError
    from ludus.envs.registry import preset_package, settings_model

    settings = settings_model(world)
    if settings is None or "game" not in settings.model_fields:
        raise ConfigError(f"--game {game}: {world} has no games to choose among; leave --game out, or train city")
    return game if game in Shelf(preset_package(world)).names() else None


def resume(
    run: Annotated[Path, typer.Argument(help="Run folder to go on in.")],
    overrides: Overrides = None,
    fork: Annotated[Path | None, typer.Option(help="Branch off a new run in this folder instead.")] = None,
    plugin: Plugin = None,
) -> None:
    """Go on with a run that was cut off, to the same budget with the same schedules; or branch off with --fork."""
    load_plugins(plugin)
    from ludus.config import read_user_defaults
    from ludus.training.ranks import find_place
    from ludus.training.run_folder import changed_config, fork_run, read_run_config

    settings = changed_config(read_run_config(run), overrides or ())
    user = read_user_defaults().name or ""
    if fork is None:
        _run(settings, lambda: run, title=run.resolve().name, user=user)
        return
    if find_place().rank == 0:
        parent = fork_run(run, fork, settings, user=user)
        print_ok(f"{fork} branches off {run} at env step {parent.env_steps:,}")
        for change in parent.changes:
            print_ok(f"changed {change}")
    _run(settings, lambda: fork, title=fork.resolve().name, user=user)


def _run(config: "TrainConfig", make_folder: Callable[[], Path], *, title: str, user: str) -> None:
    """Verifies the settings, and trains if they are right: only then a folder is made."""
    from ludus.training.ranks import find_place
    from ludus.training.session import run_training
    from ludus.training.signals import ended_by_signals
    from ludus.training.verification import summarise, verify

    logging.basicConfig(format="%(message)s", handlers=[_CurrentStderr()])
    logging.getLogger("ludus").setLevel(logging.INFO)
    with ended_by_signals() as received:
        for check in verify(config):
            print_ok(check)
        is_first = find_place().rank == 0  # of several processes the first one writes and speaks for all
        folder = make_folder() if is_first else Path()
        for line in summarise(config, folder, user):
            print_ok(line)
        outcome = run_training(config, folder, received, title=title, user=user)
    if is_first and outcome.stop_reason:
        print_warning(f"ended at env step {outcome.counters.env_steps:,}: {outcome.stop_reason}")
        print_ok(f"go on with: ludus resume {folder}")
    elif is_first:
        print_ok(f"{outcome.counters.env_steps:,} env steps; the agent is in {folder}; try: ludus eval {folder}")
    sys.exit(outcome.exit_code)


class _CurrentStderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to what is the error stream at the time: a live view replaces it while it is shown."""

    @property
    def stream(self) -> object:
        return sys.stderr

    @stream.setter
    def stream(self, _: object) -> None:
        pass
