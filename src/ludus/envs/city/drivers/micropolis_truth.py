"""The truth about a running Micropolis, by its own prompt: for tests, audits and resets; never for an agent."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ActionError
from ludus.envs.city.drivers.prompt import GamePrompt

COLUMNS, ROWS = 120, 100  # tiles of the map
MAX_SPEED = 3
TILE_MASK = 0x3FF  # a tile's low bits say what it is; the others are flags such as power
POWERED, ZONE_MIDDLE = 0x8000, 0x0400
_UNSAFE = set('"$[]{};\\\n ')


class MicropolisTruth:
    """Asks the game itself, about 0.1 ms a question.

    It is given where the prompt is to be had instead of the prompt, because a game that is started anew has another.
    """

    def __init__(self, prompt: Callable[[], GamePrompt]) -> None:
        self._prompt = prompt

    def funds(self) -> int:
        """Returns the money."""
        return self._number("sim Funds")

    def set_funds(self, amount: int) -> None:
        """Sets the money."""
        self._ask(f"sim Funds {amount:d}")

    def year(self) -> int:
        """Returns the year."""
        return self._number("sim Year")

    def month(self) -> int:
        """Returns the month, from 1; it is only known as the date that the game last wrote."""
        return _MONTHS.index(self._ask("set CurrentDate").split()[0]) + 1

    def set_year(self, year: int) -> None:
        """Sets the year."""
        self._ask(f"sim Year {year:d}")

    def tax_rate(self) -> int:
        """Returns the tax rate in percent."""
        return self._number("sim TaxRate")

    def set_tax_rate(self, percent: int) -> None:
        """Sets the tax rate."""
        self._ask(f"sim TaxRate {percent:d}")

    def speed(self) -> int:
        """Returns the speed; 0 is paused."""
        return self._number("sim Speed")

    def set_speed(self, speed: int) -> None:
        """Sets the speed, from 0 (paused) to 3."""
        if not 0 <= speed <= MAX_SPEED:
            raise ActionError(f"speed {speed} is not in 0 to {MAX_SPEED}")
        self._ask(f"sim Speed {speed:d}")

    def set_delay(self, microseconds: int) -> None:
        """Sets how long the game waits between its steps; 0 is as fast as it can."""
        self._ask(f"sim Delay {microseconds:d}")

    def evaluation(self) -> dict[str, str]:
        """Returns what the evaluation says, such as `1,234` for `population`, also while it has not been drawn."""
        words = [self._said(label).split("\n") for label in ("stats", "score", "goodjob")]
        (population, migration, _, assessed, category, _), (score, change), (approval, _) = words
        return {
            "population": population,
            "migration": migration,
            "assessed": assessed,
            "category": category,
            "score": score,
            "score_change": change,
            "approval": approval,
        }

    def set_evaluation(self, words: dict[str, str]) -> None:
        """Makes the evaluation say what `evaluation` would return, until the game fills it in again."""
        first = ["score_change", "score", *[""] * 4, *[""] * 4]
        last = ["population", "migration", "assessed", "category", "", "approval", "", ""]
        for name, fields in (("ludusFirst", first), ("ludusLast", last)):
            self._ask(f"set {name} {{{' '.join(f'{{{words.get(field, field)}}}' for field in fields)}}}")
        self._ask("eval UISetEvaluation $ludusFirst $ludusLast")

    def tile(self, x: int, y: int) -> int:
        """Returns a tile of the map with its flags."""
        return self._number(f"sim Tile {x:d} {y:d}")

    def tiles(self) -> NDArray[np.int32]:
        """Returns all tiles with their flags, `(rows, columns)`."""
        loop = f"for {{set y 0}} {{$y<{ROWS}}} {{incr y}} {{for {{set x 0}} {{$x<{COLUMNS}}} {{incr x}} "
        self._ask(f"set ludusTiles {{}}; {loop}{{lappend ludusTiles [sim Tile $x $y]}}}}")
        numbers = [int(word) for word in self._ask("set ludusTiles").split()]
        return np.asarray(numbers, np.int32).reshape(ROWS, COLUMNS)

    def generate(self, seed: int) -> None:
        """Begins a city on the land of a seed; the same seed has the same land."""
        self._ask(f"DoNewCity ludus 0 {seed:d}")

    def save(self, file: Path) -> None:
        """Saves the city."""
        self._ask(f"sim SaveCityAs {_word(file)}")

    def load(self, file: Path) -> None:
        """Loads a city, with its money and date; the game is paused first, and stays so."""
        self.set_speed(0)
        self._ask(f"sim LoadCity {_word(file)}")
        self.set_speed(0)

    def _said(self, label: str) -> str:
        window = f"[WindowLink [lindex $EvaluationWindows 0].{label}]"
        return self._ask(f"lindex [{window} configure -text] 4").replace("\r\n", "\n")

    def _ask(self, command: str) -> str:
        return self._prompt().ask(command)

    def _number(self, command: str) -> int:
        return int(self._ask(command))


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _word(file: Path) -> str:
    """Returns a path as one word of the game's language."""
    text = str(file.absolute())
    if _UNSAFE & set(text):
        raise ActionError(f"the path {text!r} has a character that the game's prompt does not take; use a plain one")
    return text
