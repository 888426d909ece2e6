"""What a motion is, in numbers: for `ludus motion show` and its JSON."""

import numpy as np

from ludus.core.files import JSON
from ludus.envs.mimic.model import Walker
from ludus.envs.mimic.motion.motion import Motion
from ludus.envs.mimic.motion.reference import checked_stride, natural_speed_m_s, scuffing, speed_limits_m_s


def summarise(motion: Motion, walker: Walker) -> dict[str, JSON]:
    """Returns everything that can be said about a motion on a walker, ready for JSON.

    Raises:
        FormatError: The motion does not walk on this walker.
    """
    stride, mean = checked_stride(motion, walker), motion.stride
    natural = natural_speed_m_s(motion, stride)
    degrees, spread = np.rad2deg(mean.mean), np.rad2deg(mean.spread)
    joints: dict[str, JSON] = {
        name: {
            "lowest_deg": _rounded(degrees[:, index].min()),
            "highest_deg": _rounded(degrees[:, index].max()),
            "range_deg": _rounded(np.ptp(degrees[:, index])),
            "spread_deg": _rounded(np.sqrt(np.mean(spread[:, index] ** 2))),
        }
        for index, name in enumerate(mean.columns)
        if name in motion.joints
    }
    return {
        "source": str(motion.source),
        "frames": motion.frames,
        "rate_hz": _rounded(motion.rate_hz),
        "duration_s": _rounded(motion.frames / motion.rate_hz),
        "strides": mean.count,
        "strides_left_out": mean.left_out,
        "period_s": _rounded(mean.period_s),
        "period_spread_s": _rounded(mean.period_spread_s),
        "cadence_steps_min": _rounded(120.0 / mean.period_s),
        "body_height_m": walker.body.height_m,
        "stride_length_m": _rounded(stride.length_m),
        "natural_speed_m_s": _rounded(natural),
        "speed_range_m_s": [_rounded(limit) for limit in speed_limits_m_s(natural)],
        "joints": joints,
        "notes": [*motion.notes, *([said] if (said := scuffing(stride)) else [])],
    }


def _rounded(value: float) -> float:
    return round(float(value), 4)
