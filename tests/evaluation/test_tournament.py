"""Tournaments: known outcomes, sides, batches, broken agent files, slow agents, and cycles."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from ludus.core.errors import ConfigError
from ludus.envs.registry import make_env
from ludus.evaluation import entries as entries_module
from ludus.evaluation import matches as matches_module
from ludus.evaluation import players as players_module
from ludus.evaluation.entries import Entries, Entry, ReactionTime, Rejection, load_entries, measure_reaction
from ludus.evaluation.matches import MatchSchedule
from ludus.evaluation.payoff_plot import plot_payoffs
from ludus.evaluation.players import Player
from ludus.evaluation.tournament import Beats, Tournament, find_cycles, run_tournament, significant_wins
from ludus.league.payoffs import Record
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint

pytestmark = pytest.mark.train

MakePolicy = Callable[..., Policy]
SaveAgent = Callable[[Policy, Path], Path]
ROCK, PAPER, SCISSORS = [9.0, -9.0, -9.0], [-9.0, 9.0, -9.0], [-9.0, -9.0, 9.0]


@pytest.fixture
def trio(stubborn: MakePolicy) -> list[Player]:
    return [
        Player(name, stubborn("duel", bias))
        for name, bias in (("rock agent", ROCK), ("paper agent", PAPER), ("scissors agent", SCISSORS))
    ]


def play(players: list[Player], *, best_of: int | None = None, by_rating: bool = True) -> Tournament:
    entries = Entries("duel-v1", tuple(Entry(each.name, each.name, each) for each in players), ())
    schedule = MatchSchedule("duel-v1", players)
    return run_tournament(entries, schedule, matches=20, best_of=best_of, seeded_by_rating=by_rating)


def turned(cycle: tuple[str, ...], first: str) -> tuple[str, ...]:
    place = cycle.index(first)
    return cycle[place:] + cycle[:place]


def test_known_outcomes_whatever_the_batches(trio: list[Player]) -> None:
    schedule = MatchSchedule("duel", [*trio, Player("rock"), Player("cycle")])
    pairs = [(0, 1), (1, 2), (0, 2), (0, 3), (3, 1), (4, 1)]
    expected = [
        Record(0, 0, 7),
        Record(0, 0, 7),
        Record(7, 0, 0),
        Record(0, 7, 0),
        Record(0, 0, 7),
        Record(0, 0, 7),
    ]
    assert schedule.play(pairs, 7) == expected
    assert dataclasses.replace(schedule, max_envs=4).play(pairs, 7) == expected
    assert dataclasses.replace(schedule, deterministic=True).play(pairs, 7) == expected
    assert schedule.play([], 7) == []


def test_equal_seeds_give_equal_records_and_rounds_differ() -> None:
    schedule = MatchSchedule("duel", [Player("random"), Player("cycle")], seed=5)
    first = schedule.play([(0, 1)], 200)
    assert schedule.play([(0, 1)], 200) == first
    assert schedule.play([(0, 1)], 200, round_number=1) != first


def test_both_sides_are_played_as_often(monkeypatch: pytest.MonkeyPatch, trio: list[Player]) -> None:
    seatings = []

    def spy(env: Any, players: Any, seating: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        seatings.append(seating.clone())
        return players_module.seat_in_batch(env, players, seating, *arguments, **options)

    monkeypatch.setattr(matches_module, "seat_in_batch", spy)
    MatchSchedule("duel", trio).play([(0, 1), (2, 0)], 4)
    assert seatings[0].tolist() == [[0, 1], [1, 0], [0, 1], [1, 0], [2, 0], [0, 2], [2, 0], [0, 2]]


def test_rock_paper_scissors_is_a_cycle_of_equals(trio: list[Player]) -> None:
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


def test_ratings_order_the_players_and_a_draw_goes_to_the_better_seed(trio: list[Player]) -> None:
    played = play([Player("rock"), trio[0], trio[1]], best_of=3)
    assert [entry.name for entry in played.ranking] == ["paper agent", "rock", "rock agent"]
    assert played.cycles == ()
    assert played.bracket is not None
    first = next(meeting for meeting in played.bracket.rounds[0].meetings if meeting.score is not None)
    assert (first.first, first.second, first.winner) == ("rock", "rock agent", "rock")
    assert first.score is not None
    assert first.score[:3] == (0, 9, 0)  # three games, and twice again


def test_the_picture_takes_any_name(trio: list[Player], tmp_path: Path) -> None:
    names = ["$a_$b", "a" * 60, "\u0436\u0442"]
    strange = [dataclasses.replace(each, name=name) for each, name in zip(trio, names, strict=True)]
    plot_payoffs(play(strange), tmp_path / "payoffs.png")
    assert (tmp_path / "payoffs.png").read_bytes().startswith(b"\x89PNG")


def test_a_world_without_two_sides_has_no_tournament(fresh: MakePolicy, save_agent: SaveAgent, tmp_path: Path) -> None:
    agents = [str(save_agent(fresh("rps", seed=seed), tmp_path / f"a{seed}")) for seed in range(2)]
    with pytest.raises(ConfigError, match="rps-v1"):
        load_entries(agents)


def test_agents_bots_and_all_bots(fresh: MakePolicy, save_agent: SaveAgent, tmp_path: Path) -> None:
    first, second = (str(save_agent(fresh("duel", seed=seed), tmp_path / f"a{seed}")) for seed in range(2))
    entries = load_entries([first, "random", second], all_bots=True)
    assert entries.world == "duel-v1"
    assert [entry.name for entry in entries.accepted] == ["a0", "random", "a1", "rock", "cycle"]
    assert [entry.reaction is None for entry in entries.accepted] == [False, True, False, True, True]
    twin = str(save_agent(fresh("duel"), tmp_path / "other" / "a0"))
    assert [entry.name for entry in load_entries([first, twin]).accepted] == [first, twin]
    namesake = str(save_agent(fresh("duel"), tmp_path / "rock"))
    assert [entry.name for entry in load_entries([namesake, "rock", first]).accepted] == [namesake, "rock", "a0"]
    assert len(load_entries(["rock", "cycle"], world="duel").accepted) == 2
    with pytest.raises(ConfigError, match="'rock'"):
        load_entries([first, "rok"])
    with pytest.raises(ConfigError, match="random;"):
        load_entries([first, "random", "random"])
    with pytest.raises(ConfigError, match="--world"):
        load_entries(["rock", "cycle"])


def _bad_agents(folder: Path, fresh: MakePolicy, save_agent: SaveAgent) -> dict[str, tuple[str, str]]:
    """Return folders of broken agents, each with words of the reason."""
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
    save("elsewhere", fresh("rps"), "rps-v1")
    newer = dataclasses.replace(good.spec, version=2)
    save("newer", Policy(newer, PolicyConfig()), "duel-v2")
    wide = spaces.Dict({"vector": spaces.Box(-1.0, 1.0, (9,), np.float32)})
    seeing = dataclasses.replace(good.spec, observation_space=wide, blocks={}, fields={})
    save("wide", Policy(seeing, PolicyConfig()), "observation_space")
    acting = dataclasses.replace(good.spec, action_space=spaces.Discrete(4))
    save("acting", Policy(acting, PolicyConfig()), "action_space")
    for name, value, words in (("nan", float("nan"), "NaN"), ("huge", 3e38, "NaN")):
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
    entries = load_entries([good[0], *(path for path, _ in bad.values()), good[1]])
    assert [entry.source for entry in entries.accepted] == good
    rejected = dict(entries.rejected)
    for name, (path, words) in bad.items():
        assert words in rejected[path], name
        assert rejected[path], name
    played = run_tournament(entries, MatchSchedule("duel-v1", [each.player for each in entries.accepted]), matches=4)
    assert [each["source"] for each in played.as_json()["refused"]] == [path for path, _ in bad.values()]
    assert not (tmp_path / "hit").exists()  # where the hostile file would have written
    with pytest.raises(ConfigError, match=r"newer: .*duel-v2"):
        load_entries([good[0], bad["newer"][0]])


def test_settings_of_a_strangers_file_do_not_rule_the_tournament(fresh: MakePolicy, tmp_path: Path) -> None:
    policy = fresh("duel")
    for name, settings in (("a", {"rounds": 10_000_000}), ("b", {"nonsense": 1})):
        checkpoint = agent_checkpoint(policy.spec, policy.config, policy.state(), settings)
        save_checkpoint(tmp_path / name, checkpoint)
    entries = load_entries([str(tmp_path / "a"), str(tmp_path / "b")], config={"rounds": 3})
    assert len(entries.accepted) == 2
    assert entries.rejected == ()


def test_who_decides_too_slowly_is_flagged(fresh: MakePolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, thinking_s = 0.0, 0.01  # a clock that goes on while the agent thinks, and at no other time
    agent = Agent(fresh("duel"))
    original = agent.predict

    def ponder(*arguments: Any) -> Any:
        nonlocal now_s
        now_s += thinking_s
        return original(*arguments)

    monkeypatch.setattr(agent, "predict", ponder)
    monkeypatch.setattr(entries_module, "time", SimpleNamespace(perf_counter=lambda: now_s))
    with make_env("duel") as env:
        quick = measure_reaction(agent, env)
        thinking_s = 0.11
        slow = measure_reaction(agent, env)
    assert (quick.pace, quick.frame_s) == ("in time", 0.1)
    assert quick.median_s == pytest.approx(0.01)
    assert quick.p99_s == pytest.approx(0.01)
    assert (slow.pace, slow.as_json()["pace"]) == ("too slow", "too slow")
    assert slow.median_s == pytest.approx(0.11)
    assert ReactionTime(0.01, 0.2, 0.1, 100).pace == "late at times"


def test_rejections_are_in_the_document() -> None:
    entries = Entries("duel-v1", (), (Rejection("x", "broken"),))
    document = Tournament(entries, {}, {}, (), None, 0.0).as_json()
    assert document["refused"] == [{"source": "x", "reason": "broken"}]


def beats(*wins: str) -> Beats:
    names = sorted({letter for win in wins for letter in win})
    return {name: frozenset(win[1] for win in wins if win[0] == name) for name in names}


def test_a_win_is_sure_only_with_enough_matches() -> None:
    # One pair at 95 %: 5 of 5 has a Wilson interval from 0.566, 3 of 3 from 0.439.
    assert significant_wins("ab", {("a", "b"): Record(5, 0, 0)}) == {"a": frozenset("b"), "b": frozenset()}
    assert significant_wins("ab", {("a", "b"): Record(3, 0, 0)}) == {"a": frozenset(), "b": frozenset()}
    assert significant_wins("ab", {("a", "b"): Record(0, 0, 5)})["b"] == {"a"}
    # Draws say nothing; without a decided match nothing is known.
    assert significant_wins("ab", {("a", "b"): Record(5, 90, 0)})["a"] == {"b"}
    assert significant_wins("ab", {("a", "b"): Record(0, 9, 0)}) == {"a": frozenset(), "b": frozenset()}


def test_many_pairs_are_judged_more_strictly() -> None:
    # Three pairs at 98.3 % each: z = 2.394, z^2 = 5.731, and 5 of 5 reaches down to 5 / (5 + 5.731) = 0.466.
    records = {("a", "b"): Record(5, 0, 0), ("a", "c"): Record(6, 0, 0), ("b", "c"): Record(0, 0, 0)}
    assert significant_wins("abc", records)["a"] == {"c"}  # 6 / 11.731 = 0.511


def test_cycles_of_three_are_named_once_in_the_direction_of_the_wins() -> None:
    assert find_cycles(beats("ab", "bc", "ca")) == [("a", "b", "c")]
    assert find_cycles(beats("ac", "cb", "ba")) == [("a", "c", "b")]
    assert find_cycles(beats("ab", "bc", "ac")) == []


def test_two_cycles_that_share_a_win() -> None:
    assert find_cycles(beats("ab", "bc", "ca", "bd", "da")) == [("a", "b", "c"), ("a", "b", "d")]


def test_a_long_cycle_is_named_if_no_short_one_has_its_wins() -> None:
    assert find_cycles(beats("ab", "bc", "cd", "da")) == [("a", "b", "c", "d")]
    # With the diagonal there are two of three, and the long one is made of them.
    assert find_cycles(beats("ab", "bc", "ca", "cd", "da", "ac")) == [("a", "b", "c"), ("a", "c", "d")]
    assert find_cycles(beats("ab", "bc", "cd", "de", "ea", "ac")) == [("a", "c", "d", "e"), ("a", "b", "c", "d", "e")]


@pytest.mark.parametrize("wins", [(), ("ab",), ("ab", "cb")])
def test_no_cycles(wins: tuple[str, ...]) -> None:
    assert find_cycles(beats(*wins)) == []
