"""Who an agent thinks it is fighting, over time: probabilities of the styles, how sure and how often right they are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ludus.analysis.behaviour import interval_json
from ludus.analysis.recording import Floats, Recording
from ludus.core.intervals import Interval, mean_interval, wilson_interval
from ludus.policies.policy import Policy

Array = NDArray[np.float64]
Classify = Callable[[Floats], Array]
"""Maps features `(..., size)` to probabilities `(..., classes)`."""

OTHERS = "another bot"  # the class of all bots that are not among the styles, in an agent's own classification
_BINS = 10
_KINDS = {"typical": 0.5, "clearest": 1.0, "most doubtful": 0.0}  # of matches shown, by quantile of the true class
_SHOWN_EVERY_S = 0.2  # of matches against a switching bot
_SWITCHING_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Bin:
    """Frames in which the likeliest style has a probability in some range."""

    frames: int
    matches: int
    said: float  # mean probability of the likeliest style
    right: Interval  # share in which it is the true one; the interval counts every match once


@dataclass(frozen=True, slots=True)
class Belief:
    """Probabilities of the styles in every match; curves are one interval per sample, for each style."""

    source: Literal["head", "probe"]  # the agent's own classification head, or the probe on held-out matches
    classes: tuple[str, ...]  # the styles, and `OTHERS` where the head knows more bots
    probabilities: Array  # `(samples, matches, classes)`
    right: Interval  # share of frames whose likeliest class is the true one, each match with equal weight
    said: float  # mean probability of the likeliest class, weighted alike
    mean: Array  # `(samples, styles, classes)`, mean over the matches of a style; NaN where none is played any more
    top: tuple[tuple[Interval, ...], ...]  # `[style][sample]`, probability of the likeliest class
    entropy_bits: tuple[tuple[Interval, ...], ...]  # likewise
    calibration: tuple[Bin, ...]
    calibration_error: float  # expected calibration error: mean absolute gap between confidence and accuracy

    def as_json(self, recording: Recording) -> dict[str, Any]:
        """Return everything as JSON values, with some matches of each style instead of all."""
        return {
            "source": self.source,
            "classes": list(self.classes),
            "right": interval_json(self.right),
            "said": self.said,
            "confusion_by_time": _numbers(self.mean),
            "top": [list(map(interval_json, row)) for row in self.top],
            "entropy_bits": [list(map(interval_json, row)) for row in self.entropy_bits],
            "calibration": [
                {"frames": each.frames, "matches": each.matches, "said": each.said, "right": interval_json(each.right)}
                for each in self.calibration
            ],
            "calibration_error": self.calibration_error,
            "matches": self._examples(recording),
        }

    def _examples(self, recording: Recording) -> list[dict[str, Any]]:
        """Return a typical match of each style, the one that is classified best, and the one that is so worst."""
        labels, valid = recording.labels, recording.valid
        true = np.take_along_axis(self.probabilities, labels[None, :, None], 2)[..., 0]
        score = np.where(valid, true, 0.0).sum(0) / np.maximum(valid.sum(0), 1)
        found = []
        for style in range(len(recording.styles)):
            own = np.flatnonzero(labels == style)
            order = own[np.argsort(score[own], kind="stable")]
            chosen: dict[int, str] = {}
            for kind, quantile in _KINDS.items():
                chosen.setdefault(int(order[round(quantile * (len(order) - 1))]), kind)
            for match, kind in chosen.items():
                kept = self.probabilities[valid[:, match], match]
                found.append({"style": style, "kind": kind, "match": match, "probabilities": _numbers(kept)})
        return found


@dataclass(frozen=True, slots=True)
class SwitchingMatch:
    """A match against a bot that switches its style."""

    opponent: str
    match: int
    times_s: Array  # `(samples,)`
    probabilities: Array  # `(samples, classes)`
    styles: tuple[tuple[float, str], ...]  # when it took up which style

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "opponent": self.opponent,
            "match": self.match,
            "times_s": np.round(self.times_s, 3).tolist(),
            "probabilities": _numbers(self.probabilities),
            "styles": [[round(start_s, 3), style] for start_s, style in self.styles],
        }


def own_classifier(policy: Policy, styles: Sequence[str]) -> tuple[tuple[str, ...], Classify] | None:
    """Return the classes and the classification head of a policy; None if it has none that tells the styles apart.

    A bot with settings counts as the bot, so two styles of one bot are one class to the head.
    """
    head, bots = policy.auxiliary_losses.get("recognition"), policy.spec.bots
    names = [style.partition(":")[0] for style in styles]
    if head is None or len(set(names)) < len(names) or not set(names) <= set(bots):
        return None
    columns = [bots.index(name) for name in names]
    others = [index for index in range(len(bots)) if index not in columns]

    @torch.no_grad()
    def classify(features: Floats) -> Array:
        latent = torch.from_numpy(features).to(policy.device)
        shares: Array = torch.softmax(head(latent, latent), -1).double().cpu().numpy()
        rest = shares[..., others].sum(-1, keepdims=True)
        return np.concatenate((shares[..., columns], rest), axis=-1) if others else shares[..., columns]

    return (*styles, OTHERS) if others else tuple(styles), classify


def describe_belief(
    source: Literal["head", "probe"],
    classes: tuple[str, ...],
    probabilities: Array,
    recording: Recording,
) -> Belief:
    """Describe probabilities `(samples, matches, classes)` over the matches of a recording."""
    labels, valid, styles = recording.labels, recording.valid, len(recording.styles)
    top, is_right = probabilities.max(-1), probabilities.argmax(-1) == labels
    counts = np.maximum(valid.sum(0), 1)
    bits = -(probabilities * np.log2(probabilities.clip(min=1e-12))).sum(-1)
    right = mean_interval((np.where(valid, is_right, 0.0).sum(0) / counts).tolist())
    bins = calibrate(top, is_right, valid)
    total = sum(each.frames for each in bins)
    return Belief(
        source=source,
        classes=classes,
        probabilities=probabilities,
        right=Interval(right.estimate, max(right.low, 0.0), min(right.high, 1.0)),
        said=float((np.where(valid, top, 0.0).sum(0) / counts).mean()),
        mean=np.stack([_means(probabilities, valid & (labels == style)) for style in range(styles)], axis=1),
        top=_curves(top, recording, (0.0, 1.0)),
        entropy_bits=_curves(bits, recording, (0.0, float(np.log2(len(classes))))),
        calibration=bins,
        calibration_error=sum(each.frames * abs(each.said - each.right.estimate) for each in bins) / max(total, 1),
    )


def calibrate(top: Array, is_right: NDArray[np.bool_], valid: NDArray[np.bool_]) -> tuple[Bin, ...]:
    """Return how often the likeliest class is right by the probability that it has, `(samples, matches)` each.

    Frames of one match resemble each other, so the interval (Wilson's) counts the matches, not the frames.
    """
    number = np.minimum((top * _BINS).astype(np.int64), _BINS - 1)
    found = []
    for index in range(_BINS):
        inside = valid & (number == index)
        frames, matches = int(inside.sum()), int(inside.any(0).sum())
        if frames == 0:
            continue
        share = float(is_right[inside].mean())
        rough = wilson_interval(round(share * matches), matches)
        right = Interval(share, min(rough.low, share), max(rough.high, share))
        found.append(Bin(frames, matches, float(top[inside].mean()), right))
    return tuple(found)


def switching_matches(
    recording: Recording, classify: Classify, bots: Sequence[str], count: int = _SWITCHING_SHOWN
) -> tuple[SwitchingMatch, ...]:
    """Return the matches against switching bots in which most switches are seen."""
    styles, valid = recording.styles_now, recording.valid
    switches = ((styles[1:] != styles[:-1]) & valid[1:]).sum(0)
    step = max(1, round(_SHOWN_EVERY_S / float(recording.times_s[1] - recording.times_s[0])))
    found = []
    for match in np.argsort(-switches, kind="stable")[:count]:
        length = int(valid[:, match].sum())
        row, times_s = styles[:length, match], recording.times_s[:length]
        starts = [0, *(np.flatnonzero(row[1:] != row[:-1]) + 1).tolist()]
        known = [start for start in starts if 0 <= row[start] < len(bots)]
        probabilities = classify(recording.features["trained"][:length:step, match])
        opponent = recording.styles[recording.labels[match]]
        truth = tuple((float(times_s[start]), bots[row[start]]) for start in known)
        found.append(SwitchingMatch(opponent, int(match), times_s[::step], probabilities, truth))
    return tuple(found)


def _means(values: Array, valid: NDArray[np.bool_]) -> Array:
    """Return the mean over valid matches of `(samples, matches, ...)`; NaN where there are none."""
    sums = np.where(valid[..., None], values, 0.0).sum(1)
    means: Array = sums / np.where(valid.any(1), valid.sum(1), np.nan)[:, None]
    return means


def _curves(
    values: NDArray[Any], recording: Recording, limits: tuple[float, float]
) -> tuple[tuple[Interval, ...], ...]:
    """Return the mean `[style][sample]` over matches of `(samples, matches)`, with intervals within the limits."""
    low, high = limits
    curves = []
    for style in range(len(recording.styles)):
        own = recording.labels == style
        curve = []
        for row, valid in zip(values[:, own], recording.valid[:, own], strict=True):
            known = row[valid]
            found = mean_interval(known.tolist()) if len(known) else Interval(np.nan, np.nan, np.nan)
            curve.append(Interval(found.estimate, max(found.low, low), min(found.high, high)))
        curves.append(tuple(curve))
    return tuple(curves)


def _numbers(values: Array) -> list[Any]:
    """Return nested lists of numbers with four digits; None for NaN."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [None if np.isnan(value) else round(float(value), 4) for value in values]
