"""A video of a motion on a walker, with the recording that it was made from beside it."""

import math
from pathlib import Path

import numpy as np

from ludus.evaluation.video import VideoWriter
from ludus.worlds.mimic.capture.importing import Imported
from ludus.worlds.mimic.capture.person import bones_of
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.motion.clip import Clip
from ludus.worlds.mimic.rendering.figure import SIZE, WalkerView
from ludus.worlds.mimic.rendering.painter import GHOST_ASIDE_M, WalkerPainter

RATE_HZ = 30.0
_LONGEST_S = 60.0


def film_clip(clip: Clip, walker: Walker, path: Path, bones: Floats | None = None) -> int:
    """Write a motion as a video of at most a minute and return its frames; `bones` `(frames, lines, 2, 3)` go beside.

    Raises VideoError if nothing can be drawn here, and what `VideoWriter` raises.
    """
    seconds = min(clip.frames / clip.rate_hz, _LONGEST_S)
    times = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    positions = clip.positions()
    with WalkerPainter(walker) as painter, VideoWriter(path, SIZE, RATE_HZ) as writer:
        for time_s in times.tolist():
            frame = min(round(time_s * clip.rate_hz), clip.frames - 1)
            beside = None if bones is None else bones[frame]
            writer.write(painter.paint(WalkerView(positions[frame], None, time_s, math.nan, bones=beside)))
    return len(times)


def film_import(imported: Imported, walker: Walker, path: Path) -> int:
    """Write a walker's motion with the recording as a skeleton beside it, both with their hips at the same place."""
    capture, person, clip = imported.capture, imported.person, imported.clip
    bones = bones_of(capture, imported.roles, person.to_world)
    bones = bones - person.hips[:, None, None] * (1.0, 1.0, 0.0) + clip.root[:, None, None] * (1.0, 1.0, 0.0)
    ground = float(np.percentile(bones[..., 2].min(axis=(1, 2)), 10.0))
    return film_clip(clip, walker, path, bones + np.array((0.0, GHOST_ASIDE_M, -ground)))
