"""The panel beside City's screen: what was read and how surely, what was decided, and what became of it."""

from ludus.envs.city.demo.looks import BAR, BRIGHT, DIM, GOOD, LINE, PANEL, VERDICTS, field_color
from ludus.envs.city.demo.scene import Shown
from ludus.envs.city.demo.track import ACTING
from ludus.envs.city.seen import Seen
from ludus.envs.colors import Color
from ludus.envs.lettering import Lettering
from ludus.envs.pygame_tools import pygame

_MARGIN = 16
_WORDS, _TITLE, _SMALL = 22, 30, 18  # sizes of letters
_ROW = 25
_MOST_LETTERS = 44  # of a hint in a line
_HINT_LINES = 3


class Panel:
    """Draws panels of one size, in pixels of a picture of 720 lines."""

    def __init__(self, width: int, height: int, title: str) -> None:
        """Takes the size of the panel, and who plays."""
        self._width, self._height, self._title = width, height, title
        self._letters = Lettering((width, height), PANEL)
        self._unit = self._letters.unit

    def draw(self, target: pygame.Surface, left: int, shown: Shown, share: float) -> None:
        """Draws the panel of a decision at a share of it, from column `left` of `target` on."""
        self._target, self._left, self._top = target, left, float(_MARGIN)
        pygame.draw.rect(target, PANEL, (left, 0, self._width, self._height))
        self._words(self._title, _TITLE, BRIGHT)
        self._below(_ROW + 8)
        self._words(f"decision {shown.step:,} of {shown.steps:,}", _WORDS, DIM)
        self._below(_ROW)
        self._head("read off the screen", "sure", "age")
        for seen in shown.seen:
            self._reading(seen)
        self._head("decided")
        self._decision(shown, share)
        if shown.considered:
            self._head("considered")
            for name, probability in shown.considered:
                self._choice(name, probability, is_chosen=name == shown.kind)
        if shown.hint:
            self._head("guide")
            for line in _lines(shown.hint):
                self._words(line, _SMALL, BRIGHT)
                self._below(_ROW - 4)

    def _decision(self, shown: Shown, share: float) -> None:
        self._words(shown.kind or "nothing yet", _TITLE, BRIGHT)
        if shown.probability is not None:
            self._words(f"{shown.probability:.0%}", _TITLE, BAR, 1.0)
        self._below(_ROW + 8)
        text, color = _outcome(shown) if share >= ACTING or not shown.track.stops else ("...", DIM)
        self._words(text, _SMALL, color)
        self._below(_ROW)

    def _reading(self, seen: Seen) -> None:
        color = field_color(readable=seen.value is not None, confidence=seen.confidence)
        self._words(seen.name.replace("_", " "), _WORDS, DIM)
        if seen.value is None:
            self._words(seen.text, _WORDS, color, 0.88)
        else:
            self._words(seen.text, _WORDS, BRIGHT, 0.72)
            self._words(f"{seen.confidence:.0%}", _WORDS, color, 0.88)
        self._words(str(seen.age), _WORDS, DIM if seen.age == 0 else color, 1.0)
        self._below(_ROW)

    def _choice(self, name: str, probability: float, *, is_chosen: bool) -> None:
        unit, full = self._unit, self._width - 2 * _MARGIN * self._unit
        box = (self._left + _MARGIN * unit, (self._top - 2) * unit, full * probability, (_ROW - 5) * unit)
        pygame.draw.rect(self._target, BAR if is_chosen else LINE, box, border_radius=3)
        self._words(name, _WORDS, BRIGHT if is_chosen else DIM)
        self._words(f"{probability:.0%}", _WORDS, BRIGHT if is_chosen else DIM, 1.0)
        self._below(_ROW)

    def _head(self, *words: str) -> None:
        """A line, and below it the names of columns: the first on the left, the others under what they name."""
        unit = self._unit
        self._below(6)
        y = self._top * unit
        ends = (self._left + _MARGIN * unit, y), (self._left + self._width - _MARGIN * unit, y)
        pygame.draw.line(self._target, LINE, *ends, max(round(unit), 1))
        self._below(9)
        for word, place in zip(words, (None, 0.88, 1.0), strict=False):
            self._words(word, _SMALL, DIM, place)
        self._below(_ROW - 2)

    def _words(self, words: str, size: int, color: Color, right: float | None = None) -> None:
        """Writes words at the left edge, or with their end at a share of the width."""
        inner, edge = self._width - 2 * _MARGIN * self._unit, self._left + _MARGIN * self._unit
        x, anchor = (edge, "topleft") if right is None else (edge + inner * right, "topright")
        self._letters.text(self._target, words, (x, self._top * self._unit), size, color, anchor)

    def _below(self, lines: float) -> None:
        self._top += lines


def _outcome(shown: Shown) -> tuple[str, Color]:
    """Says what became of a decision: a placement's verdict, what exploring has shown, or the keys that it pressed."""
    if shown.is_placement:
        return VERDICTS[shown.placed]
    if shown.found is not None:
        return (f"new on the screen: {shown.found}", GOOD) if shown.found else ("nothing new on the screen", DIM)
    return (f"keys: {', '.join(shown.track.keys)}" if shown.track.keys else "", DIM)


def _lines(hint: str) -> list[str]:
    """Breaks a hint into lines between its words; what does not fit is left out."""
    lines = [""]
    for word in hint.split():
        if len(lines[-1]) + len(word) >= _MOST_LETTERS:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines[:_HINT_LINES]
