"""Put a recorded person's motion onto a walker: the same directions of limbs, then feet that stand where they stand.

1. Joint angles follow from the directions of the person's limbs, whatever their lengths.
2. The hips move as the person's, scaled by the length of the legs; where a foot stands, they are corrected in height so
   that it touches the ground, and along the way so that it does not slide.
3. What two feet on the ground and limbs of other proportions leave is taken out by inverse kinematics: each foot is
   moved to where it stands from when it comes down to when it leaves, and softly in between. A nearly straight knee
   turns by 3 degrees for every millimetre, so only what exceeds `FLOAT_M` and `SLIDE_M` is taken out.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.capture.legs import angles_of_directions, angles_of_place, ankle_place, bend_axis
from ludus.worlds.mimic.capture.person import Person
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.motion.clip import (
    Clip,
    carried,
    foot_points,
    hips_of,
    leg_size,
    stances,
    turn_angles,
    turn_matrices,
)

FLOAT_M = 0.006  # height of a standing foot over the ground that stays
SLIDE_M = 0.005  # way of a standing foot from its middle place that stays
_SINK_M = 0.001  # depth of a foot in the ground that stays
# Height over the ground, and speed of its lowest point, below which a foot stands, each time hips are placed better.
_NEAR_M, _STILL_M_S = (0.045, 0.015, FLOAT_M), (0.45, 0.45, 0.30)
_SMOOTH_S = (0.15, 0.012)  # deviations of the Gaussians that smooth the corrections of the hips in between
_SHORTEST_S = 0.07  # of a stance, and of a time between two
_TAKE_OFF_S = 0.04  # in which a foot takes off before a flight, or lands after it
_NOISE_S = 0.02  # of that which smooths the speeds of feet: recordings are noisy
_LOWERED_S = 0.04  # of that which smooths lowering the hips
_LIFTED = np.array((0.0, 0.0, 10.0))  # above all others, so that it carries nothing
_ROUNDS = 3  # of inverse kinematics: lowering a foot changes which of its points carries


def retarget(person: Person, walker: Walker, rate_hz: float, name: str) -> Clip:
    """Return a person's motion on a walker."""
    has_trunk = any(joint.segment == "upper" for joint in walker.joints)
    base = person.pelvis if has_trunk or person.chest is None else person.chest
    columns = _leg_angles(person, walker, base)
    if has_trunk:
        columns |= _trunk_angles(person)
    names = tuple(joint.name for joint in walker.joints)
    limits = np.deg2rad([joint.range_deg for joint in walker.joints])
    angles = np.stack([columns[joint] for joint in names], axis=1).clip(limits[:, 0], limits[:, 1])
    scale = (leg_size(walker).thigh_m + leg_size(walker).shank_m) / person.leg_m
    root = scale * (person.hips - person.hips[0] * (1.0, 1.0, 0.0))
    frames = len(angles)
    clip = Clip(
        name, names, angles, root, turn_angles(base), np.zeros((frames, 2), dtype=bool), np.zeros((frames, 2)),
        rate_hz, is_cyclic=False,
    )  # fmt: skip
    points, _ = foot_points(walker, clip)
    ground = float(np.percentile(points[..., 2].min(axis=(1, 2)), 10.0))
    clip = _find_contacts(walker, replace(clip, root=clip.root - (0.0, 0.0, ground)), 0)
    for stage, smooth_s in enumerate(_SMOOTH_S):
        clip = _find_contacts(walker, _place_root(walker, clip, smooth_s), stage + 1)
    for _ in range(_ROUNDS):
        clip = plant_feet(walker, clip)
    return clip


def _leg_angles(person: Person, walker: Walker, base: Floats) -> dict[str, Floats]:
    has_rotation = any(joint.name.endswith("hip_rotation") for joint in walker.joints)
    columns = {}
    for foot, side in enumerate(SIDES):
        parts = [np.einsum("fji,fj->fi", base, part[:, foot]) for part in (person.thighs, person.shanks, person.feet)]
        thigh, shank, sole = parts
        for kind, values in angles_of_directions(thigh, shank, sole, side, has_rotation=has_rotation).items():
            columns[f"{side}_{kind}"] = values
    return columns


def _trunk_angles(person: Person) -> dict[str, Floats]:
    """Return the trunk's angles against the pelvis: Ry(flexion) Rx(bending) Rz(rotation); 0 without a chest."""
    if person.chest is None:
        return {f"trunk_{kind}": np.zeros(len(person.hips)) for kind in ("flexion", "bending", "rotation")}
    turn = np.swapaxes(person.pelvis, 1, 2) @ person.chest
    return {
        "trunk_flexion": np.arctan2(turn[:, 0, 2], turn[:, 2, 2]),
        "trunk_bending": np.arcsin(np.clip(-turn[:, 1, 2], -1.0, 1.0)),
        "trunk_rotation": np.arctan2(turn[:, 1, 0], turn[:, 1, 1]),
    }


def _find_contacts(walker: Walker, clip: Clip, stage: int) -> Clip:
    """Return the clip with when its feet stand; `stage` counts how often the hips were placed before."""
    points, _ = foot_points(walker, clip)
    lowest = points[..., 2].min(axis=2)
    moved = carried(points).reshape(clip.frames - 1, -1) * clip.rate_hz
    moved = _smooth(np.concatenate((moved[:1], 0.5 * (moved[1:] + moved[:-1]), moved[-1:])), clip.rate_hz, _NOISE_S)
    speeds = np.linalg.norm(moved.reshape(clip.frames, len(SIDES), 2), axis=2)
    standing = (lowest < _NEAR_M[stage]) & (speeds < _STILL_M_S[stage])
    shortest = max(1, round(_SHORTEST_S * clip.rate_hz))
    contacts = np.stack([_lasting(standing[:, foot], shortest) for foot in range(2)], axis=1)
    return replace(clip, contacts=contacts)


def _lasting(standing: NDArray[np.bool_], shortest: int) -> NDArray[np.bool_]:
    """Return `(frames,)` bool without gaps and stances that are too short."""
    filled = standing.copy()
    for value in (False, True):
        for start, stop in stances(filled == value):
            if stop - start < shortest and start > 0 and stop < len(filled):
                filled[start:stop] = not value
    return filled


def _place_root(walker: Walker, clip: Clip, smooth_s: float) -> Clip:
    """Return the clip with hips as high and as fast as standing feet demand; in flight they follow the person's."""
    points, _ = foot_points(walker, clip)
    times = np.arange(clip.frames)
    standing = _between_flights(clip.contacts.sum(axis=1) > 0, max(1, round(_TAKE_OFF_S * clip.rate_hz)))
    if not standing.any():
        return clip
    lowest = np.where(clip.contacts, points[..., 2].min(axis=2), np.inf).min(axis=1)
    rise = np.interp(times, times[standing], -lowest[standing])
    held = standing[1:] & standing[:-1]
    steps = np.zeros((clip.frames, 2))
    if held.any():
        # The lower foot carries, as the lower point of a foot does.
        flat = np.where(clip.contacts[:, :, None, None], points, points + _LIFTED).reshape(clip.frames, 1, -1, 3)
        slip = carried(flat)[:, 0]
        for axis in range(2):
            steps[1:, axis] = np.interp(times[1:], times[1:][held], -slip[held, axis])
    smooth = [_smooth(values, clip.rate_hz, smooth_s) for values in (steps, rise[:, None])]
    return replace(clip, root=clip.root + np.concatenate((smooth[0].cumsum(axis=0), smooth[1]), axis=1))


def _between_flights(standing: NDArray[np.bool_], margin: int) -> NDArray[np.bool_]:
    """Return `(frames,)` bool without the ends of what stands: a foot that takes off or lands tells no height."""
    inner = np.zeros_like(standing)
    for start, stop in stances(standing):
        first = start if start == 0 else start + margin
        inner[first : stop if stop == len(standing) else stop - margin] = True
    return inner


def _smooth(values: Floats, rate_hz: float, deviation_s: float) -> Floats:
    """Return values `(frames, columns)` smoothed by a Gaussian; the ends are continued."""
    reach = max(1, round(3.0 * deviation_s * rate_hz))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / (deviation_s * rate_hz)) ** 2)
    kernel /= kernel.sum()
    padded = np.pad(values, ((reach, reach), (0, 0)), mode="edge")
    columns = [np.convolve(column, kernel, mode="valid") for column in padded.T]
    return np.stack(columns, axis=1)


def plant_feet(walker: Walker, clip: Clip) -> Clip:
    """Return the clip with feet moved by inverse kinematics so that they stand still, on the ground, where they stand.

    No foot is below the ground. Hips are lowered where a leg is too short.
    """
    points, ankles = foot_points(walker, clip)
    moved = carried(points)
    lowest = points[..., 2].min(axis=2) - clip.floor_m
    shifts = np.stack(
        [_shift(clip.contacts[:, foot], moved[:, foot], lowest[:, foot]) for foot in range(len(SIDES))], axis=1
    )
    return place_ankles(walker, clip, ankles + shifts)


def place_ankles(walker: Walker, clip: Clip, targets: Floats) -> Clip:
    """Return the clip with its ankles at `targets` `(frames, 2, 3)` in the world, soles turned as they were."""
    root = clip.root - np.stack((*np.zeros((2, clip.frames)), _too_far(walker, clip, targets)), axis=1)
    size, hips, turn = leg_size(walker), hips_of(walker), turn_matrices(clip.turns)
    angles = clip.angles.copy()
    limits = np.deg2rad([joint.range_deg for joint in walker.joints])
    for foot, side in enumerate(SIDES):
        leg = clip.leg(side)
        has_rotation = "hip_rotation" in leg
        place = np.einsum("fji,fj->fi", turn, targets[:, foot] - root) - hips[side]
        sole = ankle_place(leg, size, side)[1][:, :, 0]
        bend = bend_axis(leg, side) if has_rotation else None
        solved = angles_of_place(place, sole, size, side, has_rotation=has_rotation, bend=bend)
        _write(angles, clip.joints, side, solved)
    return replace(clip, root=root, angles=angles.clip(limits[:, 0], limits[:, 1]))


def _write(angles: Floats, joints: tuple[str, ...], side: str, solved: Mapping[str, Floats]) -> None:
    for kind, values in solved.items():
        angles[:, joints.index(f"{side}_{kind}")] = values


def _shift(standing: NDArray[np.bool_], moved: Floats, lowest: Floats) -> Floats:
    """Return how to move a foot, `(frames, 3)`: standing still on the ground, never below it, softly in between.

    `standing` `(frames,)`; `moved` `(frames - 1, 2)` is how far the carrying point slides; `lowest` `(frames,)` is the
    height of the foot's lowest point.
    """
    frames = len(standing)
    shift = np.zeros((frames, 3))
    spans = stances(standing)
    for start, stop in spans:
        way = np.concatenate((np.zeros((1, 2)), moved[start : stop - 1].cumsum(axis=0)))
        way -= 0.5 * (way.min(axis=0) + way.max(axis=0))
        far = np.linalg.norm(way, axis=1, keepdims=True)
        shift[start:stop, :2] = -way * np.maximum(0.0, 1.0 - SLIDE_M / np.maximum(far, 1e-9))
        shift[start:stop, 2] = lowest[start:stop].clip(-_SINK_M, FLOAT_M) - lowest[start:stop]
    if spans:
        edges = [(0, 0, spans[0][0]), *((a[1] - 1, a[1], b[0]) for a, b in pairwise(spans))]
        for before, start, stop in edges:
            if start < stop:
                share = (np.arange(start, stop) - before) / (stop - before)
                ease = (share * share * (3.0 - 2.0 * share))[:, None]
                first = shift[stop] if start == 0 else shift[before]
                shift[start:stop] = first + ease * (shift[stop] - first)
        shift[spans[-1][1] :] = shift[spans[-1][1] - 1]
    shift[:, 2] = np.maximum(shift[:, 2], -_SINK_M - lowest)
    return shift


def _too_far(walker: Walker, clip: Clip, targets: Floats) -> Floats:
    """Return by how much the hips must be lowered `(frames,)` so that both ankles are within reach."""
    size, hips, turn = leg_size(walker), hips_of(walker), turn_matrices(clip.turns)
    lower = np.zeros(clip.frames)
    for foot, side in enumerate(SIDES):
        away = targets[:, foot] - clip.root - turn @ hips[side]
        level = np.linalg.norm(away[:, :2], axis=1)
        height = np.sqrt(np.maximum(size.reach_m**2 - level**2, 0.0))
        lower = np.maximum(lower, np.where(clip.contacts[:, foot], -away[:, 2] - height, 0.0))
    reach = max(1, round(2.0 * _LOWERED_S * clip.rate_hz))
    padded = np.pad(lower, reach, mode="edge")
    highest = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(axis=1)
    return _smooth(highest[:, None], clip.rate_hz, _LOWERED_S)[:, 0] if highest.any() else lower
