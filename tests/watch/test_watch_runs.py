"""Runs below a folder: which are found, what their status is, and the numbers of the list, worked out by hand."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.watch.conftest import append

from ludus.reports import run_data
from ludus.training import run_folder
from ludus.training.loggers import run_log
from ludus.watch.documents import Documents
from ludus.watch.runs import Catalogue, find_runs
from ludus.watch.status import read_status

MakeRun = Callable[..., Path]
HERE = socket.gethostname()
OPEN: dict[str, Any] = {"sessions": [{"started": "2026-01-01T00:00:00+0000", "start_env_steps": 0}]}


def lock(folder: Path, pid: int, host: str = HERE, *, age_s: float = 0.0) -> None:
    path = folder / "run.lock"
    path.write_text(" " + json.dumps({"pid": pid, "host": host}))
    written_s = time.time() - age_s
    os.utime(path, (written_s, written_s))


def unend(folder: Path) -> None:
    """Takes the end of the last session away, as if the run had not ended."""
    run = json.loads((folder / "run.json").read_text())
    for name in ("ended", "end_reason", "env_steps", "wall_s", "training_s"):
        run["sessions"][-1].pop(name, None)
    (folder / "run.json").write_text(json.dumps(run | {"sessions": [run["sessions"][-1] | {"start_env_steps": 0}]}))


def test_the_files_have_the_names_that_training_gives_them() -> None:
    assert (run_data.LOCK, run_data.LOG) == (run_folder.LOCK_FILE, run_log.FILE)


def test_a_process_that_holds_the_lock_runs_and_is_killed_once_it_is_gone(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lock(tmp_path, process.pid)
    assert read_status(tmp_path, OPEN, is_complete=False) == ("running", f"process {process.pid}")
    process.kill()
    while read_status(tmp_path, OPEN, is_complete=False)[0] == "running":  # a zombie until it is waited for
        time.sleep(0.01)
    assert read_status(tmp_path, OPEN, is_complete=False)[0] == "killed"
    process.communicate()
    assert read_status(tmp_path, OPEN, is_complete=False)[0] == "killed"


def test_a_process_that_inherited_the_number_is_not_the_run(tmp_path: Path) -> None:
    lock(tmp_path, os.getpid(), age_s=30 * 86400.0)  # this process began long after that
    assert read_status(tmp_path, OPEN, is_complete=False)[0] == "killed"
    lock(tmp_path, os.getpid())
    assert read_status(tmp_path, OPEN, is_complete=False)[0] == "running"


def test_a_session_that_ended_is_finished_or_stopped(tmp_path: Path) -> None:
    ended = {"sessions": [{"ended": "2026-01-01T00:01:00+0000", "end_reason": "SIGINT came"}]}
    assert read_status(tmp_path, ended, is_complete=True) == ("finished", "SIGINT came")
    assert read_status(tmp_path, ended, is_complete=False) == ("stopped", "SIGINT came")
    # A notebook lives on after its run: the lock that it wrote before the end means nothing.
    lock(tmp_path, os.getpid(), age_s=5.0)
    (tmp_path / "run.json").write_text(json.dumps(ended))
    assert read_status(tmp_path, ended, is_complete=False)[0] == "stopped"
    # A process that took the lock after the end resumes the run.
    lock(tmp_path, os.getpid(), age_s=-1.0)
    assert read_status(tmp_path, ended, is_complete=False)[0] == "running"


def test_a_run_on_another_machine_runs_as_long_as_it_writes(tmp_path: Path) -> None:
    lock(tmp_path, 1, "elsewhere")
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    assert read_status(tmp_path, OPEN, is_complete=False) == ("running", "on elsewhere")
    hour_ago_s = time.time() - 3600.0
    os.utime(tmp_path / "metrics.jsonl", (hour_ago_s, hour_ago_s))
    status, reason = read_status(tmp_path, OPEN, is_complete=False)
    assert (status, reason) == ("silent", "on elsewhere; it wrote nothing for 60 min")


@pytest.mark.parametrize("content", [b"", b" {}", b" [" * 400, b"\xff" * 50, b' {"pid": "x", "host": 1}', b"x" * 5000])
def test_a_damaged_lock_names_nobody(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.lock").write_bytes(content)
    assert read_status(tmp_path, OPEN, is_complete=False)[0] == "silent"


def test_runs_are_found_to_a_depth_and_never_through_links(make_run: MakeRun, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.move(make_run("secret"), outside)
    root = tmp_path / "runs"
    for name in ("a", "deep/er/b", "one/two/three/four", "far/too/deep/to/find"):
        make_run(f"runs/{name}")
    make_run("runs/.hidden/c")
    shutil.copytree(root / "a", root / "a" / "inner")  # inside a run there is no other
    (root / "latest").symlink_to("a")
    (root / "link").symlink_to(outside)
    (root / "up").symlink_to("..")
    found = sorted(str(folder.relative_to(root)) for folder in find_runs(root))
    assert found == ["a", "deep/er/b", "one/two/three/four"]
    assert list(find_runs(root / "a")) == [root / "a"]


def test_the_numbers_of_the_list(make_run: MakeRun, tmp_path: Path) -> None:
    make_run("done", seed=3)
    running = make_run("running", iterations=4)
    unend(running)
    lock(running, os.getpid())
    (running / "config.yaml").write_text("seed: 0\ntotal_env_steps: 1000\nworld: {name: duel}\n")
    # 400 steps in 10 s of this session; the row of the session before counts no more.
    (running / "resources.csv").write_text(
        "iteration,env_steps,elapsed_s,resident_mib\n1,100,90.0,5\n2,200,5.0,5\n3,300,10.0,5\n4,400,15.0,5\n"
    )
    catalogue = Catalogue(tmp_path)
    assert catalogue.refresh()
    done, running_now = (run.summary for run in sorted(catalogue.runs(), key=lambda run: run.name))
    assert {name: done[name] for name in ("status", "env_steps", "total_env_steps", "seed", "world")} == {
        "status": "finished", "env_steps": 800, "total_env_steps": 800, "seed": 3, "world": "duel"}  # fmt: skip
    assert (done["best_score"], done["last_score"]) == (0.8, 0.8)  # of evaluations with 0.4 and 0.8
    assert done["steps_per_s"] == 200.0  # 800 steps in 4 s
    assert done["left_s"] is None
    assert running_now["status"] == "running"
    assert running_now["steps_per_s"] == 20.0  # from 200 to 400 in 10 s
    assert running_now["left_s"] == 30  # 600 more


def test_the_list_follows_a_run_and_reads_nothing_of_those_that_rest(make_run: MakeRun, tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    resting = [make_run(f"rest-{number:03}") for number in range(40)]
    running = make_run("running", iterations=4)
    unend(running)
    lock(running, os.getpid())
    catalogue.refresh()
    summaries = {run.name: run.summary for run in catalogue.runs()}
    append(running, 2, since=4)
    # Same size and time: whoever opens it again would see another number of steps.
    for folder in resting:
        path = folder / "metrics.jsonl"
        status = path.stat()
        path.write_text(path.read_text().replace('"env_steps": 800', '"env_steps": 999'))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert catalogue.refresh(at_once=True)
    now = {run.name: run.summary for run in catalogue.runs()}
    assert now["running"]["env_steps"] == 600
    assert all(now[folder.name] is summaries[folder.name] for folder in resting)


def test_a_deleted_run_disappears_with_a_note_and_may_come_back(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run("runs/a")
    make_run("runs/b")
    catalogue = Catalogue(tmp_path / "runs")
    catalogue.refresh()
    colors = {run.name: run.color for run in catalogue.runs()}
    assert colors == {"a": 0, "b": 1}
    shutil.move(folder, tmp_path / "moved")
    assert catalogue.refresh(at_once=True)
    assert ([run.name for run in catalogue.runs()], catalogue.gone) == (["b"], ["a"])
    shutil.move(tmp_path / "moved", folder)
    assert catalogue.refresh(at_once=True)
    assert {run.name: run.color for run in catalogue.runs()} == colors
    assert catalogue.gone == []


def test_a_folder_that_became_a_link_is_gone(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run("runs/a")
    catalogue = Catalogue(tmp_path / "runs")
    catalogue.refresh()
    shutil.move(folder, tmp_path / "outside")
    folder.symlink_to(tmp_path / "outside")
    [run] = catalogue.runs()
    assert not run.is_there
    catalogue.refresh(at_once=True)
    assert catalogue.runs() == []


@pytest.mark.parametrize("name", ["run.json", "config.yaml", "metrics.jsonl", "evaluation_results.csv", "run.log"])
def test_files_behind_links_are_not_read(make_run: MakeRun, tmp_path: Path, name: str) -> None:
    folder = make_run("runs/a")
    outside = tmp_path / "outside"
    outside.write_text('{"env_steps": 424242, "sessions": [], "world": "424242"}\nscore\n424242\n')
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    catalogue = Catalogue(tmp_path / "runs")
    catalogue.refresh()
    [run] = catalogue.runs()
    assert "424242" not in json.dumps(run.summary)
    assert "424242" not in json.dumps(Documents(catalogue).make([run.id], merged=False))


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"[" * 100_000, b"\xff\xfe\n" * 9, b'{"sessions": 5}\n', b"nan\n"]
)
def test_damaged_files_leave_numbers_out(make_run: MakeRun, tmp_path: Path, content: bytes) -> None:
    folder = make_run("a")
    for path in folder.iterdir():
        path.write_bytes(content)
    catalogue = Catalogue(tmp_path)
    catalogue.refresh()
    [run] = catalogue.runs()
    assert run.summary["env_steps"] == 0
    assert run.summary["best_score"] is None
    Documents(catalogue).make([run.id], merged=True)


def test_numbers_that_no_run_writes_are_left_out(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run("a")
    huge = "9" * 4000
    (folder / "run.json").write_text(
        f'{{"seed": {huge}, "world": [], "sessions": [{{"env_steps": {huge}, "training_s": 1e-300, "wall_s": Infinity, '
        f'"start_env_steps": -{huge}, "started": "x", "machine": [1]}}]}}'
    )
    (folder / "metrics.jsonl").write_text(f'{{"env_steps": {huge}, "entropy": NaN}}\n{{"env_steps": -Infinity}}\n')
    (folder / "evaluation_results.csv").write_text("env_steps,score\n1,inf\n2,nan\n3,x\n")
    (folder / "resources.csv").write_text("iteration,env_steps,elapsed_s\n1,1e308,1\n2,-1e308,2\n")
    (folder / "config.yaml").write_text(f"total_env_steps: {huge}\n")
    lock(folder, os.getpid())
    catalogue = Catalogue(tmp_path)
    catalogue.refresh()
    [run] = catalogue.runs()
    assert json.loads(json.dumps(run.summary, allow_nan=False))["env_steps"] == 0
    assert (run.summary["steps_per_s"], run.summary["best_score"], run.summary["total_env_steps"]) == (None, None, None)
    Documents(catalogue).make([run.id], merged=True)
