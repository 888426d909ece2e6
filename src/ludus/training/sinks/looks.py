"""How the panels of `training_curves.png` look: colours, frames, names of curves, marks of stages."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from ludus.training.sinks.curve_data import Table

# Okabe and Ito's colours, which people with other colour vision tell apart too, and four darker ones.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F", "#B8A800",
    "#004B76", "#8A4F00", "#00573F", "#7A2E5D",
)  # fmt: skip


def style(axes: Axes, title: str, has_data: bool) -> None:
    """Gives a panel its looks; one without data says so."""
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("0.5")
    axes.tick_params(colors="0.3", labelsize=8.5)
    if not has_data:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center", color="0.6")
        return
    axes.grid(color="0.9", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.margins(x=0.02)


def style_twins(axes: Axes, twins: Sequence[Axes]) -> None:
    """Gives the scales at the left and at the right the colours of their curves."""
    for twin in twins:
        twin.spines[["top", "left", "bottom"]].set_visible(False)
        twin.spines["right"].set_color("0.5")
        for one, side in ((axes, "left"), (twin, "right")):
            colour = one.get_lines()[0].get_color()
            one.tick_params(axis="y", colors=colour, labelsize=8.5)
            one.spines[side].set_color(colour)


def mark_stages(axes: Axes, starts: Sequence[tuple[float, str]], *, with_names: bool) -> None:
    """Draws where stages of the curriculum begin; the first one needs no line."""
    for index, (step, name) in enumerate(starts):
        if index:
            axes.axvline(step, color="0.55", linewidth=0.9, linestyle=(0, (2, 2)))
        if with_names:
            axes.annotate(
                name, (step, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -2), textcoords="offset points",
                va="top", fontsize=8, color="0.35",
            )  # fmt: skip


def legend(axes: Axes, others: Sequence[Axes] = ()) -> None:
    """Names the curves of a panel beside it, if there are several."""
    handles, labels = axes.get_legend_handles_labels()
    for other in others:
        more_handles, more_labels = other.get_legend_handles_labels()
        handles, labels = handles + more_handles, labels + more_labels
    if len(labels) > 1:
        axes.legend(
            handles, labels, loc="upper left", bbox_to_anchor=(0.0, -0.1), ncols=3, fontsize=8, frameon=False,
            borderaxespad=0.0, handlelength=1.6, columnspacing=1.2,
        )  # fmt: skip


def stage_starts(table: Table) -> list[tuple[float, str]]:
    """Returns where each stage of the curriculum began."""
    stages, steps = table.texts("stage"), table.numbers("env_steps")
    if not len(stages) or not any(stages.tolist()):
        return []
    first = np.flatnonzero(np.concatenate([[True], stages[1:] != stages[:-1]]))
    return [(float(steps[index]), str(stages[index])) for index in first if stages[index]]
