"""The gait of the package: Fourier series of normative human walking, and how it changes with speed.

Hip, knee and ankle are fitted by us to the mean curves of 15 healthy adults (Evans et al. 2024,
doi:10.15125/BATH-01258), with 3 degrees more in hip and ankle, which makes a model of rigid segments keep its feet on
the ground; the frontal plane to the values of Perry and Burnfield, *Gait Analysis* (2010). Pelvis and trunk rotation
are about 4 degrees to each side there. A series is a0, a1, b1, a2, b2, ... in degrees: the angle at phase p of the
stride, from heel contact to heel contact of the same foot, is a0 + sum a_k cos(2 pi k p) + b_k sin(2 pi k p).
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_HIP = (7.613, 20.209, -3.89, -3.76, -0.992, -0.325, 1.825, -0.156, -0.253, -0.18, 0.203, 0.265, -0.027)
_KNEE = (23.251, -2.765, -21.179, -15.112, 8.4, -0.607, 4.584, -1.007, 0.273, 0.059, 0.674, 0.501, -0.161)
_ANKLE = (4.825, -1.075, 5.611, 3.804, -6.641, -3.849, -0.319, 3.127, 0.46, 0.328, -1.836, 0.472, 0.677, 1.193, -0.314)
_ADDUCTION = (3.5, 0.231, 1.936, -0.219, -0.1, -0.594, 0.348, -0.143, -0.016)
_OBLIQUITY = (0.0, 1.449, 1.221, 0.0, 0.0, -0.254, 0.007)  # odd parts: the other half of the stride is its mirror image
_LEAN = (2.74, 0.0, 0.0, 0.463, 0.703, 0.0, 0.0, -0.006, -0.084)  # even parts: both halves are alike
_TURN = (0.0, 4.0, 0.0)  # the side whose heel strikes is in front

NORMAL_SPEED_M_S = 1.25
NORMAL_PERIOD_S = 1.10  # of a stride, for a body of 1.75 m
NORMAL_HEIGHT_M = 1.75
NORMAL_HIP_HEIGHT_M = 0.53 * NORMAL_HEIGHT_M
SPEED_RANGE_M_S = (0.7, 1.6)
# Share of a joint's excursion that grows with the length of the stride.
_GROWTH: Mapping[str, float] = MappingProxyType({"hip": 1.0, "knee": 0.4, "ankle": 0.5})


class Curves(Protocol):
    """Joint angles and the root's orientation over a stride, for the table that `reference` makes of them."""

    def joint(self, kind: str, side: str, phases: Floats, amplitude: float) -> Floats:
        """Return angles in radians of a leg's joint (such as `knee`) at each phase of a stride, `(phases,)`.

        Phases count from the right heel's contact, whatever the side. `amplitude` is the size of the steps; 1 is
        normal.
        """

    def trunk(self, kind: str, phases: Floats) -> Floats:
        """Return angles in radians of a trunk joint, or of the root: `roll`, `pitch` or `yaw`."""


class NormalGait:
    """The curves of the package, for a walker with or without a trunk that moves against the pelvis."""

    def __init__(self, *, has_trunk: bool) -> None:
        self._has_trunk = has_trunk

    def joint(self, kind: str, side: str, phases: Floats, amplitude: float) -> Floats:
        """See `Curves`; the left leg does what the right one does, half a stride later."""
        phases = phases if side == "right" else (phases + 0.5) % 1.0
        if kind == "hip_frontal":
            upright = 0.0 if self._has_trunk else 1.0  # a trunk that is one with the pelvis stays upright
            return fourier_series(_ADDUCTION, phases) - upright * fourier_series(_OBLIQUITY, phases)
        if kind == "hip_rotation":
            return -fourier_series(_TURN, phases)  # the feet point ahead while the pelvis turns
        mean, *rest = {"hip": _HIP, "knee": _KNEE, "ankle": _ANKLE}[kind]
        growth = 1.0 + _GROWTH[kind] * (amplitude - 1.0)
        angles = math.radians(mean) + growth * fourier_series((0.0, *rest), phases)
        # The trunk leans forward, and the hip's angle is between trunk and thigh.
        return angles + self.trunk("pitch", phases) if kind == "hip" else angles

    def trunk(self, kind: str, phases: Floats) -> Floats:
        """See `Curves`."""
        if not self._has_trunk:
            return fourier_series(_LEAN, phases) if kind == "pitch" else np.zeros_like(phases)
        series: Mapping[str, tuple[Sequence[float], float]] = {
            "roll": (_OBLIQUITY, -1.0),
            "pitch": ((_LEAN[0],), 0.5),
            "yaw": (_TURN, 1.0),
            "trunk_flexion": ((_LEAN[0] * 0.5, *_LEAN[1:]), 1.0),
            "trunk_bending": (_OBLIQUITY, 1.0),
            "trunk_rotation": (_TURN, -1.5),
        }
        coefficients, sign = series[kind]
        return sign * fourier_series(coefficients, phases)


def period_s(speed_m_s: float, height_m: float) -> float:
    """Return the time of a stride: steps a minute grow about as the square root of the speed (Grieve and Gear 1966).

    Larger bodies are slower, as pendulums are: at the same speed the time goes with the fourth root of the height.
    """
    relative = speed_m_s / NORMAL_SPEED_M_S
    return NORMAL_PERIOD_S * math.sqrt(math.sqrt(height_m / NORMAL_HEIGHT_M) / relative)


def fourier_series(coefficients: Sequence[float], phases: Floats) -> Floats:
    """Return the series' angles in radians at `phases` `(phases,)`."""
    turns = 2.0 * np.pi * phases
    total = np.full_like(phases, coefficients[0])
    for k in range(1, (len(coefficients) + 1) // 2):
        total += coefficients[2 * k - 1] * np.cos(k * turns) + coefficients[2 * k] * np.sin(k * turns)
    return np.deg2rad(total)
