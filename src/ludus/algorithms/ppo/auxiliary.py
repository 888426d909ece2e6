"""Auxiliary losses: imitate a bot; of the strategy encoder: predict and classify the opponent, contrast latents.

All have static shapes and never wait for the device, as CUDA graphs need it: frames that do not count are masked in
sums, not left out.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.errors import ConfigError
from ludus.nn.strategy import StrategyConfig
from ludus.policies.policy import Entries, Evaluation, Policy
from ludus.rollout.buffer import Minibatch, RolloutBuffer

_PREDICTION_LOSS, _CLASSIFICATION_LOSS, _RIGHT, _LABELLED = range(4)
_ACTION_LOSS, _ACTIONS_RIGHT, _ACTIONS_KNOWN, _CONTRAST_LOSS, _LATENT_KL, _IMITATION_LOSS, _SUMS = range(4, 11)
_SURPRISE = (0.25, 4.0)  # least and greatest weight of a sequence
_NOBODY = -1  # the label of games without a bot
_EXCLUDED = -1e9  # similarity of pairs that do not count; not -inf, whose gradient would be NaN where all are excluded


class AuxiliaryLosses:
    """Adds to the loss of minibatches what a policy learns beside playing; nothing for a policy without such heads.

    Attributes:
        imitation: `()`, weight of the imitation of a bot.
        sums: `(10,)`, over minibatches: loss of prediction and of classification, frames classified correctly and
            frames with a bot; loss of action prediction, its accuracy times its frames, and frames with a known action;
            contrastive loss; KL divergence of the latent; loss of imitation. Changed in place.
        names: Metrics that `metrics` gives.
    """

    def __init__(self, policy: Policy, config: PpoConfig) -> None:
        """Read the loss weights from the policy's settings; raise ConfigError if sequences are too short for them."""
        self._policy, self._strategy = policy, policy.config.strategy
        self._predicts, self._classifies = policy.prediction is not None, policy.recognition is not None
        if self._strategy is not None:
            _check_lengths(policy, self._strategy, config.sequence_length)
        self.sums = torch.zeros(_SUMS, device=policy.device)
        self.imitation = torch.zeros((), device=policy.device)
        actions = policy.action_prediction
        self.names = (
            *(("prediction_loss",) if self._predicts else ()),
            *(("recognition_loss", "recognition_accuracy") if self._classifies else ()),
            *(("action_prediction_loss",) if actions is not None else ()),
            *(("action_prediction_accuracy",) if actions is not None and actions.is_choice else ()),
            *(("contrast_loss",) if policy.contrast is not None else ()),
            *(("latent_kl",) if policy.latent_sample is not None else ()),
            *(("imitation_loss",) if config.imitation is not None else ()),
        )

    def totals(self, buffer: RolloutBuffer, frames: Tensor) -> "AuxiliaryTotals":
        """Count what the losses of a whole minibatch are means over, for a minibatch that is worked through in parts.

        Args:
            buffer: The rollout.
            frames: `(steps, rows)` int64, the whole minibatch as `RolloutBuffer.frames_of` gives it.
        """
        strategy = self._strategy
        if strategy is None:
            return AuxiliaryTotals(frames=frames.numel())
        episode_starts = buffer.episode_starts.flatten()[frames]
        pairs = labelled = known = anchors = None
        if self._predicts:
            pairs = _same_episode(episode_starts, strategy.predict_ahead).sum().float()
        if self._classifies and buffer.bots is not None:
            labelled = (buffer.bots.flatten()[frames] != _NOBODY).sum().float()
        if buffer.opponent_actions is not None:
            counted = _known(buffer.opponent_actions.flatten(0, 1)[frames], 2)
            if strategy.predict_before_events:
                seen = {name: entry.flatten(0, 1)[frames] for name, entry in buffer.observations.items()}
                counted = counted * self._before_events(seen, episode_starts)
            known = counted.sum().float()
        if self._policy.contrast is not None:
            anchors = latent_pairs(episode_starts, strategy.contrast_gap).valid.sum().float()
        return AuxiliaryTotals(pairs, labelled, known, anchors, frames.numel())

    def add_to(
        self, loss: Tensor, evaluation: Evaluation, batch: Minibatch, totals: "AuxiliaryTotals | None" = None
    ) -> Tensor:
        """Return a minibatch's loss `()` with the weighed auxiliary ones; they join the sums.

        Of a part of a minibatch, whose `totals` are given, they are its share in those of the whole.
        """
        strategy, whole = self._strategy, totals or AuxiliaryTotals()
        if batch.demonstrations is not None:
            loss = loss + self.imitation * self._imitation_loss(batch, batch.demonstrations, whole.frames)
        if strategy is None:
            return loss
        surprise = strategy.predict_weighting == "surprise"
        if evaluation.predictions is not None:
            frames = self._policy.opponent_frames(batch.observations)
            ahead = strategy.predict_ahead
            errors = prediction_loss(
                evaluation.predictions, frames, batch.episode_starts, ahead, whole.pairs, by_surprise=surprise
            )
            self.sums[_PREDICTION_LOSS].add_(errors.plain.detach())
            loss = loss + strategy.predict * errors.weighed
        if evaluation.opponent_logits is not None and batch.bots is not None:
            found = opponent_classification_loss(evaluation.opponent_logits, batch.bots, whole.labelled)
            self.sums[_CLASSIFICATION_LOSS : _LABELLED + 1].add_(torch.stack(found).detach())
            loss = loss + strategy.classify * found.loss
        if evaluation.opponent_actions is not None and batch.opponent_actions is not None:
            loss = loss + strategy.predict_actions * self._action_loss(evaluation.opponent_actions, batch, whole.known)
        if self._policy.contrast is not None and evaluation.latents is not None:
            pairs = latent_pairs(batch.episode_starts, strategy.contrast_gap)
            projected = self._policy.contrast(pairs.take(evaluation.latents).float())
            contrast = contrastive_loss(projected, pairs, batch, strategy.contrast_temperature, whole.anchors)
            self.sums[_CONTRAST_LOSS].add_(contrast.detach())
            loss = loss + strategy.contrast * contrast
        if evaluation.latent_kl is not None:
            divergence = evaluation.latent_kl.sum() / (whole.frames or evaluation.latent_kl.numel())
            self.sums[_LATENT_KL].add_(divergence.detach())
            loss = loss + strategy.variational * divergence
        return loss

    def _imitation_loss(self, batch: Minibatch, demonstrations: Tensor, among: int | None) -> Tensor:
        """Return the mean of `-log pi` of what a bot would have done, `()`."""
        if self.imitation.device.type == "cpu" and self.imitation == 0.0:  # saves the forward pass
            return torch.zeros(())
        shown = self._policy.unroll(batch.observations, batch.memory, batch.episode_starts, demonstrations)
        error = -shown.log_probs.sum() / (among or shown.log_probs.numel())
        self.sums[_IMITATION_LOSS].add_(error.detach())
        return error

    def _action_loss(self, predictions: Tensor, batch: Minibatch, among: Tensor | None) -> Tensor:
        head, actions, strategy = self._policy.action_prediction, batch.opponent_actions, self._strategy
        assert head is not None and actions is not None and strategy is not None  # noqa: S101, PT018 - for the type checker
        known = _known(actions, 2)
        if strategy.predict_before_events:
            known = known * self._before_events(batch.observations, batch.episode_starts)
        errors, right = head.errors(predictions, torch.nan_to_num(actions) if actions.is_floating_point() else actions)
        found = _masked_mean(errors, known, among, by_surprise=strategy.predict_weighting == "surprise")
        counts = torch.stack((found.plain, (right * known).sum(), known.sum()))
        self.sums[_ACTION_LOSS : _ACTIONS_KNOWN + 1].add_(counts.detach())
        return found.weighed

    def _before_events(self, observations: Entries, episode_starts: Tensor) -> Tensor:
        """Return the frames `(steps, rows)` after which an event begins in the same episode, float32 1 or 0."""
        begins = self._policy.events(observations, episode_starts)[1:] & ~episode_starts[1:]
        return nn.functional.pad(begins.float(), (0, 0, 0, 1))

    def metrics(self, means: Tensor) -> Tensor:
        """Return the metrics `(names,)` of the sums' means `(10,)`; accuracies are NaN without any labelled frame."""
        values = {
            "prediction_loss": means[_PREDICTION_LOSS],
            "recognition_loss": means[_CLASSIFICATION_LOSS],
            "recognition_accuracy": means[_RIGHT] / means[_LABELLED],
            "action_prediction_loss": means[_ACTION_LOSS],
            "action_prediction_accuracy": means[_ACTIONS_RIGHT] / means[_ACTIONS_KNOWN],
            "contrast_loss": means[_CONTRAST_LOSS],
            "latent_kl": means[_LATENT_KL],
            "imitation_loss": means[_IMITATION_LOSS],
        }
        return torch.stack([values[name] for name in self.names]) if self.names else means[:0]


class AuxiliaryTotals(NamedTuple):
    """What auxiliary losses are means over; None where there is no such loss."""

    pairs: Tensor | None = None  # `()`, pairs of frames of one episode, so far apart as is predicted ahead
    labelled: Tensor | None = None  # `()`, frames with a bot
    known: Tensor | None = None  # `()`, frames whose opponent's action is known
    anchors: Tensor | None = None  # `()`, sequences with two latents to compare
    frames: int | None = None  # all of them


def _check_lengths(policy: Policy, strategy: StrategyConfig, length: int) -> None:
    if policy.prediction is not None and length <= strategy.predict_ahead:
        raise ConfigError(
            f"policy.strategy predicts {strategy.predict_ahead} frames ahead, but ppo.sequence_length is "
            f"{length}: no sequence holds both frames; "
            "use a longer ppo.sequence_length, or predict: 0 to switch it off"
        )
    if strategy.predict_before_events and length < 2:
        raise ConfigError(
            "policy.strategy.predict_before_events needs sequences that hold an action and what came of it, but "
            "ppo.sequence_length is 1; use a longer one"
        )
    if policy.contrast is not None and length <= strategy.contrast_gap:
        raise ConfigError(
            f"policy.strategy.contrast_gap is {strategy.contrast_gap}, but ppo.sequence_length is {length}: no "
            "sequence holds two latents so far apart; use a longer ppo.sequence_length, a shorter gap, or contrast: 0 "
            "to switch it off"
        )


class WeighedLoss(NamedTuple):
    """A mean error, `()` each."""

    plain: Tensor  # with equal weights
    weighed: Tensor  # what is descended; the same tensor where weights are equal


def _masked_mean(errors: Tensor, counted: Tensor, among: Tensor | None, *, by_surprise: bool) -> WeighedLoss:
    """Return the mean of errors `(steps, rows)` where `counted`, a mask of their type, is 1; over `among` if given.

    Weighed by surprise, a sequence counts by w = its mean error / the mean error of all, clipped, without gradient.
    """
    masked, count = errors * counted, torch.clamp(counted.sum() if among is None else among, min=1.0)
    plain = masked.sum() / count
    if not by_surprise:
        return WeighedLoss(plain, plain)
    own = masked.detach().sum(0) / counted.sum(0).clamp(min=1.0)
    mean = masked.detach().sum() / counted.sum().clamp(min=1.0)
    weights = (own / mean.clamp(min=torch.finfo(mean.dtype).tiny)).clamp(*_SURPRISE)
    return WeighedLoss(plain, (masked * weights).sum() / count)


def _same_episode(episode_starts: Tensor, ahead: int) -> Tensor:
    """Return which frames `(steps - ahead, rows)` are of the episode of the frame that comes `ahead` steps later."""
    episodes = episode_starts.cumsum(0)
    return episodes[ahead:] == episodes[:-ahead]


def _known(actions: Tensor, axes: int) -> Tensor:
    """Return which actions, with so many axes before those of one action, are known; float32 1 or 0."""
    known = ~actions.isnan() if actions.is_floating_point() else actions >= 0
    return known.flatten(axes).all(-1).float() if actions.dim() > axes else known.float()


def prediction_loss(
    predictions: Tensor,
    frames: Tensor,
    episode_starts: Tensor,
    ahead: int,
    pairs: Tensor | None = None,
    *,
    by_surprise: bool = False,
) -> WeighedLoss:
    """Return the mean squared error `()` over pairs of frames of one episode; 0 where there is no pair.

    Args:
        predictions: `(steps, rows, inputs)`, made at each frame.
        frames: `(steps, rows, inputs)`, what there was to see, without gradient.
        episode_starts: `(steps, rows)` bool, frames that are the first of an episode.
        ahead: How many frames after a prediction its frame comes, below the number of steps.
        pairs: `()`, how many the mean is over; those that there are here if None.
        by_surprise: Whether sequences with a larger error count for more.
    """
    same = _same_episode(episode_starts, ahead).to(predictions.dtype)
    errors = (predictions[:-ahead] - frames[ahead:].detach()).square().mean(-1)
    return _masked_mean(errors, same, pairs, by_surprise=by_surprise)


class ClassificationLoss(NamedTuple):
    """How well bots were told apart, `()` each."""

    loss: Tensor  # mean cross entropy over frames with a bot, in nats; 0 where there is none
    right: Tensor  # frames whose bot was the most likely one
    labelled: Tensor  # frames with a bot


def opponent_classification_loss(logits: Tensor, bots: Tensor, among: Tensor | None = None) -> ClassificationLoss:
    """Compare logits `(steps, rows, bots)` with who played, `(steps, rows)` int64; -1, no bot, counts nothing.

    The mean is over `among` `()` frames; over those with a bot if None.
    """
    flat, labels = logits.flatten(0, -2), bots.flatten()
    labelled = (labels != _NOBODY).sum().to(flat.dtype)
    total = nn.functional.cross_entropy(flat, labels, ignore_index=_NOBODY, reduction="sum")
    right = (flat.argmax(-1) == labels).sum().to(flat.dtype)
    count = labelled if among is None else among
    return ClassificationLoss(total / count.clamp(min=1.0), right, labelled)


class LatentPairs(NamedTuple):
    """Two frames of each sequence, both of its longest part without an episode start: `(rows,)` each."""

    first: Tensor  # int64, the step of the earlier one
    second: Tensor  # int64, the step of the later one
    valid: Tensor  # bool, whether they are as far apart as asked for

    def take(self, tensor: Tensor) -> Tensor:
        """Return both frames of `(steps, rows, ...)` as `(2, rows, ...)`."""
        rows = torch.arange(tensor.shape[1], device=tensor.device)
        return tensor[torch.stack((self.first, self.second)), rows]


def latent_pairs(episode_starts: Tensor, gap: int) -> LatentPairs:
    """Choose two frames of the longest part of each sequence `(steps, rows)` that is of one episode.

    They are the last one, and one that comes half of the part earlier, at least `gap` steps: by then there was
    something to see, and the frames that the two latents have seen overlap little.
    """
    steps = episode_starts.shape[0]
    times = torch.arange(steps, device=episode_starts.device).unsqueeze(1).expand_as(episode_starts)
    starts = torch.where(episode_starts, times, 0).cummax(0).values
    longest, second = (times - starts).max(0)
    apart = torch.clamp(longest.div(2, rounding_mode="floor"), min=gap)
    return LatentPairs((second - apart).clamp(min=0), second, longest >= gap)


def contrastive_loss(
    projected: Tensor, pairs: LatentPairs, batch: Minibatch, temperature: float, anchors: Tensor | None = None
) -> Tensor:
    """Return the InfoNCE loss `()` of projected latents `(2, rows, size)`; 0 where no sequence has a pair.

    With s_ij = cosine(first_i, second_j) / temperature, sequence i costs the mean over its positives p of
    -log(exp(s_ip) / (exp(s_ip) + sum over negatives n of exp(s_in))). Its positives are itself and valid sequences
    against the same bot; negatives are sequences of other rows, except those against the same bot. The mean is over
    `anchors` `()` sequences, or over those that have a pair.
    """
    first, second = nn.functional.normalize(projected, dim=-1).unbind(0)
    similarity = first @ second.t() / temperature
    itself = torch.eye(first.shape[0], dtype=torch.bool, device=first.device)
    positive, negative = itself, ~itself
    if batch.rows is not None:
        negative = batch.rows.unsqueeze(1) != batch.rows
    if batch.bots is not None:
        bots = pairs.take(batch.bots)[1]
        same_bot = (bots.unsqueeze(1) == bots) & (bots != _NOBODY)
        positive, negative = itself | (same_bot & pairs.valid), negative & ~same_bot
    others = similarity.masked_fill(~negative, _EXCLUDED).logsumexp(1, keepdim=True)
    losses = (torch.logaddexp(similarity, others) - similarity) * positive
    by_sequence = losses.sum(1) / positive.sum(1) * pairs.valid
    count = pairs.valid.sum().float() if anchors is None else anchors
    return by_sequence.sum() / count.clamp(min=1.0)
