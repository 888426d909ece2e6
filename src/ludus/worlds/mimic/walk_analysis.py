"""Numbers of a recorded walk as gait laboratories give them: times and lengths of steps, symmetry, clearance, curves.

Everything is computed from what `WalkRecord` holds, whoever walked. A number that a walk does not define, such as the
asymmetry of a walk of one step, is None.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.norms import Band
from ludus.worlds.mimic.scoring import GRAVITY_M_S2

CURVE_POINTS = 101  # of a curve over the stride: 0 to 100 %
UNITS: Mapping[str, str] = {
    "strides": "", "speed_m_s": "m/s", "cadence_steps_min": "steps/min", "stride_time_s": "s", "stride_length_m": "m",
    "step_width_m": "m", "step_time_right_s": "s", "step_time_left_s": "s", "step_length_right_m": "m",
    "step_length_left_m": "m", "stance_share": "of the stride", "double_support_share": "of the stride",
    "toe_clearance_mm": "mm", "cost_of_transport": "J / (N m)", "step_time_asymmetry": "%",
    "step_length_asymmetry": "%", "stance_asymmetry": "%", "stride_time_variation": "%",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WalkRecord:
    """One walk, sampled at an even rate; feet are the right one, then the left one.

    Attributes:
        rate_hz: Samples per second.
        joints: Names of the joints, such as `right_knee`.
        angles_deg: `(samples, joints)`.
        down: `(samples, 2)` bool, whether a foot is on the ground.
        strikes: `(samples, 2)` bool, whether it came down in this sample.
        heels_m: `(samples, 2, 3)` heels: forward, left, up.
        toes_m: `(samples, 2, 3)` balls of the feet, at the end of the sole.
        hips_m: `(samples, 3)` the hips.
        energy_j: `(samples,)` work of all joints, whatever its sign.
        mass_kg: Mass of the walker.
        trunk_lean_deg: Mean forward lean of the trunk, from which hips are measured.
    """

    rate_hz: float
    joints: tuple[str, ...]
    angles_deg: Floats
    down: NDArray[np.bool_]
    strikes: NDArray[np.bool_]
    heels_m: Floats
    toes_m: Floats
    hips_m: Floats
    energy_j: Floats
    mass_kg: float
    trunk_lean_deg: float = 0.0


@dataclass(frozen=True, slots=True)
class GaitNumbers:
    """Numbers of one walk, or means over walks; units are in `UNITS`.

    Attributes:
        strides: Whole strides of the right foot.
        speed_m_s: Distance forward over time.
        cadence_steps_min: Steps per minute, between the first and the last strike.
        stride_time_s: From a strike to the next one of the same foot.
        stride_length_m: How far the heel is ahead by then.
        step_width_m: Distance of both heels across the way, at a strike.
        step_time_right_s: From a strike of the left foot to the next one of the right foot.
        step_time_left_s: The other way round.
        step_length_right_m: How far the right heel is in front of the left one as it strikes.
        step_length_left_m: The other way round.
        stance_share: Share of the stride for which a foot is on the ground.
        double_support_share: Share of the stride for which both are.
        toe_clearance_mm: How high the ball of the foot is over the lowest place of its stance, at the lowest point of
            the middle half of its swing.
        cost_of_transport: Work per weight and distance.
        step_time_asymmetry: Difference of right and left over their mean (Robinson et al. 1987), without sign.
        step_length_asymmetry: Likewise.
        stance_asymmetry: Likewise, of times on the ground.
        stride_time_variation: Standard deviation over the mean.
    """

    strides: float
    speed_m_s: float | None = None
    cadence_steps_min: float | None = None
    stride_time_s: float | None = None
    stride_length_m: float | None = None
    step_width_m: float | None = None
    step_time_right_s: float | None = None
    step_time_left_s: float | None = None
    step_length_right_m: float | None = None
    step_length_left_m: float | None = None
    stance_share: float | None = None
    double_support_share: float | None = None
    toe_clearance_mm: float | None = None
    cost_of_transport: float | None = None
    step_time_asymmetry: float | None = None
    step_length_asymmetry: float | None = None
    stance_asymmetry: float | None = None
    stride_time_variation: float | None = None


class JointSymmetry(NamedTuple):
    """How alike the joints of both sides move, the left one half a stride later."""

    difference_deg: float  # root mean square over the stride
    correlation: float | None  # of both curves; None if one of them is constant


class NormDistance(NamedTuple):
    """How far a curve is from a published band."""

    rms_deg: float  # root mean square distance from the mean
    rms_deviations: float  # the same in standard deviations
    share_within: float  # share of the stride within one standard deviation
    share_within_two: float  # and within two
    lag_percent: float  # by how much of the stride the curve is later than the mean, where both are most alike
    rms_without_lag_deg: float  # root mean square distance there


def asymmetry_percent(right: float | None, left: float | None) -> float | None:
    """Return 100 |right - left| over their mean; None where it is not defined."""
    if right is None or left is None or abs(right + left) < 1e-9:
        return None
    return abs(100.0 * (right - left) / (0.5 * (right + left)))


def measure_walk(walk: WalkRecord) -> GaitNumbers:
    """Return the numbers of one walk."""
    samples = [np.flatnonzero(walk.strikes[:, foot]) for foot in (0, 1)]
    everything = np.sort(np.concatenate(samples))
    strides = [np.diff(each) / walk.rate_hz for each in samples]
    times = [_step_times(samples[1 - foot], samples[foot], walk.rate_hz) for foot in (0, 1)]
    lengths = [walk.heels_m[samples[foot], foot, 0] - walk.heels_m[samples[foot], 1 - foot, 0] for foot in (0, 1)]
    stance = [_in_strides(walk.down[:, foot], samples[foot]) for foot in (0, 1)]
    stance_s = [
        None if share is None or stride is None else share * stride
        for share, stride in zip(stance, map(_mean, strides), strict=True)
    ]
    both = [_in_strides(walk.down[:, 0] & walk.down[:, 1], samples[foot]) for foot in (0, 1)]
    apart = np.abs(walk.heels_m[everything, 0, 1] - walk.heels_m[everything, 1, 1])
    clearances = [_clearances(walk, foot) for foot in (0, 1)]
    ahead = [np.diff(walk.heels_m[samples[foot], foot, 0]) for foot in (0, 1)]
    seconds, distance = (len(walk.hips_m) - 1) / walk.rate_hz, float(walk.hips_m[-1, 0] - walk.hips_m[0, 0])
    span_s = float(everything[-1] - everything[0]) / walk.rate_hz if len(everything) > 1 else 0.0
    stride_s = np.concatenate(strides)
    step_times, step_lengths = [_mean(each) for each in times], [_mean(each) for each in lengths]
    return GaitNumbers(
        strides=float(len(strides[0])),
        speed_m_s=distance / seconds if seconds > 0.0 else None,
        cadence_steps_min=60.0 * (len(everything) - 1) / span_s if span_s > 0.0 else None,
        stride_time_s=_mean(stride_s),
        stride_length_m=_mean(np.concatenate(ahead)),
        step_width_m=_mean(apart),
        step_time_right_s=step_times[0],
        step_time_left_s=step_times[1],
        step_length_right_m=step_lengths[0],
        step_length_left_m=step_lengths[1],
        stance_share=mean_known(stance),
        double_support_share=mean_known(both),
        toe_clearance_mm=_mean(1000.0 * np.concatenate(clearances)),
        cost_of_transport=(
            float(walk.energy_j.sum()) / (walk.mass_kg * GRAVITY_M_S2 * distance) if distance > 0.1 else None
        ),
        step_time_asymmetry=asymmetry_percent(*step_times),
        step_length_asymmetry=asymmetry_percent(*step_lengths),
        stance_asymmetry=asymmetry_percent(*stance_s),
        stride_time_variation=100.0 * float(stride_s.std() / stride_s.mean()) if len(stride_s) > 1 else None,
    )


def mean_numbers(walks: Sequence[GaitNumbers]) -> GaitNumbers:
    """Return the mean of each number over the walks that define it."""
    rows = [asdict(walk) for walk in walks]
    means = {name: mean_known([row[name] for row in rows]) for name in rows[0] if name != "strides"}
    return GaitNumbers(sum(walk.strides for walk in walks), **means)


def stride_curves(walk: WalkRecord, joint: str, foot: int) -> Floats:
    """Return the angles of a joint over each stride of a foot, `(strides, CURVE_POINTS)` in degrees."""
    column = walk.angles_deg[:, walk.joints.index(joint)]
    strikes = np.flatnonzero(walk.strikes[:, foot])
    at = [np.linspace(start, stop, CURVE_POINTS) for start, stop in pairwise(strikes)]
    curves = [np.interp(places, np.arange(len(column)), column) for places in at]
    return np.array(curves).reshape(-1, CURVE_POINTS)


def joint_band(walks: Sequence[WalkRecord], kind: str, side: str) -> Band | None:
    """Return mean and deviation of a joint over all strides of its own side; None without a stride."""
    curves = np.concatenate([stride_curves(walk, f"{side}_{kind}", SIDES.index(side)) for walk in walks])
    return Band(curves.mean(axis=0), curves.std(axis=0)) if len(curves) else None


def joint_symmetry(walks: Sequence[WalkRecord], kind: str) -> JointSymmetry | None:
    """Compare the joints of both sides over strides of the right foot, the left curve moved by half a stride.

    Sides that do the same at times that are not half a stride apart are not symmetric. None without a stride.
    """
    curves = [np.concatenate([stride_curves(walk, f"{side}_{kind}", 0) for walk in walks]) for side in SIDES]
    if not len(curves[0]):
        return None
    right, left = (each.mean(axis=0)[:-1] for each in curves)  # the last point is the first of the next stride
    left = np.roll(left, (CURVE_POINTS - 1) // 2)
    difference = float(np.sqrt(np.mean((right - left) ** 2)))
    is_constant = min(float(right.std()), float(left.std())) < 1e-9
    return JointSymmetry(difference, None if is_constant else float(np.corrcoef(right, left)[0, 1]))


def norm_distance(curve: Floats, band: Band) -> NormDistance:
    """Return how far a curve over the stride is from a band at the same phases, of which the last is the first again.

    A curve that is right but early or late is far from the band: the lag tells how much of the distance is time.
    """
    off = curve - band.mean
    points = len(curve) - 1
    lags = np.arange(-(points // 2), points - points // 2)
    moved = [float(np.sqrt(np.mean((np.roll(curve[:-1], -lag) - band.mean[:-1]) ** 2))) for lag in lags]
    best = int(np.argmin(moved))
    scaled = np.abs(off) / band.deviation
    return NormDistance(
        float(np.sqrt(np.mean(off**2))),
        float(np.sqrt(np.mean(scaled**2))),
        float(np.mean(scaled <= 1.0)),
        float(np.mean(scaled <= 2.0)),
        100.0 * float(lags[best]) / points,
        moved[best],
    )


def mean_known(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are known; None if there are none."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return sum(known) / len(known) if known else None


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _step_times(others: NDArray[np.int64], own: NDArray[np.int64], rate_hz: float) -> Floats:
    """Return the times from the last strike of the other foot to each strike of a foot; its own between spoil it."""
    times = []
    for place, strike in enumerate(own):
        before = others[others < strike]
        if len(before) and (place == 0 or own[place - 1] < before[-1]):
            times.append((strike - before[-1]) / rate_hz)
    return np.array(times)


def _in_strides(flags: NDArray[np.bool_], strikes: NDArray[np.int64]) -> float | None:
    """Return for which share of whole strides something is true."""
    return float(flags[strikes[0] : strikes[-1]].mean()) if len(strikes) > 1 else None


def _clearances(walk: WalkRecord, foot: int) -> Floats:
    """Return the clearance in m of every whole swing of a foot."""
    down, height = walk.down[:, foot], walk.toes_m[:, foot, 2]
    edges = np.flatnonzero(np.diff(down.astype(np.int8))) + 1
    found = []
    for start, stop in pairwise(edges):
        if down[start] or stop - start < 4:
            continue
        quarter = (stop - start) // 4
        before = slice(max(0, start - 2 * (stop - start)), start)  # the stance that the swing follows
        found.append(float(height[start + quarter : stop - quarter].min() - height[before][down[before]].min()))
    return np.array(found)
