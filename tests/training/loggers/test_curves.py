"""`training_curves.png`: read from the run's files alone, drawn whatever is missing, right where it can be checked."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from ludus.core.tables import Table, phase_starts, read_table
from ludus.training.callbacks import Counters
from ludus.training.loggers import curves
from ludus.training.loggers.curves import (
    MOST_CURVES,
    CurveData,
    CurvesLogger,
    Draw,
    band,
    draw_curves,
    moving_average,
    read_run,
)

pytestmark = pytest.mark.train

EMPTY = Table({})


def write_run(folder: Path, iterations: int = 40) -> None:
    """Writes a run whose agent wins more and more, against bots and its own snapshots."""
    random = np.random.default_rng(0)
    metrics, monitor = [], ['#{"t_start": 0}', "r,l,t,iteration,env_steps,outcome,opponent,stage"]
    terms, opponents = ["iteration,env_steps,total,win,idle"], ["iteration,env_steps,learner,opponent,kind,matches"]
    results = ["iteration,env_steps,opponent,matches,win_rate,win_rate_low,win_rate_high,damage_ratio,score"]
    for number in range(1, iterations + 1):
        steps, share = 1000 * number, number / iterations
        record: dict[str, float | None] = {
            "iteration": number,
            "env_steps": steps,
            "updates": number,
            "episode_return": None,
        }
        for name in ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "explained_variance"):
            record[name] = float(random.normal())
        metrics.append(json.dumps(record | {"rating": 1000.0 + 10.0 * number}))
        for name in ("based", "random", f"snapshot-{number // 4}"):
            outcome, reward = ("won", 2.5) if random.random() < share else ("lost", -2.5)
            phase = "bots" if share < 0.5 else "self-play"
            monitor.append(f"{reward},{900 - number},{steps},{number},{steps},{outcome},{name},{phase}")
            kind = "snapshot" if name.startswith("snapshot") else "bot"
            opponents.append(f"{number},{steps},main,{name},{kind},1")
        terms.append(f"{number},{steps},{share - 0.1},{share},-0.1")
        if number % 10 == 0:
            results += [f"{number},{steps},{name},50,{share},{share - 0.1},{share + 0.1},1.5,{share}" for name in "ab"]
    files = {"metrics.jsonl": metrics, "monitor.csv": monitor, "reward_breakdown.csv": terms,
             "evaluation_results.csv": results, "opponents.csv": opponents}  # fmt: skip
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")


def picture_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def curve(folder: Path, draw: Draw, label: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    figure = Figure()
    axes = figure.subplots()
    assert draw(axes, read_run(folder))
    lines = [line for each in figure.axes for line in each.get_lines() if line.get_label() == label]
    assert len(lines) == 1, label
    return np.asarray(lines[0].get_xydata(), dtype=np.float64)


def test_a_whole_run_is_drawn_and_drawn_again_to_the_same_bytes(tmp_path: Path) -> None:
    write_run(tmp_path)
    path = draw_curves(tmp_path)
    assert path == tmp_path / "training_curves.png"
    width, height = picture_size(path)
    assert width > 1500
    assert height > 1000
    before = path.read_bytes()
    CurvesLogger(tmp_path).on_training_end(Counters())
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith(".")) == []


def test_curves_say_what_the_files_say(tmp_path: Path) -> None:
    write_run(tmp_path)
    evaluation = curve(tmp_path, curves.draw_evaluations, "a")
    assert evaluation.tolist() == [[10_000, 0.25], [20_000, 0.5], [30_000, 0.75], [40_000, 1.0]]
    assert curve(tmp_path, curves.draw_score, "score").tolist() == evaluation.tolist()
    assert curve(tmp_path, curves.draw_score, "highest").tolist() == [[40_000, 1.0]]
    assert curve(tmp_path, curves.draw_length, "mean")[0].tolist() == pytest.approx([2500.0, 897.5], rel=0.5)
    wins = curve(tmp_path, curves.draw_win_rates, "based")
    assert wins[0, 1] <= 0.4
    assert wins[-1, 1] >= 0.8
    assert curve(tmp_path, curves.draw_win_rates, "snapshot (11)").shape == (40, 2)
    idle = curve(tmp_path, curves.draw_terms, "idle")
    assert idle[:, 1].tolist() == pytest.approx([-0.1] * 40)
    assert curve(tmp_path, curves.draw_entropy, "KL divergence").shape == (40, 2)
    assert curve(tmp_path, curves.draw_losses, "value loss").shape == (40, 2)
    assert curve(tmp_path, curves.draw_update, "clipped").shape == (40, 2)


@pytest.mark.parametrize("missing", ["monitor.csv", "all"])
def test_what_is_missing_is_left_out(tmp_path: Path, missing: str) -> None:
    write_run(tmp_path, iterations=2)
    for path in list(tmp_path.iterdir()):
        if missing in (path.name, "all"):
            path.unlink()
    assert picture_size(draw_curves(tmp_path))[0] > 1500


def test_rows_that_were_cut_off_or_are_none_are_left_out(tmp_path: Path) -> None:
    write_run(tmp_path, iterations=3)
    for name, end in {
        "metrics.jsonl": b'[1, 2]\n{"iteration": 4, "env_st', "monitor.csv": b"4,40", "opponents.csv": b"\xff\xfe",
        "reward_breakdown.csv": b"4,x,,nan,inf\n", "evaluation_results.csv": b"\n\n",
    }.items():  # fmt: skip
        with (tmp_path / name).open("ab") as file:
            file.write(end)
    data = read_run(tmp_path)
    assert len(data.metrics) == 3
    assert len(data.episodes) == 9
    assert data.terms.numbers("total")[:3].tolist() == pytest.approx([1 / 3 - 0.1, 2 / 3 - 0.1, 0.9])
    assert np.isnan(data.terms.numbers("env_steps")[3])
    draw_curves(tmp_path)


def test_headers_alone_are_no_data(tmp_path: Path) -> None:
    write_run(tmp_path, iterations=1)
    for path in tmp_path.iterdir():
        path.write_text(path.read_text().splitlines()[0] + "\n" if path.suffix == ".csv" else "")
    assert len(read_table(tmp_path / "monitor.csv")) == 0
    assert len(read_table(tmp_path / "metrics.jsonl")) == 0
    axes = Figure().subplots()
    data = read_run(tmp_path)
    for draw in (curves.draw_reward, curves.draw_win_rates, curves.draw_terms, curves.draw_evaluations,
                 curves.draw_score, curves.draw_losses):  # fmt: skip
        assert not draw(axes, data)


def test_moving_averages_by_hand() -> None:
    steps = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    values = np.array([1.0, np.nan, 3.0, 8.0, 4.0])
    x, y = moving_average(steps, values, 2)  # the value before and the value itself
    assert x.tolist() == [1.0, 3.0, 4.0, 5.0]
    assert y.tolist() == [1.0, 2.0, 5.5, 6.0]
    x, y = moving_average(np.array([1.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]), 1)
    assert (x.tolist(), y.tolist()) == ([1.0, 2.0], [0.5, 4.0])
    assert len(moving_average(np.arange(5000.0), np.arange(5000.0), 10)[0]) == 400


def test_bands_by_hand() -> None:
    steps = np.repeat([10.0, 20.0], 11)
    values = np.concatenate([np.arange(11.0), np.arange(11.0) + 100.0])
    x, mean, low, high = band(steps, values)
    assert (x.tolist(), mean.tolist(), low.tolist(), high.tolist()) == (
        [10.0, 20.0], [5.0, 105.0], [1.0, 101.0], [9.0, 109.0],
    )  # fmt: skip
    assert len(band(np.arange(5000.0), np.arange(5000.0))[0]) == 80


def test_stages_begin_where_their_first_episode_is() -> None:
    table = Table({"env_steps": ["1", "2", "3", "4"], "stage": ["a", "a", "b", "b"]})
    assert phase_starts(table) == [(1.0, "a"), (3.0, "b")]
    assert phase_starts(Table({"env_steps": ["1"], "stage": [""]})) == []
    assert phase_starts(EMPTY) == []


def test_more_opponents_than_looks_share_a_curve() -> None:
    names = [f"bot {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    rows = [name for index, name in enumerate(names) for _ in range(30 - index)]
    data = CurveData(EMPTY, Table({"opponent": rows}), EMPTY, EMPTY, EMPTY)
    groups = curves.opponent_groups(data)
    assert {groups[name] for name in names[:23]} == set(names[:23])
    assert {groups[name] for name in names[23:]} == {"others (3)"}


@pytest.mark.parametrize("count", [13, 30])
def test_every_opponent_of_an_evaluation_is_drawn_or_the_hardest_ones_and_the_rest_is_counted(count: int) -> None:
    rates = {f"bot {index:02d}": 1.0 - index / 100 for index in range(count)}
    columns = {"env_steps": ["1"] * count, "opponent": list(rates), "win_rate": [str(rate) for rate in rates.values()]}
    axes = Figure().subplots()
    assert curves.draw_evaluations(axes, CurveData(EMPTY, EMPTY, EMPTY, Table(columns), EMPTY))
    drawn = [str(line.get_label()) for line in axes.get_lines()]
    left_out = ["6 higher ones not drawn"] if count > MOST_CURVES else []
    assert drawn == list(rates)[-MOST_CURVES:] + left_out
    looks = {
        (line.get_color(), line.get_linestyle()) for line in axes.get_lines()[:count] if line.get_linestyle() != "None"
    }
    assert len(looks) == min(count, MOST_CURVES), "no two look alike"
