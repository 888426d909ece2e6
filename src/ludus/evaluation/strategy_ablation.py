"""The ablation: how an agent plays with its latent as it is, zeroed, and taken from another game."""

import math
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any

import torch
from torch import Tensor

from ludus.core.intervals import Interval
from ludus.evaluation.duels import Duels, Evaluation
from ludus.evaluation.first_matches import ShareDone
from ludus.evaluation.strategy_drift import difference
from ludus.evaluation.strategy_policy import AnalysedPolicy, Change, Features
from ludus.policies.policy import Policy

CONDITIONS = ("as is", "zeroed", "shuffled")
NEEDED, HARMFUL, NO_DIFFERENCE = "helps", "harms", "no difference seen"


class Shuffled:
    """Gives every game the features of another one, the same one for as long as the same games are played."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._sources: dict[int, Tensor] = {}

    def __call__(self, features: Tensor) -> Tensor:
        """Maps `(rows, size)` to the same rows in another order, none in its own place; a row alone is zeroed."""
        rows = features.shape[0]
        if rows < 2:
            return torch.zeros_like(features)
        if rows not in self._sources:
            order = torch.randperm(rows, generator=torch.Generator().manual_seed(self._seed))
            sources = torch.empty_like(order)
            sources[order] = order.roll(1)  # one large circle leaves nobody where he is
            self._sources[rows] = sources.to(features.device)
        return features[self._sources[rows]]


@dataclass(frozen=True, slots=True)
class AblationRow:
    """How the agent did against one opponent, or on average over all.

    Attributes:
        opponent: Name; empty in a world without bots.
        scores: For each of `CONDITIONS`, the win rate, or the mean return in a world without winners.
        losses: For each but the first, the first one's score minus its own. Intervals of opponents are so wide that
            all of them hold together with 95 % (Bonferroni); those of the mean are plain ones.
    """

    opponent: str
    scores: dict[str, Interval]
    losses: dict[str, Interval]

    def verdict(self, condition: str) -> str:
        """Says what the features do for the agent, judged by the interval of what is lost without them."""
        loss = self.losses[condition]
        return NEEDED if loss.low > 0.0 else HARMFUL if loss.high < 0.0 else NO_DIFFERENCE

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {
            "opponent": self.opponent,
            "scores": {name: score._asdict() for name, score in self.scores.items()},
            "losses": {name: loss._asdict() | {"verdict": self.verdict(name)} for name, loss in self.losses.items()},
        }


@dataclass(frozen=True, slots=True)
class Ablation:
    """The ablation against every opponent.

    Attributes:
        score: What is compared, `win_rate` or `mean_return`.
        matches: Against each opponent under each condition.
        rows: One for each opponent.
        mean: Over all of them, every one counted alike.
    """

    score: str
    matches: int
    rows: tuple[AblationRow, ...]
    mean: AblationRow

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {
            "score": self.score,
            "matches": self.matches,
            "opponents": [row.as_json() for row in self.rows],
            "mean": self.mean.as_json(),
        }


def ablate(
    policy: Policy, duels: Duels, matches: int, features: Features = "latent", progress: ShareDone = lambda _: None
) -> Ablation:
    """Plays the same matches with the same seeds under each condition.

    Args:
        policy: The agent, on the device of the games.
        duels: The matches.
        matches: How many they are against each opponent.
        features: Which part of the policy is meant.
        progress: Is told the share that is done.
    """
    changes: tuple[Change | None, ...] = (None, torch.zeros_like, Shuffled())
    played = [
        duels.play(AnalysedPolicy(policy, features, change), progress=partial(_tell, progress, index))
        for index, change in enumerate(changes)
    ]
    return compare(played, matches)


def compare(played: list[Evaluation], matches: int) -> Ablation:
    """Compares evaluations under each of `CONDITIONS`."""
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
    mean = AblationRow(
        "mean",
        {name: _mean([row.scores[name] for row in rows]) for name in CONDITIONS},
        {name: _mean([row.losses[name] for row in rows]) for name in CONDITIONS[1:]},
    )
    judged = [
        AblationRow(row.opponent, row.scores, {name: _widened(loss, wider) for name, loss in row.losses.items()})
        for row in rows
    ]
    return Ablation(score, matches, tuple(judged), mean)


def _widened(interval: Interval, factor: float) -> Interval:
    estimate, low, high = interval
    return Interval(estimate, estimate - factor * (estimate - low), estimate + factor * (high - estimate))


def _mean(parts: list[Interval]) -> Interval:
    """Returns the mean of independent estimates; the ends lie as far away as their distances add up by squares."""
    count = len(parts)
    estimate = sum(part.estimate for part in parts) / count
    low = math.sqrt(sum((part.estimate - part.low) ** 2 for part in parts)) / count
    high = math.sqrt(sum((part.high - part.estimate) ** 2 for part in parts)) / count
    return Interval(estimate, estimate - low, estimate + high)


def _tell(progress: ShareDone, done: int, share: float) -> None:
    progress((done + share) / len(CONDITIONS))
