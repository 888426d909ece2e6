"""Rocket for people: matches of teams, replays of every action space, smooth videos and windows, strips."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
import torch

from ludus.core.errors import ConfigError, UnknownNameError, UnsupportedError
from ludus.envs import make_env
from ludus.envs.display import display_of
from ludus.envs.pygame_tools import pygame
from ludus.envs.replay import Replay, replay_env, resimulate, verify_replay
from ludus.evaluation.display import playable, shown_settings
from ludus.evaluation.live_match import LiveMatch, Outcome
from ludus.evaluation.playback import film_match, film_replay, play_in_window, show_replay
from ludus.evaluation.players import BotPlayer, KeyboardPlayer, Player, seat_by_team
from ludus.evaluation.rendering import RenderOptions, make_painter
from ludus.evaluation.trajectory import match_trajectory
from ludus.evaluation.window import Input, Window
from ludus.worlds.rocket.env import RocketEnv

pytestmark = pytest.mark.train

SHORT = {"episode": "match", "match_s": 1.0, "overtime_s": 0, "threads": 1}  # 15 decisions


def make(**settings: Any) -> RocketEnv:
    env = make_env("rocket", seed=2, config={**SHORT, **settings})
    assert isinstance(env, RocketEnv)
    return env


def teams(env: RocketEnv, blue: str = "chaser", orange: str = "shooter") -> LiveMatch:
    return LiveMatch(env, seat_by_team(env, [Player(blue), Player(orange)]))


@pytest.fixture
def rocket() -> Iterator[RocketEnv]:
    with make() as env:
        yield env


def test_teams_are_one_side_each() -> None:
    with make(mode="1v2") as env:
        match = teams(env)
        assert match.names == ("chaser", "shooter", "shooter")
        assert match.sides == ("chaser", "shooter")
        mixed = LiveMatch(env, [BotPlayer(env, seat, name) for seat, name in enumerate(("idle", "chaser", "support"))])
        assert mixed.sides == ("idle", "chaser and support")
        with pytest.raises(ConfigError, match="rocket-v2"):
            seat_by_team(env, [Player("idle")])


def test_goals_decide_and_are_told(rocket: RocketEnv) -> None:
    match = teams(rocket, "idle", "idle")
    ball = rocket.balls.view(torch.float32)[0]
    ball[:6] = torch.tensor((0.0, 5000.0, 200.0, 0.0, 3000.0, 0.0))  # position and velocity: into orange's goal
    outcome = None
    while outcome is None:
        outcome = match.step()
    assert outcome.winner == 0
    assert outcome.state_metrics["goals"] == (1.0, 0.0)
    assert outcome.describe(("anna", "ben and cleo")) == f"anna beats ben and cleo, goals 1:0, {outcome.steps} steps"


@pytest.mark.parametrize(("actions", "dtype"), [("table", torch.int64), ("continuous", torch.float32)])
def test_matches_of_every_action_space_are_recorded_and_played_again(
    actions: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    with make(mode="2v1", actions=actions, input_delay_ticks=1, setters={"kickoff": 1.0, "random": 2.0}) as env:
        match = teams(env, "random", "chaser")
        for _ in range(12):
            match.step()
        played, recorded = env.view(0), match.replay()
    assert recorded is not None
    recorded.save(tmp_path / "a.replay")
    replay = Replay.load(tmp_path / "a.replay")
    assert replay.actions.shape[:2] == (12, 3)
    assert replay.actions.dtype == dtype
    assert replay.players == ("random", "random", "chaser")
    assert replay.config["setters"] == {"kickoff": 1.0, "random": 2.0}
    verify_replay(replay)
    with replay_env(replay) as again:
        assert isinstance(again, RocketEnv)
        for _ in resimulate(replay, again):
            pass
        assert again.view(0) == played


def test_videos_are_smooth_between_decisions(tmp_path: Path) -> None:
    with make(match_s=0.4) as env:  # 6 decisions
        _check_videos(teams(env), tmp_path)


def _check_videos(match: LiveMatch, tmp_path: Path) -> None:
    done: list[int] = []
    outcome, _ = film_match(match, tmp_path / "match.mp4", render=RenderOptions(view="chase-2"), progress=done.append)
    assert outcome is not None
    # The first picture, two for each decision but the last, and the result for 1.5 s; in all 30 a second.
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "match.mp4"))
    assert frames == 1 + 2 * 5 + 45
    assert seconds == pytest.approx(frames / 30.0, abs=0.05)
    assert done == list(range(1, 2 * 5 + 2))
    replay = match.replay()
    assert replay is not None
    assert film_replay(replay, tmp_path / "fast.mp4", fps=60.0) == 1 + 4 * 5
    assert film_replay(replay, tmp_path / "plain.gif", fps=15.0, render=RenderOptions(view="top")) == 1 + 5
    assert (tmp_path / "plain.gif").read_bytes()[:6] == b"GIF89a"
    match.restart()
    assert film_match(match, tmp_path / "part.mp4", frames=5) == (None, 6)
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "part.mp4"))[0] == 6


def test_a_goal_is_shown_at_leisure(tmp_path: Path) -> None:
    with make(match_s=0.4) as env:
        match = teams(env, "idle", "idle")
        ball = env.balls.view(torch.float32)[0]
        ball[:6] = torch.tensor((0.0, 5000.0, 200.0, 0.0, 3000.0, 0.0))
        outcome, _ = film_match(match, tmp_path / "goal.mp4")
    assert outcome is not None
    assert outcome.state_metrics["goals"] == (1.0, 0.0)
    # Two pictures for each of five decisions but one, which is shown for 1.6 s.
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "goal.mp4"))[0] == 1 + 2 * 4 + 48 + 45


def test_a_picture_between_two_decisions_lies_between_their_pictures(rocket: RocketEnv) -> None:
    painter = make_painter(rocket, ("a", "b"), view="top")
    match = teams(rocket)
    for _ in range(6):
        match.step()
        painter.on_step()
    before = painter.paint(0.0)
    half, after = painter.paint(0.5), painter.paint(1.0)
    assert not np.array_equal(before, half)
    assert not np.array_equal(half, after)


def test_views_by_name_and_worlds_that_have_one(rocket: RocketEnv) -> None:
    painter = make_painter(rocket)
    assert painter.views == ("top", "side", "chase", "ball", "chase-2", "ball-2")
    first = painter.paint()
    painter.turn()
    assert not np.array_equal(painter.paint(), first)
    with pytest.raises(UnknownNameError, match="botom"):
        make_painter(rocket, view="botom")
    with pytest.raises(UnsupportedError, match="debug"):
        make_painter(rocket, debug=True)
    with (
        make_env("brawl") as brawl,
        pytest.raises(UnsupportedError, match=r"brawl-v1.*--view"),
    ):
        make_painter(brawl, view="top")


def test_what_worlds_offer_to_people() -> None:
    assert playable() == ("brawl", "city", "mimic", "rocket")
    assert display_of("rocket-v2") is display_of("rocket")
    assert display_of("no-such-world").painter is None
    trained = {"episode": "goal", "setters": {"aerial": 1.0}, "mode": "2v2"}
    assert shown_settings("rocket", trained).values == {"episode": "match", "setters": {"kickoff": 1.0}, "mode": "2v2"}
    assert shown_settings("mimic", {"speed": 1.0}).values == {"speed": 1.0}


class ScriptedWindow(Window):
    """A window in memory whose keyboard follows a script: the keys pressed at each call; then it is closed."""

    def __init__(self, script: Sequence[set[str]]) -> None:
        super().__init__("test")
        self._script = iter(script)
        self.shown: list[bytes] = []
        self.rates: list[float] = []

    def look(self) -> Input:
        keys = next(self._script, None)
        return Input(frozenset(keys or ()), frozenset(keys or ()), keys is None)

    def show(self, picture: Any) -> None:
        self.shown.append(picture.tobytes())

    def wait(self, rate_hz: float) -> float:
        self.rates.append(rate_hz)
        return 1.0 / rate_hz


@pytest.fixture
def headless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.display.quit()


@pytest.mark.usefixtures("headless")
def test_a_person_drives_at_60_pictures_a_second_and_no_tap_is_lost() -> None:
    with make(actions="continuous") as env:
        person = KeyboardPlayer(env, 0)
        match = LiveMatch(env, (person, BotPlayer(env, 1, "idle")))
        outcomes: list[Outcome] = []
        # Four pictures a decision: a tap of Space in the middle of one reaches the next.
        script = [{"w"}] * 4 + [set(), {"space"}, set(), set()] + [set()] * 8
        with ScriptedWindow(script) as window:
            play_in_window(match, person, window, render=RenderOptions(view="ball"), on_outcome=outcomes.append)
    replay = match.replay()
    assert replay is not None
    assert replay.steps == 4
    assert replay.actions[:, 0, 0].tolist() == [1.0, 1.0, 0.0, 0.0]  # throttle: W went down again in the first decision
    assert replay.actions[:, 0, 5].tolist() == [-1.0, -1.0, 1.0, -1.0]  # jump
    assert set(window.rates) == {60.0}
    assert len(window.shown) == 16
    assert len(set(window.shown)) > 12
    assert outcomes == []


@pytest.mark.usefixtures("headless")
def test_c_turns_the_camera_also_while_paused(rocket: RocketEnv) -> None:
    match = teams(rocket)
    with ScriptedWindow([set()] * 62 + [{"p"}, set(), {"c"}, set()]) as window:
        play_in_window(match, None, window, frames=66)
    assert match.steps == 15  # the match is over long before; the last picture stays
    match.restart()
    with ScriptedWindow([set(), {"p"}, set(), {"c"}, set()]) as window:
        play_in_window(match, None, window)
    assert match.steps == 1
    assert window.shown[1] == window.shown[2]
    assert window.shown[3] != window.shown[2]
    assert window.shown[3] == window.shown[4]


@pytest.mark.usefixtures("headless")
def test_a_replay_is_shown_to_its_end_at_60_pictures_a_second(rocket: RocketEnv) -> None:
    match = teams(rocket)
    while match.step() is None:
        pass
    replay = match.replay()
    assert replay is not None
    with ScriptedWindow([set()] * 80) as window:
        assert show_replay(replay, window, render=RenderOptions(view="top"))
    assert len(window.shown) == 4 * 15  # the last decision, after which the next match has begun, keeps its picture
    assert len(set(window.shown[-4:])) == 1


def test_a_strip_says_what_the_game_said() -> None:
    with make(mode="2v1") as env:
        match = teams(env)
        views = [env.view(0)]
        step = match.step

        def watched() -> Outcome | None:
            outcome = step()
            views.append(env.view(0))
            return outcome

        match.step = watched  # type: ignore[method-assign]
        strip: Any = match_trajectory(match, "a title")
    assert (strip["world"], strip["players"], strip["teams"]) == ("rocket", ["chaser", "chaser", "shooter"], [0, 0, 1])
    assert strip["rate_hz"] == 15.0
    assert "goals 0:0" in strip["result"]
    columns = {name: np.cumsum(steps) for name, steps in strip["columns"].items()}
    shown = views[:15]  # the start, and all decisions but the last
    assert {len(column) for column in columns.values()} == {15}
    np.testing.assert_allclose(columns["ball_z"], [view.ball.position[2] for view in shown], atol=0.51)
    np.testing.assert_allclose(columns["y2"], [view.cars[2].position[1] for view in shown], atol=0.51)
    np.testing.assert_allclose(columns["qz0"], [100 * view.cars[0].rotation[2] for view in shown], atol=0.51)
    assert columns["clock"].tolist() == [round(10 * (view.clock_s or 0.0)) for view in shown]
    assert columns["doing1"].tolist() == [view.cars[1].boosting + 2 * view.cars[1].supersonic for view in shown]
    assert len(strip["pads"]) == 34
