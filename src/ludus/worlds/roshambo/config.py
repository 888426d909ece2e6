"""Settings of a Roshambo environment."""

from typing import Annotated

from pydantic import Field

from ludus.envs.settings import EnvSettings


class RoshamboConfig(EnvSettings):
    """What can be set about the game itself.

    Attributes:
        throws: Throws in a match; the bots of OpenSpiel play at most 1,000.
        last_throws: How many of the last throws an observation shows, as frame stacking does.
        clock_period: Show the number of the throw modulo this, one-hot; 0 shows only the share of throws played.
        threads: Host threads that advance the games on a CPU; None for all cores.
        workers: Processes that play the bots of OpenSpiel; None for one per core, fewer if they have few seats.
    """

    throws: Annotated[int, Field(ge=2, le=10_000)] = 1_000
    last_throws: Annotated[int, Field(ge=1, le=64)] = 1
    clock_period: Annotated[int, Field(ge=0, le=64)] = 0
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    workers: Annotated[int, Field(ge=1, le=256)] | None = None
