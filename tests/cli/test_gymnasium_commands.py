"""`gym:module:ID` and `--plugin`: what the user names is imported, in workers too; what a file names never is."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from ludus.policies.agent import Agent
from ludus.rewards import plugins

pytestmark = pytest.mark.train

Run = Callable[..., tuple[int, str, str]]

# A user's file: the entry point is a string, as Gymnasium's tutorials write it, and a helper lies beside it.
REACH = """
import gymnasium as gym
import numpy as np
from reach_helper import LENGTH

class Reach(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, fails_after=10**9):
        self.fails_after, self.count = fails_after, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps, self.count = self.steps + 1, self.count + 1
        if self.count > self.fails_after:
            raise ValueError("out of \\x1b[2Jreach")
        return np.zeros(2, np.float32), float(action), False, self.steps >= LENGTH, {}

gym.register("Reach-v0", entry_point="reach_env:Reach")
"""
TINY = (
    "world.num_envs=2", "total_env_steps=64", "ppo.n_steps=8", "ppo.sequence_length=8", "ppo.batch_size=16",
    "ppo.n_epochs=1", "policy.net_arch={pi: [4], vf: [4]}", "monitoring.tensorboard=false", "monitoring.curves=false",
)  # fmt: skip
MODULES = ("reach_env", "reach_helper")


def forget() -> None:
    """Leaves this process as a new one would be: nothing of the user's is imported or registered."""
    for name in MODULES:
        sys.modules.pop(name, None)
    plugins._LOADED.clear()
    gym.registry.pop("Reach-v0", None)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the user's environment, in which commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "reach_env.py").write_text(REACH)
    (tmp_path / "reach_helper.py").write_text("LENGTH = 5\n")
    forget()
    yield tmp_path
    forget()


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("words", [("gym:reach_env:Reach-v0",), ("gym:Reach-v0", "--plugin", "reach_env.py")])
def test_a_users_environment_trains(run: Run, words: tuple[str, ...], workers: int) -> None:
    code, out, err = run("train", *words, *TINY, "--run-dir", "run", f"world.settings.workers={workers}")
    assert code == 0, err
    named = words[-1].replace("gym:reach_env:Reach-v0", "reach_env")
    assert f"try: ludus eval run --plugin {named}" in out
    assert Agent.load("run").plugins == (named,)
    assert Agent.load("run").spec.id == "gym:Reach-v0"


def test_an_agent_names_the_plugin_that_it_needs_and_imports_nothing_by_itself(run: Run) -> None:
    assert run("train", "gym:reach_env:Reach-v0", *TINY, "--run-dir", "run")[0] == 0
    forget()
    for command in (("eval", "run"), ("demo", "run"), ("benchmark", "run"), ("analyze", "run")):
        code, _, err = run(*command)
        assert code == 2
        assert "world 'gym:Reach-v0' is not registered" in err
        assert "trained with --plugin reach_env" in err
    assert "reach_env" not in sys.modules
    Agent.load("run").predict(np.zeros(2, np.float32))  # which needs no world
    for plugin in ("reach_env", "reach_env.py"):
        forget()
        code, out, err = run("eval", "run", "--plugin", plugin, "--matches", "4")
        assert code == 0, err
        assert "4 matches" in out


def test_a_run_is_resumed_only_with_the_module_that_the_user_names(run: Run) -> None:
    assert run("train", "gym:reach_env:Reach-v0", *TINY, "--run-dir", "run")[0] == 0
    forget()
    code, _, err = run("resume", "run")
    assert code == 2
    assert "'gym:reach_env:Reach-v0' imports the module 'reach_env', which no file may ask for" in err
    assert "--plugin reach_env" in err
    assert "reach_env" not in sys.modules
    assert run("resume", "run", "--plugin", "reach_env.py")[0] == 0


def test_a_configuration_file_imports_nothing(run: Run, elsewhere: Path) -> None:
    (elsewhere / "mine.yaml").write_text("world: {name: 'gym:reach_env:Reach-v0'}\n")
    code, _, err = run("verify", "mine.yaml")
    assert code == 2
    assert "--plugin reach_env" in err
    assert "reach_env" not in sys.modules


def test_an_exception_in_an_environment_saves_the_run_and_is_one_line(run: Run, elsewhere: Path) -> None:
    settings = "world.settings={env_kwargs: {fails_after: 20}}"
    code, out, err = run("train", "gym:reach_env:Reach-v0", *TINY, "--run-dir", "run", settings)
    assert code == 2
    assert "Traceback" not in out + err
    line = next(line for line in err.splitlines() if line.startswith("[ERROR]"))
    assert r"gym:Reach-v0: step() raised ValueError: out of \x1b[2Jreach" in line
    assert f"({elsewhere}/reach_env.py:" in line
    assert (elsewhere / "run" / "checkpoints" / "interrupted").is_dir()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gym:nowhere_env:Reach-v0",), "there is no module 'nowhere_env'"),
        (("gym:broken_env:Reach-v0",), "module 'broken_env' failed: ZeroDivisionError: division by zero ("),
        (("gym:needy_env:Reach-v0",), "module 'needy_env' failed: ModuleNotFoundError: No module named 'nowhere_env'"),
        (("gym:Reach-v0",), "name that with --plugin"),
        (("gym:reach_env:Teach-v0",), "doesn't exist"),
        (("gym:Reach-v0", "--plugin", "leaving_env.py"), "plugin 'leaving_env.py' failed: SystemExit"),
        (("gym:Reach-v0", "--plugin", "wrong_env.py"), "plugin 'wrong_env.py' failed: SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_named(run: Run, elsewhere: Path, words: tuple[str, ...], said: str) -> None:
    (elsewhere / "broken_env.py").write_text("1 / 0\n")
    (elsewhere / "needy_env.py").write_text("import nowhere_env\n")
    (elsewhere / "leaving_env.py").write_text("raise SystemExit\n")
    (elsewhere / "wrong_env.py").write_text("def\n")
    code, _, err = run("train", *words, *TINY)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_an_installed_module_wins_over_a_file_of_the_same_name(run: Run, elsewhere: Path) -> None:
    (elsewhere / "wave.py").write_text("raise RuntimeError('the file in this folder was run')\n")
    sys.modules.pop("wave", None)
    code, _, err = run("train", "gym:wave:Reach-v0", *TINY)
    assert code == 2
    assert "doesn't exist" in err


def test_the_run_folder_of_a_namespaced_environment_is_one_folder(run: Run, elsewhere: Path) -> None:
    code, _, err = run("train", "gym:ludus/Point-v1", *TINY)
    assert code == 0, err
    assert (elsewhere / "runs" / "latest").resolve().name.startswith("gym-ludus-Point-v1-default-")
