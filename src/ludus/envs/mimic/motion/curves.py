"""A motion as curves over the stride, for the reference that walkers follow."""

import numpy as np

from ludus.envs.mimic.gait import Floats, NormalGait
from ludus.envs.mimic.joints import SIDES
from ludus.envs.mimic.motion.motion import Motion

# In a mirror, half a stride later, these turn round.
_ODD = frozenset({"roll", "yaw", "trunk_bending", "trunk_rotation"})


class MotionCurves:
    """Fourier series of a motion's mean stride; what the file does not have is the normal gait's."""

    def __init__(self, motion: Motion, *, has_trunk: bool, symmetric: bool = False) -> None:
        """Makes curves.

        Args:
            motion: What a file held.
            has_trunk: Whether the walker's trunk moves against its pelvis.
            symmetric: Whether both sides are made alike, as their mean; without it they may differ.
        """
        self._stride, self._symmetric = motion.stride, symmetric
        self._normal = NormalGait(has_trunk=has_trunk)

    def joint(self, kind: str, side: str, phases: Floats, amplitude: float) -> Floats:
        """See `gait.Curves`."""
        other = SIDES[1 - SIDES.index(side)]
        names = [name for name in (f"{side}_{kind}", f"{other}_{kind}") if name in self._stride.columns]
        if not names:
            return self._normal.joint(kind, side, phases, amplitude)
        used = names if self._symmetric else names[:1]
        shifts = [0.0 if name.startswith(side) else 0.5 for name in used]
        curves = [self._series(name, phases + shift) for name, shift in zip(used, shifts, strict=True)]
        angles = np.mean(curves, axis=0)
        middle = np.mean([self._stride.column(name).mean() for name in used])
        sized: Floats = middle + amplitude * (angles - middle)
        return sized

    def trunk(self, kind: str, phases: Floats) -> Floats:
        """See `gait.Curves`."""
        name = kind if kind.startswith("trunk_") else f"root_{kind}"
        if name not in self._stride.columns:
            # Hips of a file that tells no pitch are taken as measured from the vertical: a lean would turn the thighs.
            return np.zeros_like(phases) if kind == "pitch" else self._normal.trunk(kind, phases)
        angles = self._series(name, phases)
        if not self._symmetric:
            return angles
        mirrored: Floats = (-1.0 if kind in _ODD else 1.0) * self._series(name, phases + 0.5)
        return 0.5 * (angles + mirrored)

    def _series(self, name: str, phases: Floats) -> Floats:
        """Returns a column's mean stride at phases `(phases,)`, exactly between its samples too."""
        column = self._stride.column(name)
        spectrum = np.fft.rfft(column) / len(column)
        spectrum[1:] *= 2.0
        turns = np.exp(2j * np.pi * np.outer(phases, np.arange(len(spectrum))))
        angles: Floats = (turns * spectrum).real.sum(axis=1)
        return angles
