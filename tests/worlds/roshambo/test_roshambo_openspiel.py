"""Bots of OpenSpiel: matches that replay, whatever else a process plays, and results known by hand."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.core.errors import ConfigError, MissingDependencyError, UnknownNameError, WorkerError
from ludus.envs.base import BatchedEnv
from ludus.evaluation.players import find_player
from ludus.worlds.roshambo.env import RoshamboEnv
from ludus.worlds.roshambo.openspiel import OPENSPIEL_BOTS

pytestmark = pytest.mark.train

NEEDS = pytest.mark.skipif(
    find_spec("pyspiel") is None, reason="the package open_spiel is missing: pip install -e '.[openspiel]'"
)
THEIRS = [f"openspiel:{name}" for name in OPENSPIEL_BOTS]
# What they throw does not depend on the seed, only on the opponent's throws; found by playing them.
DETERMINISTIC = {"copybot", "debruijn81", "freqbot2", "multibot", "pibot", "rockbot", "rotatebot", "textbot"}


def make(games: int, seed: int = 2, **settings: int) -> BatchedEnv:
    return make_env("roshambo", games, seed=seed, config=settings)


def play(env: BatchedEnv, steps: int, bots: Tensor | None = None) -> Tensor:
    """Play their bots, `(games,)` indices, in seat 0 against throws that are the same in all games."""
    roster = env.bots(THEIRS)
    chosen = torch.arange(env.num_envs) if bots is None else bots
    assignment = torch.stack([chosen, torch.full_like(chosen, -1)], 1).int()
    actions = torch.zeros((env.num_envs, 2), dtype=torch.int64)
    throws = []
    for step in range(steps):
        roster.act(assignment, actions)
        actions[:, 1] = (step * step // 3 + step // 7) % 3
        throws.append(actions[:, 0].clone())
        env.step(actions)
    return torch.stack(throws)


@NEEDS
def test_the_names_are_those_of_openspiel() -> None:
    import pyspiel

    assert tuple(pyspiel.roshambo_bot_names()) == OPENSPIEL_BOTS


@NEEDS
def test_matches_replay_whatever_else_a_process_plays() -> None:
    with make(43, workers=2) as env:
        together = play(env, 120)
    with make(43, workers=1) as env:
        assert torch.equal(play(env, 120), together)
    for bot in ("greenberg", "iocainebot", "shofar", "randbot"):
        place = OPENSPIEL_BOTS.index(bot)
        with make_env("roshambo", 1, seed=2, first_game=place) as env:  # a process of its own
            assert torch.equal(play(env, 120, torch.tensor([place]))[:, 0], together[:, place]), bot
    with make(43, seed=3, workers=2) as env:
        other = play(env, 120)
    same = {name for place, name in enumerate(OPENSPIEL_BOTS) if torch.equal(other[:, place], together[:, place])}
    assert same >= DETERMINISTIC
    assert len(same) < 30


@NEEDS
def test_a_second_match_is_a_new_one() -> None:
    """A bot that has played a match plays the next as one that has not."""
    bots = torch.tensor([OPENSPIEL_BOTS.index(name) for name in ("shofar", "greenberg", "boom", "markov5", "biopic")])
    with make(5, throws=60) as played:
        play(played, 60, bots)
        second = play(played, 60, bots)
    with make(5, throws=60) as fresh:
        fresh.reset()
        fresh.reset()  # the second episode, whose seeds are the same, with nothing before it
        assert torch.equal(play(fresh, 60, bots), second)


@NEEDS
def test_snapshots_and_resets_replay_the_match() -> None:
    with make(43, workers=2) as env:
        play(env, 50)
        snapshot = env.snapshot()
        first = play(env, 40)
        env.restore(snapshot)
        assert torch.equal(play(env, 40), first)
    with make(43, workers=2) as other:  # processes that have never seen the match
        other.restore(snapshot)
        assert torch.equal(play(other, 40), first)


@NEEDS
def test_results_known_by_hand() -> None:
    """Rock for 90 throws: ties with rockbot, a third of each with rotatebot, lost to copybot, which beats the last."""
    names = ["openspiel:rockbot", "openspiel:rotatebot", "openspiel:copybot", "constant:noise=0"]
    with make(4, throws=90) as env:
        roster = env.bots(names)  # of both kinds
        assert roster.names == tuple(names)
        actions = torch.zeros((4, 2), dtype=torch.int64)
        assignment = torch.tensor([[-1, 0], [-1, 1], [-1, 2], [-1, 3]], dtype=torch.int32)
        returns = torch.zeros(4)
        for _ in range(90):
            roster.act(assignment, actions)
            assert not actions[:, 0].any()
            returns += env.step(actions).events["reward"][:, 0]
    assert returns[:2].tolist() == [0.0, 0.0]
    assert -90 <= returns[2] <= -88
    assert abs(returns[3]) in (0.0, 90.0)


@NEEDS
def test_processes_end_with_their_environment() -> None:
    env = make(64, throws=20, workers=2)
    assert isinstance(env, RoshamboEnv)
    play(env, 2, torch.zeros(64, dtype=torch.int64))
    pids = env.openspiel.pids
    assert len(pids) == 2
    assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    env.close()
    env.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@NEEDS
def test_a_process_that_dies_is_reported() -> None:
    with make(2, throws=20) as env:
        assert isinstance(env, RoshamboEnv)
        play(env, 2)
        os.kill(env.openspiel.pids[0], 9)
        with pytest.raises(WorkerError, match="SIGKILL"):
            play(env, 1)


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ludus.worlds.roshambo.openspiel.find_spec", lambda _: None)
    with make(1) as env, pytest.raises(MissingDependencyError, match=r"\[openspiel\]"):
        find_player("openspiel:greenberg", env)


def test_unknown_names_and_long_matches_are_refused() -> None:
    with make(1) as env, pytest.raises(UnknownNameError, match="did you mean 'greenberg'"):
        find_player("openspiel:greenburg", env)
    with make(1, throws=1001) as env, pytest.raises(ConfigError, match="1000"):
        env.bots(["openspiel:rockbot"])


@NEEDS
def test_bots_need_no_more_of_a_position_than_its_length_and_its_last_throws() -> None:
    """Matches in a process share positions; every bot throws as it does with the true history of its match."""
    import pyspiel

    from ludus.worlds.roshambo.openspiel_worker import THROWS, BotMatch, Histories

    game = pyspiel.load_game(f"repeated_game(stage_game=matrix_rps(),num_repetitions={THROWS})")

    class Truth(Histories):
        def position(self, frame: int, last: int) -> object:
            del frame, last
            return truth

    histories = Histories()
    for name in OPENSPIEL_BOTS:
        for seat in (0, 1):
            truth = game.new_initial_state()
            shared, alone = (BotMatch(known, name, seat, seed=7) for known in (histories, Truth()))
            for step in range(150):
                pair = [(step * step // 3 + step // 7) % 3] * 2
                pair[seat] = shared.act()
                assert alone.act() == pair[seat], (name, seat, step)
                truth.apply_actions(pair)
                for match in (shared, alone):
                    match.advance(4 * pair[0] + pair[1])
