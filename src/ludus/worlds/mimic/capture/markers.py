"""Joint centres and orientations from the markers of the Plug-in Gait set.

Hips are estimated from the pelvis by the regression of Harrington et al. 2007 (doi:10.1016/j.jbiomech.2006.02.003).
Knees and ankles lie in the middle of two markers, or half a usual joint's width inside the outer one.
"""

from collections.abc import Mapping

import numpy as np

from ludus.core.errors import FormatError
from ludus.worlds.mimic.capture.c3d import fill_gaps
from ludus.worlds.mimic.capture.skeleton import Capture, unit
from ludus.worlds.mimic.gait import Floats

_KNEE_HALF_M, _ANKLE_HALF_M = 0.057, 0.045  # half an adult's joint with half a marker of 14 mm
_INNER = {"KNE": ("MKN", "KNM", "KNEM", "KMED"), "ANK": ("MMA", "ANKM", "MED", "AMED", "MAN")}
_CHEST = ("C7", "CLAV", "T10", "STRN")
_CENTRES = ("HJC", "KJC", "AJC")


def with_joint_centres(capture: Capture) -> Capture:
    """Return a recording of markers with joint centres, a pelvis and a chest, where its set of markers is known.

    Others are returned without gaps: their joints are mapped by a user.
    """
    plain = {name.rpartition(":")[2].upper(): index for index, name in enumerate(capture.names)}
    unit_m = capture.unit_m
    wanted = {"RASI", "LASI", "RKNE", "LKNE", "RANK", "LANK", "RTOE", "LTOE"}
    has_back = {"RPSI", "LPSI"} <= set(plain) or "SACR" in plain
    if not wanted <= set(plain) or not has_back or unit_m is None:
        return _filled(capture)
    at = _Markers(capture, plain)
    pelvis, hips = _pelvis(at, unit_m)
    places: dict[str, Floats] = {"pelvis": 0.5 * (hips["R"] + hips["L"])}
    turns: dict[str, Floats] = {"pelvis": pelvis}
    if all(name in plain for name in _CHEST):
        c7, clav, t10, strn = (at[name] for name in _CHEST)
        places["chest"] = 0.25 * (c7 + clav + t10 + strn)
        turns["chest"] = _frame(clav + strn - c7 - t10, c7 + clav - t10 - strn, keep_up=True)
    for side, sign in (("R", -1.0), ("L", 1.0)):
        outward = sign * pelvis[:, :, 1]
        knee = _middle(at, side, "KNE", hips[side], outward, _KNEE_HALF_M / unit_m)
        ankle = _middle(at, side, "ANK", knee, outward, _ANKLE_HALF_M / unit_m)
        for name, values in zip(_CENTRES, (hips[side], knee, ankle), strict=True):
            places[f"{side}{name}"] = at[f"{side}{name}"] if f"{side}{name}" in plain else values
        places[f"{side}TOE"] = at[f"{side}TOE"]
    names = tuple(places)
    rotations = np.broadcast_to(np.eye(3), (capture.frames, len(names), 3, 3)).copy()
    for name, values in turns.items():
        rotations[:, names.index(name)] = values
    note = "joint centres are estimated from the markers of Plug-in Gait"
    return Capture(
        capture.source, capture.kind, names, (-1,) * len(names), np.zeros((len(names), 3)), rotations,
        dict(enumerate(places.values())), capture.rate_hz, capture.rows, capture.row_name, has_rest=False,
        unit_m=unit_m, notes=(note,),
    )  # fmt: skip


class _Markers:
    """Markers by plain name, without gaps."""

    def __init__(self, capture: Capture, plain: Mapping[str, int]) -> None:
        self._capture, self.plain = capture, plain

    def __getitem__(self, name: str) -> Floats:
        return fill_gaps(self._capture, self.plain[name])


def _filled(capture: Capture) -> Capture:
    """Return a recording whose markers have no short gaps; those with long ones are left out."""
    moves = {}
    for index in range(len(capture.names)):
        try:
            moves[index] = fill_gaps(capture, index)
        except FormatError:
            moves[index] = capture.moves[index]  # an error that names the frame follows if it is needed
    return Capture(
        capture.source, capture.kind, capture.names, capture.parents, capture.offsets, None, moves, capture.rate_hz,
        capture.rows, capture.row_name, has_rest=False, unit_m=capture.unit_m, notes=capture.notes,
    )  # fmt: skip


def _frame(forward: Floats, other: Floats, *, keep_up: bool = False) -> Floats:
    """Return `(frames, 3, 3)` with columns forward, left and up; `other` is left, or up if that is kept."""
    if keep_up:
        up = unit(other)
        left = unit(np.cross(up, forward))
    else:
        left = unit(other)
        up = unit(np.cross(forward, left))
    return np.stack((np.cross(left, up), left, up), axis=2)


def _pelvis(at: _Markers, unit_m: float) -> tuple[Floats, dict[str, Floats]]:
    """Return the pelvis's orientation and the hips' centres (Harrington's regression, in mm)."""
    right, left = at["RASI"], at["LASI"]
    back = 0.5 * (at["RPSI"] + at["LPSI"]) if "RPSI" in at.plain else at["SACR"]
    front = 0.5 * (right + left)
    turn = _frame(front - back, left - right)
    to_mm = 1000.0 * unit_m
    width = to_mm * float(np.median(np.linalg.norm(left - right, axis=1)))
    depth = to_mm * float(np.median(np.linalg.norm(front - back, axis=1)))
    forward, up, out = -0.24 * depth - 9.9, -0.30 * width - 10.9, 0.33 * width + 7.3
    hips = {}
    for side, sign in (("R", -1.0), ("L", 1.0)):
        hips[side] = front + turn @ (np.array((forward, sign * out, up)) / to_mm)
    return turn, hips


def _middle(at: _Markers, side: str, name: str, above: Floats, outward: Floats, half: float) -> Floats:
    """Return a joint's centre: between its two markers, or `half` inside the outer one, across the limb above it."""
    outer = at[f"{side}{name}"]
    inner = next((f"{side}{word}" for word in _INNER[name] if f"{side}{word}" in at.plain), None)
    if inner is not None:
        middle: Floats = 0.5 * (outer + at[inner])
        return middle
    # The centre, at a right angle between the limb above it and the marker: sin(tilt) = half / distance.
    limb = unit(outer - above)
    across = unit(outward - np.einsum("fi,fi->f", outward, limb)[:, None] * limb)
    sine = half / np.maximum(np.linalg.norm(outer - above, axis=1, keepdims=True), 2.0 * half)
    centre: Floats = outer - half * (np.sqrt(1.0 - sine**2) * across + sine * limb)
    return centre
