"""What the windows with information say."""

from ludus.envs.city.game.placement import Works
from ludus.envs.city.game.rules import (
    BUILDINGS,
    HISTORY_MONTHS,
    MILESTONES,
    MONTH_DAYS,
    Department,
    Flag,
    Kind,
    Terrain,
)
from ludus.envs.city.game.simulation import CitySimulation
from ludus.envs.city.interface.commands import Window
from ludus.envs.city.interface.figures import Figures
from ludus.envs.city.interface.formats import Format, whole
from ludus.envs.city.interface.panes import Pane, Row

TITLES = {
    Window.BUDGET: "Budget",
    Window.CITY: "City",
    Window.DEMAND: "Demand",
    Window.MILESTONES: "Milestones",
    Window.GRAPH: "Population",
    Window.LEGEND: "Legend",
    Window.QUERY: "Query",
}
_NEEDS = ((Flag.ROAD, "road"), (Flag.POWER, "power"), (Flag.WATER, "water"))
_LEGEND = (Kind.RESIDENTIAL, Kind.COMMERCIAL, Kind.INDUSTRIAL, Kind.ROAD, Kind.PARK)


class Windows:
    """Writes the windows of one city."""

    def __init__(self, simulation: CitySimulation, works: Works, game: int, form: Format) -> None:
        self._simulation, self._works, self._game, self._form = simulation, works, game, form
        self._figures = Figures(simulation, game, form)

    def pane(self, window: Window, cell: int) -> Pane:
        """Returns what a window says; `cell` is what a query asks about."""
        writers = {
            Window.BUDGET: self._budget,
            Window.CITY: self._city,
            Window.DEMAND: self._demand,
            Window.MILESTONES: self._milestones,
            Window.LEGEND: self._legend,
        }
        graph: tuple[int, ...] = ()
        if window == Window.GRAPH:
            graph = self._history()
            rows: tuple[Row, ...] = (Row("Most", self._form.number(max(graph))), Row("Now", self._people()))
        else:
            rows = self._query(cell) if window == Window.QUERY else writers[window]()
        return Pane("window", TITLES[window], rows, graph=graph)

    def _people(self) -> str:
        return self._form.number(self._figures.number("population"))

    def _history(self) -> tuple[int, ...]:
        """Population of the last ten years, the oldest month first."""
        months = int(self._simulation.city["day"][self._game]) // MONTH_DAYS
        kept = self._simulation.history[self._game]
        first = max(months - HISTORY_MONTHS, 0)
        return (0, *(int(kept[month % HISTORY_MONTHS]) for month in range(first, months)))

    def _budget(self) -> tuple[Row, ...]:
        form, number = self._form, self._figures.number
        funded = tuple(
            Row(
                f"{department.name.capitalize()} {form.share(self._works.funding(self._game, department))}",
                form.money(-number(f"paid_{department.name.lower()}")),
                adjust=department.name.lower(),
            )
            for department in (Department.TRANSPORT, Department.SAFETY, Department.WELFARE)
        )
        return (
            Row(f"Taxes {form.share(number('tax'))}", form.money(number("income")), adjust="tax"),
            *funded,
            Row("Utilities", form.money(-number("paid_utilities"))),
            Row("Interest", form.money(-number("paid_interest"))),
            Row("Result", form.money(number("balance"), signed=True)),
        )

    def _city(self) -> tuple[Row, ...]:
        form, number = self._form, self._figures.number
        return (
            Row("Inhabitants", self._people()),
            Row("Jobs in shops", form.number(number("commercial"))),
            Row("Jobs in industry", form.number(number("industrial"))),
            Row("Filled jobs", form.number(number("filled"))),
            Row("Happiness", form.share(number("happiness"))),
            Row("Traffic", form.share(number("traffic"))),
            Row("Pollution", form.share(number("pollution"))),
            Row("Land value", form.share(number("value"))),
            Row("Power", f"{number('power_need')} of {number('power_supply')}"),
        )

    def _demand(self) -> tuple[Row, ...]:
        homes, shops, industry = self._figures.demands()
        return (
            Row("Residential", f"{homes:+d}", swatch=Kind.RESIDENTIAL),
            Row("Commercial", f"{shops:+d}", swatch=Kind.COMMERCIAL),
            Row("Industrial", f"{industry:+d}", swatch=Kind.INDUSTRIAL),
        )

    def _milestones(self) -> tuple[Row, ...]:
        reached = self._figures.number("milestones")
        marks = ((size, "reached" if index < reached else "-") for index, size in enumerate(MILESTONES[:8]))
        return tuple(Row(self._form.number(size), mark) for size, mark in marks)

    def _legend(self) -> tuple[Row, ...]:
        return tuple(Row(BUILDINGS[kind].name, swatch=kind) for kind in _LEGEND)

    def _query(self, cell: int) -> tuple[Row, ...]:
        cells, game, form = self._simulation.cells, self._game, self._form
        kind, flags = int(cells.kind[game, cell]), int(cells.flags[game, cell])
        terrain = Terrain(int(cells.terrain[game, cell])).name.capitalize()
        rows = [Row("Here", BUILDINGS[kind].name if kind else terrain)]
        if Kind.RESIDENTIAL <= kind <= Kind.INDUSTRIAL:
            rows.append(Row("People" if kind == Kind.RESIDENTIAL else "Jobs", str(cells.amount[game, cell])))
        if Kind.RESIDENTIAL <= kind < Kind.RUBBLE:
            rows += [Row(name.capitalize(), "yes" if flags & flag else "no") for flag, name in _NEEDS]
        rows.append(Row("Land value", form.share(whole(float(cells.value[game, cell])))))
        rows.append(Row("Pollution", form.share(whole(float(cells.air[game, cell])))))
        return tuple(rows)
