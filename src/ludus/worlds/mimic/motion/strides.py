"""Finds the strides in a motion and averages them, with phase 0 at the right heel's contact.

The time of a stride is the lag at which hips and knees are most like themselves (autocorrelation); strides are cut
where the motion is most like its own beginning, so that they may differ in length. Feet are not in the file, so heel
contact is estimated: it is where hips and knees, whatever their size, are most like those of the normal gait at its
heel contact, near the hip's largest flexion with a knee nearly straight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import FormatError
from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.gait import Floats, NormalGait

PHASES = 128
PERIOD_RANGE_S = (0.5, 2.5)  # of a stride: from running to very slow walking
_HARMONICS = 12
_SEARCH_HZ, _SEARCH_S = 100.0, 60.0  # what the search for the period looks at
_OVERLAP = 0.4  # of a stride that must be seen twice
_ALIKE = 0.25  # largest difference of two strides, where 1 is that of unrelated numbers
_NEARLY_BEST = 0.1
_SWAY = 0.15  # by which a stride may be longer or shorter than the usual one
_WINDOW, _SMALLEST_WINDOW = 0.3, 0.15  # of a stride; what is compared to find a cut
_SMOOTHER = 0.25
_UNLIKE = 0.6  # rms difference from the usual stride, in deviations, of one that is left out
_LEAST_LIKENESS = 0.3  # correlation with the normal gait; even the same film played backward has more


@dataclass(frozen=True, slots=True)
class MeanStride:
    """The average of all strides of a motion."""

    columns: tuple[str, ...]  # names of what moves
    mean: Floats  # `(PHASES, columns)` from one right heel contact to the next
    spread: Floats  # `(PHASES, columns)` standard deviation over strides; 0 if there is one
    count: int  # strides averaged
    left_out: int  # strides unlike the others
    period_s: float  # mean time of a stride
    period_spread_s: float  # its standard deviation
    first_contact: float  # frame, with its fraction, of the first right heel contact
    rate_hz: float  # frames per second

    def column(self, name: str) -> Floats:
        """Return the mean `(PHASES,)` of one column."""
        values: Floats = self.mean[:, self.columns.index(name)]
        return values

    def frame_at(self, phase: float) -> int:
        """Return the frame at a phase of the first whole stride."""
        return round(self.first_contact + phase * self.period_s * self.rate_hz)


def average_strides(source: Path, columns: Sequence[str], values: Floats, rate_hz: float) -> MeanStride:
    """Cut a motion `(frames, columns)`, hips and knees among them, into strides and average them.

    Raises FormatError, which names `source`, if it is too short, does not repeat itself or is unlike walking.
    """
    if len(values) < PERIOD_RANGE_S[0] * rate_hz:
        raise FormatError(
            f"motion file {source} is too short: {len(values)} frames at {rate_hz:.4g} Hz are "
            f"{len(values) / rate_hz:.2f} s, but a stride takes {PERIOD_RANGE_S[0]:g} to {PERIOD_RANGE_S[1]:g} s"
        )
    tracked = [index for index, name in enumerate(columns) if name in _TEMPLATES]
    signals = _standard(values[:, tracked])
    cuts = _cuts(source, signals, rate_hz)
    if cuts[-1] > len(values) - 1:  # one stride without its last frame, which is the first one
        values = np.concatenate((values, values[:1]))
    strides = np.stack([_at(values, np.linspace(start, stop, PHASES + 1)) for start, stop in pairwise(cuts)])
    alike = _alike(strides[:, :, tracked])
    usual = strides[alike]
    if 2 * len(usual) <= len(strides):
        raise _no_stride(source, "the strides found differ too much from each other")
    lengths = np.diff(cuts)[alike] / rate_hz
    shift = _heel_contact(source, [columns[index] for index in tracked], _closed(usual.mean(axis=0))[:, tracked])
    smooth = np.stack([_shifted(_closed(stride), shift, float(lengths.mean()) * rate_hz) for stride in usual])
    first = int(np.flatnonzero(alike)[0])
    return MeanStride(
        columns=tuple(columns),
        mean=smooth.mean(axis=0),
        spread=smooth.std(axis=0, ddof=1) if len(smooth) > 1 else np.zeros_like(smooth[0]),
        count=len(usual),
        left_out=len(strides) - len(usual),
        period_s=float(lengths.mean()),
        period_spread_s=float(lengths.std(ddof=1)) if len(lengths) > 1 else 0.0,
        first_contact=float(cuts[first] + shift * (cuts[first + 1] - cuts[first])),
        rate_hz=rate_hz,
    )


def _no_stride(source: Path, reason: str) -> FormatError:
    return FormatError(
        f"motion file {source}: no stride was found that repeats itself ({reason}); the file must hold steady walking: "
        "cut off standing, starting and turning, and check rate and units"
    )


def _standard(values: Floats) -> Floats:
    """Return columns with mean 0 and deviation 1; those that never move stay 0."""
    deviation = values.std(axis=0)
    standard: Floats = (values - values.mean(axis=0)) / np.where(deviation > 1e-9, deviation, np.inf)
    return standard


def _cuts(source: Path, signals: Floats, rate_hz: float) -> Floats:
    """Return the frames, with fractions, at which strides begin and end."""
    period = _period(signals, rate_hz)
    if isinstance(period, str):
        whole = _single_stride(signals, rate_hz)
        if whole is None:
            raise _no_stride(source, period)
        return np.array([0.0, whole])
    cuts = [0.0]
    while (following := _next_cut(signals, cuts[-1], period)) is not None:
        cuts.append(following)
    if len(cuts) < 2:
        raise _no_stride(source, f"one of {period / rate_hz:.2f} s does not fit into the file")
    return np.array(cuts)


def _period(signals: Floats, rate_hz: float) -> float | str:
    """Return the frames of a stride, or why there is none: the shortest lag at which signals repeat themselves."""
    every = max(1, int(rate_hz // _SEARCH_HZ))
    seen = signals[: int(_SEARCH_S * rate_hz) : every]
    rate = rate_hz / every
    lags = np.arange(
        int(PERIOD_RANGE_S[0] * rate), int(min(PERIOD_RANGE_S[1] * rate, len(seen) / (1.0 + _OVERLAP))) + 1
    )
    if len(lags) < 3:
        return f"a stride and {_OVERLAP:g} of the next one are needed"
    unlike = np.array([np.mean((seen[lag:] - seen[:-lag]) ** 2) for lag in lags])
    moving = float(np.mean(seen**2))
    if moving < 1e-6:
        return "hips and knees do not move"
    unlike /= 2.0 * moving
    inner = np.flatnonzero((unlike[1:-1] <= unlike[:-2]) & (unlike[1:-1] <= unlike[2:])) + 1
    if not len(inner):
        return "hips and knees never come back to where they were"
    least = float(unlike[inner].min())
    if least > _ALIKE:
        best = int(inner[unlike[inner].argmin()])
        return f"at best, after {lags[best] / rate:.2f} s, {100.0 * least:.0f} % of the motion is different"
    chosen = int(inner[unlike[inner] <= least + _NEARLY_BEST][0])
    return float((lags[chosen] + _vertex(*unlike[chosen - 1 : chosen + 2])) * every)


def _single_stride(signals: Floats, rate_hz: float) -> float | None:
    """Return the frames of a file that is one stride: it ends where it began, or a frame before; None if it is not."""
    if not PERIOD_RANGE_S[0] <= len(signals) / rate_hz <= PERIOD_RANGE_S[1] or len(signals) < 4 or not signals.any():
        return None
    closing = np.sqrt(np.mean((signals[-1] - signals[0]) ** 2))
    continued = np.sqrt(np.mean((2.0 * signals[-1] - signals[-2] - signals[0]) ** 2))
    if min(closing, continued) > _ALIKE:
        return None
    # Gait tables run from 0 to 100 %: the last frame repeats the first, unless numbers continue smoothly without it.
    return float(len(signals) if continued < _SMOOTHER * closing else len(signals) - 1)


def _next_cut(signals: Floats, cut: float, period: float) -> float | None:
    """Return where, about a period after `cut`, the motion is most like its beginning; None where it ends before."""
    room = len(signals) - 1 - (cut + (1.0 + _SWAY) * period)
    window = min(_WINDOW * period, room)
    if window < _SMALLEST_WINDOW * period:
        return None
    offsets = np.linspace(0.0, window, 40)
    template = _at(signals, offsets)
    lags = np.linspace(1.0 - _SWAY, 1.0 + _SWAY, 61) * period
    # All lags at once: a long file has thousands of strides, and one call per lag takes 2 ms for each.
    moved = _at(signals, (cut + lags[:, None] + offsets).reshape(-1)).reshape(len(lags), *template.shape)
    unlike = np.mean((moved - template) ** 2, axis=(1, 2))
    best = int(unlike[1:-1].argmin()) + 1
    return float(cut + lags[best] + _vertex(*unlike[best - 1 : best + 2]) * (lags[1] - lags[0]))


def _vertex(before: float, least: float, after: float) -> float:
    """Return where the parabola through three values is least, in steps from the middle one."""
    bend = before - 2.0 * least + after
    return float(np.clip(0.5 * (before - after) / bend, -0.5, 0.5)) if bend > 1e-15 else 0.0


def _at(values: Floats, frames: Floats) -> Floats:
    """Return values `(frames, columns)` at frames with fractions, by the cubic through the four nearest."""
    start = np.clip(np.floor(frames).astype(int) - 1, 0, max(len(values) - 4, 0))
    t = (frames - start)[:, None]
    weights = (
        -(t - 1.0) * (t - 2.0) * (t - 3.0) / 6.0,
        t * (t - 2.0) * (t - 3.0) / 2.0,
        -t * (t - 1.0) * (t - 3.0) / 2.0,
        t * (t - 1.0) * (t - 2.0) / 6.0,
    )
    total: Floats = sum(
        (weight * values[start + k] for k, weight in enumerate(weights)), np.zeros((1, values.shape[1]))
    )
    return total


def _alike(strides: Floats) -> NDArray[np.bool_]:
    """Return `(strides,)`, which of the strides `(strides, PHASES + 1, columns)` are like the median one."""
    usual = np.median(strides, axis=0)
    deviation = usual.std(axis=0)
    apart = (strides - usual) / np.where(deviation > 1e-9, deviation, np.inf)
    rms: Floats = np.sqrt(np.mean(apart**2, axis=(1, 2)))
    return rms < _UNLIKE


def _closed(stride: Floats) -> Floats:
    """Return `(PHASES, columns)` of `(PHASES + 1, columns)`, turned so that the end meets the beginning."""
    ramp = np.linspace(-0.5, 0.5, PHASES + 1)[:, None]
    closed: Floats = (stride - ramp * (stride[-1] - stride[0]))[:-1]
    return closed


def _shifted(stride: Floats, shift: float, frames: float) -> Floats:
    """Return periodic values `(PHASES, columns)` that begin at another phase, without what `frames` cannot tell."""
    spectrum = np.fft.rfft(stride, axis=0)
    order = np.arange(len(spectrum))[:, None]
    spectrum[int(min(_HARMONICS, frames / 2.0 - 1.0)) + 1 :] = 0.0
    return np.fft.irfft(spectrum * np.exp(2j * np.pi * order * shift), n=PHASES, axis=0)


def _templates() -> dict[str, Floats]:
    """Return hips and knees of the normal gait, `(PHASES,)` each."""
    curves, phases = NormalGait(has_trunk=False), np.arange(PHASES) / PHASES
    return {f"{side}_{kind}": curves.joint(kind, side, phases, 1.0) for side in SIDES for kind in ("hip", "knee")}


_TEMPLATES = _templates()


def _heel_contact(source: Path, names: Sequence[str], stride: Floats) -> float:
    """Return the phase of a stride `(PHASES, columns)` at which it is most like the normal gait's phase 0."""
    own = np.fft.rfft(_standard(stride), axis=0)
    normal = np.fft.rfft(_standard(np.stack([_TEMPLATES[name] for name in names], axis=1)), axis=0)
    fine = 8 * PHASES
    likeness = np.fft.irfft((own * normal.conj()).mean(axis=1), n=fine) * fine / PHASES**2
    best = int(likeness.argmax())
    if likeness[best] < _LEAST_LIKENESS:
        raise _no_stride(
            source, f"hips and knees are unlike walking, correlation {likeness[best]:.2f} with normal gait at best"
        )
    near = [-float(likeness[(best + step) % fine]) for step in (-1, 0, 1)]
    return float(((best + _vertex(*near)) / fine) % 1.0)
