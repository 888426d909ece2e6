"""Evaluations in trials: every logger names their rows by trial, and says when the agent had converged."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ludus.core.text import row_label
from ludus.envs.world_parts import EpisodeMetrics
from ludus.training.callbacks import Counters, Evaluated
from ludus.training.loggers.console import PlainConsole
from ludus.training.loggers.csv_logger import CsvLogger
from ludus.training.loggers.curves import draw_curves, draw_evaluations, read_run
from ludus.training.loggers.progress import ScalarNames, Watch

MakeTried = Callable[..., Evaluated]


def test_a_row_is_named_by_its_trial_or_its_opponent() -> None:
    assert row_label({"opponent": "", "trial": "walk"}) == "walk"
    assert row_label({"opponent": "based"}) == "based"
    assert row_label({}) == ""


def test_scalars_have_the_trial_in_their_names(make_tried: MakeTried) -> None:
    assert ScalarNames().of_evaluation(make_tried(1)) == {
        "evaluation/score": 12.5,
        "evaluation/mean_length/walk": 500.0,
        "evaluation/distance_m/walk": 12.5,
        "evaluation/mean_length/pushes": 500.0,
        "evaluation/distance_m/pushes": 8.0,
    }
    found = ScalarNames().of_evaluation(make_tried(2, steps_to_convergence=1500))
    assert found["evaluation/steps_to_convergence"] == 1500.0


def test_lines_say_the_number_that_decides(make_tried: MakeTried) -> None:
    stream = io.StringIO()
    console = PlainConsole(Watch("walker", 3000), stream)
    console.on_training_start(Counters())
    console.on_evaluation(make_tried(1))
    console.on_evaluation(make_tried(2, steps_to_convergence=2000))
    console.on_training_end(Counters(3000, 3, 0))
    _, first, _, *_, last = stream.getvalue().splitlines()
    assert first == "[OK] evaluation at 1,000 steps: score 12.5 (best): walk 12.5, pushes 8"
    assert last.endswith(", best score 12.5, steps_to_convergence 2,000")


def test_the_table_has_a_column_and_the_picture_curves_of_trials(tmp_path: Path, make_tried: MakeTried) -> None:
    records = CsvLogger(tmp_path, EpisodeMetrics(), has_winners=False)
    records.evaluation(make_tried(1))
    records.evaluation(make_tried(2, steps_to_convergence=2000))
    records.close()
    lines = (tmp_path / "evaluation_results.csv").read_text().splitlines()
    assert lines == [
        "iteration,env_steps,opponent,trial,matches,mean_length,distance_m,score,steps_to_convergence",
        "1,1000,,walk,20,500.0,12.5,12.5,",
        "1,1000,,pushes,20,500.0,8.0,12.5,",
        "2,2000,,walk,20,500.0,12.5,12.5,2000",
        "2,2000,,pushes,20,500.0,8.0,12.5,2000",
    ]
    axes = Figure().subplots()
    assert draw_evaluations(axes, read_run(tmp_path))
    curves = {str(line.get_label()): np.asarray(line.get_xydata()).tolist() for line in axes.get_lines()}
    assert curves == {name: [[1000.0, far], [2000.0, far]] for name, far in (("walk", 12.5), ("pushes", 8.0))}
    assert axes.get_ylabel() == "distance_m"
    assert draw_curves(tmp_path).stat().st_size > 10_000
