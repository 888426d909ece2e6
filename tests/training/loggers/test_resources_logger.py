"""The logger of memory and times: which seconds count as what, how often there is a row, and a run that goes on."""

import csv
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from ludus.reports import run_data
from ludus.training.callbacks import Counters, Evaluated, Iteration
from ludus.training.loggers.resources import COLUMNS, FILE, PARTS, ResourcesLogger

MakeIteration = Callable[..., Iteration]
MakeEvaluated = Callable[..., Evaluated]


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / FILE).open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_report_looks_for_the_same_file() -> None:
    assert run_data.RESOURCES == FILE


def test_every_second_counts_as_one_thing(
    tmp_path: Path, make_iteration: MakeIteration, make_evaluated: MakeEvaluated
) -> None:
    clock = Clock()
    logger = ResourcesLogger(tmp_path, clock=clock)
    clock.now_s = 150.0  # before the start nothing counts
    logger.on_training_start(Counters())
    clock.now_s = 150.6  # an iteration takes 0.5 s, so 0.1 s went to logging
    logger.on_iteration(make_iteration(1))
    clock.now_s = 152.6
    logger.on_checkpoint(tmp_path, Counters())
    clock.now_s = 155.6
    logger.on_evaluation(make_evaluated(1, 0.5))
    logger.on_training_end(Counters(1000, 1, 8))
    first, last = rows(tmp_path)
    assert tuple(first) == COLUMNS
    shown = {part: float(first[f"{part}_s"]) for part in PARTS}
    assert shown == {
        "simulation": 0.2, "inference": 0.1, "opponents": 0.0, "update": 0.15, "other": 0.05, "evaluation": 0.0,
        "checkpoints": 0.0, "logging": 0.1,
    }  # fmt: skip
    assert (first["iteration"], first["env_steps"], float(first["elapsed_s"])) == ("1", "1000", 0.6)
    assert (float(last["checkpoints_s"]), float(last["evaluation_s"]), float(last["update_s"])) == (2.0, 3.0, 0.0)
    assert float(last["elapsed_s"]) == 5.6
    resident_mib = psutil.Process().memory_info().rss / 1024.0**2
    assert float(last["resident_mib"]) == pytest.approx(resident_mib, rel=0.2)
    assert (last["gpu_use"], last["gpu_mib"]) == ("", "")


def test_an_iteration_that_is_broken_off_is_no_checkpoint(tmp_path: Path) -> None:
    clock = Clock()
    logger = ResourcesLogger(tmp_path, clock=clock)
    logger.on_training_start(Counters())
    clock.now_s = 102.0
    logger.on_checkpoint(tmp_path / "checkpoints" / "init", Counters())
    clock.now_s = 132.0  # most of it an iteration that is not to be finished
    logger.on_checkpoint(tmp_path / "checkpoints" / "interrupted", Counters())
    logger.on_training_end(Counters())
    (row,) = rows(tmp_path)
    assert (float(row["checkpoints_s"]), float(row["other_s"])) == (2.0, 30.0)


def test_rows_become_rare_and_lose_no_second(tmp_path: Path, make_iteration: MakeIteration) -> None:
    clock = Clock()
    logger = ResourcesLogger(tmp_path, clock=clock)
    logger.on_training_start(Counters())
    for number in range(1, 20_001):
        clock.now_s += 0.5
        logger.on_iteration(make_iteration(number))
    logger.on_training_end(Counters(20_000_000, 20_000, 0))
    found = rows(tmp_path)
    # A row each up to iteration 256, then one more whenever the run is 1/256 longer: 256 * ln(20,000 / 256) = 1,116.
    assert 1_200 < len(found) < 1_400
    assert sum(float(row["update_s"]) for row in found) == pytest.approx(0.15 * 20_000)


def test_a_run_that_goes_on_appends(tmp_path: Path, make_iteration: MakeIteration) -> None:
    for number in (1, 2):
        logger = ResourcesLogger(tmp_path)
        logger.on_training_start(Counters())
        logger.on_iteration(make_iteration(number))
        logger.on_training_end(Counters(number * 1000, number, 0))
    assert [row["iteration"] for row in rows(tmp_path)] == ["1", "2"]
