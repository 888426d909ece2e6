"""Figures of a strategy analysis as PNG files: projections, probe curves, confusion, attention, drift, ablation."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ludus.analysis.ablation import CONDITIONS, Ablation
from ludus.analysis.attention import AttentionClip, attention_by_delay
from ludus.analysis.drift import Drift
from ludus.analysis.summary import Analysis
from ludus.core.files import write_atomic
from ludus.core.intervals import Interval

_DPI = 110
_MAX_CLIPS = 4
_COLOURS = ("#1f6fb4", "#d1622b", "#5d8a3c", "#7a7a7a")
_KINDS = {"trained": "{features}", "untrained": "the same networks, untrained", "observation": "the current frame"}

Draw = Callable[[Figure], None]


def draw_analysis(analysis: Analysis, folder: Path) -> list[Path]:
    """Write all figures into a folder that exists; return their paths."""
    name = "latent" if analysis.features == "latent" else "memory"
    planes = analysis.planes
    pictures: dict[str, tuple[tuple[float, float], Draw]] = {
        f"{name}_pca.png": ((10.5, 6.6), lambda figure: _draw_plane(figure, analysis, planes.frames, is_pca=True)),
        "probe_curve.png": ((9.0, 5.4), lambda figure: _draw_curve(figure, analysis)),
        "probe_confusion.png": ((8.4, 7.2), lambda figure: _draw_confusion(figure, analysis)),
        f"{name}_tsne.png": ((10.5, 6.6), lambda figure: _draw_plane(figure, analysis, planes.tsne, is_pca=False)),
    }
    for clip in analysis.clips[:: -(-len(analysis.clips) // _MAX_CLIPS) or 1]:
        file = f"attention_{re.sub(r'[^a-z0-9-]+', '_', clip.style.lower())}.png"
        pictures[file] = ((11.0, 8.5), lambda figure, clip=clip: _draw_attention(figure, clip))  # type: ignore[misc]
    if analysis.drift is not None:
        drift = analysis.drift
        pictures["drift.png"] = ((11.0, 4.6), lambda figure: _draw_drift(figure, drift, name))
    if analysis.ablation is not None:
        ablation = analysis.ablation
        height = 1.9 + 0.42 * (len(ablation.rows) + 1)
        pictures["ablation.png"] = ((8.6, height), lambda figure: _draw_ablation(figure, ablation, name))
    return [_write(folder / file, size, draw) for file, (size, draw) in pictures.items()]


def _write(path: Path, size: tuple[float, float], draw: Draw) -> Path:
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)  # draws into memory, with or without a screen
    draw(figure)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    write_atomic(path, picture.getbuffer())
    return path


def _plain(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)


def _draw_plane(figure: Figure, analysis: Analysis, frames: NDArray[np.float64], *, is_pca: bool) -> None:
    """Draw frames as small dots and, for PCA, matches as large ones."""
    axes = figure.subplots()
    planes, recording = analysis.planes, analysis.recording
    colours = colormaps["tab20" if len(recording.styles) > 10 else "tab10"]
    for index, style in enumerate(recording.styles):
        own, colour = planes.frame_labels == index, colours(index % colours.N)
        size, opacity = (7, 0.3) if is_pca else (14, 0.75)
        axes.scatter(frames[own, 0], frames[own, 1], s=size, color=colour, alpha=opacity, linewidths=0)
        points = planes.matches[recording.labels == index] if is_pca else np.zeros((0, 2))
        axes.scatter(points[:, 0], points[:, 1], s=42, color=colour, edgecolors="white", linewidths=0.6)
        axes.scatter([], [], s=42, color=colour, label=style)
    what = "PCA" if is_pca else "t-SNE"
    dots = "small dots: frames, large dots: matches" if is_pca else "dots: frames; distances far apart mean little"
    _plain(axes, f"{what} of the {analysis.features} by opponent style ({dots})")
    if is_pca:
        axes.set_xlabel(f"first direction, {planes.shares[0]:.0%} of the variance")
        axes.set_ylabel(f"second direction, {planes.shares[1]:.0%}")
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)


def _draw_curve(figure: Figure, analysis: Analysis) -> None:
    """Draw held-out accuracy by seconds seen, with bands, beside the controls and chance."""
    axes = figure.subplots()
    times_s = analysis.recording.times_s
    for colour, (kind, title) in zip(_COLOURS, _KINDS.items(), strict=False):
        if kind in analysis.probes:
            probe, title = analysis.probes[kind], title.format(features=f"the agent's {analysis.features}")
            _band(axes, times_s, probe.by_time, colour, title)
            if kind == "trained":
                estimates = [interval.estimate for interval in probe.so_far]
                axes.plot(times_s, estimates, color=colour, linestyle=":", label=f"{title}, all frames so far")
    axes.axhline(analysis.probes["trained"].chance, color="0.3", linestyle="--", linewidth=1, label="chance")
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel("seconds seen")
    axes.set_ylabel("accuracy on held-out matches")
    _plain(axes, f"Linear probe: which of {len(analysis.recording.styles)} styles is it?")
    figure.legend(loc="outside lower center", frameon=False, fontsize=9, ncols=2)


def _band(axes: Axes, times_s: NDArray[np.float64], intervals: tuple[Interval, ...], colour: str, label: str) -> None:
    estimate, low, high = np.array(intervals).T
    axes.fill_between(times_s, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(times_s, estimate, color=colour, label=label)


def _draw_confusion(figure: Figure, analysis: Analysis) -> None:
    """Draw the confusion matrix."""
    axes = figure.subplots()
    shares, styles = analysis.probes["trained"].confusion, analysis.recording.styles
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    for (row, column), share in np.ndenumerate(shares):
        if share >= 0.005:
            axes.text(
                column, row, f"{100 * share:.0f}", ha="center", va="center", fontsize=8,
                color="white" if share > 0.55 else "0.2",
            )  # fmt: skip
    axes.set_xticks(range(len(styles)), styles, rotation=45, ha="right")
    axes.set_yticks(range(len(styles)), styles)
    axes.set_xlabel("predicted by the probe")
    axes.set_ylabel("style of the opponent")
    axes.set_title("Held-out frames, % of each row", loc="left", fontsize=11)


def _draw_attention(figure: Figure, clip: AttentionClip) -> None:
    """Draw the attention to each frame by its age, above what the opponent did in it."""
    steps, tracks = len(clip.weights), clip.tracks
    upper, middle, lower = figure.subplots(3, 1, sharex=True, height_ratios=(2.2, 1.0, max(1.0, 0.2 * len(tracks))))
    later, got = attention_by_delay(clip)
    ends_s, window_s = (0.0, steps / clip.rate_hz), len(later) / clip.rate_hz
    told = later[np.isfinite(later)]
    picture = upper.imshow(
        later, cmap="magma", vmin=0.0, vmax=float(np.quantile(told, 0.995)) if len(told) else 1.0, aspect="auto",
        interpolation="nearest", origin="lower", extent=(*ends_s, 0.0, window_s),
    )  # fmt: skip
    upper.set_facecolor("0.93")
    upper.set_ylabel("age when attended\nto, s")
    upper.set_title(f"Attention of the latent to each frame, against {clip.style}", loc="left", fontsize=11)
    figure.colorbar(picture, ax=upper, label="share of a latent", pad=0.01)
    middle.fill_between((np.arange(steps) + 0.5) / clip.rate_hz, got, step="mid", color=_COLOURS[1], linewidth=0)
    middle.axhline(1.0, color="0.3", linewidth=0.8, linestyle="--")
    middle.set_ylabel("total\n(1: average)")
    _plain(middle, "")
    if not tracks:
        return
    values = np.stack(list(tracks.values()))
    lower.imshow(
        values, cmap="Greys", vmin=min(0.0, float(values.min())), vmax=max(1.0, float(values.max())), aspect="auto",
        interpolation="nearest", extent=(*ends_s, len(tracks), 0.0),
    )  # fmt: skip
    lower.set_yticks(np.arange(len(tracks)) + 0.5, list(tracks), fontsize=9)
    lower.hlines(np.arange(len(tracks)), *ends_s, color="0.9", linewidth=0.6)
    lower.set_xlabel("what the opponent did in these frames, s since the start of the match")


def _draw_drift(figure: Figure, drift: Drift, name: str) -> None:
    """Draw distance and the probe's probabilities around switches."""
    left, right = figure.subplots(1, 2)
    left.plot(drift.times_s, drift.distance, color=_COLOURS[1], label="around a switch")
    left.plot(drift.times_s, drift.distance_amid, color=_COLOURS[3], label="amid a style")
    constant = "no drift seen" if drift.time_constant_s is None else f"time constant {drift.time_constant_s:.2f} s"
    _plain(left, f"Distance of the {name} from before ({drift.switches} switches)\n{constant}")
    left.set_ylabel("deviations per dimension")
    right.plot(drift.times_s, drift.new_style, color=_COLOURS[0], label="the new style")
    right.plot(drift.times_s, drift.old_style, color=_COLOURS[3], label="the old style")
    rise = drift.probe_time_constant_s
    _plain(right, f"Probability by the probe\n{'no rise seen' if rise is None else f'time constant {rise:.2f} s'}")
    right.set_ylim(bottom=0.0)
    for axes in (left, right):
        axes.axvline(0.0, color="0.3", linestyle="--", linewidth=1)
        axes.set_xlabel("seconds since the switch")
        axes.legend(frameon=False, fontsize=9)


def _draw_ablation(figure: Figure, ablation: Ablation, name: str) -> None:
    """Draw scores by opponent under the three conditions, with intervals."""
    axes = figure.subplots()
    rows = [*ablation.rows, ablation.mean]
    for index, condition in enumerate(CONDITIONS):
        scores = [row.scores[condition] for row in rows]
        places = np.arange(len(rows)) + 0.22 * (index - 1)
        estimates = np.array([score.estimate for score in scores])
        errors = np.array([[score.estimate - score.low, score.high - score.estimate] for score in scores]).T
        axes.errorbar(
            estimates, places, xerr=np.maximum(errors, 0.0), fmt="o", markersize=4.5, elinewidth=1.2,
            color=_COLOURS[index], label=f"{name} {condition}",
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [row.opponent or "all games" for row in rows])
    axes.axhline(len(rows) - 1.5, color="0.5", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlabel(f"{ablation.score.replace('_', ' ')}, 95 % interval")
    _plain(axes, f"{ablation.matches} matches per condition and opponent, same seeds")
    figure.legend(loc="outside lower center", frameon=False, fontsize=9, ncols=3)
