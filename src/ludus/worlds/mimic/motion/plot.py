"""Draws a motion: a strip of stick figures over one stride, and each joint's angle beside that of the normal gait."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ludus.core.files import write_atomic
from ludus.worlds.mimic.body import SIDES, kind_of
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.motion.clip import Clip, stances
from ludus.worlds.mimic.motion.motion import Motion
from ludus.worlds.mimic.motion.reference import checked_stride, natural_speed_m_s
from ludus.worlds.mimic.reference import PHASES, Stride, normal_reference, quaternions
from ludus.worlds.mimic.rendering.figure import StickFigure

_POSES = 9
_APART_M = 0.95  # from one figure to the next
COLOURS = {"right": "#1B3A57", "left": "#E08E45"}
_TRUNK_COLOUR, _BAND_COLOUR = "0.35", "#9CC5A1"
# Of a stick figure, seen from the right: colour and width, the farthest first.
_PARTS = (("left", COLOURS["left"], 3.2), ("trunk", _TRUNK_COLOUR, 5.0), ("right", COLOURS["right"], 3.2))
_LEG = ("thigh", "knee", "ankle", "heel", "ball", "ankle")
_LINES = {"trunk": ("hip", "head")} | {side: tuple(f"{side}_{point}" for point in _LEG) for side in SIDES}
_LEAST_SPAN_DEG = 12.0
_LONGEST_NAME = 32  # of a file, in the title
_BAND_SPEEDS_M_S = (0.8, 1.4)
_TITLES = {
    "hip": "Hip flexion",
    "knee": "Knee flexion",
    "ankle": "Ankle dorsiflexion",
    "hip_frontal": "Hip adduction",
    "hip_rotation": "Hip rotation, inward",
    "trunk_flexion": "Trunk flexion",
    "trunk_bending": "Trunk bending, to the right",
    "trunk_rotation": "Trunk rotation, to the left",
}


def draw_motion(motion: Motion, walker: Walker, path: Path) -> None:
    """Write a motion on a walker as a PNG file; raise FormatError if it does not walk on this walker."""
    stride = checked_stride(motion, walker)
    kinds, band = _kinds_of(motion.joints), _normal_band(walker)
    figure, strip, panels = _sheet(_title(motion, stride), len(kinds))
    shares = np.linspace(0.0, 1.0, _POSES)
    frames = np.round(shares * PHASES).astype(int) % PHASES
    turned = quaternions(stride.root[frames, 1:])
    place = np.concatenate((np.zeros((_POSES, 2)), stride.root[frames, :1]), axis=1)
    positions = np.concatenate((place, turned, stride.angles[frames]), axis=1)
    _draw_poses(strip, walker, positions, [f"{100.0 * share:.0f} %" for share in shares], np.zeros(_POSES))
    for axes, kind in zip(panels, kinds, strict=True):
        _draw_joint(axes, motion, kind, band.get(kind))
    _write(figure, panels[0], path)


def draw_clip(clip: Clip, walker: Walker, path: Path) -> None:
    """Write a motion with its place as a PNG file: figures along the way, angles over time, and when feet stand."""
    kinds, lasts = _kinds_of(clip.joints), clip.frames / clip.rate_hz
    figure, strip, panels = _sheet(f"{clip.name}: {lasts:.2f} s", len(kinds))
    frames = np.linspace(0, clip.frames - 1, _POSES).astype(int)
    names = [f"{frame / clip.rate_hz:.2f} s" for frame in frames.tolist()]
    _draw_poses(strip, walker, clip.positions()[frames], names, clip.floor_m[frames].min(axis=1))
    times = np.arange(clip.frames) / clip.rate_hz
    for axes, kind in zip(panels, kinds, strict=True):
        for index, joint in enumerate(clip.joints):
            if kind_of(joint) == kind:
                side = joint.partition("_")[0]
                colour = COLOURS.get(side, _TRUNK_COLOUR)
                label = side if side in SIDES else None
                axes.plot(times, np.rad2deg(clip.angles[:, index]), color=colour, linewidth=2.0, label=label)
        style_axes(axes, _TITLES[kind], "seconds")
        axes.set_xlim(0.0, lasts)
        for foot, side in enumerate(SIDES):
            for start, stop in stances(clip.contacts[:, foot]):
                height = 0.02 + 0.03 * foot
                axes.plot((times[start], times[stop - 1]), (height, height), transform=axes.get_xaxis_transform(),
                          color=COLOURS[side], linewidth=4.0, solid_capstyle="butt")  # fmt: skip
    _write(figure, panels[0], path)


def _kinds_of(joints: Sequence[str]) -> list[str]:
    return [kind for kind in _TITLES if any(kind_of(joint) == kind for joint in joints)]


def _sheet(title: str, panels: int) -> tuple[Figure, Axes, list[Axes]]:
    """Return a figure, its strip of stick figures, and so many panels of angles below."""
    columns = min(panels, 4)
    lines = -(-panels // columns)
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    figure = Figure(figsize=(15.0, 4.6 + 3.4 * lines), dpi=110, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)  # draws into memory, whatever screen there is
    grid = figure.add_gridspec(lines + 1, columns, height_ratios=(1.25, *(1.0,) * lines))
    figure.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold", parse_math=False)
    strip = figure.add_subplot(grid[0, :])
    return figure, strip, [figure.add_subplot(grid[1 + place // columns, place % columns]) for place in range(panels)]


def _write(figure: Figure, labelled: Axes, path: Path) -> None:
    figure.legend(*labelled.get_legend_handles_labels(), fontsize=10, frameon=False, loc="upper right", ncols=3)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    write_atomic(path, picture.getvalue())


def _title(motion: Motion, stride: Stride) -> str:
    mean = motion.stride
    strides = f"{mean.count} stride{'s' if mean.count > 1 else ''} of {mean.period_s:.2f} s"
    speed = natural_speed_m_s(motion, stride)
    name = motion.source.name.encode("ascii", "backslashreplace").decode()
    name = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
    return f"{name}: {strides}, {speed:.2f} m/s, {120.0 / mean.period_s:.0f} steps per minute"


def _draw_poses(axes: Axes, walker: Walker, positions: Floats, names: Sequence[str], floors_m: Floats) -> None:
    """Draw stick figures side by side from the side, or from behind where the way goes sideways.

    `positions` `(poses, 7 + joints)` are those of MuJoCo, `floors_m` `(poses,)` heights of the ground below them.
    """
    way = positions[-1, :3] - positions[0, :3]
    across = 1 if abs(way[1]) > 2.0 * abs(way[0]) else 0
    sign = -1.0 if across else 1.0  # from behind, left is to the left
    figure = StickFigure(walker)
    for number, (pose, name, floor) in enumerate(zip(positions, names, floors_m.tolist(), strict=True)):
        middle = number * _APART_M
        points = figure.points(pose)[:, [across, 2]] * (sign, 1.0) + (middle - sign * pose[across], 0.0)
        for part, colour, width in _PARTS:
            line = points[[figure.names.index(point) for point in _LINES[part]]]
            axes.plot(*line.T, color=colour, linewidth=width, solid_capstyle="round", solid_joinstyle="round")
        axes.plot(*points[figure.names.index("head")], "o", color=_TRUNK_COLOUR, markersize=15)
        axes.plot((middle - 0.4, middle + 0.4), (floor, floor), color="0.55", linewidth=1.2, zorder=0)
        axes.text(middle, -0.1, name, ha="center", va="top", fontsize=9, color="0.35")
    axes.set_xlim(-0.75 * _APART_M, (_POSES - 0.25) * _APART_M)
    climbed_m = max(0.0, float(positions[:, 2].max()) - walker.standing_m)
    axes.set_ylim(-0.28, 1.02 * walker.height_m + climbed_m)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _normal_band(walker: Walker) -> dict[str, Floats]:
    """Return the lowest and highest angles `(2, PHASES)` of the normal gait over its usual speeds, in degrees."""
    reference, phases = normal_reference(walker), torch.arange(PHASES) / PHASES
    speeds = np.linspace(*_BAND_SPEEDS_M_S, 5).tolist()
    angles = np.stack([reference.at(torch.full((PHASES,), speed), phases).angles.numpy() for speed in speeds])
    band = np.rad2deg(np.stack((angles.min(axis=0), angles.max(axis=0))))
    return {
        kind_of(joint.name): band[:, :, index]
        for index, joint in enumerate(walker.joints)
        if not joint.name.startswith("left_")
    }


def _draw_joint(axes: Axes, motion: Motion, kind: str, band: Floats | None) -> None:
    percent = np.arange(PHASES + 1) * 100.0 / PHASES
    around = np.arange(PHASES + 1) % PHASES
    if band is not None:
        low, high = band[:, around]
        label = f"normal gait, {_BAND_SPEEDS_M_S[0]:g} to {_BAND_SPEEDS_M_S[1]:g} m/s"
        axes.fill_between(percent, low - 0.3, high + 0.3, color=_BAND_COLOUR, alpha=0.55, linewidth=0.0, label=label)
    for joint in motion.joints:
        if kind_of(joint) != kind:
            continue
        side = joint.partition("_")[0]
        shift = PHASES // 2 if side == "left" else 0
        column = motion.stride.columns.index(joint)
        mean, spread = (
            np.rad2deg(np.roll(part[:, column], shift))[around] for part in (motion.stride.mean, motion.stride.spread)
        )
        colour = COLOURS.get(side, _TRUNK_COLOUR)
        width = 1.5 if side == "left" else 2.8  # both stay visible where they coincide
        axes.fill_between(percent, mean - spread, mean + spread, color=colour, alpha=0.22, linewidth=0.0)
        label = f"{side}, mean and deviation" if side in SIDES else "mean and deviation"
        axes.plot(percent, mean, color=colour, linewidth=width, label=label)
    style_axes(axes, _TITLES[kind])


def style_axes(axes: Axes, title: str, along: str = "% of the stride, from the heel's contact") -> None:
    """Give axes of angles in degrees the look of all pictures of motions."""
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=8)
    axes.set_xlabel(along, fontsize=9, color="0.3")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("0.5")
    axes.tick_params(colors="0.3", labelsize=8.5)
    axes.grid(color="0.9", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_xlim(0.0, 100.0)
    axes.set_ylabel("degrees", fontsize=9, color="0.3")
    low, high = axes.get_ylim()
    missing = max(0.0, _LEAST_SPAN_DEG - (high - low))  # small motions should look small
    axes.set_ylim(low - 0.5 * missing, high + 0.5 * missing)
    axes.axhline(0.0, color="0.7", linewidth=0.8, zorder=0.5)
