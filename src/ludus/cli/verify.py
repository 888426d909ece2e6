"""`ludus verify`: does in small what a run will do, and says what the run is."""

from pathlib import Path
from typing import Annotated

import typer

from ludus.cli.console import print_ok
from ludus.cli.plugins import Plugin, load_plugins
from ludus.cli.train import Overrides
from ludus.core.errors import ConfigError

_FILE_ENDINGS = (".yaml", ".yml")


def verify(
    world: Annotated[str, typer.Argument(help="World, such as brawl; or a configuration file that names its world.")],
    overrides: Overrides = None,
    preset: Annotated[str | None, typer.Option(help="Preset of the world; see `ludus config list`.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file of your own; it may extend a preset.")] = None,
    plugin: Plugin = None,
) -> None:
    """Check a configuration for real, in seconds: world, players, a rollout, an update, a checkpoint, memory."""
    from ludus.config import read_user_defaults
    from ludus.training import verification
    from ludus.training.presets import load_run_config, world_of_file

    load_plugins(plugin)
    if world.endswith(_FILE_ENDINGS):
        if config is not None:
            raise ConfigError(f"two configuration files are given, {world} and --config {config}; choose one")
        world, config = world_of_file(Path(world)), Path(world)
    settings = load_run_config(world, preset, config, overrides or ())
    for line in verification.verify(settings):
        print_ok(line)
    for line in verification.summarise(settings, None, read_user_defaults().name or ""):
        print_ok(line)
