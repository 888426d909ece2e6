"""How glyphs are learned: a label is laid along the segments of its crop, and only what fits in one way is believed."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from ludus.worlds.city.drivers.driver import Frame
from ludus.worlds.city.perception.glyphs import MAX_OVERLAP, GlyphBank, Line, line_of

# Costs: an unknown letter, another look of a known one, parts that are joined or torn, two
# segments of three letters that cannot be told apart, and what was said otherwise.
_NEW, _OTHER, _ODD, _BLOCK, _WRONG = 2, 3, 6, 7, 100
# Segments and letters of a step: one letter, torn ones, joined ones, and two segments of three letters.
_STEPS = ((1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (2, 3))
_MOST = 3  # segments or letters of a step
_LEVELS = (0.5, 0.485, 0.515)
_MAX_PASSES = 4


@dataclass(frozen=True, slots=True)
class Label:
    """A crop and what it says."""

    crop: Frame
    text: str


@dataclass(frozen=True, slots=True)
class _Way:
    """The cheapest ways to lay letters along segments from some point on."""

    cost: int
    count: int  # of ways that cost as little
    segments: int = 0  # of the first step
    letters: int = 0


def learn_all(bank: GlyphBank, labels: Iterable[Label]) -> None:
    """Learn from labelled crops, those that are clear first; what is read right already teaches nothing new."""
    waiting = list(labels)
    for _ in range(_MAX_PASSES):
        unread = (label for label in waiting if bank.read(label.crop) != (label.text, 1.0))
        rest = [label for label in unread if not learn(bank, label.crop, label.text)]
        if not rest or len(rest) == len(waiting):
            return
        waiting = rest


def learn(bank: GlyphBank, crop: Frame, text: str, *, spaces: bool = True) -> bool:
    """Learn what the letters of a crop of one line look like; return False if `text` does not fit in exactly one way.

    `spaces` says whether the text has its spaces where they are; OCR leaves some out.
    """
    words = text.split()
    if not words or not _learn_at(bank, crop, words, _LEVELS[0], spaces):
        return False
    for level in _LEVELS[1:]:  # other colours round smooth edges the other way
        _learn_at(bank, crop, words, level, spaces)
    return True


def _learn_at(bank: GlyphBank, crop: Frame, words: list[str], level: float, has_spaces: bool) -> bool:
    line, letters = line_of(crop, level), "".join(words)
    if line is None:
        return False
    steps = _believed(bank, line, letters)
    spaces = set(accumulate(map(len, words)))  # letters before which a space stands
    segment, letter, end = 0, 0, -1
    for step in steps:
        start = line.segments[segment].start
        if end >= 0 and has_spaces:
            bank.note_gap(start - end, is_space=letter in spaces)
        end = line.segments[segment + step.segments - 1].end
        bank.add(line.columns[start:end], line, letters[letter : letter + step.letters])
        segment, letter = segment + step.segments, letter + step.letters
    return bool(steps)


def _believed(bank: GlyphBank, line: Line, letters: str) -> list[_Way]:
    """Return the steps along segments and letters; none unless there is one cheapest way and little of it is new.

    Either every unknown letter has its own segment, or only one step is unknown: where several unknown letters
    touch, they cannot be told apart.
    """
    ways = _ways(bank, line, letters)
    if ways[0][0].count != 1 or ways[0][0].cost >= 2 * _WRONG:
        return []
    steps: list[_Way] = []
    unknown: list[_Way] = []
    segment = letter = 0
    while segment < len(line.segments):
        way = ways[segment][letter]
        segment, letter = segment + way.segments, letter + way.letters
        steps.append(way)
        if way.cost > ways[segment][letter].cost:
            unknown.append(way)
    are_plain = all(step.segments == step.letters == 1 for step in unknown)
    return steps if are_plain or (len(unknown) <= 1 and ways[0][0].cost < _WRONG) else []


def _ways(bank: GlyphBank, line: Line, letters: str) -> list[list[_Way]]:
    """Return, for every segment and letter, the cheapest ways from there to the end of both."""
    height, width = len(line.segments), len(letters)
    ways = [[_Way(1 << 20, 0)] * (width + _MOST) for _ in range(height + _MOST)]  # none beyond the end of either
    ways[height][width] = _Way(0, 1)
    for segment in range(height - 1, -1, -1):
        for letter in range(width - 1, -1, -1):
            options: list[_Way] = []
            for across, down in _STEPS:
                rest = ways[segment + across][letter + down]
                if rest.count:
                    cost = _cost(bank, line, segment, across, letters[letter : letter + down])
                    options.append(_Way(rest.cost + cost, rest.count, across, down))
            if options:
                least = min(options, key=lambda way: way.cost)
                count = sum(way.count for way in options if way.cost == least.cost)
                ways[segment][letter] = _Way(least.cost, count, least.segments, least.letters)
    return ways


def _cost(bank: GlyphBank, line: Line, first: int, segments: int, text: str) -> int:
    start, end = line.segments[first].start, line.segments[first + segments - 1].end
    known = bank.known(line.columns[start:end], line)
    if known is not None:
        return 0 if text in known.votes else _WRONG
    if segments == 1 and len(text) == 1:
        widths = bank.widths.get(text, {end - start})
        return _NEW if text not in bank.widths else _OTHER if end - start <= max(widths) + 1 else _WRONG
    if segments == 1:
        if not _can_join(bank, text, end - start):
            return _WRONG
        parts = bank.split(line.segments[first], line, frozenset(text)) if set(text) <= bank.widths.keys() else None
        return 0 if parts is not None and parts[0] == text else _ODD
    gaps = [line.segments[i + 1].start - line.segments[i].end for i in range(first, first + segments - 1)]
    if len(text) > 1:
        inner = line.segments[first : first + segments]
        are_new = all(bank.known(segment.columns, line) is None for segment in inner)
        return _BLOCK if are_new and max(gaps) <= 2 else _WRONG
    return _ODD if max(gaps) <= 2 and text not in bank.widths else _WRONG


def _can_join(bank: GlyphBank, text: str, width: int) -> bool:
    """Whether letters that touch can be so wide, as far as it is known how wide each is."""
    least = sum(min(bank.widths.get(letter, (1,))) for letter in text) - MAX_OVERLAP * (len(text) - 1)
    most = sum(max(bank.widths.get(letter, (width,))) for letter in text)
    return least <= width <= most
