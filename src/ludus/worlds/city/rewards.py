"""City's reward terms and the sets that the presets use.

Every term is a bounded difference of readings before and after a decision, or a count of what happened in it, so that a
wrong reading can never be worth more than a good decision. Unreadable figures give 0. A term for something bad is
positive, and its weight is negative.
"""

from collections.abc import Mapping

from torch import Tensor

from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import event_term, reward_term

MOST_PEOPLE = 100.0  # that come or leave in a decision and count
MOST_POINTS = 10.0  # of happiness or traffic
MOST_MONEY = 1_000.0  # $
MOST_FOUND = 5.0  # elements of the interface
MOST_DOUBLINGS = 4.0
VILLAGE = 100.0  # people; offset of the logarithm


event_term("city", "growth", "population_gain", "People who came.", MOST_PEOPLE)
event_term("city", "decline", "population_loss", "People who left.", MOST_PEOPLE)
event_term("city", "bankruptcy", "bankrupt", "1 when the city goes bankrupt.")
event_term("city", "traffic", "traffic_change", "Points by which traffic became heavier.", MOST_POINTS)
event_term("city", "milestone", "milestone", "Milestones of population that are reached for the first time.")
event_term("city", "placement", "placed", "1 for something that was placed, by the fall of the funds.")
event_term("city", "refusal", "refused", "1 for something that should have been placed and was not.")
event_term("city", "idle_city", "idle_city", "1 in every decision after the first fifty while the city is empty.")
event_term(
    "city", "discovery", "discovered", "Elements of the interface that were seen for the first time.", MOST_FOUND
)
event_term("city", "change", "changed", "1 for an exploring action that changed the picture.")
event_term(
    "city",
    "error",
    "trouble",
    "Things that went wrong with the game: a lost window, a frozen screen, an unexpected dialog.",
)


@reward_term("city")
def doublings(info: StepInfo) -> Tensor:
    """How often a hundred people and those of the city became twice as many: of a large city and a small one alike.

    For games that count their people seldom, so that many come at once.
    """
    people = info.state_metrics["population"].clamp(min=0.0)
    before = (people - info.events["population_gain"] + info.events["population_loss"]).clamp(min=0.0)
    return ((people + VILLAGE) / (before + VILLAGE)).log2().clamp(-MOST_DOUBLINGS, MOST_DOUBLINGS)


@reward_term("city")
def thousands(info: StepInfo) -> Tensor:
    """Thousands of people who came, less those who left: in a large city it counts more than `doublings`."""
    change = info.events["population_gain"] - info.events["population_loss"]
    return (change / 1_000.0).clamp(-MOST_DOUBLINGS, MOST_DOUBLINGS)


@reward_term("city")
def happiness(info: StepInfo) -> Tensor:
    """Change of happiness in points, which counts the more the larger the city is: half of it in an empty one."""
    size = 0.5 + info.state_metrics["population"].clamp(min=0.0, max=10_000.0) / 10_000.0
    return info.events["happiness_change"].clamp(-MOST_POINTS, MOST_POINTS) * size


@reward_term("city")
def budget(info: StepInfo) -> Tensor:
    """Change of the funds, in thousands of dollars."""
    return info.events["funds_change"].clamp(-MOST_MONEY, MOST_MONEY) / MOST_MONEY


@reward_term("city")
def debt(info: StepInfo) -> Tensor:
    """Thousands of dollars that the city owes: what leads to bankruptcy is felt before it comes."""
    owed = (-info.state_metrics["funds"]).clamp(0.0, 2.0 * MOST_MONEY) / MOST_MONEY
    return owed * info.state_metrics["funds_readable"]


SETS: Mapping[str, Mapping[str, float]] = {
    # A larger city, and one that lasts.
    "growth": {
        "growth": 0.1,
        "decline": -0.1,
        "milestone": 1.0,
        "debt": -0.3,
        "bankruptcy": -10.0,
        "placement": 0.01,
        "refusal": -0.02,
        "error": -0.1,
    },
    # The weights of the system that City replaces, on readings instead of constants.
    "facts": {
        "growth": 0.1,
        "decline": -0.3,
        "happiness": 0.05,
        "budget": 0.1,
        "bankruptcy": -10.0,
        "traffic": -0.01,
        "milestone": 5.0,
        "idle_city": -1.0,
        "discovery": 0.05,
        "change": 0.02,
        "error": -0.1,
    },
    # A game that counts its people once a year, where money that is spent badly is missed for long.
    "yearly": {"doublings": 1.0, "budget": 0.1, "placement": 0.02, "refusal": -0.02, "error": -0.1},
    # What is new on the screen, independent of the city.
    "discovery": {"discovery": 0.05, "change": 0.02, "growth": 0.01, "error": -0.1},
}
