"""Trajectory logs: columns of whole numbers say what the world said, for played matches and for replays."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ludus.core.errors import ReplayError
from ludus.envs.registry import make_env
from ludus.evaluation.live_match import LiveMatch
from ludus.evaluation.players import AgentPlayer, BotPlayer, one_seat
from ludus.evaluation.trajectory import match_trajectory, replay_trajectory, replay_view_of
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.mimic.body import make_body
from ludus.worlds.mimic.env import MimicEnv


def _decoded(strip: dict[str, Any]) -> dict[str, NDArray[np.int64]]:
    return {name: np.cumsum(steps) for name, steps in strip["columns"].items()}


@pytest.fixture
def brawl() -> Iterator[BrawlEnv]:
    with make_env("brawl", seed=3, config={"step_limit": 200}) as env:
        assert isinstance(env, BrawlEnv)
        yield env


def test_a_match_of_brawl_frame_by_frame(brawl: BrawlEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    look: Callable[[int], Any] = brawl.view

    def watched(game: int) -> Any:
        seen.append(look(game))
        return seen[-1]

    monkeypatch.setattr(brawl, "view", watched)
    match = LiveMatch(brawl, [BotPlayer(brawl, 0, "aggressive"), BotPlayer(brawl, 1, "heavy-spammer")])
    strip = match_trajectory(match, "a title")
    assert strip is not None
    assert (strip["world"], strip["title"], strip["players"]) == ("brawl", "a title", ["aggressive", "heavy-spammer"])
    assert (strip["rate_hz"], strip["weapons"]) == (30.0, ["fists", "spear", "hammer"])
    assert "200 steps" in str(strip["result"])
    columns = _decoded(strip)
    assert {len(column) for column in columns.values()} == {200}  # the start, and all frames but the last
    frames = seen[-201:-1]  # the last look is not a frame
    for seat in (0, 1):
        players = [view.players[seat] for view in frames]
        np.testing.assert_allclose(columns[f"x{seat}"], [100 * player.x for player in players], atol=0.51)
        assert columns[f"state{seat}"].tolist() == [int(player.state) for player in players]
        assert columns[f"stocks{seat}"].tolist() == [player.stocks for player in players]
    hits = {int(frame): content for frame, content in strip["hits"].items()}  # type: ignore[union-attr]
    assert set(hits) == {frame for frame, view in enumerate(frames) if any(player.hits for player in view.players)}
    assert hits


def test_a_replay_file_gives_the_same_strip_as_the_match(brawl: BrawlEnv, tmp_path: Path) -> None:
    match = LiveMatch(brawl, [BotPlayer(brawl, 0, "based"), BotPlayer(brawl, 1, "random")])
    played = match_trajectory(match, "match.replay")
    recorded = match.replay()
    assert recorded is not None
    recorded.save(tmp_path / "match.replay")
    again = replay_trajectory(tmp_path / "match.replay")
    assert played is not None
    assert again is not None
    assert again["columns"] == played["columns"]
    assert again["players"] == played["players"]
    (tmp_path / "match.replay").write_bytes(b"LUDUSRPLxxxx")
    with pytest.raises(ReplayError, match="cannot be used"):
        replay_trajectory(tmp_path / "match.replay")


def test_a_walker_is_a_stick_figure_beside_its_reference() -> None:
    with make_env("mimic", seed=0, config={"episode_s": 1.0}) as env:
        assert isinstance(env, MimicEnv)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            policy = Policy(env.spec, PolicyConfig())
        player = AgentPlayer(env, one_seat(env, 0), policy, seed=1)
        strip = match_trajectory(LiveMatch(env, [player]), "walk")
        assert strip is not None
        assert (strip["world"], strip["rate_hz"]) == ("mimic", 25.0)  # of 100 a second, every fourth is drawn
        height_cm = strip["height"]
        assert height_cm == round(100 * env.walker.height_m)
        columns = _decoded(strip)
        assert 5 <= len(columns["hip_x"]) <= 26  # until it falls, or the second is over
        assert (columns["ghost_hip_x"] == columns["hip_x"]).all()
        assert abs(int(columns["hip_z"][0]) - 100 * env.walker.hip_height_m) < 10
        first = {name: int(column[0]) for name, column in columns.items()}
        assert first["head_z"] > first["neck_z"] > first["hip_z"] > first["right_knee_z"] > first["right_ankle_z"]
        assert first["right_ball_x"] > first["right_heel_x"]
        thigh = np.hypot(first["right_knee_x"] - first["right_thigh_x"], first["right_knee_z"] - first["right_thigh_z"])
        assert abs(thigh - 100 * make_body().thigh.length_m) < 3


def test_other_worlds_are_not_drawn() -> None:
    with make_env("duel") as env:
        assert replay_view_of(env.spec.id) is None
        bots = [BotPlayer(env, seat, env.spec.bots[0]) for seat in (0, 1)]
        assert match_trajectory(LiveMatch(env, bots), "match") is None
