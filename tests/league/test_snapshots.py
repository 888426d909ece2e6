"""The pool of snapshots, and snapshots at play."""

import logging
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ludus import make_env
from ludus.core.errors import ConfigError, StateError, UnknownNameError
from ludus.envs.base import BatchedEnv, Observations
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.league.payoffs import Payoffs
from ludus.league.snapshots import SnapshotPool
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

SPEC = make_env("duel", 1).spec
POLICY = Policy(SPEC, PolicyConfig.model_validate({"net_arch": {"pi": [], "vf": []}}))


def test_the_oldest_leaves_that_nobody_plays_with() -> None:
    pool = SnapshotPool(POLICY, keep=3)
    state = POLICY.state()
    assert [pool.add(f"s{i}", i, state, ()) for i in range(3)] == [None, None, None]
    assert pool.names() == ("s0", "s1", "s2")
    assert pool.add("s3", 3, state, in_use={0}) == "s1"
    assert pool.names() == ("s0", "s3", "s2")
    assert [snapshot.name for snapshot in pool.snapshots] == ["s0", "s2", "s3"]
    # All but the newest are playing, and the newest never leaves: the new one is not taken.
    assert pool.add("s4", 4, state, in_use={0, 2}) == "s4"
    assert pool.names() == ("s0", "s3", "s2")
    assert pool.remove("s2").slot == 2
    assert pool.add("s4", 4, state, in_use={0, 1}) is None
    assert pool.find("s4").slot == 2
    assert not pool.is_empty


def test_a_slot_can_be_named_to_give_a_snapshot_back() -> None:
    pool = SnapshotPool(POLICY, keep=3)
    pool.add("s5", 5, POLICY.state(), (), slot=2)
    pool.add("s1", 1, POLICY.state(), (), slot=0)
    assert pool.names() == ("s1", "", "s5")
    assert [snapshot.name for snapshot in pool.snapshots] == ["s1", "s5"]
    assert pool.add("s5", 5, POLICY.state(), (), slot=2) is None
    assert pool.add("s6", 6, POLICY.state(), (), slot=2) == "s5"


def test_what_cannot_be_is_refused() -> None:
    pool = SnapshotPool(POLICY, keep=2)
    pool.add("s0", 0, POLICY.state(), ())
    for name in ("", "s0"):
        with pytest.raises(ConfigError, match="own name"):
            pool.add(name, 1, POLICY.state(), ())
    with pytest.raises(UnknownNameError, match="did you mean 's0'"):
        pool.remove("s1")
    with pytest.raises(StateError, match="same policy config"):
        pool.add("s1", 1, {"parameter.x": torch.zeros(1)}, ())
    with pytest.raises(ConfigError, match="slot 2"):
        pool.add("s1", 1, POLICY.state(), (), slot=2)
    assert pool.names() == ("s0", "")


@settings(max_examples=30)
@given(st.integers(2, 5), st.lists(st.sets(st.integers(0, 4)), max_size=20))
def test_players_and_the_newest_never_leave(keep: int, uses: list[set[int]]) -> None:
    pool = SnapshotPool(POLICY, keep)
    state = POLICY.state()
    for i, in_use in enumerate(uses):
        before = {snapshot.name: snapshot for snapshot in pool.snapshots}
        newest = pool.snapshots[-1].name if before else ""
        evicted = pool.add(f"s{i}", i, state, in_use)
        after = {snapshot.name: snapshot for snapshot in pool.snapshots}
        assert len(after) == min(keep, len(before) + (evicted != f"s{i}"))
        assert len({snapshot.slot for snapshot in after.values()}) == len(after)
        gone = set(before) - set(after)
        assert gone == ({evicted} - {None, f"s{i}"})
        assert newest not in gone
        assert all(before[name].slot not in in_use for name in gone)
        assert all(after[name] == before[name] for name in set(before) & set(after))


SURE = 1e4  # a logit that no noise can turn
PLAIN = PolicyConfig.model_validate({"net_arch": {"pi": [], "vf": []}})
COUNTING = PolicyConfig.model_validate({"net_arch": {"pi": [], "vf": []}, "recurrent": {"size": 1}})


def _zeros(policy: Policy) -> dict[str, Tensor]:
    return {name: torch.zeros_like(tensor) for name, tensor in policy.state().items()}


def _echo(policy: Policy) -> dict[str, Tensor]:
    """Presses button k where number k of the observation is positive."""
    state = _zeros(policy)
    state["parameter.head.linear.weight"][:, :4] = SURE * torch.eye(4)
    return state


def _counter(policy: Policy) -> dict[str, Tensor]:
    """Presses button k from its step k + 1 of an episode on: its cell grows by 0.1 a step."""
    state = _zeros(policy)
    state["parameter.memory.recurrent.bias"][:] = torch.tensor([SURE, SURE, SURE, math.atanh(0.1)])
    state["parameter.head.linear.weight"][:, 0] = SURE
    state["parameter.head.linear.bias"][:] = -SURE * torch.tanh(0.1 * (torch.arange(4) + 0.5))
    return state


def _always(policy: Policy, action: int) -> dict[str, Tensor]:
    """Plays one of the three moves of a duel."""
    state = _zeros(policy)
    state["parameter.head.linear.bias"][action] = SURE
    return state


def _settings(**settings: Any) -> LeagueConfig:
    return LeagueConfig.model_validate({"keep": 4, "recent_share": 1.0, "recent_window": 100} | settings)


def _in_steps(env: BatchedEnv, opponents: LeagueOpponents, steps: int) -> list[tuple[Observations, Tensor, Tensor]]:
    """Plays; returns observations, actions and ended games of every step. The learner's actions are 7."""
    seen = []
    observations = env.reset()
    for _ in range(steps):
        actions = torch.full((env.num_envs, env.spec.seats, *(env.spec.action_space.shape or ())), 7)
        actions = actions.to(torch.int8 if env.spec.name == "arena" else torch.int64)
        opponents.act(observations, actions)
        kept, acted = {name: tensor.clone() for name, tensor in observations.items()}, actions.clone()
        assert (acted[opponents.learner] == 7).all()
        actions[opponents.learner] = 0
        result = env.step(actions)
        seen.append((kept, acted, result.ended.clone()))
        opponents.after_step(result)
        observations = result.observations
    return seen


def test_opponents_see_fresh_observations_every_step(make_arena: type) -> None:
    env = make_arena(40)
    policy = Policy(env.spec, PLAIN)
    policy.load_state(_echo(policy))
    opponents = LeagueOpponents(env, policy, {"self": 1.0}, _settings(), seed=0)
    learners = []
    for observations, actions, _ in _in_steps(env, opponents, 12):
        others = actions[:, :, 0] != 7
        expected = (observations["vector"][..., :4] > 0).to(torch.int8)
        assert torch.equal(actions[others], expected[others])
        assert torch.equal(others.sum(1), torch.ones(40, dtype=torch.int64))
        learners.append(others)
    assert not torch.equal(learners[0], learners[-1])  # seats moved on the way


def test_opponents_remember_their_own_episode_and_nothing_else(make_arena: type) -> None:
    env = make_arena(60, end_chance=0.15)
    policy = Policy(env.spec, COUNTING)
    opponents = LeagueOpponents(env, policy, {"self": 1.0}, _settings(), seed=1)
    opponents.add_snapshot("counter", 5, _counter(policy), slot=0)
    age = torch.zeros(60, dtype=torch.int64)
    ends = 0
    for _, actions, ended in _in_steps(env, opponents, 25):
        age += 1
        pressed = actions.masked_fill(actions == 7, 0).sum((1, 2))
        assert torch.equal(pressed, age.clamp(max=4))
        age[ended] = 0
        ends += int(ended.sum())
    assert ends > 100


def test_teams_play_together_each_seat_with_its_own_memory(make_arena: type) -> None:
    class Teams(make_arena):  # type: ignore[misc]
        """Four seats in two teams."""

        def _draw(self) -> Observations:
            one, other = super()._draw()["vector"], super()._draw()["vector"]
            return {"vector": torch.cat((one, other), dim=1)}

    env = Teams(30)
    env.spec = replace(env.spec, teams=(0, 1, 1, 0))
    policy = Policy(env.spec, PLAIN)
    policy.load_state(_echo(policy))
    opponents = LeagueOpponents(env, policy, {"self": 1.0}, _settings(), seed=0)
    for observations, actions, _ in _in_steps(env, opponents, 8):
        others = actions[:, :, 0] != 7
        assert {tuple(row) for row in others.tolist()} <= {(False, True, True, False), (True, False, False, True)}
        expected = (observations["vector"][..., :4] > 0).to(torch.int8)
        assert torch.equal(actions[others], expected[others])


def _duel_league(games: int, weights: dict[str, float], **settings: Any) -> tuple[BatchedEnv, LeagueOpponents]:
    env = make_env("duel", games, config={"rounds": 2})
    policy = Policy(env.spec, PLAIN)
    return env, LeagueOpponents(env, policy, weights, _settings(**settings), seed=2)


def test_every_game_is_played_by_its_own_snapshot_or_bot() -> None:
    env, opponents = _duel_league(400, {"rock": 1.0, "self": 3.0})
    policy = Policy(env.spec, PLAIN)
    assert opponents.names == ("rock", "", "", "", "")
    assert opponents.kinds == ("rock", "self", "self", "self", "self")
    assert (opponents.opponents == 0).all()  # before the first snapshot the bots play
    for action, name in ((1, "paper"), (2, "scissors")):
        assert opponents.add_snapshot(name, action, _always(policy, action)) is None
    opponents.refresh(Payoffs())
    played = torch.zeros(3)
    for t in range(6):
        present = opponents.opponents.tolist()
        others = _others(_step(env, opponents))
        if t < 2:
            assert (others == 0).all()  # episodes that run go on as they are
            continue
        expected = torch.tensor([{"rock": 0, "paper": 1, "scissors": 2}[opponents.names[i]] for i in present])
        assert torch.equal(others, expected)
        played += torch.bincount(others, minlength=3)
    # Shares 1/4 and 3/8 twice of 2 times 400 draws; three standard deviations are 3 * sqrt(0.23 / 800) = 0.051.
    assert (played / played.sum()).tolist() == pytest.approx([0.25, 0.375, 0.375], abs=0.052)
    assert opponents.playing() == {"paper", "scissors"}


def _step(env: BatchedEnv, opponents: LeagueOpponents) -> Tensor:
    """Plays one step from where the games are; returns the actions, with 7 for the learner's."""
    actions = torch.full((env.num_envs, 2), 7)
    opponents.act(env.restore(env.snapshot()), actions)
    acted = actions.clone()
    actions[opponents.learner] = 0
    opponents.after_step(env.step(actions))
    return acted


def _others(actions: Tensor) -> Tensor:
    """The opponent's action of every game."""
    return actions.masked_fill(actions == 7, -1).max(1).values


def test_without_bots_the_learner_as_it_is_now_plays_first(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        env, opponents = _duel_league(8, {"self": 2.0})
    assert opponents.names == ("start", "", "", "")
    assert "first opponent" in caplog.text
    assert ((_step(env, opponents) == 7).sum(1) == 1).all()


def _advance(env: BatchedEnv, opponents: LeagueOpponents, steps: int) -> list[Tensor]:
    return [_step(env, opponents) for _ in range(steps)]


@pytest.mark.parametrize("settings", [{}, {"recurrent": {"size": 8}}])
def test_resume_is_exact(settings: dict[str, Any]) -> None:
    def make() -> tuple[BatchedEnv, LeagueOpponents, Policy]:
        env = make_env("duel", 64, config={"rounds": 3})
        torch.manual_seed(0)
        policy = Policy(env.spec, PolicyConfig.model_validate(settings))
        league = _settings(keep=3, live=2)
        return env, LeagueOpponents(env, policy, {"random": 1.0, "self": 2.0, "rock": 0.0}, league, seed=4), policy

    env, opponents, policy = make()
    env.reset()
    states = {f"s{i}": {name: tensor + i * 0.1 for name, tensor in policy.state().items()} for i in range(5)}
    for i, (name, state) in enumerate(states.items()):
        opponents.add_snapshot(name, i, state)
        opponents.refresh(Payoffs())
        _advance(env, opponents, 4)
    opponents.set_mix({"self": 3.0, "rock": 1.0})
    stored, document, games = opponents.state(), opponents.document(), env.snapshot()
    expected = _advance(env, opponents, 12)
    opponents.refresh(Payoffs())
    expected += _advance(env, opponents, 12)

    other_env, other, _ = make()
    other_env.restore(games)
    missing = other.load_document(document)
    assert {snapshot.name for snapshot in missing} == {entry["name"] for entry in document["snapshots"]}
    for snapshot in missing:
        other.add_snapshot(snapshot.name, snapshot.env_steps, states[snapshot.name], slot=snapshot.slot)
    other.load_state(stored)
    assert other.load_document(document) == ()
    actions = _advance(other_env, other, 12)
    other.refresh(Payoffs())
    actions += _advance(other_env, other, 12)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(actions, expected, strict=True))
    assert other.names == opponents.names


def test_a_snapshot_that_is_taken_out_is_replaced_at_once() -> None:
    env, opponents = _duel_league(64, {"self": 1.0}, keep=3)
    policy = Policy(env.spec, PLAIN)
    opponents.load_document({"snapshots": []})
    for action, name in ((1, "paper"), (2, "scissors")):
        opponents.add_snapshot(name, action, _always(policy, action))
    opponents.refresh(Payoffs())
    opponents.restart()
    assert opponents.playing() == {"paper", "scissors"}
    kept = opponents.opponents == opponents.names.index("scissors")
    opponents.remove("paper")
    assert opponents.playing() == {"scissors"}
    assert kept.any()
    assert (_others(_step(env, opponents)) == 2).all()
    opponents.remove("scissors")  # nobody is left, so the learner itself plays
    assert opponents.playing() == {"start"}
    with pytest.raises(UnknownNameError, match="did you mean 'start'"):
        opponents.remove("star")


def test_a_broken_snapshot_leaves_no_trace_in_memories() -> None:
    env = make_env("duel", 16, config={"rounds": 50})
    policy = Policy(env.spec, PolicyConfig.model_validate({"strategy": {"layers": 1, "width": 8, "heads": 2}}))
    opponents = LeagueOpponents(env, policy, {"self": 1.0}, _settings(), seed=0)
    broken = {name: torch.full_like(tensor, math.nan) for name, tensor in policy.state().items()}
    opponents.add_snapshot("broken", 1, broken)
    opponents.restart()
    _advance(env, opponents, 3)
    opponents.refresh(Payoffs())
    opponents.restart()
    _advance(env, opponents, 3)
    assert any(tensor.isnan().any() for name, tensor in opponents.state().items() if "memory" in name)
    opponents.remove("broken")
    _advance(env, opponents, 3)
    assert not any(tensor.isnan().any() for name, tensor in opponents.state().items() if "memory" in name)


def test_games_of_a_snapshot_that_was_not_given_back_go_on() -> None:
    _, opponents = _duel_league(64, {"self": 1.0})
    policy = Policy(make_env("duel", 1).spec, PLAIN)
    opponents.add_snapshot("lost", 1, _always(policy, 1))
    opponents.refresh(Payoffs())
    opponents.restart()
    stored, document = opponents.state(), opponents.document()
    assert opponents.playing() == {"start", "lost"}
    _, other = _duel_league(64, {"self": 1.0})
    assert [snapshot.name for snapshot in other.load_document(document)] == ["lost"]
    other.load_state(stored)
    assert other.playing() == {"start"}


def test_newcomers_take_the_place_of_the_oldest_that_is_not_playing() -> None:
    _, opponents = _duel_league(64, {"rock": 1.0, "self": 1.0}, keep=2)
    policy = Policy(make_env("duel", 1).spec, PLAIN)
    state = policy.state()
    assert opponents.add_snapshot("a", 1, state) is None
    assert opponents.add_snapshot("b", 2, state) is None
    opponents.refresh(Payoffs())
    opponents.restart()
    assert opponents.add_snapshot("c", 3, state) == "c"  # both are playing
    assert opponents.names == ("rock", "a", "b")
    opponents.set_mix({"rock": 1.0})
    opponents.restart()
    assert opponents.add_snapshot("c", 3, state, also_playing=["a"]) == "c"
    assert opponents.add_snapshot("c", 3, state) == "a"
    assert opponents.names == ("rock", "c", "b")


def test_the_learner_becomes_a_snapshot_where_they_play() -> None:
    _, opponents = _duel_league(8, {"rock": 1.0, "self": 1.0})
    assert opponents.takes_snapshots
    _, bots_alone = _duel_league(8, {"rock": 1.0})
    assert not bots_alone.takes_snapshots


def test_what_does_not_fit_is_refused() -> None:
    _, opponents = _duel_league(8, {"rock": 1.0})
    with pytest.raises(ConfigError, match="'self' is not among rock"):
        opponents.add_snapshot("a", 1, {})
    with pytest.raises(UnknownNameError, match="snapshot"):
        opponents.remove("a")
    with pytest.raises(UnknownNameError, match="opponent 'self'"):
        opponents.set_mix({"self": 1.0})
    _, league = _duel_league(8, {"self": 1.0})
    with pytest.raises(StateError, match="8 games"):
        league.load_state(opponents.state())
    with pytest.raises(StateError, match="no random state"):
        league.load_state(league.state() | {"selves.random": torch.zeros_like(league.state()["selves.random"])[:]})
    with pytest.raises(StateError, match=r"course\.league\.snapshots\.0\.name is missing"):
        league.load_document({"snapshots": [{}]})


def test_a_part_of_a_larger_batch_meets_the_same_snapshots() -> None:
    leagues = []
    for games, first_game in ((10, 0), (4, 3)):
        env = make_env("duel", games, first_game=first_game)
        policy = Policy(env.spec, PLAIN)
        opponents = LeagueOpponents(env, policy, {"rock": 1.0, "self": 1.0}, _settings(live=1), seed=7)
        for i in range(3):
            opponents.add_snapshot(f"s{i}", i, policy.state())
        opponents.refresh(Payoffs())
        opponents.restart()
        leagues.append(opponents)
    whole, part = leagues
    assert torch.equal(whole.learner[3:7], part.learner)
    assert torch.equal(whole.opponents[3:7], part.opponents)
    assert len(set(whole.opponents.tolist())) == 2
