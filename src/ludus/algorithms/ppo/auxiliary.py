"""Losses beside PPO's own: those of the strategy encoder (`policies/auxiliary.py`), and the imitation of a bot.

All have static shapes and never wait for the device, as CUDA graphs need it: frames that do not count are masked in
sums, not left out. The loss of a head is the mean of its errors over the frames that count, sum_i m_i e_i / sum_i m_i.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.errors import ConfigError
from ludus.policies.auxiliary import AuxiliaryLoss
from ludus.policies.policy import Entries, Evaluation, Policy
from ludus.rollout.buffer import Minibatch, RolloutBuffer

_SUMS = 3  # of each head: its loss, the share that was right, and frames that count


@dataclass(frozen=True, slots=True)
class AuxiliaryTotals:
    """What auxiliary losses are means over, where a minibatch is worked through in parts."""

    counts: Mapping[str, Tensor] = field(default_factory=dict)  # `()` each, frames that count, by the loss's name
    frames: int | None = None  # all of them; None for those of the batch itself


class AuxiliaryLosses:
    """Adds to the loss of minibatches what a policy learns beside playing; nothing for a policy without such heads.

    Attributes:
        imitation: `()`, weight of the imitation of a bot.
        sums: Over minibatches: of each head its loss, what it predicted right and frames that count; then the loss of
            imitation. Changed in place.
        names: Metrics that `metrics` gives.
    """

    def __init__(self, policy: Policy, config: PpoConfig) -> None:
        """Take the policy's heads; raise ConfigError if sequences are too short for them."""
        self._policy, self._losses = policy, policy.auxiliary_losses
        if config.sequence_length < 2 and any(loss.only_before_events for loss in self._losses.values()):
            raise ConfigError(
                "policy.strategy.predict_before_events needs sequences that hold an action and what came of it, but "
                "ppo.sequence_length is 1; use a longer one"
            )
        self.sums = torch.zeros(_SUMS * len(self._losses) + 1, device=policy.device)
        self.imitation = torch.zeros((), device=policy.device)
        self._imitates = config.imitation is not None
        names = [f"{name}_{kind}" for name, loss in self._losses.items() for kind in _kinds(loss)]
        self.names = (*names, *(("imitation_loss",) if self._imitates else ()))

    def totals(self, buffer: RolloutBuffer, frames: Tensor) -> AuxiliaryTotals:
        """Count what the losses of a whole minibatch are means over, for a minibatch that is worked through in parts.

        Args:
            buffer: The rollout.
            frames: `(steps, rows)` int64, the whole minibatch as `RolloutBuffer.frames_of` gives it.
        """
        episode_starts = buffer.episode_starts.flatten()[frames]
        seen: Entries = {}
        if any(loss.only_before_events for loss in self._losses.values()):
            seen = {name: entry.flatten(0, 1)[frames] for name, entry in buffer.observations.items()}
        counts = {
            name: self._counted(loss, buffer.labels[loss.label].flatten(0, 1)[frames], seen, episode_starts).sum()
            for name, loss in self._losses.items()
        }
        return AuxiliaryTotals(counts, frames.numel())

    def add_to(
        self, loss: Tensor, evaluation: Evaluation, batch: Minibatch, totals: AuxiliaryTotals | None = None
    ) -> Tensor:
        """Return a minibatch's loss `()` with the weighed auxiliary ones; they join the sums.

        Of a part of a minibatch, whose `totals` are given, they are its share in those of the whole.
        """
        whole = totals or AuxiliaryTotals()
        if self._imitates:
            loss = loss + self.imitation * self._imitation_loss(batch, whole.frames)
        for place, (name, part) in enumerate(self._losses.items()):
            labels = batch.labels[part.label]
            counted = self._counted(part, labels, batch.observations, batch.episode_starts)
            error, right = part.errors(evaluation.auxiliary[name], labels, counted)
            mean = error / whole.counts.get(name, counted.sum()).clamp(min=1.0)
            sums = self.sums[_SUMS * place : _SUMS * (place + 1)]
            sums.add_(torch.stack((mean, right, counted.sum())).detach())
            loss = loss + part.weight * mean
        return loss

    def _imitation_loss(self, batch: Minibatch, among: int | None) -> Tensor:
        """Return the mean of `-log pi` of what a bot would have done, `()`."""
        if self.imitation.device.type == "cpu" and self.imitation == 0.0:  # saves the forward pass
            return torch.zeros(())
        demonstrations = batch.labels["demonstrations"]
        shown = self._policy.unroll(batch.observations, batch.memory, batch.episode_starts, demonstrations)
        error = -shown.log_probs.sum() / (among or shown.log_probs.numel())
        self.sums[-1].add_(error.detach())
        return error

    def _counted(self, loss: AuxiliaryLoss, labels: Tensor, observations: Entries, episode_starts: Tensor) -> Tensor:
        """Return the frames `(steps, rows)` that count, float32 1 or 0.

        Before an event are those after which one begins in the same episode.
        """
        known = loss.known(labels)
        if not loss.only_before_events:
            return known
        begins = self._policy.events(observations, episode_starts)[1:] & ~episode_starts[1:]
        return known * nn.functional.pad(begins.float(), (0, 0, 0, 1))

    def metrics(self, means: Tensor) -> Tensor:
        """Return the metrics `(names,)` of the sums' means; accuracies are NaN without any frame that counts."""
        values = []
        for place, loss in enumerate(self._losses.values()):
            error, right, counted = means[_SUMS * place : _SUMS * (place + 1)]
            values += [error, right / counted][: len(_kinds(loss))]
        values += [means[-1]] if self._imitates else []
        return torch.stack(values) if values else means[:0]


def _kinds(loss: AuxiliaryLoss) -> tuple[str, ...]:
    return ("loss", "accuracy") if loss.has_accuracy else ("loss",)
