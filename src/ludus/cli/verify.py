"""`ludus verify`: does in small what a run will do, and says what the run is."""

from pathlib import Path
from typing import Annotated

import typer

from ludus.cli.console import print_ok
from ludus.cli.plugins import Plugin, load_plugins
from ludus.cli.train import Overrides

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
    from ludus.training.presets import load_run_config

    load_plugins(plugin)
    if world.endswith(_FILE_ENDINGS):
        world, config = _world_of(Path(world), config), Path(world)
    settings = load_run_config(world, preset, config, overrides or ())
    for line in verification.verify(settings):
        print_ok(line)
    for line in verification.summarise(settings, None, read_user_defaults().name or ""):
        print_ok(line)


def _world_of(file: Path, other: Path | None) -> str:
    """Returns the world that a configuration file, or one that it extends, says it is for."""
    from ludus.config import Shelf, read_layers
    from ludus.core.errors import ConfigError, ConfigFileError

    if other is not None:
        raise ConfigError(f"two configuration files are given, {file} and --config {other}; choose one")
    *_, own = documents = read_layers(file, Shelf(""))  # its presets are not known before its world is
    if own.root.content is None and own.faults:
        raise ConfigFileError(own.faults)
    names = (document.root.find(("world", "name")) for document in reversed(documents))
    for name in names:
        if name is not None and isinstance(name.content, str):
            return name.content
    raise ConfigError(f"{file} does not say its world; give it world.name, or use: ludus verify WORLD --config {file}")
