"""Commands without a run use the newest one and say so; a folder that holds no run gets a suggestion."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

TINY = (
    "world.num_envs=4", "total_env_steps=64", "ppo.n_steps=8", "ppo.sequence_length=8", "ppo.batch_size=16",
    "ppo.n_epochs=1", "policy.net_arch={pi: [4], vf: [4]}", "opponents={random: 1}", "monitoring.tensorboard=false",
    "monitoring.curves=false", "evaluation=null",
)  # fmt: skip
COMMANDS = ("eval", "demo", "export", "report", "doctor", "resume", "benchmark", "analyze", "ratings")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of the test's own, without defaults of whoever runs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUDUS_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    return tmp_path


@pytest.mark.parametrize("place", [".", "runs", "nowhere", "runs/gone"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_without_a_run_is_refused_with_the_newest_run(
    command: str, place: str, run: Run, elsewhere: Path
) -> None:
    (elsewhere / "runs" / "some-run").mkdir(parents=True)
    (elsewhere / "runs" / "latest").symlink_to("some-run")
    code, out, err = run(command, place)
    assert (code, out) == (2, "")
    assert "runs/latest?" in err or (command == "demo" and "valid: brawl-v1" in err)
    assert "Traceback" not in err


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"demo", "doctor"}))
def test_without_any_run_the_next_step_is_told(command: str, run: Run) -> None:
    code, out, err = run(command)
    assert (code, out) == (2, "")
    assert "there is no runs/latest here" in err
    assert "ludus train brawl" in err


def test_the_newest_run_is_used_and_named(run: Run, elsewhere: Path) -> None:
    assert run("train", "duel", *TINY)[0] == 0
    name = (elsewhere / "runs" / "latest").resolve().name
    for words in (("eval", "--matches", 2), ("export", "--out", "a.ludus"), ("report",), ("ratings",)):
        code, out, err = run(*words)
        assert code == 0, err
        assert f"using runs/latest ({name})" in err
        assert out
    code, out, err = run("eval", "--matches", 2, "--json")
    assert json.loads(out)["agent"] == "runs/latest"
    code, out, err = run("doctor")
    assert code in (0, 1)
    assert f"using runs/latest ({name})" in err
    assert "runs/latest: " in out
    assert run("doctor", "runs/latest", "--installation")[0] == 2
    code, _, err = run("resume", "ppo.n_epochs=2")
    assert code == 2
    assert f"using runs/latest ({name})" in err
    assert "ppo.n_epochs: 1 -> 2" in err


def test_a_users_own_folder_of_runs_is_looked_in(run: Run, elsewhere: Path) -> None:
    file = elsewhere / "nobody" / "ludus" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"runs_folder: {elsewhere / 'mine'}\n")
    assert run("train", "duel", *TINY)[0] == 0
    code, _, err = run("ratings")
    assert code == 0
    assert f"using {elsewhere / 'mine' / 'latest'}" in err


@pytest.mark.parametrize("place", [".", "checkpoints/final"])
def test_from_inside_a_run_or_a_checkpoint(
    place: str, run: Run, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("train", "duel", *TINY)[0] == 0
    monkeypatch.chdir(elsewhere / "runs" / "latest" / place)
    assert run("eval", ".", "--matches", 2)[0] == 0
