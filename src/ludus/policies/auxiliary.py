"""Auxiliary losses on the strategy latent: heads that training alone uses, each with its loss.

An idea of what the latent should know is one subclass of `AuxiliaryLoss`, decorated with `register_auxiliary_loss`: its
weight in the settings, its head, the label of the rollout that it learns from, and its error. `Policy` makes the head,
`RolloutBuffer` records the label, `algorithms/ppo/auxiliary.py` weighs the loss and reports its metrics, and
`policies/cost.py` counts its parameters.

Heads are drawn after all other layers, so that these begin the same with them and without.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from math import prod
from typing import ClassVar, Literal, Self, TypeAlias, TypeVar

import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from ludus.core.errors import ConfigError
from ludus.envs.base import EnvSpec
from ludus.nn.mlp import Mlp, make_linear
from ludus.nn.strategy import StrategyConfig
from ludus.policies.canonical import CanonicalView
from ludus.policies.description import PolicyDescription

Label: TypeAlias = Literal["bots", "opponent_actions"]  # see `RolloutBuffer.labels`
LossT = TypeVar("LossT", bound="type[AuxiliaryLoss]")

_LOSSES: "dict[str, type[AuxiliaryLoss]]" = {}
_IMPOSSIBLE = -1e30  # logit of choices that a factor does not have
_NOBODY = -1  # the label of games without a bot


class AuxiliaryLoss(nn.Module, ABC):
    """A head on the strategy latent, and what it is trained for.

    Attributes:
        name: As in `Policy.auxiliary` and in the metrics `{name}_loss` and `{name}_accuracy`.
        label: What it learns from.
        weight: Factor of the loss.
        only_before_events: Whether only frames count after which an event begins, see `StrategyConfig.events`.
        has_accuracy: Whether its predictions are right or wrong.
        head: The layers.
    """

    name: ClassVar[str]
    label: ClassVar[Label]
    weight: float
    only_before_events = False
    has_accuracy = True
    head: nn.Sequential

    @staticmethod
    @abstractmethod
    def weight_of(config: StrategyConfig) -> float:
        """Return its weight in the settings; 0 switches it off."""

    @classmethod
    @abstractmethod
    def make(cls, config: StrategyConfig, spec: EnvSpec, features: int) -> Self:
        """Make it for observations of `features` features; raise ConfigError if the world has no such labels."""

    @staticmethod
    @abstractmethod
    def head_form(description: PolicyDescription, features: int) -> tuple[int, int]:
        """Return the inputs of the head beside the latent, and its outputs."""

    @abstractmethod
    def forward(self, latent: Tensor, features: Tensor) -> Tensor:
        """Map latents `(..., latent)` and features of the observation alone `(..., features)` to predictions."""

    def turn_back(self, predictions: Tensor, view: CanonicalView, mirrored: Tensor) -> Tensor:
        """Return predictions made in mirrored views `(...)` as they would be in the original ones."""
        return predictions

    @abstractmethod
    def known(self, labels: Tensor) -> Tensor:
        """Return which labels `(steps, rows, ...)` count, `(steps, rows)` float32 1 or 0."""

    @abstractmethod
    def errors(self, predictions: Tensor, labels: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of the errors, and of the share that was right, over `counted` frames, `()` each."""

    def _make_head(self, config: StrategyConfig, outputs: int, features: int = 0) -> None:
        hidden = Mlp(config.latent + features, (config.width,), "relu")
        self.head = nn.Sequential(hidden, make_linear(hidden.output_size, outputs, 1.0))


def register_auxiliary_loss(name: str) -> Callable[[LossT], LossT]:
    """Register a subclass of `AuxiliaryLoss` under its name."""

    def register(loss: LossT) -> LossT:
        loss.name = name
        _LOSSES[name] = loss
        return loss

    return register


def auxiliary_losses(config: StrategyConfig | None) -> "Mapping[str, type[AuxiliaryLoss]]":
    """Return those that settings switch on, by name."""
    return {name: loss for name, loss in _LOSSES.items() if config is not None and loss.weight_of(config) > 0.0}


@register_auxiliary_loss("recognition")
class OpponentClassifier(AuxiliaryLoss):
    """Tells which of the world's bots the opponent is; games against snapshots and the current policy do not count."""

    label = "bots"

    def __init__(self, config: StrategyConfig, classes: int) -> None:
        super().__init__()
        self.weight, self.classes = config.classify, classes
        self._make_head(config, classes)

    @staticmethod
    def weight_of(config: StrategyConfig) -> float:
        """See `AuxiliaryLoss`."""
        return config.classify

    @classmethod
    def make(cls, config: StrategyConfig, spec: EnvSpec, features: int) -> Self:  # noqa: ARG003 - reads the latent alone
        """See `AuxiliaryLoss`."""
        if not spec.bots:
            raise ConfigError(
                f"policy.strategy.classify is {config.classify:g}, but {spec.id} has no scripted players that could be "
                "classified; set it to 0, or let the latent predict: policy.strategy.predict_actions"
            )
        return cls(config, len(spec.bots))

    @staticmethod
    def head_form(description: PolicyDescription, features: int) -> tuple[int, int]:  # noqa: ARG004 - as above
        """See `AuxiliaryLoss`."""
        return 0, len(description.bots)

    def forward(self, latent: Tensor, features: Tensor | None = None) -> Tensor:
        """Map latents to logits `(..., bots)`."""
        logits: Tensor = self.head(latent.float())
        return logits

    def known(self, labels: Tensor) -> Tensor:
        """See `AuxiliaryLoss`: bots `(steps, rows)`, -1 for none."""
        return (labels != _NOBODY).float()

    def errors(self, predictions: Tensor, labels: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of cross-entropies in nats, and how often the right bot was the most likely one."""
        logits, bots = predictions.flatten(0, -2), labels.flatten()
        total = functional.cross_entropy(logits, bots, ignore_index=_NOBODY, reduction="sum")
        return total, (logits.argmax(-1) == bots).sum().to(logits.dtype)


@register_auxiliary_loss("action_prediction")
class ActionPrediction(AuxiliaryLoss):
    """Predicts the opponent's action of this step from the latent and what is seen now, without gradient to the latter.

    What an opponent does depends on the situation as much as on its style. Every factor of the action is one
    categorical distribution; a Box is predicted as it is.
    """

    label = "opponent_actions"

    def __init__(self, config: StrategyConfig, space: spaces.Space[object], features: int) -> None:
        super().__init__()
        counts = _choice_counts(space)
        self.weight, self.only_before_events = config.predict_actions, config.predict_before_events
        self.has_accuracy = bool(counts)
        self._shape = (len(counts), max(counts)) if counts else (space.shape or ())
        self._impossible: Tensor | None
        missing = None
        if len(set(counts)) > 1:
            missing = torch.arange(max(counts)) >= torch.tensor(counts).unsqueeze(-1)
        self.register_buffer("_impossible", missing, persistent=False)
        self._make_head(config, prod(self._shape), features)

    @staticmethod
    def weight_of(config: StrategyConfig) -> float:
        """See `AuxiliaryLoss`."""
        return config.predict_actions

    @classmethod
    def make(cls, config: StrategyConfig, spec: EnvSpec, features: int) -> Self:
        """See `AuxiliaryLoss`."""
        if len(set(spec.teams)) < 2:
            raise ConfigError(
                f"policy.strategy.predict_actions is {config.predict_actions:g}, but {spec.id} has one team, so no "
                "seat of an opponent whose actions could be predicted; set it to 0"
            )
        return cls(config, spec.action_space, features)

    @staticmethod
    def head_form(description: PolicyDescription, features: int) -> tuple[int, int]:
        """See `AuxiliaryLoss`."""
        space = description.action_space
        if space.kind == "multi_binary":
            return features, 2 * prod(space.shape)
        return features, len(space.counts) * max(space.counts) if space.counts else prod(space.shape)

    def forward(self, latent: Tensor, features: Tensor) -> Tensor:
        """Map latents and features of observations to `(..., factors, choices)` or `(..., actions)`."""
        outputs: Tensor = self.head(torch.cat((latent.float(), features.detach().float()), dim=-1))
        outputs = outputs.view(*outputs.shape[:-1], *self._shape)
        return outputs if self._impossible is None else outputs.masked_fill(self._impossible, _IMPOSSIBLE)

    def turn_back(self, predictions: Tensor, view: CanonicalView, mirrored: Tensor) -> Tensor:
        """See `AuxiliaryLoss`: keys of mirrored views change their places."""
        return view.turn_keys(predictions.transpose(-1, -2), mirrored.unsqueeze(-1)).transpose(-1, -2)

    def known(self, labels: Tensor) -> Tensor:
        """See `AuxiliaryLoss`: actions `(steps, rows, *action_shape)`, -1 or NaN where unknown."""
        known = ~labels.isnan() if labels.is_floating_point() else labels >= 0
        return known.flatten(2).all(-1).float() if labels.dim() > 2 else known.float()

    def errors(self, predictions: Tensor, labels: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
        """Sum up what `frame_errors` returns."""
        actions = torch.nan_to_num(labels) if labels.is_floating_point() else labels
        errors, right = self.frame_errors(predictions, actions)
        return (errors * counted).sum(), (right * counted).sum()

    def frame_errors(self, predictions: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Compare predictions with actions `(..., *action_shape)`.

        Returns:
            The error `(...)`, mean cross-entropy of the factors in nats or mean squared error, and the share of factors
            `(...)` whose most likely choice was taken, 0 for numbers. What stands for unknown actions must be masked.
        """
        if not self.has_accuracy:
            error = (predictions - actions.detach()).square().mean(-1)
            return error, torch.zeros_like(error)
        factors = actions.long().reshape(*predictions.shape[:-1]).clamp(min=0)
        losses = functional.cross_entropy(predictions.flatten(0, -2), factors.flatten(), reduction="none")
        right = (predictions.argmax(-1) == factors).to(predictions.dtype)
        return losses.view_as(factors).mean(-1), right.mean(-1)


def _choice_counts(space: spaces.Space[object]) -> tuple[int, ...]:
    """Return the choices of every factor of an action; none for a Box."""
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(map(int, space.nvec))
    return (2,) * int(space.shape[0]) if isinstance(space, spaces.MultiBinary) else ()
