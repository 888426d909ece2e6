"""A recorded person: axes, unit and facing of a file are found, and its joints become directions of body parts.

The world has x where the person faces on average, y to their left and z up, in metres. Where the skeleton's own rest
pose stands upright, the zero of pelvis, chest and feet is taken from it. Where it does not (LAFAN's bones all lie along
one axis, and markers have no rest pose), the pelvis and chest lean forward on average as those of the normal gait do,
and feet are flat while they stand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ludus.core.errors import FormatError
from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.capture.roles import MapConfig
from ludus.worlds.mimic.capture.skeleton import Capture, turns_about, unit
from ludus.worlds.mimic.gait import Floats

# Units that files have, in metres; CMU's are 1/0.45 inches. A leg, from hip to ankle, tells which: 0.55 to 1.15 m.
_UNITS: Mapping[str, float] = {"m": 1.0, "cm": 0.01, "mm": 0.001, "inch": 0.0254, "CMU's unit": 0.0254 / 0.45}
_LEG_RANGE_M = (0.55, 1.15)
_USUAL_LEG_M = 0.86
_UPRIGHT = 0.9  # least cosine between a leg of a rest pose and the vertical
_FLAT_SPEED = 0.25  # leg lengths per second, below which ankle and toe of a foot that is flat move
_PELVIS_LEAN, _CHEST_LEAN = np.deg2rad(1.4), np.deg2rad(2.7)  # forward, on average, of the normal gait
_FACING = 0.3  # least length of the mean facing direction, beyond which a motion goes somewhere


@dataclass(frozen=True, slots=True)
class Person:
    """What a recording tells about a body."""

    hips: Floats  # `(frames, 3)` middle of the hip joints in m
    pelvis: Floats  # `(frames, 3, 3)` orientation; none where it stands upright and faces x
    chest: Floats | None  # the same
    thighs: Floats  # `(frames, 2, 3)` directions from hip to knee, right and left
    shanks: Floats  # `(frames, 2, 3)` from knee to ankle
    feet: Floats  # `(frames, 2, 3)` forward along the sole
    leg_m: float  # length of thigh and shank together
    stature_m: float  # about how tall the person is
    to_world: Floats  # `(3, 3)` from places in the file to the world
    findings: Mapping[str, str]  # what was found out about the file, in words
    notes: tuple[str, ...]  # what a user should know


def person_of(capture: Capture, roles: Mapping[str, int], settings: MapConfig) -> Person:
    """Find out how a file's axes and units are meant, and turn it into directions; raise FormatError if it cannot."""
    limbs = {part: [roles[f"{side}_{part}"] for side in SIDES] for part in ("hip", "knee", "ankle", "toe")}
    places = {part: capture.trace(joints)[0] for part, joints in limbs.items()}
    _check_finite(capture, places)
    up, axis = _up(capture, places, settings.up)
    leg = _leg_length(capture, places)
    unit_m, unit_name = _unit(capture, leg, settings.unit_m)
    upright = _turn_up(up)  # the file's axes -> z up
    left = _level(places["hip"][:, 1] - places["hip"][:, 0], up)
    _check_toes(capture, places, np.cross(left, up))
    heading, notes = _heading(left @ upright.T)
    turn = heading @ upright
    rest = _rest_pose(capture, limbs)
    pelvis = _orientation(capture, roles.get("pelvis"), turn, up, places["hip"], rest, _PELVIS_LEAN)
    has_chest = "chest" in roles and capture.rotations is not None
    chest = _orientation(capture, roles["chest"], turn, up, places["hip"], rest, _CHEST_LEAN) if has_chest else None
    world = {part: unit_m * values @ turn.T for part, values in places.items()}
    feet, flat = _feet(capture, limbs, turn, world, rest, leg * unit_m)
    notes += flat
    if not rest.stands:
        notes += ("there is no upright rest pose: pelvis and chest lean on average as in the normal gait",)
    hips = world["hip"].mean(axis=1)
    findings = {
        "kind": f"{capture.kind}, {capture.frames} frames at {capture.rate_hz:.4g} Hz",
        "up axis": axis,
        "unit": f"{unit_name}, so a leg is {leg * unit_m:.2f} m long",
        "rest pose": "stands upright" if rest.stands else "none that stands",
    }
    return Person(
        hips=hips,
        pelvis=pelvis,
        chest=chest,
        thighs=world["knee"] - world["hip"],
        shanks=world["ankle"] - world["knee"],
        feet=feet,
        leg_m=leg * unit_m,
        stature_m=leg * unit_m / 0.491,  # Winter: hip to ankle is 0.491 of the height
        to_world=unit_m * turn,
        findings=findings,
        notes=(*capture.notes, *notes),
    )


@dataclass(frozen=True, slots=True)
class _Rest:
    """The pose of a skeleton without rotations, in the file's axes."""

    stands: bool
    up: Floats  # `(3,)`, which need not be up in the motion; this and the rest are of no meaning unless it stands
    forward: Floats  # `(3,)`
    soles: Floats  # `(2, 3)` where each foot points, level


def _check_finite(capture: Capture, places: Mapping[str, Floats]) -> None:
    for part, values in places.items():
        wrong = np.flatnonzero(~np.isfinite(values).all(axis=(1, 2)))
        if len(wrong):
            raise FormatError(
                f"motion file {capture.source}: {capture.place(int(wrong[0]))}: the place of a {part} is not finite"
            )


def _check_toes(capture: Capture, places: Mapping[str, Floats], forward: Floats) -> None:
    """Raise FormatError if toes point backward, where `forward` `(frames, 3)` follows from left and right."""
    along = unit((places["toe"] - places["ankle"]).mean(axis=1))
    if float(np.einsum("fi,fi->f", along, forward).mean()) < 0.0:
        raise FormatError(
            f"motion file {capture.source}: the toes point backward; left and right joints are exchanged, or the file "
            "is a mirror image: correct the joints with --write-map and --map"
        )


def _up(capture: Capture, places: Mapping[str, Floats], asked: str | None) -> tuple[Floats, str]:
    """Return the file's axis along which hips are above ankles, and its name."""
    names = ("x", "y", "z")
    if asked is not None:
        sign, index = (-1.0 if asked.startswith("-") else 1.0), names.index(asked[-1])
        return sign * np.eye(3)[index], f"{asked} (given)"
    mean = unit((places["hip"] - places["ankle"]).mean(axis=(0, 1)))
    index = int(np.abs(mean).argmax())
    if abs(mean[index]) < 0.8:
        raise FormatError(
            f"motion file {capture.source}: the legs point along ({mean[0]:.2f}, {mean[1]:.2f}, {mean[2]:.2f}) on "
            "average, which is no axis; is it someone who stands or walks? Give the axis as `up` in a map (--map)"
        )
    sign = 1.0 if mean[index] > 0.0 else -1.0
    return sign * np.eye(3)[index], f"{'-' if sign < 0 else ''}{names[index]}"


def _leg_length(capture: Capture, places: Mapping[str, Floats]) -> float:
    thigh = np.linalg.norm(places["knee"] - places["hip"], axis=2)
    shank = np.linalg.norm(places["ankle"] - places["knee"], axis=2)
    for name, lengths in (("thigh", thigh), ("shank", shank)):
        right, left = np.median(lengths, axis=0).tolist()
        if min(right, left) < 0.2 * float(np.median(thigh + shank)):
            raise FormatError(
                f"motion file {capture.source}: a {name} is {min(right, left):.3g} units long, its leg "
                f"{float(np.median(thigh + shank)):.3g}; a wrong joint is mapped: correct it with --write-map and --map"
            )
        if abs(right - left) > 0.2 * max(right, left):
            raise FormatError(
                f"motion file {capture.source}: the right {name} is {right:.3g} units long, the left one {left:.3g}; "
                "a wrong joint is mapped: correct it with --write-map and --map"
            )
    return float(np.median(thigh + shank))


def _unit(capture: Capture, leg: float, asked: float | None) -> tuple[float, str]:
    """Return metres of a unit, and what it is called."""
    low, high = _LEG_RANGE_M
    for given, origin in ((asked, "given"), (capture.unit_m, "declared in the file")):
        if given is not None:
            if not 0.3 * low <= leg * given <= 3.0 * high:
                raise FormatError(
                    f"motion file {capture.source}: with a unit of {given:g} m ({origin}) a leg is "
                    f"{leg * given:.3g} m long; correct unit_m in a map (--map)"
                )
            return given, f"{given:g} m ({origin})"
    for name, metres in _UNITS.items():
        if low <= leg * metres <= high:
            return metres, name
    return _USUAL_LEG_M / leg, "unknown"


def _turn_up(up: Floats) -> Floats:
    """Return the rotation `(3, 3)` that brings an axis to z by a quarter turn, or half of one."""
    index = int(np.abs(up).argmax())
    first, second = np.eye(3)[(index + 1) % 3], np.eye(3)[(index + 2) % 3]
    rows = (first, second, np.eye(3)[index]) if up[index] > 0.0 else (second, first, -np.eye(3)[index])
    return np.stack(rows)


def _level(vectors: Floats, up: Floats) -> Floats:
    """Return vectors `(..., 3)` without what points up, of length 1."""
    return unit(vectors - (vectors @ up)[..., None] * up)


def _heading(left: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Return the rotation about z that lets a person with this left side `(frames, 3)` face x on average."""
    forward = np.stack((left[:, 1], -left[:, 0]), axis=1)  # left x up
    mean = forward.mean(axis=0)
    notes: tuple[str, ...] = ()
    if float(np.linalg.norm(mean)) < _FACING:
        mean, notes = forward[0], ("the person turns round; x is where they face at the start",)
    cosine, sine = mean / np.linalg.norm(mean)
    return np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]]), notes


def _rest_pose(capture: Capture, limbs: Mapping[str, list[int]]) -> _Rest:
    if not capture.has_rest:
        return _Rest(False, np.zeros(3), np.zeros(3), np.zeros((2, 3)))
    hips, knees, ankles, toes = (capture.rest(limbs[part]) for part in ("hip", "knee", "ankle", "toe"))
    legs = unit((hips - ankles).mean(axis=0))
    index = int(np.abs(legs).argmax())
    up = np.sign(legs[index]) * np.eye(3)[index]
    upright = min(float(np.min(unit(upper - lower) @ up)) for upper, lower in ((hips, knees), (knees, ankles)))
    soles = _level(toes - ankles, up)
    forward = np.cross(_level(hips[1] - hips[0], up), up)
    is_long = bool((np.linalg.norm(toes - ankles, axis=1) > 1e-6).all())
    stands = upright > _UPRIGHT and is_long and bool((soles @ forward > 0.5).all())
    return _Rest(stands, up, forward, soles)


def _orientation(
    capture: Capture, joint: int | None, turn: Floats, up: Floats, hips: Floats, rest: _Rest, lean: float
) -> Floats:
    """Return the orientation `(frames, 3, 3)` in the world of a part of the body that moves with a joint.

    `lean` is how far it leans forward on average, in rad, where no rest pose tells.
    """
    left = unit(hips[:, 1] - hips[:, 0])
    leaning = turns_about(1, np.array(lean))
    if joint is None or capture.rotations is None:
        return turn @ _frames(left, np.broadcast_to(up, left.shape)) @ leaning
    turned = capture.trace([joint])[1][:, 0]
    if rest.stands:
        return turn @ turned @ np.stack((rest.forward, np.cross(rest.up, rest.forward), rest.up), axis=1)
    own_up = unit(np.einsum("fji,j->fi", turned, up).mean(axis=0))
    own_left = unit(np.einsum("fji,fj->fi", turned, left).mean(axis=0))
    oriented: Floats = turn @ turned @ _frames(own_left[None], own_up[None])[0] @ leaning
    return oriented


def _frames(left: Floats, up: Floats) -> Floats:
    """Return `(frames, 3, 3)` with columns forward, left and up; `up` is kept, and left made to fit."""
    forward = unit(np.cross(left, up))
    return np.stack((forward, np.cross(up, forward), up), axis=2)


def _feet(
    capture: Capture,
    limbs: Mapping[str, list[int]],
    turn: Floats,
    world: Mapping[str, Floats],
    rest: _Rest,
    leg_m: float,
) -> tuple[Floats, tuple[str, ...]]:
    """Return where soles point, `(frames, 2, 3)`, and remarks."""
    if rest.stands and capture.rotations is not None:
        turned = capture.trace(limbs["ankle"])[1]
        soles: Floats = np.einsum("ij,fnjk,nk->fni", turn, turned, rest.soles)
        return soles, ()
    along = unit(world["toe"] - world["ankle"])
    rise = np.arcsin(np.clip(along[..., 2], -1.0, 1.0))
    speeds = [
        np.linalg.norm(np.gradient(world[part], 1.0 / capture.rate_hz, axis=0), axis=2) for part in ("ankle", "toe")
    ]
    flat = np.maximum(*speeds) < _FLAT_SPEED * leg_m
    # Of the plane of shank and foot, which are never along each other: to the left, and up from the foot.
    axis = unit(np.cross(along, world["ankle"] - world["knee"]))
    above = np.cross(along, axis)
    soles, notes = np.empty_like(along), []
    for foot, side in enumerate(SIDES):
        if flat[:, foot].sum() >= 3:
            zero = float(np.median(rise[flat[:, foot], foot]))
        else:
            zero = float(np.percentile(rise[:, foot], 60.0))
            notes.append(f"the {side} foot is never still and flat; its usual angle is taken as flat")
        soles[:, foot] = np.cos(zero) * along[:, foot] - np.sin(zero) * above[:, foot]
    return soles, tuple(notes)


def bones_of(capture: Capture, roles: Mapping[str, int], to_world: Floats) -> Floats:
    """Return what to draw of a recording in the world, the ends of lines `(frames, lines, 2, 3)`.

    They are all bones of a skeleton, or what joins the parts of a set of markers.
    """
    if capture.has_rest:
        joints = list(range(len(capture.names)))
        lines = [(parent, joint) for joint, parent in enumerate(capture.parents) if parent >= 0]
        lines = [line for line in lines if capture.moves.get(line[1]) is not None or capture.offsets[line[1]].any()]
    else:
        joints = sorted(set(roles.values()))
        legs = [[roles[f"{side}_{part}"] for part in ("hip", "knee", "ankle", "toe")] for side in SIDES]
        lines = [pair for leg in legs for pair in pairwise(leg)]
        lines.append((roles["right_hip"], roles["left_hip"]))
        lines += [(roles["pelvis"], roles["chest"])] if "pelvis" in roles and "chest" in roles else []
    places = capture.trace(joints)[0] @ to_world.T
    index = {joint: number for number, joint in enumerate(joints)}
    return np.stack([places[:, [index[first], index[last]]] for first, last in lines], axis=1)
