"""How far from the standing feet the weight of a reference would have to rest: the normal gait, and planned ones.

Where c is the centre of mass, z its height and g gravity, the weight rests at c - z / (g + z'') c''. A motion in which
that place lies outside the standing feet cannot be followed exactly. Prints one line per motion, in a few seconds.
"""

import argparse
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


def main() -> None:
    """Print the balance of the normal gait at some speeds, and of motions that are planned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speeds", type=float, nargs="+", default=[0.4, 0.55, 0.75, 1.0, 1.25, 1.6, 2.0])
    parser.add_argument("--motions", nargs="+", default=["walk-slow", "backward", "march"])
    given: Any = parser.parse_args()
    walker = make_walker(MimicConfig())
    clips = {}
    for speed in given.speeds:
        clips[f"normal gait, {speed:g} m/s"] = clip_of_stride("normal", walker, *normal_stride(walker, speed), 4)
    for name in given.motions:
        gait = ENTRIES[name].gait
        if gait is not None:
            clips[name] = plan_gait(gait, walker, name, 4)
    for name, clip in clips.items():
        out, sway = outside_mm(walker, clip)
        print(f"{name:24} weight {out:6.1f} mm outside the feet, sway {sway:5.1f} mm")


if __name__ == "__main__":
    main()
