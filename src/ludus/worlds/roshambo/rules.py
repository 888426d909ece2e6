"""The rules as numbers: throws, events, observation fields and random streams."""

from enum import IntEnum

SEATS = 2
RATE_HZ = 1.0  # throws per second of game time
THROWS = ("rock", "paper", "scissors")  # each beats the one before it

EVENTS = ("reward",)
STATE_METRICS = ("lead",)

FIELDS = (
    "clock.progress",
    "clock.lead",
    *(f"last.own_{throw}" for throw in THROWS),
    *(f"last.opponent_{throw}" for throw in THROWS),
    *(f"last.{own}_{opponent}" for own in THROWS for opponent in THROWS),
)
SIZE = len(FIELDS)
OWN, OPPONENT, PAIR = 2, 5, 8  # first columns of the one-hot throws
# An opponent is known by how it answers the own throws, so the block that strategy encoders read holds both.
BLOCKS = {"self": (0, OWN), "opponent": (OWN, SIZE)}


class Stream(IntEnum):
    """Random streams; the seat is added to each."""

    MATCH = 0x5200  # what a bot is like in this match
    THROW = 0x5210  # chances of one throw
    OPENSPIEL = 0x5220  # seeds of the bots of OpenSpiel
