"""Linear probes: whether a linear map of an agent's features names the opponent's style in matches it never saw."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ludus.core.errors import ConfigError
from ludus.core.intervals import Interval, mean_interval, wilson_interval

FOLDS = 4
_DECAY = 1e-3  # of the squared weights, beside the mean cross-entropy; features have deviation 1
_ITERATIONS = 60


@dataclass(frozen=True, slots=True)
class Probe:
    """Multinomial logistic regression on standardised features.

    Attributes:
        mean, scale: `(size,)` of the features.
        weight: `(size, styles)`.
        bias: `(styles,)`.
    """

    mean: Tensor
    scale: Tensor
    weight: Tensor
    bias: Tensor

    def log_probabilities(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Maps features `(..., size)` to log probabilities of the styles `(..., styles)`."""
        given = (torch.from_numpy(np.ascontiguousarray(features)).double() - self.mean) / self.scale
        found: NDArray[np.float64] = torch.log_softmax(given @ self.weight + self.bias, dim=-1).numpy()
        return found


def fit_probe(features: NDArray[np.float32], labels: NDArray[np.int64], styles: int) -> Probe:
    """Fits a probe; equal data give equal numbers.

    Args:
        features: `(rows, size)`.
        labels: `(rows,)` index of each row's style.
        styles: How many there are.
    """
    given, wanted = torch.from_numpy(np.ascontiguousarray(features)).double(), torch.from_numpy(labels)
    mean, scale = given.mean(0), given.std(0, correction=0)
    scale = torch.where(scale > 1e-9, scale, 1.0)  # what never changes says nothing
    given = (given - mean) / scale
    weight = torch.zeros((given.shape[1], styles), dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(styles, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=_ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = functional.cross_entropy(given @ weight + bias, wanted) + 0.5 * _DECAY * weight.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return Probe(mean, scale, weight.detach(), bias.detach())


def fold_by_match(labels: NDArray[np.int64], folds: int = FOLDS) -> NDArray[np.int64]:
    """Returns the fold `(matches,)` in which each match is held out; every style is spread evenly over the folds.

    Two matches in a row share a fold, since the agent's side changes from match to match.
    """
    fold = np.zeros_like(labels)
    for style in np.unique(labels):
        own = np.flatnonzero(labels == style)
        fold[own] = np.arange(len(own)) // 2 % folds
    return fold


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How well a probe names styles in matches that it was not fitted to.

    Attributes:
        frames: Share of frames that are named right, a match counted as one; the interval is over matches.
        matches: Share of matches that are named right by all their frames together.
        by_time: For each sample of time, the share of frames named right then.
        so_far: The same with all frames of the match up to then together.
        confusion: `(styles, styles)`, share of frames of the row's style that are named as the column's.
        chance: Share that is right by always naming the most frequent style.
    """

    frames: Interval
    matches: Interval
    by_time: tuple[Interval, ...]
    so_far: tuple[Interval, ...]
    confusion: NDArray[np.float64]
    chance: float


def probe_held_out(
    features: NDArray[np.float32],
    labels: NDArray[np.int64],
    valid: NDArray[np.bool_],
    styles: int,
    fold: NDArray[np.int64] | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> ProbeResult:
    """Holds out each fold of matches in turn, fits a probe to all others and asks it about those.

    Args:
        features: `(samples, matches, size)`.
        labels: `(matches,)`.
        valid: `(samples, matches)` bool, frames that count.
        styles: How many styles there are.
        fold: `(matches,)`; evenly by match if None.
        progress: Is told the share that is done.

    Raises:
        ConfigError: There are fewer than two styles, or too few matches to hold any out.
    """
    fold = fold_by_match(labels) if fold is None else fold
    counts = np.bincount(labels, minlength=styles)
    if styles < 2 or counts.min() < 3:
        raise ConfigError(
            f"a probe needs at least 2 styles with 3 matches each, got {styles} styles, {counts.min()} matches of one; "
            "play more matches"
        )
    log_probabilities = np.zeros((*valid.shape, styles))
    for number in np.unique(fold):
        held_out = fold == number
        learned = valid & ~held_out
        of_frame = np.broadcast_to(labels, valid.shape)[learned]
        probe = fit_probe(features[learned], np.ascontiguousarray(of_frame), styles)
        log_probabilities[:, held_out] = probe.log_probabilities(features[:, held_out])
        progress((float(number) + 1.0) / (float(fold.max()) + 1.0))
    return _judge(log_probabilities, labels, valid, styles)


def _judge(
    log_probabilities: NDArray[np.float64], labels: NDArray[np.int64], valid: NDArray[np.bool_], styles: int
) -> ProbeResult:
    named = log_probabilities.argmax(-1)
    right = (named == labels) & valid
    together = np.cumsum(np.where(valid[..., None], log_probabilities, 0.0), axis=0)
    right_so_far = (together.argmax(-1) == labels) & valid
    shares = right.sum(0) / np.maximum(valid.sum(0), 1)
    frames = mean_interval(shares[valid.any(0)].tolist())
    confusion = np.zeros((styles, styles))
    np.add.at(confusion, (np.broadcast_to(labels, valid.shape)[valid], named[valid]), 1.0)
    count = len(labels)
    return ProbeResult(
        frames=Interval(frames.estimate, max(frames.low, 0.0), min(frames.high, 1.0)),
        matches=wilson_interval(int((together[-1].argmax(-1) == labels).sum()), count),
        by_time=tuple(wilson_interval(int(r.sum()), int(v.sum())) for r, v in zip(right, valid, strict=True)),
        so_far=tuple(wilson_interval(int(r.sum()), int(v.sum())) for r, v in zip(right_so_far, valid, strict=True)),
        confusion=confusion / np.maximum(confusion.sum(1, keepdims=True), 1.0),
        chance=float(np.bincount(labels).max() / count),
    )
