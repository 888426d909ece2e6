"""Promise 16: whatever is in the place of a run's file, no command hangs or fails with a traceback, and it is named."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.commands import Commands

pytestmark = pytest.mark.fault

WRITTEN = ("metrics.jsonl", "monitor.csv", "opponents.csv", "resources.csv", "run.json", "run.lock", "run.log")
READ = ("metrics.jsonl", "monitor.csv", "opponents.csv", "resources.csv", "run.json", "config.yaml")
SETTINGS = ("world.num_envs=2", "total_env_steps=64", "ppo.n_steps=8", "ppo.sequence_length=4", "ppo.batch_size=16",
            "ppo.n_epochs=1", "opponents=random", "checkpoints.every_iterations=1", "guard.free_disk_gib=null",
            "monitoring.curves=false", "monitoring.tensorboard=false")  # fmt: skip


def is_small(path: Path) -> bool:
    return path.stat().st_size < 1 << 20


@pytest.fixture(scope="module")
def unfinished(command_server: "Commands", root: Path) -> Path:
    """A run without its last checkpoints; nobody may change it."""
    run = root / "unfinished"
    code, said = command_server.run("train", "duel", *SETTINGS, "--run-dir", run)
    assert code == 0, said
    shutil.rmtree(run / "checkpoints" / "final")
    return run


@pytest.mark.parametrize("name", WRITTEN)
def test_a_resumed_run_names_an_odd_file(
    name: str, make_odd_file: Callable[[Path], None], commands: "Commands", unfinished: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(unfinished, run)
    make_odd_file(run / name)
    is_regular = (run / name).is_file()
    code, said = commands.run("resume", run)
    assert "Traceback" not in said
    if name == "run.json":  # is replaced, unless it is a folder
        assert code == (2 if (run / name).is_dir() else 0), said
        assert f"{run / name}" in said
    elif not is_regular or f"{run / name} is not UTF-8" in said:
        assert code == 2, said
        assert [line for line in said.splitlines() if line.startswith("[ERROR]") and f"{run / name}" in line]
    else:  # cut back to what the checkpoint knew, or not read at all
        assert code == 0, said


def test_reports_leave_odd_files_out_and_name_them(
    make_odd_file: Callable[[Path], None], commands: "Commands", unfinished: Path, tmp_path: Path
) -> None:
    for name in READ:
        run = tmp_path / name
        shutil.copytree(unfinished, run)
        make_odd_file(run / name)
        # Tables are read as far as they are tables; reports do not look at more episodes than the doctor can judge.
        is_quiet = (run / name).is_file() and name != "run.json" and (is_small(run / name) or name == "monitor.csv")
        for command in ("report", "doctor", *({"opponents.csv": ["ratings"], "config.yaml": ["eval"]}.get(name, []))):
            code, said = commands.run(command, run, *(("--matches", "2") if command == "eval" else ()))
            assert "Traceback" not in said
            assert code in ((2,) if command == "ratings" else (0, 1)), said
            assert is_quiet or command == "eval" or f"{run / name}" in said, said


def test_a_fork_names_an_odd_file_of_its_parent(commands: "Commands", unfinished: Path, tmp_path: Path) -> None:
    shutil.copytree(unfinished, tmp_path / "run")
    (tmp_path / "run" / "monitor.csv").unlink()
    (tmp_path / "run" / "monitor.csv").symlink_to("/dev/zero")
    code, said = commands.run("resume", tmp_path / "run", "--fork", tmp_path / "fork")
    assert code == 2, said
    assert f"[ERROR] {tmp_path / 'run' / 'monitor.csv'} cannot be read: it is a device, not a regular file" in said


@pytest.mark.parametrize("name", ["checkpoints", "snapshots", "tensorboard"])
def test_a_folder_of_the_run_may_be_odd_too(
    name: str, make_odd_file: Callable[[Path], None], commands: "Commands", unfinished: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(unfinished, run, ignore=shutil.ignore_patterns(name))
    make_odd_file(run / name)
    code, said = commands.run("resume", run)
    assert "Traceback" not in said
    assert code in (0, 2), said


def test_tables_of_another_run_are_cut_back_to_whole_lines(
    commands: "Commands", unfinished: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(unfinished, run)
    for name in ("metrics.jsonl", "monitor.csv", "opponents.csv"):  # lines that are longer than those of the checkpoint
        lines = (unfinished / name).read_text().splitlines(keepends=True)
        (run / name).write_text("".join([lines[0], *(line.replace("\n", "   \n") for line in lines[1:])]))
    code, said = commands.run("resume", run)
    assert code == 0, said
    assert said.count("is not the file that the checkpoint knew") >= 1
    for name in ("monitor.csv", "opponents.csv"):
        lines = [line for line in (run / name).read_text().splitlines() if not line.startswith("#")]
        assert {line.count(",") for line in lines} == {lines[0].count(",")}, "no line is torn"
    assert all(line.rstrip().endswith("}") and line.count("{") == 1 for line in (run / "metrics.jsonl").open())


def test_a_table_with_absurd_numbers_of_matches_is_refused(
    commands: "Commands", unfinished: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(unfinished, run)
    header, *_ = (run / "opponents.csv").read_text().splitlines()
    row = {"iteration": "1", "env_steps": "16", "learner": "a", "opponent": "random", "kind": "random",
           "matches": "9" * 12, "wins": "9" * 12, "draws": "0", "losses": "0", "mode": "1v1"}  # fmt: skip
    (run / "opponents.csv").write_text(f"{header}\n{','.join(row.get(name, '') for name in header.split(','))}\n")
    for command in ("ratings", "resume"):
        code, said = commands.run(command, run)
        assert code == 2, said
        assert f"{run / 'opponents.csv'} cannot be used: " in said
        assert "999999999999 matches" in said
        os.truncate(run / "opponents.csv", (unfinished / "opponents.csv").stat().st_size)
