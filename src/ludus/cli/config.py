"""`ludus config`: shows resolved configurations, lists presets, says where user defaults are looked for."""

import json as json_format
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ludus.cli.console import print_table
from ludus.cli.options import AsJson

if TYPE_CHECKING:
    from ludus.config import KeyPath, Origins

config = typer.Typer(no_args_is_help=True, help="Show configurations and presets.")


@config.command()
def show(
    world: Annotated[str, typer.Argument(metavar="WORLD", help="World, such as brawl or gym:CartPole-v1.")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings to change.")] = None,
    preset: Annotated[str | None, typer.Option(help="Preset of the world; quick or default if left out.")] = None,
    file: Annotated[Path | None, typer.Option("--config", help="A file of your own instead of a preset.")] = None,
    origins: Annotated[bool, typer.Option("--origins", help="Say where each value comes from.")] = False,
    json: AsJson = False,
) -> None:
    """Print the configuration of a run, complete and checked."""
    from ludus.config import dump_yaml
    from ludus.training.presets import load_run_config_with_origins

    run = load_run_config_with_origins(world, preset, file, overrides or ())
    settings = run.config.to_json()
    if json:
        typer.echo(json_format.dumps(settings, indent=2))
    else:
        typer.echo(dump_yaml(settings, partial(_origin, run.origins) if origins else None), nl=False)


@config.command("list")
def list_presets(
    world: Annotated[str | None, typer.Argument(help="Only the presets of this world.")] = None,
) -> None:
    """List the presets of all worlds, or of one."""
    from ludus.config import Shelf
    from ludus.envs.registry import preset_package, registered_envs

    names = (*registered_envs(), "gym:ID") if world is None else (world,)
    shelves = [(name, Shelf(preset_package(name))) for name in names]
    rows = [(name, preset, shelf.about(preset)) for name, shelf in shelves for preset in shelf.names()]
    if rows:
        print_table(("world", "preset", "about"), rows)
    else:
        typer.echo(f"{world} has no presets; its runs begin with the plain defaults")


@config.command()
def path() -> None:
    """Print the file in which your own defaults are looked for."""
    from ludus.config import UserDefaults, read_user_defaults, user_defaults_file

    file = user_defaults_file()
    typer.echo(os.fsencode(file))
    if read_user_defaults() == UserDefaults():
        typer.echo(f"it sets nothing yet; its keys can be: {', '.join(UserDefaults.model_fields)}", err=True)


def _origin(origins: "Origins", path: "KeyPath") -> str:
    origin = origins.of(path)
    return f"from {origin.without_column}" if origin is not None else "default"
