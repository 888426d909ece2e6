"""Contenders: bots by name, agents by folder, and what is said of names that are neither."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ludus.core.errors import CheckpointError, ConfigError, StateError
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import make_env
from ludus.evaluation.contenders import find_contender, find_world, load_agent, short_name
from ludus.evaluation.players import AgentPlayer, BotPlayer
from ludus.policies.agent import agent_checkpoint
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint

MakePolicy = Callable[..., Policy]
SaveAgent = Callable[[Policy, Path], Path]


@pytest.fixture
def brawl() -> Iterator[BatchedEnv]:
    """Two games."""
    with make_env("brawl", 2) as env:
        yield env


def test_bots_go_by_name_and_settings(brawl: BatchedEnv) -> None:
    for name in ("based", "aggressive:delay=8,noise=0.1"):
        contender = find_contender(name, brawl)
        assert (contender.name, contender.policy) == (name, None)
        assert isinstance(contender.sit(brawl, 1), BotPlayer)


def test_agents_go_by_run_or_checkpoint(
    brawl: BatchedEnv, fresh: MakePolicy, save_agent: SaveAgent, tmp_path: Path
) -> None:
    policy = fresh("brawl")
    run = save_agent(policy, tmp_path / "runs" / "anna")
    for path, label in ((run, "anna"), (run / "checkpoints" / "best", "anna/best")):
        contender = find_contender(str(path), brawl)
        assert contender.policy is not None
        assert all(torch.equal(tensor, policy.state()[name]) for name, tensor in contender.policy.state().items())
        seated = contender.sit(brawl, 0)
        assert isinstance(seated, AgentPlayer)
        assert seated.name == label
    world, agent = find_world(str(run))
    assert world == "brawl-v1"
    assert agent is not None


def test_a_bot_goes_before_a_folder_of_its_name(
    brawl: BatchedEnv, fresh: MakePolicy, save_agent: SaveAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_agent(fresh("brawl"), tmp_path / "based")
    monkeypatch.chdir(tmp_path)
    assert find_contender("based", brawl).policy is None
    assert find_contender("./based", brawl).policy is not None
    assert short_name("./based") == "based"


def test_unknown_names_say_what_was_looked_for(brawl: BatchedEnv, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        find_contender("agressive:delay=3", brawl)
    assert "(did you mean 'aggressive'?): it is no bot of brawl-v1" in str(error.value)
    assert f"there is no folder or file {Path('agressive:delay=3').absolute()}" in str(error.value)
    assert "valid: constant, random, " in str(error.value)
    assert "or the folder of a run or a checkpoint" in str(error.value)
    with pytest.raises(ConfigError, match="delay must be a number from 0 to 31"):
        find_contender("aggressive:delay=99", brawl)
    with pytest.raises(ConfigError, match=f"unknown agent .*there is no folder or file {tmp_path / 'gone'}"):
        load_agent(str(tmp_path / "gone"))
    with pytest.raises(ConfigError, match=r"unknown world or agent 'braw' \(did you mean 'brawl'\?\)"):
        find_world("braw")
    with pytest.raises(CheckpointError, match=r"manifest\.json: is missing"):
        find_contender(str(tmp_path), brawl)


def test_an_agent_of_another_world_is_refused(
    brawl: BatchedEnv, fresh: MakePolicy, save_agent: SaveAgent, tmp_path: Path
) -> None:
    with pytest.raises(StateError, match="its world is brawl-v1, the agent's duel-v1"):
        find_contender(str(save_agent(fresh("duel"), tmp_path / "duellist")), brawl)


def test_worlds_are_found_by_name_with_or_without_version() -> None:
    for name in ("brawl", "brawl-v1", "gym:CartPole-v1"):
        assert find_world(name) == (name, None)


def test_an_agent_whose_world_would_import_a_module_is_refused(tmp_path: Path, fresh: MakePolicy) -> None:
    policy = fresh("duel")
    policy.spec = replace(policy.spec, name="gym:this:Zen")  # importing `this` prints a poem
    save_checkpoint(tmp_path / "agent", agent_checkpoint(policy.spec, policy.config, policy.state()))
    for load in (load_agent, find_world):
        with pytest.raises(ConfigError, match=r"imports the module 'this', which no file may ask for"):
            load(str(tmp_path / "agent"))
    assert "this" not in sys.modules
