"""Runs commands in the tests' own process, and makes agents for them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ludus.cli.main import main
from ludus.envs.registry import make_env
from ludus.policies.agent import agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process; returns exit code, output and error output."""

    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ludus", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        code = stop.value.code
        return (code if isinstance(code, int) else 0), out, err

    return command


@pytest.fixture
def make_agent(tmp_path: Path) -> Callable[..., Path]:
    """Save an untrained agent of a world as the `best` one of a run folder: `make_agent("brawl", step_limit=60)`."""

    def make(world: str, **settings: Any) -> Path:
        with make_env(world, config=settings) as env, torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            policy = Policy(env.spec, PolicyConfig())
        run_folder = tmp_path / f"{env.spec.name}-run"
        checkpoint = agent_checkpoint(policy.spec, policy.config, policy.state(), settings)
        save_checkpoint(run_folder / "checkpoints" / "best", checkpoint)
        return run_folder

    return make
