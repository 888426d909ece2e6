"""Snapshots of the learner as opponents: a pool of them on the device, and one stacked call that plays all of them."""

from collections.abc import Collection, Mapping
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.core.random import stream_hash
from ludus.core.state import Count, StateModel, check_tensors, load_generator
from ludus.envs.base import BatchedEnv, Observations
from ludus.policies.looped import stack_policies
from ludus.policies.policy import Policy, memory_ranges, part_of, reset_recurrent_state, with_prefix
from ludus.rollout.inference import make_inference

_STREAM_NOISE = 0x2015E


class Snapshot(StateModel):
    """A past self.

    Attributes:
        name: Its id, under which the learner played before.
        env_steps: Steps that it had learned from.
        slot: Its place in the stacked policy.
    """

    name: Annotated[str, Field(min_length=1)]
    env_steps: Count
    slot: Count


class LeagueState(StateModel):
    """What `LeagueOpponents.document` returns as JSON."""

    snapshots: list[Snapshot]


class SnapshotPool:
    """Up to `keep` snapshots, the oldest of which make room for new ones.

    Attributes:
        stacked: All of them as one policy; a loop over them for a user's own network.
        spec: What their policies are made for.
    """

    def __init__(self, policy: Policy, keep: int) -> None:
        """Make room for `keep` snapshots of a policy."""
        self.stacked = stack_policies(policy, keep, values=False)
        self.spec = policy.spec
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
        """Return the name of the snapshot in every slot; empty where there is none."""
        names = [""] * self.stacked.slots
        for snapshot in self._snapshots:
            names[snapshot.slot] = snapshot.name
        return tuple(names)

    def find(self, name: str) -> Snapshot:
        """Return the snapshot of a name, or raises UnknownNameError."""
        for snapshot in self._snapshots:
            if snapshot.name == name:
                return snapshot
        raise UnknownNameError("snapshot", name, [snapshot.name for snapshot in self._snapshots] or ["none yet"])

    def add(
        self, name: str, env_steps: int, state: Mapping[str, Tensor], in_use: Collection[int], slot: int | None = None
    ) -> str | None:
        """Take a snapshot.

        Args:
            name: Its name.
            env_steps: Steps that it had learned from.
            state: What `Policy.state` gave.
            in_use: Slots that running games play with; they do not leave.
            slot: Where it goes, in the place of any snapshot there; None takes a free slot or that of the oldest
                snapshot that may leave.

        Returns:
            The name of the snapshot that left; the new one's own if none could leave, and it was not taken.

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
        self._snapshots.append(Snapshot(name=name, env_steps=env_steps, slot=slot))
        self._snapshots.sort(key=lambda snapshot: snapshot.env_steps)
        return evicted.name if evicted is not None and evicted.name != name else None

    def remove(self, name: str) -> Snapshot:
        """Take a snapshot out, and return it."""
        snapshot = self.find(name)
        self._snapshots.remove(snapshot)
        return snapshot


class SnapshotOpponents:
    """Plays snapshots in the seats that are not the learner's; every such seat of every game is a row.

    A row belongs to a game and remembers what its snapshot saw since it forgot, in the running episode or set of
    episodes; it may move to another seat, and another snapshot take it, when it forgets.

    Attributes:
        pool: The snapshots.
        slots: `(games,)` int64, slot of each game's snapshot, or -1 where none plays; changed in place.
    """

    def __init__(
        self, env: BatchedEnv, pool: SnapshotPool, seats: Tensor, games: Tensor, *, seed: int, cuda_graphs: bool
    ) -> None:
        """Start with no snapshot seated.

        Args:
            env: The games.
            pool: The snapshots; no other games play with them from now on.
            seats: `(rows,)` int64, `game * seats + seat` of each row; read at every step.
            games: `(rows,)` int64, game of each row.
            seed: Of the noise.
            cuda_graphs: Whether the step becomes a CUDA graph on a CUDA device.
        """
        self.pool = pool
        self._seats, self._games, self._rows = seats, games, seats.numel()
        self.slots = torch.full((env.num_envs,), -1, device=env.device)
        self._row_slots = torch.full((self._rows,), -1, device=env.device)
        self._episode_starts = torch.ones(self._rows, dtype=torch.bool, device=env.device)
        self._any = False
        stacked = self.pool.stacked
        if self._rows:
            stacked.choose(self._row_slots)
        self._memory = stacked.initial(self._rows)
        self._inference = make_inference(stacked, self._rows, cuda_graphs=cuda_graphs)
        high, low = (stream_hash(seed, env.first_game, half, _STREAM_NOISE) for half in (0, 1))
        self._generator = torch.Generator(env.device).manual_seed(high << 31 | low >> 1)
        self._noise = stacked.draw_noise(1, self._rows, self._generator)[0]

    def seat(self, games: Tensor, slots: Tensor, episode_starts: Tensor) -> None:
        """Take the snapshots that play.

        Args:
            games: `(any,)` int64, the games that are meant.
            slots: `(any,)` int64, slot of their snapshots, -1 for none.
            episode_starts: `(any,)` bool, whether an episode begins, so that the memory is forgotten.
        """
        if not self._rows:
            return
        on_host = self.slots.device.type == "cpu"
        begun = torch.zeros_like(self.slots, dtype=torch.bool).index_copy_(0, games, episode_starts)
        self._episode_starts |= begun.index_select(0, self._games)
        if on_host and torch.equal(self.slots.index_select(0, games), slots):
            return
        self.slots.index_copy_(0, games, slots)
        torch.index_select(self.slots, 0, self._games, out=self._row_slots)
        self._any = not on_host or bool((self.slots >= 0).any())
        self.pool.stacked.choose(self._row_slots)

    @property
    def can_be_recorded(self) -> bool:
        """Whether a CUDA graph can hold `act`; noise that is held is not kept in one place."""
        stacked = self.pool.stacked
        return stacked.allows_cuda_graphs and not stacked.holds_noise

    def recording_key(self) -> tuple[bool, bool]:
        """Return what a recording depends on beside the values of tensors: whether anyone can play."""
        return self._any, self.pool.is_empty

    @property
    def generator(self) -> torch.Generator:
        """Where its noise is drawn from."""
        return self._generator

    def act(self, observations: Observations, actions: Tensor) -> None:
        """Write the actions of all rows whose game a snapshot plays; others' stay as they are."""
        if not self._any or self.pool.is_empty:
            return
        stacked, index = self.pool.stacked, self._seats
        frames = {name: tensor.flatten(0, 1).index_select(0, index) for name, tensor in observations.items()}
        self._draw_noise()
        step = self._inference.step(frames, self._memory, self._episode_starts, self._noise)
        self._memory = step.memory
        flat = actions.flatten(0, 1)
        chosen = stacked.clip_actions(step.actions).to(actions.dtype)
        played = (self._row_slots >= 0).view(-1, *(1,) * (chosen.dim() - 1))
        flat.index_copy_(0, index, torch.where(played, chosen, flat.index_select(0, index)))
        self._episode_starts.zero_()

    def _draw_noise(self) -> None:
        """Draw the step's noise; one that is held lasts for an episode."""
        stacked = self.pool.stacked
        if not stacked.holds_noise:
            self._noise = stacked.draw_noise(1, self._rows, self._generator)[0]
        elif self._noise.device.type != "cpu" or bool(self._episode_starts.any()):
            fresh = stacked.draw_noise(1, self._rows, self._generator)[0]
            episode_starts = self._episode_starts.view(-1, *(1,) * (fresh.dim() - 1))
            self._noise = torch.where(episode_starts, fresh, self._noise)

    def forget(self, games: Tensor) -> None:
        """Clear the memories of `games` `(games,)` bool and let them begin.

        NaN and Inf are removed from all memories: those that a broken snapshot left in a ring would pass the mask that
        hides earlier episodes, since 0 times NaN is NaN.
        """
        rows = games.index_select(0, self._games)
        memory = reset_recurrent_state(self._memory, self.pool.stacked.initial(self._rows), rows)
        for name, tensor in memory.items():  # in place: a recording reads these tensors
            self._memory[name].copy_(tensor.nan_to_num())
        self._episode_starts |= rows

    def state(self) -> dict[str, Tensor]:
        """Return copies of what the future depends on beside the snapshots and who plays them."""
        tensors = {"starts": self._episode_starts, "random": self._generator.get_state()}
        if self.pool.stacked.holds_noise:
            tensors["noise"] = self._noise
        return {name: tensor.clone() for name, tensor in (tensors | with_prefix("memory", self._memory)).items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: Its names, shapes or types differ, or it is out of range.
        """
        own = self.state()
        check_tensors(state, own, "the snapshots", ranges=memory_ranges(own))
        self._episode_starts.copy_(state["starts"])
        load_generator(self._generator, state, "the snapshots")
        if self.pool.stacked.holds_noise:
            self._noise = state["noise"].to(self._noise.device, copy=True)
        for name, tensor in part_of(state, "memory").items():
            self._memory[name].copy_(tensor)
