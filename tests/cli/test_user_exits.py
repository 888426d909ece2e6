"""Code of the user's that calls `sys.exit` ends no command with success, nor like a guard: an error names its line."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ludus.envs import bots
from ludus.envs import world as world_module
from ludus.rewards import plugins, terms

Run = Callable[..., tuple[int, str, str]]

TINY = (
    "world.num_envs=4", "total_env_steps=64", "ppo.n_steps=8", "ppo.batch_size=32", "ppo.n_epochs=1",
    "policy.net_arch={pi: [4], vf: [4]}", "monitoring.tensorboard=false", "monitoring.curves=false", "evaluation=null",
)  # fmt: skip
# Each leaves in the run itself, not in the checks before it.
LEAVE = """
import sys
import torch
import gymnasium
import ludus

def leave():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "run_training":
            WAY
        frame = frame.f_back
"""
CODE = {
    "bot": """
@ludus.register_bot("duel", "leaver")
def leaver(observation, state):
    leave()
    return torch.zeros(observation.frame.shape, dtype=torch.int64), None
""",
    "reward term": """
@ludus.reward_term("rps", "leaving")
def leaving(info):
    leave()
    return info.events["reward"]
""",
    "network": """
class Leaver(torch.nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.layer = torch.nn.Linear(sum(each.shape[0] for each in spec.observation_space.values()), 4)

    def forward(self, observations):
        leave()
        return self.layer(torch.cat(list(observations.values()), -1))
""",
    "callback": """
class Leaver(ludus.BaseCallback):
    def on_iteration(self, iteration):
        leave()
""",
    "batched environment": """
from ludus.envs.tiny.two_player import RpsEnv

class Own(RpsEnv):
    def _advance(self, actions):
        leave()
        return super()._advance(actions)

ludus.register_env("leaver-v1", Own)
""",
    "its constructor": """
from ludus.envs.tiny.two_player import RpsEnv

class Own(RpsEnv):
    def __init__(self, request):
        leave()
        super().__init__(request)

ludus.register_env("leaver-v1", Own)
""",
    "its close": """
from ludus.envs.tiny.two_player import RpsEnv

class Own(RpsEnv):
    def close(self):
        leave()

ludus.register_env("leaver-v1", Own)
""",
    "Gymnasium environment": """
class Own(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        leave()
        return 0, 0.0, False, False, {}

ludus.register_env("leaver-v1", Own)
""",
}
WORDS: dict[str, tuple[str, ...]] = {
    "bot": ("duel", "opponents={leaver: 1}"),
    "reward term": ("rps", "rewards.weights={leaving: 1}"),
    "network": ("rps", "policy.module=leaver.py:Leaver"),
    "callback": ("rps", "--callback", "leaver.py:Leaver"),
}
SAID = {"bot": "bot 'leaver'", "callback": "callback Leaver failed"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bots, "_REGISTERED", dict(bots._REGISTERED))
    monkeypatch.setattr(terms, "_TERMS", {world: dict(own) for world, own in terms._TERMS.items()})
    monkeypatch.setattr(plugins, "_LOADED", {})
    monkeypatch.setattr(plugins, "_OTHERS", {})
    yield
    sys.modules.pop("leaver", None)
    world_module.known_worlds().pop("leaver-v1", None)


@pytest.mark.parametrize("way", ["sys.exit(0)", "sys.exit(3)", "raise BaseException('enough')"])
@pytest.mark.parametrize("kind", CODE)
def test_a_training_ends_with_an_error_that_names_the_line(run: Run, tmp_path: Path, kind: str, way: str) -> None:
    (tmp_path / "leaver.py").write_text(LEAVE.replace("WAY", way) + CODE[kind])
    words = WORDS.get(kind, ("leaver",))
    code, out, err = run("train", *words, *TINY, "--plugin", "leaver.py", "--run-dir", "run")
    assert code == 2, (out, err)
    assert "[ERROR]" in err
    line = LEAVE[: LEAVE.index("WAY")].count("\n") + 1
    assert f"leaver.py:{line})" in err
    assert SAID.get(kind, "") in err
    assert "Traceback" not in err


@pytest.mark.parametrize("kind", ["Gymnasium environment", "batched environment"])
def test_verify_and_eval_end_likewise(run: Run, tmp_path: Path, kind: str) -> None:
    text = LEAVE[: LEAVE.index("def leave")] + "def leave():\n    sys.exit(0)\n" + CODE[kind]
    (tmp_path / "leaver.py").write_text(text)
    code, _, err = run("verify", "leaver", *TINY, "--plugin", "leaver.py")
    assert code == 2
    assert "SystemExit: 0" in err
    assert "leaver.py:" in err


def test_what_is_learned_is_saved_first(run: Run, tmp_path: Path) -> None:
    counted = LEAVE.replace(
        "            WAY", "            CALLS.append(0)\n            len(CALLS) < 12 or sys.exit(0)"
    )
    (tmp_path / "leaver.py").write_text("CALLS = []\n" + counted + CODE["batched environment"])
    code, _, err = run("train", "leaver", *TINY, "--plugin", "leaver.py", "--run-dir", "run")
    assert code == 2, err
    assert (tmp_path / "run" / "checkpoints" / "interrupted").is_dir()
    assert '"end_reason": "UserExitError: SystemExit: 0 (' in (tmp_path / "run" / "run.json").read_text()


@pytest.mark.parametrize("way", ["sys.exit(0)", "raise BaseException('enough')"])
def test_a_plugin_that_exits_is_named(run: Run, tmp_path: Path, way: str) -> None:
    (tmp_path / "leaver.py").write_text(f"import sys\n{way}\n")
    code, _, err = run("train", "rps", *TINY, "--plugin", "leaver.py")
    assert code == 2
    assert "leaver.py:2" in err


def test_the_ends_of_commands_stay_what_they_are(run: Run) -> None:
    assert run("--version")[0] == 0
    assert run("train")[0] == 2
    assert run("nonsense")[0] == 2
