"""Explore the interface of a game that no profile describes: try controls, record their effects, draw a map of screens.

    python -m benchmarks.city_explore FOLDER --command "lincity-ng -w -s" --clicks 60

Nothing is known but how the game is started. Elements are found by their outlines; each is clicked once per screen,
those of rare sizes first. What changes by itself is ignored. A click that ends the game is recorded, too.
"""

import argparse
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.config import dump_yaml
from ludus.core.errors import GameLostError
from ludus.core.files import write_atomic, write_text_atomic
from ludus.worlds.city.drivers.driver import Box, Click, Frame, Key, Wait
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.explorer import CHANGED_SHARE, MenuGraph
from ludus.worlds.city.new_profile import bare_profile, draw_boxes, known_parts
from ludus.worlds.city.perception.elements import UiElement, find_elements
from ludus.worlds.city.perception.pictures import opencv, png

EffectKind: TypeAlias = Literal["nothing", "marks", "opens", "leaves", "ends"]
COLORS: dict[EffectKind, tuple[int, int, int]] = {
    "nothing": (150, 150, 150),  # no visible change
    "marks": (30, 120, 230),  # a small change, such as a chosen tool
    "opens": (0, 160, 0),  # a part of the screen that was not there before: a menu, a panel or a window
    "leaves": (220, 120, 0),  # another screen
    "ends": (220, 0, 0),  # the end of the game
}
_OPENS, _LEAVES = 0.012, 0.35  # shares of the pixels that change
_SETTLED_S, _LOOKS = 0.3, 4  # how often, and how long, the game is watched to see what changes by itself
_ALIKE = 3  # pixels by which the sides of elements of one size may differ
_MOST_CLICKS = 15  # on a screen other than the first: lists are long and their entries alike
_BACK = 2  # keys pressed to get back, before the game is started again
_EMPTY = Box(0, 0, 0, 0)
_COLUMNS = 2


@dataclass(slots=True)
class Effect:
    """What a click on an element did."""

    number: int  # of the click
    screen: str  # where the element was
    element: UiElement
    kind: EffectKind
    changed: Box  # around what changed; empty if nothing did
    led_to: str  # screen that was seen afterwards


@dataclass(slots=True)
class InterfaceMap:
    """Screens and effects of one game.

    Attributes:
        graph: Screens, and the clicks between them.
        pictures: A picture of each screen, by name, in the order in which they were seen.
        effects: All clicks, in order.
        starts: How often the game had to be started.
    """

    graph: MenuGraph
    pictures: dict[str, Frame] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    starts: int = 0

    def draw(self) -> Frame:
        """Return all screens with numbered elements in the colours of their effects, and where clicks led."""
        names = list(self.pictures)
        tiles = []
        for index, name in enumerate(names):
            done = [effect for effect in self.effects if effect.screen == name]
            seen = self.pictures[name]
            boxes = [(_label(effect, names), _box(effect.element, seen), COLORS[effect.kind]) for effect in done]
            tiles.append(_titled(draw_boxes(seen, boxes), f"screen {index}, clicks: {len(done)}"))
        home, *others = tiles
        rows = [_shrunk(others[start : start + _COLUMNS], home.shape[1]) for start in range(0, len(others), _COLUMNS)]
        return np.concatenate((_legend(self, home.shape[1]), home, *rows))

    def save(self, folder: Path) -> None:
        """Write `interface.png`, the drawing, and `interface.yaml`, every click with its effect."""
        names = list(self.pictures)
        clicks = [
            {
                "click": effect.number,
                "screen": names.index(effect.screen),
                "at": list(effect.element.at.pixel(self.graph.width, self.graph.height)),
                "looks": effect.element.kind,
                "effect": effect.kind,
                "changed": list(effect.changed),
                "led_to": names.index(effect.led_to) if effect.led_to in names else -1,
            }
            for effect in self.effects
        ]
        write_atomic(folder / "interface.png", png(self.draw()))
        write_text_atomic(folder / "interface.yaml", dump_yaml({"screens": len(names), "clicks": clicks}))


def explore(driver: X11Driver, clicks: int) -> InterfaceMap:
    """Start a game by its profile, click on as many elements, and return what they did."""
    found = InterfaceMap(MenuGraph(driver.width, driver.height))
    busy = _start(driver, found)
    for number in range(1, clicks + 1):
        before = driver.capture()
        screen, home = _visit(found, before, busy), next(iter(found.pictures))
        fresh = found.graph.unexplored(screen)
        tried = sum(effect.screen == screen for effect in found.effects)
        if not fresh or (screen != home and tried >= _MOST_CLICKS):
            busy = _go_back(driver, found, busy, home)
            before = driver.capture()
            screen = _visit(found, before, busy)
            fresh = found.graph.unexplored(screen)
        if not fresh:
            break
        element = _rarest(fresh, before)
        outcome: tuple[EffectKind, Box] = ("ends", _EMPTY)
        led_to = screen
        try:
            driver.do([Click(element.at)])
            after = driver.capture()
        except GameLostError:
            busy = _start(driver, found)
        else:
            outcome, led_to = _effect(before, after, busy), _visit(found, after, busy)
        found.graph.clicked(screen, element, led_to)
        found.effects.append(Effect(number, screen, element, *outcome, led_to))
    return found


def _start(driver: X11Driver, found: InterfaceMap) -> NDArray[np.bool_]:
    """Start the game; return which pixels `(height, width)` change by themselves."""
    first = driver.open()
    found.starts += 1
    busy = np.zeros(first.shape[:2], np.bool_)
    for _ in range(_LOOKS):
        driver.do([Wait(_SETTLED_S)])
        busy |= np.any(driver.capture() != first, axis=2)
    return busy


def _visit(found: InterfaceMap, frame: Frame, busy: NDArray[np.bool_]) -> str:
    """Note the elements of a picture that do not move by themselves; return the name of its screen."""
    elements = [element for element in find_elements(frame) if not busy[_box(element, frame).area].mean() > 0.5]
    name = found.graph.visit(elements)
    found.pictures.setdefault(name, frame)
    return name


def _go_back(driver: X11Driver, found: InterfaceMap, busy: NDArray[np.bool_], home: str) -> NDArray[np.bool_]:
    """Go back to the first screen by Escape, or start the game again; return what changes by itself."""
    for _ in range(_BACK):
        try:
            driver.do([Key("Escape")])
        except GameLostError:
            break
        if _visit(found, driver.capture(), busy) == home and found.graph.unexplored(home):
            return busy
    return _start(driver, found)


def _effect(before: Frame, after: Frame, busy: NDArray[np.bool_]) -> tuple[EffectKind, Box]:
    differs = np.any(before != after, axis=2) & ~busy
    share = float(differs.mean())
    if share < CHANGED_SHARE / 20:
        return "nothing", _EMPTY
    box = Box(*opencv("comparing pictures").boundingRect(differs.astype(np.uint8)))
    return ("leaves" if share >= _LEAVES else "opens" if share >= _OPENS else "marks"), box


def _rarest(elements: list[UiElement], frame: Frame) -> UiElement:
    """Return the newest of the elements of the rarest size: buttons are rarer than the tiles and trees of a map."""
    sizes = [tuple(side // _ALIKE for side in _box(element, frame)[2:]) for element in elements]
    counts = Counter(sizes)
    return min(zip(elements, sizes, range(len(sizes)), strict=True), key=lambda one: (counts[one[1]], -one[2]))[0]


def _box(element: UiElement, frame: Frame) -> Box:
    return element.region.box(frame.shape[1], frame.shape[0])


# --- drawing ---


def _label(effect: Effect, names: list[str]) -> str:
    moved = effect.led_to != effect.screen and effect.led_to in names
    return f"{effect.number}>{names.index(effect.led_to)}" if moved else str(effect.number)


def _titled(picture: Frame, title: str) -> Frame:
    cv2 = opencv("drawing pictures")
    bar = np.full((18, picture.shape[1], 3), 30, np.uint8)
    cv2.putText(bar, title, (4, 13), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (255, 255, 255), 1, cv2.LINE_AA)
    return np.concatenate((bar, picture))


def _legend(found: InterfaceMap, width: int) -> Frame:
    cv2, bar, left = opencv("drawing pictures"), np.full((24, width, 3), 255, np.uint8), 6
    for kind, color in COLORS.items():
        text = f"{kind} {sum(effect.kind == kind for effect in found.effects)}"
        cv2.putText(bar, text, (left, 16), cv2.FONT_HERSHEY_SIMPLEX, 0.5, color, 1, cv2.LINE_AA)
        left += 120
    return bar


def _shrunk(tiles: list[Frame], width: int) -> Frame:
    """Return pictures side by side, as wide as one."""
    cv2, each = opencv("drawing pictures"), width // _COLUMNS
    height = round(each * tiles[0].shape[0] / tiles[0].shape[1])
    row = np.zeros((height, width, 3), np.uint8)
    for index, tile in enumerate(tiles):
        row[:, index * each : (index + 1) * each] = cv2.resize(tile, (each, height), interpolation=cv2.INTER_AREA)
    return row


def main() -> None:
    """Explore a game, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for interface.png and interface.yaml")
    parser.add_argument("--command", help="that starts the game, with its arguments")
    parser.add_argument("--base", type=Path, help="YAML file with the parts of the profile that are known")
    parser.add_argument("--size", default="1024x768", help="width and height of the virtual screen")
    parser.add_argument("--clicks", type=int, default=60, help="controls to try")
    asked = parser.parse_args()
    with X11Driver(bare_profile(asked.folder, known_parts(asked.command, asked.base, asked.size, ()), print)) as driver:
        found = explore(driver, asked.clicks)
    found.save(asked.folder)
    print(Counter(effect.kind for effect in found.effects).most_common())
    print(
        f"[OK] {len(found.pictures)} screens, {found.starts} starts of the game; see {asked.folder / 'interface.png'}"
    )


if __name__ == "__main__":
    main()
