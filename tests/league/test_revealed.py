"""The oracle: an entry of the observation that tells who plays, in training, evaluation and files."""

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from tests.agents import MakePolicy, SaveAgent
from torch import Tensor

import ludus
from ludus import make_env
from ludus.core.errors import ConfigError
from ludus.envs import bots
from ludus.envs.base import OPPONENT_IDENTITY, EnvSpec, action_dtypes
from ludus.envs.bots import BotObservation
from ludus.envs.revealed import RevealedEnv, revealed_spec
from ludus.evaluation.entries import load_entries
from ludus.evaluation.evaluate import evaluate
from ludus.evaluation.matches import MatchSchedule
from ludus.evaluation.players import Player, opponent_identities
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.export import export_agent
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint
from ludus.training import TrainConfig
from ludus.training.components import Components, PhaseStart
from ludus.training.preflight import verify
from ludus.training.summary import summarise

ROCK, PAPER, SCISSORS = ([9.0 if place == throw else -9.0 for place in range(3)] for throw in range(3))
NAMES = ("paper", "rock", "scissors")


@pytest.fixture(autouse=True)
def _more_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register bots of duel that always play the same, as `rock` does."""
    monkeypatch.setattr(bots, "_REGISTERED", {})

    def always(throw: int) -> Any:
        def play(observation: BotObservation, state: None) -> tuple[Tensor, None]:
            return torch.full_like(observation.frame, throw), state

        return play

    ludus.register_bot("duel", "paper")(always(1))
    ludus.register_bot("duel", "scissors")(always(2))


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": 24, "settings": {"rounds": 1}},
            "policy": {"net_arch": {"pi": [16], "vf": [16]}},
            "ppo": {"n_steps": 16, "n_minibatches": 4, "n_epochs": 2, "learning_rate": 0.01},
            "opponents": {"rock": 1, "paper": 1, "scissors": 1},
            "league": {"reveal_opponent": True},
            **changes,
        }
    )


def told_spec() -> EnvSpec:
    with make_env("duel", config={"rounds": 1}) as env:
        return revealed_spec(env.spec, NAMES)


def oracle() -> Policy:
    """Play what beats whom it is told; rock where it is told nobody."""
    policy = Policy(told_spec(), PolicyConfig.model_validate({"net_arch": {"pi": [], "vf": []}}))
    columns = list(policy.observations.sizes)
    start = sum(policy.observations.sizes[name] for name in columns[: columns.index(OPPONENT_IDENTITY)])
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        weight, bias = (policy.get_parameter(f"head.linear.{name}") for name in ("weight", "bias"))
        bias.copy_(torch.tensor(ROCK))
        for place, answer in enumerate((SCISSORS, PAPER, ROCK)):  # to paper, rock and scissors
            weight[:, start + place] = 4.0 * torch.tensor(answer)
    return policy


def test_the_entry_is_one_hot_of_who_plays_and_zeros_for_past_selves_and_other_seats() -> None:
    env = RevealedEnv(make_env("duel", 60, config={"rounds": 1}), ("paper", "rock"))
    policy = Policy(env.spec, PolicyConfig())
    weights = {"rock": 1.0, "self": 1.0, "mirror": 1.0, "paper": 1.0}
    league = LeagueOpponents(env, policy, weights, LeagueConfig(), 3)
    league.add_snapshot("s1", 0, policy.state())
    observations = env.reset()
    actions, met = torch.zeros(60, 2, dtype=torch.int64), set()
    for _ in range(4):
        seen, final = observations[OPPONENT_IDENTITY].clone(), observations[OPPONENT_IDENTITY].clone()
        for game, index in enumerate(league.opponents.tolist()):
            name = league.names[index] if index >= 0 else "mirror"
            met.add(name)
            expected = [float(name == each) for each in ("paper", "rock")]
            for seat in (0, 1):
                assert seen[game, seat].tolist() == (expected if league.learner[game, seat] else [0.0, 0.0])
        league.act(observations, actions)
        result = env.step(actions)
        # Until the next opponents are drawn the entry is that of the match that is over.
        assert torch.equal(result.final_observations[OPPONENT_IDENTITY], final)
        league.after_step(result)
        observations = result.observations
    assert met == {"paper", "rock", "s1", "mirror"}


def test_who_is_told_wins_where_a_blind_learner_can_only_guess() -> None:
    returns = []
    for reveal in (True, False):
        with Components(make_config(league={"reveal_opponent": reveal})) as components:
            for _ in range(20):
                components.learner.iterate(0.0)
            returns.append(float(components.buffer.rewards.mean()))
    assert returns[0] > 0.9
    assert abs(returns[1]) < 0.2


def test_an_evaluation_tells_the_name_and_unknown_ones_are_nobody(caplog: pytest.LogCaptureFixture) -> None:
    evaluation = evaluate(oracle(), ["rock", "paper", "scissors", "cycle"], matches=8, config={"rounds": 1})
    assert [row["win_rate"] for row in evaluation.rows] == [1.0, 1.0, 1.0, 0.0]  # rock against cycle's rock: a draw
    assert "'cycle' is not among paper, rock, scissors" in caplog.text


def test_an_agent_by_the_name_of_the_mix_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stubborn: MakePolicy, save_agent: SaveAgent
) -> None:
    monkeypatch.chdir(tmp_path)
    save_agent(stubborn("duel", ROCK), Path("runs/other"))
    config = make_config(opponents={"runs/other": 1, "paper": 1}, ppo={"n_steps": 16, "n_minibatches": 1})
    assert config.revealed_opponents() == ("paper", "runs/other")
    with Components(config) as components:
        components.learner.collect()
        seen, rows = components.buffer.observations[OPPONENT_IDENTITY], components.trace.opponents
        names = components.opponents.names if components.opponents is not None else ()
        assert torch.equal(seen[..., 1].bool(), rows == names.index("runs/other"))
    told = opponent_identities(components.env.spec, ["runs/other"], torch.tensor([0, -1]))
    assert told is not None
    assert told.tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_a_stored_agent_knows_its_list_and_plays_alike(tmp_path: Path) -> None:
    policy = oracle()
    save_checkpoint(tmp_path / "agent", agent_checkpoint(policy.spec, policy.config, policy.state(), {"rounds": 1}))
    export_agent(tmp_path / "agent", tmp_path / "oracle.ludus")
    for path in (tmp_path / "agent", tmp_path / "oracle.ludus"):
        agent = Agent.load(path)
        assert agent.spec.opponent_names == NAMES
        assert evaluate(path, ["paper"], matches=4).score == 1.0
        action, _ = agent.predict({"vector": torch.zeros(2, 8)}, deterministic=True)
        assert action.tolist() == [0, 0]  # told nobody, it plays rock
        action, _ = agent.predict(
            {"vector": torch.zeros(8), OPPONENT_IDENTITY: torch.tensor([1.0, 0.0, 0.0])}, deterministic=True
        )
        assert int(action) == 2
    match = ludus.play_match(str(tmp_path / "oracle.ludus"), "paper", deterministic=True)
    assert match.winner_index == 0
    other = ludus.play_match("rock", str(tmp_path / "oracle.ludus"), world="duel", deterministic=True)
    assert other.winner_index == 1


def test_the_names_of_revealed_opponents_are_described(stubborn: MakePolicy) -> None:
    described = PolicyDescription.of(told_spec(), stubborn("duel", ROCK).config)
    assert PolicyDescription.read(described.model_dump_json()).spec().opponent_names == NAMES


def test_an_oracle_among_the_opponents_is_told_nobody() -> None:
    evaluation = evaluate(oracle(), [Player("twin", oracle())], matches=4, config={"rounds": 1})
    assert evaluation.rows[0]["draws"] == 4
    with make_env("duel", 6, config={"rounds": 1}) as env:
        learner = Policy(env.spec, PolicyConfig())
        league = LeagueOpponents(env, learner, {"an": 1.0}, LeagueConfig(), 0, agents={"an": oracle()})
        actions = torch.full((6, 2), 7)
        league.act(env.reset(), actions)
    assert torch.equal(actions == 0, ~league.learner)


def test_an_opponent_that_is_told_nothing_does_not_see_the_entry() -> None:
    """One with canonical views would have to turn an entry that its world does not have."""
    with RevealedEnv(make_env("brawl", 4), ("blind",)) as env, make_env("brawl", 1) as plain:
        blind = Policy(plain.spec, PolicyConfig(canonical=True))
        league = LeagueOpponents(
            env, Policy(env.spec, PolicyConfig()), {"blind": 1.0}, LeagueConfig(), 0, agents={"blind": blind}
        )
        actions = torch.full((4, 2, 10), 7, dtype=action_dtypes(env.spec.action_space)[0])
        league.act(env.reset(), actions)
        assert torch.equal((actions <= 1).all(dim=-1), ~league.learner)


def test_the_entry_is_not_normalised_and_past_selves_play() -> None:
    changes = {"normalize": {"observations": True}, "net_arch": {"pi": [8], "vf": [8]}, "recurrent": {"size": 4}}
    config = make_config(
        policy=changes,
        opponents={"self": 1, "rock": 1},
        ppo={"n_steps": 16, "sequence_length": 16, "n_minibatches": 1},
    )
    with Components(config) as components:
        assert set(components.policy.observations.normalisers) == {"vector"}
        components.learner.iterate(0.0)
        assert components.opponents is not None
        components.opponents.add_snapshot("s1", 1, components.policy.state())
        components.learner.iterate(0.0)
        state = components.state()
        components.learner.collect()
        with Components(config) as other:
            assert other.opponents is not None
            other.opponents.add_snapshot("s1", 1, components.policy.state(), slot=0)
            other.load_state(state)
            other.learner.collect()
            for name, seen in components.buffer.observations.items():
                assert torch.equal(seen, other.buffer.observations[name]), name


def test_phases_share_one_list() -> None:
    phases = [
        {"name": "first", "opponents": {"rock": 1, "self": 1}, "promotion": {"after_env_steps": 100}},
        {"name": "second", "opponents": {"paper": 1}, "world": {"num_envs": 12}},
    ]
    config = make_config(opponents=None, curriculum=phases, ppo={"n_steps": 16, "n_minibatches": 1})
    assert config.revealed_opponents() == ("paper", "rock")
    with Components(config) as components:
        components.begin_phase(1, 100)
        components.learner.collect()
        assert components.phase_start == PhaseStart(stage=1, env_steps=100)
        assert torch.equal(components.buffer.observations[OPPONENT_IDENTITY][..., 0], torch.ones(16, 12))


def test_the_checks_before_a_run_play_it() -> None:
    assert any("update" in line for line in verify(make_config(total_env_steps=1000)))


def test_the_summary_names_whom_it_is_told_and_the_sets() -> None:
    config = make_config(league={"reveal_opponent": True, "best_of": 3}, evaluation={"matches": 6})
    lines = "\n".join(summarise(config, None, ""))
    assert "told who it plays: paper, rock, scissors" in lines
    assert "in sets of 3" in lines
    assert "6 matches in sets of 3 against every bot" in lines
    # 8 numbers of the world and 3 identities: (11 + 1) * 16 + 17 * 3 of the actor, (11 + 1) * 16 + 17 of the critic.
    assert "452 parameters" in lines


def test_somebody_must_be_there_to_be_revealed() -> None:
    with pytest.raises(ValidationError, match="reveal_opponent"):
        make_config(opponents={"self": 1})
    with make_env("duel") as env, pytest.raises(ConfigError, match=OPPONENT_IDENTITY):
        RevealedEnv(env, ())


def test_a_tournament_takes_an_oracle_and_tells_it(tmp_path: Path) -> None:
    policy = oracle()
    save_checkpoint(tmp_path / "oracle", agent_checkpoint(policy.spec, policy.config, policy.state()))
    entries = load_entries([str(tmp_path / "oracle"), "rock", "paper"], config={"rounds": 1})
    assert not entries.rejected
    players = [entry.player for entry in entries.accepted]
    schedule = MatchSchedule("duel", players, config={"rounds": 1}, deterministic=True)
    assert [record.wins for record in schedule.play([(0, 1), (0, 2), (1, 2)], 4)] == [4, 4, 0]
