"""Sweeps on a real Ray, started once for all tests of this file; and one in a process that is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from tests.commands import NOBODY
from tests.scale.conftest import Write

from ludus.core.errors import ConfigError
from ludus.scale.cluster import ray_session
from ludus.scale.config import load_sweep, read_sweep
from ludus.scale.results import SweepResults, TrialRecord, read_results
from ludus.scale.sweep import _Watcher, resume_sweep, start_sweep

if not all(map(find_spec, ("ray", "optuna", "sklearn"))):  # without importing Ray, which then listens everywhere
    pytest.skip("needs ray, optuna and scikit-learn: the extra scale", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("default")  # those of Ray, which are many, are not ours to fix

RATE = "ppo.learning_rate"
LIMIT_S = 120.0
ONE_WORKER = "max_concurrent: 1"  # importing torch takes most of the time


@pytest.fixture(scope="module", autouse=True)
def ray() -> Iterator[None]:
    """One Ray for all sweeps in this process."""
    with ray_session():
        yield


def sessions_of(results: SweepResults, number: int) -> list[Any]:
    """Return all sessions of the runs of a trial."""
    runs = sorted((results.folder / "trials" / f"trial-{number:04}").glob("**/seed-*/run.json"))
    return [session for run in runs for session in json.loads(run.read_text())["sessions"]]


def test_ray_listens_on_loopback_alone() -> None:
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    assert any("raylet" in process.name() for process in processes)
    sockets = [each for process in processes for each in process.net_connections("inet")]
    found = [each for each in sockets if each.status == psutil.CONN_LISTEN]
    assert found
    assert {each.laddr.ip.removeprefix("::ffff:") for each in found} == {"127.0.0.1"}
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_random_search_reports_a_trial_that_fails(write_sweep: Write, tmp_path: Path) -> None:
    weights = "rewards: {weights: {sweep: choice, values: [{}, {no_such_term: 1.0}]}}"
    file = write_sweep(f"trials: 2, seeds: 2, search: random, scheduler: none, seed: 1, {ONE_WORKER}", weights)
    told: list[tuple[int, str]] = []
    plan, folder = load_sweep(file), tmp_path / "folder"
    results = start_sweep(plan, folder, listener=lambda _, trial: told.append((trial.number, trial.state)))
    good, bad = results.trials.values()  # a failed one costs its worker, so that it comes last
    assert [trial.values["rewards.weights"] for trial in (good, bad)] == [{}, {"no_such_term": 1.0}]
    assert good.values[RATE] != bad.values[RATE]
    assert bad.state == "failed"
    assert bad.reason.startswith("UnknownNameError: unknown reward term")
    assert "no_such_term" in bad.reason
    assert good.state == "finished"
    assert [len(points) for points in good.points] == [4, 4]
    assert len(sessions_of(results, good.number)) == 2  # no scheduler, so no run was paused
    assert next(state for number, state in told if number == good.number) == "running"
    assert results.reason == ""
    assert results.best is good
    assert read_results(plan, folder).trials == results.trials
    assert {path.name for path in folder.iterdir()} == {"sweep.yaml", "results.json", "best.yaml", "trials"}
    again = resume_sweep(read_sweep(folder), folder)  # nothing is left to do
    assert again.trials == results.trials
    with pytest.raises(ConfigError, match="--resume"):
        start_sweep(plan, folder)
    with pytest.raises(ConfigError, match="cpus_per_trial is 1000"):
        start_sweep(plan.changed(["sweep.cpus_per_trial=1000"]), tmp_path / "large")


def check_forks(results: SweepResults, evaluations: int) -> None:
    """Check that trials were forked from each other's exact states, by the files of their runs."""
    assert {trial.state for trial in results.trials.values()} == {"finished"}
    forked = [trial for trial in results.trials.values() if trial.forks]
    assert forked
    for trial in forked:
        fork, seed = trial.forks[-1], f"seed-{results.plan.config.seeds - 1}"
        assert fork["source"] in {other.name for other in results.trials.values()} - {trial.name}
        assert trial.forks[0]["before"] != trial.values
        assert 1e-4 <= trial.values[RATE] <= 1e-1
        run = results.folder / "trials" / trial.name / f"fork-{len(trial.forks)}" / seed / "run.json"
        parent = json.loads(run.read_text())["parent"]
        assert fork["source"] in parent["folder"]
        assert parent["env_steps"] == 64 * fork["evaluations"]
        assert {len(points) for points in trial.points} == {evaluations}
    assert not (results.folder / "forks").exists()


@pytest.mark.slow  # with the worker's start; all but the proposals is that of pbt
def test_pb2_forks_a_population_from_its_best(write_sweep: Write, tmp_path: Path) -> None:
    section = f"trials: 2, seeds: 1, scheduler: pb2, pbt: {{quantile: 0.5}}, {ONE_WORKER}"
    plan = load_sweep(write_sweep(section), ["total_env_steps=192"])
    check_forks(start_sweep(plan, tmp_path / "folder"), evaluations=3)


def test_a_signal_saves_all_runs_and_the_population_resumes(write_sweep: Write, tmp_path: Path) -> None:
    section = f"trials: 2, seeds: 2, scheduler: pbt, pbt: {{quantile: 0.5}}, {ONE_WORKER}"
    plan = load_sweep(write_sweep(section), ["total_env_steps=192"])

    def listen(_: SweepResults, trial: TrialRecord) -> None:
        if trial.evaluations and not sent:  # the other trial waits for its turn, or is paused
            sent.append(trial.number)
            os.kill(os.getpid(), signal.SIGTERM)

    sent: list[int] = []
    stopped = start_sweep(plan, tmp_path / "folder", listener=listen)
    assert stopped.signal_number == signal.SIGTERM
    assert stopped.reason == "SIGTERM came"
    assert {trial.state for trial in stopped.trials.values()} == {"waiting"}
    assert json.loads((stopped.folder / "results.json").read_text())["state"] == "stopped"
    results = resume_sweep(read_sweep(stopped.folder), stopped.folder)
    assert results.reason == ""
    check_forks(results, evaluations=3)


def test_no_trial_begins_when_the_time_is_up(write_sweep: Write, tmp_path: Path) -> None:
    plan = load_sweep(write_sweep("max_hours: 1"))
    early, late = (_Watcher(SweepResults(plan, tmp_path), lambda *_: None, time.time() + left) for left in (60.0, -1.0))
    assert not early.is_over()
    assert late.is_over()
    late.close()
    document = json.loads((tmp_path / "results.json").read_text())
    assert (document["state"], document["reason"]) == ("stopped", "sweep.max_hours is used up")
    (tmp_path / "results.json").write_text(json.dumps(document | {"wall_s": 3601.0}))
    assert resume_sweep(plan, tmp_path).reason == "sweep.max_hours is used up"


def test_a_sweep_whose_first_trials_all_fail_is_stopped(write_sweep: Write, tmp_path: Path) -> None:
    watcher = _Watcher(SweepResults(load_sweep(write_sweep()), tmp_path), lambda *_: None, time.time() + 60.0)
    for place in range(3):
        assert not watcher.is_over()
        trial = SimpleNamespace(trial_id=str(place), config={RATE: 0.01 * (place + 1)})
        (tmp_path / "trials" / watcher.name_trial(trial)).mkdir(parents=True)
        (tmp_path / "trials" / watcher.name_trial(trial) / "error.txt").write_text("RuntimeError: the disk is gone\n")
        watcher.fail(trial)
    assert watcher.is_over()
    assert watcher.reason == "the first 3 trials failed, the last one by: RuntimeError: the disk is gone"
    assert (tmp_path / "stop").exists()
    watcher.close()


def wait_for_a_finished_trial(process: "subprocess.Popen[str]", results: Path) -> None:
    limit_s = time.monotonic() + LIMIT_S
    while '"state": "finished"' not in (results.read_text() if results.exists() else ""):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < limit_s, "no trial finished"
        time.sleep(0.02)


def test_a_killed_sweep_resumes_and_repeats_nothing(write_sweep: Write, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    file = write_sweep(f"trials: 4, seeds: 1, asha: {{reduction_factor: 2}}, {ONE_WORKER}")
    command = [sys.executable, "-m", "ludus", "sweep", str(file), "--out", str(folder)]
    output, environment = subprocess.PIPE, os.environ | NOBODY
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True, env=environment)
    wait_for_a_finished_trial(process, folder / "results.json")
    family = psutil.Process(process.pid).children(recursive=True)
    names = {each.pid: each.name() for each in family}
    process.kill()
    process.communicate()
    workers = [each for each in family if "Agent" not in names[each.pid]]  # Ray's agents notice it after a minute
    gone, left = psutil.wait_procs(workers, timeout=60)
    assert left == [], "processes of Ray outlive the sweep"
    assert gone
    before = read_results(read_sweep(folder), folder)
    ended = {trial.number: trial for trial in before.in_state("finished", "stopped")}
    assert 0 < len(ended) < 4
    sessions = {number: sessions_of(before, number) for number in ended}
    results = resume_sweep(read_sweep(folder), folder)
    assert len(results.trials) == 4
    assert len(results.in_state("finished", "stopped")) == 4
    for number, trial in ended.items():
        assert results.trials[number] == trial
        assert sessions_of(results, number) == sessions[number]
    assert results.wall_s > before.earlier_s
