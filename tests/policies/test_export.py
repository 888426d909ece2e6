"""Exported files: an agent in one file plays as its checkpoint does, bit for bit, wherever an agent is asked for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ludus import make_env
from ludus.core.errors import CheckpointError, ConfigError
from ludus.evaluation.evaluate import evaluate
from ludus.evaluation.players import find_player, find_world, load_agent, short_name
from ludus.policies.agent import DOCUMENT, TENSORS, Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.export import export_agent
from ludus.policies.policy import Policy
from ludus.store import Checkpoint, load_checkpoint, read_single_file, save_checkpoint, write_single_file

Make = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> Make:
    """Saves an untrained agent of a world as `best` of a run folder."""

    def make(world: str, settings: dict[str, Any] | None = None, **policy: Any) -> Path:
        with make_env(world, config=settings) as env, torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            network = Policy(env.spec, PolicyConfig.model_validate(policy))
        checkpoint = agent_checkpoint(network.spec, network.config, network.state(), settings)
        save_checkpoint(tmp_path / "run" / "checkpoints" / "best", checkpoint, step=768)
        return tmp_path / "run"

    return make


def test_the_file_plays_as_the_checkpoint_bit_for_bit(
    policy_kind: tuple[str, PolicyConfig], make_arena: Any, tmp_path: Path
) -> None:
    name, config = policy_kind
    env = make_arena(2, picture=name.startswith("cnn"))
    torch.manual_seed(3)
    policy = Policy(env.spec, config)
    policy.observe(env.reset())
    folder, file = tmp_path / "checkpoint", tmp_path / "agent.ludus"
    save_checkpoint(folder, agent_checkpoint(policy.spec, config, policy.state()))
    export_agent(folder, file)
    first, second = Agent.load(folder, seed=4), Agent.load(file, seed=4)
    states: list[Any] = [None, None]
    for step in range(20):
        frame = {key: tensor.flatten(0, 1).numpy() for key, tensor in env.reset().items()}
        episode_starts = np.arange(4) == step % 7
        (left, states[0]), (right, states[1]) = (
            agent.predict(frame, state, episode_starts) for agent, state in zip((first, second), states, strict=True)
        )
        assert left.tobytes() == right.tobytes()
        for key in states[0] or {}:
            assert torch.equal(states[0][key], states[1][key])


def test_the_same_matches_are_won(make_run: Make, tmp_path: Path) -> None:
    run = make_run("duel", {"rounds": 5}, recurrent={"size": 16})
    exported = export_agent(run, tmp_path / "agent.ludus")
    rows = [evaluate(load_agent(path), matches=40, seed=2).rows for path in (run, exported.path)]
    assert rows[0] == rows[1]
    assert (exported.checkpoint, exported.env_steps) == ("best", 768)
    assert exported.size_bytes == exported.path.stat().st_size


def test_a_file_is_an_agent_wherever_one_is_asked_for(make_run: Make, tmp_path: Path) -> None:
    file = export_agent(make_run("duel", {"rounds": 5}), tmp_path / "bot.ludus").path
    world, agent = find_world(str(file))
    assert agent is not None
    assert (world, agent.settings) == ("duel-v1", {"rounds": 5})
    assert short_name(str(file)) == "bot"
    with make_env("duel", 2) as env:
        assert find_player(str(file), env).policy is not None
    rows = evaluate(agent, [str(file), "rock"], matches=8).rows
    assert [row["opponent"] for row in rows] == [str(file), "rock"]


def test_the_file_holds_what_the_checkpoint_holds_and_where_it_comes_from(make_run: Make, tmp_path: Path) -> None:
    run = make_run("rps")
    first = export_agent(run, tmp_path / "a.ludus")
    again = export_agent(first.path, tmp_path / "b.ludus")
    assert first.path.read_bytes() == again.path.read_bytes()
    assert again.env_steps == 768
    found, stored = read_single_file(first.path), load_checkpoint(run / "checkpoints" / "best")
    assert found.documents[DOCUMENT] == stored.documents[DOCUMENT]
    assert set(found.tensors[TENSORS]) == set(stored.tensors[TENSORS])
    assert found.documents["origin"] == {"ludus": "0.1.0", "checkpoint": "best", "env_steps": 768}


def test_wrong_endings_and_what_is_no_agent_are_refused(make_run: Make, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"agent\.ludus"):
        export_agent(make_run("rps"), tmp_path / "agent.zip")
    with pytest.raises(CheckpointError):
        export_agent(tmp_path / "nothing", tmp_path / "agent.ludus")
    assert not list(tmp_path.glob("agent*"))


FAULTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "huge network": lambda said: said["config"]["net_arch"].update(pi=[10**18, 10**18]),
    "negative network": lambda said: said["config"]["net_arch"].update(pi=[-1]),
    "no version": lambda said: said.update(world="rps"),
    "foreign module": lambda said: said.update(world="gym:evil_module:Evil-v0"),
    "no choices": lambda said: said["action_space"].update(counts=[]),
    "crossed bounds": lambda said: said["action_space"].update(kind="box", shape=[1], low=[1.0], high=[0.0]),
    "no name": lambda said: said["observation_space"][0].__setitem__(0, ""),
    "endless memory": lambda said: said["config"].update(recurrent={"size": 10**15}),
    "no description": lambda said: said.clear(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_strangers_file_can_be_wrong_never_dangerous(make_run: Make, tmp_path: Path, fault: str) -> None:
    found = read_single_file(export_agent(make_run("rps"), tmp_path / "a.ludus").path)
    document = json.loads(json.dumps(found.documents[DOCUMENT]))
    FAULTS[fault](document)
    write_single_file(tmp_path / "b.ludus", Checkpoint(found.tensors, {DOCUMENT: document}))
    with pytest.raises((CheckpointError, ConfigError)):
        load_agent(tmp_path / "b.ludus")


def test_files_without_an_agent_are_refused(tmp_path: Path) -> None:
    write_single_file(tmp_path / "a.ludus", Checkpoint({}, {"other": {}}))
    with pytest.raises(CheckpointError, match="agent, policy"):
        Agent.load(tmp_path / "a.ludus")
