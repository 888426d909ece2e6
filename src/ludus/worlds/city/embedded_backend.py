"""The backend for embedded games: one batch of cities, read through their pictures or, if asked for, by their state."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.state import FINITE, MAX_COUNT, WORD
from ludus.envs.base import EnvRequest, check_snapshot
from ludus.worlds.city.actions import CLEAR, FUNDING_LEVELS, Catalogue, embedded_catalogue, embedded_gestures
from ludus.worlds.city.backend import CityBackend, FieldKind, Sight
from ludus.worlds.city.config import CityConfig
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Box, Frame, Gesture, Point, Wait
from ludus.worlds.city.explorer import CHANGED_SHARE, Explorer
from ludus.worlds.city.game.rules import FUNDED, Department, Over
from ludus.worlds.city.interface.layout import BARS, Layout, View
from ludus.worlds.city.interface.menus import MENUS
from ludus.worlds.city.interface.theme import FIELDS
from ludus.worlds.city.painting.typefaces import typeface_of
from ludus.worlds.city.perception.elements import find_elements
from ludus.worlds.city.perception.embedded import (
    KINDS,
    CoverDetector,
    DemandReader,
    Said,
    ThemeReader,
    embedded_bank,
    embedded_fields,
)
from ludus.worlds.city.perception.pictures import opencv
from ludus.worlds.city.strategies import Advice, Question, advise

_HALVES = 4.0  # from this factor on pictures are halved first: nearly the same picture in a third of the time

_SCANS_KEPT = 512  # pictures whose elements are cached


class ThemeView:
    """Reads and plays the games of one theme and size."""

    def __init__(self, games: CityGames, game: int, catalogue: Catalogue) -> None:
        """Take the theme of a game of a batch."""
        interface, display = games.interfaces[game], games.display
        theme, layout = interface.theme, interface.layout
        face = typeface_of(theme.family, theme.size_for(display.height))
        size = (display.width, display.height)
        bank = embedded_bank(theme.name, *size)
        self.gestures = embedded_gestures(catalogue, layout, face)
        self.reader = ThemeReader(embedded_fields(layout, theme), bank, DemandReader(layout.demand, theme), size)
        self.covers = CoverDetector(layout, theme, face)
        self.view: View = layout.view
        self._figures = [place.value for place in layout.fields.values()]
        self._figures += [layout.demand, layout.message, layout.tool_label, layout.speed]
        self._scanned: OrderedDict[tuple[int | bytes, ...], tuple[Point, ...]] = OrderedDict()
        self._cv2 = opencv("seeing the map")

    def scan(self, words: NDArray[np.uint32], before: NDArray[np.uint32] | None) -> tuple[Point, ...]:
        """Return the middles of the elements of a picture that exploring may click.

        Of the map only what covers it counts: a dialog or a window, and what a menu has changed. Displayed figures are
        not elements. There are few distinct interfaces, so most scans come from the cache.

        `words` are its pixels as numbers `(height, width)`; only where they differ from `before` is scanned, if given.
        """
        height, width = words.shape
        span = (0, height, 0, width) if before is None else _span(words != before)
        top, bottom, left, right = span
        blank = words.copy()
        self._blank_map(blank, before)
        for box in self._figures:
            blank[box.area] = 0
        part = np.ascontiguousarray(blank[top:bottom, left:right])
        key = (*span, hashlib.blake2b(part.tobytes(), digest_size=16).digest())
        known = self._scanned.get(key)
        if known is None:
            colors = part.view(np.uint8).reshape(*part.shape, 4)[..., :3]
            found = [element.at for element in find_elements(np.ascontiguousarray(colors))]
            points = [
                Point((left + at.x * (right - left)) / width, (top + at.y * (bottom - top)) / height) for at in found
            ]
            known = tuple(point for point in points if not self.gestures.is_forbidden(point))
            self._scanned[key] = known
            if len(self._scanned) > _SCANS_KEPT:
                self._scanned.popitem(last=False)
        return known

    def _blank_map(self, words: NDArray[np.uint32], before: NDArray[np.uint32] | None) -> None:
        """Blacken the map where nothing covers it, so that no building is taken for a button."""
        area, pane = self.view.box.area, self.covers.pane(words)
        if self.covers.look(words).menu >= 0 and before is not None:
            words[area] *= words[area] != before[area]
            return
        kept = (slice(0), slice(0)) if pane is None else pane.area
        shown = words[kept].copy()
        words[area] = 0
        words[kept] = shown

    def shrink_map(self, pixels: NDArray[np.uint8], damage: Sequence[Box], out: NDArray[np.uint8]) -> None:
        """Resample the map's part of a picture where it has changed.

        Cells are resampled separately, so that a part of the map gives the same pixels as the whole. `damage` is what
        has changed since `out`, `(rows * side, columns * side, 3)`, was written; it is updated in place.
        """
        view, side = self.view, out.shape[0] // self.view.rows
        cells = {_cells(view, box) for box in damage if box.meets(view.box)}
        if sum((right - left) * (bottom - top) for left, top, right, bottom in cells) > view.columns * view.rows:
            cells = {(0, 0, view.columns, view.rows)}
        for left, top, right, bottom in cells:
            x, y = view.box.left + left * view.tile, view.box.top + top * view.tile
            part = pixels[y : y + (bottom - top) * view.tile, x : x + (right - left) * view.tile]
            self._shrink(part, out[top * side : bottom * side, left * side : right * side])

    def shrink_frame(self, pixels: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """Write a picture `(height, width, 4)`, resampled, to `out`, `(height, width, 3)`."""
        while min(pixels.shape[0] / out.shape[0], pixels.shape[1] / out.shape[1]) >= _HALVES:
            half = (pixels.shape[1] // 2, pixels.shape[0] // 2)
            pixels = self._cv2.resize(pixels, half, interpolation=self._cv2.INTER_AREA)
        self._shrink(pixels, out)

    def _shrink(self, pixels: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        small = self._cv2.resize(pixels, (out.shape[1], out.shape[0]), interpolation=self._cv2.INTER_AREA)
        out[...] = small[..., :3]


def _span(flags: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Return the first row and the one behind the last, and the columns likewise, that hold all flags `(h, w)`."""
    rows, columns = np.flatnonzero(flags.any(axis=1)), np.flatnonzero(flags.any(axis=0))
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def _cells(view: View, box: Box) -> tuple[int, int, int, int]:
    """Return first column and row, and those behind the last, of the cells that a part of the picture touches."""
    left, top = (box.left - view.box.left) // view.tile, (box.top - view.box.top) // view.tile
    right, bottom = ((box.right - view.box.left - 1) // view.tile + 1, (box.bottom - view.box.top - 1) // view.tile + 1)
    return max(left, 0), max(top, 0), min(right, view.columns), min(bottom, view.rows)


WAIT_S = 1.0  # on the game's clock: ten days
EMBEDDED_FIELDS = tuple(FieldKind(name, KINDS.get(name, "percent")) for name in (*FIELDS, *BARS))
_FUNDS = FIELDS.index("funds")


class EmbeddedBackend(CityBackend):
    """Embedded games, read through their pictures."""

    advises = True

    def __init__(self, config: CityConfig, request: EnvRequest) -> None:
        self.num_envs, self._config = request.num_envs, config
        self.games = CityGames(
            request.num_envs,
            rules=config.rules,
            display=config.display,
            seed=request.seed,
            first_game=request.first_game,
        )
        self.fields, self.menus = EMBEDDED_FIELDS, tuple(menu.name for menu in MENUS)
        self.catalogue = backend_catalogue(config, tuple(self.games.layouts.values()))
        themes = [interface.theme.name for interface in self.games.interfaces]
        views = {name: ThemeView(self.games, themes.index(name), self.catalogue) for name in set(themes)}
        self._views = [views[name] for name in themes]
        self._wait = (Wait(config.wait_s or WAIT_S),)
        self._reads = config.metrics == "screen"
        self.sight = Sight(self.num_envs, len(self.fields), self.catalogue, config)
        self._explorer = Explorer(self.num_envs, config.menu_buffer, (config.display.width, config.display.height))
        self._turn = np.zeros(self.num_envs, np.int64)  # decisions in the present city
        self._funding = np.zeros((self.num_envs, len(FUNDED)), np.int64)  # levels that were asked for
        self._grain = np.zeros(self.num_envs)  # of the funds that were read last
        self._done: list[Sequence[Gesture]] = [()] * self.num_envs  # of the last decisions

    def begin(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> Sight:
        """Start new cities; see `CityBackend.begin`."""
        if seed is not None:
            self.games.reset(seed)
        else:
            self.games.restart(None if games is None else torch.from_numpy(games))
        chosen = np.ones(self.num_envs, np.bool_) if games is None else games
        self._turn[chosen] = 0
        self._funding[chosen] = len(FUNDING_LEVELS) - 1
        self._explorer.forget(chosen)
        self.sight.forget(chosen)
        self._see(np.flatnonzero(chosen).tolist())
        self.sight.grow_older(chosen)
        return self.sight

    def play(self, decisions: NDArray[np.int64]) -> Sight:
        """Carry out decisions; see `CityBackend.play`."""
        games, sight, kinds = self.games, self.sight, decisions[:, 0]
        sight.forget_outcome()
        for game, (kind, cell) in enumerate(decisions.tolist()):
            if kind in self.catalogue.exploratory:
                self._explore(game, kind, cell)
            else:
                games.act(game, self._gestures(game, kind, cell))
        self._confirm(kinds)
        for game in range(self.num_envs):
            games.act(game, self._wait)
        games.advance()
        self._turn += 1
        self._see(range(self.num_envs))
        sight.grow_older()
        return sight

    def picture(self, game: int) -> Frame:
        """Return a copy of the present picture of a game."""
        return self.games.capture(game).copy()

    def advise(self, questions: Sequence[Question]) -> list[Advice]:
        """Ask strategies, which see the truth, what they would do now."""
        return [advise(self.games, self.catalogue, question) for question in questions]

    def done(self, game: int) -> Sequence[Gesture]:
        """Return the gestures of a game's last decision."""
        return self._done[game]

    def close(self) -> None:
        """Close the games; may be called twice."""
        self.games.close()

    # --- snapshots ---

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as a copy."""
        return {**self.games.snapshot(), **{name: tensor.clone() for name, tensor in self._remembered().items()}}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Sight:
        """Restore the state returned by `snapshot()`; raise SnapshotError if it does not fit."""
        remembered = self._remembered()
        given = {name: tensor for name, tensor in snapshot.items() if name in remembered}
        ranges = {name: (0, MAX_COUNT) if tensor.dtype == torch.int64 else FINITE for name, tensor in given.items()}
        ranges |= {"table_placed": WORD, "table_elements": (0, self._config.menu_buffer)}
        ranges |= {"table_funding": (0, len(FUNDING_LEVELS) - 1)}
        check_snapshot(given, remembered, "the backend of embedded games", ranges)
        self.games.restore({name: tensor for name, tensor in snapshot.items() if name not in remembered})
        self._see(range(self.num_envs))
        for name, tensor in remembered.items():
            tensor.copy_(given[name])
        return self.sight

    def _remembered(self) -> dict[str, Tensor]:
        """State that cannot be recomputed from the games, as tensors that share its memory."""
        sight = self.sight
        arrays = {"age": sight.age, "placed": sight.placed, "elements": sight.elements}
        arrays |= {"turn": self._turn, "funding": self._funding}
        mine = {f"table_{name}": torch.from_numpy(array) for name, array in arrays.items()}
        return mine | {f"explorer_{name}": tensor for name, tensor in self._explorer.state().items()}

    # --- acting ---

    def _gestures(self, game: int, kind: int, cell: int, target: Point | None = None) -> Sequence[Gesture]:
        gestures, what, sight = self._views[game].gestures, self.catalogue.kinds[kind], self.sight
        if what.group == "funding":  # one level up or down; the menu only sets absolute levels
            name, way = what.name.rsplit("_", 1)
            number = FUNDED.index(Department[name.upper()])
            level = int(self._funding[game, number]) + (1 if way == "up" else -1)
            self._funding[game, number] = level = min(max(level, 0), len(FUNDING_LEVELS) - 1)
            done: Sequence[Gesture] = gestures.fixed[f"menu.budget.funding.{name}.{FUNDING_LEVELS[level]}"]
        else:
            done = gestures.of(kind, cell, target)
        is_covered = sight.dialog[game] or sight.window[game] or sight.menu[game] >= 0
        if self._config.closes and is_covered and what.group != "explore":
            done = (*CLEAR, *done)
        self._done[game] = done
        return done

    def _explore(self, game: int, kind: int, cell: int) -> None:
        """Do an exploring action and note what it has shown."""
        look, sight, name = self._views[game], self.sight, self.catalogue.kinds[kind].name
        before = self._paint(game)[1].copy()
        target = None
        if name == "explore_menu":
            target = self._explorer.next_in_menus(game, look.gestures.headings, is_open=bool(sight.menu[game] >= 0))
        elif name == "click_element":
            simulation = self.games.simulation
            keys = simulation.seed, simulation.first_game + game, int(simulation.city["episode"][game])
            target = self._explorer.any_element(game, *keys, int(self._turn[game]))
        self.games.act(game, self._gestures(game, kind, cell, target))
        words = self._paint(game)[1]
        # A pointer that moves over the map changes less.
        sight.changed[game] = np.count_nonzero(words != before) > CHANGED_SHARE * words.size
        is_looking = name == "observe"
        if is_looking or (sight.changed[game] and look.covers.look(words).is_any):
            sight.discovered[game] = self._explorer.note(game, look.scan(words, None if is_looking else before))
            sight.elements[game] = self._explorer.count(game)

    def _confirm(self, kinds: NDArray[np.int64]) -> None:
        """Judge placements by the funds, before time passes."""
        sight = self.sight
        for game in np.flatnonzero(self.catalogue.is_placement[kinds]).tolist():
            if self._reads:
                funds, is_readable, _, grain = self._views[game].reader.read_one("funds", *self._paint(game))
            else:
                funds, is_readable, grain = float(self.games.simulation.city["funds"][game]), True, 0.0
            if is_readable and sight.readable[game, _FUNDS]:
                fall, grain = float(sight.values[game, _FUNDS]) - funds, max(grain, float(self._grain[game]))
                sight.placed[game] = self.catalogue.kinds[int(kinds[game])].judge(fall, grain)

    # --- observing ---

    def _see(self, chosen: Sequence[int]) -> None:
        """Read the pictures of the chosen games."""
        sight = self.sight
        is_over = self.games.simulation.city["over"]
        sight.over[:] = is_over != Over.PLAYING
        sight.bankrupt[:] = is_over == Over.BANKRUPT
        said: list[list[Said]] = []
        for game in chosen:
            if self._reads or sight.map.size or sight.frame.size:
                look, (pixels, words) = self._views[game], self._paint(game)
                if sight.map.size:
                    look.shrink_map(pixels, self.games.painter(game).take_damage(), sight.map[game])
                if sight.frame.size:
                    look.shrink_frame(pixels, sight.frame[game])
                if self._reads:
                    said.append(look.reader.read(pixels, words))
                    sight.menu[game], sight.dialog[game], sight.window[game] = look.covers.look(words)
            if not self._reads:
                self._know(game)
        if said:
            numbers = np.array(said)  # for all games at once, since every small array costs a microsecond
            rows = np.array(chosen)
            sight.values[rows], sight.readable[rows] = numbers[..., 0], numbers[..., 1]
            sight.confidence[rows], self._grain[rows] = numbers[..., 2], numbers[:, _FUNDS, 3]

    def _know(self, game: int) -> None:
        """Take figures from the game's state instead of its picture."""
        sight, interface = self.sight, self.games.interfaces[game]
        sight.values[game] = interface.figures.numbers()
        sight.readable[game], sight.confidence[game] = True, 1.0
        state = interface.state
        sight.menu[game] = state.path[0] if state.path else -1
        sight.dialog[game], sight.window[game] = bool(state.dialogs), bool(state.window) and not state.dialogs

    def _paint(self, game: int) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """Return the present picture of a game, as bytes and as one number for each pixel."""
        pixels = self.games.pixels(game)
        return pixels, pixels.view("<u4")[..., 0]


def backend_catalogue(config: CityConfig, layouts: Sequence[Layout]) -> Catalogue:
    """Return what can be done in games of some layouts; raise ConfigError if they show different parts of the map."""
    views = [layout.view for layout in layouts]
    sizes = sorted({(view.columns, view.rows) for view in views})
    if len(sizes) > 1:
        raise ConfigError(
            f"the themes {', '.join(config.display.themes)} show different parts of the map: "
            f"{', '.join(f'{columns}x{rows} cells' for columns, rows in sizes)}; make the map smaller "
            "(rules.columns, rules.rows) or the picture larger (display.width, display.height)"
        )
    return embedded_catalogue(config.rules, views[0], config.actions)
