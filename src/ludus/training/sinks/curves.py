"""`training_curves.png`: how a run went, in one picture, drawn from the run's files alone."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ludus.core.files import write_atomic
from ludus.training.callbacks import Counters, QuietCallback
from ludus.training.sinks import looks, panels
from ludus.training.sinks.curve_data import CurveData, read_run

FILE = "training_curves.png"
_SIZE_INCHES, _DOTS_AN_INCH = (17.0, 13.5), 110

Draw: TypeAlias = Callable[[Axes, CurveData], bool]

PANELS: tuple[tuple[str, Draw], ...] = (
    ("Reward an episode", panels.draw_reward),
    ("Length of an episode, steps", panels.draw_length),
    ("Matches won in training", panels.draw_win_rates),
    ("Reward terms", panels.draw_terms),
    ("Evaluation by opponent or trial", panels.draw_evaluations),
    ("Evaluation score and rating", panels.draw_score),
    ("Losses", panels.draw_losses),
    ("Entropy and KL divergence", panels.draw_entropy),
    ("Explained variance and clipping", panels.draw_update),
)


class CurvesSink(QuietCallback):
    """Draws the picture when training ends."""

    def __init__(self, run_folder: Path) -> None:
        self._run_folder = run_folder

    def on_end(self, counters: Counters) -> None:  # noqa: ARG002
        """Draws it, also after an error or a stop."""
        draw_curves(self._run_folder)


def draw_curves(run_folder: Path) -> Path:
    """Draws `training_curves.png` from the tables in a run folder and returns its path; any of them may be missing."""
    data = read_run(run_folder)
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
    figure = Figure(figsize=_SIZE_INCHES, dpi=_DOTS_AN_INCH, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)  # draws into memory, whatever screen there is
    figure.suptitle(_title(run_folder, data), x=0.01, ha="left", fontsize=14, fontweight="bold")
    figure.supxlabel("environment steps", fontsize=9.5, color="0.3")
    starts = looks.stage_starts(data.episodes)
    for axes, (title, draw) in zip(figure.subplots(3, 3).flat, PANELS, strict=True):
        _draw_panel(axes, title, draw, data, starts)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    path = run_folder / FILE
    write_atomic(path, picture.getbuffer())
    return path


def _draw_panel(axes: Axes, title: str, draw: Draw, data: CurveData, stages: Sequence[tuple[float, str]]) -> None:
    has_data = draw(axes, data)
    twins = [twin for twin in axes.get_shared_x_axes().get_siblings(axes) if twin is not axes]
    looks.style(axes, title, has_data)
    looks.style_twins(axes, twins)
    looks.legend(axes, twins)
    if has_data:
        axes.set_xlim(0.0, max(_last_step(data), 1.0))
        looks.mark_stages(axes, stages, with_names=draw is panels.draw_reward)


def _last_step(data: CurveData) -> float:
    columns = [table.numbers("env_steps") for table in (data.episodes, data.terms, data.evaluations)]
    columns.append(data.metrics.get("env_steps", np.zeros(0)))
    return max((float(np.nanmax(column)) for column in columns if np.isfinite(column).any()), default=0.0)


def _title(run_folder: Path, data: CurveData) -> str:
    parts = [run_folder.resolve().name, f"{_last_step(data):,.0f} steps"]
    if len(data.episodes):
        parts.append(f"{len(data.episodes):,} episodes")
    return "   ".join(parts)
