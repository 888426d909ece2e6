"""Bots in Python on the command line: `--plugin FILE` and entry points make their names work in every command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ludus.envs import bots
from ludus.rewards import plugins

Run = Callable[..., tuple[int, str, str]]
BOTS = """
import torch
import ludus
from ludus.worlds.brawl import skills

@ludus.register_bot("brawl", "walker")
def walker(observation, state):
    return skills.travel_to(observation, 0.0), state

@ludus.register_bot("brawl", "broken")
class Broken:
    def reset(self): pass
    def act(self, observation):
        return [1] * 3
"""
TINY = (
    "world.num_envs=4", "total_env_steps=256", "ppo.n_steps=16", "ppo.batch_size=32", "ppo.n_epochs=1",
    "policy.net_arch={pi: [4], vf: [4]}", "monitoring.tensorboard=false", "monitoring.curves=false",
    "evaluation=null", "world.device=cpu",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bots, "_REGISTERED", {})
    monkeypatch.setattr(plugins, "_LOADED", {})
    Path("my_bots.py").write_text(BOTS)


def test_a_bot_works_by_name_in_every_command(
    run: Run, make_agent: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    agent, mine = make_agent("brawl", step_limit=60), ("--plugin", "my_bots.py")
    code, out, _ = run("eval", agent, "--against", "walker", "--against", "walker:delay=8", "--matches", 2, *mine)
    assert code == 0
    assert "walker:delay=8" in out
    code, out, _ = run(
        "demo", "brawl", "--left", "walker", "--against", "based", "--frames", 20, "--record", "a", *mine
    )
    assert code == 0
    assert Path("a").is_file()
    code, out, _ = run(
        "tournament", "walker", "based", "--matches", 2, "--world", "brawl", "--set", "step_limit=60", *mine
    )
    assert code == 0
    assert "walker" in out
    code, _, _ = run("play", "brawl", "--against", "walker", "--frames", 5, *mine)
    assert code == 0
    code, out, _ = run("envs", "brawl", *mine)
    assert "switcher, broken, walker" in out
    Path("suite.yaml").write_text("tiers: [easy]\nmatches: 2\nrows:\n  - {opponent: walker}\n")
    code, out, _ = run("benchmark", agent, "--suite", "suite.yaml", "--matches", 2, *mine)
    assert code == 0
    assert "walker" in out


def test_a_run_trains_against_it_and_needs_it_to_resume(run: Run) -> None:
    words = ("train", "brawl", "--preset", "debug", *TINY, "--run-dir", "run", "--verbose", "opponents={walker: 1}")
    code, out, err = run(*words, "--plugin", "my_bots.py")
    assert code == 0, err
    assert "bot 'walker'" in out + err
    assert "us per decision in Python" in out + err
    assert "walker: 1" in Path("run/config.yaml").read_text()
    bots._REGISTERED.clear()
    plugins._LOADED.clear()
    code, _, err = run("resume", "run", "total_env_steps=512")
    assert code == 2
    assert "walker" in err
    assert "--plugin" in err
    code, _, err = run("resume", "run", "total_env_steps=512", "--plugin", "my_bots.py")
    assert code == 0, err


def test_a_bad_bot_is_refused_before_the_run_with_its_place(run: Run) -> None:
    code, _, err = run(
        "train", "brawl", "--preset", "debug", *TINY, "--run-dir", "run", "opponents=broken", "--plugin", "my_bots.py"
    )
    assert code == 2
    assert "bot 'broken'" in err
    assert "my_bots.py:10" in err
    assert not Path("run").exists()


def test_entry_points_register_bots_and_broken_ones_are_reported(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Entry:
        def __init__(self, name: str, load: Callable[[], Any]) -> None:
            self.name, self.value, self.load = name, f"{name}.module", load

    def fails() -> None:
        raise ImportError("no such part")

    found = [Entry("good", lambda: plugins.load_plugin("my_bots.py")), Entry("bad", fails)]
    monkeypatch.setattr(bots, "entry_points", lambda group: found if group == "ludus.bots" else [])
    bots._load_entry_points.cache_clear()
    code, out, _ = run("envs", "brawl")
    bots._load_entry_points.cache_clear()
    assert code == 0
    assert "walker" in out
    assert "bots of bad" in caplog.text
