"""The run folder: where it is, what it says of the run, and how one branches off another."""

import json
import logging
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ludus.config import dump_yaml, parse_document, read_config, read_document, read_overrides
from ludus.core.errors import CheckpointError, ConfigError
from ludus.core.files import JSON, write_atomic
from ludus.policies.agent import CHECKPOINTS_FOLDER
from ludus.store import Checkpoint, CheckpointStore
from ludus.training.callbacks import Counters
from ludus.training.checkpointing import stored_config
from ludus.training.config import TrainConfig, differences
from ludus.training.lock import RunLock
from ludus.training.records import FILES
from ludus.training.snapshots import SNAPSHOTS_FOLDER

logger = logging.getLogger(__name__)

CONFIG_FILE = "config.yaml"
RUN_FILE = "run.json"
LATEST = "latest"
BEST = "best"

_LIBRARIES = ("ludus", "torch", "numpy", "warp-lang", "gymnasium", "safetensors")
_TRIES = 100


@dataclass(frozen=True, slots=True)
class Parent:
    """The run that another one branched off.

    Attributes:
        folder: Where it is.
        checkpoint: From which of its checkpoints.
        env_steps: How far it was.
        changes: In which settings the new one differs.
    """

    folder: str
    checkpoint: str
    env_steps: int
    changes: tuple[str, ...]


def new_run_folder(runs: Path, title: str) -> Path:
    """Makes a new folder under `runs`, named by title and time, and lets `latest` beside it point to it."""
    runs.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(_TRIES):
        folder = runs / (f"{title}-{stamp}" + (f"-{number + 1}" if number else ""))
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        _point_latest(runs, folder)
        return folder
    raise ConfigError(f"{runs} has {_TRIES} runs of this second already; name one with --run-dir")


def describe_run(folder: Path, config: TrainConfig, *, user: str = "") -> None:
    """Writes `config.yaml` and `run.json`; a run that goes on keeps its own and notes that it did.

    Args:
        folder: The run folder.
        config: Of the run, resolved.
        user: Who started it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    session: dict[str, JSON] = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": list(sys.argv),
        "versions": _versions(),
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
        "git": _git_state(),
    }
    document = _read_run(folder) or _new_run(config, user)
    sessions = document.get("sessions")
    document["sessions"] = [*(sessions if isinstance(sessions, list) else []), session]
    _write(folder, document, config)


def describe_end(
    folder: Path, counters: Counters, training_s: float, milestones: Mapping[str, int | None] | None = None
) -> None:
    """Notes in `run.json` how far the present session of a run got, and in what time.

    Args:
        folder: The run folder.
        counters: How far it got.
        training_s: In what time.
        milestones: Env steps at which something was reached first, by name; None where it was not yet.
    """
    path = folder / RUN_FILE
    document = json.loads(path.read_text(encoding="utf-8"))
    document["sessions"][-1] |= {
        "ended": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "env_steps": counters.env_steps,
        "training_s": round(training_s, 3),
    }
    document |= milestones or {}
    write_atomic(path, (json.dumps(document, indent=2) + "\n").encode())


def fork_run(source: Path, target: Path, config: TrainConfig, *, user: str = "") -> Parent:
    """Begins a new run with the newest valid state of another one and settings that may differ.

    The checkpoint `init` comes last: before it is there, the target holds no run, and this can be done again.

    Args:
        source: The run folder to branch off; it stays as it is.
        target: The new run folder; it must not hold a run.
        config: Of the new run.
        user: Who branches off.

    Raises:
        ConfigError: There is nothing to branch off, or the target holds a run already.
        RunLockedError: Another process is training in the target.
    """
    with RunLock(target):
        return _fork(source, target, config, user)


def _fork(source: Path, target: Path, config: TrainConfig, user: str) -> Parent:
    store = CheckpointStore(target / CHECKPOINTS_FOLDER, keep=1, report=_warn)
    if {*store.names()} - {BEST}:
        raise ConfigError(f"{target} holds a run already; choose another folder")
    origin = CheckpointStore(source / CHECKPOINTS_FOLDER, keep=1, report=_warn)
    stored = origin.latest_valid()
    if stored is None:
        raise ConfigError(f"{source} has no valid checkpoint to branch off; pass the folder of a run")
    changes = tuple(differences(stored.checkpoint.documents.get("config"), config.to_json()))
    for name in FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
    if (source / SNAPSHOTS_FOLDER).is_dir():
        shutil.copytree(source / SNAPSHOTS_FOLDER, target / SNAPSHOTS_FOLDER, dirs_exist_ok=True)
    parent = Parent(str(source.resolve()), stored.name, stored.step, changes)
    _write(target, _new_run(config, user) | {"parent": asdict(parent)}, config)
    _copy_best(origin, store, config)
    store.save("init", stored.step, _with_config(stored.checkpoint, config))
    return parent


def read_run_config(folder: Path) -> TrainConfig:
    """Reads the settings of a run: its `config.yaml`, or what its newest valid checkpoint began with.

    A file that was edited since is refused by the loop, with the differences.

    Raises:
        ConfigError: The folder holds no run, or its settings are not of this version.
    """
    if (folder / CONFIG_FILE).is_file():
        return read_config(TrainConfig, [read_document(folder / CONFIG_FILE)])
    config = stored_config(folder) if folder.is_dir() else None
    if config is None:
        raise ConfigError(f"{folder} holds no run with a valid checkpoint; pass the folder that `ludus train` named")
    return config


def changed_config(config: TrainConfig, overrides: Sequence[str]) -> TrainConfig:
    """Returns settings with some of them changed by `key.path=value` each.

    Raises:
        ConfigFileError: An override has a fault; all of them are listed.
    """
    if not overrides:
        return config
    return read_config(
        TrainConfig, [parse_document(dump_yaml(config.to_json()), CONFIG_FILE), *read_overrides(overrides)]
    )


def _copy_best(origin: CheckpointStore, target: CheckpointStore, config: TrainConfig) -> None:
    """Copies the best agent so far, whose score the new run has to beat; one that is damaged is reported."""
    if BEST not in origin.names():
        return
    try:
        best = origin.load(BEST)
    except CheckpointError as error:
        _warn(f"the best agent is not taken along: {error}")
    else:
        target.save(BEST, best.step, _with_config(best.checkpoint, config))


def _with_config(checkpoint: Checkpoint, config: TrainConfig) -> Checkpoint:
    return Checkpoint(checkpoint.tensors, {**checkpoint.documents, "config": config.to_json()})


def _new_run(config: TrainConfig, user: str) -> dict[str, JSON]:
    return {"world": config.world.name, "seed": config.seed, "user": user}


def _read_run(folder: Path) -> dict[str, JSON] | None:
    """Returns what `run.json` says; None if there is none, or if it is damaged, which is reported."""
    path = folder / RUN_FILE
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        _warn(f"{path} cannot be read and is written anew: {error}")
        return None
    return document if isinstance(document, dict) else None


def _write(folder: Path, document: dict[str, JSON], config: TrainConfig) -> None:
    write_atomic(folder / RUN_FILE, (json.dumps(document, indent=2) + "\n").encode())
    if not (folder / CONFIG_FILE).exists():
        write_atomic(folder / CONFIG_FILE, dump_yaml(config.to_json()).encode())


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
    found: dict[str, JSON] = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _git_state() -> dict[str, JSON] | None:
    """Returns commit and cleanliness of the working folder; None without git or outside a checkout."""
    commit, status = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
    return None if commit is None else {"commit": commit, "clean": status == ""}


def _git(*arguments: str) -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    try:
        done = subprocess.run([git, *arguments], capture_output=True, text=True, timeout=5, check=True)  # noqa: S603 - fixed arguments
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _warn(text: str) -> None:
    logger.warning("[WARN] %s", text)
