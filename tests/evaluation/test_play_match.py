"""`ludus.play_match`: bots, functions, classes and agents play; results, replays and videos; errors."""

from pathlib import Path
from typing import Any

import pytest
import torch

import ludus
from ludus.core.errors import ConfigError, StateError
from ludus.envs.bots import BotObservation
from ludus.envs.registry import make_env
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint

pytestmark = pytest.mark.train


def paper(observation: BotObservation, state: None) -> tuple[torch.Tensor, None]:
    return torch.ones_like(observation.frame), state


class Scissors:
    def reset(self) -> None: ...

    def act(self, observation: BotObservation) -> int:
        return 2


def make_agent(world: str) -> Agent:
    with make_env(world) as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Agent(Policy(env.spec, PolicyConfig()))


def test_functions_classes_and_bots_play_and_the_better_one_wins() -> None:
    result = ludus.play_match(paper, "rock", world="duel")
    assert (result.players, result.winner, result.steps) == (("paper", "rock"), "paper", 10)
    assert result.statistics["lead"] == (9.0, -9.0) or result.statistics["lead"] == (10.0, -10.0)
    assert ludus.play_match(paper, Scissors, world="duel").winner == "Scissors"
    drawn = ludus.play_match("rock", "rock", world="duel")
    assert (drawn.winner, drawn.winner_index) == (None, None)


def test_agents_play_from_memory_and_from_files_and_matches_repeat(tmp_path: Path) -> None:
    agent = make_agent("duel")
    save_checkpoint(
        tmp_path / "run" / "checkpoints" / "best",
        agent_checkpoint(agent.spec, agent.policy.config, agent.policy.state()),
    )
    from_file, loaded = (ludus.play_match(each, "cycle", seed=4) for each in (tmp_path / "run", agent))
    assert from_file.statistics == loaded.statistics
    assert from_file.players == ("run", "cycle")
    assert loaded.players == ("agent", "cycle")
    assert ludus.play_match(str(tmp_path / "run"), agent, seed=4).steps == 10


def rock(observation: BotObservation, state: None) -> tuple[torch.Tensor, None]:
    return torch.zeros_like(observation.frame), state


def test_the_index_tells_sides_of_one_name_apart() -> None:
    better: Any = type("rock", (Scissors,), {"act": lambda *_: 1})
    won = [ludus.play_match(first, second, "duel") for first, second in ((rock, better), (better, rock))]
    assert [(result.players, result.winner) for result in won] == [(("rock", "rock"), "rock")] * 2
    assert [result.winner_index for result in won] == [1, 0]


@pytest.mark.parametrize("world", ["duel", None])
def test_a_bot_takes_precedence_over_a_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: str | None
) -> None:
    agent = make_agent("duel")
    save_checkpoint(
        tmp_path / "cycle" / "checkpoints" / "best",
        agent_checkpoint(agent.spec, agent.policy.config, agent.policy.state()),
    )
    monkeypatch.chdir(tmp_path)
    by_folder = ludus.play_match("./cycle", "rock", world, seed=2)
    bot = ludus.play_match("cycle", agent, world, seed=2)
    assert bot.statistics == ludus.play_match("cycle", make_agent("duel"), "duel", seed=2).statistics
    assert ludus.play_match("cycle", "./cycle", world, seed=2).statistics == bot.statistics
    assert by_folder.statistics == ludus.play_match(agent, "rock", seed=2).statistics


def test_unnamed_agents_are_numbered_in_an_evaluation() -> None:
    agents = [make_agent("duel") for _ in range(2)]
    rows = ludus.evaluate(agents[0], [*agents, "rock", paper], matches=2).rows
    assert [row["opponent"] for row in rows] == ["agent-1", "agent-2", "rock", "paper"]
    assert ludus.evaluate(agents[0], [agents[1]], matches=2).rows[0]["opponent"] == "agent"


def test_a_match_is_filmed_and_recorded(tmp_path: Path) -> None:
    result = ludus.play_match(
        "aggressive", "constant", "brawl", video=tmp_path / "new" / "match.gif", config={"stocks": 1}
    )
    assert (tmp_path / "new" / "match.gif").stat().st_size > 10_000
    assert result.winner in result.players
    assert result.statistics["stocks"][result.players.index(result.winner)] == 1.0
    assert min(result.statistics["stocks"]) == 0.0
    assert result.replay is not None
    assert result.replay.steps == result.steps


@pytest.mark.parametrize(
    ("players", "world", "error", "text"),
    [
        (("rock", "rock"), None, ConfigError, "which world.*brawl-v1, .*duel-v1"),
        (("rock", "rcok"), "duel", ConfigError, "rcok"),
        (("rock", 7), "duel", ConfigError, "function or a class"),
        (("rock", "rock"), "point", ConfigError, "two sides"),
    ],
)
def test_what_cannot_play_is_refused(players: Any, world: str | None, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ludus.play_match(players[0], players[1], world)


def test_an_agent_of_another_world_is_refused() -> None:
    with pytest.raises(StateError, match="does not fit the world"):
        ludus.play_match(make_agent("rps"), "rock", world="duel")


def test_functions_and_agents_are_opponents_of_an_evaluation() -> None:
    agent = make_agent("duel")
    rows = ludus.evaluate(agent, [paper, Scissors, make_agent("duel"), "rock"], matches=4).rows
    assert [row["opponent"] for row in rows] == ["paper", "Scissors", "agent", "rock"]
    assert ludus.evaluate(agent, paper, matches=4).rows[0]["opponent"] == "paper"


def test_the_package_shows_its_api() -> None:
    assert {"train", "play_match", "register_bot", "check_env", "reward_term", "LudusError"} <= set(dir(ludus))
