"""The pool of snapshots: past selves on the device, each in a slot of one stacked policy."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.policies.policy import Policy
from ludus.policies.stacked import StackedPolicy


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A past self.

    Attributes:
        name: Its name, which is also that of the learner's era that it ends.
        env_steps: Steps that it had learned from.
        slot: Its place in the stacked policy.
    """

    name: str
    env_steps: int
    slot: int


class SnapshotPool:
    """Up to `keep` snapshots, the oldest of which make room for new ones.

    Attributes:
        stacked: All of them as one policy.
    """

    def __init__(self, policy: Policy, keep: int) -> None:
        """Makes room for `keep` snapshots of a policy."""
        self.stacked = StackedPolicy(policy, keep, values=False)
        self._snapshots: list[Snapshot] = []

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All of them, oldest first."""
        return tuple(self._snapshots)

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not self._snapshots

    def names(self) -> tuple[str, ...]:
        """Returns the name of the snapshot in every slot; empty where there is none."""
        names = [""] * self.stacked.slots
        for snapshot in self._snapshots:
            names[snapshot.slot] = snapshot.name
        return tuple(names)

    def find(self, name: str) -> Snapshot:
        """Returns the snapshot of a name, or raises UnknownNameError."""
        for snapshot in self._snapshots:
            if snapshot.name == name:
                return snapshot
        raise UnknownNameError("snapshot", name, [snapshot.name for snapshot in self._snapshots] or ["none yet"])

    def add(
        self, name: str, env_steps: int, state: Mapping[str, Tensor], in_use: Collection[int], slot: int | None = None
    ) -> str | None:
        """Takes a snapshot.

        Args:
            name: Its name.
            env_steps: Steps that it had learned from.
            state: What `Policy.state` gave.
            in_use: Slots that running games play with; they do not leave.
            slot: Where it goes, in the place of any snapshot there; None takes a free slot or that of the oldest
                snapshot that may leave.

        Returns:
            The name of the snapshot that left; the new one's own if nobody could leave, and it was not taken.

        Raises:
            ConfigError: There is one of this name, or no such slot.
            StateError: The state is one of another architecture.
        """
        if not name or any(snapshot.name == name and snapshot.slot != slot for snapshot in self._snapshots):
            raise ConfigError(f"a snapshot is to be called {name!r}, as another is, or nothing; give it its own name")
        taken = {snapshot.slot: snapshot for snapshot in self._snapshots}
        if slot is None:
            free = [number for number in range(self.stacked.slots) if number not in taken]
            leaving = [snapshot.slot for snapshot in self._snapshots[:-1] if snapshot.slot not in in_use]
            if not free and not leaving:
                return name
            slot = (free or leaving)[0]
        self.stacked.load(slot, state)
        evicted = taken.get(slot)
        if evicted is not None:
            self._snapshots.remove(evicted)
        self._snapshots.append(Snapshot(name, env_steps, slot))
        self._snapshots.sort(key=lambda snapshot: snapshot.env_steps)
        return evicted.name if evicted is not None and evicted.name != name else None

    def remove(self, name: str) -> Snapshot:
        """Takes a snapshot out, and returns it."""
        snapshot = self.find(name)
        self._snapshots.remove(snapshot)
        return snapshot
