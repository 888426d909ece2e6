"""A recorded motion as its file gives it: named joints or markers, and where they are in every frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ludus.worlds.mimic.gait import Floats

MAX_JOINTS = 400  # a body with all fingers has about 80, a large marker set 150
MAX_NUMBERS = 6_000_000  # in all frames together: 20 minutes of 24 joints at 60 Hz


@dataclass(frozen=True, slots=True)
class Capture:
    """A recorded motion in the units and axes of its file; markers are joints without parents or rotations."""

    source: Path
    kind: str  # of file: BVH, AMASS or C3D
    names: tuple[str, ...]
    parents: tuple[int, ...]  # index of each joint's parent, which comes before it; -1 for none
    offsets: Floats  # `(joints, 3)` from the parent
    rotations: Floats | None  # `(frames, joints, 3, 3)` relative to the parent
    moves: Mapping[int, Floats]  # joint -> `(frames, 3)`, what replaces its offset
    rate_hz: float
    rows: Sequence[int]  # where each frame is in the file
    row_name: str  # name of such a location in the file: `line` or `frame`
    # Whether all joints together, without rotations, make a body; markers have no such pose.
    has_rest: bool
    unit_m: float | None = None  # metres of a unit, where the file says so
    notes: tuple[str, ...] = ()  # what a user should know about how the file was read

    @property
    def frames(self) -> int:
        """Number of frames."""
        return len(self.rows)

    def place(self, frame: int) -> str:
        """Return the location of a frame in the file."""
        return f"{self.row_name} {self.rows[frame]}"

    def cut(self, start: int, stop: int) -> "Capture":
        """Return the frames from `start` to before `stop`."""
        rotations = None if self.rotations is None else self.rotations[start:stop]
        moves = {joint: values[start:stop] for joint, values in self.moves.items()}
        return Capture(
            self.source, self.kind, self.names, self.parents, self.offsets, rotations, moves, self.rate_hz,
            self.rows[start:stop], self.row_name, self.has_rest, self.unit_m, self.notes,
        )  # fmt: skip

    def trace(self, joints: Sequence[int]) -> tuple[Floats, Floats]:
        """Return positions `(frames, joints, 3)` and orientations `(frames, joints, 3, 3)` of joints in the world."""
        places: dict[int, Floats] = {}
        turns: dict[int, Floats] = {}
        needed = {joint for asked in joints for joint in self._line(asked)}
        for joint in sorted(needed):
            parent = self.parents[joint]
            offset = self.moves.get(joint, np.broadcast_to(self.offsets[joint], (self.frames, 3)))
            turn = (
                np.broadcast_to(np.eye(3), (self.frames, 3, 3)) if self.rotations is None else self.rotations[:, joint]
            )
            if parent < 0:
                places[joint], turns[joint] = offset, turn
            else:
                places[joint] = places[parent] + np.einsum("fij,fj->fi", turns[parent], offset)
                turns[joint] = turns[parent] @ turn
        return np.stack([places[joint] for joint in joints], 1), np.stack([turns[joint] for joint in joints], 1)

    def rest(self, joints: Sequence[int]) -> Floats:
        """Return the positions `(joints, 3)` of joints where no joint is rotated."""
        rows = []
        for joint in joints:
            line = [part for part in self._line(joint) if self.parents[part] >= 0]
            means = [np.median(self.moves[part], axis=0) if part in self.moves else self.offsets[part] for part in line]
            rows.append(np.sum(means, axis=0) if means else np.zeros(3))
        return np.stack(rows)

    def _line(self, joint: int) -> list[int]:
        """Return a joint and all its ancestors."""
        line = [joint]
        while self.parents[line[-1]] >= 0:
            line.append(self.parents[line[-1]])
        return line


def turns_about(axis: int, angles: Floats) -> Floats:
    """Return rotations `(..., 3, 3)` about x, y or z (0, 1, 2) by angles `(...)` in rad."""
    turns = np.zeros((*angles.shape, 3, 3))
    cosines, sines = np.cos(angles), np.sin(angles)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    turns[..., axis, axis] = 1.0
    turns[..., first, first] = turns[..., second, second] = cosines
    turns[..., second, first], turns[..., first, second] = sines, -sines
    return turns


def turns_of_vectors(vectors: Floats) -> Floats:
    """Return rotations `(..., 3, 3)` of axis-angle vectors `(..., 3)` in rad (Rodrigues' formula)."""
    angles = np.linalg.norm(vectors, axis=-1)[..., None, None]
    x, y, z = np.moveaxis(vectors / np.maximum(angles[..., 0], 1e-12), -1, 0)
    zero = np.zeros_like(x)
    cross = np.stack((zero, -z, y, z, zero, -x, -y, x, zero), axis=-1).reshape(*x.shape, 3, 3)
    turns: Floats = np.eye(3) + np.sin(angles) * cross + (1.0 - np.cos(angles)) * (cross @ cross)
    return turns


def unit(vectors: Floats) -> Floats:
    """Return vectors `(..., 3)` with length 1; those without a length stay 0."""
    scaled: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return scaled
