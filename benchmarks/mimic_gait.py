"""Measures how the shipped walker walks beside people, and which pushes it survives: what `ludus mimic gait` does.

    python benchmarks/mimic_gait.py --json docs/data/mimic_gait.json --picture docs/images/mimic-people.png

The first walks are undisturbed; as many are pushed once for each direction and impulse.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ludus.evaluation.players import load_agent, short_name
from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.gait_report import TITLES, GaitReport, analyse_gait
from ludus.worlds.mimic.motion.plot import COLOURS, style_axes
from ludus.worlds.mimic.norms import KINDS
from ludus.worlds.mimic.walk_analysis import CURVE_POINTS
from ludus.worlds.mimic.walk_recording import Recovery

_DIRECTION_COLOURS = ("#1B3A57", "#E08E45", "#3C8D5A", "#B0413E")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", nargs="?", default="walker")
    parser.add_argument("--walks", type=int, default=40)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    report = analyse_gait(load_agent(asked.agent), short_name(asked.agent), walks=asked.walks)
    text = json.dumps(report.as_json(), indent=1) + "\n"
    if asked.json is not None:
        asked.json.write_text(text)
    else:
        print(text)
    if asked.picture is not None:
        draw_report(report, asked.picture)


def draw_report(report: GaitReport, file: Path) -> None:
    """Draw hip, knee and ankle over the gait cycle against the published bands, and the recovery curves, as PNG."""
    panels = len(KINDS) + bool(report.recovery)
    figure = Figure(figsize=(4.4 * panels, 4.4), dpi=110, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for place, kind in enumerate(KINDS):
        _draw_joint(axes[place], report, kind)
    if report.recovery:
        _draw_recovery(axes[-1], report.recovery)
    speed = "at the speeds of training" if report.speed_m_s is None else f"at {report.speed_m_s:g} m/s"
    figure.suptitle(
        f"{report.agent}: {report.walks} walks {speed}", x=0.01, ha="left", fontweight="bold", parse_math=False
    )
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=9, frameon=False, loc="outside lower left", ncols=3)
    figure.savefig(file, format="png", metadata={"Software": None})


def _draw_joint(axes: Axes, report: GaitReport, kind: str) -> None:
    percent = np.linspace(0.0, 100.0, CURVE_POINTS)
    norm = report.norms[kind]
    label = "Schwartz et al. 2008, mean and deviation of people"
    axes.fill_between(percent, norm.mean - norm.deviation, norm.mean + norm.deviation, color="0.86", linewidth=0.0)
    axes.plot(percent, norm.mean, color="0.55", linewidth=1.4, linestyle="--", label=label)
    for side in SIDES:
        band = report.curves.get(f"{side}_{kind}")
        if band is None:
            continue
        axes.fill_between(percent, band.mean - band.deviation, band.mean + band.deviation, color=COLOURS[side],
                          alpha=0.22, linewidth=0.0)  # fmt: skip
        width = 1.5 if side == "left" else 2.8  # both stay visible where they coincide
        axes.plot(percent, band.mean, color=COLOURS[side], linewidth=width, label=f"{side}, mean and deviation")
    style_axes(axes, TITLES[kind])


def _draw_recovery(axes: Axes, recovery: Sequence[Recovery]) -> None:
    for each, colour in zip(recovery, _DIRECTION_COLOURS, strict=True):
        low = [interval.low for interval in each.survived]
        high = [interval.high for interval in each.survived]
        shares = [interval.estimate for interval in each.survived]
        axes.fill_between(each.impulses_ns, low, high, color=colour, alpha=0.12, linewidth=0.0)
        axes.plot(each.impulses_ns, shares, "o-", color=colour, linewidth=1.8, markersize=4, label=each.direction)
    style_axes(axes, "Walks that survive a push", "impulse at the hips in N s")
    axes.set_xlim(0.0, max(recovery[0].impulses_ns) * 1.04)
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("share, 95 % interval", fontsize=9, color="0.3")
    axes.legend(fontsize=8, frameon=False, loc="lower left")


if __name__ == "__main__":
    main()
