"""`ludus config`: show resolved configurations, list presets, say where user defaults are looked for."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option, Typer

from ludus.cli.console import echo, print_json, print_table
from ludus.cli.options import AsJson, Names

if TYPE_CHECKING:
    from ludus.config import KeyPath, Origins

config = Typer(no_args_is_help=True, help="Show configurations and presets.")


@config.command()
def show(
    world: Annotated[str, Argument(metavar="WORLD", help="World, such as brawl or gym:CartPole-v1.")],
    overrides: Annotated[Names, Argument(metavar="KEY=VALUE", help="Settings to change.")] = None,
    preset: Annotated[str | None, Option(help="Preset of the world; quick or default if omitted.")] = None,
    file: Annotated[Path | None, Option("--config", help="Your own configuration file instead of a preset.")] = None,
    origins: Annotated[bool, Option("--origins", help="Show where each value comes from.")] = False,
    json: AsJson = False,
) -> None:
    """Print the configuration of a run, complete and checked."""
    from ludus.config import dump_yaml
    from ludus.training.presets import load_run_config_with_origins

    run, known = load_run_config_with_origins(world, preset, file, overrides or ())
    settings = run.to_json()
    if json:
        print_json(settings)
    else:
        echo(dump_yaml(settings, partial(_origin, known) if origins else None).removesuffix("\n"))


@config.command("list")
def list_presets(world: Annotated[str | None, Argument(help="Only the presets of this world.")] = None) -> None:
    """List the presets of all worlds, or of one."""
    from ludus.config import PresetDirectory
    from ludus.envs.world import find_world, registered_envs

    names = (*registered_envs(), "gym:ID", "pettingzoo:MODULE") if world is None else (world,)
    directories = [(name, PresetDirectory(find_world(name).package)) for name in names]
    rows = [(name, preset, directory.about(preset)) for name, directory in directories for preset in directory.names()]
    if rows:
        print_table(("world", "preset", "about"), rows)
    else:
        echo(f"{world} has no presets; its runs begin with the plain defaults")


@config.command()
def path() -> None:
    """Print the file in which your own defaults are looked for."""
    from ludus.config import UserDefaults, read_user_defaults, user_defaults_file

    file = user_defaults_file()
    typer.echo(os.fsencode(file))
    if read_user_defaults() == UserDefaults():
        echo(f"it sets nothing yet; its keys can be: {', '.join(UserDefaults.model_fields)}", err=True)


def _origin(origins: "Origins", path: "KeyPath") -> str:
    origin = origins.of(path)
    return f"from {origin.without_column}" if origin is not None else "default"
