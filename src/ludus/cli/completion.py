"""`ludus completion`: completion of commands, options and agent names with the Tab key; Typer writes the scripts."""

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ludus.cli.console import echo, print_ok
from ludus.core.errors import ConfigError
from ludus.core.files import wrap_disk_errors

PROGRAM = "ludus"
VARIABLE = "_LUDUS_COMPLETE"  # in which Typer looks for the shell's question


class Shell(StrEnum):
    """A shell that Typer has a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def completion(
    shell: Annotated[Shell | None, Argument(help="Shell to complete in.", show_default="the one you use")] = None,
    install: Annotated[
        bool, Option("--install", help="Write the script to your home folder and load it in every new shell.")
    ] = False,
) -> None:
    """Print the script that completes commands and options with the Tab key, or install it."""
    chosen = shell or find_shell()
    if not install:
        echo(completion_script(chosen))
        return
    if chosen is Shell.POWERSHELL:  # Typer would also let every script run on this machine
        raise ConfigError("--install is for bash, zsh and fish; in PowerShell: ludus completion powershell >> $PROFILE")
    from typer.completion import install as write_script  # type: ignore[attr-defined]

    with wrap_disk_errors(f"the completion of {chosen}"):
        _, file = write_script(shell=chosen.value, prog_name=PROGRAM, complete_var=VARIABLE)
    print_ok(f"{file} written; new shells complete ludus with the Tab key")


def complete_agent(incomplete: str) -> list[str]:
    """Return the shipped agents whose names begin like this, and the files and folders that do.

    A shell completes paths by itself only if there is nothing else, so without a matching agent nothing is returned.
    """
    return _with_paths(incomplete, _agents())


def complete_agent_or_world(incomplete: str) -> list[str]:
    """Return what `complete_agent` does, and the worlds whose names begin like this."""
    from ludus.envs.world import registered_worlds

    return _with_paths(incomplete, sorted({*_agents(), *(world.name for world in registered_worlds())}))


def complete_agent_name(incomplete: str) -> list[str]:
    """Return the shipped agents whose names begin like this."""
    return [name for name in _agents() if name.startswith(incomplete)]


def _agents() -> tuple[str, ...]:
    from ludus.policies.shipped import agent_names

    return agent_names()


def _with_paths(incomplete: str, names: Sequence[str]) -> list[str]:
    matching = [name for name in names if name.startswith(incomplete)]
    if not matching:
        return []
    paths = [path.name + os.sep * path.is_dir() for path in Path().iterdir() if not path.name.startswith(".")]
    return matching + sorted(path for path in paths if path.startswith(incomplete))


def find_shell() -> Shell:
    """Return the shell of this user; raise ConfigError if it is not one that can be completed in."""
    name = "powershell" if os.name == "nt" else Path(os.environ.get("SHELL", "")).name
    try:
        return Shell(name)
    except ValueError:
        valid = ", ".join(Shell)
        raise ConfigError(f"your shell {name or '(unknown)'} has no completion; name one: {valid}") from None


def completion_script(shell: Shell) -> str:
    """Return the script that a shell has to load."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script: str = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value)
    return script
