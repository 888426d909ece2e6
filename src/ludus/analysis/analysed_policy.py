"""Policies whose features can be read and replaced, and what such a policy would do with other features."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.policies.policy import Entries, Policy, RecurrentState, Step, Trunk

Features: TypeAlias = Literal["latent", "memory"]
"""The strategy encoder's latent, or the hidden state of the LSTM."""
Change: TypeAlias = Callable[[Tensor], Tensor]
"""Maps features `(rows, size)` to those that the policy continues with."""

_RECURRENT = ("recurrent.", "critic_recurrent.")
_STRATEGY = "strategy."


def check_features(policy: Policy, features: Features) -> None:
    """Raise ConfigError unless the policy has these features."""
    has = {"latent": policy.memory.strategy is not None, "memory": policy.memory.recurrent is not None}
    if has[features]:
        return
    if not any(has.values()):
        raise ConfigError(
            "the agent has no memory: neither a strategy encoder nor a recurrent network; train one with "
            "policy.strategy or policy.recurrent"
        )
    if features == "latent":
        raise ConfigError(
            "the agent has no strategy encoder and so no latent; train one with policy.strategy, or analyse its "
            "recurrent state: --features memory"
        )
    raise ConfigError("the agent has no recurrent network (policy.recurrent); analyse its latent: --features latent")


class AnalysedPolicy(Policy):
    """Shares the networks of a policy and plays like it, unless its features are changed.

    Attributes:
        features: Which features are read and changed.
        seen: `(rows, size)`, the features of the last step, before any change.
        latent: `(rows, size)`, the strategy latent of the last step, before any change; None without an encoder.
        before: The recurrent state before the last step.
        distribution: `(rows, parameters)`, parameters of the action distribution of the last step.
    """

    seen: Tensor
    latent: Tensor | None
    before: RecurrentState
    distribution: Tensor

    def __init__(self, policy: Policy, features: Features, change: Change | None = None) -> None:
        """Share the networks of a policy, and apply a change to its features in every step.

        A latent is changed before actor, critic and recurrent network see it, a recurrent state before the next step.

        Raises:
            ConfigError: The policy has no such features.
        """
        check_features(policy, features)
        with torch.random.fork_rng(devices=[]):  # its own parameters are replaced below
            super().__init__(policy.spec, policy.config, policy.device)
        for name, child in policy.named_children():
            if child is not policy.memory:
                self.add_module(name, child)
        for name, child in policy.memory.named_children():  # in a memory of its own, whose step is watched
            self.memory.add_module(name, child)
        self.features, self._change, self.latent = features, change, None
        self.memory.strategy_step = self._watched_step  # the encoder's own step, which also stores its output

    def _watched_step(
        self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor
    ) -> tuple[Tensor, RecurrentState]:
        encoder = self.memory.strategy
        assert encoder is not None  # noqa: S101 - for the type checker
        self.latent, following = encoder.step(inputs, memory, episode_starts)
        return self._changed_latent(self.latent), following

    def _changed_latent(self, latent: Tensor) -> Tensor:
        return latent if self._change is None or self.features == "memory" else self._change(latent)

    def _restricted(self, latent: Tensor, trunk: Trunk, observations: Entries) -> Tensor:
        self.distribution = super()._restricted(latent, trunk, observations)
        return self.distribution

    @torch.no_grad()
    def step(
        self,
        observations: Mapping[str, Tensor],
        memory: RecurrentState,
        episode_starts: Tensor,
        noise: Tensor | None = None,
    ) -> Step:
        """Act on one frame; see `Policy.step`."""
        self.before = memory
        step = super().step(observations, memory, episode_starts, noise)
        if self.features == "latent":
            assert self.latent is not None  # noqa: S101 - for the type checker
            self.seen = self.latent
            return step
        self.seen = step.memory["recurrent.hidden"]
        return step if self._change is None else step._replace(memory=_changed_memory(step.memory, self._change))


class CounterfactualPolicy(AnalysedPolicy):
    """What an analysed policy would do on the same frames with other features.

    It takes every step right after the analysed policy, whose latent it uses: the encoder runs once for both. A changed
    latent also goes through a recurrent state of its own, which has seen the changed latents of all frames so far. A
    changed recurrent state is that of the analysed policy before the same frame.
    """

    def __init__(self, source: AnalysedPolicy, change: Change) -> None:
        super().__init__(source, source.features, change)
        self._source = (source,)  # in a tuple, so that it is not registered as a part of this policy

    def initial(self, rows: int) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing, without the encoder's caches."""
        return {name: state for name, state in super().initial(rows).items() if not name.startswith(_STRATEGY)}

    def _watched_step(
        self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor
    ) -> tuple[Tensor, RecurrentState]:
        latent = self._source[0].latent
        assert latent is not None  # noqa: S101 - for the type checker
        return self._changed_latent(latent), {}

    @torch.no_grad()
    def step(
        self,
        observations: Mapping[str, Tensor],
        memory: RecurrentState,
        episode_starts: Tensor,
        noise: Tensor | None = None,
    ) -> Step:
        """Act on one frame; see `Policy.step`."""
        if self.features == "memory" and self._change is not None:
            known = {name: state for name, state in self._source[0].before.items() if not name.startswith(_STRATEGY)}
            memory = _changed_memory(known, self._change)
        return Policy.step(self, observations, memory, episode_starts, noise)


def _changed_memory(memory: RecurrentState, change: Change) -> RecurrentState:
    return {name: change(state) if name.startswith(_RECURRENT) else state for name, state in memory.items()}


def untrained_twin(policy: Policy) -> Policy:
    """Return a policy of the same architecture with fresh parameters and the same observation normalization."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        twin = Policy(policy.spec, policy.config, policy.device)
    known = {name: tensor for name, tensor in policy.state().items() if name.startswith("normaliser.")}
    twin.load_state(twin.state() | known)
    return twin
