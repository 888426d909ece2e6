"""Tests of Rocket's view: a game's tensors taken apart, and moments between two decisions, computed by hand."""

import math
from dataclasses import replace

import pytest
import torch

from ludus.core.errors import ConfigError
from ludus.envs import make_env
from ludus.envs.warp_tools import struct_views, struct_words
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.kernels.structs import Ball, Car, Match
from ludus.worlds.rocket.layout import PADS
from ludus.worlds.rocket.view import BallView, CarView, MatchView, PadView, Vector, after_goal, between, match_view

CAR = CarView(
    position=(0.0, 0.0, 17.0),
    velocity=(0.0, 0.0, 0.0),
    rotation=(0.0, 0.0, 0.0, 1.0),
    team=0,
    boost=30.0,
    boosting=False,
    supersonic=False,
    on_ground=True,
    steer=0.0,
    handbrake=False,
    demolished_s=0.0,
)


def moment(
    time_s: float, position: Vector = (0.0, 0.0, 93.0), velocity: Vector = (0.0, 0.0, 0.0), car: CarView = CAR
) -> MatchView:
    """A game at a time, with the ball and one car."""
    ball = BallView(position, velocity, (0.0, 0.0, 0.0))
    return MatchView(0, time_s, 300.0 - time_s, False, time_s, (0, 0), ball, (car,), ())


def test_tensors_become_a_view() -> None:
    cars_state = torch.zeros((2, struct_words(Car)), dtype=torch.int32)
    ball_state, match_state = (torch.zeros(struct_words(struct), dtype=torch.int32) for struct in (Ball, Match))
    cars, ball = struct_views(cars_state, Car), struct_views(ball_state, Ball)
    match = struct_views(match_state, Match)
    cars["position"][1] = torch.tensor((100.0, -200.0, 17.0))
    cars["rotation"][1] = torch.tensor((0.0, 0.0, 0.6, 0.8))
    cars["team"][1], cars["boost"][1], cars["boosting_s"][1], cars["steer"][1] = 1, 62.5, 0.1, -0.5
    cars["demolished_s"][0], cars["supersonic"][0] = 1.5, 1
    ball["spin"][:] = torch.tensor((1.0, 2.0, 3.0))
    match["tick"].fill_(240)
    match["clock_s"].fill_(-2.0)
    match["blue_goals"].fill_(3)
    pads = torch.zeros(len(PADS), dtype=torch.int32)
    pads[0], pads[4] = 241, 1440
    view = match_view(cars_state, ball_state, match_state, pads, has_clock=True)
    assert (view.time_s, view.clock_s, view.goals) == (2.0, -2.0, (3, 0))
    first, second = view.cars
    assert (first.team, first.demolished_s, first.supersonic, first.boosting) == (0, 1.5, True, False)
    assert second.position == (100.0, -200.0, 17.0)
    assert second.rotation == pytest.approx((0.0, 0.0, 0.6, 0.8))
    assert (second.team, second.boost, second.boosting, second.steer) == (1, 62.5, True, -0.5)
    assert view.ball.spin == (1.0, 2.0, 3.0)
    assert view.pads[0] == PadView(0.0, -4240.0, False, 1 / 120)
    assert view.pads[4] == PadView(3072.0, -4096.0, True, 10.0)
    assert view.pads[33].away_s == 0.0
    assert match_view(cars_state, ball_state, match_state, pads, has_clock=False).clock_s is None


def test_an_environment_takes_any_of_its_games_apart() -> None:
    with make_env("rocket", 3, config={"mode": "1v2", "threads": 1}) as env:
        assert isinstance(env, RocketEnv)
        env.fields()["boost"][2, 1] = 77.0
        assert [car.team for car in env.view(2).cars] == [0, 1, 1]
        assert env.view(2).cars[1].boost == 77.0
        assert env.view(0).clock_s is None  # an episode of one goal has no clock
        with pytest.raises(ConfigError, match=r"3.*0 to 2"):
            env.view(3)


def test_steady_motion_and_even_acceleration_between_two_views() -> None:
    first, second = moment(1.0, (0.0, 0.0, 93.0), (600.0, 0.0, 0.0)), moment(1.1, (60.0, 0.0, 93.0), (600.0, 0.0, 0.0))
    half = between(first, second, 0.5)
    assert half.ball.position == pytest.approx((30.0, 0.0, 93.0))
    assert (half.time_s, half.clock_s) == pytest.approx((1.05, 298.95))
    # From 0 to 100 uu/s in 0.1 s: 5 uu; two lines meet at half the time, where the true place is 1.25.
    faster = moment(0.1, (5.0, 0.0, 93.0), (100.0, 0.0, 0.0))
    places = [between(moment(0.0), faster, share).ball.position[0] for share in (0.25, 0.5, 0.75)]
    assert places == pytest.approx([0.0, 0.0, 2.5])


def test_a_blow_happens_when_it_happened() -> None:
    # At rest until 0.075 s, then 3,000 uu/s.
    first, second = moment(0.0), moment(0.1, (75.0, 0.0, 93.0), (3000.0, 0.0, 0.0))
    places = [between(first, second, share).ball.position[0] for share in (0.0, 0.5, 0.75, 0.875)]
    assert places == pytest.approx([0.0, 0.0, 0.0, 37.5])


def test_a_bounce_touches_the_floor() -> None:
    # Down at 1,500 uu/s until 0.04 s, then up at 900: from 153 to 93 and up to 147.
    first, second = (
        moment(0.0, (0.0, 0.0, 153.0), (0.0, 0.0, -1500.0)),
        moment(0.1, (0.0, 0.0, 147.0), (0.0, 0.0, 900.0)),
    )
    heights = [between(first, second, share).ball.position[2] for share in (0.2, 0.4, 0.7)]
    assert heights == pytest.approx([123.0, 93.0, 120.0])


def test_cars_turn_on_the_shorter_way_and_take_over_what_they_do() -> None:
    turned = (0.0, 0.0, -math.sin(math.pi / 4), -math.cos(math.pi / 4))  # 90 degrees to the left
    after = replace(CAR, rotation=turned, boost=20.0, boosting=True, steer=-1.0)
    car = between(moment(0.0), moment(0.1, car=after), 0.5).cars[0]
    assert car.rotation == pytest.approx((0.0, 0.0, math.sin(math.pi / 8), math.cos(math.pi / 8)))
    assert (car.boost, car.boosting, car.steer) == (25.0, True, -1.0)


def test_nothing_slides_across_the_field_to_a_kickoff() -> None:
    before = replace(moment(5.0, (0.0, 5200.0, 93.0), (0.0, 1000.0, 0.0), replace(CAR, velocity=(500.0, 0.0, 0.0))))
    kickoff = replace(moment(5.1), since_kickoff_s=0.0, goals=(1, 0))
    half = between(before, kickoff, 0.5)
    assert half.ball.position == pytest.approx((0.0, 5250.0, 93.0))
    assert half.cars[0].position == pytest.approx((25.0, 0.0, 17.0))
    assert half.goals == (0, 0)
    assert between(before, kickoff, 1.0) is kickoff
    assert between(before, replace(kickoff, episode=1), 0.3).goals == (1, 0)


def test_after_a_goal_things_come_to_rest_in_sight_of_everybody() -> None:
    driving = replace(CAR, velocity=(500.0, 0.0, 0.0), boosting=True)
    before = moment(5.0, (0.0, 5200.0, 93.0), (0.0, 3000.0, 0.0), driving)
    kickoff = replace(moment(5.1), since_kickoff_s=0.0, goals=(1, 0))
    early, late = after_goal(before, kickoff, 0.1), after_goal(before, kickoff, 1.0)
    assert early.ball.position[1] == pytest.approx(5200.0 + 3000.0 * (1.0 - math.exp(-0.16)) / 1.6)
    assert late.ball.position == pytest.approx((0.0, 5908.75, 91.25))  # at the back of the net, on the floor
    assert late.cars[0].position == pytest.approx((500.0 * (1.0 - math.exp(-2.2)) / 2.2, 0.0, 17.01))
    assert not late.cars[0].boosting
    assert (late.goals, late.time_s) == ((1, 0), 6.0)
    flying = replace(before, cars=(replace(driving, position=(4000.0, 5000.0, 1000.0), on_ground=False),))
    assert after_goal(flying, kickoff, 0.4).cars[0].position == pytest.approx((4001.2, 5000.0, 948.0), abs=0.3)


def test_demolished_cars_wait_where_they_were() -> None:
    alive = replace(CAR, velocity=(0.0, 2000.0, 0.0))
    gone = replace(CAR, demolished_s=2.9, position=(9.0, 9.0, 9.0))
    assert between(moment(0.0, car=alive), moment(0.1, car=gone), 0.5).cars[0].position == pytest.approx((0, 100, 17))
    waits = between(moment(0.0, car=gone), moment(0.1, car=replace(gone, demolished_s=2.8)), 0.5).cars[0]
    assert waits.position == (9.0, 9.0, 9.0)
    assert waits.demolished_s == pytest.approx(2.85)
    back = replace(CAR, position=(-2304.0, -4608.0, 36.0))
    still = between(moment(0.0, car=replace(gone, demolished_s=0.02)), moment(0.1, car=back), 0.9).cars[0]
    assert still.position == (9.0, 9.0, 9.0)
    assert still.demolished_s > 0.0


def test_between_two_views_of_a_real_match_it_is_nearly_what_the_simulator_does() -> None:
    """Every 8 ticks a view, and every tick in between compared with a game of decisions of one tick."""
    settings = {"actions": "continuous", "threads": 1, "setters": {"random": 1.0}, "episode": "match"}
    actions = torch.zeros((1, 2, 8))
    actions[..., 0], actions[..., 5:] = 1.0, -1.0
    with (
        make_env("rocket", seed=5, config=settings) as coarse,
        make_env("rocket", seed=5, config={**settings, "ticks": 1}) as fine,
    ):
        assert isinstance(coarse, RocketEnv)
        assert isinstance(fine, RocketEnv)
        errors = []
        before = coarse.view(0)
        for _ in range(30):
            coarse.step(actions)
            now = coarse.view(0)
            for tick in range(1, 9):
                fine.step(actions)
                shown, true = between(before, now, tick / 8), fine.view(0)
                errors.append(
                    max(math.dist(a.position, b.position) for a, b in zip(shown.cars, true.cars, strict=True))
                )
                errors.append(math.dist(shown.ball.position, true.ball.position))
            before = now
    assert sorted(errors)[len(errors) * 9 // 10] < 3.0  # uu
    assert max(errors) < 40.0
