"""Agents as opponents in training: runs, checkpoints and exported files, stacked, copied, and met again on resume."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import ludus
from ludus.core.errors import CheckpointError, StateError, UnknownNameError
from ludus.envs.registry import make_env
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.nn.recurrent import RecurrentConfig
from ludus.policies.agent import agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint

ROCK, PAPER, SCISSORS = range(3)
SETTINGS: dict[str, Any] = {
    "world": {"name": "duel-v1", "num_envs": 16},
    "total_env_steps": 1024,
    "ppo": {"n_steps": 16, "batch_size": 128, "n_epochs": 1},
    "checkpoints": {"every_iterations": 1},
    "monitoring": {"console": "off", "tensorboard": False, "curves": False},
}
SMALL = PolicyConfig.model_validate({"net_arch": {"pi": [8], "vf": [8]}})
RECURRENT = SMALL.model_copy(update={"recurrent": RecurrentConfig(size=8)})


def always(move: int, config: PolicyConfig = SMALL) -> Policy:
    """A policy that plays one move."""
    with make_env("duel") as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(move)
        policy = Policy(env.spec, config)
    with torch.no_grad():
        bias = dict(policy.named_parameters())["head.linear.bias"]
        bias.fill_(-100.0)
        bias[move] = 100.0
    return policy


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, Policy], str]:
    def saved(name: str, policy: Policy) -> str:
        checkpoint = agent_checkpoint(policy.spec, policy.config, policy.state())
        save_checkpoint(tmp_path / name / "checkpoints" / "best", checkpoint)
        return str(tmp_path / name)

    return saved


def test_agents_of_any_architecture_play_side_by_side_with_bots_and_snapshots() -> None:
    agents = {"p": always(PAPER), "s": always(SCISSORS), "r": always(ROCK, RECURRENT)}
    with make_env("duel", 64) as env:
        weights = {"p": 1.0, "s": 1.0, "r": 1.0, "rock": 1.0, "self": 1.0}
        opponents = LeagueOpponents(env, always(PAPER), weights, LeagueConfig(keep=2), 3, agents=agents)
        opponents.add_snapshot("old", 0, always(SCISSORS).state())
        assert opponents.names == ("rock", "p", "s", "r", "old", "")
        assert opponents.kinds == ("rock", "p", "s", "r", "self", "self")
        assert opponents._agents is not None
        assert len(opponents._agents._groups) == 2  # the two without memory are stacked
        moves = torch.tensor([ROCK, PAPER, SCISSORS, ROCK, SCISSORS])
        observations, met = env.reset(), set()
        for _ in range(40):
            actions = torch.full((64, 2), -1)
            opponents.act(observations, actions)
            expected = moves[opponents.opponents].unsqueeze(1).expand(-1, 2)
            assert torch.equal(actions, torch.where(opponents.learner, -1, expected))
            met |= set(opponents.opponents.tolist())
            result = env.step(actions.clamp(min=0))
            opponents.after_step(result)
            observations = result.observations
        assert met == {0, 1, 2, 3, 4}
        assert opponents.bots_met().max() == 0  # agents are no bots that could be classified


def test_the_state_of_agents_with_memory_goes_on_where_it_was() -> None:
    def made() -> tuple[Any, LeagueOpponents]:
        env = make_env("duel", 8, seed=1)
        torch.manual_seed(0)
        agents = {"r": Policy(env.spec, RECURRENT), "p": Policy(env.spec, SMALL)}
        return env, LeagueOpponents(env, always(PAPER), {"r": 1.0, "p": 1.0}, LeagueConfig(), 3, agents=agents)

    def played(env: Any, opponents: LeagueOpponents, observations: Any, steps: int) -> list[Any]:
        done = []
        for _ in range(steps):
            actions = torch.zeros((8, 2), dtype=torch.int64)
            opponents.act(observations, actions)
            done.append(actions.tolist())
            result = env.step(actions)
            opponents.after_step(result)
            observations = result.observations
        return done

    env, opponents = made()
    played(env, opponents, env.reset(), 7)
    state, games = opponents.state(), env.snapshot()
    expected = played(env, opponents, env.restore(games), 20)
    env, opponents = made()
    observations = env.restore(games)
    opponents.load_state(state)
    assert played(env, opponents, observations, 20) == expected
    with pytest.raises(StateError):
        opponents.load_state({name: tensor for name, tensor in state.items() if "agents" not in name})


def test_a_run_meets_the_same_agents_when_it_resumes(save: Callable[[str, Policy], str], tmp_path: Path) -> None:
    paper, rock = save("paper", always(PAPER)), save("rock", always(ROCK))
    exported = ludus.export_agent(rock, tmp_path / "rock.ludus").path
    settings = SETTINGS | {
        "opponents": {paper: 2, f"{rock}/checkpoints/best": 1, str(exported): 1, "cycle": 1, "self": 1}
    }
    whole = ludus.train(settings, folder=tmp_path / "whole")
    assert paper in (whole.folder / "opponents.csv").read_text()
    assert len(list((whole.folder / "opponents").glob("*.ludus"))) == 3
    ludus.train(settings, folder=tmp_path / "part")
    checkpoints = tmp_path / "part" / "checkpoints"
    newest = sorted(each.name for each in checkpoints.iterdir() if each.name[0].isdigit() or "iteration" in each.name)
    for name in ("final", *newest[-2:]):
        shutil.rmtree(checkpoints / name, ignore_errors=True)
    for folder in (paper, rock):
        shutil.rmtree(folder)
    exported.unlink()
    went_on = ludus.resume(tmp_path / "part")
    parts = [run / "checkpoints" / "final" / "policy.safetensors" for run in (whole.folder, went_on.folder)]
    assert parts[0].read_bytes() == parts[1].read_bytes()


def test_a_learner_beats_the_agent_that_it_trains_against(save: Callable[[str, Policy], str], tmp_path: Path) -> None:
    settings = SETTINGS | {"opponents": {save("paper", always(PAPER)): 1}, "total_env_steps": 8192}
    settings["ppo"] = {"n_steps": 32, "batch_size": 256, "n_epochs": 4, "learning_rate": 0.003}
    run = ludus.train(settings, folder=tmp_path / "run")
    assert ludus.evaluate(run.folder, str(tmp_path / "paper"), matches=50).rows[0]["win_rate"] > 0.9


def test_what_is_no_agent_of_this_world_is_refused(save: Callable[[str, Policy], str], tmp_path: Path) -> None:
    with make_env("rps") as env:
        foreign = save("foreign", Policy(env.spec, SMALL))
    (tmp_path / "empty").mkdir()
    cases: dict[str, tuple[type[Exception], str]] = {
        foreign: (StateError, "does not fit the world"),
        str(tmp_path / "empty"): (CheckpointError, "manifest"),
        "runs/nothing": (UnknownNameError, "the folder or file of an agent"),
    }
    for name, (error, text) in cases.items():
        with pytest.raises(error, match=text):
            ludus.train(SETTINGS | {"opponents": {name: 1}}, folder=tmp_path / "run")
        assert not (tmp_path / "run").exists()
