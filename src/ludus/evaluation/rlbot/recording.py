"""The file of a recording: packets of our own simulator, and what an agent saw and chose there."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ludus.core.errors import ReplayError
from ludus.core.files import write_atomic
from ludus.envs.rocket.rlbot.packet import Packet

FORMAT = "ludus-rlbot-recording"
VERSION = 1
_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Choice:
    """What the agent saw and chose.

    Attributes:
        frame: At the packet of this frame.
        index: Of the player whose eyes it had.
        observation: `(values,)`.
        action: Its most likely one; one number or several.
        clear: Whether it stays the same if the observation changes a little; see `AgentDecider.is_clear`.
    """

    frame: int
    index: int
    observation: tuple[float, ...]
    action: tuple[float, ...]
    clear: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """Packets of successive ticks, and the choices made at some of them.

    Attributes:
        name: Of the state setter that began it.
        driven: Whether the agent drove: then its controls are the inputs of the packets that follow.
        packets: One a tick.
        choices: In the order of frames, of each of the watched players.
    """

    name: str
    driven: bool
    packets: tuple[Packet, ...]
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """A whole recording."""

    format: str
    version: int
    scenes: tuple[Scene, ...]


_ADAPTER = TypeAdapter(Recording)


def write_recording(path: Path, scenes: tuple[Scene, ...]) -> None:
    """Writes a recording as JSON."""
    write_atomic(path, _ADAPTER.dump_json(Recording(FORMAT, VERSION, scenes)))


def read_recording(path: Path) -> tuple[Scene, ...]:
    """Reads the scenes of a recording.

    Raises:
        ReplayError: It is missing or damaged, or of another version.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ReplayError(f"the recording {path} has more than {_MAX_BYTES} bytes; export the agent again")
        recording = _ADAPTER.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        fault = str(error).splitlines()[0]
        raise ReplayError(f"the recording {path} cannot be used: {fault}; export the agent again") from error
    if (recording.format, recording.version) != (FORMAT, VERSION):
        raise ReplayError(
            f"the recording {path} is {recording.format!r} of version {recording.version}, "
            f"expected {FORMAT!r} of version {VERSION}; export the agent again"
        )
    return recording.scenes
