"""Perception of the embedded game: its fields, demand bars and what covers its map."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ludus.envs.colors import Color
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Box, Frame
from ludus.worlds.city.game.rules import MONTH_DAYS
from ludus.worlds.city.interface.layout import BARS, Layout, demand_places
from ludus.worlds.city.interface.panes import DEMANDS
from ludus.worlds.city.interface.theme import FIELDS, CityDisplay, TextMeasure, Theme
from ludus.worlds.city.perception.glyph_learning import Label, learn_all
from ludus.worlds.city.perception.glyphs import GlyphBank, known_glyphs, save_glyphs
from ludus.worlds.city.perception.reader import ScreenReader
from ludus.worlds.city.perception.reading import Date, Field, Kind, Notation, Reading, unreadable

_COLOR = 0xFFFFFF  # the bytes of a pixel that mean something
_MARGIN = 4  # pixels between a window and the corner of the map's area


class Cover(NamedTuple):
    """What covers the map."""

    menu: int  # number of the open menu, -1 for none
    dialog: bool  # whether a dialog is open
    window: bool  # whether a window is open

    @property
    def is_any(self) -> bool:
        """Whether something does."""
        return self.menu >= 0 or self.dialog or self.window


class CoverDetector:
    """Looks for covers in pictures of one layout in one theme."""

    def __init__(self, layout: Layout, theme: Theme, face: TextMeasure) -> None:
        self._accent, self._frame = _word(theme.palette.accent), _word(theme.palette.frame)
        outer, line = layout.view.frame, face.height + 5
        self._title = line + 2  # rows of a title
        # Left of the button that closes it, where no title is so long that its letters could be there.
        self._corner = (outer.right - _MARGIN - line - 4, outer.top + _MARGIN + 1)
        # Every dialog stands in the middle and reaches beyond this column, the letters of its title do not.
        self._column = outer.left + outer.width // 2 + 7 * face.height
        self._rows = slice(outer.top + _MARGIN + self._title, outer.bottom)
        # Rows of that column so near to each other that one of them meets every title.
        steps = range(self._rows.start, self._rows.stop, self._title - 2)
        points = [(menu.box.left + 1, menu.box.top + 1) for menu in layout.menus]
        points += [self._corner, *((self._column, row) for row in steps)]
        self._menus = len(layout.menus)
        self._points = np.array([y * layout.width + x for x, y in points])

    def pane(self, pixels: NDArray[np.uint32]) -> Box | None:
        """Return where the dialog or the window of a picture is; None if there is none. Arguments as in `look`."""
        seen = self.look(pixels)
        if not (seen.dialog or seen.window):
            return None
        column = self._column if seen.dialog else self._corner[0]
        first = self._rows.start if seen.dialog else self._corner[1] - 1
        top = first + int(((pixels[first:, column] & _COLOR) == self._accent).argmax())
        heads = np.flatnonzero((pixels[top] & _COLOR) != self._accent)
        left = int(heads[heads < column].max(initial=-1)) + 1
        right = int(heads[heads > column].min(initial=pixels.shape[1]))
        below = pixels[top + self._title :, left] & _COLOR
        height = int((below != self._frame).argmax()) if (below != self._frame).any() else len(below)
        return Box(left, top, right - left, self._title + height)

    def look(self, pixels: NDArray[np.uint32]) -> Cover:
        """Return what covers a picture `(height, width)` whose pixels are red, green, blue and an unused byte."""
        heads = ((pixels.reshape(-1).take(self._points) & _COLOR) == self._accent).tolist()
        count = self._menus
        menu = heads.index(True) if True in heads[:count] else -1
        return Cover(menu, True in heads[count + 1 :] and self._has_title(pixels), heads[count])

    def _has_title(self, pixels: NDArray[np.uint32]) -> bool:
        """Whether the title of a dialog is in the column that all of them reach."""
        column = (pixels[self._rows, self._column] & _COLOR) == self._accent
        return bool(sliding_window_view(column, self._title - 2).all(axis=1).any())


def _word(color: Color) -> int:
    red, green, blue = color
    return red | green << 8 | blue << 16


_ENGINE = "bars"


class DemandReader:
    """Reads the bars of one layout in one theme."""

    def __init__(self, box: Box, theme: Theme) -> None:
        self.box, self._places, self._ground = box, demand_places(box), theme.palette.field
        colors = theme.map_colors
        self._inks = (colors.residential, colors.commercial, colors.industrial)

    def read(self, frame: Frame) -> list[Reading]:
        """Return the demand for homes, shops and industry of a picture `(height, width, 3)`."""
        return [self._bar(frame, index) for index in range(len(BARS))]

    def _bar(self, frame: Frame, index: int) -> Reading:
        places, name = self._places, BARS[index]
        row = frame[places.tops[index] + places.height // 2, :, :3]
        right = row[places.middle + 1 : places.middle + places.half]
        left = row[places.middle - places.half : places.middle][::-1]
        more, less = self._run(right, self._inks[index]), self._run(left, self._inks[index])
        if more is None or less is None or (more and less):
            return unreadable(name, engine=_ENGINE)
        value = places.said(more + 1, more=True) if more else places.said(less, more=False)
        return Reading(name, value, 1.0, engine=_ENGINE)

    def _run(self, pixels: NDArray[np.uint8], ink: Color) -> int | None:
        """Return how many pixels from the first on are ink; None if others are neither ink nor ground."""
        is_ink, is_ground = (pixels == ink).all(axis=1), (pixels == self._ground).all(axis=1)
        length = int(is_ink.argmin()) if not is_ink.all() else len(pixels)
        return length if bool(is_ground[length:].all()) else None


_KEPT = 1 << 15  # crops of a field whose readings are remembered, by their hashes


class Said(NamedTuple):
    """What a field says, in numbers."""

    value: float  # a number, or days since year 0; 0 if it could not be read
    is_readable: bool  # whether it could
    confidence: float  # from 0 to 1
    grain: float  # rounding error of an abbreviated value; 0 where every digit is shown


# Its place, what was read there by the hashes of its pixels, and what reads it.
_Part: TypeAlias = tuple[Box, dict[bytes, tuple[Said, ...]], Callable[[Frame], list[Reading]]]


class ThemeReader:
    """Reads the fields of the HUD, then the bars of demand, of pictures that share theme and size."""

    def __init__(self, fields: Sequence[Field], bank: GlyphBank, demand: DemandReader, size: tuple[int, int]) -> None:
        """Make a reader of pictures of a width and height."""
        self._parts: dict[str, _Part] = {
            field.name: (field.region.box(*size), {}, partial(_read_field, field, field.alphabet, bank))
            for field in fields
        }
        self._parts["demand"] = (demand.box, {}, demand.read)

    def read(self, pixels: NDArray[np.uint8], words: NDArray[np.uint32]) -> list[Said]:
        """Return what every field of a picture `(height, width, 4)` says; `words` has one number per pixel."""
        return [said for name in self._parts for said in self._read(name, pixels, words)]

    def read_one(self, name: str, pixels: NDArray[np.uint8], words: NDArray[np.uint32]) -> Said:
        """Return what one field of the HUD says; arguments as in `read`."""
        return self._read(name, pixels, words)[0]

    def _read(self, name: str, pixels: NDArray[np.uint8], words: NDArray[np.uint32]) -> tuple[Said, ...]:
        box, memory, look = self._parts[name]
        key = hashlib.sha256(words[box.area].tobytes()).digest()
        known = memory.get(key)
        if known is None:
            known = memory[key] = tuple(map(_said, look(pixels[..., :3])))
            if len(memory) > _KEPT:
                del memory[next(iter(memory))]
        return known


def _read_field(field: Field, alphabet: frozenset[str] | None, bank: GlyphBank, frame: Frame) -> list[Reading]:
    return [field.understood(*bank.read(field.region.cut(frame), alphabet), "glyphs")]


def _said(reading: Reading) -> Said:
    value = reading.value
    if value is None or isinstance(value, str):
        return Said(0.0, False, 0.0, 0.0)
    # One digit stands after the point of an abbreviated number.
    grain = 100_000.0 if "M" in reading.text else 100.0 if "k" in reading.text.lower() else 0.0
    number = float(value.days) if isinstance(value, Date) else float(value)
    return Said(number, True, reading.confidence, grain if not isinstance(value, Date) else 0.0)


KINDS: dict[str, Kind] = {"date": "date", "funds": "money", "balance": "money", "population": "number"}
_LESSONS = 96  # pictures that letters are learned from: every month eight times
_FRAME = 1  # pixels of a sunken field's edge
_SHARES = ("happiness", "traffic", "pollution", "value")


def embedded_fields(layout: Layout, theme: Theme) -> tuple[Field, ...]:
    """Return the fields of the HUD in a layout and a theme; those not in `KINDS` are percentages."""
    form = theme.format
    notation = Notation(form.thousands, form.point, grouped=True, currencies=(form.currency,))
    regions = {
        name: layout.fields[name].value.inset(_FRAME, _FRAME).region(layout.width, layout.height) for name in FIELDS
    }
    return tuple(Field(name, KINDS.get(name, "percent"), regions[name], notation) for name in FIELDS)


def embedded_reader(games: CityGames, game: int, folder: Path | None = None) -> ScreenReader:
    """Return a reader for a game of a batch; one picture is enough for a value, since pictures are never torn."""
    interface, display = games.interfaces[game], games.display
    bank = embedded_bank(interface.theme.name, display.width, display.height, folder)
    return ScreenReader(embedded_fields(interface.layout, interface.theme), bank)


@lru_cache(maxsize=64)
def embedded_bank(theme: str, width: int, height: int, folder: Path | None = None) -> GlyphBank:
    """Return the letters of a theme at a size; games that look alike share them.

    They are learned from pictures of a separate game with generated figures, which are the labels. No truth about a
    played game goes into them.
    """
    file = folder / f"glyphs-embedded-{theme}-{width}x{height}.json" if folder is not None else None
    bank = GlyphBank() if file is None else known_glyphs(file)
    if len(bank):
        return bank
    with closing(CityGames(1, display=CityDisplay(themes=(theme,), width=width, height=height), seed=0)) as games:
        learn_all(bank, _labels(games, embedded_fields(games.layout(0), games.interfaces[0].theme)))
    if file is not None:
        save_glyphs(bank, file)
    return bank


def make_up_figures(games: CityGames, game: int, random: np.random.Generator) -> None:
    """Give a city figures of all sizes, drawn at random; they hold until its time passes."""
    city = games.simulation.city
    city["funds"][game] = _amount(random, 7)
    city["balance"][game] = _amount(random, 5)
    city["population"][game] = abs(_amount(random, 6))
    city["day"][game] = int(random.integers(0, 200 * 12 * MONTH_DAYS))
    city["tax"][game] = int(random.integers(0, 21))
    for name in _SHARES:
        city[name][game] = float(random.uniform(0.0, 100.0))
    for name in DEMANDS:
        city[name][game] = float(random.uniform(-100.0, 100.0))


def _amount(random: np.random.Generator, digits: int) -> int:
    """Draw an amount whose number of digits is as likely as any other, with either sign."""
    size = int(10 ** random.uniform(0.0, digits))
    return -size if random.random() < 0.3 else size


def _labels(games: CityGames, fields: tuple[Field, ...]) -> Iterator[Label]:
    random, days = np.random.default_rng(0), games.simulation.city["day"]
    for lesson in range(_LESSONS):
        make_up_figures(games, 0, random)
        days[0] += (lesson - int(days[0]) // MONTH_DAYS) % 12 * MONTH_DAYS
        frame, texts = games.capture(0), games.texts(0)
        yield from (Label(field.region.cut(frame).copy(), texts[field.name]) for field in fields)
