"""Promise 7: resuming with other settings is refused with a diff; `--fork` begins a new run that names its parent.

A larger budget is the one exception: `ludus resume RUN total_env_steps=N` extends the same run.
"""

import json
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ludus.config import read_document

if TYPE_CHECKING:
    from tests.commands import Commands

PLUGIN = Path(__file__).with_name("slow_plugin.py")
STEPS = 32  # in an iteration
SETTINGS: dict[str, Any] = {
    "world": {"name": "duel", "num_envs": 4},
    "total_env_steps": 5 * STEPS,
    "ppo": {"n_steps": 8, "sequence_length": 4, "batch_size": 16, "n_epochs": 1},
    "opponents": {"random": 1.0, "self": 1.0},
    "league": {"snapshot_every_env_steps": STEPS},
    "evaluation": {"every_env_steps": 2 * STEPS, "matches": 4},
    "checkpoints": {"every_iterations": 1, "keep": 2},
    "monitoring": {"console": "plain", "tensorboard": False, "curves": False},
}


def content(run: Path) -> dict[str, bytes]:
    """Everything in a run folder but the note of who held it last."""
    return {str(path.relative_to(run)): path.read_bytes()
            for path in sorted(run.rglob("*")) if path.is_file() and path.name != "run.lock"}  # fmt: skip


def iterations(run: Path) -> list[tuple[int, int]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(line["iteration"], line["env_steps"]) for line in lines]


@pytest.fixture(scope="module")
def file(root: Path) -> Path:
    path = root / "duel.yaml"
    path.write_text(json.dumps(SETTINGS))
    return path


@pytest.fixture(scope="module")
def straight(command_server: "Commands", root: Path, file: Path) -> Path:
    """A run to the end."""
    code, said = command_server.run("train", "duel", "--config", file, "--run-dir", root / "straight")
    assert code == 0, said
    return root / "straight"


@pytest.fixture(scope="module")
def cut_off(command_server: "Commands", root: Path, file: Path) -> Path:
    """The same run, which an error has ended after two iterations; nobody may change it."""
    run = root / "cut-off"
    words = ("train", "duel", "--config", file, "--run-dir", run, "--plugin", PLUGIN)
    assert command_server.run(*words, environment={"FAULT": "error"})[0] == 1
    assert iterations(run) == [(1, 32), (2, 64)]
    return run


def check_refusal(code: int, said: str, *differences: str) -> None:
    assert code == 2, said
    assert "Traceback" not in said
    refusal = said[said.index("[ERROR]") :].splitlines()
    extend = ["extend a run with: ludus resume RUN total_env_steps=N"]
    assert refusal == [
        "[ERROR] the run began with other settings (then -> now):",
        *(f"  {difference}" for difference in differences),
        *(extend if any(difference.startswith("total_env_steps") for difference in differences) else []),
        "use the settings it began with, or branch off a new run with --fork",
    ]


def test_overrides_are_refused_with_every_difference(commands: "Commands", cut_off: Path) -> None:
    before = content(cut_off)
    code, said = commands.run("resume", cut_off, "seed=5", "ppo.n_epochs=2", "opponents={rock: 1}", "guard.every_s=1")
    check_refusal(
        code, said,
        "opponents.random: 1.0 -> not set",
        "opponents.rock: not set -> 1.0",
        "opponents.self: 1.0 -> not set",
        "ppo.n_epochs: 1 -> 2",
        "seed: 0 -> 5",
    )  # fmt: skip
    assert content(cut_off) == before


def test_an_edited_config_file_is_refused(commands: "Commands", cut_off: Path, tmp_path: Path) -> None:
    run = tmp_path / "edited"
    shutil.copytree(cut_off, run)
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("total_env_steps: 160", "total_env_steps: 320"))
    before = content(run)
    check_refusal(*commands.run("resume", run), "total_env_steps: 160 -> 320")
    assert content(run) == before


def test_training_on_with_other_settings_is_refused(commands: "Commands", cut_off: Path, file: Path) -> None:
    words = ("train", "duel", "--config", file, "--run-dir", cut_off, "--seed", "3")
    check_refusal(*commands.run(*words), "seed: 0 -> 3")


def test_what_does_not_decide_the_course_may_change(
    commands: "Commands", straight: Path, cut_off: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(cut_off, run)
    code, said = commands.run(
        *("resume", run, "monitoring.console=off", "guard.memory_gib=200", "guard.plateau=null"),
        *("checkpoints.every_iterations=2", "checkpoints.keep=1", "world.device=auto"),
    )
    assert code == 0, said
    expected, got = commands.equal_files(straight), commands.equal_files(run)
    assert set(expected) == set(got)
    assert {name.rpartition("/")[2] for name in expected if expected[name] != got[name]} == {"config.json"}


def test_a_fork_without_changes_goes_on_as_its_parent_would(
    commands: "Commands", straight: Path, cut_off: Path, tmp_path: Path
) -> None:
    before = content(cut_off)
    code, said = commands.run("resume", cut_off, "--fork", tmp_path / "fork")
    assert code == 0, said
    assert content(cut_off) == before
    assert json.loads((tmp_path / "fork" / "run.json").read_text())["parent"]["changes"] == []
    expected, got = commands.equal_files(straight), commands.equal_files(tmp_path / "fork")
    assert [name for name in expected if expected[name] != got.get(name)] == []


def test_a_fork_names_its_parent_and_its_changes(commands: "Commands", cut_off: Path, tmp_path: Path) -> None:
    before, fork = content(cut_off), tmp_path / "fork"
    changes = ("total_env_steps=224", "ppo.n_epochs=2", "guard.every_s=1")
    code, said = commands.run("resume", cut_off, "--fork", fork, *changes)
    assert code == 0, said
    assert f"[OK] {fork} branches off {cut_off} at env step 64" in said
    assert "[OK] changed ppo.n_epochs: 1 -> 2\n[OK] changed total_env_steps: 160 -> 224\n" in said
    assert content(cut_off) == before
    document = json.loads((fork / "run.json").read_text())
    assert document["parent"] == {
        "folder": str(cut_off),
        "checkpoint": "interrupted",
        "env_steps": 64,
        "changes": ["ppo.n_epochs: 1 -> 2", "total_env_steps: 160 -> 224"],
    }
    assert [session["command"][1] for session in document["sessions"]] == ["resume"]
    settings: Any = read_document(fork / "config.yaml").root.plain()
    assert (settings["total_env_steps"], settings["ppo"]["n_epochs"], settings["seed"]) == (224, 2, 0)
    assert iterations(fork) == [(i, STEPS * i) for i in range(1, 8)]
    for table in ("metrics.jsonl", "monitor.csv", "reward_breakdown.csv", "opponents.csv", "evaluation_results.csv"):
        assert (fork / table).read_bytes().startswith(before[table]), f"{table} begins with what the parent wrote"
    code, said = commands.run("resume", fork)
    assert code == 0, said
    assert "nothing to do: the run is finished at 224 env steps" in said
    assert json.loads((fork / "run.json").read_text()) == document
    code, said = commands.run("resume", cut_off, "--fork", fork)
    assert (code, said) == (2, f"[ERROR] {fork} holds a run already; choose another folder\n")
    assert len(iterations(fork)) == 7


def test_a_fork_that_was_cut_off_can_be_done_again(commands: "Commands", cut_off: Path, tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    shutil.copytree(cut_off / "snapshots", fork / "snapshots")  # what a kill in the middle of it leaves behind
    shutil.copytree(cut_off / "checkpoints" / "best", fork / "checkpoints" / "best")
    (fork / "metrics.jsonl").write_text('{"iteration"')
    code, said = commands.run("resume", cut_off, "--fork", fork)
    assert code == 0, said
    assert iterations(fork) == [(i, STEPS * i) for i in range(1, 6)]


def test_there_must_be_a_run(commands: "Commands", tmp_path: Path) -> None:
    code, said = commands.run("resume", tmp_path)
    assert code == 2
    assert said.startswith(f"[ERROR] {tmp_path} holds no run with a valid checkpoint; ")
    assert "runs/latest" in said
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def extended(command_server: "Commands", root: Path, straight: Path) -> Path:
    """The run to the end, extended to twice its budget and run to that end."""
    run = root / "extended"
    shutil.copytree(straight, run)
    code, said = command_server.run("resume", run, f"total_env_steps={10 * STEPS}", "monitoring.console=off")
    assert code == 0, said
    assert "the run is extended from 160 to 320 env steps; it is at 160" in said
    return run


def test_a_larger_budget_extends_the_run(commands: "Commands", straight: Path, extended: Path) -> None:
    assert iterations(extended) == [(i, STEPS * i) for i in range(1, 11)]
    before = content(straight)
    for table in ("metrics.jsonl", "monitor.csv", "reward_breakdown.csv", "opponents.csv", "evaluation_results.csv"):
        assert (extended / table).read_bytes().startswith(before[table]), f"{table} begins with what it was"
    settings: Any = read_document(extended / "config.yaml").root.plain()
    assert (settings["total_env_steps"], settings["extended_from"]) == (320, [160])
    assert settings["monitoring"]["console"] == "plain", "which was changed for one session alone"
    document = json.loads((extended / "run.json").read_text())
    assert [session["env_steps"] for session in document["sessions"]] == [160, 320]
    files = content(extended)
    code, said = commands.run("resume", extended)
    assert code == 0, said
    assert "nothing to do: the run is finished at 320 env steps" in said
    assert content(extended) == files


@pytest.mark.parametrize("saved", ["init|final", f"step-0*{6 * STEPS}", f"step-0*{8 * STEPS}"])
def test_an_extended_run_survives_a_kill(
    saved: str, commands: "Commands", straight: Path, extended: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(straight, run)
    first = commands.start("resume", run, f"total_env_steps={10 * STEPS}")
    first.wait_until_it_says(f"checkpoint ({saved}) saved|resumed at")
    first.send(signal.SIGKILL)
    first.wait()
    code, said = commands.run("resume", run)
    assert code == 0, said
    assert iterations(run) == [(i, STEPS * i) for i in range(1, 11)]
    expected, got = commands.equal_files(extended), commands.equal_files(run)
    different = {each for each in {*expected, *got} if expected.get(each) != got.get(each)}
    assert {each.rpartition("/")[2] for each in different} <= {"config.json"}, "monitoring.console"


def test_an_unfinished_run_is_extended_too(commands: "Commands", cut_off: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(cut_off, run)
    code, said = commands.run("resume", run, f"total_env_steps={7 * STEPS}")
    assert code == 0, said
    assert "the run is extended from 160 to 224 env steps; it is at 64" in said
    assert iterations(run) == [(i, STEPS * i) for i in range(1, 8)]


@pytest.mark.parametrize(
    ("words", "differences"),
    [
        (("total_env_steps=320", "ppo.n_epochs=2"), ("ppo.n_epochs: 1 -> 2",)),
        (("total_env_steps=96",), ("total_env_steps: 160 -> 96",)),
    ],
)
def test_nothing_but_a_larger_budget_is_taken(
    words: tuple[str, ...], differences: tuple[str, ...], commands: "Commands", cut_off: Path
) -> None:
    before = content(cut_off)
    check_refusal(*commands.run("resume", cut_off, *words), *differences)
    assert content(cut_off) == before


def test_a_budget_that_is_used_up_is_refused(commands: "Commands", tmp_path: Path, straight: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(straight, run)
    config = run / "config.yaml"
    before = content(run)
    code, said = commands.run("resume", run, "total_env_steps=170")
    assert code == 0, said
    assert iterations(run)[-1] == (6, 192)
    assert content(run) != before
    code, said = commands.run("resume", run, "total_env_steps=192")
    assert (code, "[ERROR] total_env_steps=192: the run is at 192 env steps already" in said) == (2, True), said
    assert "total_env_steps: 170" in config.read_text()


@pytest.mark.parametrize("name", ["best", "final", "init"])
def test_a_checkpoint_of_another_run_that_was_copied_in_is_refused(
    name: str, commands: "Commands", straight: Path, cut_off: Path, tmp_path: Path
) -> None:
    other, run = tmp_path / "other", tmp_path / "run"
    assert commands.run("resume", straight, "seed=7", "--fork", other)[0] == 0
    shutil.copytree(cut_off, run)
    shutil.rmtree(run / "checkpoints" / name, ignore_errors=True)
    shutil.copytree(other / "checkpoints" / name, run / "checkpoints" / name)
    before = content(run)
    code, said = commands.run("resume", run)
    assert code == 2, said
    assert "Traceback" not in said
    assert "seed: 7 -> 0" in said
    assert content(run) == before
