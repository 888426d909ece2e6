"""The painter of one game: keeps its picture and redraws only what has changed."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.city.drivers.driver import Box
from ludus.worlds.city.game.placement import ZONES
from ludus.worlds.city.game.rules import ROAD_CAPACITY, Flag, Kind, Tool
from ludus.worlds.city.game.simulation import CitySimulation
from ludus.worlds.city.interface.machine import Interface
from ludus.worlds.city.interface.menus import Overlay
from ludus.worlds.city.painting.hud import Hud, draw_mark
from ludus.worlds.city.painting.sprites import LEVELS

_FLAGS = {Overlay[flag.name]: flag for flag in Flag if flag not in (Flag.ROAD, Flag.PARK)}  # they have no overlay


def overlay_levels(simulation: CitySimulation, game: int, overlay: Overlay) -> NDArray[np.int32]:
    """Return the step of every cell of a game, `(cells,)`; what is reached by a service is warm, the rest is cold."""
    cells = simulation.cells
    if overlay in _FLAGS:
        reached = (cells.flags[game] & int(_FLAGS[overlay])) != 0
        return np.where(reached, np.int32(4), np.int32(0))
    if overlay == Overlay.TRAFFIC:
        share = np.where(cells.kind[game] == Kind.ROAD, cells.load[game] / ROAD_CAPACITY, 0.0)
    elif overlay == Overlay.POLLUTION:
        share = cells.air[game] / 100.0
    else:
        share = cells.value[game] / 100.0
    levels: NDArray[np.int32] = np.clip(share * LEVELS, 0, LEVELS - 1).astype(np.int32)
    return levels


_MOST_DAMAGE = 1000  # parts of the picture; more of them are all of it
_TINTED = 1 << 20  # added to the key of a cell that is drawn with an overlay

_Cover: TypeAlias = tuple[object, Box, Callable[[], pygame.Surface]]  # what tells it apart, where it is, its picture


class Painter:
    """Paints one game.

    What covers the map (menus, dialogs, windows, tooltips, the mark at the pointer) is drawn on top of the scene, which
    is kept without it, so that uncovered parts are restored by a copy.

    Attributes:
        pixels: `(height, width, 4)` the picture; red, green, blue, and a byte without meaning.
        canvas: The same memory as a surface.
    """

    def __init__(self, hud: Hud, simulation: CitySimulation, interface: Interface) -> None:
        self._hud, self._simulation, self._interface = hud, simulation, interface
        layout = hud.layout
        size = (layout.width, layout.height)
        self.pixels: NDArray[np.uint8] = np.zeros((layout.height, layout.width, 4), np.uint8)
        self.canvas = pygame.image.frombuffer(self.pixels.data, size, "RGBX")  # shares the memory of the array
        self._scene = new_surface(size)
        view = layout.view
        self._places = [
            (view.box.left + column * view.tile, view.box.top + row * view.tile)
            for row in range(view.rows)
            for column in range(view.columns)
        ]
        self._map_size = (simulation.rules.columns, simulation.rules.rows)
        self.forget()

    def forget(self) -> None:
        """Redraw everything next time."""
        self._drawn = np.full(len(self._places), -1, np.int32)
        self._texts: dict[str, str] = {}
        self._tool, self._demands, self._camera = -1, (-1000, 0, 0), (-1, -1)
        self._serial = -1
        self._shown: list[tuple[pygame.Surface, Box]] = []
        self._keys: list[tuple[object, Box]] = []
        self._is_new = True
        self._damage: list[Box] = []

    def paint(self) -> None:
        """Bring the picture up to date; call `CitySimulation.write_sprites` first."""
        boxes: list[Box] = []
        if self._is_new:
            self._hud.draw_frame(self._scene)
        cells = self._paint_cells()
        self._paint_hud(boxes)
        if self._is_new:
            boxes = [Box(0, 0, self._hud.layout.width, self._hud.layout.height)]
            self._is_new = False
        self._damage += boxes
        if boxes:
            self.canvas.blits([(self._scene, (box[0], box[1]), box) for box in boxes], False)
        self._paint_covers(is_fresh=bool(boxes) or cells)
        if len(self._damage) > _MOST_DAMAGE:  # not consumed
            self._damage = [Box(0, 0, self._hud.layout.width, self._hud.layout.height)]

    def take_damage(self) -> list[Box]:
        """Return the parts of the picture that may have changed since the last call."""
        damage, self._damage = self._damage, []
        return damage

    def _paint_cells(self) -> bool:
        """Draw the cells that look different from before, and return whether there were any."""
        interface, view = self._interface, self._hud.layout.view
        state, columns = interface.state, self._map_size[0]
        keys = self._simulation.sprite_codes[interface.game]
        if state.overlay != Overlay.NONE:
            levels = overlay_levels(self._simulation, interface.game, Overlay(state.overlay))
            keys = keys * LEVELS + levels + _TINTED
        if (view.columns, view.rows) != self._map_size:
            in_view = (slice(state.row, state.row + view.rows), slice(state.column, state.column + view.columns))
            keys = keys.reshape(-1, columns)[in_view].ravel()
        changed = np.flatnonzero(keys != self._drawn).tolist()
        if not changed:
            return False
        sprites, places = self._hud.sprites, self._places
        if state.overlay != Overlay.NONE:
            pairs = [(sprites.tinted(*divmod(int(keys[c]) - _TINTED, LEVELS)), places[c]) for c in changed]
        else:
            pairs = [(sprites.of(int(keys[c])), places[c]) for c in changed]
        self._scene.fblits(pairs)
        self.canvas.fblits(pairs)
        tile = self._hud.layout.view.tile
        self._damage += [Box(*places[c], tile, tile) for c in changed]
        self._drawn[:] = keys
        return True

    def _paint_hud(self, boxes: list[Box]) -> None:
        interface, hud, scene = self._interface, self._hud, self._scene
        state = interface.state
        texts = interface.texts()
        if texts != self._texts:
            for name, text in texts.items():
                if self._texts.get(name) != text:
                    boxes.append(hud.draw_text(scene, name, text))
            self._texts = texts
        if state.tool != self._tool:
            if self._tool >= 0:
                boxes.append(hud.draw_tool(scene, Tool(self._tool), selected=False))
            boxes.append(hud.draw_tool(scene, Tool(state.tool), selected=True))
            self._tool = state.tool
        demands = interface.figures.demands()
        if demands != self._demands:
            boxes.append(hud.draw_demand(scene, demands))
            self._demands = demands
        if (state.column, state.row) != self._camera:
            self._camera = (state.column, state.row)
            boxes += hud.draw_thumbs(scene, *self._camera, self._map_size)

    def _paint_covers(self, *, is_fresh: bool) -> None:
        """Draw what covers the scene; `is_fresh` if something below may have been drawn over it."""
        interface = self._interface
        if interface.serial != self._serial or interface.has_pane:
            self._serial = interface.serial
            covers = self._covers()
            keys = [(key, box) for key, box, _ in covers]
            if keys != self._keys:
                self._damage += [box for _, box in self._shown]
                self._damage += [box for _, box, _ in covers]
                for _, box in self._shown:
                    self.canvas.blit(self._scene, (box[0], box[1]), box)
                self._keys, self._shown, is_fresh = keys, [(draw(), box) for _, box, draw in covers], True
        if is_fresh:
            for picture, box in self._shown:
                self.canvas.blit(picture, (box[0], box[1]))

    def _covers(self) -> list[_Cover]:
        """Return what covers the scene, lowest first."""
        interface, hud, state = self._interface, self._hud, self._interface.state
        pane, name, hint = interface.pane(), interface.hovered(), interface.hint()
        found: list[_Cover] = []
        place = None if state.dialogs or state.path else interface.cell_at(state.pointer_x, state.pointer_y)
        if place is not None and (pane is None or not pane.box.holds(state.pointer_x, state.pointer_y)):
            box = self._mark_box(place)
            found.append(("mark", box, partial(draw_mark, (box.width, box.height))))
        if pane is not None:
            found.append(((pane.pane, name), pane.box, partial(hud.pane, pane, name)))
        if state.path and not state.dialogs:
            heading, marked = self._hud.layout.menus[state.path[0]], interface.marks()
            found.append(("heading", heading.box, partial(hud.heading, heading)))
            found += [
                ((menu.elements, name, marked), menu.box, partial(hud.menu, menu, name, marked))
                for menu in interface.lists()
            ]
        if hint is not None:
            found.append((hint.text, hint.box, partial(hud.hint, hint)))
        return found

    def _mark_box(self, place: tuple[int, int]) -> Box:
        """Where the mark at the pointer is: as large as what one click would build, cut off at the end of the view."""
        view, state = self._hud.layout.view, self._interface.state
        brush = self._simulation.rules.zone_brush if state.tool in ZONES else 1
        column, row = place[0] - state.column, place[1] - state.row
        across, down = min(brush, view.columns - column), min(brush, view.rows - row)
        left, top = view.box.left + column * view.tile, view.box.top + row * view.tile
        return Box(left, top, across * view.tile, down * view.tile)
