"""The glyph reader: letters as exact bitmaps, learnt from labelled crops. Fast, and silent about what it never saw."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.perception.binarise import Columns, Line, Segment, line_of, lowered

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
_SPACE_SHARE = 0.35  # of the height of a line: a gap that is a space before one was learnt


@dataclass(slots=True)
class Glyph:
    """A bitmap and what it was said to be.

    Attributes:
        columns: Its columns, moved up to the first row of ink.
        place: Whether it is above or below the middle of the line, or reaches over it.
        rise: Rows from its upper end to the baseline.
        votes: How often it was called what.
    """

    columns: Columns
    place: Place
    rise: int
    votes: dict[str, int] = field(default_factory=dict)

    @property
    def ink(self) -> int:
        """Its number of pixels."""
        return sum(column.bit_count() for column in self.columns)

    def text(self, alphabet: frozenset[str] | None) -> str | None:
        """Returns what it is among the letters that can be meant; None if that is disputed."""
        if len(self.votes) == 1:
            (only,) = self.votes
            return only if alphabet is None or alphabet.issuperset(only) else None
        votes = {text: count for text, count in self.votes.items() if alphabet is None or set(text) <= alphabet}
        if not votes:
            return None
        best = max(votes, key=lambda text: votes[text])
        return best if votes[best] * 4 > sum(votes.values()) * 3 else None


class GlyphBank:
    """Everything learnt about the letters of one game.

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
        """Returns the text of a crop and how sure it is, 0 if a part of it is unknown; the text has a mark there.

        Args:
            crop: Picture of one line, `(height, width, 3)`.
            alphabet: Letters that can be meant, to tell equal bitmaps apart; all if None.
        """
        line = line_of(crop)
        return self.read_line(line, alphabet) if line is not None else ("", 0.0)

    def read_line(self, line: Line, alphabet: frozenset[str] | None = None) -> tuple[str, float]:
        """Does the same for a line that is split already."""
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

    def add(self, columns: Columns, line: Line, text: str, votes: int = 1) -> None:
        """Counts that these columns of a line (from a first to a last one with ink) were said to be `text`."""
        moved, place, rise = placed(columns, line)
        self.insert(Glyph(moved, place, rise, {text: votes}))

    def insert(self, glyph: Glyph) -> None:
        """Takes a glyph up; votes for one that is known are added."""
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
        """Learns how wide gaps inside words and at spaces are."""
        if is_space:
            self.space_gap = min(self.space_gap, pixels) if self.space_gap else pixels
        else:
            self.inner_gap = max(self.inner_gap, pixels)

    def space_width(self, line: Line) -> float:
        """Returns from which gap on a space is read."""
        if self.space_gap > self.inner_gap >= 0:
            return (self.space_gap + self.inner_gap) / 2.0
        return max(3.0, _SPACE_SHARE * line.tall, self.inner_gap + 1.0)

    def known(self, columns: Columns, line: Line) -> Glyph | None:
        """Returns the glyph that looks exactly so."""
        moved, place, _ = placed(columns, line)
        return self.glyphs.get((moved, place))

    def _next(self, line: Line, index: int, alphabet: frozenset[str] | None) -> tuple[str, float, int]:
        """Returns text, confidence and number of segments of what comes next."""
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
        """Finds the one glyph that is all but equal, if no other one is nearly as near."""
        ink = sum(column.bit_count() for column in moved)
        allowed = int(_NEAR_SHARE * ink)
        if allowed == 0:
            return None
        best, best_text, second = allowed + 1, "", 1 << 30
        for glyph in self._by_width.get(len(moved), ()):
            text = glyph.text(alphabet) if glyph.place == place else None
            if text is None:
                continue
            apart = sum((a ^ b).bit_count() for a, b in zip(moved, glyph.columns, strict=True))
            if apart < best:
                best, best_text, second = apart, text, (best if text != best_text else second)
            elif text != best_text:
                second = min(second, apart)
        if best > allowed or second < 2 * best + 2:
            return None
        return best_text, 1.0 - best / ink

    def split(self, segment: Segment, line: Line, alphabet: frozenset[str] | None) -> tuple[str, float] | None:
        """Takes letters that touch or hang over each other apart, if known ones make the segment up in only one way.

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
        """Gives every text whose glyphs, from `start` on and laid over what is `done`, make up the columns wanted."""
        if done == wanted:
            yield ""
            return
        if depth == 0 or start >= len(wanted):
            return
        for width, glyphs in self._by_width.items():
            if start + width > len(wanted):
                continue
            for glyph in glyphs:
                laid = _laid(glyph, wanted, done, start, line.baseline)
                text = glyph.text(alphabet) if laid is not None else None
                if laid is None or text is None or len(text) > 1:
                    continue
                for overlap in range(min(MAX_OVERLAP, width - 1) + 1):
                    behind = start + width - overlap
                    yield from (text + rest for rest in self._fillings(wanted, laid, behind, line, alphabet, depth - 1))


def _laid(glyph: Glyph, wanted: Columns, done: Columns, start: int, baseline: int) -> Columns | None:
    """Returns what is done with a glyph laid over it, or None if it has ink where none is wanted or leaves a hole."""
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
    """Returns columns moved up to their ink, where they are in the line, and how far above its baseline they begin."""
    moved, top, bottom = lowered(columns)
    return moved, _place(top, bottom, line), line.baseline - top


def _place(top: int, bottom: int, line: Line) -> Place:
    height = line.baseline - line.top
    if (bottom - line.top) * 5 <= height * 2:
        return "high"
    return "low" if (top - line.top) * 10 >= height * 7 else "full"
