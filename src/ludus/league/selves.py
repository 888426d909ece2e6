"""Past selves at play: their seats, memories and noise, and one stacked call for all of them."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.algorithms.ppo.stepping import make_stepper
from ludus.core.errors import StateError
from ludus.core.random import stream_hash
from ludus.envs.base import BatchedEnv, Observations
from ludus.league.pool import SnapshotPool
from ludus.policies.memory import Memory, part_of, reset_memory, with_prefix

_STREAM_NOISE = 0x2015E


class PastSelves:
    """Plays snapshots in the seats that are not the learner's; every such seat of every game is a row.

    A row belongs to a game and remembers what its snapshot saw in the running episode; it may move to another seat, and
    another snapshot take it, when an episode starts.

    Attributes:
        pool: The snapshots.
        slots: `(games,)` int64, slot of each game's snapshot, or -1 where none plays; changed in place.
    """

    def __init__(
        self, env: BatchedEnv, pool: SnapshotPool, seats: Tensor, games: Tensor, *, seed: int, cuda_graphs: bool
    ) -> None:
        """Seats nobody yet.

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
        self.slots = torch.full((env.num_games,), -1, device=env.device)
        self._row_slots = torch.full((self._rows,), -1, device=env.device)
        self._starts = torch.ones(self._rows, dtype=torch.bool, device=env.device)
        self._any = False
        stacked = self.pool.stacked
        if self._rows:
            stacked.choose(self._row_slots)
        self._memory = stacked.initial(self._rows)
        self._stepper = make_stepper(stacked, self._rows, cuda_graphs=cuda_graphs)
        high, low = (stream_hash(seed, env.first_game, half, _STREAM_NOISE) for half in (0, 1))
        self._generator = torch.Generator(env.device).manual_seed(high << 31 | low >> 1)
        self._noise = stacked.draw_noise(1, self._rows, self._generator)[0]

    def seat(self, games: Tensor, slots: Tensor, starts: Tensor) -> None:
        """Takes the snapshots that play.

        Args:
            games: `(any,)` int64, the games that are meant.
            slots: `(any,)` int64, slot of their snapshots, -1 for none.
            starts: `(any,)` bool, whether an episode begins.
        """
        if not self._rows:
            return
        on_host = self.slots.device.type == "cpu"
        begun = torch.zeros_like(self.slots, dtype=torch.bool).index_copy_(0, games, starts)
        self._starts |= begun.index_select(0, self._games)
        if on_host and torch.equal(self.slots.index_select(0, games), slots):
            return
        self.slots.index_copy_(0, games, slots)
        torch.index_select(self.slots, 0, self._games, out=self._row_slots)
        self._any = not on_host or bool((self.slots >= 0).any())
        self.pool.stacked.choose(self._row_slots)

    def act(self, observations: Observations, actions: Tensor) -> None:
        """Writes the actions of all rows whose game a snapshot plays; others' stay as they are."""
        if not self._any or self.pool.is_empty:
            return
        stacked, index = self.pool.stacked, self._seats
        frames = {name: tensor.flatten(0, 1).index_select(0, index) for name, tensor in observations.items()}
        self._draw_noise()
        step = self._stepper.step(frames, self._memory, self._starts, self._noise)
        self._memory = step.memory
        flat = actions.flatten(0, 1)
        chosen = stacked.clip_actions(step.actions).to(actions.dtype)
        played = (self._row_slots >= 0).view(-1, *(1,) * (chosen.dim() - 1))
        flat.index_copy_(0, index, torch.where(played, chosen, flat.index_select(0, index)))
        self._starts.zero_()

    def _draw_noise(self) -> None:
        """Draws the step's noise; one that is held lasts for an episode."""
        stacked = self.pool.stacked
        if not stacked.holds_noise:
            self._noise = stacked.draw_noise(1, self._rows, self._generator)[0]
        elif self._noise.device.type != "cpu" or bool(self._starts.any()):
            fresh = stacked.draw_noise(1, self._rows, self._generator)[0]
            starts = self._starts.view(-1, *(1,) * (fresh.dim() - 1))
            self._noise = torch.where(starts, fresh, self._noise)

    def forget(self, games: Tensor) -> None:
        """Clears the memories of `games` `(games,)` bool and lets them begin.

        Numbers that are not finite go from all memories: those that a broken snapshot left in a ring would come
        through the mask that hides earlier episodes, since nothing times NaN is NaN.
        """
        rows = games.index_select(0, self._games)
        memory = reset_memory(self._memory, self.pool.stacked.initial(self._rows), rows)
        self._memory = {name: tensor.nan_to_num() for name, tensor in memory.items()}
        self._starts |= rows

    def state(self) -> dict[str, Tensor]:
        """Returns copies of what the future depends on beside the snapshots and who plays them."""
        tensors = {"starts": self._starts, "random": self._generator.get_state()}
        if self.pool.stacked.holds_noise:
            tensors["noise"] = self._noise
        return {name: tensor.clone() for name, tensor in (tensors | with_prefix("memory", self._memory)).items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` gave, whose names and shapes were checked.

        Raises:
            StateError: The random state is not one.
        """
        self._starts.copy_(state["starts"])
        try:
            self._generator.set_state(state["random"].cpu())
        except RuntimeError as error:
            raise StateError(f"the opponents' random state cannot be used: {error}") from error
        if self.pool.stacked.holds_noise:
            self._noise = state["noise"].to(self._noise.device, copy=True)
        self._memory = _copied(part_of(state, "memory"), self.slots.device)


def _copied(memory: Memory, device: torch.device) -> Memory:
    return {name: tensor.to(device, copy=True) for name, tensor in memory.items()}
