"""The match: goals, credit, kickoffs, clock, overtime, cut-offs, touches, shots, saves, demolitions and pads."""

from typing import TYPE_CHECKING

import pytest
import torch

from ludus.worlds.rocket.layout import BIG_PADS, PADS, pad_grid, pad_kind
from ludus.worlds.rocket.rules import BALL_REST_Z, BOOST_START

if TYPE_CHECKING:
    from tests.worlds.rocket.conftest import MakePitch, Pitch

AWAY = {0: (-3000.0, -3400.0), 1: (3000.0, 3400.0), 2: (2700.0, 1700.0), 3: (-2700.0, 1700.0)}


def clear(pitch: "Pitch", ball: tuple[float, float, float] = (0.0, 0.0, BALL_REST_Z)) -> None:
    """Parks all cars far away from everything and from pads."""
    for seat in range(pitch.env.spec.seats):
        pitch.park(seat, *AWAY[seat])
    pitch.put_ball(*ball)


def test_a_goal_ends_an_episode(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.put_ball(0.0, 5100.0, 200.0, (0.0, 2000.0, 0.0))  # 115.5 uu to go at 2000 uu/s: 7 ticks of 16.7
    result = pitch.step()
    assert result.terminated.tolist() == [True]
    assert result.truncated.tolist() == [False]
    assert result.events["team_goals"].tolist() == [[1.0, 0.0]]
    assert result.events["conceded"].tolist() == [[0.0, 1.0]]
    assert result.events["goals"].tolist() == [[0.0, 0.0]]  # nobody touched it
    assert result.events["wins"].tolist() == [[1.0, 0.0]]
    assert result.events["losses"].tolist() == [[0.0, 1.0]]
    assert result.state_metrics["goal_difference"].tolist() == [[1.0, -1.0]]
    assert result.state_metrics["ball_y"][0, 0] == pytest.approx(5100.0 + 7 * 2000 / 120, abs=1.0)
    assert result.state_metrics["ball_y"][0, 1] == -result.state_metrics["ball_y"][0, 0]
    assert pitch.match["episode"].tolist() == [1]
    assert pitch.match["blue_goals"].tolist() == [0]


def test_orange_scores_at_the_other_end(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.put_ball(0.0, -5100.0, 200.0, (0.0, -2000.0, 0.0))
    result = pitch.step()
    assert result.events["team_goals"].tolist() == [[0.0, 1.0]]
    assert result.events["wins"].tolist() == [[0.0, 1.0]]


def test_the_line_counts_for_the_whole_ball(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.put_ball(0.0, 5215.0, 300.0, (0.0, 3.0, 0.0))  # after 8 ticks at 5215.2, the line is at 5215.5
    assert not pitch.step().terminated.any()
    pitch.put_ball(0.0, 5215.0, 300.0, (0.0, 9.0, 0.0))
    assert pitch.step().terminated.all()


def test_who_scores_gets_the_goal_and_the_shot(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.park(0, 0.0, 3800.0, speed=2000.0)
    pitch.put_ball(0.0, 4050.0, BALL_REST_Z)
    events = pitch.events({"throttle": 1.0, "boost": 1.0}, steps=12)
    assert events["goals"] == [1.0, 0.0]
    assert events["shots"] == [1.0, 0.0]
    assert events["touches"][0] >= 1.0
    assert events["touch_power"][0] > 2000.0
    assert events["touches"][1] == 0.0
    assert events["assists"] == [0.0, 0.0]


def test_an_own_goal_is_nobodys(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.park(1, 0.0, 3800.0, speed=2000.0)  # orange drives it into its own goal
    pitch.put_ball(0.0, 4050.0, BALL_REST_Z)
    events = pitch.events({}, {"throttle": 1.0}, steps=12)
    assert events["team_goals"] == [1.0, 0.0]
    assert events["goals"] == [0.0, 0.0]
    assert events["shots"] == [0.0, 0.0]
    assert events["losses"] == [0.0, 1.0]


@pytest.mark.parametrize(("passed_s", "assists"), [(1.5, 1.0), (2.5, 0.0)])
def test_a_pass_is_an_assist_for_two_seconds(make_pitch: "MakePitch", passed_s: float, assists: float) -> None:
    pitch = make_pitch(mode="2v1")
    clear(pitch)
    pitch.match["last_blue"][:] = 0
    pitch.match["last_blue_s"][:] = 0.5
    pitch.match["before_blue"][:] = 1
    pitch.match["before_blue_s"][:] = 0.5 + passed_s
    pitch.put_ball(0.0, 5100.0, 200.0, (0.0, 2000.0, 0.0))
    result = pitch.step()
    assert result.events["goals"].tolist() == [[1.0, 0.0, 0.0]]
    assert result.events["assists"].tolist() == [[0.0, assists, 0.0]]
    assert result.events["team_goals"].tolist() == [[1.0, 1.0, 0.0]]


@pytest.mark.parametrize(("since_s", "goals"), [(3.9, 1.0), (4.1, 0.0)])
def test_credit_for_a_goal_lasts_four_seconds(pitch: "Pitch", since_s: float, goals: float) -> None:
    clear(pitch)
    pitch.match["last_blue"][:] = 0
    pitch.match["last_blue_s"][:] = since_s
    pitch.put_ball(0.0, 5100.0, 200.0, (0.0, 2000.0, 0.0))
    assert pitch.step().events["goals"].tolist() == [[goals, 0.0]]


def test_a_save_ends_a_shot(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.match["last_touch"][:] = 0  # blue has just touched it
    pitch.match["last_touch_s"][:] = 0.1
    pitch.put_ball(0.0, 2500.0, 120.0, (0.0, 2500.0, 100.0))
    pitch.park(1, 0.0, 4600.0, look="-y", speed=500.0)
    events = pitch.events({}, {"throttle": 1.0}, steps=30)
    assert events["shots"] == [1.0, 0.0]
    assert events["saves"] == [0.0, 1.0]
    assert events["team_goals"] == [0.0, 0.0]


def test_a_slow_ball_and_one_beside_the_goal_are_no_shots(pitch: "Pitch") -> None:
    for x, vy in ((0.0, 1500.0), (2500.0, 2500.0)):
        pitch.env.reset()
        clear(pitch)
        pitch.match["last_touch"][:] = 0
        pitch.match["last_touch_s"][:] = 0.1
        pitch.put_ball(x, 2500.0, 120.0, (0.0, vy, 0.0))
        assert pitch.events(steps=4)["shots"] == [0.0, 0.0]


def test_touches_go_on_while_the_ball_is_pushed(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.park(0, 0.0, -2000.0, speed=1000.0)
    pitch.put_ball(0.0, -1700.0, BALL_REST_Z)
    result = pitch.step({"throttle": 1.0})
    while result.events["touches"][0, 0] == 0.0:
        result = pitch.step({"throttle": 1.0})
    assert result.events["touches"].tolist() == [[1.0, 0.0]]
    assert result.events["aerial_touches"].tolist() == [[0.0, 0.0]]
    assert result.state_metrics["since_touch_s"][0, 0] < 0.07
    assert result.state_metrics["possession"].tolist() == [[1.0, 0.0]]
    assert pitch.match["last_touch"].tolist() == [0]


def test_a_kickoff_is_won_by_the_first_touch(pitch: "Pitch") -> None:
    assert pitch.match["kickoff"].tolist() == [1]
    pitch.park(0, 0.0, -400.0, speed=1400.0)
    pitch.park(1, 3000.0, 4000.0)
    events = pitch.events({"throttle": 1.0}, steps=4)
    assert events["kickoffs"] == [1.0, 1.0]
    assert events["kickoff_touches"] == [1.0, 0.0]
    assert pitch.match["kickoff"].tolist() == [0]


def test_a_kickoff_that_nobody_touches_is_counted_once(pitch: "Pitch") -> None:
    events = pitch.events(steps=90)  # 6 s
    assert events["kickoffs"] == [1.0, 1.0]
    assert events["kickoff_touches"] == [0.0, 0.0]
    assert pitch.match["kickoff"].tolist() == [1]
    assert pitch.ball["position"].tolist() == [[0.0, 0.0, pytest.approx(BALL_REST_Z)]]  # it hangs there


def test_cut_off_after_the_episodes_time(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(episode_s=2.0)
    assert pitch.env.spec.step_limit == 30
    assert not pitch.step(steps=29).ended.any()
    result = pitch.step()
    assert result.truncated.tolist() == [True]
    assert result.terminated.tolist() == [False]
    assert result.events["draws"].tolist() == [[1.0, 1.0]]
    assert result.state_metrics["clock_s"][0, 0] == pytest.approx(0.0, abs=1e-4)


def test_cut_off_when_nobody_touches_the_ball(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(no_touch_s=1.0)
    assert not pitch.step(steps=14).ended.any()
    assert pitch.step().truncated.tolist() == [True]
    pitch.step(steps=10)
    pitch.match["untouched_s"][:] = 0.0  # a touch
    assert not pitch.step(steps=14).ended.any()
    assert pitch.step().truncated.tolist() == [True]


def test_a_match_goes_on_after_a_goal(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(episode="match", match_s=20.0)
    pitch.env.pads[:, 3] = 1000
    pitch.put_ball(0.0, 5100.0, 200.0, (0.0, 2000.0, 0.0))
    result = pitch.step()
    assert not result.ended.any()
    assert result.events["team_goals"].tolist() == [[1.0, 0.0]]
    assert result.events["wins"].tolist() == [[0.0, 0.0]]
    assert result.state_metrics["ball_y"][0, 0] > 5215.5  # where things stood when it went in
    assert pitch.match["blue_goals"].tolist() == [1]
    assert pitch.match["kickoff"].tolist() == [1]
    assert pitch.ball["position"][0].tolist() == [0.0, 0.0, pytest.approx(BALL_REST_Z)]
    assert pitch.cars["boost"].tolist() == [[pytest.approx(BOOST_START)] * 2]
    assert pitch.cars["velocity"].abs().max() == 0.0
    assert pitch.env.pads.abs().max() == 0
    assert result.state_metrics["clock_s"][0, 0] == pytest.approx(20.0 - 8 / 120)  # the goal uses up its decision
    assert pitch.step().state_metrics["goal_difference"].tolist() == [[1.0, -1.0]]


def test_the_clock_ends_a_match(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(episode="match", match_s=2.0, overtime_s=1.0)
    assert pitch.env.spec.step_limit == 45
    assert pitch.env.spec.truncates is False
    pitch.match["orange_goals"][:] = 2
    assert not pitch.step(steps=29).ended.any()
    result = pitch.step()
    assert result.terminated.tolist() == [True]
    assert result.events["wins"].tolist() == [[0.0, 1.0]]
    assert result.events["losses"].tolist() == [[1.0, 0.0]]


def test_a_draw_goes_to_overtime_and_stays_a_draw_at_its_end(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(episode="match", match_s=2.0, overtime_s=1.0)
    pitch.step(steps=20)
    clear(pitch)
    pitch.match["kickoff"][:] = 0
    result = pitch.step(steps=10)
    assert not result.ended.any()
    assert pitch.match["kickoff"].tolist() == [1]  # overtime begins with a kickoff
    assert pitch.ball["position"][0, 1] == 0.0
    result = pitch.step(steps=14)
    assert not result.ended.any()
    assert result.state_metrics["clock_s"][0, 0] == pytest.approx(-14 * 8 / 120)
    result = pitch.step()
    assert result.terminated.tolist() == [True]
    assert result.events["draws"].tolist() == [[1.0, 1.0]]


def test_the_first_goal_ends_overtime(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(episode="match", match_s=1.0, overtime_s=None)
    assert pitch.env.spec.step_limit is None
    assert not pitch.step(steps=100).ended.any()
    pitch.put_ball(0.0, -5100.0, 200.0, (0.0, -2000.0, 0.0))
    result = pitch.step()
    assert result.terminated.tolist() == [True]
    assert result.events["wins"].tolist() == [[0.0, 1.0]]


def test_without_overtime_a_draw_is_a_draw(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(episode="match", match_s=1.0, overtime_s=0)
    assert pitch.env.spec.step_limit == 15
    assert not pitch.step(steps=14).ended.any()
    assert pitch.step().events["draws"].tolist() == [[1.0, 1.0]]


def test_a_demolished_car_is_back_after_three_seconds(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.park(0, 0.0, -2000.0, speed=2300.0)
    pitch.park(1, 0.0, -1700.0, look="y")
    pitch.cars["supersonic"][:, 0] = 1
    result = pitch.step({"throttle": 1.0, "boost": 1.0}, steps=2)
    demolition = result.events["demolitions"]
    assert demolition.tolist() == [[1.0, 0.0]]
    assert result.events["demolished"].tolist() == [[0.0, 1.0]]
    assert result.state_metrics["demolished"].tolist() == [[0.0, 1.0]]
    pitch.park(0, -3000.0, -4000.0)
    back = 0
    while pitch.cars["demolished_s"][0, 1] > 0:
        pitch.step()
        back += 1
    assert back == 45  # decisions of 8 ticks: 360 ticks
    x, y, z = pitch.cars["position"][0, 1].tolist()
    assert abs(x) in (pytest.approx(2304.0, abs=1.0), pytest.approx(2688.0, abs=1.0))
    assert y == pytest.approx(4608.0, abs=1.0)
    assert 15.0 < z <= 36.1
    assert pitch.cars["boost"][0, 1] == pytest.approx(BOOST_START)
    assert pitch.step().state_metrics["facing_ball"][0, 1] > 0.3  # it looks into the field


def test_respawning_cars_take_free_places(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(64, mode="3v1")
    for seat, x in ((0, -2688.0), (1, -2304.0)):
        pitch.park(seat, x, -4608.0)
    pitch.park(3, 3000.0, 4000.0)
    pitch.cars["demolished_s"][:, 2] = 0.02
    pitch.step()
    places = set(pitch.cars["position"][:, 2, 0].round().tolist())
    assert places == {2304.0, 2688.0}  # the two at the left are taken


def test_bumps_are_counted_for_opponents(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.park(0, 0.0, -2000.0, speed=1400.0)
    pitch.park(1, 0.0, -1800.0, look="y")
    events = pitch.events({"throttle": 1.0}, steps=3)
    assert events["bumps"] == [1.0, 0.0]
    assert events["demolitions"] == [0.0, 0.0]


@pytest.mark.parametrize("pad", [0, 3, 18, 27])
def test_pads_give_boost_and_come_back(pitch: "Pitch", pad: int) -> None:
    clear(pitch)
    kind, (x, y) = pad_kind(pad), PADS[pad]
    pitch.cars["boost"][:, 0] = 20.0
    pitch.park(0, x, y)
    result = pitch.step()
    gained = min(kind.boost, 80.0)
    assert result.state_metrics["boost"][0, 0] == pytest.approx(20.0 + gained)
    assert result.events["boost_gained"].tolist() == [[pytest.approx(gained), 0.0]]
    assert result.events["big_pads"].tolist() == [[float(pad in BIG_PADS), 0.0]]
    assert result.events["small_pads"].tolist() == [[float(pad not in BIG_PADS), 0.0]]
    pitch.cars["boost"][:, 0] = 20.0
    decisions = round(kind.back_s * 15)
    assert pitch.events(steps=decisions - 1)["boost_gained"] == [0.0, 0.0]
    assert pitch.events(steps=2)["boost_gained"] == [pytest.approx(gained), 0.0]  # it stood there all the time


def test_a_full_car_leaves_a_pad_alone(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.cars["boost"][:, 0] = 100.0
    pitch.park(0, *PADS[0])
    assert pitch.events(steps=2)["small_pads"] == [0.0, 0.0]
    pitch.cars["boost"][:, 0] = 95.0
    assert pitch.events(steps=1)["boost_gained"] == [pytest.approx(5.0), 0.0]


def test_a_pad_is_out_of_reach_from_above_and_beside(pitch: "Pitch") -> None:
    x, y = PADS[0]
    for dx, z, taken in ((143.0, 17.0, 1.0), (145.0, 17.0, 0.0), (0.0, 400.0, 0.0)):
        pitch.env.reset()
        clear(pitch)
        pitch.park(0, x + dx, y, z=z)
        assert pitch.events(steps=1)["small_pads"] == [taken, 0.0], (dx, z)


def test_every_pad_is_found_through_the_grid(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(len(PADS))
    for shift in (-100.0, 0.0, 100.0):
        pitch.env.reset()
        clear(pitch)
        pitch.cars["position"][:, 0, :2] = torch.tensor(PADS) + torch.tensor([shift, shift * 0.5])
        result = pitch.step()
        taken = result.events["big_pads"] + result.events["small_pads"]
        assert taken[:, 0].tolist() == [1.0] * len(PADS)
    assert int((pad_grid() >= 0).sum()) == 100


def test_boost_used_and_unlimited(make_pitch: "MakePitch") -> None:
    pitch = make_pitch()
    clear(pitch)
    events = pitch.events({"throttle": 1.0, "boost": 1.0}, steps=3)
    assert events["boost_used"] == [pytest.approx(3 * 8 / 120 * 33.3333, rel=0.01), 0.0]
    pitch = make_pitch(boost="unlimited")
    assert pitch.cars["boost"].tolist() == [[100.0, 100.0]]
    pitch.step({"throttle": 1.0, "boost": 1.0}, steps=60)
    assert pitch.cars["boost"].tolist() == [[100.0, 100.0]]
    assert pitch.cars["velocity"][0, 0].norm() > 2200.0


def test_jumps_and_dodges_are_counted(pitch: "Pitch") -> None:
    clear(pitch)
    pitch.step(steps=3)
    assert pitch.events({"jump": 1.0}, steps=1)["jumps"] == [1.0, 0.0]
    assert pitch.events({}, steps=1)["jumps"] == [0.0, 0.0]
    events = pitch.events({"jump": 1.0, "pitch": -1.0}, steps=1)
    assert events["dodges"] == [1.0, 0.0]
    assert events["jumps"] == [0.0, 0.0]


def test_measures_from_both_sides(pitch: "Pitch") -> None:
    pitch.park(0, 100.0, -1000.0)
    pitch.park(1, -100.0, 1000.0, look="-y")
    pitch.put_ball(0.0, 0.0, 300.0)
    row = pitch.step().state_metrics
    for name in ("x", "y", "z", "ball_distance", "facing_ball", "between", "speed_to_ball", "boost", "team_rank"):
        assert row[name][0, 0] == pytest.approx(float(row[name][0, 1]), abs=1e-3), name
    assert row["facing_ball"][0, 0] > 0.9
    assert row["x"][0, 0] == pytest.approx(100.0, abs=1.0)
    assert row["teammate_distance"].tolist() == [[0.0, 0.0]]


def test_ranks_and_distances_in_a_team(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(mode="3v1")
    for seat, y in enumerate((-1000.0, -500.0, -3000.0)):
        pitch.park(seat, 0.0, y)
    pitch.park(3, 0.0, 4000.0, look="-y")
    row = pitch.step().state_metrics
    assert row["team_rank"].tolist() == [[1.0, 0.0, 2.0, 0.0]]
    assert row["teammate_distance"][0].tolist() == pytest.approx([500.0, 500.0, 2000.0, 0.0], abs=2.0)
