"""The rules as numbers: throws, events, observation fields and random streams."""

from enum import IntEnum

SEATS = 2
RATE_HZ = 1.0  # throws per second of game time
THROWS = ("rock", "paper", "scissors")  # each beats the one before it

EVENTS = ("reward",)
STATE_METRICS = ("lead",)

OWN, OPPONENT, PAIR, EARLIER = 2, 5, 8, 17  # first columns of the one-hot throws


def observation_fields(last_throws: int, clock_period: int = 0) -> tuple[str, ...]:
    """Name the columns of an observation that shows so many throws, and the clock modulo a period."""
    return (
        "clock.progress",
        "clock.lead",
        *_both("last"),
        *(f"last.{own}_{opponent}" for own in THROWS for opponent in THROWS),
        *(name for ago in range(2, last_throws + 1) for name in _both(f"last_{ago}")),
        *(f"clock.phase_{phase}" for phase in range(clock_period)),
    )


def _both(when: str) -> list[str]:
    return [f"{when}.{player}_{throw}" for player in ("own", "opponent") for throw in THROWS]


class Stream(IntEnum):
    """Random streams; the seat is added to each."""

    MATCH = 0x5200  # what a bot is like in this match
    THROW = 0x5210  # chances of one throw
    OPENSPIEL = 0x5220  # seeds of the bots of OpenSpiel
