"""The fields of the HUD: how much room they need, and where they are in a bar or in a panel."""

from dataclasses import dataclass

from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.interface.theme import FIELDS, Measure, Theme
from ludus.envs.city.perception.reading import Date

_WIDE_MONEY = (-8_888, 88_888, -88_888, 888_888, -888_888, -8_888_888, 88_888_888)
_PAD = 3  # pixels around a value
_GAP = 6  # pixels between fields


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """Where a field is.

    Attributes:
        box: All of it, with label, value and buttons.
        label: Of its word or picture.
        value: Of what it says; nothing else is ever drawn there.
    """

    box: Box
    label: Box
    value: Box


@dataclass(frozen=True, slots=True)
class FieldSizes:
    """What the fields need.

    Attributes:
        labels: Width of each label.
        values: Width of each value.
        buttons: Width of what stands behind each value.
        line: Height of a field.
    """

    labels: dict[str, int]
    values: dict[str, int]
    buttons: dict[str, int]
    line: int

    @property
    def demand_width(self) -> int:
        """Width of the bars of demand where they stand beside fields."""
        return 6 * self.line

    @property
    def panel_width(self) -> int:
        """Width of a panel in which fields stand one below the other."""
        buttons = max(self.values[name] + self.buttons[name] for name in FIELDS)
        return max(self.labels.values()) + buttons + 4

    def width(self, name: str) -> int:
        """Width of a field in a bar."""
        return self.labels[name] + self.values[name] + self.buttons[name]

    def rows(self, width: int) -> list[list[str]]:
        """Breaks the fields, and the bars of demand, into lines of a bar of this width."""
        rows: list[list[str]] = [[]]
        used = 0
        for name in (*FIELDS, "demand"):
            needed = (self.demand_width if name == "demand" else self.width(name)) + _GAP
            if used + needed > width and rows[-1]:
                rows.append([])
                used = 0
            rows[-1].append(name)
            used += needed
        return rows

    def bar_height(self, width: int) -> int:
        """Height of a bar of this width, with a margin."""
        return len(self.rows(width)) * (self.line + 2) + 4


def field_sizes(theme: Theme, face: Measure) -> FieldSizes:
    """Measures what the fields need at most."""
    form = theme.format
    share = _widest(face, form.share(100))
    values = {
        "date": max(_widest(face, form.day(Date(2088, month, 28))) for month in range(1, 13)),
        "funds": max(_widest(face, form.money(amount)) for amount in _WIDE_MONEY),
        "balance": max(_widest(face, form.money(amount, signed=True)) for amount in _WIDE_MONEY[:4]),
        "population": max(_widest(face, form.number(amount)) for amount in (88_888, 888_888)),
        "happiness": share,
        "traffic": share,
        "pollution": share,
        "land_value": share,
        "tax": _widest(face, form.share(20)),
    }
    line = face.height + 4
    labels = {name: face.width(theme.words[name]) + 5 if theme.words else line + 2 for name in FIELDS}
    buttons = {name: 2 * line + 2 if name == "tax" else 0 for name in FIELDS}
    return FieldSizes(labels, {name: width + 2 * _PAD for name, width in values.items()}, buttons, line)


def _widest(face: Measure, text: str) -> int:
    """Width of a text if all its eights were the widest digit."""
    return max(face.width(text.replace("8", digit)) for digit in "0123456789")


def place_bar(area: Box, sizes: FieldSizes) -> tuple[dict[str, FieldPlace], Box]:
    """Places the fields in the lines of a bar; returns them and where the bars of demand are."""
    places: dict[str, FieldPlace] = {}
    demand = Box(0, 0, 0, 0)
    for index, names in enumerate(sizes.rows(area.width)):
        left, top = area.left, area.top + index * (sizes.line + 2)
        for name in names:
            if name == "demand":
                demand = Box(left, top, sizes.demand_width, sizes.line)
                continue
            places[name] = _place(name, Box(left, top, sizes.width(name), sizes.line), sizes)
            left += sizes.width(name) + _GAP
    return places, demand


def place_panel(area: Box, sizes: FieldSizes) -> tuple[dict[str, FieldPlace], Box, Box]:
    """Places the fields one below the other; returns them, the place of the bars of demand, and what is left below."""
    places: dict[str, FieldPlace] = {}
    top = area.top
    for name in FIELDS:
        places[name] = _place(name, Box(area.left, top, area.width, sizes.line), sizes)
        top += sizes.line + 2
    demand = Box(area.left, top + 2, area.width, 2 * sizes.line)
    below = demand.bottom + 4
    return places, demand, Box(area.left, below, area.width, area.bottom - below)


def _place(name: str, box: Box, sizes: FieldSizes) -> FieldPlace:
    value = Box(box.right - sizes.values[name] - sizes.buttons[name], box.top, sizes.values[name], box.height)
    return FieldPlace(box, Box(box.left, box.top, sizes.labels[name], box.height), value)
