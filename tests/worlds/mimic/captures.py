"""Recordings with known answers: our own walker's motion, written as the files of others would hold it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.capture.importing import write_clip
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.motion.clip import Clip
from ludus.worlds.mimic.reference import normal_reference

Y_UP = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # x left, y up, z forward
TURNED = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # z up, y forward


@dataclass(frozen=True)
class Style:
    """How a file is written."""

    names: dict[str, str]  # of this file's joints, by those of the walker
    axes: Floats  # from the walker's axes to the file's
    unit: float = 1.0  # of the file, per metre of the walker: 100 for centimetres of a body as large
    order: str = "ZYX"  # of rotation channels
    lies: bool = False  # whether bones lie along x in the rest pose, as LAFAN's do


def named(hips: str, chest: str, leg: str, marks: tuple[str, str], parts: tuple[str, str, str, str]) -> dict[str, str]:
    """Return names of a convention; `leg` has a place for a side's mark and one for a part."""
    names = {"root": hips, "upper": chest}
    for side, mark in zip(SIDES, marks, strict=True):
        for key, part in zip(("thigh", "shank", "foot", "toe"), parts, strict=True):
            names[f"{side}_{key}"] = leg.format(side=mark, part=part)
    return names


STYLES = {
    "mixamo": Style(
        named("mixamorig:Hips", "mixamorig:Spine2", "mixamorig:{side}{part}", ("Right", "Left"),
              ("UpLeg", "Leg", "Foot", "ToeBase")),
        Y_UP, 100.0,
    ),
    "cmu": Style(
        named("Hips", "Spine1", "{side}{part}", ("Right", "Left"), ("UpLeg", "Leg", "Foot", "ToeBase")),
        Y_UP, 0.45 / 0.0254, "ZXY",
    ),
    "lafan": Style(
        named("Hips", "Spine2", "{side}{part}", ("Right", "Left"), ("UpLeg", "Leg", "Foot", "Toe")),
        Y_UP, 100.0, lies=True,
    ),
    "tall": Style(  # 1.3 times as large, Z up, in metres, with the names of Blender
        named("pelvis", "chest", "{part}.{side}", ("R", "L"), ("thigh", "shin", "foot", "toe")), TURNED, 1.3,
    ),
}  # fmt: skip


def gait_clip(walker: Walker, speed_m_s: float, rate_hz: float, seconds: float) -> Clip:
    """Return some seconds of the normal gait, which moves along the way."""
    reference, frames = normal_reference(walker), round(seconds * rate_hz)
    speed = torch.full((frames,), speed_m_s)
    period_s = float(reference.at(speed[:1], torch.zeros(1)).period_s)
    motion = reference.at(speed, torch.from_numpy(np.arange(frames) / (rate_hz * period_s) % 1.0).float())
    way = np.cumsum(motion.root_velocity[:, :2].double().numpy(), axis=0) / rate_hz
    root = np.concatenate((way, motion.root[:, :1].double().numpy()), axis=1)
    return Clip(
        "gait", tuple(joint.name for joint in walker.joints), motion.angles.double().numpy(), root,
        motion.root[:, 1:].double().numpy(), np.zeros((frames, 2), dtype=bool), np.zeros((frames, 2)), rate_hz,
        is_cyclic=False,
    )  # fmt: skip


def write_gait(path: Path, walker: Walker, speed_m_s: float = 1.25, rate_hz: float = 100.0) -> int:
    """Write seven seconds of the normal gait as a motion file and return the number of frames."""
    clip = gait_clip(walker, speed_m_s, rate_hz, 7.0)
    write_clip(clip, path, "normal gait")
    return clip.frames


def bodies(walker: Walker, clip: Clip) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return places `(frames, 3)` and orientations `(frames, 3, 3)` of the walker's parts, by MuJoCo."""
    model, data = walker.model, mujoco.MjData(walker.model)
    names = [model.body(index).name for index in range(1, model.nbody)]
    places = {name: np.empty((clip.frames, 3)) for name in names}
    turns = {name: np.empty((clip.frames, 3, 3)) for name in names}
    for frame, positions in enumerate(clip.positions()):
        data.qpos[:] = positions
        mujoco.mj_kinematics(model, data)
        for name in names:
            body = model.body(name).id
            places[name][frame], turns[name][frame] = data.xpos[body], data.xmat[body].reshape(3, 3)
    if "upper" not in names:
        places["upper"] = places["root"] + turns["root"] @ (0.0, 0.0, 0.1)
        turns["upper"] = turns["root"]
    return places, turns


def _eulers(turn: Floats, order: str) -> Floats:
    """Return angles `(frames, 3)` in degrees in the order of the channels."""
    if order == "ZYX":
        angles = (
            np.arctan2(turn[:, 1, 0], turn[:, 0, 0]),
            np.arcsin(np.clip(-turn[:, 2, 0], -1.0, 1.0)),
            np.arctan2(turn[:, 2, 1], turn[:, 2, 2]),
        )
    else:  # ZXY
        angles = (
            np.arctan2(-turn[:, 0, 1], turn[:, 1, 1]),
            np.arcsin(np.clip(turn[:, 2, 1], -1.0, 1.0)),
            np.arctan2(-turn[:, 2, 0], turn[:, 2, 2]),
        )
    degrees: Floats = np.rad2deg(np.stack(angles, axis=1))
    return degrees


def skeleton(walker: Walker) -> dict[str, tuple[str | None, Floats]]:
    """Return each joint's parent and its offset where the walker stands straight."""
    body = walker.body
    assert body is not None
    half = body.hip_half_width_m
    parts: dict[str, tuple[str | None, Floats]] = {
        "root": (None, np.zeros(3)),
        "upper": ("root", np.array((0, 0, 0.1))),
    }
    for side in SIDES:
        parts[f"{side}_thigh"] = ("root", np.array((0.0, -half if side == "right" else half, 0.0)))
        parts[f"{side}_shank"] = (f"{side}_thigh", np.array((0.0, 0.0, -body.thigh.length_m)))
        parts[f"{side}_foot"] = (f"{side}_shank", np.array((0.0, 0.0, -body.shank.length_m)))
        parts[f"{side}_toe"] = (f"{side}_foot", np.array((body.ball_m, 0.0, 0.015 - body.ankle_height_m)))
    return parts


def bvh_text(walker: Walker, clip: Clip, style: Style) -> str:
    """Write a walker's motion as a BVH file."""
    places, turns = bodies(walker, clip)
    parts = skeleton(walker)
    for side in SIDES:
        turns[f"{side}_toe"] = turns[f"{side}_foot"]
    # Along x: each bone's own axes at rest are turned, so that its offset from the parent is (length, 0, 0).
    own = {name: np.eye(3) for name in parts}
    if style.lies:
        for name in parts:
            child = next((offset for parent, offset in parts.values() if parent == name), np.array((0.0, 0.0, 1.0)))
            x = child / np.linalg.norm(child)
            y = np.cross(x, (0.3, 0.9, 0.1))
            y /= np.linalg.norm(y)
            own[name] = np.stack((x, y, np.cross(x, y)), axis=1)
    axes = style.axes
    world = {name: axes @ turns[name] @ own[name] @ axes.T for name in parts}
    lines, rows = ["HIERARCHY"], [style.unit * places["root"] @ axes.T]

    def add(name: str, depth: int) -> None:
        parent, offset = parts[name]
        pad = "\t" * depth
        at = style.unit * axes @ (own[parent].T @ offset if parent else offset)
        lines.extend([f"{pad}{'ROOT' if parent is None else 'JOINT'} {style.names[name]}", f"{pad}{{"])
        lines.append(f"{pad}\tOFFSET {at[0]:.6f} {at[1]:.6f} {at[2]:.6f}")
        rotations = " ".join(f"{axis}rotation" for axis in style.order)
        lines.append(f"{pad}\tCHANNELS {'6 Xposition Yposition Zposition' if parent is None else '3'} {rotations}")
        local = world[name] if parent is None else np.swapaxes(world[parent], 1, 2) @ world[name]
        rows.append(_eulers(local, style.order))
        children = [child for child, (above, _) in parts.items() if above == name]
        for child in children:
            add(child, depth + 1)
        if not children:
            lines.extend(
                [f"{pad}\tEnd Site", f"{pad}\t{{", f"{pad}\t\tOFFSET 0 0 {style.unit * 0.05:.4f}", f"{pad}\t}}"]
            )
        lines.append(f"{pad}}}")

    add("root", 0)
    numbers = np.concatenate(rows, axis=1)
    lines += ["MOTION", f"Frames: {clip.frames}", f"Frame Time: {1.0 / clip.rate_hz:.7f}"]
    lines += [" ".join(f"{value:.5f}" for value in row) for row in numbers]
    return "\n".join(lines) + "\n"


# Joints of SMPL by the walker's; each other joint turns with its parent.
_SMPL = {
    "root": "Pelvis", "upper": "Spine1", **{f"{side}_{part}": f"{side[0].upper()}_{name}" for side in SIDES
    for part, name in (("thigh", "Hip"), ("shank", "Knee"), ("foot", "Ankle"), ("toe", "Foot"))},
}  # fmt: skip


def amass_arrays(walker: Walker, clip: Clip, joints: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Return a walker's motion as the arrays of an AMASS file with `rest_joints`: rest is Y up, the world Z up."""
    places, turns = bodies(walker, clip)
    parts = skeleton(walker)
    local = {name: np.broadcast_to(np.eye(3), (clip.frames, 3, 3)) for name in joints}
    rest = {name: np.zeros(3) for name in joints}
    for name, (parent, offset) in parts.items():
        if parent is None:
            local[_SMPL[name]] = turns[name] @ Y_UP.T
        elif not name.endswith("toe"):
            local[_SMPL[name]] = Y_UP @ np.swapaxes(turns[parent], 1, 2) @ turns[name] @ Y_UP.T
        rest[_SMPL[name]] = Y_UP @ offset + (rest[_SMPL[parent]] if parent else 0.0)
    poses = np.concatenate([_vectors(local[name]) for name in joints], axis=1)
    hands = np.zeros((clip.frames, 90))
    return {
        "poses": np.concatenate((poses, hands), axis=1), "trans": places["root"],
        "mocap_framerate": np.array(clip.rate_hz),
        "rest_joints": np.stack([rest[name] for name in joints]), "betas": np.zeros(16),
        "gender": np.array("neutral"),
    }  # fmt: skip


def _vectors(turns: Floats) -> Floats:
    """Return axis-angle vectors `(frames, 3)` of rotations by less than half a turn."""
    odd = np.stack(
        (turns[:, 2, 1] - turns[:, 1, 2], turns[:, 0, 2] - turns[:, 2, 0], turns[:, 1, 0] - turns[:, 0, 1]), axis=1
    )
    sine = 0.5 * np.linalg.norm(odd, axis=1)
    angle = np.arctan2(sine, 0.5 * (np.trace(turns, axis1=1, axis2=2) - 1.0))
    vectors: Floats = odd * (0.5 * angle / np.maximum(sine, 1e-9))[:, None]
    return vectors


def gait_markers(walker: Walker, clip: Clip) -> dict[str, Floats]:
    """Return markers of Plug-in Gait `(frames, 3)` in mm on a walker, so that its joint centres are where they are."""
    places, turns = bodies(walker, clip)
    body = walker.body
    assert body is not None
    width = (1000.0 * body.hip_half_width_m - 7.3) / 0.33  # Harrington, solved for the width of the pelvis
    depth = 150.0
    front = np.array((0.24 * depth + 9.9, 0.0, 0.30 * width + 10.9))
    on_pelvis = {
        "RASI": (0.0, -0.5 * width, 0.0), "LASI": (0.0, 0.5 * width, 0.0), "RPSI": (-depth, -45.0, 0.0),
        "LPSI": (-depth, 45.0, 0.0),
    }  # fmt: skip
    on_chest = {
        "C7": (-80.0, 0.0, 520.0),
        "CLAV": (90.0, 0.0, 500.0),
        "T10": (-90.0, 0.0, 300.0),
        "STRN": (110.0, 0.0, 350.0),
    }
    mm = {name: 1000.0 * values for name, values in places.items()}
    markers = {name: mm["root"] + turns["root"] @ (front + np.array(at)) for name, at in on_pelvis.items()}
    markers |= {name: mm["upper"] + turns["upper"] @ np.array(at) for name, at in on_chest.items()}
    toe = 1000.0 * np.array((body.ball_m, 0.0, 0.03 - body.ankle_height_m))
    for side in SIDES:
        mark, out = side[0].upper(), (-1.0 if side == "right" else 1.0)
        for name, part, above, half in (("KNE", "shank", "thigh", 57.0), ("ANK", "foot", "shank", 45.0)):
            markers[f"{mark}{name}"] = mm[f"{side}_{part}"] + half * out * turns[f"{side}_{above}"][:, :, 1]
        markers[f"{mark}TOE"] = mm[f"{side}_foot"] + turns[f"{side}_foot"] @ toe
    return markers


def c3d_bytes(markers: dict[str, Floats], rate_hz: float, processor: int = 84, scale: float = -0.1) -> bytes:
    """Write markers as a C3D file; a positive scale stores integers, and NaN is a marker that was not seen."""
    order = ">" if processor == 86 else "<"

    def floats(values: Floats) -> bytes:
        if processor != 85:
            return np.asarray(values).astype(f"{order}f4").tobytes()
        words = np.ascontiguousarray(4.0 * np.asarray(values, np.float64).astype("<f4")).view("<u2").reshape(-1, 2)
        return np.ascontiguousarray(words[:, ::-1]).tobytes()

    def parameter(group: int, name: str, kind: int, sizes: tuple[int, ...], data: bytes) -> bytes:
        body = bytes([kind % 256, len(sizes), *sizes]) + data + b"\0"
        return bytes([len(name), group % 256]) + name.encode() + (2 + len(body)).to_bytes(2, _byte_order(order)) + body

    def group(number: int, name: str) -> bytes:
        return bytes([len(name), -number % 256]) + name.encode() + (3).to_bytes(2, _byte_order(order)) + b"\0"

    labels = b"".join(name.encode().ljust(8) for name in markers)
    records = group(1, "POINT") + parameter(1, "LABELS", -1, (8, len(markers)), labels)
    records += parameter(1, "UNITS", -1, (2,), b"mm") + parameter(1, "RATE", 4, (1,), floats(np.array([rate_hz])))
    section = bytes([1, 80, 1 + (len(records) + 6) // 512, processor]) + records + b"\0\0"
    section = section.ljust(-(-len(section) // 512) * 512, b"\0")
    frames = len(next(iter(markers.values())))
    start = 2 + len(section) // 512
    words = np.array([len(markers), 0, 1, frames, 10], f"{order}u2").tobytes()
    head = bytes([2, 80]) + words + floats(np.array([scale])) + np.array([start, 0], f"{order}u2").tobytes()
    head += floats(np.array([rate_hz]))
    cells = np.stack([np.concatenate((values, np.zeros((frames, 1))), axis=1) for values in markers.values()], axis=1)
    unseen = np.isnan(cells[..., 0])
    cells[unseen] = (0.0, 0.0, 0.0, -1.0)
    if scale < 0.0:
        data = floats(cells.reshape(-1))
    else:
        cells[..., :3] /= scale
        data = np.round(cells.reshape(-1)).astype(f"{order}i2").tobytes()
    return head.ljust(512, b"\0") + section + data


def _byte_order(mark: str) -> Literal["little", "big"]:
    return "big" if mark == ">" else "little"
