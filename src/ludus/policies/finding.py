"""Finds the checkpoint that a path means: a run's, one of a run, one that was copied alone, or an exported file."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ludus.core.errors import CheckpointError
from ludus.core.files import existing_folder
from ludus.store import Checkpoint, CheckpointStore, load_checkpoint, read_manifest, read_single_file

TENSORS = "policy"  # group of tensors in a checkpoint that holds `Policy.state()`
DOCUMENT = "agent"  # document in a checkpoint that holds the policy's description
ORIGIN = "origin"  # document in an exported file that says where it comes from
CHECKPOINTS_FOLDER = "checkpoints"  # where a run folder keeps its checkpoints

_PREFERRED = ("best", "final")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint that holds an agent.

    Attributes:
        path: Its folder or file.
        name: Of the checkpoint in its run, such as `best`.
        env_steps: At which it was taken; None if an exported file does not say so.
        checkpoint: At least its parts `TENSORS` and `DOCUMENT`.
    """

    path: Path
    name: str
    env_steps: int | None
    checkpoint: Checkpoint


def find_checkpoint(path: Path) -> FoundCheckpoint:
    """Returns the checkpoint that is meant by the folder of a run, of its checkpoints or of one, or by a file.

    Raises:
        CheckpointError: There is none, or it is damaged, hostile or no agent's.
    """
    found = _from_file(path) if path.is_file() else _from_folder(path)
    missing = {TENSORS} - set(found.checkpoint.tensors) | {DOCUMENT} - set(found.checkpoint.documents)
    if missing:
        raise CheckpointError(found.path, "manifest.json", f"no agent: it has no part {', '.join(sorted(missing))}")
    return found


def _from_file(path: Path) -> FoundCheckpoint:
    checkpoint = read_single_file(path)
    origin = checkpoint.documents.get(ORIGIN)
    said = origin if isinstance(origin, Mapping) else {}
    name, env_steps = said.get("checkpoint"), said.get("env_steps")
    return FoundCheckpoint(
        path,
        name if isinstance(name, str) else path.stem,
        env_steps if type(env_steps) is int and env_steps >= 0 else None,
        checkpoint,
    )


def _from_folder(path: Path) -> FoundCheckpoint:
    root = path / CHECKPOINTS_FOLDER if (path / CHECKPOINTS_FOLDER).is_dir() else path
    store = CheckpointStore(root, keep=1, report=lambda text: logger.warning("[WARN] %s", text))
    names = store.names()
    for name in _PREFERRED:
        if name in names:
            stored = store.load(name, parts=(TENSORS, DOCUMENT))
            return FoundCheckpoint(root / name, name, stored.step, stored.checkpoint)
    newest = store.latest_valid() if names else None
    if newest is not None:
        return FoundCheckpoint(root / newest.name, newest.name, newest.step, newest.checkpoint)
    checkpoint = load_checkpoint(path, parts=(TENSORS, DOCUMENT))
    return FoundCheckpoint(path, path.name, read_manifest(existing_folder(path)).step, checkpoint)
