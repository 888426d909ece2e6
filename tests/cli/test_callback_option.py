"""`ludus train --callback FILE:CLASS`: loaded because it was typed, and never again by the run itself."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

CALLBACKS = """\
from pathlib import Path

import ludus


class Stop(ludus.BaseCallback):
    def on_iteration(self, iteration):
        with Path("log.txt").open("a") as file:
            file.write(f"{iteration.counters.env_steps}\\n")
        self.trainer.stop("seen enough")


class Needy(ludus.BaseCallback):
    def __init__(self, target):
        self.target = target


class Stranger:
    pass
"""
TINY = (
    "world.num_envs=4", "total_env_steps=64", "ppo.n_steps=8", "ppo.batch_size=16", "ppo.n_epochs=1",
    "monitoring.tensorboard=false", "monitoring.curves=false", "monitoring.console=off", "evaluation=null",
    "world.device=cpu",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ludus.rewards.plugins._LOADED", {})
    monkeypatch.delitem(sys.modules, "own_callbacks", raising=False)
    Path("own_callbacks.py").write_text(CALLBACKS, encoding="utf-8")


def test_a_callback_works_in_the_runs_that_name_it(run: Run) -> None:
    option = "--callback own_callbacks.py:Stop"
    code, out, err = run("train", "identity", "--run-dir", "mine", *option.split(), *TINY)
    assert "seen enough" in out + err
    assert f"ludus resume mine {option}" in out
    assert code != 2
    assert Path("log.txt").read_text() == "32\n"
    code, out, _ = run("resume", "mine")  # nothing in the run folder asks for it
    assert code == 0
    assert Path("log.txt").read_text() == "32\n"
    assert "try: ludus eval mine\n" in out
    run("resume", "mine", *option.split(), "total_env_steps=128")
    assert Path("log.txt").read_text() == "32\n96\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_callbacks.py", ["own_callbacks.py", "my_file.py:MyCallback"]),
        ("own_callbacks.py:Stopp", ["own_callbacks.py", "did you mean 'Stop'"]),
        ("own_callbacks.py:Stranger", ["own_callbacks.py:18)", "ludus.BaseCallback"]),
        ("own_callbacks.py:Needy", ["own_callbacks.py:13)", "'target'"]),
        ("broken.py:Stop", ["broken.py:2", "ZeroDivisionError"]),
        ("missing.py:Stop", ["missing.py", "not a Python file"]),
    ],
)
def test_what_is_no_callback_is_named_before_the_run_starts(run: Run, name: str, said: list[str]) -> None:
    Path("broken.py").write_text("import ludus\n1 / 0\n", encoding="utf-8")
    code, _, err = run("train", "identity", "--run-dir", "mine", "--callback", name, *TINY)
    assert code == 2
    assert err.startswith("[ERROR]")
    for words in said:
        assert words in err
    assert not Path("mine").exists()
