"""A user's defaults: name, device, folder of runs and where reports go, from one optional file outside all projects."""

import contextlib
import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from ludus.config.explain import HIDDEN
from ludus.config.node import Node, Origin
from ludus.config.reader import Document, read_document
from ludus.config.reading import read_config

FILE_VARIABLE = "LUDUS_CONFIG"
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _variable_name(name: str) -> str:
    if not _VARIABLE_NAME.fullmatch(name):
        raise PydanticCustomError(
            HIDDEN,
            "should be the name of the environment variable that holds the address, such as LUDUS_WEBHOOK; an address "
            "is a secret, and secrets come from the environment, never from a file",
        )
    return name


def _expand(folder: Path) -> Path:
    try:
        return folder.expanduser()
    except RuntimeError as error:
        raise ValueError("should be a folder whose home is known") from error


class UserDefaults(BaseModel):
    """What a user wants in every run unless a run says otherwise.

    Attributes:
        name: User name that summaries show.
        device: Where games, policy and learner live, such as `cuda`.
        runs_folder: Folder in which new runs get their folders.
        webhook_env: Name of the environment variable that holds the address to which messages are posted, where that
            is switched on.
        wandb_project: Project of Weights & Biases to which runs are logged, where that is switched on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    device: Annotated[str, Field(min_length=1)] | None = None
    runs_folder: Annotated[Path, AfterValidator(_expand)] | None = None
    webhook_env: Annotated[str, AfterValidator(_variable_name)] | None = None
    wandb_project: Annotated[str, Field(min_length=1, max_length=128)] | None = None


def user_defaults_file() -> Path:
    """Returns the file in which a user's defaults are looked for, whether or not it is there.

    It is `$LUDUS_CONFIG`, else `$XDG_CONFIG_HOME/ludus/config.yaml`, else `~/.config/ludus/config.yaml`.
    """
    named = os.environ.get(FILE_VARIABLE)
    if named:
        return Path(named)
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():  # the XDG specification asks to ignore others
        base = Path("~/.config")
        with contextlib.suppress(RuntimeError):  # a user without a home
            base = base.expanduser()
    return base / "ludus" / "config.yaml"


def read_user_defaults() -> UserDefaults:
    """Returns a user's defaults; all empty if there is no file.

    Raises:
        ConfigFileError: The file has faults, or `$LUDUS_CONFIG` names one that is not there.
    """
    return read_config(UserDefaults, [user_defaults_document()])


def user_defaults_document() -> Document:
    """Returns a user's defaults with the place of each, not yet checked."""
    file = user_defaults_file()
    if os.environ.get(FILE_VARIABLE) or _is_there(file):
        return read_document(file, f"the file of user defaults (${FILE_VARIABLE})")
    start = Origin(str(file), 1, 1)
    return Document(Node({}, start, start))


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # the home of somebody else
        return False
