"""Exports an agent: one self-contained file that anyone can load, and that can be wrong but never dangerous."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from ludus.core.errors import ConfigError
from ludus.core.files import JSON
from ludus.policies.agent import Agent
from ludus.policies.finding import DOCUMENT, ORIGIN, TENSORS, find_checkpoint
from ludus.store import Checkpoint, write_single_file

EXPORT_SUFFIX = ".ludus"


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written.

    Attributes:
        path: Where.
        size_bytes: How large it is.
        sha256: Of its content, as it is noted in the file itself: see `ludus.store.single_file`.
        checkpoint: Name of the checkpoint that it was made from.
        env_steps: At which that was taken; None if nobody knows.
    """

    path: Path
    size_bytes: int
    sha256: str
    checkpoint: str
    env_steps: int | None


def export_agent(agent: str | Path, target: str | Path) -> Exported:
    """Writes an agent to one file: weights, normalisers, the policy's description, world, its settings and a SHA-256.

    The file is an agent wherever an agent is asked for, and plays as the checkpoint does, bit for bit on the CPU.

    Args:
        agent: A run folder, whose best agent is meant, a checkpoint folder, or an exported file.
        target: The file to write, which ends in `.ludus`; one that is there already is replaced.

    Raises:
        ConfigError: The target has another ending.
        CheckpointError: There is no agent, or it is damaged.
        StoreError: The file could not be written.
    """
    target = Path(target)
    if target.suffix != EXPORT_SUFFIX:
        raise ConfigError(f"the file {str(target)!r} must end in {EXPORT_SUFFIX}; name it {target.stem}{EXPORT_SUFFIX}")
    found = find_checkpoint(Path(agent))
    Agent.load(found.path)  # builds it: what cannot be played is not exported
    documents, tensors = found.checkpoint.documents, found.checkpoint.tensors
    origin: JSON = documents.get(ORIGIN) or {
        "ludus": version("ludus"),
        "checkpoint": found.name,
        "env_steps": found.env_steps,
    }
    content = Checkpoint({TENSORS: tensors[TENSORS]}, {DOCUMENT: documents[DOCUMENT], ORIGIN: origin})
    sha256 = write_single_file(target, content)
    return Exported(target, target.stat().st_size, sha256, found.name, found.env_steps)
