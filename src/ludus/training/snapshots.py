"""The league's snapshots on the disk: agents of their own, which checkpoints refer to by name."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ludus.core.errors import CheckpointError, UnknownNameError
from ludus.league.opponents import START_NAME, LeagueOpponents
from ludus.policies.agent import TENSORS, agent_checkpoint
from ludus.store import Checkpoint, CheckpointStore
from ludus.training.workbench import Workbench

SNAPSHOTS_FOLDER = "snapshots"

logger = logging.getLogger(__name__)


class SnapshotStore:
    """Keeps every snapshot that the league, or a checkpoint from which the run may go on, refers to."""

    def __init__(self, folder: Path, bench: Workbench) -> None:
        """Opens the store of a run folder without touching the disk."""
        self._store = CheckpointStore(folder / SNAPSHOTS_FOLDER, keep=1 << 30, report=_warn)
        self._bench = bench
        self._waiting: dict[str, tuple[int, Checkpoint]] = {}

    def take(self, name: str, env_steps: int, state: Mapping[str, Tensor]) -> None:
        """Takes a snapshot of the games that are played at present, which `flush` saves."""
        policy = self._bench.policy
        self._waiting[name] = (env_steps, agent_checkpoint(policy.spec, policy.config, state, self._bench.settings))

    def flush(self) -> None:
        """Saves what was taken; what a full disk refuses stays until the next time.

        Raises:
            StoreFullError: The disk is full.
            StoreError: Writing failed otherwise.
        """
        for name, (env_steps, agent) in list(self._waiting.items()):
            self._store.save(name, env_steps, agent)
            del self._waiting[name]

    def has_first(self, opponents: LeagueOpponents | None) -> bool:
        """Says whether the league has the snapshot that it takes by itself where nobody else could play."""
        pool = opponents.pool if opponents is not None else None
        return pool is not None and any(snapshot.name == START_NAME for snapshot in pool.snapshots)

    def take_first(self, opponents: LeagueOpponents | None) -> None:
        """Takes that one, if it has just come to be."""
        if self.has_first(opponents):
            self.take(START_NAME, 0, self._bench.policy.state())

    def give_back(self, opponents: LeagueOpponents | None, document: Mapping[str, Any] | None) -> None:
        """Gives the league the snapshots that a checkpoint refers to; a damaged one is reported and skipped."""
        if opponents is None or document is None:
            return
        for snapshot in opponents.load_document(document):
            parameters = self._load(snapshot.name)
            if parameters is not None:
                opponents.add_snapshot(snapshot.name, snapshot.env_steps, parameters, slot=snapshot.slot)

    def _load(self, name: str) -> Mapping[str, Tensor] | None:
        try:
            return self._store.load(name, parts=(TENSORS,)).checkpoint.tensors[TENSORS]
        except (CheckpointError, UnknownNameError, KeyError) as error:
            _warn(f"snapshot {name} is skipped: {error}")
            return None

    def prune(self, referred: Iterable[str]) -> None:
        """Deletes the snapshots that nobody refers to."""
        keep = set(referred)
        if set(self._store.names()) - keep:
            self._store.prune(1, protected=keep)


def _warn(text: str) -> None:
    logger.warning("[WARN] %s", text)
