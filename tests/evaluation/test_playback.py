"""Tests of showing games: live matches, cards, the window (drawn into memory) and filming."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
import torch

from ludus.core.errors import ConfigError, DeviceError, UnsupportedError
from ludus.envs import make_env
from ludus.envs.pygame_tools import pygame
from ludus.envs.replay import verify_replay
from ludus.evaluation.live_match import LiveMatch, Outcome
from ludus.evaluation.playback import film_match, film_replay, play_in_window, result_title, show_replay
from ludus.evaluation.players import BotPlayer, KeyboardPlayer
from ludus.evaluation.rendering import RenderOptions, make_painter, with_card
from ludus.evaluation.window import Input, Window
from ludus.worlds.brawl.env import BrawlEnv

pytestmark = pytest.mark.train

SHORT = {"step_limit": 30}


@pytest.fixture
def brawl() -> Iterator[BrawlEnv]:
    """A match of one second."""
    with make_env("brawl", seed=2, config=SHORT) as env:
        assert isinstance(env, BrawlEnv)
        yield env


def make_match(env: BrawlEnv, left: str = "constant", right: str = "constant") -> LiveMatch:
    return LiveMatch(env, (BotPlayer(env, 0, left), BotPlayer(env, 1, right)))


def test_a_live_match_plays_to_the_end_and_its_recording_plays_again(brawl: BrawlEnv) -> None:
    match = make_match(brawl, "random", "aggressive")
    outcomes = [match.step() for _ in range(30)]
    assert outcomes[:29] == [None] * 29
    outcome = outcomes[29]
    assert outcome is not None
    assert outcome.steps == 30
    assert outcome.state_metrics["stocks"] == (3.0, 3.0)
    replay = match.replay()
    assert replay is not None
    assert (replay.steps, replay.episode, replay.players) == (30, 0, ("random", "aggressive"))
    verify_replay(replay)
    with pytest.raises(ConfigError, match="call restart"):
        match.step()


def test_recordings_of_later_matches_know_their_episode(brawl: BrawlEnv) -> None:
    match = make_match(brawl, "random", "based")
    for _ in range(30):
        match.step()
    match.restart()  # after its end
    for _ in range(7):
        match.step()
    match.restart()  # in the middle
    kept = match.replay()
    assert kept is not None
    assert (kept.episode, kept.steps) == (1, 7)
    verify_replay(kept)
    match.step()
    current = match.replay()
    assert current is not None
    assert (current.episode, current.steps) == (2, 1)
    verify_replay(current)


def test_outcomes_are_said_in_words() -> None:
    state_metrics = {"stocks": (2.0, 0.0), "damage": (31.4, 0.0), "x": (1.0, 1.0)}
    won = Outcome(0, 1402, state_metrics)
    assert won.describe(("anna", "bert")) == "anna beats bert, stocks 2:0, damage 31:0, 1402 steps"
    assert Outcome(None, 5, {}).describe(("anna", "bert")) == "anna and bert draw, 5 steps"
    assert [result_title(won, names) for names in (("you", "b"), ("a", "b"))] == ["You win", "a wins"]
    assert result_title(Outcome(None, 5, {}), ("a", "b")) == "Draw"


def test_the_winner_is_the_one_with_fewer_damage(brawl: BrawlEnv) -> None:
    match = make_match(brawl)
    brawl.fields()["damage"][0, 1] = 50.0
    outcome = None
    while outcome is None:
        outcome = match.step()
    assert outcome.winner == 0


def test_a_live_match_needs_one_game_and_a_player_a_seat(brawl: BrawlEnv) -> None:
    with pytest.raises(ConfigError, match="2 seats, got 1 players"):
        LiveMatch(brawl, (BotPlayer(brawl, 0, "constant"),))
    with make_env("brawl", 2) as two, pytest.raises(ConfigError, match="a batch of 2"):
        LiveMatch(two, (BotPlayer(two, 0, "constant"), BotPlayer(two, 1, "constant")))


def test_players_write_their_own_seat_only(brawl: BrawlEnv) -> None:
    actions = torch.full((1, 2, 10), 7, dtype=torch.int8)
    BotPlayer(brawl, 1, "constant").act({}, actions, first=True)
    assert actions[0, 0].tolist() == [7] * 10
    assert actions[0, 1].tolist() == [0] * 10
    person = KeyboardPlayer(brawl, 0)
    person.press({"j"})
    person.act({}, actions, first=False)
    assert actions[0, 0].tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]


def test_a_card_covers_the_middle_and_nothing_else(brawl: BrawlEnv) -> None:
    picture = make_painter(brawl, ("a", "b")).paint()
    before = picture.copy()
    card = with_card(picture, "Paused", ("one line",))
    assert np.array_equal(picture, before)
    rows, columns = np.nonzero((card != picture).any(axis=2))
    assert 320 <= columns.min() < columns.max() < 960
    assert rows.max() < 330
    assert not np.array_equal(card, with_card(picture, "Paused", ("two lines",)))


def test_worlds_without_pictures_or_debug_layer_say_so() -> None:
    with make_env("rps") as env:
        with pytest.raises(UnsupportedError, match="no debug layer"):
            make_painter(env, debug=True)
        with pytest.raises(UnsupportedError, match="cannot be drawn"):
            make_painter(env).paint()


class ScriptedWindow(Window):
    """A window in memory whose keyboard follows a script: the keys pressed at each call; then it is closed."""

    def __init__(self, script: Sequence[set[str]]) -> None:
        super().__init__("test")
        self._script = iter(script)
        self.shown: list[bytes] = []

    def look(self) -> Input:
        keys = next(self._script, None)
        return Input(frozenset(keys or ()), frozenset(keys or ()), keys is None)

    def show(self, picture: Any) -> None:
        self.shown.append(picture.tobytes())
        super().show(picture)

    def wait(self, rate_hz: float) -> float:
        assert rate_hz == 30.0
        return 1.0  # slow


@pytest.fixture
def headless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.display.quit()


def play(
    env: BrawlEnv, script: Sequence[set[str]], frames: int | None = None
) -> tuple[LiveMatch, ScriptedWindow, list[Outcome]]:
    person = KeyboardPlayer(env, 0)
    match = LiveMatch(env, (person, BotPlayer(env, 1, "constant")))
    outcomes: list[Outcome] = []
    with ScriptedWindow(script) as window:
        play_in_window(match, person, window, frames=frames, on_outcome=outcomes.append)
    return match, window, outcomes


@pytest.mark.usefixtures("headless")
def test_keys_reach_the_game_and_the_recording(brawl: BrawlEnv) -> None:
    match, window, _ = play(brawl, [set(), {"space"}, {"space", "j"}, set()])
    replay = match.replay()
    assert replay is not None
    assert replay.actions[:, 0].sum(dim=1).tolist() == [0, 1, 2, 0]
    assert replay.actions[:, 1].sum() == 0
    assert len(window.shown) == 4


@pytest.mark.usefixtures("headless")
def test_pause_stops_the_game_escape_ends_it_and_frames_limit_it(brawl: BrawlEnv) -> None:
    match, window, _ = play(brawl, [set(), {"p"}, set(), set(), {"p"}, set(), {"escape"}, set()])
    assert match.steps == 3  # one before, two after
    assert len(window.shown) == 6
    match, window, _ = play(brawl, [set()] * 20, frames=5)
    assert match.steps == len(window.shown) == 5


@pytest.mark.usefixtures("headless")
def test_a_finished_match_waits_for_r_and_keeps_its_last_picture(brawl: BrawlEnv) -> None:
    match, window, outcomes = play(brawl, [set()] * 33 + [{"r"}] + [set()] * 4)
    assert [outcome.steps for outcome in outcomes] == [30]
    assert window.shown[29] == window.shown[32]
    assert match.steps == 5  # the frame of R itself counts
    replay = match.replay()
    assert replay is not None
    assert replay.episode == 1


@pytest.mark.usefixtures("headless")
def test_the_window_gives_keys_taps_and_its_closing() -> None:
    with Window("test", (320, 180)) as window:
        window.look()  # what opening it brought
        down, up = pygame.KEYDOWN, pygame.KEYUP
        pygame.event.post(pygame.event.Event(down, key=pygame.K_d))
        assert window.look() == Input(frozenset({"d"}), frozenset({"d"}), False)
        assert window.look() == Input(frozenset({"d"}), frozenset(), False)
        for kind, key in ((up, pygame.K_d), (down, pygame.K_SPACE), (up, pygame.K_SPACE)):
            pygame.event.post(pygame.event.Event(kind, key=key))
        assert window.look() == Input(frozenset({"space"}), frozenset({"space"}), False)  # a tap is not lost
        assert window.look() == Input(frozenset(), frozenset(), False)
        pygame.event.post(pygame.event.Event(down, key=pygame.K_a))
        pygame.event.post(pygame.event.Event(pygame.WINDOWFOCUSLOST))
        window.look()
        assert window.look().held == frozenset()
        pygame.event.post(pygame.event.Event(pygame.QUIT))
        assert window.look().closed


@pytest.mark.usefixtures("headless")
def test_the_window_shows_pictures_of_any_size_at_the_rate_asked_for() -> None:
    with Window("test", (320, 180)) as window:
        screen = pygame.display.get_surface()
        assert screen is not None
        window.show(np.full((90, 160, 3), (200, 0, 0), np.uint8))
        assert tuple(screen.get_at((1, 178)))[:3] == tuple(screen.get_at((318, 1)))[:3] == (200, 0, 0)
        window.show(np.full((90, 90, 3), (0, 150, 0), np.uint8))  # a square stands in the middle
        assert tuple(screen.get_at((160, 90)))[:3] == (0, 150, 0)
        assert tuple(screen.get_at((60, 90)))[:3] == tuple(screen.get_at((260, 90)))[:3] == (0, 0, 0)
        started = pygame.time.get_ticks()
        for _ in range(7):
            window.wait(30.0)
        assert 180 <= pygame.time.get_ticks() - started < 2000  # six intervals of 33 ms


def test_without_a_screen_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DeviceError, match="write a video"):
        Window("test")
    assert not pygame.display.get_init()


@pytest.mark.usefixtures("headless")
def test_a_replay_is_shown_to_its_end_or_until_it_is_closed(brawl: BrawlEnv) -> None:
    match = make_match(brawl, "random", "based")
    for _ in range(12):
        match.step()
    replay = match.replay()
    assert replay is not None
    with ScriptedWindow([set()] * 13) as window:
        assert show_replay(replay, window)
    assert len(window.shown) == 12
    with ScriptedWindow([set(), {"p"}, set(), {"escape"}]) as window:
        assert not show_replay(replay, window)
    assert len(window.shown) == 3


def test_matches_and_replays_are_filmed(brawl: BrawlEnv, tmp_path: Path) -> None:
    match = make_match(brawl, "random", "based")
    done: list[int] = []
    outcome, _ = film_match(match, tmp_path / "match.mp4", progress=done.append)
    assert outcome is not None
    assert done == list(range(1, 31))
    # The first picture, one a step but for the last, and the result for 1.5 s.
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "match.mp4"))[0] == 1 + 29 + 45
    replay = match.replay()
    assert replay is not None
    assert film_replay(replay, tmp_path / "replay.mp4", render=RenderOptions(debug=True)) == 30
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "replay.mp4"))[0] == 30
    match.restart()
    assert film_match(match, tmp_path / "part.mp4", frames=10) == (None, 11)
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "part.mp4"))[0] == 11
