"""`ludus doctor` for real: what it prints, its JSON and exit codes, and that what it says to paste trains."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.reports.doctor import DIAGNOSES

Run = Callable[..., tuple[int, str, str]]

TINY = (
    "world.num_envs=16", "total_env_steps=1920", "ppo.n_steps=20", "ppo.batch_size=160", "ppo.n_epochs=1",
    "policy.net_arch={pi: [4], vf: [4]}", "opponents={rock: 1}", "monitoring.tensorboard=false",
    "monitoring.curves=false",
)  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder of the test's own, without defaults of whoever runs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUDUS_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))


def test_an_ill_run(run: Run, tmp_path: Path) -> None:
    assert run("train", "duel", *TINY, "ppo.learning_rate=0", "--run-dir", "ill")[0] == 0
    code, out, err = run("doctor", "ill")
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith("[WARN] not-learning: ")
    assert lines[1:4] == [
        "       evidence: approx_kl is at most 0 in 6 iterations (metrics.jsonl)",
        "       remedy: raise the learning rate",
        "       change: ppo.learning_rate: 0 -> 0.0003",
    ]
    assert lines[4] == "       try: ludus train duel --config ill/config.yaml ppo.learning_rate=0.0003"
    assert lines[-1] == "[WARN] ill: 1 found"
    assert out.isascii()
    code, out, _ = run("doctor", "ill", "--json")
    change = {"setting": "ppo.learning_rate", "now": {"kind": "constant", "level": 0.0}, "better": 0.0003}
    assert code == 1
    assert json.loads(out) == [
        {
            "diagnosis": "not-learning",
            "what": lines[0].partition("not-learning: ")[2],
            "evidence": ["approx_kl is at most 0 in 6 iterations (metrics.jsonl)"],
            "remedy": "raise the learning rate",
            "changes": [change | {"override": "ppo.learning_rate=0.0003"}],
        }
    ]
    pasted = shlex.split(lines[4].partition("try: ludus ")[2])
    code, _, err = run(*pasted, "--run-dir", "healed")
    assert (code, err) == (0, "")
    assert "level: 0.0003" in (tmp_path / "healed" / "config.yaml").read_text()


def test_a_healthy_run(run: Run) -> None:
    assert run("train", "duel", *TINY, "ppo.learning_rate=0.003", "--run-dir", "well")[0] == 0
    code, out, err = run("doctor", "well")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "[OK] well: nothing found"
    assert all(name in out for name in DIAGNOSES)
    code, out, _ = run("doctor", "well", "--json")
    assert (code, json.loads(out)) == (0, [])


def test_no_run(run: Run) -> None:
    code, out, err = run("doctor", "nowhere")
    assert (code, out) == (2, "")
    assert err.startswith("[ERROR] nowhere ")


def test_examining_a_run_needs_no_torch(run: Run) -> None:
    assert run("train", "duel", *TINY, "--run-dir", "ran")[0] == 0
    code = (
        "import sys; sys.argv = ['ludus', 'doctor', 'ran']\n"
        "from ludus.cli.main import app\n"
        "app(standalone_mode=False)\n"
        "assert not {'torch', 'warp', 'mujoco'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_installation_is_checked_without_a_run(run: Run) -> None:
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    assert all(line.startswith(("[OK]    ", "[WARN]  ")) for line in out.splitlines()[:-1])
    for name in (
        "Python",
        "torch",
        "mujoco",
        "Warp kernel cache",
        "OpenGL",
        "ffmpeg",
        "disk",
        "write test",
        "processor",
    ):
        assert f" {name}: " in out
    code, out, _ = run("doctor", "--json")
    checks = json.loads(out)
    assert code == 0
    assert {"name", "level", "text"} == set(checks[0])
    assert {check["level"] for check in checks} <= {"OK", "WARN"}
