"""The option `--plugin`: Python files of the user's own, which are executed because the user has named them."""

from pathlib import Path
from typing import Annotated

import typer

Plugin = Annotated[
    list[Path] | None, typer.Option(help="Python file of yours with reward terms or worlds; it is executed.")
]


def load_plugins(files: list[Path] | None) -> None:
    """Executes the files, in order."""
    if files:
        from ludus.rewards.plugins import load_plugin

        for file in files:
            load_plugin(file)
