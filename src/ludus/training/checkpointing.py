"""A run's state as a checkpoint and back: saving that survives a full disk, and going on from the newest valid one."""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ludus.core.errors import CheckpointError, ConfigMismatchError
from ludus.core.files import JSON
from ludus.policies.agent import CHECKPOINTS_FOLDER, agent_checkpoint
from ludus.policies.policy import Policy
from ludus.store import Checkpoint, CheckpointStore, StoredCheckpoint
from ludus.training.callbacks import Counters
from ludus.training.config import CheckpointConfig, TrainConfig, check_same
from ludus.training.workbench import RunState

logger = logging.getLogger(__name__)

FORMAT = 2
_PART_PREFIX = "rank-"


@dataclass(frozen=True, slots=True)
class Saved:
    """What a checkpoint holds beside the config.

    Attributes:
        state: Of everything that learns.
        counters: How far the run was.
        rollbacks: Faults from which it has gone back so far.
        offsets: For each of the run's tables, its bytes that belong to it.
        parts: What the processes beside the first one have of their own, by rank from 1.
    """

    state: RunState
    counters: Counters
    rollbacks: int
    offsets: Mapping[str, int]
    parts: tuple[Mapping[str, Tensor], ...] = ()


class Checkpoints:
    """The checkpoints of one run: self-contained folders from which it goes on, and from which an agent is loaded."""

    def __init__(self, folder: Path, config: TrainConfig) -> None:
        self._store = CheckpointStore(folder / CHECKPOINTS_FOLDER, keep=config.checkpoints.keep, report=_report)
        self._config = config.to_json()
        self._keep = config.checkpoints.keep

    def save(self, name: str, saved: Saved, policy: Policy, settings: Mapping[str, Any]) -> Path:
        """Saves under a name.

        Args:
            name: The name.
            saved: What it holds.
            policy: What is learned.
            settings: Of the world, in which the agent is evaluated at present.

        Raises:
            StoreFullError: The disk is full; the checkpoints before it are intact.
            StoreError: Writing failed otherwise; likewise.
        """
        agent = agent_checkpoint(policy.spec, policy.config, saved.state.tensors["policy"], settings)
        training: JSON = {
            "format": FORMAT,
            "counters": asdict(saved.counters),
            "learner": dict(saved.state.learner),
            "course": dict(saved.state.course),
            "rollbacks": saved.rollbacks,
            "offsets": dict(saved.offsets),
        }
        checkpoint = Checkpoint(
            {**saved.state.tensors, **agent.tensors, **{_part(rank): part for rank, part in enumerate(saved.parts, 1)}},
            {**agent.documents, "config": self._config, "training": training},
        )
        return self._store.save(name, saved.counters.env_steps, checkpoint)

    def prune(self, keep: int) -> list[str]:
        """Deletes all but the newest `keep` periodic checkpoints and returns their names."""
        return self._store.prune(keep)

    def courses(self) -> list[Mapping[str, Any]]:
        """Returns the course of every readable checkpoint, from each of which the run may have to go on."""
        found: list[Mapping[str, Any]] = []
        for name in self._store.names():
            try:
                document = self._store.load(name, parts=("training",)).checkpoint.documents["training"]
            except (CheckpointError, KeyError):
                continue
            course = document.get("course") if isinstance(document, dict) else None
            if isinstance(course, dict):
                found.append(course)
        return found

    def has(self, name: str) -> bool:
        """Says whether there is a checkpoint of this name."""
        return name in self._store.names()

    def newest(self, processes: int = 1) -> Saved | None:
        """Reads the newest valid checkpoint, or None if there is none.

        Args:
            processes: That the run now has.

        Raises:
            ConfigMismatchError: The run began with other settings, which are listed, or other many processes.
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
        saved = self._decode(stored)
        if len(saved.parts) + 1 != processes:
            raise ConfigMismatchError(
                f"the run was saved by {len(saved.parts) + 1} processes and cannot go on with {processes}; "
                "start as many as before, or a new run in another folder"
            )
        self._store.prune(self._keep)  # a kill between a save and its clean-up leaves one too many
        return saved

    def _decode(self, stored: StoredCheckpoint) -> Saved:
        document = stored.checkpoint.documents["training"]
        try:
            fields = _whole_numbers(document)
            groups = dict(stored.checkpoint.tensors)
            count = sum(name.startswith(_PART_PREFIX) for name in groups)
            parts = tuple(groups.pop(_part(rank)) for rank in range(1, count + 1))
            state = RunState(groups, fields["learner"], fields["course"])
            return Saved(state, Counters(**fields["counters"]), fields["rollbacks"], fields["offsets"], parts)
        except (KeyError, TypeError, ValueError) as error:
            folder = self._store.root / stored.name
            raise CheckpointError(folder, "training.json", f"is not of format {FORMAT}: {error!r}") from error


def stored_config(folder: Path) -> TrainConfig | None:
    """Reads the settings that a run folder's newest valid checkpoint began with; None if there is no checkpoint.

    Raises:
        ConfigError: They are not settings of this version.
    """
    stored = CheckpointStore(folder / CHECKPOINTS_FOLDER, keep=1, report=_report).latest_valid()
    return None if stored is None else TrainConfig.from_json(stored.checkpoint.documents.get("config"))


def is_due(config: CheckpointConfig, before: Counters, after: Counters) -> bool:
    """Says whether a checkpoint is due after an iteration that moved the counters from `before` to `after`."""
    steps, iterations = config.every_env_steps, config.every_iterations
    passed = steps is not None and before.env_steps // steps < after.env_steps // steps
    return passed or (iterations is not None and before.iterations // iterations < after.iterations // iterations)


def _part(rank: int) -> str:
    return f"{_PART_PREFIX}{rank}"


def _report(text: str) -> None:
    logger.warning("[WARN] %s", text)


def _whole_numbers(document: JSON) -> Mapping[str, Any]:
    if not isinstance(document, dict) or document["format"] != FORMAT:
        raise ValueError("another format")
    counters = document["counters"]
    if not isinstance(counters, dict) or not all(type(count) is int for count in counters.values()):
        raise ValueError("counters must be whole numbers")
    return document
