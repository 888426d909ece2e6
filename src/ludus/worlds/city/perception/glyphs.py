"""The glyph reader: letters as exact bitmaps, learned from labelled crops. Fast, and silent about what it never saw.

A crop becomes ink, one integer per column (bit 0 is the upper row), split where columns are empty. So glyphs are plain
tuples: equal glyphs are equal keys, and how far two are apart is a count of bits.
"""

import operator
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from ludus.core.errors import FormatError
from ludus.core.files import read_regular, write_atomic
from ludus.store.documents import Limits, decode_document, encode_document
from ludus.worlds.city.drivers.driver import Frame

Columns: TypeAlias = tuple[int, ...]
MAX_ROWS = 52  # of ink: a sum of 52 bits is exact in a double, and matrix products of doubles are fast
_MIN_CONTRAST = 40  # of 255, between letters and what they stand on
_BITS = np.exp2(np.arange(MAX_ROWS))


@dataclass(frozen=True, slots=True)
class Segment:
    """Columns of ink between empty ones, with rows counted from the top of the line's ink."""

    start: int
    columns: Columns
    moved: Columns  # up to the first row of ink
    top: int
    bottom: int

    @property
    def end(self) -> int:
        """First column behind it."""
        return self.start + len(self.columns)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text."""

    columns: Columns  # all columns of the crop
    segments: tuple[Segment, ...]  # its parts, from left to right
    top: int  # the first row of its tall letters
    baseline: int  # the row below its tall letters
    tall: int  # rows of its tallest part


def ink_of(crop: Frame, level: float = 0.5) -> NDArray[np.bool_] | None:
    """Return which pixels `(height, width)` stand out from the most common colour, or None if none do.

    A pixel is ink from a share `level` of the strongest contrast on.
    """
    red, green, blue = (crop[:, :, channel].astype(np.int16) for channel in range(3))
    shade = (red >> 1) + green + (blue >> 1)
    common = int(np.bincount(shade.reshape(-1)).argmax())
    row, column = divmod(int((shade == common).argmax()), shade.shape[1])
    strength = reduce(np.maximum, (abs(channel - channel[row, column]) for channel in (red, green, blue)))
    strongest = int(strength.max())
    if strongest < _MIN_CONTRAST:
        return None
    ink: NDArray[np.bool_] = strength > level * strongest
    return ink


def line_of(crop: Frame, level: float = 0.5) -> Line | None:
    """Return the line of text in a crop, or None if there is no ink or too much of it; `level` as in `ink_of`."""
    ink = ink_of(crop, level)
    if ink is None:
        return None
    rows = np.flatnonzero(ink.any(axis=1))
    first, height = int(rows[0]), int(rows[-1]) + 1 - int(rows[0])
    if height > MAX_ROWS:
        return None
    codes = _BITS[:height] @ ink[first : first + height].astype(np.float64)
    columns = tuple(map(int, codes.tolist()))
    segments: list[Segment] = []
    start = 0
    for is_ink, run in groupby(columns, bool):
        part = tuple(run)
        if is_ink:
            segments.append(Segment(start, part, *lowered(part)))
        start += len(part)
    tallest = max(segment.bottom - segment.top for segment in segments)
    tall = [segment for segment in segments if (segment.bottom - segment.top) * 5 >= tallest * 3]
    bottoms = [segment.bottom for segment in tall]
    baseline = max(sorted(set(bottoms)), key=bottoms.count)
    top = min(segment.top for segment in tall)
    return Line(columns, tuple(segments), top, baseline, tallest)


def lowered(columns: Columns) -> tuple[Columns, int, int]:
    """Return columns moved up to their first row of ink, that row, and the row below their last one."""
    union = reduce(operator.or_, columns)
    top = (union & -union).bit_length() - 1
    moved = tuple([column >> top for column in columns]) if top else columns
    return moved, top, union.bit_length()


Place: TypeAlias = Literal["high", "full", "low"]
Key: TypeAlias = tuple[Columns, Place]
UNKNOWN = "\ufffd"
_NEAR_SHARE = 0.04  # of a glyph's ink that may differ in a near match: none of 24 pixels, 2 of 50
_SPLIT_CONFIDENCE = 0.9
_MAX_MERGED = 3  # parts of one letter beside each other, as in a percent sign
_MAX_TOUCHING = 4  # letters in one segment
MAX_OVERLAP = 3  # columns that one letter hangs over the next
_MAX_SPLITS = 4096  # segments whose parts are remembered
_DOUBLED = re.compile(r"[.,][.,]")  # what no number has, but overlaps of parts can look like
_SPACE_SHARE = 0.35  # of the height of a line: a gap that is a space before one was learned


def _inked(columns: Columns) -> Columns:
    if not columns[0]:
        raise ValueError("the first column is empty")
    return columns


_Column = Annotated[int, Field(strict=True, ge=0, lt=1 << MAX_ROWS)]
_Rise = Annotated[int, Field(strict=True, ge=-MAX_ROWS, le=MAX_ROWS)]
_Letters = Annotated[str, Field(min_length=1, max_length=4)]
_Count = Annotated[int, Field(strict=True, ge=1)]


@dataclass(slots=True)
class Glyph:
    """A bitmap and its labels; bounds are for those that are read from a file."""

    # Its columns, moved up to the first row of ink.
    columns: Annotated[tuple[_Column, ...], Field(min_length=1, max_length=256), AfterValidator(_inked)]
    place: Place  # whether it is above or below the middle of the line, or reaches over it
    rise: _Rise  # rows from its upper end to the baseline
    votes: Annotated[dict[_Letters, _Count], Field(min_length=1)]  # how often it was called what

    def text(self, alphabet: frozenset[str] | None) -> str | None:
        """Return what it is among the letters that can be meant; None if that is disputed."""
        if len(self.votes) == 1:
            (only,) = self.votes
            return only if alphabet is None or alphabet.issuperset(only) else None
        votes = {text: count for text, count in self.votes.items() if alphabet is None or set(text) <= alphabet}
        if not votes:
            return None
        best = max(votes, key=lambda text: votes[text])
        return best if votes[best] * 4 > sum(votes.values()) * 3 else None


class GlyphBank:
    """Everything learned about the letters of one game.

    Attributes:
        glyphs: By bitmap and place.
        inner_gap: Widest gap seen inside a word, in pixels; -1 if none was seen.
        space_gap: Narrowest gap seen at a space; 0 if none was seen.
        widths: Columns that each single letter was seen to take.
    """

    def __init__(self) -> None:
        self.glyphs: dict[Key, Glyph] = {}
        self.inner_gap, self.space_gap = -1, 0
        self.widths: defaultdict[str, set[int]] = defaultdict(set)
        self._splits: dict[tuple[Key, int, frozenset[str] | None], tuple[str, float] | None] = {}
        self._by_width: defaultdict[int, list[Glyph]] = defaultdict(list)
        self._merged_widths: set[int] = set()
        self._widest_digit = 0

    def __len__(self) -> int:
        return len(self.glyphs)

    def read(self, crop: Frame, alphabet: frozenset[str] | None = None) -> tuple[str, float]:
        """Return the text of a crop `(height, width, 3)` of one line and how sure it is, 0 if a part of it is unknown.

        The text has a mark there. `alphabet` are the letters that can be meant, to tell equal bitmaps apart.
        """
        line = line_of(crop)
        if line is None:
            return "", 0.0
        words: list[str] = []
        sure, index, end = 1.0, 0, -1
        space = self.space_width(line)
        while index < len(line.segments):
            start = line.segments[index].start
            text, confidence, used = self._next(line, index, alphabet)
            if end >= 0 and start - end >= space:
                words.append(" ")
            words.append(text)
            sure, index = min(sure, confidence), index + used
            end = line.segments[index - 1].end
        return "".join(words), sure

    def add(self, columns: Columns, line: Line, text: str) -> None:
        """Count that these columns of a line (from a first to a last one with ink) were labelled `text`."""
        self.insert(Glyph(*placed(columns, line), {text: 1}))

    def insert(self, glyph: Glyph) -> None:
        """Take a glyph up; votes for one that is known are added."""
        self._splits.clear()
        for text in glyph.votes:
            if len(text) == 1:
                self.widths[text].add(len(glyph.columns))
        known = self.glyphs.get((glyph.columns, glyph.place))
        if known is not None:
            for text, votes in glyph.votes.items():
                known.votes[text] = known.votes.get(text, 0) + votes
            return
        width = len(glyph.columns)
        if 0 in glyph.columns:
            self._merged_widths.add(width)
        if any(len(text) == 1 and text.isdigit() for text in glyph.votes):
            self._widest_digit = max(self._widest_digit, width)
        self._by_width[width].append(glyph)
        self.glyphs[glyph.columns, glyph.place] = glyph

    def note_gap(self, pixels: int, *, is_space: bool) -> None:
        """Learn how wide gaps inside words and at spaces are."""
        if is_space:
            self.space_gap = min(self.space_gap, pixels) if self.space_gap else pixels
        else:
            self.inner_gap = max(self.inner_gap, pixels)

    def space_width(self, line: Line) -> float:
        """Return from which gap on a space is read."""
        if self.space_gap > self.inner_gap >= 0:
            return (self.space_gap + self.inner_gap) / 2.0
        return max(3.0, _SPACE_SHARE * line.tall, self.inner_gap + 1.0)

    def known(self, columns: Columns, line: Line) -> Glyph | None:
        """Return the glyph that looks exactly so."""
        return self.glyphs.get(placed(columns, line)[:2])

    def _next(self, line: Line, index: int, alphabet: frozenset[str] | None) -> tuple[str, float, int]:
        """Return text, confidence and number of segments of what comes next."""
        for count in range(min(_MAX_MERGED, len(line.segments) - index), 1, -1) if self._merged_widths else ():
            columns = line.columns[line.segments[index].start : line.segments[index + count - 1].end]
            glyph = self.known(columns, line) if len(columns) in self._merged_widths else None
            if glyph is not None and (text := glyph.text(alphabet)) is not None:
                return text, 1.0, count
        segment = line.segments[index]
        place = _place(segment.top, segment.bottom, line)
        glyph = self.glyphs.get((segment.moved, place))
        if glyph is not None:
            text = glyph.text(alphabet)
            return (text, 1.0, 1) if text is not None else (UNKNOWN, 0.0, 1)
        key = ((segment.moved, place), line.baseline - segment.top, alphabet)
        if key not in self._splits:
            if len(self._splits) >= _MAX_SPLITS:
                self._splits.clear()
            self._splits[key] = self._near(segment.moved, place, alphabet) or self.split(segment, line, alphabet)
        near = self._splits[key]
        return (*near, 1) if near is not None else (UNKNOWN, 0.0, 1)

    def _near(self, moved: Columns, place: Place, alphabet: frozenset[str] | None) -> tuple[str, float] | None:
        """Find the one glyph that is all but equal, if no other one is nearly as near."""
        ink = sum(column.bit_count() for column in moved)
        apart: dict[str, int] = {}  # pixels in which the nearest glyph of each text differs
        for glyph in self._by_width.get(len(moved), ()):
            text = glyph.text(alphabet) if glyph.place == place else None
            if text is not None:
                differing = sum((a ^ b).bit_count() for a, b in zip(moved, glyph.columns, strict=True))
                apart[text] = min(differing, apart.get(text, differing))
        refused = int(_NEAR_SHARE * ink) + 1
        best, second = sorted((*apart.values(), refused, refused))[:2]
        return None if second < 2 * best + 2 else (min(apart, key=apart.__getitem__), 1.0 - best / ink)

    def split(self, segment: Segment, line: Line, alphabet: frozenset[str] | None) -> tuple[str, float] | None:
        """Take letters that touch or hang over each other apart, if known ones make the segment up in only one way.

        Parts of a segment no wider than a digit are believed only with a comma or point among them, as under a 7: else
        an unknown letter might be taken for two known ones.
        """
        if not self._widest_digit:
            return None
        found = set(self._fillings(segment.columns, (0,) * len(segment.columns), 0, line, alphabet, _MAX_TOUCHING))
        found = {text for text in found if not _DOUBLED.search(text)}
        found = {text for text in found if len(text) == min(map(len, found))}  # a point may hide behind a comma
        if len(segment.columns) <= self._widest_digit:
            found = {text for text in found if "," in text or "." in text}
        return (found.pop(), _SPLIT_CONFIDENCE) if len(found) == 1 else None

    def _fillings(
        self, wanted: Columns, done: Columns, start: int, line: Line, alphabet: frozenset[str] | None, depth: int
    ) -> Iterator[str]:
        """Give every text whose glyphs, from `start` on and laid over what is `done`, make up the columns wanted."""
        if done == wanted:
            yield ""
            return
        if depth == 0 or start >= len(wanted):
            return
        for width, glyphs in self._by_width.items():
            for glyph in glyphs if start + width <= len(wanted) else ():
                laid = _laid(glyph, wanted, done, start, line.baseline)
                text = glyph.text(alphabet) if laid is not None else None
                if laid is None or text is None or len(text) > 1:
                    continue
                for overlap in range(min(MAX_OVERLAP, width - 1) + 1):
                    behind = start + width - overlap
                    yield from (text + rest for rest in self._fillings(wanted, laid, behind, line, alphabet, depth - 1))


def _laid(glyph: Glyph, wanted: Columns, done: Columns, start: int, baseline: int) -> Columns | None:
    """Return what is done with a glyph laid over it, or None if it has ink where none is wanted or leaves a hole."""
    shift = baseline - glyph.rise
    if shift < 0 or done[:start] != wanted[:start]:
        return None
    laid = list(done)
    for place, column in enumerate(glyph.columns, start):
        laid[place] |= column << shift
        if laid[place] & ~wanted[place]:
            return None
    return tuple(laid)


def placed(columns: Columns, line: Line) -> tuple[Columns, Place, int]:
    """Return columns moved up to their ink, where they are in the line, and how far above its baseline they begin."""
    moved, top, bottom = lowered(columns)
    return moved, _place(top, bottom, line), line.baseline - top


def _place(top: int, bottom: int, line: Line) -> Place:
    height = line.baseline - line.top
    if (bottom - line.top) * 5 <= height * 2:
        return "high"
    return "low" if (top - line.top) * 10 >= height * 7 else "full"


_LIMITS = Limits(document_bytes=4 << 20, document_values=400_000, document_depth=6)


class _File(BaseModel):
    """A file of glyphs."""

    format: Literal["ludus glyphs"]
    version: Literal[1]
    inner_gap: Annotated[int, Field(strict=True, ge=-1, le=1000)]
    space_gap: Annotated[int, Field(strict=True, ge=0, le=1000)]
    glyphs: list[Glyph]


def save_glyphs(bank: GlyphBank, file: Path) -> None:
    """Write all that a bank knows, replacing the file as a whole."""
    gaps = {"inner_gap": bank.inner_gap, "space_gap": bank.space_gap}
    content = _File(format="ludus glyphs", version=1, glyphs=list(bank.glyphs.values()), **gaps)
    write_atomic(file, encode_document(content.model_dump(mode="json"), _LIMITS))


def load_glyphs(file: Path) -> GlyphBank:
    """Return the bank in a file; raise FormatError if it is damaged, of another version or no file of glyphs."""
    try:
        content = _File.model_validate(decode_document(read_regular(file, limit=_LIMITS.document_bytes), _LIMITS))
    except (FormatError, ValidationError) as error:
        raise FormatError(f"{file} holds no glyphs of version 1: {error}; remove it to relearn them") from None
    bank = GlyphBank()
    bank.inner_gap, bank.space_gap = content.inner_gap, content.space_gap
    for glyph in content.glyphs:
        bank.insert(glyph)
    return bank


def known_glyphs(file: Path) -> GlyphBank:
    """Return the bank in a file, or an empty one if the file is missing or invalid."""
    try:
        return load_glyphs(file)
    except FormatError:
        return GlyphBank()
