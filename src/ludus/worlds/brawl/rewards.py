"""Brawl's reward terms and the sets that the presets use.

Terms of something that lasts are per second, so they do not depend on the frame rate; terms of something that happens
are per event. Signs are what the words say: a term for something bad is positive, and its weight is negative.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import reward_term
from ludus.worlds.brawl.metrics import DANGER_Y
from ludus.worlds.brawl.rules import GROUND_OUTER, State

DAMAGE_UNIT = 140.0  # damage that counts as 1
MANY_KEYS = 3
CLOSE = 2.0  # distance at which a light attack can hit
EDGE = 1.5  # how far within or beyond the outer end of the ground is "at the edge"
RUN_SPEED = 8.0  # sprint speed, units/s
SAFE_TOP = 0.85  # top of the high ground


@reward_term("brawl")
def damage(info: StepInfo) -> Tensor:
    """Symmetric damage: dealt minus taken."""
    return (info.events["damage_dealt"] - info.events["damage_taken"]) / DAMAGE_UNIT


@reward_term("brawl")
def damage_offensive(info: StepInfo) -> Tensor:
    """Offensive damage: what is dealt counts in full, what is taken by a third."""
    return (info.events["damage_dealt"] - info.events["damage_taken"] / 3.0) / DAMAGE_UNIT


@reward_term("brawl")
def damage_defensive(info: StepInfo) -> Tensor:
    """Defensive damage: what is taken counts in full, what is dealt by a third."""
    return (info.events["damage_dealt"] / 3.0 - info.events["damage_taken"]) / DAMAGE_UNIT


@reward_term("brawl")
def damage_armed(info: StepInfo) -> Tensor:
    """Damage dealt with a weapon in hand; unlike time with one, it does not reward waiting."""
    return (info.state_metrics["weapon"] > 0) * info.events["damage_dealt"] / DAMAGE_UNIT


@reward_term("brawl")
def danger(info: StepInfo) -> Tensor:
    """Seconds below the grounds, where a fall ends in the kill box."""
    return (_alive(info) & (info.state_metrics["y"] > DANGER_Y)) * info.seconds


@reward_term("brawl")
def closing(info: StepInfo) -> Tensor:
    """Distance covered toward the opponent, in units of a second's sprint; negative when moving away."""
    return info.state_metrics["closing"].clamp(-RUN_SPEED, RUN_SPEED) / RUN_SPEED * info.seconds


@reward_term("brawl")
def heading(info: StepInfo) -> Tensor:
    """Seconds facing the opponent, minus those facing away."""
    return info.state_metrics["heading"] * info.seconds


@reward_term("brawl")
def edge_pressure(info: StepInfo) -> Tensor:
    """Seconds with the opponent at or beyond an outer edge and the fighter between it and the middle."""
    x, opponent = info.state_metrics["x"], info.state_metrics["opponent_x"]
    at_edge = opponent.abs() > GROUND_OUTER - EDGE
    inside = (x.abs() < opponent.abs()) & (x * opponent > 0)
    return (_alive(info) & at_edge & inside) * info.seconds


@reward_term("brawl")
def attack_near(info: StepInfo) -> Tensor:
    """Attacks begun within reach of the opponent."""
    return info.events["attacks"] * (info.state_metrics["distance"] < CLOSE)


@reward_term("brawl")
def attack_spam(info: StepInfo) -> Tensor:
    """Seconds spent in attacks."""
    return (info.state_metrics["state"] == State.ATTACK) * info.seconds


@reward_term("brawl")
def many_keys(info: StepInfo) -> Tensor:
    """Seconds with more than three keys held."""
    return (info.state_metrics["keys_held"] > MANY_KEYS) * info.seconds


@reward_term("brawl")
def idle(info: StepInfo) -> Tensor:
    """Seconds standing still with no key held."""
    still = info.state_metrics["state"] == State.STANDING
    return (still & (info.state_metrics["keys_held"] == 0)) * info.seconds


@reward_term("brawl")
def height(info: StepInfo) -> Tensor:
    """Units below the top of the high ground, times seconds; 0 above it."""
    return torch.where(_alive(info), (info.state_metrics["y"] - SAFE_TOP).clamp(min=0.0), 0.0) * info.seconds


@reward_term("brawl")
def combo(info: StepInfo) -> Tensor:
    """Hits on an opponent that was stunned."""
    return info.events["stun_hits"]


@reward_term("brawl")
def equip(info: StepInfo) -> Tensor:
    """Value of the weapons that were picked up, as the move table says."""
    return info.events["pickup_value"]


@reward_term("brawl")
def armed(info: StepInfo) -> Tensor:
    """Seconds with a weapon in hand; unlike `equip`, it does not reward dropping and retaking one."""
    return (info.state_metrics["weapon"] > 0) * info.seconds


@reward_term("brawl")
def drop(info: StepInfo) -> Tensor:
    """Weapons dropped."""
    return info.events["drops"]


@reward_term("brawl")
def win(info: StepInfo) -> Tensor:
    """Matches won minus matches lost."""
    return info.events["wins"] - info.events["losses"]


@reward_term("brawl")
def loss(info: StepInfo) -> Tensor:
    """Matches lost, to weight losses differently from wins."""
    return info.events["losses"]


@reward_term("brawl")
def draw(info: StepInfo) -> Tensor:
    """Drawn matches, to keep an agent from waiting for the clock."""
    return info.events["draws"]


@reward_term("brawl")
def knockout(info: StepInfo) -> Tensor:
    """Knockouts scored minus suffered."""
    return info.events["knockouts"] - info.events["knocked_out"]


@reward_term("brawl")
def fall(info: StepInfo) -> Tensor:
    """Stocks lost without having been hit."""
    return info.events["falls"]


def _alive(info: StepInfo) -> Tensor:
    return info.state_metrics["state"] != State.KO


SETS: Mapping[str, Mapping[str, float]] = {
    # Points the way in every frame; its terms are small beside knockouts and the win. With less than half of this
    # `closing` some seeds learn to wait on their own ground, and never meet an opponent that waits too.
    "dense": {
        "damage": 1.4,
        "knockout": 1.0,
        "fall": -0.5,
        "win": 2.0,
        "draw": -1.0,
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
