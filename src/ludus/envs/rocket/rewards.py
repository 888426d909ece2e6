"""Rocket's reward terms and the sets that the presets use.

Terms of something that lasts are per second, so they do not depend on the rate of decisions; terms of something that
happens are per event. Signs are what the words say: a term for something bad is positive, and its weight is negative.
Team spirit and zero-sum are settings beside the weights, see `ludus.rewards.sharing`.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.envs.rocket.rules import BALL_MAX_SPEED, BOOST_MAX, CAR_MAX_SPEED
from ludus.rewards.moment import Moment
from ludus.rewards.terms import reward_term

STILL_SPEED = 100.0  # uu/s, slower is idle
LOW_BOOST = 10.0
AWAY_S = 10.0  # without a touch
ROOM = 1500.0  # uu between teammates from which they have all the space that they need


@reward_term("rocket")
def goal(moment: Moment) -> Tensor:
    """Goals of the own team; the event `goals` counts those of the seat itself."""
    return moment.events["team_goals"]


@reward_term("rocket")
def concede(moment: Moment) -> Tensor:
    """Goals of the other team."""
    return moment.events["conceded"]


@reward_term("rocket")
def touch(moment: Moment) -> Tensor:
    """Touches of the ball."""
    return moment.events["touches"]


@reward_term("rocket")
def touch_power(moment: Moment) -> Tensor:
    """What touches did to the ball: the change of its velocity in units of a car's top speed."""
    return moment.events["touch_power"] / CAR_MAX_SPEED


@reward_term("rocket")
def aerial_touch(moment: Moment) -> Tensor:
    """Touches of a ball above 200 uu."""
    return moment.events["aerial_touches"]


@reward_term("rocket")
def shot(moment: Moment) -> Tensor:
    """Shots at the other goal."""
    return moment.events["shots"]


@reward_term("rocket")
def save(moment: Moment) -> Tensor:
    """Shots of the other team that were stopped."""
    return moment.events["saves"]


@reward_term("rocket")
def assist(moment: Moment) -> Tensor:
    """Passes that a teammate scored from."""
    return moment.events["assists"]


@reward_term("rocket")
def demo(moment: Moment) -> Tensor:
    """Opponents demolished."""
    return moment.events["demolitions"]


@reward_term("rocket")
def demoed(moment: Moment) -> Tensor:
    """Times that the own car was demolished."""
    return moment.events["demolished"]


@reward_term("rocket")
def kickoff(moment: Moment) -> Tensor:
    """Kickoffs whose first touch was the own team's, in time."""
    return moment.events["kickoff_touches"]


@reward_term("rocket")
def speed_to_ball(moment: Moment) -> Tensor:
    """Way covered toward the ball, in units of a second at top speed; negative when moving away."""
    return _driving(moment) * (moment.measures["speed_to_ball"] / CAR_MAX_SPEED) * moment.seconds


@reward_term("rocket")
def ball_to_goal(moment: Moment) -> Tensor:
    """Way of the ball toward the other goal, in units of a second at its top speed; negative when it moves away."""
    return moment.measures["ball_speed_to_goal"] / BALL_MAX_SPEED * moment.seconds


@reward_term("rocket")
def facing(moment: Moment) -> Tensor:
    """Seconds with the nose to the ball, minus those with the tail to it."""
    return _driving(moment) * moment.measures["facing_ball"] * moment.seconds


@reward_term("rocket")
def boost_gain(moment: Moment) -> Tensor:
    """Boost taken, as the change of the square root of the tank's share: the first drops are worth the most."""
    after = moment.measures["boost"]
    before = (after - moment.events["boost_gained"]).clamp(min=0.0)
    return (after / BOOST_MAX).sqrt() - (before / BOOST_MAX).sqrt()


@reward_term("rocket")
def boost_waste(moment: Moment) -> Tensor:
    """Boost used while supersonic, where it hardly makes a car faster, in tanks."""
    return moment.events["boost_used"] / BOOST_MAX * moment.measures["supersonic"]


@reward_term("rocket")
def boost_low(moment: Moment) -> Tensor:
    """Seconds with less than 10 boost."""
    return _driving(moment) * (moment.measures["boost"] < LOW_BOOST) * moment.seconds


@reward_term("rocket")
def spacing(moment: Moment) -> Tensor:
    """Seconds times the room to the nearest teammate: 1 from 1,500 uu on, less the nearer it is, 0 without one."""
    room = (moment.measures["teammate_distance"] / ROOM).clamp(max=1.0)
    return _driving(moment) * room * moment.seconds


@reward_term("rocket")
def rotation(moment: Moment) -> Tensor:
    """Seconds between the ball and the own goal, times the cosine of how far off that line.

    The one of several teammates who is nearest to the ball is free to be anywhere, and gets nothing.
    """
    measures = moment.measures
    goal_side = measures["y"] < measures["ball_y"]
    covers = (measures["team_rank"] > 0) | (measures["teammate_distance"] == 0)
    return (_driving(moment) & goal_side & covers) * measures["between"].clamp(min=0.0) * moment.seconds


@reward_term("rocket")
def idle(moment: Moment) -> Tensor:
    """Seconds of hardly moving."""
    return (_driving(moment) & (moment.measures["speed"] < STILL_SPEED)) * moment.seconds


@reward_term("rocket")
def away(moment: Moment) -> Tensor:
    """Seconds beyond the first ten since the own last touch of the ball."""
    return (moment.measures["since_touch_s"] > AWAY_S) * moment.seconds


@reward_term("rocket")
def win(moment: Moment) -> Tensor:
    """Games won minus games lost."""
    return moment.events["wins"] - moment.events["losses"]


def _driving(moment: Moment) -> Tensor:
    return torch.eq(moment.measures["demolished"], 0.0)


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
