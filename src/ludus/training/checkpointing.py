"""A run's state as a checkpoint and back: saving that survives a full disk, and resuming from the newest valid one."""

import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import ConfigDict
from torch import Tensor

from ludus.algorithms.learner import LearnerCounters
from ludus.core.errors import CheckpointError, ConfigMismatchError, StateError, UnknownNameError
from ludus.core.files import JSON
from ludus.core.state import Count, StateModel
from ludus.league.opponents import START_NAME
from ludus.policies.agent import CHECKPOINTS_FOLDER, TENSORS, agent_checkpoint
from ludus.policies.policy import Policy, check_finite, part_of, with_prefix
from ludus.store import Checkpoint, CheckpointStore, StoredCheckpoint, report_few
from ludus.training.callbacks import Counters
from ludus.training.components import Components, RunState
from ludus.training.config import CheckpointConfig, TrainConfig, check_same, differences
from ludus.training.curriculum_callback import CurriculumCallbackState
from ludus.training.distributed import ProcessGroup

logger = logging.getLogger(__name__)

SNAPSHOTS_FOLDER = "snapshots"
FORMAT = 2
FINAL = "final"  # saved once the budget is used up and the last evaluation is made
_PART_PREFIX = "rank-"
_COMMON = ("policy", "optimiser")  # equal on all processes: every update joins their gradients and statistics


@dataclass(frozen=True, slots=True)
class Saved:
    """What a checkpoint holds beside the config."""

    state: RunState  # of everything that learns
    counters: Counters  # how far the run was
    rollbacks: int  # faults from which it has gone back so far
    offsets: Mapping[str, int]  # for each of the run's tables, its bytes that belong to the checkpoint
    parts: tuple[Mapping[str, Tensor], ...] = ()  # what the processes from rank 1 have of their own


class CountersState(StateModel):
    """`Counters` as JSON."""

    env_steps: Count
    iterations: Count
    updates: Count


class LearnerState(LearnerCounters):
    """What any learner saves as JSON; the learner that the config chooses reads the rest."""

    model_config = ConfigDict(extra="allow")


class TrainingState(StateModel):
    """The document `training.json` of a checkpoint; see `Saved`."""

    format: Literal[2]
    counters: CountersState
    learner: LearnerState
    course: CurriculumCallbackState
    rollbacks: Count
    offsets: dict[str, Count]


class Checkpoints:
    """The checkpoints of one run: self-contained folders from which it resumes, and from which an agent is loaded."""

    def __init__(self, folder: Path, config: TrainConfig) -> None:
        self._store = CheckpointStore(folder / CHECKPOINTS_FOLDER, keep=config.checkpoints.keep, report=_report)
        self._config = config.to_json()
        self._total_env_steps = config.total_env_steps
        self._keep = config.checkpoints.keep

    def encode(self, saved: Saved, policy: Policy, settings: Mapping[str, Any]) -> Checkpoint:
        """Return what `save` writes; `settings` are those of the world in which the agent is evaluated at present."""
        agent = agent_checkpoint(policy.spec, policy.config, saved.state.tensors["policy"], settings)
        training: JSON = {
            "format": FORMAT,
            "counters": asdict(saved.counters),
            "learner": dict(saved.state.learner),
            "course": dict(saved.state.course),
            "rollbacks": saved.rollbacks,
            "offsets": dict(saved.offsets),
        }
        return Checkpoint(
            {**saved.state.tensors, **agent.tensors, **{_part(rank): part for rank, part in enumerate(saved.parts, 1)}},
            {**agent.documents, "config": self._config, "training": training},
        )

    def save(self, name: str, env_steps: int, checkpoint: Checkpoint) -> Path:
        """Save under a name.

        Raises:
            StoreFullError: The disk is full; the checkpoints before it are intact.
            StoreError: Writing failed otherwise; likewise.
        """
        return self._store.save(name, env_steps, checkpoint)

    def prune(self, keep: int) -> list[str]:
        """Delete all but the newest `keep` periodic checkpoints and return their names."""
        return self._store.prune(keep)

    def snapshots(self) -> set[str]:
        """Return the names of the league's snapshots that any readable checkpoint refers to."""
        found: set[str] = set()
        for name in self._store.names():
            with suppress(CheckpointError, StateError, KeyError):
                document = self._store.load(name, parts=("training",)).checkpoint.documents["training"]
                league = TrainingState.read(document, "training").course.league
                found |= {snapshot.name for snapshot in league.snapshots} if league is not None else set()
        return found

    def has(self, name: str) -> bool:
        """Return whether there is a checkpoint of this name."""
        return name in self._store.names()

    def finished(self) -> Counters | None:
        """Return how far the run got if it has a valid final checkpoint of its present budget; None if it has not.

        Raises:
            ConfigMismatchError: The run began with other settings, which are listed.
        """
        if not self.has(FINAL):
            return None
        try:
            stored = self._store.load(FINAL)
            saved = self._decode(stored)
        except (CheckpointError, KeyError):
            return None
        check_same(stored.checkpoint.documents["config"], self._config)
        return saved.counters if saved.counters.env_steps >= self._total_env_steps else None

    def reached(self) -> int:
        """Return the env steps of the newest checkpoint; 0 if there is none."""
        return self._store.newest_step()

    def newest(self, processes: int = 1) -> Saved | None:
        """Read the newest valid checkpoint, or None if there is none, for a run that now has so many processes.

        Raises:
            ConfigMismatchError: The run began with other settings, which are listed, or with another number of
                processes, or a checkpoint of another run was copied into its folder.
            CheckpointError: The checkpoint is whole but not one of a run.
        """
        stored = self._store.latest_valid()
        if stored is None:
            return None
        documents = stored.checkpoint.documents
        for name in ("config", "training"):
            if name not in documents:
                raise CheckpointError(
                    self._store.root / stored.name, f"{name}.json", "is missing; not a run's checkpoint"
                )
        check_same(documents["config"], self._config)
        self._check_own()
        saved = self._decode(stored)
        if len(saved.parts) + 1 != processes:
            raise ConfigMismatchError(
                f"the run was saved by {len(saved.parts) + 1} processes and cannot resume with {processes}; "
                "start as many as before, or a new run in another folder"
            )
        self._store.prune(self._keep)  # a kill between a save and its clean-up leaves one too many
        return saved

    def _check_own(self) -> None:
        """Raise ConfigMismatchError if there is a checkpoint of another run, which might pass for the best agent."""
        for name in self._store.names():
            with suppress(CheckpointError):
                config = self._store.load(name, parts=("config",)).checkpoint.documents["config"]
                lines = differences(config, self._config)
                if lines:
                    raise ConfigMismatchError(
                        f"checkpoint {self._store.root / name} is of another run, whose settings differ: "
                        f"{'; '.join(lines)}; move it to its own folder"
                    )

    def _decode(self, stored: StoredCheckpoint) -> Saved:
        folder, document = self._store.root / stored.name, stored.checkpoint.documents["training"]
        try:
            training = TrainingState.read(document, "training")
        except StateError as error:
            raise CheckpointError(folder, "training.json", str(error)) from error
        groups = dict(stored.checkpoint.tensors)
        processes = sorted(name for name in groups if name.startswith(_PART_PREFIX))
        expected = [_part(rank) for rank in range(1, len(processes) + 1)]
        if processes != sorted(expected):
            raise CheckpointError(folder, f"{processes[0]}.safetensors", f"is one of {processes}; expected {expected}")
        parts = tuple(groups.pop(name) for name in expected)
        learner, course = (training.model_dump(by_alias=True)[name] for name in ("learner", "course"))
        state = RunState(groups, learner, course)
        return Saved(state, Counters(**dict(training.counters)), training.rollbacks, training.offsets, parts)


class SnapshotStore:
    """Keeps every snapshot that the league, or a checkpoint from which the run may resume, refers to."""

    def __init__(self, folder: Path, components: Components) -> None:
        """Open the store of a run folder without touching the disk."""
        self._store = CheckpointStore(folder / SNAPSHOTS_FOLDER, keep=1 << 30, report=_report)
        self._components = components
        self._waiting: dict[str, tuple[int, Checkpoint]] = {}

    def take(self, name: str, env_steps: int, state: Mapping[str, Tensor]) -> None:
        """Take a snapshot of the games that are played at present, which `save` writes."""
        policy = self._components.policy
        agent = agent_checkpoint(policy.spec, policy.config, state, self._components.settings)
        self._waiting[name] = (env_steps, agent)

    def waiting(self) -> dict[str, tuple[int, Checkpoint]]:
        """Return what was taken and is yet to be saved, with tensors in host memory."""
        self._waiting = {name: (env_steps, on_host(agent)) for name, (env_steps, agent) in self._waiting.items()}
        return dict(self._waiting)

    def save(self, waiting: Mapping[str, tuple[int, Checkpoint]]) -> None:
        """Save what `waiting` returned, also while more is taken; what a full disk refuses stays until the next time.

        Raises:
            StoreFullError: The disk is full.
            StoreError: Writing failed otherwise.
        """
        for name, taken in waiting.items():
            self._store.save(name, *taken)
            if self._waiting.get(name) is taken:
                del self._waiting[name]

    def has_first(self) -> bool:
        """Return whether the league has the snapshot that it takes by itself when there is no other opponent."""
        opponents = self._components.opponents
        pool = opponents.pool if opponents is not None else None
        return pool is not None and any(snapshot.name == START_NAME for snapshot in pool.snapshots)

    def take_first(self) -> None:
        """Take that snapshot if it has just been created."""
        if self.has_first():
            self.take(START_NAME, 0, self._components.policy.state())

    def give_back(self, document: Mapping[str, Any] | None) -> None:
        """Give the league the snapshots that a checkpoint refers to; report and skip damaged ones.

        Raises:
            StateError: The document is not one of a league.
            ConfigError: It names a snapshot twice, or a slot that does not exist.
        """
        opponents = self._components.opponents
        if opponents is None:
            return
        faults: list[str] = []
        for snapshot in opponents.load_document(document):
            try:
                parameters = self._store.load(snapshot.name, parts=(TENSORS,)).checkpoint.tensors[TENSORS]
                check_finite(parameters)
                opponents.add_snapshot(snapshot.name, snapshot.env_steps, parameters, slot=snapshot.slot)
            except (CheckpointError, StateError, UnknownNameError, KeyError) as error:
                faults.append(f"snapshot {snapshot.name} is skipped: {error}")
        report_few(faults, _report)

    def prune(self, referred: Iterable[str]) -> None:
        """Delete the snapshots that no opponent refers to."""
        keep = set(referred)
        if set(self._store.names()) - keep:
            self._store.prune(1, protected=keep)


def stored_config(folder: Path) -> TrainConfig | None:
    """Read the settings stored in a run folder's newest valid checkpoint; None if there is no checkpoint.

    Raises:
        ConfigError: They are not settings of this version.
    """
    stored = CheckpointStore(folder / CHECKPOINTS_FOLDER, keep=1, report=_report).latest_valid()
    return None if stored is None else TrainConfig.from_json(stored.checkpoint.documents.get("config"))


def on_host(checkpoint: Checkpoint, *, copy: bool = False) -> Checkpoint:
    """Return the same checkpoint in host memory, with tensors and documents of its own if it is a `copy`.

    Tensors of a GPU are copied side by side, and waited for once. This is done before another thread writes them: while
    a CUDA graph is recorded, no other thread may call CUDA.
    """
    devices = {tensor.device for group in checkpoint.tensors.values() for tensor in group.values()}
    tensors = {
        part: {name: tensor.to("cpu", non_blocking=True, copy=copy) for name, tensor in group.items()}
        for part, group in checkpoint.tensors.items()
    }
    for device in devices:
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()
    return Checkpoint(tensors, deepcopy(checkpoint.documents) if copy else checkpoint.documents)


def is_due(config: CheckpointConfig, before: Counters, after: Counters) -> bool:
    """Return whether a checkpoint is due after an iteration that moved the counters from `before` to `after`."""
    steps, iterations = config.every_env_steps, config.every_iterations
    passed = steps is not None and before.env_steps // steps < after.env_steps // steps
    return passed or (iterations is not None and before.iterations // iterations < after.iterations // iterations)


def _part(rank: int) -> str:
    return f"{_PART_PREFIX}{rank}"


def _report(text: str) -> None:
    logger.warning("[WARN] %s", text)


def collect_parts(processes: ProcessGroup, state: RunState) -> tuple[Mapping[str, Tensor], ...]:
    """Gather at the writer what the processes from rank 1 have of their own; the others get nothing."""
    if processes.is_writer:
        return tuple(processes.receive_tensors(rank) for rank in range(1, processes.process.count))
    own = {name: tensors for name, tensors in state.tensors.items() if name not in _COMMON}
    processes.send_tensors(_flat(own), 0)
    return ()


def hand_out(processes: ProcessGroup, saved: Saved | None) -> Saved | None:
    """Return to every process its own part of a checkpoint that the writer has read; None to all if there is none."""
    if processes.process.count == 1:
        return saved
    head = None
    if saved is not None:
        head = [asdict(saved.counters), saved.rollbacks, dict(saved.state.learner), dict(saved.state.course)]
    told = json.loads(processes.gather_texts(json.dumps(head))[0])
    if told is None:
        return None
    if saved is not None:
        common = _flat({name: saved.state.tensors.get(name, {}) for name in _COMMON})
        for rank, part in enumerate(saved.parts, 1):
            processes.send_tensors({**common, **part}, rank)
        return saved
    counters, rollbacks, learner, course = told
    flat = processes.receive_tensors(0)
    groups = {name: part_of(flat, name) for name in sorted({name.partition(".")[0] for name in flat})}
    return Saved(RunState(groups, learner, course), Counters(**counters), rollbacks, offsets={})


def _flat(groups: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    flat: dict[str, Tensor] = {}
    for name, tensors in groups.items():
        flat |= with_prefix(name, tensors)
    return flat
