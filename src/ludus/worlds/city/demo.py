"""Draw City for people: the enlarged screen with the pointer's way on it, and a panel with readings and decisions."""

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from ludus.envs.colors import Color
from ludus.envs.display import Image, Painter, PolicyOutput
from ludus.envs.pygame_tools import Lettering, Picture, new_surface, pygame
from ludus.worlds.city.actions import CONFIRMED, NOT_JUDGED, REFUSED
from ludus.worlds.city.backend import CityBackend, Seen, seen_fields
from ludus.worlds.city.drivers.driver import Click, Drag, Frame, Gesture, Key, Move, Point, Region, Scroll
from ludus.worlds.city.embedded_backend import EmbeddedBackend
from ludus.worlds.city.env import CityEnv
from ludus.worlds.city.perception.embedded import embedded_fields
from ludus.worlds.city.screen_backend import ScreenBackend

ACTING = 0.6  # share of a decision in which gestures are shown; then what came of them


class Stop(NamedTuple):
    """A place that the pointer goes to."""

    share: float  # when it is there
    at: Point  # where
    presses: bool  # whether a button goes down there
    drags: bool = False  # whether a button is held on the way to it


class Track:
    """The pointer's way through the gestures of one decision.

    Attributes:
        start: Where the pointer was before.
        stops: Where it goes, in order.
        keys: Names of the keys that are pressed.
    """

    def __init__(self, start: Point, gestures: Sequence[Gesture] = ()) -> None:
        self.start = start
        self.keys = tuple(gesture.name for gesture in gestures if isinstance(gesture, Key))
        ways = [stop for gesture in gestures for stop in _stops(gesture)]
        each = ACTING / max(len(ways), 1)
        self.stops = tuple(stop._replace(share=each * (number + 1)) for number, stop in enumerate(ways))

    @property
    def end(self) -> Point:
        """Where the pointer is afterwards."""
        return self.stops[-1].at if self.stops else self.start

    def way(self, share: float) -> list[tuple[Point, bool]]:
        """Return where the pointer has been and is, and whether a button was held on the way to each place."""
        way, since = [(self.start, False)], 0.0
        for stop in self.stops:
            if share <= stop.share:
                part, before = (share - since) / (stop.share - since), way[-1][0]
                part = part * part * (3.0 - 2.0 * part)  # it sets off and arrives gently
                x, y = before.x + (stop.at.x - before.x) * part, before.y + (stop.at.y - before.y) * part
                return [*way, (Point(x, y), stop.drags)]
            way.append((stop.at, stop.drags))
            since = stop.share
        return way

    def at(self, share: float) -> Point:
        """Return where the pointer is."""
        return self.way(share)[-1][0]

    def passed(self, share: float) -> tuple[Stop, ...]:
        """Return the stops that the pointer has been at."""
        return tuple(stop for stop in self.stops if stop.share <= share)


def _stops(gesture: Gesture) -> list[Stop]:
    """Return the places that a gesture goes to; when is not known yet."""
    if isinstance(gesture, Click):
        return [Stop(0.0, gesture.at, presses=True)]
    if isinstance(gesture, Drag):
        return [Stop(0.0, gesture.start, presses=True), Stop(0.0, gesture.end, presses=False, drags=True)]
    if isinstance(gesture, Move | Scroll):
        return [Stop(0.0, gesture.at, presses=False)]
    return []


MIDDLE = Point(0.5, 0.5)
_MOST_CONSIDERED = 5  # kinds of action


@dataclass(frozen=True, slots=True)
class Shown:
    """One decision of a game."""

    picture: Frame  # the screen after it
    seen: tuple[Seen, ...]  # what was read of the screen
    step: int  # its number in the city; 0 before the first
    steps: int  # decisions that a city has at most
    kind: str = ""  # what was decided; empty before the first
    probability: float | None = None  # how likely that was, according to the agent; None if unknown
    # The most likely kinds with their probabilities, the first one first.
    considered: tuple[tuple[str, float], ...] = ()
    placed: int = NOT_JUDGED  # the outcome of a placement, as in `ActionKind.judge`
    is_placement: bool = False  # whether that is judged at all
    found: int | None = None  # new elements of the interface; None if none were looked for
    track: Track = field(default_factory=lambda: Track(MIDDLE))  # the way of the pointer
    hint: str = ""  # what a guide said; empty without one


def show(env: CityEnv, before: Shown | None, policy_output: PolicyOutput | None) -> Shown:
    """Return the first game after its last decision."""
    backend, catalogue = env.backend, env.backend.catalogue
    kind, step = int(env.tracker.last_kind[0]), int(env.tracker.step[0])
    start = before.track.end if before is not None else MIDDLE
    hint = env.guide_tracker.hints[0] if env.guide_tracker is not None else ""
    head = Shown(backend.picture(0), seen_fields(backend, 0), step, env.config.steps, hint=hint, track=Track(start))
    if step == 0 or kind < 0:
        return head
    shares = dict(zip(catalogue.names, policy_output.kinds, strict=True)) if policy_output is not None else {}
    name = catalogue.kinds[kind].name
    return replace(
        head,
        kind=name,
        probability=shares.get(name),
        considered=tuple(sorted(shares.items(), key=lambda item: -item[1])[:_MOST_CONSIDERED]),
        placed=int(backend.sight.placed[0]),
        is_placement=bool(catalogue.is_placement[kind]),
        found=int(backend.sight.discovered[0]) if catalogue.kinds[kind].group == "explore" else None,
        track=Track(start, backend.done(0)),
    )


def field_regions(backend: CityBackend) -> dict[str, Region]:
    """Return where the fields of the first game are read, by name."""
    if isinstance(backend, EmbeddedBackend):
        interface = backend.games.interfaces[0]
        return {each.name: each.region for each in embedded_fields(interface.layout, interface.theme)}
    if isinstance(backend, ScreenBackend):
        return {name: backend.profile.regions[backend.profile.readings[name].region] for name, _ in backend.fields}
    return {}


PANEL: Final[Color] = (20, 22, 34)
LINE: Final[Color] = (52, 56, 78)
BRIGHT: Final[Color] = (240, 241, 246)
DIM: Final[Color] = (150, 155, 178)
GOOD: Final[Color] = (96, 211, 148)
BAD: Final[Color] = (255, 107, 107)
UNSURE: Final[Color] = (255, 190, 92)
POINTER: Final[Color] = (255, 64, 160)
RIM: Final[Color] = (16, 16, 24)
BAR: Final[Color] = (92, 142, 255)

VERDICTS = {
    CONFIRMED: ("confirmed: the funds fell by its cost", GOOD),
    REFUSED: ("refused: the funds did not fall", BAD),
    NOT_JUDGED: ("not judged", DIM),
}
PANEL_SHARE = 0.42  # width of the panel over the height of the picture
LEAST_LINES = 600  # of a picture; smaller ones are drawn twice as large or more


def field_color(seen: Seen) -> Color:
    """Return the colour of a reading."""
    if seen.value is None:
        return BAD
    return GOOD if seen.confidence >= 0.9 else UNSURE


# An arrow that points up and to the left, in pixels of a picture of 720 lines, its tip first.
_ARROW = ((0.0, 0.0), (0.0, 27.0), (6.5, 20.5), (11.5, 31.5), (16.0, 29.5), (11.0, 19.0), (20.0, 19.0))
_TRAIL, _TRAIL_HELD = 3.0, 7.0  # widths
_RING = (9.0, 24.0)  # radius when a button goes down, and when the ring has faded
_RING_SHARE = 0.3  # of a decision, for which a ring grows
_LINES = 720.0


class Marks:
    """Draws marks on pictures of one size."""

    def __init__(self, size: tuple[int, int], regions: Mapping[str, Region]) -> None:
        """Take the size `(width, height)` of pictures, and where fields are read, by name."""
        self._size, self._regions, self._unit = size, regions, size[1] / _LINES

    def draw(self, target: pygame.Surface, shown: Shown, share: float) -> None:
        """Draw the marks of a decision at a share of it onto the upper left part of `target`."""
        layer = new_surface(self._size, alpha=True)
        self._frames(layer, shown)
        self._trail(layer, shown.track, share)
        for stop in shown.track.passed(share):
            if stop.presses:
                self._ring(layer, stop, share)
        self._arrow(layer, shown.track.at(share))
        target.blit(layer, (0, 0))

    def _frames(self, layer: pygame.Surface, shown: Shown) -> None:
        for seen in shown.seen:
            region = self._regions.get(seen.name)
            if region is not None:
                grown = region.box(*self._size).inset(-2, -1)
                pygame.draw.rect(layer, field_color(seen), grown, max(round(2 * self._unit), 1), border_radius=2)

    def _trail(self, layer: pygame.Surface, track: Track, share: float) -> None:
        """A line along the way, thicker where a button is held."""
        for (start, _), (end, is_held) in itertools.pairwise(track.way(share)):
            width = max(round((_TRAIL_HELD if is_held else _TRAIL) * self._unit), 1)
            pygame.draw.line(layer, (*POINTER, 150), self._place(start), self._place(end), width)

    def _ring(self, layer: pygame.Surface, stop: Stop, share: float) -> None:
        """A ring that grows and fades, and a dot that stays."""
        age = min((share - stop.share) / _RING_SHARE, 1.0)
        radius = (_RING[0] + (_RING[1] - _RING[0]) * age) * self._unit
        thick = max(round(4 * self._unit), 2)
        place = self._place(stop.at)
        pygame.draw.circle(layer, (*RIM, 120), place, radius + thick / 2, thick * 2)
        pygame.draw.circle(layer, (*POINTER, round(255 - 110 * age)), place, radius, thick)

    def _arrow(self, layer: pygame.Surface, at: Point) -> None:
        x, y = self._place(at)
        corners = [(x + dx * self._unit, y + dy * self._unit) for dx, dy in _ARROW]
        pygame.draw.polygon(layer, POINTER, corners)
        pygame.draw.lines(layer, BRIGHT, True, corners, max(round(2 * self._unit), 1))

    def _place(self, point: Point) -> tuple[float, float]:
        return point.x * self._size[0], point.y * self._size[1]


_MARGIN = 16
_WORDS, _TITLE, _SMALL = 22, 30, 18  # sizes of letters
_ROW = 25
_MOST_LETTERS = 44  # of a hint in a line
_HINT_LINES = 3


class Panel:
    """Draws panels of one size, in pixels of a picture of 720 lines."""

    def __init__(self, width: int, height: int, title: str) -> None:
        """Take the size of the panel, and who plays."""
        self._width, self._height, self._title = width, height, title
        self._letters = Lettering((width, height), PANEL)
        self._unit = self._letters.unit

    def draw(self, target: pygame.Surface, left: int, shown: Shown, share: float) -> None:
        """Draw the panel of a decision at a share of it, from column `left` of `target` on."""
        self._target, self._left, self._top = target, left, float(_MARGIN)
        pygame.draw.rect(target, PANEL, (left, 0, self._width, self._height))
        self._words(self._title, _TITLE, BRIGHT)
        self._top += _ROW + 8
        self._words(f"decision {shown.step:,} of {shown.steps:,}", _WORDS, DIM)
        self._top += _ROW
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
            lines = textwrap.wrap(shown.hint, _MOST_LETTERS, break_long_words=False, break_on_hyphens=False)
            for line in lines[:_HINT_LINES]:
                self._words(line, _SMALL, BRIGHT)
                self._top += _ROW - 4

    def _decision(self, shown: Shown, share: float) -> None:
        self._words(shown.kind or "nothing yet", _TITLE, BRIGHT)
        if shown.probability is not None:
            self._words(f"{shown.probability:.0%}", _TITLE, BAR, 1.0)
        self._top += _ROW + 8
        text, color = _outcome(shown) if share >= ACTING or not shown.track.stops else ("...", DIM)
        self._words(text, _SMALL, color)
        self._top += _ROW

    def _reading(self, seen: Seen) -> None:
        color = field_color(seen)
        self._words(seen.name.replace("_", " "), _WORDS, DIM)
        if seen.value is None:
            self._words(seen.text, _WORDS, color, 0.88)
        else:
            self._words(seen.text, _WORDS, BRIGHT, 0.72)
            self._words(f"{seen.confidence:.0%}", _WORDS, color, 0.88)
        self._words(str(seen.age), _WORDS, DIM if seen.age == 0 else color, 1.0)
        self._top += _ROW

    def _choice(self, name: str, probability: float, *, is_chosen: bool) -> None:
        unit, full = self._unit, self._width - 2 * _MARGIN * self._unit
        box = (self._left + _MARGIN * unit, (self._top - 2) * unit, full * probability, (_ROW - 5) * unit)
        pygame.draw.rect(self._target, BAR if is_chosen else LINE, box, border_radius=3)
        self._words(name, _WORDS, BRIGHT if is_chosen else DIM)
        self._words(f"{probability:.0%}", _WORDS, BRIGHT if is_chosen else DIM, 1.0)
        self._top += _ROW

    def _head(self, *words: str) -> None:
        """A line, and below it the names of columns: the first on the left, the others under what they name."""
        unit = self._unit
        self._top += 6
        y = self._top * unit
        ends = (self._left + _MARGIN * unit, y), (self._left + self._width - _MARGIN * unit, y)
        pygame.draw.line(self._target, LINE, *ends, max(round(unit), 1))
        self._top += 9
        for word, place in zip(words, (None, 0.88, 1.0), strict=False):
            self._words(word, _SMALL, DIM, place)
        self._top += _ROW - 2

    def _words(self, words: str, size: int, color: Color, right: float | None = None) -> None:
        """Write words at the left edge, or with their end at a share of the width."""
        inner, edge = self._width - 2 * _MARGIN * self._unit, self._left + _MARGIN * self._unit
        x, anchor = (edge, "topleft") if right is None else (edge + inner * right, "topright")
        self._letters.text(self._target, words, (x, self._top * self._unit), size, color, anchor)


def _outcome(shown: Shown) -> tuple[str, Color]:
    """Return the outcome of a decision: a placement's verdict, what exploring showed, or the keys that it pressed."""
    if shown.is_placement:
        return VERDICTS[shown.placed]
    if shown.found is not None:
        return (f"new on the screen: {shown.found}", GOOD) if shown.found else ("nothing new on the screen", DIM)
    return (f"keys: {', '.join(shown.track.keys)}" if shown.track.keys else "", DIM)


class CityPainter(Painter):
    """Draws the first game: the pointer acts on the screen as it was, then comes the screen as it is."""

    shows_policy = True

    def __init__(self, env: CityEnv, names: Sequence[str]) -> None:
        super().__init__(env)
        self._city = env
        self._policy_output: PolicyOutput | None = None
        self._before = self._now = show(env, None, None)
        height, width = self._now.picture.shape[:2]
        times = -(-LEAST_LINES // height)
        self._width, self._height = width * times, height * times
        beside = round(PANEL_SHARE * self._height)
        whole = (self._width + beside + (self._width + beside) % 2, self._height + self._height % 2)  # for videos
        self._canvas, self._picture = new_surface(whole), Picture(whole)
        self._panel = Panel(whole[0] - self._width, self._height, names[0] if names else env.spec.id)
        self._marks = Marks((self._width, self._height), field_regions(env.backend))

    def show_policy(self, policy_output: PolicyOutput) -> None:
        """See `Painter`."""
        self._policy_output = policy_output

    def on_step(self) -> None:
        """See `Painter`."""
        self._before = self._now
        self._now, self._policy_output = show(self._city, self._now, self._policy_output), None

    def paint(self, share: float = 1.0) -> Image:
        """See `Painter`."""
        shown = self._now
        if share < ACTING and shown.track.stops:  # until all is done there is nothing new to see
            shown = replace(shown, picture=self._before.picture, seen=self._before.seen)
        height, width = shown.picture.shape[:2]
        surface = pygame.image.frombuffer(np.ascontiguousarray(shown.picture).tobytes(), (width, height), "RGB")
        self._canvas.blit(pygame.transform.scale(surface, (self._width, self._height)), (0, 0))
        self._marks.draw(self._canvas, shown, share)
        self._panel.draw(self._canvas, self._width, shown, share)
        return self._picture.of(self._canvas)
