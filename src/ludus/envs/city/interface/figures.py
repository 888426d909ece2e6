"""The figures of one city as the interface shows them: values, and the texts that say them."""

from ludus.envs.city.game.rules import FIRST_YEAR, MONTH_DAYS, YEAR_MONTHS
from ludus.envs.city.game.simulation import CitySimulation
from ludus.envs.city.interface.formats import Format, whole
from ludus.envs.city.interface.theme import FIELDS
from ludus.envs.city.perception.reading import Date, Value

_WHOLE = ("funds", "balance", "population", "tax")
_REAL = {"happiness": "happiness", "traffic": "traffic", "pollution": "pollution", "land_value": "value"}
_MONEY = ("funds", "balance")
DEMANDS = ("demand_residential", "demand_commercial", "demand_industrial")


class Figures:
    """Reads one city of a simulation."""

    def __init__(self, simulation: CitySimulation, game: int, form: Format) -> None:
        self._city, self._game, self._form = simulation.city, game, form

    def number(self, name: str) -> int:
        """Returns a field of `structs.City` as a whole number, rounded half up."""
        return whole(float(self._city[name][self._game]))

    def date(self) -> Date:
        """Returns the date of the city; it is founded on the first day of its first year."""
        return date_of(int(self._city["day"][self._game]))

    def values(self) -> dict[str, Value]:
        """Returns the exact value of every field of the HUD, as it is shown: shares in whole percent."""
        values: dict[str, Value] = {"date": self.date()}
        values |= {name: float(self._city[name][self._game]) for name in _WHOLE}
        values |= {name: float(self.number(source)) for name, source in _REAL.items()}
        return {name: values[name] for name in FIELDS}

    def numbers(self) -> tuple[float, ...]:
        """Returns the values of all fields in their order, the date in days since year 0, and the three demands."""
        values = self.values()
        days = float(self.date().days)
        return (*(value if isinstance(value, float) else days for value in values.values()), *self.demands())

    def said(self) -> dict[str, Value]:
        """Returns the value that the text of every field says; abbreviated texts say less than the exact value."""
        form, values = self._form, self.values()
        for name in ("funds", "balance", "population"):
            values[name] = float(form.said(int(self._city[name][self._game])))
        values["date"] = form.said_date(self.date())
        return values

    def texts(self) -> dict[str, str]:
        """Returns the text of every field of the HUD."""
        city, game, form = self._city, self._game, self._form
        return {
            "date": form.day(date_of(int(city["day"][game]))),
            "funds": form.money(int(city["funds"][game])),
            "balance": form.money(int(city["balance"][game]), signed=True),
            "population": form.number(int(city["population"][game])),
            "happiness": form.share(int(city["happiness"][game] + 0.5)),
            "traffic": form.share(int(city["traffic"][game] + 0.5)),
            "pollution": form.share(int(city["pollution"][game] + 0.5)),
            "land_value": form.share(int(city["value"][game] + 0.5)),
            "tax": form.share(int(city["tax"][game])),
        }

    def demands(self) -> tuple[int, int, int]:
        """Returns the demand for homes, shops and industry, from -100 to 100."""
        first, second, third = (self.number(name) for name in DEMANDS)
        return first, second, third


def date_of(day: int) -> Date:
    """Returns the date of a day since a city was founded."""
    months, day_of_month = divmod(day, MONTH_DAYS)
    years, month = divmod(months, YEAR_MONTHS)
    return Date(FIRST_YEAR + years, month + 1, day_of_month + 1)
