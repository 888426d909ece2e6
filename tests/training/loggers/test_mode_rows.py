"""Matches and evaluations in several modes: every logger tells modes and sides apart."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ludus.envs.world_parts import EpisodeMetrics
from ludus.training.callbacks import Counters, Evaluated, Iteration
from ludus.training.loggers.csv_logger import CsvLogger
from ludus.training.loggers.curves import draw_evaluations, draw_ratings, read_run
from ludus.training.loggers.progress import RecentMatches, ScalarNames

MakeIteration = Callable[..., Iteration]
ROWS = tuple(
    {"opponent": "keeper", "mode": mode, "side": side, "matches": 4, "win_rate": rate}
    for mode, side, rate in (("1v1", "", 0.5), ("1v2", "1v2", 0.25), ("1v2", "2v1", 0.75))
)


def test_evaluations_have_a_curve_for_each_mode_and_side(tmp_path: Path) -> None:
    records = CsvLogger(tmp_path, EpisodeMetrics(), has_winners=True)
    for number in (1, 2):
        records.evaluation(Evaluated(Counters(number * 1000, number, number), ROWS, 0.5, True))
    records.close()
    axes = Figure().subplots()
    assert draw_evaluations(axes, read_run(tmp_path))
    curves = {str(line.get_label()): np.asarray(line.get_ydata()).tolist() for line in axes.get_lines()}
    assert curves == {"1v1 keeper": [0.5, 0.5], "1v2 keeper": [0.25, 0.25], "2v1 keeper": [0.75, 0.75]}


def test_the_picture_draws_the_ratings_of_every_mode_each_kind_on_its_own_axis(tmp_path: Path) -> None:
    lines = [f'{{"env_steps": {step}, "rating_elo/{mode}": 1100.0, "rating_openskill/{mode}": 20.0}}'
             for step, mode in enumerate(("1v1", "1v2", "2v2"))]  # fmt: skip
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    figure = Figure()
    assert draw_ratings(figure.subplots(), read_run(tmp_path))
    drawn = [[line.get_label() for line in axes.get_lines()] for axes in figure.axes]
    assert drawn == [[f"{kind} {mode}" for mode in ("1v1", "1v2", "2v2")] for kind in ("Elo", "openskill")]


def test_win_rates_are_those_of_matches_by_side(make_iteration: MakeIteration) -> None:
    """Of five episodes two are of a team mate and one of a game with oneself."""
    iteration = make_iteration(1, (1, 1, -1, 0, 1), (0, 0, 0, 0, -1), names=("keeper",))
    leads, sides = np.array([True, False, True, False, True]), np.array([1, 1, 0, 0, -1])
    episodes = replace(iteration.episodes, leads=leads, sides=sides, side_names=("1v2", "2v1"))
    matches = episodes.matches()
    assert (matches.opponents.tolist(), matches.outcomes.tolist(), matches.sides.tolist()) == ([0, 0], [1, -1], [1, 0])
    recent = RecentMatches()
    recent.add(episodes)
    assert recent.shares() == {"1v2 keeper": 0.0, "2v1 keeper": 1.0}
    found = ScalarNames().of_iteration(replace(iteration, episodes=episodes))
    assert {name: value for name, value in found.items() if name.startswith("win_rate/")} == {
        "win_rate/1v2 keeper": 0.0,
        "win_rate/2v1 keeper": 1.0,
    }
