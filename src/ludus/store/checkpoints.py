"""All checkpoints of a run: saving with retention, and the newest one that is whole."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ludus.core import files
from ludus.core.errors import CheckpointError, ConfigError, UnknownNameError
from ludus.store.checkpoint import (
    MANIFEST_NAME,
    TENSOR_SUFFIX,
    Checkpoint,
    Manifest,
    load_with_manifest,
    read_manifest,
    save_checkpoint,
    verify_checkpoint,
)
from ludus.store.documents import DEFAULT_LIMITS

NAMED = ("init", "best", "final", "interrupted")  # with a meaning of their own: retention never deletes them
OWN_LIMITS = replace(DEFAULT_LIMITS, total_bytes=1 << 50)  # a run may be large; the bound is for untrusted files
_MOST_REPORTED = 50  # faults of many checkpoints at once: 8 kB of text
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint that was read from a store: its name, its environment steps and its content."""

    name: str
    step: int
    checkpoint: Checkpoint


class CheckpointStore:
    """The folder in which a run keeps its checkpoints; one process at a time may save.

    Attributes:
        root: The folder; it is made by the first save.
        keep: How many checkpoints stay besides `NAMED`.
    """

    def __init__(self, root: Path, *, keep: int, report: Callable[[str], None]) -> None:
        """Open a store without touching the disk; `report` is called with damaged checkpoints and removed leftovers."""
        if keep < 1:
            raise ConfigError(f"keep is {keep}; at least 1 checkpoint must be kept")
        self.root = root
        self.keep = keep
        self._report = report
        self._sequence = 0  # remembered, so that the order holds also if a manifest cannot be read for a moment

    def names(self) -> list[str]:
        """Return the names of all checkpoints, also damaged ones, in alphabetical order; foreign files are ignored."""
        if not self.root.is_dir():
            return []
        found = {path.name.removeprefix(files.ASIDE_PREFIX) for path in self.root.iterdir() if not path.is_symlink()}
        return sorted(name for name in found if _NAME.fullmatch(name) and _looks_like_checkpoint(self._folder(name)))

    def save(self, name: str, step: int, checkpoint: Checkpoint) -> Path:
        """Save a checkpoint, replacing an earlier one of the name, delete old ones, and return the folder.

        `name` is one of `NAMED`, or such as `step_name(step)`.

        Raises:
            FormatError: The content cannot be stored.
            StoreFullError: The disk is full; nothing was lost or deleted, and saving can be tried again.
            StoreError: Writing failed otherwise; nothing was lost or deleted.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(f"checkpoint name {name!r}; valid: lower-case letters, digits, - and _, at most 64")
        self._tidy()
        self._sequence = 1 + max([self._sequence, *(manifest.sequence for _, manifest in self._readable())])
        target = self.root / name
        save_checkpoint(target, checkpoint, step=step, sequence=self._sequence)
        self._delete_old(newest=name, keep=self.keep)
        return target

    def load(self, name: str, *, parts: Collection[str] | None = None) -> StoredCheckpoint:
        """Read one checkpoint, verified; raise UnknownNameError or, if it cannot be used, CheckpointError."""
        names = self.names()
        if name not in names:
            raise UnknownNameError("checkpoint", name, names)
        return self._load(name, parts)

    def latest_valid(self) -> StoredCheckpoint | None:
        """Read the checkpoint that was saved last; report damaged ones and try the next older one."""
        faults: list[str] = []
        try:
            for name, _ in self._readable(report=faults.append):
                try:
                    return self._load(name, None)
                except CheckpointError as error:
                    faults.append(f"{error}; trying the next older one")
            return None
        finally:
            report_few(faults, self._report)

    def newest_step(self) -> int:
        """Return the environment steps of the checkpoint that was saved last, by its manifest; 0 if there is none."""
        readable = self._readable()
        return readable[0][1].step if readable else 0

    def prune(self, keep: int, *, protected: Iterable[str] = ()) -> list[str]:
        """Delete old checkpoints to free space, after reading the newest valid one in full; return their names.

        Never deletes that one, `NAMED` or protected ones; without any valid checkpoint, deletes nothing.
        """
        if keep < 1:
            raise ConfigError(f"keep is {keep}; at least 1 checkpoint must be kept")
        faults: list[str] = []
        try:
            for name, _ in self._readable():
                try:
                    verify_checkpoint(self._folder(name), limits=OWN_LIMITS)
                except CheckpointError as error:
                    faults.append(str(error))
                else:
                    return self._delete_old(newest=name, keep=keep, protected=protected)
            return []
        finally:
            report_few(faults, self._report)

    def _load(self, name: str, parts: Collection[str] | None) -> StoredCheckpoint:
        manifest, checkpoint = load_with_manifest(self.root / name, parts, OWN_LIMITS)
        return StoredCheckpoint(name, manifest.step, checkpoint)

    def _folder(self, name: str) -> Path:
        return files.existing_folder(self.root / name)

    def _readable(self, report: Callable[[str], None] | None = None) -> list[tuple[str, Manifest]]:
        """Return the checkpoints whose manifest is whole, the one saved last first."""
        readable = []
        for name in self.names():
            try:
                readable.append((name, read_manifest(self._folder(name), OWN_LIMITS)))
            except CheckpointError as error:
                if report is not None:
                    report(str(error))
        return sorted(readable, key=lambda item: (item[1].sequence, item[1].step, item[0]), reverse=True)

    def _tidy(self) -> None:
        """Remove what a killed save left behind and end replacements that it began."""
        try:
            for name in self.names():
                files.recover_folder(self.root / name)
            removed = files.clean_temporaries(self.root)
            report_few([f"removed {path}, left behind by a save that was cut off" for path in removed], self._report)
        except OSError as error:  # the save that follows says whether the disk can still be used
            self._report(f"leftovers in {self.root} could not be removed: {error.strerror or error}")

    def _delete_old(self, newest: str, keep: int, protected: Iterable[str] = ()) -> list[str]:
        """Delete all but the newest `keep` checkpoints that are whole by manifest and sizes; spares damaged ones."""
        candidates = [
            name for name, manifest in self._readable() if name not in NAMED and self._has_sizes(name, manifest)
        ]
        spared = {*protected, newest, *candidates[:keep]}
        deleted: list[str] = []
        faults: list[str] = []
        for name in reversed(candidates):
            if name in spared:
                continue
            try:
                files.remove_folder(self.root / name)
                files.sync_folder(self.root)
                deleted.append(name)
            except OSError as error:
                faults.append(f"old checkpoint {self.root / name} could not be deleted: {error.strerror or error}")
        report_few(faults, self._report)
        return deleted

    def _has_sizes(self, name: str, manifest: Manifest) -> bool:
        folder = self._folder(name)
        try:
            return all((folder / file).stat().st_size == record.size for file, record in manifest.files.items())
        except OSError:
            return False


def report_few(texts: Sequence[str], report: Callable[[str], None]) -> None:
    """Report the first of many texts of one kind, and how many more there are."""
    for text in texts[:_MOST_REPORTED]:
        report(text)
    if len(texts) > _MOST_REPORTED:
        report(f"and {len(texts) - _MOST_REPORTED:,} more of this kind")


def step_name(step: int) -> str:
    """Return the usual name of a periodic checkpoint, such as `step-000000640000`."""
    return f"step-{step:012d}"


def _looks_like_checkpoint(folder: Path) -> bool:
    """Return whether a folder was meant to be a checkpoint, also if its manifest is lost."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return (folder / MANIFEST_NAME).exists() or any(folder.glob(f"*{TENSOR_SUFFIX}"))
