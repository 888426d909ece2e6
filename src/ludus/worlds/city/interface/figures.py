"""The figures of one city as displayed: values and texts."""

from ludus.worlds.city.game.rules import FIRST_YEAR, MONTH_DAYS, YEAR_MONTHS
from ludus.worlds.city.game.simulation import CitySimulation
from ludus.worlds.city.interface.theme import FIELDS, Format, whole
from ludus.worlds.city.perception.reading import Date, Value

_WHOLE = ("funds", "balance", "population", "tax")
_REAL = {"happiness": "happiness", "traffic": "traffic", "pollution": "pollution", "land_value": "value"}
DEMANDS = ("demand_residential", "demand_commercial", "demand_industrial")


class Figures:
    """Reads one city of a simulation."""

    def __init__(self, simulation: CitySimulation, game: int, form: Format) -> None:
        self._city, self._game, self.form = simulation.city, game, form

    def number(self, name: str) -> int:
        """Return a field of `structs.City` as an integer, rounded half up."""
        return whole(float(self._city[name][self._game]))

    def date(self) -> Date:
        """Return the date of the city; it is founded on the first day of its first year."""
        months, day = divmod(int(self._city["day"][self._game]), MONTH_DAYS)
        years, month = divmod(months, YEAR_MONTHS)
        return Date(FIRST_YEAR + years, month + 1, day + 1)

    def values(self) -> dict[str, Value]:
        """Return the exact value of every field of the HUD, as it is shown: shares in whole percent."""
        values: dict[str, Value] = {"date": self.date()}
        values |= {name: float(self._city[name][self._game]) for name in _WHOLE}
        values |= {name: float(self.number(source)) for name, source in _REAL.items()}
        return {name: values[name] for name in FIELDS}

    def numbers(self) -> tuple[float, ...]:
        """Return the values of all fields in their order, the date in days since year 0, and the three demands."""
        values = self.values()
        days = float(self.date().days)
        return (*(value if isinstance(value, float) else days for value in values.values()), *self.demands())

    def said(self) -> dict[str, Value]:
        """Return the value that the text of every field shows; abbreviated texts are less exact."""
        form, values = self.form, self.values()
        for name in ("funds", "balance", "population"):
            values[name] = float(form.said(int(self._city[name][self._game])))
        values["date"] = form.said_date(self.date())
        return values

    def texts(self) -> dict[str, str]:
        """Return the text of every field of the HUD."""
        city, game, form = self._city, self._game, self.form
        return {
            "date": form.day(self.date()),
            "funds": form.money(int(city["funds"][game])),
            "balance": form.money(int(city["balance"][game]), signed=True),
            "population": form.number(int(city["population"][game])),
            **{name: form.share(int(city[source][game] + 0.5)) for name, source in _REAL.items()},
            "tax": form.share(int(city["tax"][game])),
        }

    def demands(self) -> tuple[int, int, int]:
        """Return the demand for homes, shops and industry, from -100 to 100."""
        first, second, third = (self.number(name) for name in DEMANDS)
        return first, second, third
