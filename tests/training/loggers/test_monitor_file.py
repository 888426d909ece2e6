"""`monitor.csv` has the form of Stable-Baselines3's Monitor: its own reader and the usual pandas line take it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ludus.core.tables import read_table
from ludus.envs.world_parts import EpisodeMetrics
from ludus.rollout.episodes import NO_EPISODES, Episodes
from ludus.training.callbacks import Counters, Iteration
from ludus.training.loggers.csv_logger import MONITOR, CsvLogger


def write(folder: Path) -> None:
    logger = CsvLogger(folder, EpisodeMetrics(), has_winners=True)
    for number, (reward, length) in enumerate(((1.5, 4), (-2.0, 6)), start=1):
        episodes: Episodes = replace(
            NO_EPISODES,
            rewards=np.array([reward]),
            lengths=np.array([length]),
            outcomes=np.array([1 if reward > 0 else -1]),
            opponents=np.array([0]),
            names=("based:delay=8,noise=0.1",),
        )
        logger.iteration(Iteration(Counters(100 * number, number, 0), {}, 1.0, episodes))
    logger.close()


def test_the_file_is_what_sb3_writes(tmp_path: Path) -> None:
    write(tmp_path)
    lines = (tmp_path / MONITOR).read_text().splitlines()
    assert lines == [
        '#{"t_start": 0}',
        "r,l,t,iteration,env_steps,outcome,opponent,stage",
        '1.5,4,100,1,100,won,"based:delay=8,noise=0.1",',
        '-2.0,6,200,2,200,lost,"based:delay=8,noise=0.1",',
    ]
    table = read_table(tmp_path / MONITOR)
    assert table.numbers("r").tolist() == [1.5, -2.0]
    assert table.texts("outcome").tolist() == ["won", "lost"]


def test_sb3_and_pandas_read_it(tmp_path: Path) -> None:
    pandas: Any = pytest.importorskip("pandas")
    monitor: Any = pytest.importorskip("stable_baselines3.common.monitor")
    results_plotter: Any = pytest.importorskip("stable_baselines3.common.results_plotter")
    write(tmp_path)
    found = monitor.load_results(str(tmp_path))
    assert found["r"].tolist() == [1.5, -2.0]
    assert found["l"].tolist() == [4, 6]
    assert found["t"].tolist() == [100, 200]
    steps, returns = results_plotter.ts2xy(found, results_plotter.X_TIMESTEPS)
    assert (steps.tolist(), returns.tolist()) == ([4, 10], [1.5, -2.0])
    pasted = pandas.read_csv(tmp_path / MONITOR, skiprows=1)
    assert pasted["r"].tolist() == [1.5, -2.0]
    assert pasted["opponent"].tolist() == ["based:delay=8,noise=0.1"] * 2
