"""City's reward terms and the sets that the presets use.

Every term is a bounded difference of what was read before and after a decision, or counts what happened in it, so that
a wrong reading can never be worth more than a good decision. Where a figure cannot be read nothing is given. Signs are
what the words say: a term for something bad is positive, and its weight is negative.
"""

from collections.abc import Mapping

from torch import Tensor

from ludus.rewards.moment import Moment
from ludus.rewards.terms import reward_term

MOST_PEOPLE = 100.0  # that come or leave in a decision and count
MOST_POINTS = 10.0  # of happiness or traffic
MOST_MONEY = 1_000.0  # $
MOST_FOUND = 5.0  # elements of the interface
MOST_DOUBLINGS = 4.0
MOST_RUINED = 1_000.0  # people
VILLAGE = 100.0  # people that a city's size is told by


@reward_term("city")
def growth(moment: Moment) -> Tensor:
    """People who came."""
    return moment.events["population_gain"].clamp(max=MOST_PEOPLE)


@reward_term("city")
def decline(moment: Moment) -> Tensor:
    """People who left."""
    return moment.events["population_loss"].clamp(max=MOST_PEOPLE)


@reward_term("city")
def peak(moment: Moment) -> Tensor:
    """People by which the city is larger than it ever was: what was lost is not rewarded when it comes back."""
    return moment.events["peak_gain"].clamp(max=MOST_PEOPLE)


@reward_term("city")
def doublings(moment: Moment) -> Tensor:
    """How often a hundred people and those of the city became twice as many: of a large city and a small one alike.

    For games that count their people seldom, so that many come at once.
    """
    people = moment.measures["population"].clamp(min=0.0)
    before = (people - moment.events["population_gain"] + moment.events["population_loss"]).clamp(min=0.0)
    return ((people + VILLAGE) / (before + VILLAGE)).log2().clamp(-MOST_DOUBLINGS, MOST_DOUBLINGS)


@reward_term("city")
def happiness(moment: Moment) -> Tensor:
    """Change of happiness in points, which counts the more the larger the city is: half of it in an empty one."""
    size = 0.5 + moment.measures["population"].clamp(min=0.0, max=10_000.0) / 10_000.0
    return moment.events["happiness_change"].clamp(-MOST_POINTS, MOST_POINTS) * size


@reward_term("city")
def budget(moment: Moment) -> Tensor:
    """Change of the funds, in thousands of dollars."""
    return moment.events["funds_change"].clamp(-MOST_MONEY, MOST_MONEY) / MOST_MONEY


@reward_term("city")
def debt(moment: Moment) -> Tensor:
    """Thousands of dollars that the city owes: what leads to bankruptcy is felt before it comes."""
    owed = (-moment.measures["funds"]).clamp(0.0, 2.0 * MOST_MONEY) / MOST_MONEY
    return owed * moment.measures["funds_readable"]


@reward_term("city")
def bankruptcy(moment: Moment) -> Tensor:
    """1 when the city goes bankrupt."""
    return moment.events["bankrupt"]


@reward_term("city")
def ruin(moment: Moment) -> Tensor:
    """People of a city that goes bankrupt: what was won on credit is lost again."""
    return moment.events["bankrupt"] * moment.measures["population"].clamp(0.0, MOST_RUINED)


@reward_term("city")
def traffic(moment: Moment) -> Tensor:
    """Points by which traffic became heavier."""
    return moment.events["traffic_change"].clamp(-MOST_POINTS, MOST_POINTS)


@reward_term("city")
def milestone(moment: Moment) -> Tensor:
    """Milestones of population that are reached for the first time."""
    return moment.events["milestone"]


@reward_term("city")
def placement(moment: Moment) -> Tensor:
    """1 for something that was placed, by the fall of the funds."""
    return moment.events["placed"]


@reward_term("city")
def refusal(moment: Moment) -> Tensor:
    """1 for something that should have been placed and was not."""
    return moment.events["refused"]


@reward_term("city")
def idle_city(moment: Moment) -> Tensor:
    """1 in every decision after the first fifty in which nobody lives in the city."""
    return moment.events["idle_city"]


@reward_term("city")
def discovery(moment: Moment) -> Tensor:
    """Elements of the interface that were seen for the first time."""
    return moment.events["discovered"].clamp(max=MOST_FOUND)


@reward_term("city")
def change(moment: Moment) -> Tensor:
    """1 for an exploring action that changed the picture."""
    return moment.events["changed"]


@reward_term("city")
def error(moment: Moment) -> Tensor:
    """Things that went wrong with the game: a lost window, a frozen screen, an unexpected dialog."""
    return moment.events["trouble"]


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
    # What is new on the screen, whatever becomes of the city.
    "discovery": {"discovery": 0.05, "change": 0.02, "growth": 0.01, "error": -0.1},
}
