"""Shipped agents: trained agents inside the package, which every command that plays an agent accepts by name.

The folder `ludus/agents` holds two files per agent: `NAME.ludus`, written by `ludus export`, and the model card
`NAME.md`. The front matter of the card is the only description of the agent: `ludus agents` prints it above the card
and lists it in its table, so the two cannot disagree. Nothing here imports torch, so that listing agents is quick.

A name that could mean several things means the first of these: a bot of the world (for `ludus demo` also a world), a
file or folder, a shipped agent. `./champion` is always a path.
"""

from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ludus.config.yaml import parse_document
from ludus.core.errors import ConfigFileError, FormatError, UnknownNameError
from ludus.core.files import EXPORT_SUFFIX, read_regular_text

CARD_SUFFIX = ".md"
_FENCE = "---\n"  # before and after the front matter of a card
_MAX_CARD_BYTES = 1 << 20


class ShippedAgent(BaseModel):
    """The description of a shipped agent: the front matter of its card.

    Attributes:
        world: Versioned name of its world, such as `brawl-v1`.
        summary: What it is, in a few words.
        result: Its measured strength.
        measured_with: The command that measures it again.
        command: The command that trained it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    world: str = Field(min_length=1)
    summary: str = Field(min_length=1)
    result: str = Field(min_length=1)
    measured_with: str = Field(min_length=1)
    command: str = Field(min_length=1)


def agent_names(world: str | None = None) -> tuple[str, ...]:
    """Return the names of all shipped agents, or of those of one world such as `brawl-v1`, sorted."""
    names = sorted(file.stem for file in _folder().glob(f"*{EXPORT_SUFFIX}"))
    return tuple(name for name in names if world is None or describe_agent(name).world == world)


def is_agent(name: str) -> bool:
    """Return whether a shipped agent has this name."""
    return name in agent_names()


def agent_path(name: str) -> Path:
    """Return the file of a shipped agent.

    Raises:
        UnknownNameError: There is no shipped agent of this name.
    """
    if not is_agent(name):
        raise UnknownNameError("shipped agent", name, agent_names())
    return _folder() / f"{name}{EXPORT_SUFFIX}"


def find_agent_path(name: str | Path) -> Path | None:
    """Return the file or folder that names an agent: one of this name if there is one, else that of a shipped agent.

    This is where names become paths, for every function that loads an agent.

    Args:
        name: The path of a run, a checkpoint or a file, or the bare name of a shipped agent. A `Path` is always a path.

    Returns:
        The path, or None if there is neither such a file or folder nor such a shipped agent.
    """
    if Path(name).exists():
        return Path(name)
    return agent_path(name) if isinstance(name, str) and is_agent(name) else None


def describe_agent(name: str) -> ShippedAgent:
    """Return the description of a shipped agent.

    Raises:
        UnknownNameError: There is no shipped agent of this name.
        FormatError: Its card has no front matter, or an incomplete one.
    """
    return _read_card(name)[0]


def agent_card(name: str) -> str:
    """Return the model card of a shipped agent in Markdown, without its front matter.

    Raises:
        UnknownNameError: There is no shipped agent of this name.
        FormatError: Its card has no front matter, or an incomplete one.
    """
    return _read_card(name)[1]


def _read_card(name: str) -> tuple[ShippedAgent, str]:
    file = agent_path(name).with_suffix(CARD_SUFFIX)
    before, *rest = read_regular_text(file, limit=_MAX_CARD_BYTES).split(_FENCE, 2)
    if before or len(rest) != 2:
        raise FormatError(f"{file} does not begin with front matter between two lines of ---")
    document = parse_document(rest[0], str(file))
    if document.faults:
        raise ConfigFileError(document.faults)
    try:
        return ShippedAgent.model_validate(document.root.plain()), rest[1].lstrip()
    except ValidationError as error:
        raise FormatError(f"the front matter of {file} is invalid: {error}") from error


def _folder() -> Path:
    return Path(str(files("ludus") / "agents"))
