"""Tournaments in small worlds: known outcomes, sides, batches, strangers' files that are wrong, and slow deciders."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from ludus.core.errors import ConfigError
from ludus.envs.registry import make_env
from ludus.evaluation import reaction
from ludus.evaluation.contenders import Contender
from ludus.evaluation.entrants import Entrant, Entries, Refusal, admit
from ludus.evaluation.pairings import Table
from ludus.evaluation.payoff_picture import draw_payoffs
from ludus.evaluation.reaction import ReactionTime, measure_reaction
from ludus.evaluation.tournament import Tournament, run_tournament
from ludus.league.payoffs import Record
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint

MakePolicy = Callable[..., Policy]
SaveAgent = Callable[[Policy, Path], Path]
ROCK, PAPER, SCISSORS = [9.0, -9.0, -9.0], [-9.0, 9.0, -9.0], [-9.0, -9.0, 9.0]


@pytest.fixture
def trio(stubborn: MakePolicy) -> list[Contender]:
    return [
        Contender(name, stubborn("duel", bias))
        for name, bias in (("rock agent", ROCK), ("paper agent", PAPER), ("scissors agent", SCISSORS))
    ]


def play(contenders: list[Contender], *, best_of: int | None = None, by_rating: bool = True) -> Tournament:
    entries = Entries("duel-v1", tuple(Entrant(each.name, each.name, each) for each in contenders), ())
    table = Table("duel-v1", contenders)
    return run_tournament(entries, table, matches=20, best_of=best_of, seeded_by_rating=by_rating)


def turned(cycle: tuple[str, ...], first: str) -> tuple[str, ...]:
    place = cycle.index(first)
    return cycle[place:] + cycle[:place]


def test_known_outcomes_whatever_the_batches(trio: list[Contender]) -> None:
    table = Table("duel", [*trio, Contender("rock"), Contender("cycle")])
    pairs = [(0, 1), (1, 2), (0, 2), (0, 3), (3, 1), (4, 1)]
    expected = [
        Record(0, 0, 7),
        Record(0, 0, 7),
        Record(7, 0, 0),
        Record(0, 7, 0),
        Record(0, 0, 7),
        Record(0, 0, 7),
    ]
    assert table.play(pairs, 7) == expected
    assert dataclasses.replace(table, max_games=4).play(pairs, 7) == expected
    assert dataclasses.replace(table, deterministic=True).play(pairs, 7) == expected
    assert table.play([], 7) == []


def test_equal_seeds_give_equal_records_and_occasions_differ() -> None:
    table = Table("duel", [Contender("random"), Contender("cycle")], seed=5)
    first = table.play([(0, 1)], 200)
    assert table.play([(0, 1)], 200) == first
    assert table.play([(0, 1)], 200, occasion=1) != first


def test_both_sides_are_played_as_often(monkeypatch: pytest.MonkeyPatch, trio: list[Contender]) -> None:
    seatings = []

    def spy(self: Table, env: object, seating: torch.Tensor, seed: int) -> object:
        seatings.append(seating.clone())
        return original(self, env, seating, seed)  # type: ignore[arg-type]

    original = Table._seat
    monkeypatch.setattr(Table, "_seat", spy)
    Table("duel", trio).play([(0, 1), (2, 0)], 4)
    assert seatings[0].tolist() == [[0, 1], [1, 0], [0, 1], [1, 0], [2, 0], [0, 2], [2, 0], [0, 2]]


def test_rock_paper_scissors_is_a_cycle_of_equals(trio: list[Contender]) -> None:
    played = play(trio, best_of=3, by_rating=False)
    (cycle,) = played.cycles
    assert turned(cycle, "rock agent") == ("rock agent", "scissors agent", "paper agent")
    assert [rating.estimate for rating in played.ratings.values()] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
    assert played.record("paper agent", "rock agent") == Record(20, 0, 0)
    assert played.total("rock agent") == Record(20, 0, 20)
    assert played.bracket is not None
    # Rock has a bye, scissors beat paper and lose to rock, beat paper again below, and lose the final to rock.
    assert [standing.name for standing in played.bracket.standings] == ["rock agent", "scissors agent", "paper agent"]
    assert played.bracket.played == 4
    document = played.as_json()
    assert document["cycles"] == [list(cycle)]
    assert document["players"][0]["score"] == 0.5
    assert document["pairs"][0] == {
        "first": "rock agent",
        "second": "paper agent",
        "matches": 20,
        "wins": 0,
        "draws": 0,
        "losses": 20,
    }


def test_ratings_order_the_players_and_a_draw_goes_to_the_better_seed(trio: list[Contender]) -> None:
    played = play([Contender("rock"), trio[0], trio[1]], best_of=3)
    assert [entrant.name for entrant in played.ranking] == ["paper agent", "rock", "rock agent"]
    assert played.cycles == ()
    assert played.bracket is not None
    first = next(meeting for meeting in played.bracket.rounds[0].meetings if meeting.score is not None)
    assert (first.first, first.second, first.winner) == ("rock", "rock agent", "rock")
    assert first.score is not None
    assert first.score[:3] == (0, 9, 0)  # three games, and twice again


def test_the_picture_takes_any_name(trio: list[Contender], tmp_path: Path) -> None:
    names = ["$a_$b", "a" * 60, "\u0436\u0442"]
    strange = [dataclasses.replace(each, name=name) for each, name in zip(trio, names, strict=True)]
    draw_payoffs(play(strange), tmp_path / "payoffs.png")
    assert (tmp_path / "payoffs.png").read_bytes().startswith(b"\x89PNG")


def test_a_world_without_two_sides_has_no_tournament(fresh: MakePolicy, save_agent: SaveAgent, tmp_path: Path) -> None:
    agents = [str(save_agent(fresh("rps", seed=seed), tmp_path / f"a{seed}")) for seed in range(2)]
    with pytest.raises(ConfigError, match="two sides and a winner; rps-v1 has 1 side and no winners"):
        admit(agents)


def test_agents_bots_and_all_bots(fresh: MakePolicy, save_agent: SaveAgent, tmp_path: Path) -> None:
    first, second = (str(save_agent(fresh("duel", seed=seed), tmp_path / f"a{seed}")) for seed in range(2))
    entries = admit([first, "random", second], all_bots=True)
    assert entries.world == "duel-v1"
    assert [entrant.name for entrant in entries.entrants] == ["a0", "random", "a1", "rock", "cycle"]
    assert [entrant.reaction is None for entrant in entries.entrants] == [False, True, False, True, True]
    twin = str(save_agent(fresh("duel"), tmp_path / "other" / "a0"))
    assert [entrant.name for entrant in admit([first, twin]).entrants] == [first, twin]
    namesake = str(save_agent(fresh("duel"), tmp_path / "rock"))
    assert [entrant.name for entrant in admit([namesake, "rock", first]).entrants] == [namesake, "rock", "a0"]
    assert len(admit(["rock", "cycle"], world="duel").entrants) == 2
    with pytest.raises(ConfigError, match="did you mean 'rock'"):
        admit([first, "rok"])
    with pytest.raises(ConfigError, match="named more than once: random"):
        admit([first, "random", "random"])
    with pytest.raises(ConfigError, match="--world"):
        admit(["rock", "cycle"])


def _bad_agents(folder: Path, fresh: MakePolicy, save_agent: SaveAgent) -> dict[str, tuple[str, str]]:
    """Returns folders of wrong agents, each with words of its refusal."""
    good = fresh("duel")
    bad: dict[str, tuple[str, str]] = {}

    def save(name: str, policy: Policy, words: str) -> Path:
        run = save_agent(policy, folder / name)
        bad[name] = (str(run), words)
        return run / "checkpoints" / "best"

    flipped = save("flipped", good, "SHA-256") / "policy.safetensors"
    content = bytearray(flipped.read_bytes())
    content[-3] ^= 0xFF
    flipped.write_bytes(content)
    short = save("short", good, "policy.safetensors") / "policy.safetensors"
    short.write_bytes(short.read_bytes()[:50])
    (save("no-manifest", good, "manifest.json") / "manifest.json").unlink()
    pickled = save("pickle", good, "") / "policy.safetensors"
    pickled.write_bytes(f"\x80\x04cos\nsystem\n(S'touch {folder / 'hit'}'\ntR.".encode("latin-1"))
    save("elsewhere", fresh("rps"), "its world is duel-v1, the agent's rps-v1")
    newer = dataclasses.replace(good.spec, version=2)
    save("newer", Policy(newer, PolicyConfig()), "its world is duel-v1, the agent's duel-v2")
    wide = spaces.Dict({"vector": spaces.Box(-1.0, 1.0, (9,), np.float32)})
    seeing = dataclasses.replace(good.spec, observation_space=wide, blocks={})
    save("wide", Policy(seeing, PolicyConfig()), "observation_space")
    acting = dataclasses.replace(good.spec, action_space=spaces.Discrete(4))
    save("acting", Policy(acting, PolicyConfig()), "action_space")
    for name, value, words in (("nan", float("nan"), "not finite"), ("huge", 3e38, "far too large")):
        policy = fresh("duel")
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.fill_(value)
        save(name, policy, words)
    (folder / "empty").mkdir()
    bad["empty"] = (str(folder / "empty"), "checkpoint")
    (folder / "text.txt").write_text("not an agent")
    bad["text"] = (str(folder / "text.txt"), "")
    return bad


def test_wrong_files_are_refused_with_the_reason_and_the_others_play(
    fresh: MakePolicy, save_agent: SaveAgent, tmp_path: Path
) -> None:
    good = [str(save_agent(fresh("duel", seed=seed), tmp_path / f"good-{seed}")) for seed in range(2)]
    bad = _bad_agents(tmp_path, fresh, save_agent)
    entries = admit([good[0], *(path for path, _ in bad.values()), good[1]])
    assert [entrant.source for entrant in entries.entrants] == good
    refused = dict(entries.refusals)
    for name, (path, words) in bad.items():
        assert words in refused[path], name
        assert refused[path], name
    played = run_tournament(entries, Table("duel-v1", [each.contender for each in entries.entrants]), matches=4)
    assert [each["source"] for each in played.as_json()["refused"]] == [path for path, _ in bad.values()]
    assert not (tmp_path / "hit").exists()  # where the hostile file would have written
    with pytest.raises(ConfigError, match=r"1 can take part\n  refused: .*newer: .*duel-v2"):
        admit([good[0], bad["newer"][0]])


def test_settings_of_a_strangers_file_do_not_rule_the_tournament(fresh: MakePolicy, tmp_path: Path) -> None:
    policy = fresh("duel")
    for name, settings in (("a", {"rounds": 10_000_000}), ("b", {"nonsense": 1})):
        checkpoint = agent_checkpoint(policy.spec, policy.config, policy.state(), settings)
        save_checkpoint(tmp_path / name, checkpoint)
    entries = admit([str(tmp_path / "a"), str(tmp_path / "b")], config={"rounds": 3})
    assert len(entries.entrants) == 2
    assert entries.refusals == ()


def test_who_decides_too_slowly_is_flagged(fresh: MakePolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaction, "_BUDGET_S", 0.2)
    agent = Agent(fresh("duel"))
    with make_env("duel") as env:
        quick = measure_reaction(agent, env)
        assert quick.pace == "in time"
        assert quick.frame_s == 0.1
        assert 0.0 < quick.median_s <= quick.p99_s
        original = agent.predict

        def ponder(*arguments: Any) -> Any:
            time.sleep(0.11)
            return original(*arguments)

        monkeypatch.setattr(agent, "predict", ponder)
        slow = measure_reaction(agent, env)
    assert slow.pace == "too slow"
    assert slow.median_s > 0.11
    assert slow.as_json()["pace"] == "too slow"
    assert ReactionTime(0.01, 0.2, 0.1, 100).pace == "late at times"


def test_refusals_are_in_the_document() -> None:
    entries = Entries("duel-v1", (), (Refusal("x", "broken"),))
    document = Tournament(entries, {}, {}, (), None, 0.0).as_json()
    assert document["refused"] == [{"source": "x", "reason": "broken"}]
