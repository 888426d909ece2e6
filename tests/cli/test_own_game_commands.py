"""A PettingZoo game in a user's file, from self-play to the report; and what is said where the file is missing."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import imageio_ffmpeg
import pytest

from ludus.envs import world as world_module
from ludus.envs.replay import Replay, verify_replay
from ludus.policies.agent import Agent
from ludus.rewards import plugins

if TYPE_CHECKING:
    from tests.commands import Commands

pytestmark = pytest.mark.train

Run = Callable[..., tuple[int, str, str]]

GAMES = Path(__file__).parents[1] / "envs" / "adapters" / "parallel_games.py"
TINY = (
    "world.num_envs=4", "total_env_steps=128", "ppo.n_steps=8", "ppo.sequence_length=8", "ppo.batch_size=16",
    "ppo.n_epochs=1", "policy.net_arch={pi: [4], vf: [4]}", "monitoring.tensorboard=false", "monitoring.curves=false",
    "opponents={self: 1, random: 1}", "league.snapshot_every_env_steps=32",
    "evaluation={every_env_steps: 100, matches: 4, settings: {workers: 0}}", "checkpoints.every_iterations=1",
)  # fmt: skip

STROLL = """
import gymnasium as gym
import numpy as np
import ludus

class Stroll(gym.Env):  # a random walk with episodes of random length
    observation_space = gym.spaces.Box(-100, 100, (2,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.left = np.zeros(2, np.float32), int(self.np_random.integers(3, 30))
        return self.place.copy(), {}

    def step(self, action):
        self.left -= 1
        self.place += np.float32(self.np_random.normal(size=2) + action - 1)
        return self.place.copy(), -float(abs(self.place).sum()), self.left == 0, False, {}

ludus.register_env("stroll-v1", Stroll)
"""

PROGRAM = """
import os, signal, sys
from pathlib import Path

from ludus.rewards.plugins import load_plugin
from ludus.training import BaseCallback, TrainConfig, train

class Killer(BaseCallback):
    def on_iteration(self, iteration):
        if iteration.counters.iterations == 5:  # the last checkpoint is one iteration old
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    plugin, settings, folder, *kill = sys.argv[1:]
    load_plugin(plugin)
    train(TrainConfig.model_validate_json(settings), Path(folder), [Killer() for _ in kill])
"""


def forget() -> None:
    """Leaves this process as a new one would be: the user's file is not loaded."""
    sys.modules.pop("pick_game", None)
    plugins._LOADED.clear()
    world_module.known_worlds().pop("pick-v1", None)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the user's game, in which commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    text = GAMES.read_text() + '\n\nimport ludus\n\nludus.register_env("pick-v1", Pick)\n'
    (tmp_path / "pick_game.py").write_text(text)
    forget()
    yield tmp_path
    forget()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_game_goes_all_the_way(run: Run, elsewhere: Path, workers: int) -> None:
    mine = ("--plugin", "pick_game.py")
    code, out, err = run("train", "pick", *TINY, *mine, "--run-dir", "run", f"world.settings.workers={workers}")
    assert code == 0, err
    assert "try: ludus eval run --plugin pick_game.py" in out
    assert Agent.load("run").plugins == ("pick_game.py",)
    opponents = (elsewhere / "run" / "opponents.csv").read_text()
    assert "self-0001" in opponents
    assert "random" in opponents
    assert "random" in (elsewhere / "run" / "evaluation_results.csv").read_text()
    if workers:
        return
    code, out, err = run("eval", "run", *mine, "--matches", 4, "--json")
    assert code == 0, err
    row = json.loads(out)["opponents"][0]
    assert (row["opponent"], row["matches"], row["wins"] + row["draws"] + row["losses"]) == ("random", 4, 4)
    code, out, err = run("tournament", "run", "run/checkpoints/init", "random", "--matches", 4, *mine)
    assert code == 0, err
    assert "random" in out
    assert run("report", "run", *mine)[0] == 0
    code, _, err = run("demo", "run", *mine, "--video", "match.mp4", "--record", "match.replay")
    assert code == 0, err
    assert imageio_ffmpeg.count_frames_and_secs("match.mp4")[0] == 3 + 8  # the start, two rounds, the result
    replay = Replay.load(Path("match.replay"))
    assert replay.world_id == "pick-v1"
    assert replay.steps == 3
    verify_replay(replay)
    forget()
    code, _, err = run("replay", "match.replay", "--verify")
    assert (code, "--plugin FILE" in err) == (2, True), err
    assert run("replay", "match.replay", "--verify", *mine)[0] == 0


def test_a_game_of_one_team_is_scored_by_its_return_and_shown_alone(run: Run, elsewhere: Path) -> None:
    words = [word for word in TINY if not word.startswith(("opponents", "league"))]
    team = "world.settings.teams={player_0: us, player_1: us}"
    mine = ("--plugin", "pick_game.py")
    code, _, err = run("train", "pick", *words, team, *mine, "--preset", "default", "--run-dir", "run")
    assert code == 0, err
    assert "mean_return" in (elsewhere / "run" / "evaluation_results.csv").read_text()
    code, out, err = run("demo", "run", *mine, "--video", "match.mp4")
    assert code == 0, err
    assert "run: 3 steps" in out


def test_a_run_of_a_game_that_is_not_registered_says_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(".")
    import pick_game  # type: ignore[import-not-found,unused-ignore]  # noqa: F401 - a program that registers it

    assert run("train", "pick", *TINY, "--run-dir", "run")[0] == 0
    forget()
    for command in (("eval", "run"), ("demo", "run"), ("resume", "run", "total_env_steps=256")):
        code, _, err = run(*command)
        assert code == 2
        assert "pick" in err
        assert "--plugin FILE" in err, (command, err)
        assert "register_env" in err


def check_same_end(commands: "Commands", elsewhere: Path) -> None:
    expected = commands.equal_files(elsewhere / "straight")
    got = commands.equal_files(elsewhere / "killed")
    assert len(expected["metrics.jsonl"].splitlines()) == 7
    assert sorted(got) == sorted(expected)
    assert [name for name in expected if got[name] != expected[name]] == []


def test_a_killed_run_of_a_gymnasium_class_ends_with_the_same_bytes(commands: "Commands", elsewhere: Path) -> None:
    (elsewhere / "stroll_game.py").write_text(STROLL)
    (elsewhere / "program.py").write_text(PROGRAM)
    words = [word for word in TINY if not word.startswith(("opponents", "league", "evaluation", "total_env_steps"))]
    words += ["total_env_steps=224", "evaluation=null", "checkpoints.every_iterations=2"]
    mine = ("--plugin", "stroll_game.py")
    straight = commands.start("train", "stroll", *words, *mine, "--run-dir", "straight", folder=elsewhere)
    kill = ("--callback", "program.py:Killer", "--run-dir", "killed")
    code, said = commands.run("train", "stroll", *words, *mine, *kill, folder=elsewhere)
    assert code == -signal.SIGKILL, said
    code, said = commands.run("resume", "killed", *mine, folder=elsewhere)
    assert code == 0, said
    assert straight.wait() == 0, straight.said
    check_same_end(commands, elsewhere)


def test_a_killed_run_of_a_pettingzoo_game_in_workers_ends_with_the_same_bytes(
    commands: "Commands", elsewhere: Path
) -> None:
    (elsewhere / "program.py").write_text(PROGRAM)
    settings = {
        "world": {"name": "pick", "num_envs": 4, "settings": {"workers": 2, "env_kwargs": {"rounds": 5}}},
        "total_env_steps": 7 * 16,
        "ppo": {"n_steps": 4, "batch_size": 16, "n_epochs": 1},
        "opponents": {"self": 1, "random": 1},
        "league": {"snapshot_every_env_steps": 32},
        "checkpoints": {"every_iterations": 2},
    }
    words = ("program.py", "pick_game.py", json.dumps(settings))
    straight = commands.start(*words, "straight", folder=elsewhere)
    code, said = commands.run(*words, "killed", "kill", folder=elsewhere)
    assert code == -signal.SIGKILL, said
    code, said = commands.run(*words, "killed", folder=elsewhere)
    assert code == 0, said
    assert straight.wait() == 0, straight.said
    check_same_end(commands, elsewhere)


def test_a_name_of_pettingzoo_is_imported_because_it_was_typed(run: Run) -> None:
    pytest.importorskip("pettingzoo.classic.rps_v2")
    code, out, err = run("train", "pettingzoo:classic.rps_v2", *TINY, "--run-dir", "run")
    assert code == 0, err
    assert "ludus eval run --plugin pettingzoo.classic.rps_v2" in out
    module = sys.modules.pop("pettingzoo.classic.rps_v2")
    try:
        forget()
        code, _, err = run("eval", "run", "--matches", 2)
        assert (code, "--plugin pettingzoo.classic.rps_v2" in err) == (2, True), err
        assert "pettingzoo.classic.rps_v2" not in sys.modules
        assert run("eval", "run", "--matches", 2, "--plugin", "pettingzoo.classic.rps_v2")[0] == 0
    finally:
        sys.modules["pettingzoo.classic.rps_v2"] = module
