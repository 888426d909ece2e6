"""Players: actors of seats, bots by name, agents by path, perturbed observations, and errors about unknown names."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.strategies import TINY_STRATEGY
from torch import Tensor

from ludus.core.errors import CheckpointError, ConfigError, StateError
from ludus.envs.base import BatchedEnv, Observations
from ludus.envs.registry import make_env
from ludus.evaluation.live_match import LiveMatch
from ludus.evaluation.players import (
    AgentPlayer,
    BotActor,
    BotPlayer,
    Fault,
    Perturbation,
    find_player,
    find_world,
    load_agent,
    make_playing_inference,
    one_seat,
    perturb,
    short_name,
)
from ludus.nn.recurrent import RecurrentConfig
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint

MakePolicy = Callable[..., Policy]
SaveAgent = Callable[[Policy, Path], Path]
REMEMBERING = PolicyConfig(recurrent=RecurrentConfig(size=8), strategy=TINY_STRATEGY)
SHORT = {"step_limit": 30}


def test_an_agent_in_a_seat_does_what_predict_says_match_after_match(fresh: MakePolicy) -> None:
    policy = fresh("brawl", REMEMBERING)
    with make_env("brawl", seed=4, config=SHORT) as env:
        match = LiveMatch(
            env, (BotPlayer(env, 0, "random"), AgentPlayer(env, one_seat(env, 1), policy, deterministic=True))
        )
        agent = Agent(policy)
        seen = {name: tensor.clone() for name, tensor in env.reset(seed=4).items()}
        for _ in range(2):
            state, actions, replayed = None, [], None
            for _ in range(30):
                action, state = agent.predict(seen["vector"][0, 1].numpy(), state, deterministic=True)
                actions.append(action)
                match.step()
                seen = {name: tensor.clone() for name, tensor in match._observations.items()}
            replayed = match.replay()
            assert replayed is not None
            assert np.array_equal(replayed.actions[:, 1].numpy(), np.stack(actions))
            match.restart()


def test_leaving_games_changes_nothing_in_the_others(fresh: MakePolicy) -> None:
    policy = fresh("brawl", REMEMBERING)
    played = []
    for leaves in (False, True):
        with make_env("brawl", 6, seed=1) as env:
            observations = env.reset(seed=1)
            seats = torch.tensor([[True, False], [False, True]] * 3)
            agent = AgentPlayer(env, seats, policy, deterministic=True)
            bots = BotActor(env, ["based"], torch.where(seats, -1, 0).int())
            actions = torch.zeros((6, 2, 10), dtype=torch.int8)
            kept = torch.tensor([True, False, True, True, False, True])
            trace = []
            for step in range(40):
                if leaves and step == 12:
                    agent.keep(kept)
                    bots.keep(kept)
                    actions[~kept] = 0
                for actor in (agent, bots):
                    actor.act(observations, actions, first=step == 0)
                observations = env.step(actions).observations
                trace.append(actions[kept].clone())
            assert bool(actions[~kept].any()) != leaves
            played.append(torch.stack(trace))
    assert torch.equal(played[0], played[1])


def test_seeds_decide_what_is_drawn(fresh: MakePolicy) -> None:
    policy = fresh("brawl")
    with make_env("brawl", 8) as env:
        observations, drawn = env.reset(), []
        for seed in (1, 1, 2):
            actions = torch.zeros((8, 2, 10), dtype=torch.int8)
            AgentPlayer(env, one_seat(env, 0), policy, seed=seed).act(observations, actions, first=True)
            assert not actions[:, 1].any()
            drawn.append(actions)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_noise_is_held_where_the_head_holds_it(fresh: MakePolicy) -> None:
    config = PolicyConfig(state_dependent_exploration=True)
    with make_env("point", 4) as env:
        observations = {name: tensor.clone() for name, tensor in env.reset().items()}
        for settings, same in ((config, True), (PolicyConfig(), False)):
            agent = AgentPlayer(env, one_seat(env, 0), fresh("point", settings))
            first, second, third = (torch.zeros((4, 1, 2)) for _ in range(3))
            agent.act(observations, first, first=True)
            agent.act(observations, second, first=False)
            agent.act(observations, third, first=True)
            assert torch.equal(first, second) == same
            assert not torch.equal(first, third)


def test_an_agent_must_be_where_the_games_are() -> None:
    with make_env("duel") as env:
        policy = Policy(env.spec, PolicyConfig(), "meta")
        with pytest.raises(ConfigError, match=r"meta.*cpu"):
            AgentPlayer(env, one_seat(env, 0), policy)


@pytest.fixture
def brawl() -> Iterator[BatchedEnv]:
    """Two games."""
    with make_env("brawl", 2) as env:
        yield env


def test_bots_go_by_name_and_settings(brawl: BatchedEnv) -> None:
    for name in ("based", "aggressive:delay=8,noise=0.1"):
        player = find_player(name, brawl)
        assert (player.name, player.policy) == (name, None)
        assert isinstance(player.seat(brawl, 1), BotPlayer)


def test_agents_go_by_run_or_checkpoint(
    brawl: BatchedEnv, fresh: MakePolicy, save_agent: SaveAgent, tmp_path: Path
) -> None:
    policy = fresh("brawl")
    run = save_agent(policy, tmp_path / "runs" / "anna")
    for path, label in ((run, "anna"), (run / "checkpoints" / "best", "anna/best")):
        player = find_player(str(path), brawl)
        assert player.policy is not None
        assert all(torch.equal(tensor, policy.state()[name]) for name, tensor in player.policy.state().items())
        seated = player.seat(brawl, 0)
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
    assert find_player("based", brawl).policy is None
    assert find_player("./based", brawl).policy is not None
    assert short_name("./based") == "based"


def test_unknown_names_say_what_was_looked_for(brawl: BatchedEnv, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        find_player("agressive:delay=3", brawl)
    for part in ("'aggressive'", "brawl-v1", str(Path("agressive:delay=3").absolute()), "constant, random, "):
        assert part in str(error.value)
    with pytest.raises(ConfigError, match="delay"):
        find_player("aggressive:delay=99", brawl)
    with pytest.raises(ConfigError, match=f"{tmp_path / 'gone'}"):
        load_agent(str(tmp_path / "gone"))
    with pytest.raises(ConfigError, match=r"'braw'.*'brawl'"):
        find_world("braw")
    with pytest.raises(CheckpointError, match=r"manifest\.json"):
        find_player(str(tmp_path), brawl)


def test_an_agent_of_another_world_is_refused(
    brawl: BatchedEnv, fresh: MakePolicy, save_agent: SaveAgent, tmp_path: Path
) -> None:
    with pytest.raises(StateError, match="it plays duel-v1, not brawl-v1"):
        find_player(str(save_agent(fresh("duel"), tmp_path / "duellist")), brawl)


def test_worlds_are_found_by_name_with_or_without_version() -> None:
    for name in ("brawl", "brawl-v1", "gym:CartPole-v1"):
        assert find_world(name) == (name, None)


def test_an_agent_whose_world_would_import_a_module_is_refused(tmp_path: Path, fresh: MakePolicy) -> None:
    policy = fresh("duel")
    policy.spec = replace(policy.spec, name="gym:this:Zen")  # importing `this` prints a poem
    save_checkpoint(tmp_path / "agent", agent_checkpoint(policy.spec, policy.config, policy.state()))
    for load in (load_agent, find_world):
        with pytest.raises(ConfigError, match="'this'"):
            load(str(tmp_path / "agent"))
    assert "this" not in sys.modules


CPU = torch.device("cpu")


class Witness:
    """Remembers what it was shown."""

    fault: Fault | None = None

    def __init__(self) -> None:
        self.seen: list[Observations] = []
        self.kept: list[Tensor] = []

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        self.seen.append({name: tensor.clone() for name, tensor in observations.items()})

    def keep(self, games: Tensor) -> None:
        self.kept.append(games)


def test_late_frames_are_those_of_before_even_when_the_world_reuses_its_tensors() -> None:
    witness = Witness()
    player = perturb(witness, Perturbation(delay_frames=2), 0, CPU)
    frame = torch.zeros(2, 1)
    for match in range(2):
        for step in range(5):
            frame.fill_(10 * match + step)
            player.act({"vector": frame}, torch.zeros(2), first=step == 0)
    assert [int(seen["vector"][0, 0]) for seen in witness.seen] == [0, 0, 0, 1, 2, 10, 10, 10, 11, 12]


def test_noise_is_added_to_continuous_entries_alone() -> None:
    witness = Witness()
    player = perturb(witness, Perturbation(noise=0.5), 3, CPU)
    shown = {"vector": torch.ones(4000, 2), "choice": torch.ones(4000, dtype=torch.int64)}
    player.act(shown, torch.zeros(1), first=True)
    assert torch.equal(witness.seen[0]["choice"], shown["choice"])
    assert torch.equal(shown["vector"], torch.ones(4000, 2))
    noise = witness.seen[0]["vector"] - 1.0
    assert float(noise.std()) == pytest.approx(0.5, rel=0.05)
    assert abs(float(noise.mean())) < 0.03
    again = Witness()
    perturb(again, Perturbation(noise=0.5), 3, CPU).act(shown, torch.zeros(1), first=True)
    assert torch.equal(again.seen[0]["vector"], witness.seen[0]["vector"])


def test_without_a_perturbation_the_player_itself_plays() -> None:
    witness = Witness()
    assert perturb(witness, None, 0, CPU) is witness
    assert perturb(witness, Perturbation(), 0, CPU) is witness
    kept = torch.tensor([True, False])
    perturb(witness, Perturbation(1), 0, CPU).keep(kept)
    assert witness.kept == [kept]


@pytest.mark.parametrize(("delay", "noise"), [(-1, 0.0), (0, -0.1), (0, float("nan"))])
def test_what_cannot_be(delay: int, noise: float) -> None:
    with pytest.raises(ConfigError, match="delay_frames and noise"):
        Perturbation(delay, noise)


def test_a_policy_with_dropout_plays_by_compiled_functions_as_without(caplog: pytest.LogCaptureFixture) -> None:
    with make_env("identity", 4) as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        policy = Policy(env.spec, PolicyConfig(dropout=0.5))
        observations = {name: tensor.flatten(0, 1) for name, tensor in env.reset().items()}
    starts, noise = torch.zeros(4).bool(), policy.draw_noise(1, 4, torch.Generator().manual_seed(0))[0]
    played = make_playing_inference(policy, 4).step(observations, {}, starts, noise)
    torch.testing.assert_close(played.values, policy.step(observations, {}, starts, noise).values)
    assert not isinstance(make_playing_inference(policy, 4), Policy)
    assert not caplog.records
