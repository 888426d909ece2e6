"""A policy under analysis: what it knows of its opponent can be read while it plays, and be replaced."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.policies.memory import Memory
from ludus.policies.policy import Policy, Step

Features: TypeAlias = Literal["latent", "memory"]
"""What is analysed: the strategy encoder's latent, or the hidden state of the LSTM or GRU."""
Change: TypeAlias = Callable[[Tensor], Tensor]
"""Maps features `(rows, size)` to those that the policy goes on with."""

FEATURES: tuple[Features, ...] = ("latent", "memory")
_RECURRENT = ("recurrent.", "critic_recurrent.")


def check_features(policy: Policy, features: Features) -> None:
    """Raises ConfigError unless the policy has the part that shall be analysed."""
    has = {"latent": policy.strategy is not None, "memory": policy.recurrent is not None}
    if has[features]:
        return
    if not any(has.values()):
        raise ConfigError(
            "the agent remembers nothing of its opponent: it has neither a strategy encoder nor a recurrent memory; "
            "train one with policy.strategy or policy.recurrent"
        )
    if features == "latent":
        raise ConfigError(
            "the agent has no strategy encoder, so it has no latent; train one with policy.strategy, or analyse what "
            "its recurrent memory holds: --features memory"
        )
    raise ConfigError("the agent has no recurrent memory (policy.recurrent); analyse its latent: --features latent")


class AnalysedPolicy(Policy):
    """Plays exactly as the policy whose networks it shares, unless its features are changed.

    Attributes:
        seen: `(rows, size)`, the features of the last step, before any change.
    """

    seen: Tensor

    def __init__(self, policy: Policy, features: Features, change: Change | None = None) -> None:
        """Shares the networks of a policy.

        Args:
            policy: Whose.
            features: What is read.
            change: What is done to it in every step; nothing if None. A latent is changed before actor, critic and
                recurrent memory see it, a memory before the next step.

        Raises:
            ConfigError: The policy has no such part.
        """
        check_features(policy, features)
        with torch.random.fork_rng(devices=[]):  # its own parameters are replaced at once
            super().__init__(policy.spec, policy.config, policy.device)
        for name, child in policy.named_children():
            self.add_module(name, child)
        self._features, self._change = features, change
        if features == "latent":
            self._strategy_step = self._watched_step  # the networks' own step, and a note of what it gave

    def _watched_step(self, inputs: Tensor, memory: Memory, starts: Tensor) -> tuple[Tensor, Memory]:
        assert self.strategy is not None  # noqa: S101 - for the type checker
        self.seen, following = self.strategy.step(inputs, memory, starts)
        return (self.seen if self._change is None else self._change(self.seen)), following

    @torch.no_grad()
    def step(
        self, observations: Mapping[str, Tensor], memory: Memory, starts: Tensor, noise: Tensor | None = None
    ) -> Step:
        """Acts on one frame; see `Policy.step`."""
        step = super().step(observations, memory, starts, noise)
        if self._features == "latent":
            return step
        self.seen = step.memory["recurrent.hidden"]
        if self._change is None:
            return step
        changed = {
            name: self._change(tensor) if name.startswith(_RECURRENT) else tensor
            for name, tensor in step.memory.items()
        }
        return step._replace(memory=changed)


def untrained_twin(policy: Policy, seed: int = 0) -> Policy:
    """Returns a policy of the same form with fresh parameters that sees observations normalised in the same way."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        twin = Policy(policy.spec, policy.config, policy.device)
    known = {name: tensor for name, tensor in policy.state().items() if name.startswith("normaliser.")}
    twin.load_state(twin.state() | known)
    return twin
