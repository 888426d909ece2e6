"""Agents from files as opponents: those of one architecture are stacked and play in one call, as snapshots do."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.core.random import stream_hash
from ludus.envs.base import BatchedEnv, Observations
from ludus.league.snapshots import SnapshotOpponents, SnapshotPool
from ludus.policies.policy import Policy, part_of, with_prefix

_STREAM_AGENTS = 0xA6E7


class AgentOpponents:
    """Plays agents that do not change, in the seats that are not the learner's.

    Attributes:
        names: The agents.
    """

    def __init__(
        self,
        env: BatchedEnv,
        agents: Mapping[str, Policy],
        seats: Tensor,
        games: Tensor,
        *,
        seed: int,
        cuda_graphs: bool,
    ) -> None:
        """Start with no agent seated; for `seats`, `games`, `seed` and `cuda_graphs` see `SnapshotOpponents`.

        Raises:
            UnsupportedError: An agent's architecture cannot be stacked.
        """
        self.names = tuple(agents)
        by_architecture: dict[str, list[int]] = {}
        for index, policy in enumerate(agents.values()):
            by_architecture.setdefault(policy.config.model_dump_json(), []).append(index)
        self._groups: list[tuple[SnapshotOpponents, Tensor]] = []
        for number, members in enumerate(by_architecture.values()):
            pool = SnapshotPool(agents[self.names[members[0]]], len(members))
            # By index into `names`; the last entry is that of -1, a game that none of them plays.
            slots = torch.full((len(self.names) + 1,), -1, device=env.device)
            for slot, member in enumerate(members):
                pool.add(self.names[member], 0, agents[self.names[member]].state(), (), slot)
                slots[member] = slot
            group_seed = stream_hash(seed, number, _STREAM_AGENTS)
            player = SnapshotOpponents(env, pool, seats, games, seed=group_seed, cuda_graphs=cuda_graphs)
            self._groups.append((player, slots))

    def seat(self, games: Tensor, agents: Tensor, episode_starts: Tensor) -> None:
        """Take the agents that play.

        Args:
            games: `(any,)` int64, the games that are meant.
            agents: `(any,)` int64, index into `names`, -1 for none.
            episode_starts: `(any,)` bool, whether an episode begins.
        """
        for player, slots in self._groups:
            player.seat(games, slots[agents], episode_starts)

    @property
    def players(self) -> tuple[SnapshotOpponents, ...]:
        """Who plays the agents of each architecture."""
        return tuple(player for player, _ in self._groups)

    def act(self, observations: Observations, actions: Tensor) -> None:
        """Write the actions of the rows whose game an agent plays; others' stay as they are."""
        for player, _ in self._groups:
            player.act(observations, actions)

    def state(self) -> dict[str, Tensor]:
        """Return copies of what the future depends on beside the agents and who plays them."""
        tensors: dict[str, Tensor] = {}
        for number, (player, _) in enumerate(self._groups):
            tensors |= with_prefix(str(number), player.state())
        return tensors

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`, whose names have been checked.

        Raises:
            StateError: A shape or type differs, or a value is out of range.
        """
        for number, (player, _) in enumerate(self._groups):
            player.load_state(part_of(state, str(number)))
