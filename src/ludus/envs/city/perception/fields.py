"""Fields: what can be read where on a game's picture, and how a text becomes a reading of one."""

import string
from collections.abc import Mapping
from dataclasses import dataclass

from ludus.envs.city.drivers.driver import Region
from ludus.envs.city.perception.parsing import PLAIN, Notation, parse
from ludus.envs.city.perception.reading import Kind, Reading, unreadable

_NUMBER = string.digits + "+-\u2212.,' "
_LETTERS = string.ascii_letters
_ALIKE = {":": ":;"}


@dataclass(frozen=True, slots=True)
class Field:
    """Something that a game's picture says.

    Attributes:
        name: Its name, such as `funds`.
        kind: What sort of value it is.
        region: Where it stands.
        notation: How the game writes numbers.
        prefix: Words before the value, such as `Funds:`; without them the field is unreadable.
        least: Values below are unreadable.
        most: Values above are unreadable.
    """

    name: str
    kind: Kind
    region: Region
    notation: Notation = PLAIN
    prefix: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def alphabet(self) -> frozenset[str] | None:
        """Letters that can stand in it; None for all."""
        if self.kind == "text":
            return None
        extra = {"date": _LETTERS + "/", "percent": "%", "number": "kKM"}
        letters = _NUMBER + self.notation.thousands + self.prefix
        letters += extra.get(self.kind, "kKM()" + "".join(self.notation.currencies))
        return frozenset(letters)

    def understood(self, text: str, confidence: float, engine: str) -> Reading:
        """Returns what a text says of this field: a value within its limits, or unreadable."""
        words = self.value_text(text)
        value = parse(words, self.kind, self.notation) if words is not None and confidence > 0.0 else None
        if isinstance(value, float) and not self._is_possible(value):
            value = None
        if value is None:
            return unreadable(self.name, text, engine)
        return Reading(self.name, value, confidence, text=text, engine=engine)

    def value_text(self, text: str) -> str | None:
        """Returns a text without the words before the value; None if it does not begin with them.

        Engines take the colon of known words for a semicolon, which changes nothing.
        """
        prefix = "".join(self.prefix.split())
        return _without(text.strip(), prefix) if prefix else text.strip()

    def _is_possible(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


def by_name(fields: tuple[Field, ...]) -> Mapping[str, Field]:
    """Returns fields by their names."""
    return {field.name: field for field in fields}


def _without(text: str, prefix: str) -> str | None:
    """Returns a text without its first letters, spaces between them not counted; None if it begins otherwise."""
    place = 0
    for letter in prefix:
        while place < len(text) and text[place] == " ":
            place += 1
        if place >= len(text) or text[place] not in _ALIKE.get(letter, letter):
            return None
        place += 1
    return text[place:].strip()
