"""What the dialogs say; the game waits until they are closed."""

from ludus.envs.city.game.rules import BUILDINGS, DEBT_LIMIT, DEBT_MONTHS, MARKET_MONTHS, MILESTONES, Notice
from ludus.envs.city.game.simulation import CitySimulation
from ludus.envs.city.interface.commands import Dialog
from ludus.envs.city.interface.figures import Figures
from ludus.envs.city.interface.formats import Format
from ludus.envs.city.interface.panes import Pane, Row

_OK = (("ok", "OK"),)
_YES_NO = (("yes", "Yes"), ("no", "No"))
# In the order in which dialogs follow each other when several things happen on one day.
NOTICES = {
    Notice.MILESTONE: Dialog.MILESTONE,
    Notice.FIRE: Dialog.FIRE,
    Notice.STORM: Dialog.STORM,
    Notice.BOOM: Dialog.BOOM,
    Notice.RECESSION: Dialog.RECESSION,
    Notice.YEAR: Dialog.YEAR,
    Notice.DEBT: Dialog.DEBT,
    Notice.BANKRUPT: Dialog.BANKRUPT,
}
TITLES = {
    Dialog.MILESTONE: "Milestone",
    Dialog.FIRE: "Fire",
    Dialog.STORM: "Storm",
    Dialog.BOOM: "Boom",
    Dialog.RECESSION: "Recession",
    Dialog.DEBT: "Warning",
    Dialog.BANKRUPT: "Bankrupt",
    Dialog.YEAR: "Yearly report",
    Dialog.ABANDON: "New city",
    Dialog.DEMOLISH: "Demolish",
    Dialog.ABOUT: "About",
}


class Dialogs:
    """Writes the dialogs of one city."""

    def __init__(self, simulation: CitySimulation, game: int, form: Format) -> None:
        self._simulation, self._game, self._form = simulation, game, form
        self._figures = Figures(simulation, game, form)

    def pane(self, dialog: Dialog, amount: int, cell: int) -> Pane:
        """Returns what a dialog says; `amount` and `cell` come from what happened."""
        lines = self._lines(dialog, amount, cell)
        rows = self._year_rows() if dialog == Dialog.YEAR else tuple(Row(line) for line in lines)
        buttons = _YES_NO if dialog in (Dialog.ABANDON, Dialog.DEMOLISH) else _OK
        return Pane("dialog", TITLES[dialog], rows, buttons)

    def _lines(self, dialog: Dialog, amount: int, cell: int) -> tuple[str, ...]:
        form, columns = self._form, self._simulation.rules.columns
        place = f"at column {cell % columns + 1}, row {cell // columns + 1}"
        if dialog == Dialog.MILESTONE:
            reached = max(self._figures.number("milestones"), 1)
            people = form.number(MILESTONES[reached - 1])
            return f"Your city has {people} inhabitants.", f"You are granted {form.money(amount)}."
        if dialog == Dialog.DEMOLISH:
            name = BUILDINGS[self._simulation.cells.kind[self._game, cell]].name
            return f"Demolish: {name}?", "You get nothing back."
        texts = {
            Dialog.FIRE: (f"A building burnt down {place}.", "No fire station was near."),
            Dialog.STORM: (f"A storm took {amount} power lines.", f"The last one {place}."),
            Dialog.BOOM: ("Trade flourishes.", f"Demand rises for {MARKET_MONTHS} months."),
            Dialog.RECESSION: ("Trade is weak.", f"Demand falls for {MARKET_MONTHS} months."),
            Dialog.DEBT: (
                f"Your debts exceed {form.money(DEBT_LIMIT)}.",
                f"After {DEBT_MONTHS} months like this one",
                "the city is bankrupt.",
            ),
            Dialog.BANKRUPT: ("The city is bankrupt.", "Your time as mayor is over."),
            Dialog.ABANDON: ("Leave this city", "and found a new one?"),
            Dialog.ABOUT: ("A small city builder.", "Homes need power, roads and work."),
        }
        return texts.get(dialog, ())

    def _year_rows(self) -> tuple[Row, ...]:
        form, number = self._form, self._figures.number
        return (
            Row("Inhabitants", form.number(number("population"))),
            Row("Taxes last month", form.money(number("income"))),
            Row("Result last month", form.money(number("balance"), signed=True)),
            Row("Result this year", form.money(number("year_balance"), signed=True)),
            Row("Funds", form.money(number("funds"))),
        )
