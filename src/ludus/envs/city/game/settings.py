"""Settings of the embedded city builder."""

from typing import Annotated

from pydantic import Field

from ludus.envs.city.game.rules import MAX_SIDE, MIN_SIDE, START_FUNDS, START_TAX
from ludus.envs.settings import EnvSettings


class CityRules(EnvSettings):
    """What can be set about the game itself, apart from how it looks.

    Attributes:
        columns: Width of the map in cells.
        rows: Height of the map in cells.
        funds: What a new city has, in dollars.
        tax: What a new city takes, in percent.
        hamlet: Whether a city begins with a street and a wind turbine instead of bare land.
        zone_brush: Side of the square that one click with a zone tool zones, in cells.
        days_per_second: Days that pass in a second of the game's clock at normal speed.
        events: Whether fires, storms, booms and recessions happen.
        yearly_report: Whether a new city shows its budget at the end of a year, in a dialog that has to be closed.
        threads: Host threads that advance the cities; None for all cores.
    """

    columns: Annotated[int, Field(ge=MIN_SIDE, le=MAX_SIDE)] = 32
    rows: Annotated[int, Field(ge=MIN_SIDE, le=MAX_SIDE)] = 24
    funds: Annotated[int, Field(ge=0, le=1_000_000)] = START_FUNDS
    tax: Annotated[int, Field(ge=0, le=20)] = START_TAX
    hamlet: bool = True
    zone_brush: Annotated[int, Field(ge=1, le=4)] = 2
    days_per_second: Annotated[int, Field(ge=1, le=360)] = 10
    events: bool = True
    yearly_report: bool = True
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None

    @property
    def cells(self) -> int:
        """Cells of the map."""
        return self.columns * self.rows
