"""Reading run folders: numbers and texts, torn lines, missing files, settings, and what is no run folder."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from ludus.core.errors import ConfigError
from ludus.core.tables import read_table
from ludus.reports import run_data
from ludus.reports.run_data import read_run
from ludus.training.loggers import csv_logger


def test_the_names_of_the_files_are_those_that_training_writes() -> None:
    read = {run_data.METRICS, run_data.EPISODES, run_data.EPISODE_METRICS, run_data.REWARDS, run_data.EVALUATIONS}
    read |= {run_data.OPPONENTS, run_data.STRATEGY}
    assert read | {csv_logger.EFFECTS} == set(csv_logger.FILES)  # the last one is for people


def test_a_column_is_numbers_or_texts_as_asked(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text('iteration,reward,opponent\n1,0.5,"based:delay=8,noise=0.1"\n2,,rock\n3,2,7\n')
    table = read_table(file)
    assert (len(table), table.names, table.file) == (3, ("iteration", "reward", "opponent"), "table.csv")
    np.testing.assert_array_equal(table.numbers("reward"), [0.5, math.nan, 2.0])
    assert table.texts("opponent").tolist() == ["based:delay=8,noise=0.1", "rock", "7"]
    assert np.isnan(table.numbers("nothing")).all()
    assert table.texts("nothing").tolist() == ["", "", ""]
    assert table.last("reward") == 2.0
    assert table.rows(table.numbers("iteration") > 1).texts("opponent").tolist() == ["rock", "7"]
    assert "reward" in table
    assert "nothing" not in table


def test_lines_that_are_cut_off_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "monitor.csv").write_text('#{"t_start": 0}\niteration,r\n1,10\n2\n3,25')
    assert read_table(tmp_path / "monitor.csv").numbers("r").tolist() == [10.0]
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1, "kl": 0.5}\n[1]\n{"iteration": 2, "late": 3}\n{"itera')
    metrics = read_table(tmp_path / "metrics.jsonl")
    assert metrics.numbers("iteration").tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(metrics.numbers("kl"), [0.5, math.nan])
    np.testing.assert_array_equal(metrics.numbers("late"), [math.nan, 3.0])


def test_a_run_of_which_only_some_files_are_there(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("ppo:\n  n_steps: 8\n  ent_coef: {kind: constant, level: 0.01}\n")
    (tmp_path / "run.json").write_text(json.dumps({"world": "duel"})[:-4])
    data = read_run(tmp_path)
    assert (data.setting("ppo.n_steps"), data.setting("ppo.ent_coef.level"), data.setting("ppo.more.x", 3)) == (
        8,
        0.01,
        3,
    )
    assert (dict(data.run), len(data.metrics), len(data.episodes), data.metrics.names) == ({}, 0, 0, ())
    assert math.isnan(data.metrics.last("entropy"))


def test_a_damaged_config_is_no_reason_to_give_up(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("ppo: [1, {")
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1}\n')
    data = read_run(tmp_path)
    assert (dict(data.config), len(data.metrics)) == ({}, 1)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"runs/latest"):
        read_run(tmp_path)
