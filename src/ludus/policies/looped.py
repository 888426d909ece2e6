"""Policies whose parameters cannot be stacked, as those with a user's own network: one call per snapshot in play."""

import logging
from collections.abc import Mapping
from functools import cache

import torch
from torch import Tensor

from ludus.core.errors import ConfigError, StateError
from ludus.policies.policy import Entries, Policy, RecurrentState, Step
from ludus.policies.stacked import StackedPolicy

logger = logging.getLogger(__name__)


class PolicyLoop:
    """Snapshots of a policy that play one after the other; its interface is that of `StackedPolicy`.

    On a CUDA device every step waits for the device, to read which snapshots play.
    """

    allows_cuda_graphs = False

    def __init__(self, policy: Policy, slots: int) -> None:
        """Make room for `slots` snapshots of a policy."""
        self.slots, self.device = slots, policy.device
        self._policy = policy
        self._policies: dict[int, Policy] = {}
        self._row_slots = torch.empty(0, dtype=torch.int64, device=policy.device)
        self._groups: dict[int, Tensor] | None = None

    @property
    def holds_noise(self) -> bool:
        """Whether the noise of a row stays the same over many steps."""
        return self._policy.head.hold_noise

    def load(self, slot: int, state: Mapping[str, Tensor]) -> None:
        """Take what `Policy.state` gave, from any device, into a slot; raise StateError if it does not fit."""
        if not 0 <= slot < self.slots:
            raise ConfigError(f"slot {slot} was asked for; valid: 0 to {self.slots - 1}")
        if slot not in self._policies:
            with torch.random.fork_rng(devices=[]):  # drawing parameters that are replaced at once must not show
                self._policies[slot] = Policy(self._policy.spec, self._policy.config, self.device).eval()
        self._policies[slot].load_state(state)

    def choose(self, slots: Tensor) -> None:
        """Take the slot of every row, `(rows,)` int64, -1 for unused ones; see `StackedPolicy.choose`."""
        if self._row_slots.shape != slots.shape:
            self._row_slots = slots.clone()
        # In place and without reading: this may be part of a CUDA graph, whose replays run no Python.
        self._row_slots.copy_(slots)
        self._groups = None

    def initial(self, rows: int) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing; empty without memory."""
        return self._policy.initial(rows)

    @torch.no_grad()
    def step(
        self, observations: Entries, memory: RecurrentState, episode_starts: Tensor, noise: Tensor | None = None
    ) -> Step:
        """Act on one frame; see `Policy.step`. Unused rows get actions and values of 0, and keep their memory."""
        rows, head = episode_starts.numel(), self._policy.head
        actions = torch.zeros((rows, *head.action_shape), dtype=head.action_dtype, device=self.device)
        log_probs, values = (torch.zeros(rows, device=self.device) for _ in range(2))
        for slot, chosen in self._playing(rows).items():
            part = self._policies[slot].step(
                {name: tensor[chosen] for name, tensor in observations.items()},
                {name: tensor[chosen] for name, tensor in memory.items()},
                episode_starts[chosen],
                None if noise is None else noise[chosen],
            )
            actions[chosen], log_probs[chosen], values[chosen] = part.actions, part.log_probs, part.values
            for name, tensor in part.memory.items():
                memory[name][chosen] = tensor
        return Step(actions, log_probs, values, memory)

    @torch.no_grad()
    def value(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Return values `(rows,)` of a frame without moving on; see `Policy.value`."""
        values = torch.zeros(episode_starts.numel(), device=self.device)
        for slot, chosen in self._playing(episode_starts.numel()).items():
            values[chosen] = self._policies[slot].value(
                {name: tensor[chosen] for name, tensor in observations.items()},
                {name: tensor[chosen] for name, tensor in memory.items()},
                episode_starts[chosen],
            )
        return values

    def draw_noise(self, steps: int, rows: int, generator: torch.Generator) -> Tensor:
        """Draw noise `(steps, rows, *head.noise_shape)`."""
        return self._policy.draw_noise(steps, rows, generator)

    def clip_actions(self, actions: Tensor) -> Tensor:
        """Return what goes to the world: continuous actions cut to the action space's bounds."""
        return self._policy.clip_actions(actions)

    def _playing(self, rows: int) -> dict[int, Tensor]:
        """Return the rows of every snapshot that plays, by slot."""
        if rows != self._row_slots.numel():
            raise StateError(
                f"a step has {rows} rows, but slots were chosen for {self._row_slots.numel()}; call choose"
            )
        if self._groups is None or self.device.type == "cuda":
            present = [slot for slot in sorted(set(self._row_slots.tolist())) if slot in self._policies]
            self._groups = {slot: (self._row_slots == slot).nonzero().squeeze(1) for slot in present}
        return self._groups


def stack_policies(policy: Policy, slots: int, *, values: bool = True) -> StackedPolicy | PolicyLoop:
    """Return room for snapshots of a policy: stacked, or in a loop if it has a network of the user's own."""
    if policy.network is None:
        return StackedPolicy(policy, slots, values=values)
    _notice(
        f"{policy.network} cannot be stacked: past selves and other agents with it play one after the other, so a step "
        "costs one call of the network for each of them that plays; fewer are cheaper (league.live, league.keep)"
    )
    return PolicyLoop(policy, slots)


@cache  # once per process: the checks before a run make several leagues
def _notice(text: str) -> None:
    logger.warning("[WARN] %s", text)
