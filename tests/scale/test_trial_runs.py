"""The runs of a trial, without Ray: exact pauses and forks, limits that stop cleanly, the objective."""

import csv
import json
import time
from pathlib import Path

import pytest
from tests.scale.conftest import Write

from ludus.core.errors import FormatError, UnknownNameError
from ludus.scale.config import SweepConfig, SweepPlan, load_sweep
from ludus.scale.runs import STOP_FILE, TrialRuns, read_points, read_trial

RATE = "ppo.learning_rate"
VALUES = {RATE: 0.01}


def weights_of(run: Path, name: str = "final") -> dict[str, str]:
    """Return the SHA-256 of every tensor file of a checkpoint."""
    manifest = json.loads((run / "checkpoints" / name / "manifest.json").read_text())
    return {file: about["sha256"] for file, about in manifest["files"].items() if file.endswith(".safetensors")}


@pytest.fixture
def plan(write_sweep: Write) -> SweepPlan:
    return load_sweep(write_sweep("seeds: 2"))


def test_a_trial_that_is_paused_learns_the_same_as_one_that_is_not(plan: SweepPlan, tmp_path: Path) -> None:
    paused, whole = (TrialRuns(plan, tmp_path / name, "trial-0001", VALUES) for name in ("paused", "whole"))
    first = paused.advance(1)
    assert [[point.env_steps for point in points] for points in first.points] == [[64], [64]]
    assert not first.is_finished
    assert first.reason == ""
    third = paused.advance(3)
    assert [[point.env_steps for point in points] for points in third.points] == [[64, 128, 192]] * 2
    last = paused.advance(None)
    assert last.is_finished
    assert last.points == whole.advance(None).points
    for one, other in zip(paused.runs(), whole.runs(), strict=True):
        assert weights_of(one) == weights_of(other)
        assert len(weights_of(one)) > 0
    assert [json.loads((run / "run.json").read_text())["seed"] for run in paused.runs()] == [0, 1]
    sessions = [json.loads((run / "run.json").read_text())["sessions"] for run in paused.runs()]
    assert [len(each) for each in sessions] == [3, 3]
    assert sessions[0][0]["started"] <= sessions[1][0]["started"] <= sessions[0][0]["ended"]
    # Both pass at the same time: the longer one counts.
    assert last.wall_s == pytest.approx(max(sum(session["wall_s"] for session in each) for each in sessions))
    # What is finished is not trained again.
    assert paused.advance(None) == last
    assert len(json.loads((paused.runs()[0] / "run.json").read_text())["sessions"]) == 3


def test_a_fork_continues_exactly_where_its_source_was(plan: SweepPlan, tmp_path: Path) -> None:
    source = TrialRuns(plan, tmp_path, "trial-0001", VALUES)
    source.advance(2)
    same = TrialRuns(plan, tmp_path, "trial-0002", VALUES)
    same.fork(source, VALUES)
    assert [len(points) for points in same.progress().points] == [2, 2]
    other = TrialRuns(plan, tmp_path, "trial-0003", {RATE: 0.05})
    other.advance(1)
    runs = other.runs()
    other.fork(source, {RATE: 0.1})
    end = source.advance(None)
    assert same.advance(None).points == end.points
    assert [*map(weights_of, same.runs())] == [*map(weights_of, source.runs())]
    # With a changed key it takes another way from there on.
    with pytest.raises(FormatError, match="other values"):
        TrialRuns(plan, tmp_path, "trial-0003", {RATE: 0.05})
    changed = TrialRuns(plan, tmp_path, "trial-0003", {RATE: 0.1})
    assert {run.parent.name for run in changed.runs()} == {"fork-1"}
    assert changed.forks == [{"source": "trial-0001", "evaluations": 2, "before": {RATE: 0.05}}]
    ended = changed.advance(None)
    assert runs == [tmp_path / "trials" / "trial-0003" / f"seed-{seed}" for seed in (0, 1)]
    assert [points[:2] for points in ended.points] == [points[:2] for points in end.points]
    assert weights_of(changed.runs()[0]) != weights_of(source.runs()[0])
    parent = json.loads((changed.runs()[0] / "run.json").read_text())["parent"]
    assert parent["changes"] == ["ppo.learning_rate.level: 0.01 -> 0.1"]
    walls = [
        [sum(session["wall_s"] for session in json.loads((run / "run.json").read_text())["sessions"]) for run in each]
        for each in (runs, changed.runs())  # those before the fork count too
    ]
    assert ended.wall_s == pytest.approx(sum(map(max, walls)))
    assert read_trial(tmp_path, "trial-0003")["values"] == {RATE: 0.1}


def test_limits_stop_runs_cleanly(plan: SweepPlan, tmp_path: Path) -> None:
    trial = TrialRuns(plan, tmp_path, "trial-0001", VALUES)
    late = trial.advance(None, ends_at_s=time.time())
    assert late.is_interrupted
    assert "wall time" in late.reason
    assert all((run / "checkpoints" / "interrupted").is_dir() for run in trial.runs())
    (tmp_path / STOP_FILE).touch()
    asked = trial.advance(None)
    assert asked.is_interrupted
    assert asked.reason == "the sweep was asked to stop"
    (tmp_path / STOP_FILE).unlink()
    short = plan.changed(["sweep.max_hours_per_trial=0.0000001"])
    used_up = TrialRuns(short, tmp_path, "trial-0001", VALUES).advance(None)
    assert not used_up.is_interrupted
    assert "max_hours_per_trial" in used_up.reason
    done = trial.advance(None)
    assert done.is_finished
    assert done.reason == ""


def write_evaluations(folder: Path) -> None:
    """Write two evaluations against two opponents."""
    rows = [(1, 64, "rock", 4, 0.25, 0.5), (1, 64, "paper", 4, 0.75, 0.5), (2, 128, "rock", 4, 0.5, 0.75),
            (2, 128, "paper", 4, 1.0, 0.75)]  # fmt: skip
    with (folder / "evaluation_results.csv").open("w") as stream:
        csv.writer(stream).writerows([("iteration", "env_steps", "opponent", "matches", "win_rate", "score"), *rows])


def test_the_objective_is_any_number_of_an_evaluation(tmp_path: Path) -> None:
    assert read_points(tmp_path, SweepConfig()) == []
    write_evaluations(tmp_path)
    assert read_points(tmp_path, SweepConfig()) == [(64, 0.5), (128, 0.75)]
    assert read_points(tmp_path, SweepConfig(objective="win_rate")) == [(64, 0.5), (128, 0.75)]
    rock = SweepConfig(objective="win_rate", opponents=("rock",))
    assert read_points(tmp_path, rock) == [(64, 0.25), (128, 0.5)]
    with pytest.raises(UnknownNameError, match="valid: matches, win_rate, score"):
        read_points(tmp_path, SweepConfig(objective="win_rat"))
    with pytest.raises(UnknownNameError, match="valid: rock, paper"):
        read_points(tmp_path, SweepConfig(opponents=("rocky",)))


def test_an_objective_that_does_not_exist_fails_at_the_first_evaluation(write_sweep: Write, tmp_path: Path) -> None:
    trial = TrialRuns(load_sweep(write_sweep("objective: win_rate")), tmp_path, "trial-0001", VALUES)
    with pytest.raises(UnknownNameError, match="mean_return"):
        trial.advance(None)
    assert json.loads((trial.runs()[0] / "run.json").read_text())["sessions"][-1]["env_steps"] == 64


@pytest.mark.parametrize("change", [{"forks": 3}, {"forks": [3]}, {"values": None}, {"values": []}])
def test_a_damaged_trial_is_refused(plan: SweepPlan, tmp_path: Path, change: dict[str, object]) -> None:
    file = tmp_path / "trials" / "trial-0001" / "trial.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"values": VALUES, "forks": []} | change))
    with pytest.raises(FormatError, match="not the file of a trial"):
        TrialRuns(plan, tmp_path, "trial-0001", VALUES)
