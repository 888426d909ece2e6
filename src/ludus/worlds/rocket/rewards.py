"""Rocket's reward terms and the sets that the presets use.

Terms of something that lasts are per second, so they do not depend on the rate of decisions; terms of something that
happens are per event. Signs are what the words say: a term for something bad is positive, and its weight is negative.
Team spirit is a setting beside the weights, see `ludus.rewards.manager`.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import reward_term
from ludus.worlds.rocket.rules import BALL_MAX_SPEED, BOOST_MAX, CAR_MAX_SPEED

STILL_SPEED = 100.0  # uu/s, slower is idle
LOW_BOOST = 10.0
AWAY_S = 10.0  # without a touch
ROOM = 1500.0  # uu between teammates from which they have all the space that they need


@reward_term("rocket")
def goal(info: StepInfo) -> Tensor:
    """Goals of the own team; the event `goals` counts those of the seat itself."""
    return info.events["team_goals"]


@reward_term("rocket")
def concede(info: StepInfo) -> Tensor:
    """Goals of the other team."""
    return info.events["conceded"]


@reward_term("rocket")
def touch(info: StepInfo) -> Tensor:
    """Touches of the ball."""
    return info.events["touches"]


@reward_term("rocket")
def touch_power(info: StepInfo) -> Tensor:
    """What touches did to the ball: the change of its velocity in units of a car's top speed."""
    return info.events["touch_power"] / CAR_MAX_SPEED


@reward_term("rocket")
def aerial_touch(info: StepInfo) -> Tensor:
    """Touches of a ball above 200 uu."""
    return info.events["aerial_touches"]


@reward_term("rocket")
def shot(info: StepInfo) -> Tensor:
    """Shots at the other goal."""
    return info.events["shots"]


@reward_term("rocket")
def save(info: StepInfo) -> Tensor:
    """Shots of the other team that were stopped."""
    return info.events["saves"]


@reward_term("rocket")
def assist(info: StepInfo) -> Tensor:
    """Passes that a teammate scored from."""
    return info.events["assists"]


@reward_term("rocket")
def demo(info: StepInfo) -> Tensor:
    """Opponents demolished."""
    return info.events["demolitions"]


@reward_term("rocket")
def demoed(info: StepInfo) -> Tensor:
    """Times that the own car was demolished."""
    return info.events["demolished"]


@reward_term("rocket")
def kickoff(info: StepInfo) -> Tensor:
    """Kickoffs whose first touch was the own team's, in time."""
    return info.events["kickoff_touches"]


@reward_term("rocket")
def speed_to_ball(info: StepInfo) -> Tensor:
    """Distance covered toward the ball, in units of a second at top speed; negative when moving away."""
    return _driving(info) * (info.state_metrics["speed_to_ball"] / CAR_MAX_SPEED) * info.seconds


@reward_term("rocket")
def ball_to_goal(info: StepInfo) -> Tensor:
    """Distance of the ball toward the other goal, in units of a second at its top speed; negative away from it."""
    return info.state_metrics["ball_speed_to_goal"] / BALL_MAX_SPEED * info.seconds


@reward_term("rocket")
def facing(info: StepInfo) -> Tensor:
    """Seconds with the nose to the ball, minus those with the tail to it."""
    return _driving(info) * info.state_metrics["facing_ball"] * info.seconds


@reward_term("rocket")
def boost_gain(info: StepInfo) -> Tensor:
    """Boost taken, as the change of the square root of the tank's share: the first drops are worth the most."""
    after = info.state_metrics["boost"]
    before = (after - info.events["boost_gained"]).clamp(min=0.0)
    return (after / BOOST_MAX).sqrt() - (before / BOOST_MAX).sqrt()


@reward_term("rocket")
def boost_waste(info: StepInfo) -> Tensor:
    """Boost used while supersonic, where it hardly makes a car faster, in tanks."""
    return info.events["boost_used"] / BOOST_MAX * info.state_metrics["supersonic"]


@reward_term("rocket")
def boost_low(info: StepInfo) -> Tensor:
    """Seconds with less than 10 boost."""
    return _driving(info) * (info.state_metrics["boost"] < LOW_BOOST) * info.seconds


@reward_term("rocket")
def spacing(info: StepInfo) -> Tensor:
    """Seconds times the room to the nearest teammate: 1 from 1,500 uu on, less the nearer it is, 0 without one."""
    room = (info.state_metrics["teammate_distance"] / ROOM).clamp(max=1.0)
    return _driving(info) * room * info.seconds


@reward_term("rocket")
def rotation(info: StepInfo) -> Tensor:
    """Seconds between the ball and the own goal, times the cosine of how far off that line.

    The one of several teammates who is nearest to the ball is free to be anywhere, and gets nothing.
    """
    state_metrics = info.state_metrics
    goal_side = state_metrics["y"] < state_metrics["ball_y"]
    covers = (state_metrics["team_rank"] > 0) | (state_metrics["teammate_distance"] == 0)
    return (_driving(info) & goal_side & covers) * state_metrics["between"].clamp(min=0.0) * info.seconds


@reward_term("rocket")
def idle(info: StepInfo) -> Tensor:
    """Seconds of hardly moving."""
    return (_driving(info) & (info.state_metrics["speed"] < STILL_SPEED)) * info.seconds


@reward_term("rocket")
def away(info: StepInfo) -> Tensor:
    """Seconds beyond the first ten since the own last touch of the ball."""
    return (info.state_metrics["since_touch_s"] > AWAY_S) * info.seconds


@reward_term("rocket")
def win(info: StepInfo) -> Tensor:
    """Games won minus games lost."""
    return info.events["wins"] - info.events["losses"]


def _driving(info: StepInfo) -> Tensor:
    return torch.eq(info.state_metrics["demolished"], 0.0)


SETS: Mapping[str, Mapping[str, float]] = {
    # Points the way in every decision: to the ball, then with the ball to the goal. A goal is worth ten touches.
    "dense": {
        "goal": 10.0,
        "concede": -10.0,
        "shot": 1.0,
        "save": 2.0,
        "assist": 1.0,
        "touch": 1.0,
        "touch_power": 1.0,
        "aerial_touch": 0.3,
        "demo": 0.5,
        "demoed": -0.5,
        "speed_to_ball": 1.0,
        "ball_to_goal": 5.0,
        "facing": 0.1,
        "boost_gain": 0.5,
        "boost_waste": -0.2,
        "spacing": 0.02,
        "idle": -0.2,
    },
    # Only what a match is about.
    "sparse": {"goal": 10.0, "concede": -10.0, "shot": 2.0, "save": 3.0, "assist": 2.0, "demo": 1.0, "demoed": -1.0},
}
