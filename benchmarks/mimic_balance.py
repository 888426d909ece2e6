"""How hard it is to stay upright in a motion: the normal gait at several speeds, and planned ones.

    python benchmarks/mimic_balance.py [--json FILE]

*Outside*: where c is the centre of mass, z its height and g gravity, the weight rests at c - z / (g + z'') c''. A
motion in which that place lies outside the standing feet cannot be followed exactly.

*Held*: while one foot carries the body, an error to the side grows by exp(T sqrt(g / z)) in the time T of single
support. The weight can move to the outer edge of the foot and not beyond. So the largest error of the extrapolated
centre of mass, c + c' sqrt(z / g), that can be held from the beginning of a single support is the distance from the
nearest that the body comes to the middle of that foot, plus half the foot's width, divided by that growth. The next
step must be placed to this accuracy. Takes a few seconds.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import Walker, make_walker
from ludus.worlds.mimic.motion.clip import Clip, foot_points
from ludus.worlds.mimic.motion.library import ENTRIES, clip_of_stride, normal_stride
from ludus.worlds.mimic.motion.planner import centre_of_mass, plan_gait
from ludus.worlds.mimic.scoring import GRAVITY_M_S2

_SMOOTH_S = 0.02
_STRIDES = 4
_DIRECTIONS = 32  # in which the edge of the feet is sought


def pressure(walker: Walker, clip: Clip) -> Floats:
    """Return where the weight rests, `(frames, 2)`."""
    centre = centre_of_mass(walker, clip)
    width = round(_SMOOTH_S * clip.rate_hz)
    kernel = np.hanning(2 * width + 3)[1:-1]
    padded = np.pad(centre, ((width, width), (0, 0)), mode="edge")
    smooth = np.stack([np.convolve(column, kernel / kernel.sum(), mode="valid") for column in padded.T], axis=1)
    rate = np.gradient(np.gradient(smooth, axis=0), axis=0) * clip.rate_hz**2
    rests: Floats = smooth[:, :2] - smooth[:, 2:] / (GRAVITY_M_S2 + rate[:, 2:]) * rate[:, :2]
    return rests


def outside_mm(walker: Walker, clip: Clip) -> tuple[float, float]:
    """Return how far outside the standing feet the weight rests, on average, and how far the body sways, in mm."""
    angles = 2.0 * np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
    ways = np.stack((np.cos(angles), np.sin(angles)))
    points, _ = foot_points(walker, clip)
    edges = np.where(clip.contacts[:, :, None, None], points[..., :2] @ ways, -np.inf).max(axis=(1, 2))
    out = (pressure(walker, clip) @ ways - edges).max(axis=1)
    inner = np.zeros(clip.frames, dtype=bool)
    inner[clip.frames // 4 : 3 * clip.frames // 4] = True
    seen = inner & (clip.contacts.sum(axis=1) > 0)
    sway = float(np.ptp(centre_of_mass(walker, clip)[inner, 1]))
    return 1000.0 * float(np.maximum(out[seen], 0.0).mean()), 1000.0 * sway


def held_mm(walker: Walker, clip: Clip, strides: int) -> dict[str, float]:
    """Return times of support, the growth of errors to the side in a single support, and what can be held of them."""
    assert walker.body is not None
    points, _ = foot_points(walker, clip)
    middles = points[..., 1].mean(axis=2)
    centre, number = centre_of_mass(walker, clip), clip.contacts.sum(axis=1)
    period_s = clip.frames / clip.rate_hz / strides
    single_s = 0.5 * period_s * float((number == 1).mean())
    growth = float(np.exp(single_s * (GRAVITY_M_S2 / centre[:, 2].mean()) ** 0.5))
    alone = np.flatnonzero(number == 1)
    away = np.abs(centre[alone, 1] - middles[alone, clip.contacts[alone].argmax(axis=1)])
    nearest = float(np.quantile(away, 0.05))
    return {
        "period_s": period_s,
        "double_support_share": float((number == 2).mean()),
        "single_support_s": single_s,
        "growth": growth,
        "half_width_mm": 500.0 * float(np.ptp(middles.mean(axis=0))),
        "nearest_mm": 1000.0 * nearest,
        "held_mm": 1000.0 * (nearest + walker.body.foot_half_width_m) / growth,
    }


def main() -> None:
    """Print the balance of the normal gait at some speeds, and of motions that are planned."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speeds", type=float, nargs="+", default=[0.4, 0.55, 0.75, 1.0, 1.25, 1.6, 2.0])
    parser.add_argument("--motions", nargs="+", default=["walk-slow", "stroll", "backward", "march"])
    parser.add_argument("--json", type=Path)
    given: Any = parser.parse_args()
    walker = make_walker(MimicConfig())
    clips = {}
    for speed in given.speeds:
        clips[f"normal gait, {speed:g} m/s"] = clip_of_stride("normal", walker, *normal_stride(walker, speed), _STRIDES)
    for name in given.motions:
        gait = ENTRIES[name].gait
        if gait is not None:
            clips[name] = plan_gait(gait, walker, name, _STRIDES)
    rows = []
    for name, clip in clips.items():
        out, sway = outside_mm(walker, clip)
        numbers = {"outside_mm": out, "sway_mm": sway, **held_mm(walker, clip, _STRIDES)}
        rows.append({"motion": name, **numbers})
        print(name, json.dumps({key: round(value, 3) for key, value in numbers.items()}))
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
