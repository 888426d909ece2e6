"""Latent drift: how far and how fast an agent's features move when its opponent switches to another style."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.analysis.probe import Probe
from ludus.analysis.recording import Floats, Recording
from ludus.core.intervals import Interval, mean_interval

Array = NDArray[np.float64]

BEFORE_S, AFTER_S = 2.0, 4.0  # window around a switch; a switching bot keeps a style for at least 6 s
_SETTLED_S = 1.0  # end of the window, over which the new level is averaged
_SLOWEST_S = 20.0
_TRIED = 200  # candidate time constants


@dataclass(frozen=True, slots=True)
class SwitchPoint:
    """A sample of a recording: the first of a style, or one within a style as a control."""

    sample: int
    match: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Drift:
    """Averages around switches; curves are `(samples,)`."""

    switches: int
    times_s: Array  # relative to the switch
    distance: Array  # mean distance from the mean before the switch, in standard deviations per dimension
    distance_amid: Array  # the same within a style: how far the features wander anyway
    settled: Interval  # distance in the last second minus that within a style
    time_constant_s: float | None  # of the approach to the new level; None where there is no drift
    new_style: Array  # mean probability of the new style by the probe
    old_style: Array  # of the old one
    probe_time_constant_s: float | None  # of the rise of `new_style`; None where it does not rise

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        curves = ("times_s", "distance", "distance_amid", "new_style", "old_style")
        return {
            "switches": self.switches,
            "settled": self.settled._asdict(),
            "time_constant_s": self.time_constant_s,
            "probe_time_constant_s": self.probe_time_constant_s,
            **{name: np.round(getattr(self, name), 5).tolist() for name in curves},
        }


def measure_drift(recording: Recording, probe: Probe, style_of_bot: dict[int, int]) -> Drift | None:
    """Measure the drift around the switches of a recording; None if it has fewer than three.

    Args:
        recording: Matches against a switching bot, densely sampled.
        probe: Fitted to matches against bots that do not switch.
        style_of_bot: Maps the index of a bot in `styles_now` to a style of the probe.
    """
    step_s = float(recording.times_s[1] - recording.times_s[0])
    before, after = round(BEFORE_S / step_s), round(AFTER_S / step_s)
    switches, amid = find_switches(recording.styles_now, recording.valid, before, after)
    switches = [each for each in switches if each.before in style_of_bot and each.after in style_of_bot]
    if len(switches) < 3 or len(amid) < 3:
        return None
    features = recording.features["trained"].astype(np.float64)
    scale = features[recording.valid].std(0)
    features /= np.where(scale > 1e-9, scale, 1.0) * np.sqrt(features.shape[-1])
    moved, wandered = (_distances(features, points, before, after) for points in (switches, amid))
    last = max(1, round(_SETTLED_S / step_s))
    settled = difference(*(mean_interval(each[:, -last:].mean(1).tolist()) for each in (moved, wandered)))
    times_s: Array = (np.arange(before + after, dtype=np.float64) - before) * step_s
    # Squared distances of independent movements add up, so the wandering is subtracted in squares.
    excess = np.sqrt(np.maximum(np.square(moved).mean(0) - np.square(wandered).mean(0), 0.0))[before:]
    new, old = _probabilities(recording.features["trained"], probe, style_of_bot, switches, before, after)
    rises = new[-last:].mean() > new[:before].mean() + 0.02
    constant_s = time_constant(times_s[before:], excess) if settled.low > 0.0 else None
    probe_s = time_constant(times_s[before:], new[before:] - new[:before].mean()) if rises else None
    distances = moved.mean(0), wandered.mean(0)
    return Drift(len(switches), times_s, *distances, settled, constant_s, new, old, probe_s)


def find_switches(
    styles: NDArray[np.int64], valid: NDArray[np.bool_], before: int, after: int
) -> tuple[list[SwitchPoint], list[SwitchPoint]]:
    """Find switches with one style for `before` samples and another for `after`, and points within a style.

    `styles` are the current ones, `(samples, matches)`, and so is `valid`.
    """
    switches, amid = [], []
    for match in range(styles.shape[1]):
        length = int(valid[:, match].sum())
        row = styles[:length, match]
        edges = [0, *(np.flatnonzero(row[1:] != row[:-1]) + 1).tolist(), length]
        runs = list(pairwise(edges))
        for (start, middle), (_, stop) in pairwise(runs):
            if middle - start >= before and stop - middle >= after:
                switches.append(SwitchPoint(middle, match, int(row[start]), int(row[middle])))
        for start, stop in runs:
            if stop - start >= before + after:
                amid.append(SwitchPoint(stop - after, match, int(row[start]), int(row[start])))
    return switches, amid


def time_constant(times_s: Array, rise: Array) -> float | None:
    """Return T of the least-squares fit of `A (1 - exp(-t / T))` with A > 0; None if there is none.

    The rise is `(samples,)`, like the times since the switch.
    """
    tried = np.geomspace(max(float(times_s[1] - times_s[0]) / 2.0, 1e-3), _SLOWEST_S, _TRIED)
    shapes = 1.0 - np.exp(-times_s / tried[:, None])
    heights = shapes @ rise / np.maximum(np.square(shapes).sum(1), 1e-12)
    errors = np.square(heights[:, None] * shapes - rise).sum(1)
    best = int(np.where(heights > 0.0, errors, np.inf).argmin())
    is_bounded = heights[best] > 0.0 and best < len(tried) - 1  # a straight rise has no time constant
    return float(tried[best]) if is_bounded else None


def difference(one: Interval, other: Interval) -> Interval:
    """Return the difference of two independent estimates with Newcombe's interval."""
    gap = one.estimate - other.estimate
    low = gap - float(np.hypot(one.estimate - one.low, other.high - other.estimate))
    high = gap + float(np.hypot(one.high - one.estimate, other.estimate - other.low))
    return Interval(gap, low, high)


def _distances(features: Array, points: list[SwitchPoint], before: int, after: int) -> Array:
    """Return `(points, before + after)` distances from the mean of the samples before each point."""
    rows = []
    for point in points:
        around = features[point.sample - before : point.sample + after, point.match]
        rows.append(np.linalg.norm(around - around[:before].mean(0), axis=-1))
    return np.stack(rows)


def _probabilities(
    features: Floats, probe: Probe, styles: dict[int, int], switches: list[SwitchPoint], before: int, after: int
) -> tuple[Array, Array]:
    """Return the mean probabilities `(before + after,)` of the new and of the old style."""
    new, old = [], []
    for each in switches:
        around = features[each.sample - before : each.sample + after, each.match]
        named = np.exp(probe.log_probabilities(around))
        new.append(named[:, styles[each.after]])
        old.append(named[:, styles[each.before]])
    return np.mean(new, axis=0), np.mean(old, axis=0)
