"""Tests of the one game that is shown: its settings, its pace, and what is said of a player alone."""

import pytest
from torch import Tensor

from ludus.core.errors import ConfigError, ConfigFileError, UnknownNameError, UnsupportedError
from ludus.envs.base import Observations
from ludus.envs.display import display_of
from ludus.envs.replay import verify_replay
from ludus.evaluation.display import display_settings, make_shown_env
from ludus.evaluation.frame_rates import FramePacer, steps_per_frame
from ludus.evaluation.live_match import LiveMatch, Outcome
from ludus.evaluation.playback import result_title
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.mimic.env import MimicEnv


class Still:
    """Does nothing."""

    name = "still"

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        actions.zero_()


def test_settings_are_laid_over_each_other_level_by_level() -> None:
    trained = {"walker": "walker-13", "speed": 0.8, "pushes": {"every_s": 2.0, "impulse_ns": 9.0}}
    assert display_settings("mimic", trained) == trained
    assert display_settings("mimic", trained, words=["speed=1.3", "pushes.impulse_ns=4"]) == {
        "walker": "walker-13",
        "speed": 1.3,
        "pushes": {"every_s": 2.0, "impulse_ns": 4},
    }
    shown = display_settings("mimic", trained, "speed-1.2", ["episode_s=3"])
    assert (shown["speed"], shown["walker"], shown["episode_s"]) == (1.2, "walker-13", 3)
    assert shown["pushes"] == {"every_s": 2.0, "impulse_ns": 0.0}
    assert trained["speed"] == 0.8  # stays as it was


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown scenario 'run'"):
        display_settings("mimic", None, "run")
    with pytest.raises(ConfigError, match="rps has no scenarios"):
        display_settings("rps", None, "walk")
    with pytest.raises(ConfigFileError, match="2 faults"):
        display_settings("mimic", None, None, ["speed", "=3"])


def test_a_stage_keeps_its_settings_when_sides_are_exchanged() -> None:
    exchanged = set()
    for seed in range(4):
        with make_shown_env("brawl", seed=seed, settings={"step_limit": 30, "stocks": 5}, left_first=True) as env:
            assert isinstance(env, BrawlEnv)
            assert env.spec.step_limit == 30
            assert env.config.stocks == 5
            assert env.view(0).players[0].x < 0.0
            exchanged.add(env.config.swap_sides)
    assert exchanged == {False, True}


def test_steps_between_pictures_keep_real_time() -> None:
    assert [steps_per_frame(rate) for rate in (10.0, 30.0, 31.0, 50.0, 60.0, 100.0, 120.0, 200.0)] == [
        1, 1, 2, 2, 2, 4, 4, 7,
    ]  # fmt: skip


def test_where_drawing_is_slow_more_steps_are_taken_but_none_that_a_person_would_miss() -> None:
    pace = FramePacer(100.0)
    assert (pace.steps, pace.frame_rate_hz) == (4, 25.0)
    steps = []
    for passed_s in (0.04, 0.07, 0.5, 0.01):
        pace.note(passed_s)
        steps.append(pace.steps)
    assert steps == [4, 7, 16, 4]
    fight = FramePacer(30.0)
    fight.note(0.5)
    assert (fight.steps, fight.frame_rate_hz) == (1, 30.0)


def test_who_plays_alone_is_described_by_the_worlds_numbers() -> None:
    with make_shown_env("mimic", settings={"episode_s": 0.1, "speed": 1.0, "threads": 1}) as env:
        assert isinstance(env, MimicEnv)
        show = LiveMatch(env, [Still()])
        for episode in range(2):
            start = env.positions(0)[0]
            for _ in range(9):
                assert show.step() is None
            near = env.positions(0)[0] - start
            outcome = show.step()
            assert outcome is not None
            assert outcome.truncated
            assert outcome.winner is None
            assert outcome.seconds == pytest.approx(0.1)
            assert outcome.numbers["duration_s"] == pytest.approx(0.1)
            assert outcome.numbers["distance_m"] == pytest.approx(near * 10 / 9, abs=0.02)
            assert outcome.describe(show.names).startswith("still: 10 steps, distance_m 0.")
            assert outcome.describe(show.names).count(",") == 7
            replay = show.replay()
            assert replay is not None
            assert replay.episode == episode
            with pytest.raises(ConfigError, match="call restart"):
                show.step()
            show.restart()


def test_worlds_without_numbers_are_described_by_their_steps() -> None:
    with make_shown_env("point") as env:
        show = LiveMatch(env, [Still()])
        outcome = None
        while outcome is None:
            outcome = show.step()
        assert outcome.numbers == {}
        assert outcome.describe(show.names) == f"still: {outcome.steps} steps"


def test_the_card_of_who_played_alone() -> None:
    assert result_title(Outcome(None, 48, {}, seconds=0.48), ("anna",)) == "Over after 0.5 s"
    assert result_title(Outcome(None, 99, {}, truncated=True, seconds=15.0), ("anna",)) == "Time is up after 15.0 s"


def test_gymnasium_worlds_are_drawn_and_recorded() -> None:
    with make_shown_env("gym:CartPole-v1", settings={"env_kwargs": {}}) as env:
        show = LiveMatch(env, [Still()])
        show.step()
        assert env.render(0).ndim == 3
        show.restart()
        assert show.steps == 0
        replay = show.replay()
    assert replay is not None
    assert (replay.world_id, replay.steps) == ("gym:CartPole-v1", 1)
    verify_replay(replay)


def test_only_some_worlds_have_pictures_without_a_player() -> None:
    assert display_of("mimic-v1").pictures is not None
    for world in ("brawl", "rps", "gym:CartPole-v1", "no-such-world"):
        assert display_of(world).pictures is None
    pictures = display_of("mimic").pictures
    assert pictures is not None
    with make_shown_env("rps") as env, pytest.raises(UnsupportedError, match="rps-v1"):
        next(pictures(env, 25.0))
