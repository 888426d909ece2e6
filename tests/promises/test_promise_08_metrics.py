"""Promise 8: across kills and resumes no row of any table is lost or doubled, and the tables tell the same story."""

import csv
import json
import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ludus.store import load_checkpoint

pytestmark = pytest.mark.fault

DRIVER = Path(__file__).with_name("kill_and_resume.py")
KILLS, ITERATIONS, STEPS = 8, 20, 32
TABLES = (
    "monitor.csv", "behavior_metrics.csv", "reward_breakdown.csv", "evaluation_results.csv", "opponents.csv",
    "strategy_analysis.csv",
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(root: Path) -> Path:
    """The folder of runs that were killed again and again, each beside one that was not; their files are equal."""
    words = [sys.executable, str(DRIVER), str(root), str(KILLS), "8", "tables"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    counts = json.loads(done.stdout)
    assert counts["early"] + counts["working"] + counts["saving"] >= KILLS
    assert counts["runs"] >= 2
    return root


@pytest.fixture(params=["brawl", "duel"])
def run(runs: Path, request: pytest.FixtureRequest) -> Path:
    """A run that was killed some times."""
    return runs / {"brawl": "broken-0", "duel": "broken-1"}[request.param]


def rows(run: Path, table: str) -> list[dict[str, str]]:
    with (run / table).open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def steps(run: Path, table: str) -> list[int]:
    return [int(row["env_steps"]) for row in rows(run, table)]


def rise(numbers: list[int]) -> bool:
    return all(earlier < later for earlier, later in pairwise(numbers))


def test_every_table_is_byte_equal_to_that_of_a_run_without_kills(runs: Path) -> None:
    for number, tables in ((0, TABLES), (1, ("monitor.csv", "opponents.csv", "evaluation_results.csv"))):
        for table in ("metrics.jsonl", "reward_breakdown.csv", *tables):
            expected = (runs / f"straight-{number}" / table).read_bytes()
            assert len(expected.splitlines()) > 4, table
            assert (runs / f"broken-{number}" / table).read_bytes() == expected, table


def test_steps_rise(run: Path) -> None:
    logged = metrics(run)
    assert [line["iteration"] for line in logged] == list(range(1, ITERATIONS + 1))
    assert [line["env_steps"] for line in logged] == list(range(STEPS, ITERATIONS * STEPS + 1, STEPS))
    assert rise([line["updates"] for line in logged])
    assert steps(run, "reward_breakdown.csv") == [line["env_steps"] for line in logged]
    for table in ("behavior_metrics.csv", "strategy_analysis.csv"):
        assert not (run / table).exists() or rise(steps(run, table))
    for table in ("evaluation_results.csv", "opponents.csv"):
        by_opponent: dict[str, list[int]] = {}
        for row in rows(run, table):
            by_opponent.setdefault(row["opponent"], []).append(int(row["env_steps"]))
        assert by_opponent
        assert all(rise(numbers) for numbers in by_opponent.values())
        assert steps(run, table) == sorted(steps(run, table))
    assert steps(run, "monitor.csv") == sorted(steps(run, "monitor.csv"))


def test_reward_terms_add_up_exactly(run: Path) -> None:
    found = rows(run, "reward_breakdown.csv")
    assert any(float(row["total"]) != 0.0 for row in found)
    for row in found:
        terms = [float(value) for name, value in row.items() if name not in ("iteration", "env_steps", "total")]
        assert float(row["total"]) == sum(terms) == math.fsum(terms)


def test_episodes_and_rollouts_tell_the_same_sums(run: Path) -> None:
    """What finished episodes were given, and what unfinished ones have so far, is what the rollouts gave."""
    monitor, breakdown = rows(run, "monitor.csv"), rows(run, "reward_breakdown.csv")
    terms = len(breakdown[0]) - 3
    trace = load_checkpoint(run / "checkpoints" / "final").tensors["trace"]
    unfinished = math.fsum(trace["running"][:terms].flatten().tolist())
    finished = math.fsum(float(row["r"]) for row in monitor)
    assert finished + unfinished == math.fsum(float(row["total"]) for row in breakdown)
    played = sum(int(row["l"]) for row in monitor) + int(trace["lengths"].sum())
    assert played == ITERATIONS * STEPS


def test_all_tables_count_the_same_episodes(run: Path) -> None:
    monitor = rows(run, "monitor.csv")
    logged = metrics(run)
    for line in logged:
        ended = [row for row in monitor if int(row["iteration"]) == line["iteration"]]
        assert len(ended) == line["episodes"]
        if ended:
            mean = math.fsum(float(row["r"]) for row in ended) / len(ended)
            assert mean == pytest.approx(line["episode_return"], rel=1e-5, abs=1e-7)
    matches = rows(run, "opponents.csv")
    for outcome, column in (("won", "wins"), ("drawn", "draws"), ("lost", "losses")):
        told = {(row["iteration"], row["opponent"]): int(row[column]) for row in matches}
        counted = dict.fromkeys(told, 0)
        for row in monitor:
            counted[row["iteration"], row["opponent"]] += row["outcome"] == outcome
        assert counted == told
    if (run / "behavior_metrics.csv").exists():
        assert sum(int(row["episodes"]) for row in rows(run, "behavior_metrics.csv")) == len(monitor)
