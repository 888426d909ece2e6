"""Propose the parts of a profile from pictures of a running game: figures, map, palette and landmark.

Lines of text are read by OCR in every picture. What ends in a date, an amount, a percentage or a number, and says so in
most pictures, is a figure; the words before it are its prefix, or the name of a figure that stands alone. The map is
the largest rectangle of busy ground without text and buttons; buttons that are near each other are the palette.
"""

import functools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ludus.worlds.city.drivers.driver import Box, Frame
from ludus.worlds.city.perception.elements import Outlines, share_rows
from ludus.worlds.city.perception.glyphs import ink_of
from ludus.worlds.city.perception.pictures import opencv
from ludus.worlds.city.perception.reader import RapidOcr
from ludus.worlds.city.perception.reading import PLAIN, Kind, Notation, Value, parse

_NOTATIONS = (PLAIN, Notation(thousands=" ", short_years=True))
_KINDS: tuple[Kind, ...] = ("date", "percent", "money", "number")
_LEAST_SHARE = 0.6  # of the pictures that show a figure in which it must be understood
_READ = 5  # pictures that are read by OCR
_LEAST_SURE = 0.8  # confidence of OCR in a line
_LEVEL = 10  # how much the colours of neighbours in a row may differ where a figure may grow
_MOST_APART = 200  # pixels between a figure and the words that name it
_WORD_GAP, _COLON_GAP = 1.5, 4.0  # of the height: the widest gap between a value and words that belong to it
_MOST_GROWTH = 90  # pixels that the region of a figure grows by on each side
_BLOCK = 8  # pixels: side of the blocks that the map is made of
_BUSY = 4.0  # standard deviation of the gray of a block of the map
_CELLS = (8, 96)  # pixels: sides of a cell that are tried
_NEAR = 24  # pixels between buttons of one palette
_LEAST_BUTTONS, _MOST_BREADTH = 4, 160  # of a palette; trees on a map are in wider groups
_BUTTON_SIDES = (18, 90)


class TextLine(NamedTuple):
    """A line of text in a picture."""

    text: str
    box: Box


class Figure(NamedTuple):
    """A figure that pictures show."""

    name: str  # of its words, or of its kind
    kind: Kind
    box: Box  # where it stands, with room to grow
    prefix: str  # words before the value
    notation: Notation  # how its numbers are written


@dataclass(slots=True)
class _Candidate:
    """Lines of several pictures at the same place that may be a figure."""

    prefix: str
    box: Box
    label: str  # words to the left of a value that stands alone
    texts: list[str] = field(default_factory=list)  # of the value, one per picture


class Proposal(NamedTuple):
    """What was found in pictures of one size."""

    figures: list[Figure]
    map: Box
    cell: tuple[int, int]  # width and height
    buttons: list[Box]  # of the palette
    landmark: Box  # a part that is the same in all pictures


def propose(pictures: Sequence[Frame], engine: RapidOcr) -> Proposal:
    """Return what pictures `(height, width, 3)` of a running game show; seconds per picture, for OCR."""
    numbers = np.linspace(0, len(pictures) - 1, min(_READ, len(pictures))).astype(int)
    chosen = [pictures[number] for number in numbers]
    found = [engine.lines(picture) for picture in chosen]
    lines = [[TextLine(text, box) for text, box, sure in seen if sure >= _LEAST_SURE] for seen in found]
    still = np.all([np.all(picture == pictures[0], axis=2) for picture in pictures], axis=0)
    buttons = _palette(pictures[0], still)
    board = _map(pictures, [*buttons, *_steady_boxes(lines)])
    outside = [[line for line in seen if not line.box.meets(board)] for seen in lines]
    return Proposal(_figures(chosen, outside), board, _cell(pictures[-1], board), buttons, _landmark(still, buttons))


# --- figures ---


def _figures(pictures: Sequence[Frame], lines: Sequence[Sequence[TextLine]]) -> list[Figure]:
    candidates: list[_Candidate] = []
    for seen in lines:
        for line in (_joined(line, seen) for line in seen):
            prefix, value = _split(line.text)
            if not value:
                continue
            for known in candidates:
                if known.prefix == prefix and known.box.meets(line.box) and share_rows(known.box, line.box):
                    break
            else:
                known = _Candidate(prefix, line.box, _label(line, seen))
                candidates.append(known)
            known.box = known.box.around(line.box)
            known.texts.append(value)
    figures: list[Figure] = []
    counts = Counter[str]()
    for figure in filter(None, (_figure(candidate, pictures) for candidate in candidates)):
        counts[figure.name] += 1
        number = counts[figure.name]
        figures.append(figure if number == 1 else figure._replace(name=f"{figure.name}_{number}"))
    return figures


def _joined(line: TextLine, seen: Sequence[TextLine]) -> TextLine:
    """Return a value with the words close before it: what is centred moves sideways as numbers get longer."""
    words = _before(line, seen)
    if words is None or not _understood(line.text):
        return line
    most = (_COLON_GAP if words.text.endswith((":", ";")) else _WORD_GAP) * line.box.height
    is_close = line.box.left - words.box.right <= most
    return TextLine(f"{words.text} {line.text}", words.box.around(line.box)) if is_close else line


def _before(line: TextLine, seen: Sequence[TextLine]) -> TextLine | None:
    """Return the nearest line to the left in the same row, if it says words."""
    left = [other for other in seen if other.box.left < line.box.left and share_rows(other.box, line.box)]
    nearest = max(left, key=lambda other: other.box.left, default=None)
    return None if nearest is None or any(map(str.isdigit, nearest.text)) else nearest


def _split(text: str) -> tuple[str, str]:
    """Return the words before a value, and the value: the longest end of a text that says something; else nothing."""
    if _understood(text):
        return "", text
    match = re.fullmatch(r"(?P<prefix>[A-Za-z][A-Za-z .()/]*[A-Za-z)][:;]?) *(?P<value>[^A-Za-z:;]*\d.*)", text)
    match = match or re.fullmatch(r"(?P<prefix>[A-Za-z][A-Za-z .()/]*[:;]) *(?P<value>.*\d.*)", text)
    if match is None or not _understood(match["value"]):
        return "", ""
    return match["prefix"].replace(";", ":"), match["value"]


def _understood(text: str) -> dict[tuple[Kind, Notation], Value]:
    """Return what a text says, for each kind of value and notation in which it says something."""
    ways = ((kind, notation, parse(text, kind, notation)) for notation in _NOTATIONS for kind in _KINDS)
    return {(kind, notation): value for kind, notation, value in ways if value is not None}


def _figure(candidate: _Candidate, pictures: Sequence[Frame]) -> Figure | None:
    """Return the figure of a candidate, by the first kind that nearly all of its texts are of."""
    said = [_understood(text) for text in candidate.texts]
    if len(said) < _LEAST_SHARE * len(pictures):
        return None
    counts = Counter(way for ways in said for way in ways)
    likely = [way for way, count in counts.items() if count >= _LEAST_SHARE * len(said)]
    if not likely:
        return None
    has_sign = any(sign in text for text in candidate.texts for sign in PLAIN.currencies)
    likely = [way for way in likely if way[0] != "money" or has_sign] or likely
    kind, notation = min(likely, key=lambda way: (_KINDS.index(way[0]), -counts[way]))
    changes = len({str(ways.get((kind, notation))) for ways in said}) > 1
    if not (candidate.prefix or candidate.label or changes or kind in ("date", "money")):
        return None
    name = candidate.prefix or candidate.label or {"money": "funds"}.get(kind, kind)
    return Figure(_slug(name), kind, _grown(candidate.box, pictures), candidate.prefix, notation)


def _label(line: TextLine, seen: Sequence[TextLine]) -> str:
    """Return the words to the left of a value in its row, of the nearest line that says no value."""
    words = _before(line, seen)
    return "" if words is None or line.box.left - words.box.right > _MOST_APART else words.text


def _grown(box: Box, pictures: Sequence[Frame]) -> Box:
    """Return a box with room to grow: to both sides as far as its rows are level in all pictures."""
    box = _tight(box, pictures)
    rows, left, right = slice(box.top, box.bottom), box.left, box.right
    steps = [np.abs(np.diff(picture[rows].astype(np.int16), axis=1)).max(axis=(0, 2)) for picture in pictures]
    level = np.max(steps, axis=0) <= _LEVEL  # between a column and the next
    low, high = max(left - _MOST_GROWTH, 1), min(right + _MOST_GROWTH, pictures[0].shape[1] - 1)
    while left > low and level[left - 1]:
        left -= 1
    while right < high and level[right - 1]:
        right += 1
    return box._replace(left=left, width=right - left)


def _tight(box: Box, pictures: Sequence[Frame]) -> Box:
    """Return a box whose rows end beyond the letters in any of the pictures; OCR has margins as wide as other lines."""
    inked = np.zeros(box.height, np.bool_)
    for picture in pictures:
        ink = ink_of(picture[box.area])
        inked |= True if ink is None else ink.any(axis=1)
    gaps, middle = np.flatnonzero(~inked), box.height // 2
    first = box.top + int(gaps[gaps < middle].max(initial=0))
    last = box.top + int(gaps[gaps > middle].min(initial=box.height - 1))
    top, bottom = max(first - 1, 0), min(last + 2, pictures[0].shape[0])
    return box._replace(top=top, height=bottom - top)


def _slug(words: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")[:36]
    return slug if slug[:1].isalpha() else f"figure_{slug}".rstrip("_")


# --- map ---


def _map(pictures: Sequence[Frame], taken: Sequence[Box]) -> Box:
    """Return the largest rectangle of busy blocks without what is taken."""
    cv2 = opencv("finding the map")
    grays = [cv2.cvtColor(np.ascontiguousarray(picture), cv2.COLOR_RGB2GRAY) for picture in pictures]
    rows, columns = (side // _BLOCK for side in grays[0].shape)
    cut = [gray[: rows * _BLOCK, : columns * _BLOCK].reshape(rows, _BLOCK, columns, _BLOCK) for gray in grays]
    busy = np.median([block.std(axis=(1, 3)) for block in cut], axis=0) >= _BUSY
    closed = cv2.morphologyEx(busy.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8)) > 0
    for box in taken:
        closed[box.top // _BLOCK : -(-box.bottom // _BLOCK), box.left // _BLOCK : -(-box.right // _BLOCK)] = False
    return Box(*(side * _BLOCK for side in _largest(closed)))


def _largest(mask: NDArray[np.bool_]) -> Box:
    """Return the largest rectangle of true values, by the heights of the columns that end in each row."""
    heights, best = np.zeros(mask.shape[1] + 1, np.int64), Box(0, 0, 0, 0)
    for row, values in enumerate(mask):
        heights[:-1] = np.where(values, heights[:-1] + 1, 0)
        open_columns: list[tuple[int, int]] = []  # where rectangles begin, with their heights
        for column, height in enumerate(heights.tolist()):
            start = column
            while open_columns and open_columns[-1][1] >= height:
                start, tall = open_columns.pop()
                if tall * (column - start) > best.width * best.height:
                    best = Box(start, row + 1 - tall, column - start, tall)
            open_columns.append((start, height))
    return best


def _cell(picture: Frame, board: Box) -> tuple[int, int]:
    """Return width and height of a cell of the map: where the picture, moved by as much, is most like itself."""
    gray = picture[board.area].mean(axis=2)
    return _period(np.abs(np.diff(gray, axis=1)).mean(axis=0)), _period(np.abs(np.diff(gray, axis=0)).mean(axis=1))


def _period(values: NDArray[np.float64]) -> int:
    """Return the shortest lag with nearly the strongest correlation of values with themselves."""
    values = values - values.mean()
    lags = range(_CELLS[0], min(_CELLS[1], len(values) // 3) + 1)
    alike = [float(np.mean(values[lag:] * values[:-lag])) for lag in lags]
    around = zip(lags[1:], alike, alike[1:], alike[2:], strict=False)
    peaks = [(lag, here) for lag, before, here, after in around if here >= max(before, after)]
    strongest = max((here for _, here in peaks), default=0.0)
    return next((lag for lag, here in peaks if here >= 0.8 * strongest), 2 * _CELLS[0])


# --- palette and landmark ---


def _palette(picture: Frame, still: NDArray[np.bool_]) -> list[Box]:
    """Return buttons that always look the same and have neighbours, without those inside another."""
    least, most = _BUTTON_SIDES
    kept: list[Box] = []
    for box in sorted(set(Outlines(picture).buttons), key=lambda box: -box.width * box.height):
        short, long = sorted(box[2:])
        fits = least <= short and long <= min(most, 2 * short) and still[box.area].mean() > 0.95
        if fits and not any(map(box.meets, kept)):
            kept.append(box)
    groups = [group for group in _clusters(kept) if len(group) >= _LEAST_BUTTONS]
    groups = [group for group in groups if min(functools.reduce(Box.around, group)[2:]) <= _MOST_BREADTH]
    return sorted((box for group in groups for box in group), key=lambda box: (box.top // 8, box.left))


def _clusters(boxes: Sequence[Box]) -> list[list[Box]]:
    """Return groups of boxes that are near each other."""
    rest, groups = list(boxes), list[list[Box]]()
    while rest:
        group = [rest.pop()]
        for member in group:  # grows while it is read
            near = [box for box in rest if member.inset(-_NEAR, -_NEAR).meets(box)]
            rest = [box for box in rest if box not in near]
            group += near
        groups.append(group)
    return groups


def _landmark(still: NDArray[np.bool_], buttons: Sequence[Box]) -> Box:
    """Return a part that never changes: the palette, or else the largest one."""
    for count in range(len(buttons), 1, -1):
        whole = functools.reduce(Box.around, buttons[:count])
        if still[whole.area].all():
            return whole
    return _largest(still)


def _steady_boxes(lines: Sequence[Sequence[TextLine]]) -> list[Box]:
    """Return the boxes of lines that are in every picture, wherever they differ in what they say."""
    first, *others = lines
    return [line.box for line in first if all(any(line.box.meets(other.box) for other in seen) for seen in others)]
