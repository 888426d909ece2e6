"""Latent drift: how far and how fast an agent's features move when its opponent switches to another style."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.intervals import Interval, mean_interval
from ludus.evaluation.strategy_probe import Probe
from ludus.evaluation.strategy_recording import Recording

Array = NDArray[np.float64]

BEFORE_S, AFTER_S = 2.0, 4.0  # looked at around a switch; a switching bot keeps a style for at least 6 s
_SETTLED_S = 1.0  # at the end of it, in which the new level is measured
_SLOWEST_S = 20.0
_TRIED = 200  # time constants


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in a recording: the first sample of a style, or one amid a style for comparison."""

    sample: int
    match: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Drift:
    """What happens around switches; `(samples,)` each.

    Attributes:
        switches: How many were seen.
        times_s: Relative to the switch.
        distance: Mean distance from the mean of the time before, in deviations of the features a dimension.
        distance_amid: The same amid a style that goes on: how far the features wander anyway.
        settled: Distance in the last second of it minus that amid a style.
        time_constant_s: Of the way to the new level; None where no drift is seen.
        new_style, old_style: Mean probability that the probe gives to either.
        probe_time_constant_s: Of the rise of the new one; None where it does not rise.
    """

    switches: int
    times_s: Array
    distance: Array
    distance_amid: Array
    settled: Interval
    time_constant_s: float | None
    new_style: Array
    old_style: Array
    probe_time_constant_s: float | None

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        curves = ("times_s", "distance", "distance_amid", "new_style", "old_style")
        return {
            "switches": self.switches,
            "settled": self.settled._asdict(),
            "time_constant_s": self.time_constant_s,
            "probe_time_constant_s": self.probe_time_constant_s,
            **{name: np.round(getattr(self, name), 5).tolist() for name in curves},
        }


def measure_drift(recording: Recording, probe: Probe, style_of_bot: dict[int, int]) -> Drift | None:
    """Returns what happens around the switches of a recording; None if it has fewer than three.

    Args:
        recording: Matches against a switching bot, sampled closely.
        probe: Fitted to matches against bots that do not switch.
        style_of_bot: Index of a style of the probe, for the index of a bot in `styles_now`.
    """
    step_s = float(recording.times_s[1] - recording.times_s[0])
    before, after = round(BEFORE_S / step_s), round(AFTER_S / step_s)
    switches, amid = find_moments(recording.styles_now, recording.valid, before, after)
    switches = [each for each in switches if each.before in style_of_bot and each.after in style_of_bot]
    if len(switches) < 3 or len(amid) < 3:
        return None
    features = recording.features["trained"].astype(np.float64)
    scale = features[recording.valid].std(0)
    features /= np.where(scale > 1e-9, scale, 1.0) * np.sqrt(features.shape[-1])
    moved, wandered = (_distances(features, moments, before, after) for moments in (switches, amid))
    last = max(1, round(_SETTLED_S / step_s))
    settled = difference(
        mean_interval(moved[:, -last:].mean(1).tolist()), mean_interval(wandered[:, -last:].mean(1).tolist())
    )
    times_s: Array = (np.arange(before + after, dtype=np.float64) - before) * step_s
    # Squares of distances add up, so what the features wander anyway can be taken off them.
    excess = np.sqrt(np.maximum(np.square(moved).mean(0) - np.square(wandered).mean(0), 0.0))[before:]
    new, old = _probabilities(recording, probe, style_of_bot, switches, before, after)
    rises = new[-last:].mean() > new[:before].mean() + 0.02
    return Drift(
        switches=len(switches),
        times_s=times_s,
        distance=moved.mean(0),
        distance_amid=wandered.mean(0),
        settled=settled,
        time_constant_s=time_constant(times_s[before:], excess) if settled.low > 0.0 else None,
        new_style=new,
        old_style=old,
        probe_time_constant_s=time_constant(times_s[before:], new[before:] - new[:before].mean()) if rises else None,
    )


def find_moments(
    styles: NDArray[np.int64], valid: NDArray[np.bool_], before: int, after: int
) -> tuple[list[Moment], list[Moment]]:
    """Finds switches with one style for `before` samples and another for `after`, and moments amid a style.

    Args:
        styles: `(samples, matches)`, the style that is followed.
        valid: `(samples, matches)` bool.
        before: Samples that the old style must have lasted.
        after: Samples that the new one must last.
    """
    switches, amid = [], []
    for match in range(styles.shape[1]):
        length = int(valid[:, match].sum())
        row = styles[:length, match]
        edges = [0, *(np.flatnonzero(row[1:] != row[:-1]) + 1).tolist(), length]
        runs = list(pairwise(edges))
        for (start, middle), (_, stop) in pairwise(runs):
            if middle - start >= before and stop - middle >= after:
                switches.append(Moment(middle, match, int(row[start]), int(row[middle])))
        for start, stop in runs:
            if stop - start >= before + after:
                amid.append(Moment(stop - after, match, int(row[start]), int(row[start])))
    return switches, amid


def time_constant(times_s: Array, rise: Array) -> float | None:
    """Returns T of the best fit of `A (1 - exp(-t / T))` with A above 0, by squares; None if there is none.

    Args:
        times_s: `(samples,)` since the switch.
        rise: `(samples,)` what has risen since.
    """
    tried = np.geomspace(max(float(times_s[1] - times_s[0]) / 2.0, 1e-3), _SLOWEST_S, _TRIED)
    shapes = 1.0 - np.exp(-times_s / tried[:, None])
    heights = shapes @ rise / np.maximum(np.square(shapes).sum(1), 1e-12)
    errors = np.square(heights[:, None] * shapes - rise).sum(1)
    best = int(np.where(heights > 0.0, errors, np.inf).argmin())
    is_bounded = heights[best] > 0.0 and best < len(tried) - 1  # a rise that never bends has no time constant
    return float(tried[best]) if is_bounded else None


def difference(one: Interval, other: Interval) -> Interval:
    """Returns the difference of two independent estimates, its interval recovered from theirs (Newcombe's way)."""
    gap = one.estimate - other.estimate
    low = gap - float(np.hypot(one.estimate - one.low, other.high - other.estimate))
    high = gap + float(np.hypot(one.high - one.estimate, other.estimate - other.low))
    return Interval(gap, low, high)


def _distances(features: Array, moments: list[Moment], before: int, after: int) -> Array:
    """Returns `(moments, before + after)` distances from the mean of each moment's time before."""
    rows = []
    for moment in moments:
        around = features[moment.sample - before : moment.sample + after, moment.match]
        rows.append(np.linalg.norm(around - around[:before].mean(0), axis=-1))
    return np.stack(rows)


def _probabilities(
    recording: Recording,
    probe: Probe,
    style_of_bot: dict[int, int],
    switches: list[Moment],
    before: int,
    after: int,
) -> tuple[Array, Array]:
    """Returns the mean probabilities `(before + after,)` of the new and of the old style."""
    new, old = [], []
    for each in switches:
        around = recording.features["trained"][each.sample - before : each.sample + after, each.match]
        named = np.exp(probe.log_probabilities(around))
        new.append(named[:, style_of_bot[each.after]])
        old.append(named[:, style_of_bot[each.before]])
    return np.mean(new, axis=0), np.mean(old, axis=0)
