"""How glyphs are learnt: a label is laid along the segments of its crop, and only what fits in one way is believed."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.perception.binarise import Line, line_of
from ludus.envs.city.perception.glyphs import GlyphBank

_NEW, _ODD, _WRONG = 1, 3, 7  # costs: an unknown letter, parts that are joined or torn, a letter known as another
_MAX_JOINED = 3
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


def learn_all(bank: GlyphBank, labels: Iterable[Label]) -> int:
    """Learns from labelled crops, those that are clear first; returns how many were understood."""
    waiting, understood = list(labels), 0
    for _ in range(_MAX_PASSES):
        rest = [label for label in waiting if not learn(bank, label.crop, label.text)]
        understood += len(waiting) - len(rest)
        if not rest or len(rest) == len(waiting):
            break
        waiting = rest
    return understood


def learn(bank: GlyphBank, crop: Frame, text: str, votes: int = 1) -> bool:
    """Learns what the letters of a crop look like; returns False if the label does not fit it in exactly one way."""
    letters = "".join(text.split())
    if not letters or not _learn_at(bank, crop, text, letters, _LEVELS[0], votes):
        return False
    for level in _LEVELS[1:]:  # other colours round smooth edges the other way
        _learn_at(bank, crop, text, letters, level, votes)
    return True


def _learn_at(bank: GlyphBank, crop: Frame, text: str, letters: str, level: float, votes: int) -> bool:
    line = line_of(crop, level)
    if line is None:
        return False
    ways = _ways(bank, line, letters)
    if ways[0][0].count != 1 or ways[0][0].cost >= _WRONG * max(1, len(letters) // 4):
        return False
    spaces = _spaces(text)
    segment, letter, end = 0, 0, -1
    while segment < len(line.segments):
        way = ways[segment][letter]
        start = line.segments[segment].start
        if end >= 0:
            bank.note_gap(start - end, is_space=letter in spaces)
        segment, first = segment + way.segments, letter
        letter += way.letters
        end = line.segments[segment - 1].end
        bank.add(line.columns[start:end], line, letters[first:letter], votes)
    return True


def _ways(bank: GlyphBank, line: Line, letters: str) -> list[list[_Way]]:
    """Returns, for every segment and letter, the cheapest ways from there to the end of both."""
    height, width = len(line.segments), len(letters)
    never = _Way(1 << 20, 0)
    ways = [[never] * (width + 1) for _ in range(height + 1)]
    ways[height][width] = _Way(0, 1)
    for segment in range(height - 1, -1, -1):
        for letter in range(width - 1, -1, -1):
            options: list[_Way] = []
            for across, down in _steps(height - segment, width - letter):
                rest = ways[segment + across][letter + down]
                if rest.count:
                    cost = _cost(bank, line, segment, across, letters[letter : letter + down])
                    options.append(_Way(rest.cost + cost, rest.count, across, down))
            if options:
                least = min(options, key=lambda way: way.cost)
                count = sum(way.count for way in options if way.cost == least.cost)
                ways[segment][letter] = _Way(least.cost, count, least.segments, least.letters)
    return ways


def _steps(segments: int, letters: int) -> list[tuple[int, int]]:
    torn = [(count, 1) for count in range(2, min(_MAX_JOINED, segments) + 1)]
    joined = [(1, count) for count in range(2, min(_MAX_JOINED, letters) + 1)]
    return [(1, 1), *torn, *joined]


def _cost(bank: GlyphBank, line: Line, first: int, segments: int, text: str) -> int:
    start, end = line.segments[first].start, line.segments[first + segments - 1].end
    known = bank.known(line.columns[start:end], line)
    if known is not None:
        return 0 if text in known.votes else _WRONG
    if segments == 1 and len(text) == 1:
        return _NEW
    widest_gap = max(
        (line.segments[i + 1].start - line.segments[i].end for i in range(first, first + segments - 1)), default=0
    )
    return _ODD if widest_gap <= 2 else _WRONG


def _spaces(text: str) -> set[int]:
    """Returns before which letters, spaces not counted, a space stands."""
    places, letters = set(), 0
    for before, letter in pairwise(text):
        letters += not before.isspace()
        if before.isspace() and not letter.isspace():
            places.add(letters)
    return places
