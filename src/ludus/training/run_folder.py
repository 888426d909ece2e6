"""The run folder: where it is, what it says of the run, and how one branches off another."""

import json
import logging
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

from filelock import lock_descriptor

from ludus.config import Document, as_document, dump_yaml, read_config, read_document, read_overrides
from ludus.core import __version__
from ludus.core.errors import CheckpointError, ConfigError, FormatError, RunLockedError, StoreError, brief
from ludus.core.files import (
    JSON,
    LATEST,
    MAX_DOCUMENT_BYTES,
    MAX_TABLE_BYTES,
    open_regular,
    read_at,
    read_json_object,
    read_regular,
    suggest_run,
    wrap_disk_errors,
    write_atomic,
    write_text_atomic,
)
from ludus.envs.registry import check_name_from_file
from ludus.envs.stored import CONFIG_FILE, remember_own_config
from ludus.policies.agent import CHECKPOINTS_FOLDER
from ludus.store import Checkpoint, CheckpointStore, report_few
from ludus.training.callbacks import Counters
from ludus.training.checkpointing import SNAPSHOTS_FOLDER, stored_config
from ludus.training.config import TrainConfig, differences
from ludus.training.loggers.csv_logger import FILES
from ludus.training.loop import Trainer
from ludus.training.resolve import ResolvedRun, device_name, resolve

logger = logging.getLogger(__name__)

RUN_FILE = "run.json"
LOCK_FILE = "run.lock"
BEST = "best"

_LIBRARIES = ("torch", "numpy", "warp-lang", "gymnasium", "safetensors")
_TRIES = 100
_SOURCE = Path(__file__).resolve().parent


class RunLock:
    """Holds a run folder for this process.

    The lock is the operating system's, not the file's: it ends with the process, however that ends, so a file that was
    left behind blocks no other run. Its content tells others who holds it, from the second byte on: Windows locks the
    first one, so no other process can read it. Where file locks are unavailable, there is only a warning.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            RunLockedError: Another process holds it.
            ConfigError: Something in the folder is a link that leads out of it.
            StoreError: The folder or the lock's file cannot be written.
        """
        path = folder / LOCK_FILE
        with wrap_disk_errors(path):
            folder.mkdir(parents=True, exist_ok=True)
            _refuse_links(folder)
            self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            is_ours = lock_descriptor(self._descriptor, blocking=False)
        except OSError as error:
            logger.warning("[WARN] %s cannot be locked (%s): keep other processes out of it", folder, error.strerror)
            is_ours = True
        if not is_ours:
            holder = _lock_holder(self._descriptor)
            self.release()
            raise RunLockedError(
                f"another process{holder} is training in {folder}; wait for it, stop it, or use another folder"
            )
        note = " " + json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        try:
            with wrap_disk_errors(path):
                os.ftruncate(self._descriptor, 0)
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                os.write(self._descriptor, note.encode())
        except StoreError:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _refuse_links(folder: Path) -> None:
    """Raise ConfigError if something in a run folder is a link that leads out of it: runs write, cut and delete there.

    An unpacked archive may hold such links. The run folder itself may be one.
    """
    real = os.path.realpath(folder)
    for path in folder.iterdir() if folder.is_dir() else ():
        target = Path(os.path.realpath(path))
        is_odd = target.exists() and not (target.is_file() or target.is_dir())  # a device, which nothing opens
        if path.is_symlink() and not target.is_relative_to(real) and not is_odd:
            raise ConfigError(
                f"{brief(str(path))} is a link that leads out of the run folder, in which a run only uses its own "
                "files; put what it points to in its place"
            )


def _lock_holder(descriptor: int) -> str:
    try:
        note = json.loads(read_at(descriptor, 1000, 1))
        return f" (pid {int(note['pid'])} on {str(note['host'])[:60]})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


@dataclass(frozen=True, slots=True)
class Parent:
    """The run that another one branched off."""

    folder: str
    checkpoint: str  # from which of its checkpoints
    env_steps: int  # how far it was
    changes: tuple[str, ...]  # in which settings the new one differs


def new_run_folder(runs: Path, title: str) -> Path:
    """Make a new folder under `runs`, named by title and time, and let `latest` beside it point to it.

    Raises:
        StoreError: It cannot be made.
        ConfigError: No name is free.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = re.sub(r"[^a-zA-Z0-9_.-]+", "-", title)
    with wrap_disk_errors(f"folder {runs}"):
        runs.mkdir(parents=True, exist_ok=True)
        for number in range(_TRIES):
            folder = runs / (f"{name}-{stamp}" + (f"-{number + 1}" if number else ""))
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            _point_latest(runs, folder)
            return folder
    raise ConfigError(f"{runs} has {_TRIES} runs of this second already; name one with --run-dir")


def describe_run(folder: Path, run: TrainConfig | ResolvedRun, counters: Counters, *, user: str = "") -> bool:
    """Write `config.yaml` and `run.json`; a resumed run keeps its own and gets another session from `counters` on.

    Returns:
        Whether the session before this one was cut off, by a kill or a loss of power.

    Raises:
        StoreError: They cannot be written.
    """
    resolved = resolve(run)
    config = resolved.config
    session: dict[str, JSON] = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": list(sys.argv),
        "versions": _versions(),
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "device": device_name(resolved.device)},
        "git": _git_state(),
        "start_env_steps": counters.env_steps,
    }
    document = _read_run(folder) or _new_run(config, user)
    sessions = document.get("sessions")
    earlier = sessions if isinstance(sessions, list) else []
    document["sessions"] = [*earlier, session]
    _write(folder, document, config)
    return bool(earlier) and not _is_ended(earlier[-1])


def describe_end(folder: Path, trainer: Trainer, reason: str) -> None:
    """Note in `run.json` how far the present session of a run got, in what time, and why it ended.

    Milestones and warnings of the run are noted too.

    A file that cannot be read or written is only warned of: the checkpoints hold everything that counts.
    """
    path, warnings = folder / RUN_FILE, trainer.warnings
    try:
        document = read_json_object(path, limit=MAX_DOCUMENT_BYTES)
        document["sessions"][-1] |= {
            "ended": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "env_steps": trainer.counters.env_steps,
            "wall_s": round(trainer.wall_s, 3),
            "training_s": round(trainer.training_s, 3),
            "end_reason": reason,
        }
        document |= trainer.evaluator.milestones | ({"warnings": warnings} if warnings else {})
        write_text_atomic(path, _encode(document))
    except (FormatError, StoreError) as error:
        _warn(str(error))
    except (LookupError, TypeError) as error:
        _warn(f"{path} lists no sessions, so the end of this one is not noted: {error!r}")


def has_ended(folder: Path) -> bool:
    """Return whether the last session of a run ended by itself; False if there was none."""
    sessions = (_read_run(folder) or {}).get("sessions")
    return isinstance(sessions, list) and bool(sessions) and _is_ended(sessions[-1])


def _is_ended(session: JSON) -> bool:
    return isinstance(session, dict) and "ended" in session


def fork_run(source: Path, target: Path, config: TrainConfig, *, user: str = "") -> Parent:
    """Start a new run from the newest valid state of another one, with settings that may differ.

    The source stays as it is. The checkpoint `init` comes last: before it is there, the target holds no run, and this
    can be done again.

    Raises:
        ConfigError: There is nothing to branch off, or the target holds a run already.
        RunLockedError: Another process is training in the target.
        FormatError: A table of the source cannot be read.
        StoreError: The target cannot be written.
    """
    _refuse_links(source)
    with RunLock(target):
        return _fork(source, target, config, user)


def _fork(source: Path, target: Path, config: TrainConfig, user: str) -> Parent:
    store = CheckpointStore(target / CHECKPOINTS_FOLDER, keep=1, report=_warn)
    if {*store.names()} - {BEST}:
        raise ConfigError(f"{target} holds a run already; choose another folder")
    origin = CheckpointStore(source / CHECKPOINTS_FOLDER, keep=1, report=_warn)
    stored = origin.latest_valid()
    if stored is None:
        raise ConfigError(f"{source} has no valid checkpoint to branch off{suggest_run(source)}")
    changes = tuple(differences(stored.checkpoint.documents.get("config"), config.to_json()))
    for name in FILES:
        if os.path.lexists(source / name):
            write_atomic(target / name, read_regular(source / name, limit=MAX_TABLE_BYTES))
    snapshots = CheckpointStore(source / SNAPSHOTS_FOLDER, keep=1, report=_warn)
    kept = CheckpointStore(target / SNAPSHOTS_FOLDER, keep=1 << 30, report=_warn)
    report_few([fault for name in snapshots.names() for fault in _copy(name, snapshots, kept)], _warn)
    parent = Parent(str(source.resolve()), stored.name, stored.step, changes)
    _write(target, _new_run(config, user) | {"parent": asdict(parent)}, config)
    if BEST in origin.names():  # whose score the new run has to beat
        report_few(_copy(BEST, origin, store, config), _warn)
    store.save("init", stored.step, _with_config(stored.checkpoint, config))
    return parent


def read_run_config(folder: Path) -> TrainConfig:
    """Read the settings of a run: its `config.yaml`, or those in its newest valid checkpoint.

    A file that was edited since is refused by the loop, with the differences.

    Raises:
        ConfigError: The folder holds no run, its settings are not of this version, its world would import a module, or
            its settings name files or programs that the user has not allowed, in a run that somebody else started.
    """
    if (folder / CONFIG_FILE).is_file():
        config: TrainConfig | None = read_config(TrainConfig, [read_document(folder / CONFIG_FILE)])
    else:
        config = stored_config(folder) if folder.is_dir() else None
    if config is None:
        raise ConfigError(f"{folder} holds no run with a valid checkpoint{suggest_run(folder)}")
    check_name_from_file(config.world.name, "the run's world")
    config.check_stored(folder / CONFIG_FILE)
    return config


def changed_config(config: TrainConfig, overrides: Sequence[str], sections: Sequence[Document] = ()) -> TrainConfig:
    """Return settings with some of them changed, by sections given in Python and then by `key.path=value` each.

    Raises:
        ConfigFileError: A change has a fault; all of them are listed.
    """
    if not overrides and not sections:
        return config
    layers = [as_document(config.to_json(), CONFIG_FILE), *sections, *read_overrides(overrides)]
    return read_config(TrainConfig, layers)


def _copy(name: str, origin: CheckpointStore, target: CheckpointStore, config: TrainConfig | None = None) -> list[str]:
    """Copy a checkpoint, with another config if one is given, or return why it is left out: it is damaged."""
    try:
        stored = origin.load(name)
    except CheckpointError as error:
        return [f"{name} is not copied: {error}"]
    target.save(name, stored.step, stored.checkpoint if config is None else _with_config(stored.checkpoint, config))
    return []


def _with_config(checkpoint: Checkpoint, config: TrainConfig) -> Checkpoint:
    return Checkpoint(checkpoint.tensors, {**checkpoint.documents, "config": config.to_json()})


def _new_run(config: TrainConfig, user: str) -> dict[str, JSON]:
    return {"world": config.world.name, "seed": config.seed, "user": user}


def _read_run(folder: Path) -> dict[str, JSON] | None:
    """Return the content of `run.json`; None if there is none, or if it is damaged, which is warned of."""
    path = folder / RUN_FILE
    if not os.path.lexists(path):
        return None
    try:
        return read_json_object(path, limit=MAX_DOCUMENT_BYTES)
    except FormatError as error:
        _warn(f"{error}; a new one is written in its place")
        return None


def _write(folder: Path, document: dict[str, JSON], config: TrainConfig) -> None:
    write_text_atomic(folder / RUN_FILE, _encode(document))
    file = folder / CONFIG_FILE
    if file.exists():  # what a session changes beside the budget is for that session alone
        kept = read_config(TrainConfig, [read_document(file)])
        if kept.extended_from == config.extended_from:
            return
        budget = {"total_env_steps": config.total_env_steps, "extended_from": config.extended_from}
        config = kept.model_copy(update=budget)
    content = dump_yaml(config.to_json())
    remember_own_config(content, [*config.outside_names()])
    write_text_atomic(file, content)


def _encode(document: dict[str, JSON]) -> str:
    return json.dumps(document, indent=2) + "\n"  # with the NaN or Infinity that a file edited by hand may hold


def _point_latest(runs: Path, folder: Path) -> None:
    link = runs / LATEST
    temporary = runs / f".{LATEST}-{os.getpid()}"
    try:
        temporary.symlink_to(folder.name)
        temporary.replace(link)
    except OSError as error:  # a file system without links, or something else of that name
        logger.warning("[WARN] %s cannot point to %s: %s", link, folder.name, error.strerror)
        temporary.unlink(missing_ok=True)


def _versions() -> dict[str, JSON]:
    found: dict[str, JSON] = {"python": platform.python_version(), "ludus": __version__}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _git_state() -> dict[str, JSON] | None:
    """Return commit and cleanliness of the checkout that Ludus runs from, else of the working folder; None without."""
    is_checkout = bool(_git(_SOURCE, "ls-files"))  # an environment inside another checkout has no tracked files
    folder = _SOURCE if is_checkout else Path.cwd()
    commit, status = _git(folder, "rev-parse", "HEAD"), _git(folder, "status", "--porcelain", "--untracked-files=no")
    return None if commit is None else {"commit": commit, "clean": status == ""}


def _git(folder: Path, *arguments: str) -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            [git, *arguments], cwd=folder, capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _warn(text: str) -> None:
    logger.warning("[WARN] %s", text)
