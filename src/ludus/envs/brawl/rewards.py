"""Brawl's reward terms and the sets that the presets use.

Terms of something that lasts are per second, so they do not depend on the frame rate; terms of something that happens
are per event. Signs are what the words say: a term for something bad is positive, and its weight is negative.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.envs.brawl.behaviour import DANGER_Y
from ludus.envs.brawl.rules import GROUND_OUTER, State
from ludus.rewards.moment import Moment
from ludus.rewards.terms import reward_term

DAMAGE_UNIT = 140.0  # damage that counts as 1
MANY_KEYS = 3
CLOSE = 2.0  # distance at which a light attack can hit
EDGE = 1.5  # how far within or beyond the outer end of the ground is "at the edge"
RUN_SPEED = 8.0  # sprint speed, units/s
SAFE_TOP = 0.85  # top of the high ground


@reward_term("brawl")
def damage(moment: Moment) -> Tensor:
    """Symmetric damage: dealt minus taken."""
    return (moment.events["damage_dealt"] - moment.events["damage_taken"]) / DAMAGE_UNIT


@reward_term("brawl")
def damage_offensive(moment: Moment) -> Tensor:
    """Offensive damage: what is dealt counts in full, what is taken by a third."""
    return (moment.events["damage_dealt"] - moment.events["damage_taken"] / 3.0) / DAMAGE_UNIT


@reward_term("brawl")
def damage_defensive(moment: Moment) -> Tensor:
    """Defensive damage: what is taken counts in full, what is dealt by a third."""
    return (moment.events["damage_dealt"] / 3.0 - moment.events["damage_taken"]) / DAMAGE_UNIT


@reward_term("brawl")
def damage_armed(moment: Moment) -> Tensor:
    """Damage dealt with a weapon in hand; unlike time with one, it pays nobody for waiting."""
    return (moment.measures["weapon"] > 0) * moment.events["damage_dealt"] / DAMAGE_UNIT


@reward_term("brawl")
def danger(moment: Moment) -> Tensor:
    """Seconds below the grounds, where a fall ends in the kill box."""
    return (_alive(moment) & (moment.measures["y"] > DANGER_Y)) * moment.seconds


@reward_term("brawl")
def closing(moment: Moment) -> Tensor:
    """Distance covered toward the opponent, in units of a second's sprint; negative when moving away."""
    return moment.measures["closing"].clamp(-RUN_SPEED, RUN_SPEED) / RUN_SPEED * moment.seconds


@reward_term("brawl")
def heading(moment: Moment) -> Tensor:
    """Seconds facing the opponent, minus those facing away."""
    return moment.measures["heading"] * moment.seconds


@reward_term("brawl")
def edge_pressure(moment: Moment) -> Tensor:
    """Seconds with the opponent at or beyond an outer edge and the fighter between it and the middle."""
    x, opponent = moment.measures["x"], moment.measures["opponent_x"]
    at_edge = opponent.abs() > GROUND_OUTER - EDGE
    inside = (x.abs() < opponent.abs()) & (x * opponent > 0)
    return (_alive(moment) & at_edge & inside) * moment.seconds


@reward_term("brawl")
def attack_near(moment: Moment) -> Tensor:
    """Attacks begun within reach of the opponent."""
    return moment.events["attacks"] * (moment.measures["distance"] < CLOSE)


@reward_term("brawl")
def attack_spam(moment: Moment) -> Tensor:
    """Seconds spent in attacks."""
    return (moment.measures["state"] == State.ATTACK) * moment.seconds


@reward_term("brawl")
def many_keys(moment: Moment) -> Tensor:
    """Seconds with more than three keys held."""
    return (moment.measures["keys_held"] > MANY_KEYS) * moment.seconds


@reward_term("brawl")
def idle(moment: Moment) -> Tensor:
    """Seconds standing still with no key held."""
    still = moment.measures["state"] == State.STANDING
    return (still & (moment.measures["keys_held"] == 0)) * moment.seconds


@reward_term("brawl")
def height(moment: Moment) -> Tensor:
    """Units below the top of the high ground, times seconds; 0 above it."""
    return torch.where(_alive(moment), (moment.measures["y"] - SAFE_TOP).clamp(min=0.0), 0.0) * moment.seconds


@reward_term("brawl")
def combo(moment: Moment) -> Tensor:
    """Hits on an opponent that was stunned."""
    return moment.events["stun_hits"]


@reward_term("brawl")
def equip(moment: Moment) -> Tensor:
    """Value of the weapons that were picked up, as the move table says."""
    return moment.events["pickup_value"]


@reward_term("brawl")
def armed(moment: Moment) -> Tensor:
    """Seconds with a weapon in hand; unlike `equip`, it pays nobody for dropping and taking the same weapon again."""
    return (moment.measures["weapon"] > 0) * moment.seconds


@reward_term("brawl")
def drop(moment: Moment) -> Tensor:
    """Weapons dropped."""
    return moment.events["drops"]


@reward_term("brawl")
def win(moment: Moment) -> Tensor:
    """Matches won minus matches lost."""
    return moment.events["wins"] - moment.events["losses"]


@reward_term("brawl")
def loss(moment: Moment) -> Tensor:
    """Matches lost; for a loss that shall count otherwise than a win."""
    return moment.events["losses"]


@reward_term("brawl")
def draw(moment: Moment) -> Tensor:
    """Matches that nobody has won; for an agent that shall not wait for the clock."""
    return moment.events["draws"]


@reward_term("brawl")
def knockout(moment: Moment) -> Tensor:
    """Knockouts scored minus suffered."""
    return moment.events["knockouts"] - moment.events["knocked_out"]


@reward_term("brawl")
def fall(moment: Moment) -> Tensor:
    """Stocks lost without having been hit."""
    return moment.events["falls"]


def _alive(moment: Moment) -> Tensor:
    return moment.measures["state"] != State.KO


SETS: Mapping[str, Mapping[str, float]] = {
    # Points the way in every frame; its terms are small beside knockouts and the win. With less than half of this
    # `closing` some seeds learn to wait on their own ground, and never meet an opponent that waits too.
    "dense": {
        "damage": 1.4,
        "knockout": 1.0,
        "fall": -0.5,
        "win": 2.0,
        "equip": 0.1,
        "combo": 0.02,
        "danger": -0.5,
        "closing": 0.5,
        "many_keys": -0.01,
        "attack_spam": -0.01,
    },
    # Only what a match is about: damage, stocks and the result, in the proportions 1 : 50 : 100 of a point of damage.
    "sparse": {"damage": 1.4, "knockout": 0.5, "win": 1.0},
}
