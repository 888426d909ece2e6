"""Ablation: how an agent plays with its latent as it is, zeroed, and taken from another game."""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import torch
from torch import Tensor

from ludus.analysis.analysed_policy import AnalysedPolicy, Change, Features
from ludus.analysis.drift import difference
from ludus.core.intervals import Interval
from ludus.evaluation.evaluate import Evaluation, PolicyEvaluator
from ludus.evaluation.matches import Progress, partial_progress
from ludus.policies.policy import Policy

CONDITIONS = ("as is", "zeroed", "shuffled")
NEEDED, HARMFUL, NO_DIFFERENCE = "helps", "harms", "no difference seen"


class Shuffled:
    """Gives every game the features of another one, always the same one while the same games are played."""

    def __init__(self) -> None:
        self._sources: dict[int, Tensor] = {}

    def __call__(self, features: Tensor) -> Tensor:
        """Derange `(rows, size)`: no row stays in its place; a single row is zeroed."""
        rows = features.shape[0]
        if rows < 2:
            return torch.zeros_like(features)
        if rows not in self._sources:
            order = torch.randperm(rows, generator=torch.Generator().manual_seed(0))
            sources = torch.empty_like(order)
            sources[order] = order.roll(1)  # a single cycle has no fixed point
            self._sources[rows] = sources.to(features.device)
        return features[self._sources[rows]]


@dataclass(frozen=True, slots=True)
class AblationRow:
    """Scores against one opponent, or on average over all.

    The intervals of the losses of all opponents hold jointly with 95 % (Bonferroni); that of the mean holds alone.
    """

    opponent: str  # name; empty in a world without bots
    scores: dict[str, Interval]  # win rate per condition, or the mean return in a world without winners
    losses: dict[str, Interval]  # score under the first condition minus that under each other one

    def verdict(self, condition: str) -> str:
        """Return whether the features help, judged by the interval of the loss without them."""
        loss = self.losses[condition]
        return NEEDED if loss.low > 0.0 else HARMFUL if loss.high < 0.0 else NO_DIFFERENCE

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "opponent": self.opponent,
            "scores": {name: score._asdict() for name, score in self.scores.items()},
            "losses": {name: loss._asdict() | {"verdict": self.verdict(name)} for name, loss in self.losses.items()},
        }


@dataclass(frozen=True, slots=True)
class Ablation:
    """The ablation against every opponent."""

    score: str  # `win_rate` or `mean_return`
    matches: int  # matches per opponent and condition
    rows: tuple[AblationRow, ...]  # one per opponent
    mean: AblationRow  # mean over all of them with equal weight

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "score": self.score,
            "matches": self.matches,
            "opponents": [row.as_json() for row in self.rows],
            "mean": self.mean.as_json(),
        }


def ablate(
    policy: Policy,
    evaluator: PolicyEvaluator,
    matches: int,
    features: Features = "latent",
    progress: Progress = lambda _: None,
) -> Ablation:
    """Play the same matches, so many per opponent, with the same seeds under each condition.

    The policy is on the device of the games; `progress` is called with the fraction done.
    """
    changes: tuple[Change | None, ...] = (None, torch.zeros_like, Shuffled())
    played = []
    for index, change in enumerate(changes):
        analysed, told = AnalysedPolicy(policy, features, change), partial_progress(progress, index, len(changes))
        played.append(evaluator.play(analysed, progress=told))
    return compare(played, matches)


def compare(played: list[Evaluation], matches: int) -> Ablation:
    """Compare evaluations under each of `CONDITIONS`."""
    score = "win_rate" if "win_rate" in played[0].rows[0] else "mean_return"
    comparisons = len(played[0].rows) * (len(CONDITIONS) - 1)
    wider = NormalDist().inv_cdf(1.0 - 0.025 / comparisons) / NormalDist().inv_cdf(0.975)
    rows = []
    for index, first in enumerate(played[0].rows):
        scores = {
            condition: Interval(*(part.rows[index][key] for key in (score, f"{score}_low", f"{score}_high")))
            for condition, part in zip(CONDITIONS, played, strict=True)
        }
        losses = {name: difference(scores[CONDITIONS[0]], scores[name]) for name in CONDITIONS[1:]}
        rows.append(AblationRow(str(first["opponent"]), scores, losses))
    mean_scores = {name: _mean([row.scores[name] for row in rows]) for name in CONDITIONS}
    mean_losses = {name: _mean([row.losses[name] for row in rows]) for name in CONDITIONS[1:]}
    judged = (replace(row, losses={name: _widened(loss, wider) for name, loss in row.losses.items()}) for row in rows)
    return Ablation(score, matches, tuple(judged), AblationRow("mean", mean_scores, mean_losses))


def _widened(interval: Interval, factor: float) -> Interval:
    estimate, low, high = interval
    return Interval(estimate, estimate - factor * (estimate - low), estimate + factor * (high - estimate))


def _mean(parts: list[Interval]) -> Interval:
    """Return the mean of independent estimates; margins add in quadrature."""
    count = len(parts)
    estimate = sum(part.estimate for part in parts) / count
    low = math.sqrt(sum((part.estimate - part.low) ** 2 for part in parts)) / count
    high = math.sqrt(sum((part.high - part.estimate) ** 2 for part in parts)) / count
    return Interval(estimate, estimate - low, estimate + high)
