"""The true figures of Micropolis through its prompt, and the letters of its screen learned from them."""

from collections.abc import Mapping

from ludus.core.errors import GameLostError
from ludus.worlds.city.drivers.driver import Wait
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.perception.glyph_learning import Label, learn_all
from ludus.worlds.city.perception.reader import ProfileReader
from ludus.worlds.city.perception.reading import MONTHS, Field

# The labels of the evaluation's window, and what each of their lines says.
_EVALUATION = {
    "stats": ("population", "migration", "", "assessed", "category", ""),
    "score": ("score", "score_change"),
    "goodjob": ("approval", ""),
}


class MicropolisTruth:
    """Asks the game itself, about 0.1 ms per question."""

    def __init__(self, driver: X11Driver) -> None:
        self._driver = driver

    def number(self, name: str) -> int:
        """Return a number of the game by its own name: `Funds` in dollars, `Year`, or `TaxRate` in percent."""
        return int(self.ask(f"sim {name}"))

    def set_number(self, name: str, value: int) -> None:
        """Set a number of the game; see `number`."""
        self.ask(f"sim {name} {value:d}")

    def month(self) -> int:
        """Return the month, from 1; it is only known as the date that the game last wrote."""
        return MONTHS.index(self.ask("set CurrentDate").split()[0]) + 1

    def evaluation(self) -> dict[str, str]:
        """Return what the evaluation says, such as `1,234` for `population`, also while it has not been drawn."""
        said = [(names, self._said(label).split("\n")) for label, names in _EVALUATION.items()]
        return {name: word for names, words in said for name, word in zip(names, words, strict=True) if name}

    def set_evaluation(self, words: dict[str, str]) -> None:
        """Set the texts that `evaluation` returns, until the game updates them."""
        first = ["score_change", "score", *[""] * 4, *[""] * 4]
        last = ["population", "migration", "assessed", "category", "", "approval", "", ""]
        for name, fields in (("ludusFirst", first), ("ludusLast", last)):
            self.ask(f"set {name} {{{' '.join(f'{{{words.get(field, field)}}}' for field in fields)}}}")
        self.ask("eval UISetEvaluation $ludusFirst $ludusLast")

    def _said(self, label: str) -> str:
        window = f"[WindowLink [lindex $EvaluationWindows 0].{label}]"
        return self.ask(f"lindex [{window} configure -text] 4").replace("\r\n", "\n")

    def ask(self, command: str) -> str:
        """Return the answer to a command."""
        return self._driver.prompt.ask(command)


CATEGORIES = ("VILLAGE", "TOWN", "CITY", "CAPITAL", "METROPOLIS", "MEGALOPOLIS")
MONTH_S = 0.04  # of the game's clock
_DIGITS = 1_234_567_890


def teach_letters(driver: X11Driver, perception: ProfileReader) -> None:
    """Learn and save the letters of all fields from a year of generated figures.

    This changes the city: start a new one afterwards. Raise GameLostError if the figures are not read back.
    """
    truth, reader = MicropolisTruth(driver), perception.reader
    labels: list[Label] = []
    for month in range(len(MONTHS)):
        number = int(str(_DIGITS)[month % 10 :] + str(_DIGITS)[: month % 10])  # each digit is each place's in turn
        truth.set_number("Funds", max(number % 10 ** (month % 7 + 1), 1))  # without money the budget would be asked for
        truth.set_number("Year", 1900 + number % 200)
        truth.set_number("TaxRate", number % 21)
        truth.set_evaluation(made_up_evaluation(number, month))
        driver.do([Wait(MONTH_S)])
        frame = driver.capture()
        texts = shown_texts(truth, reader.fields)
        labels += [Label(reader.fields[name].cut(frame).copy(), text) for name, text in texts.items()]
    learn_all(perception.bank, labels)
    unread = [label.text for label in labels if not _is_read(perception, label)]
    if unread:
        raise GameLostError(f"{len(unread)} of {len(labels)} lines of Micropolis were not read back: {unread[:3]}")
    perception.save()


def _is_read(perception: ProfileReader, label: Label) -> bool:
    return "".join(perception.bank.read(label.crop)[0].split()) == "".join(label.text.split())


def made_up_evaluation(number: int, kind: int) -> dict[str, str]:
    """Return texts of the evaluation generated from the digits of a number."""
    return {
        "population": f"{number % 10 ** (kind % 7 + 1):,}",
        "migration": f"{(1 - 2 * (kind % 2)) * (number % 10 ** (kind % 5 + 1)):,}",
        "assessed": f"${number % 10 ** (kind % 6 + 1) * 1000:,}",
        "category": CATEGORIES[kind % len(CATEGORIES)],
        "score": str(number % 1001),
        "score_change": str(number % 601 - 300),
        "approval": f"{number % 101}%",
    }


def shown_texts(truth: MicropolisTruth, fields: Mapping[str, Field]) -> dict[str, str]:
    """Return what the lines of these fields say, with the words before their values."""
    words = {
        "date": f"{MONTHS[truth.month() - 1]} {truth.number('Year')}",
        "funds": f"${truth.number('Funds'):,}",
        "tax": f"{truth.number('TaxRate')}%",
        **truth.evaluation(),
    }
    return {name: f"{fields[name].prefix} {text}" for name, text in words.items() if name in fields}
