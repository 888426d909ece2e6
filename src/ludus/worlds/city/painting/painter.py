"""The picture of a game: the HUD, what covers the map, and a painter that redraws only what has changed."""

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.city.drivers.driver import Box
from ludus.worlds.city.game.placement import ZONES
from ludus.worlds.city.game.rules import ROAD_CAPACITY, Flag, Kind, Tool
from ludus.worlds.city.game.simulation import CitySimulation
from ludus.worlds.city.interface.layout import Element, Layout, demand_places
from ludus.worlds.city.interface.machine import Interface
from ludus.worlds.city.interface.menus import Overlay
from ludus.worlds.city.interface.panes import Hint, MenuList, PlacedPane, Row
from ludus.worlds.city.interface.theme import FIELDS, Theme
from ludus.worlds.city.painting.sprites import LEVELS, TINTED, field_icon, sprites_of, tool_icon
from ludus.worlds.city.painting.typefaces import Typeface

_PAD = 3
_HINT_GROUND: Color = (255, 250, 205)
_HINT_INK: Color = (40, 34, 10)


class Hud:
    """Draws the HUD of one layout in one theme, and what covers its map; shared by games, holds no state of one."""

    def __init__(self, theme: Theme, layout: Layout, face: Typeface) -> None:
        self.theme, self.layout, self.face = theme, layout, face
        self.sprites = sprites_of(theme.map_colors, layout.view.tile)
        self._line_boxes = {"speed": layout.speed, "tool": layout.tool_label, "message": layout.message}
        map_colors = theme.map_colors
        self._demand_places = demand_places(layout.demand)
        self._demand_colors = (map_colors.residential, map_colors.commercial, map_colors.industrial)

    def draw_frame(self, target: pygame.Surface) -> None:
        """Draw all that never changes."""
        theme, layout = self.theme, self.layout
        target.fill(theme.palette.frame)
        for box in (layout.menu_bar, *layout.panels):
            self._draw_panel(target, box)
        for element in layout.menus:
            self._write(target, element.label, element.box, theme.palette.ink)
        for name in FIELDS:
            self._draw_label(target, name, layout.fields[name].label)
        for element in layout.tax_buttons:
            self._draw_button(target, element.box)
            self._write(target, element.label, element.box, theme.palette.ink)
        for element in layout.view.scrolls:
            self._draw_button(target, element.box)
            self._draw_arrow(target, element.box, element.name.removeprefix("scroll."))
        for tool in Tool:
            self.draw_tool(target, tool, selected=False)

    def draw_text(self, target: pygame.Surface, name: str, text: str) -> Box:
        """Draw the value of a field and return where."""
        theme = self.theme
        if name in self._line_boxes:
            box = self._line_boxes[name]
            self._draw_panel(target, box)
            self._write(target, text, box, theme.palette.ink, "left")
            return box
        box = self.layout.fields[name].value
        self._draw_well(target, box)
        color = theme.palette.field_ink
        if name in ("funds", "balance") and text[0] in "+-":
            color = theme.palette.loss if text[0] == "-" else theme.palette.gain
        self._write(target, text, box, color, "right" if theme.right_aligned else "left")
        return box

    def draw_tool(self, target: pygame.Surface, tool: Tool, *, selected: bool) -> Box:
        """Draw the button of a tool and return where."""
        box = self.layout.tools[tool].box
        self._draw_button(target, box, pressed=selected)
        side = box.width - 6
        target.blit(tool_icon(self.theme.map_colors, tool, side), (box.left + 3, box.top + 3))
        if selected:
            pygame.draw.rect(target, self.theme.palette.accent, box.inset(1, 1), 2)
        return box

    def draw_demand(self, target: pygame.Surface, demands: tuple[int, int, int]) -> Box:
        """Draw the three bars of demand, to the right for more and to the left for less, and return where."""
        box, places = self.layout.demand, self._demand_places
        self._draw_well(target, box)
        for index, demand in enumerate(demands):
            length = places.length(demand)
            left = places.middle if demand >= 0 else places.middle - length
            target.fill(self._demand_colors[index], (left, places.tops[index], length, places.height))
        target.fill(self.theme.palette.dim, (places.middle, box.top + 1, 1, box.height - 2))
        return box

    def draw_thumbs(self, target: pygame.Surface, column: int, row: int, map_size: tuple[int, int]) -> list[Box]:
        """Draw between the arrows which part of the map is in view; return where."""
        view, palette = self.layout.view, self.theme.palette
        tracks: list[Box] = []
        for first, last in zip(view.scrolls[::2], view.scrolls[1::2], strict=True):
            if first.name == "scroll.up":
                track = Box(first.box.left, first.box.bottom, first.box.width, last.box.top - first.box.bottom)
                start, length = (track.height * cells // map_size[1] for cells in (row, view.rows))
                thumb = Box(track.left + 2, track.top + start, track.width - 4, length)
            else:
                track = Box(first.box.right, first.box.top, last.box.left - first.box.right, first.box.height)
                start, length = (track.width * cells // map_size[0] for cells in (column, view.columns))
                thumb = Box(track.left + start, track.top + 2, length, track.height - 4)
            target.fill(palette.field, track)
            target.fill(palette.accent, thumb)
            tracks.append(track)
        return tracks

    def _draw_label(self, target: pygame.Surface, name: str, box: Box) -> None:
        if self.theme.words:
            self._write(target, self.theme.words[name], box, self.theme.palette.ink, "left")
        else:
            icon = field_icon(name, box.height, self.theme.palette.ink)
            target.blit(icon, (box.left, box.top))

    def _draw_arrow(self, target: pygame.Surface, box: Box, way: str) -> None:
        x, y = box.middle
        size = box.width // 4
        corners = {
            "left": ((x - size, y), (x + size, y - size), (x + size, y + size)),
            "right": ((x + size, y), (x - size, y - size), (x - size, y + size)),
            "up": ((x, y - size), (x - size, y + size), (x + size, y + size)),
            "down": ((x, y + size), (x - size, y - size), (x + size, y - size)),
        }
        pygame.draw.polygon(target, self.theme.palette.ink, corners[way])

    def menu(self, menu: MenuList, hovered: str, marked: frozenset[str]) -> pygame.Surface:
        """Draw an open list; `hovered` names the entry at the pointer, `marked` those that hold at present."""
        palette, face = self.theme.palette, self.face
        picture, origin = self._picture(menu.box), menu.box
        for entry, element in zip(menu.entries, menu.elements, strict=True):
            box = _moved(element.box, origin)
            is_hot = hovered == element.name
            ink = palette.accent_ink if is_hot else palette.ink
            if is_hot:
                picture.fill(palette.accent, box)
            top = box.top + 2
            if element.name in marked:
                side = max(face.height // 2, 4)
                picture.fill(ink, (box.left + 4, box.top + (box.height - side) // 2, side, side))
            picture.blit(face.write(entry.label, ink), (box.left + face.height + 4, top))
            if entry.children:
                x, y, size = box.right - face.height // 2 - 4, box.middle[1], max(face.height // 4, 2)
                pygame.draw.polygon(picture, ink, ((x, y - size), (x + size, y), (x, y + size)))
        return picture

    def pane(self, placed: PlacedPane, hovered: str) -> pygame.Surface:
        """Draw a dialog or a window; `hovered` names the button at the pointer."""
        palette, face = self.theme.palette, self.face
        picture, origin = self._picture(placed.box), placed.box
        title = _moved(placed.title, origin)
        picture.fill(palette.accent, title)
        picture.blit(face.write(placed.pane.title, palette.accent_ink), (title.left + 5, title.top + 3))
        if placed.pane.graph:
            self._draw_graph(picture, _moved(placed.graph, origin), placed.pane.graph)
        for row, box in zip(placed.pane.rows, placed.rows, strict=True):
            self._draw_row(picture, _moved(box, origin), row)
        for element in placed.elements:
            if element.kind == "button":
                box = _moved(element.box, origin)
                self._draw_button(picture, box, hot=hovered == element.name)
                line = face.write(element.label, palette.ink)
                place = (box.left + (box.width - line.get_width()) // 2, box.top + (box.height - face.height + 1) // 2)
                picture.blit(line, place)
        return picture

    def heading(self, element: Element) -> pygame.Surface:
        """Draw the heading of an open menu."""
        palette, box = self.theme.palette, element.box
        picture = new_surface((box.width, box.height))
        picture.fill(palette.accent)
        self._write(picture, element.label, _moved(box, box), palette.accent_ink)
        return picture

    def hint(self, hint: Hint) -> pygame.Surface:
        """Draw a tooltip."""
        picture = new_surface((hint.box.width, hint.box.height))
        picture.fill(_HINT_GROUND)
        pygame.draw.rect(picture, _HINT_INK, picture.get_rect(), 1)
        picture.blit(self.face.write(hint.text, _HINT_INK), (4, 3))
        return picture

    def _picture(self, box: Box) -> pygame.Surface:
        picture = new_surface((box.width, box.height))
        self._draw_panel(picture, Box(0, 0, box.width, box.height))
        pygame.draw.rect(picture, self.theme.palette.frame, picture.get_rect(), 1)
        return picture

    def _draw_row(self, picture: pygame.Surface, box: Box, row: Row) -> None:
        face, ink = self.face, self.theme.palette.ink
        left = box.left
        if row.swatch >= 0:
            picture.blit(tool_icon(self.theme.map_colors, row.swatch, face.height), (left, box.top + 1))
            left += face.height + 4
        picture.blit(face.write(row.label, ink), (left, box.top + 2))
        if row.value:
            right = box.right - (2 * (box.height - 2) + 8 if row.adjust else 0)
            picture.blit(face.write(row.value, ink), (right - face.width(row.value), box.top + 2))

    def _draw_graph(self, picture: pygame.Surface, box: Box, numbers: tuple[int, ...]) -> None:
        palette = self.theme.palette
        area = Box(box.left, box.top, box.width, box.height - 4)
        picture.fill(palette.field, area)
        most, last = max(*numbers, 1), max(len(numbers) - 1, 1)
        points = [
            (area.left + 2 + index * (area.width - 5) // last, area.bottom - 3 - number * (area.height - 6) // most)
            for index, number in enumerate(numbers)
        ]
        if len(points) > 1:
            pygame.draw.lines(picture, palette.gain, False, points, 2)

    # --- parts ---

    def _draw_panel(self, target: pygame.Surface, box: Box) -> None:
        """Draw the background of a panel."""
        palette, style = self.theme.palette, self.theme.style
        target.fill(palette.panel, box)
        if style == "bevel":
            _draw_edges(target, box, palette.light, palette.dark)
        elif style in ("line", "round"):
            pygame.draw.rect(target, palette.frame, box, 1)

    def _draw_button(self, target: pygame.Surface, box: Box, *, pressed: bool = False, hot: bool = False) -> None:
        """Draw a button; `hot` is under the pointer."""
        palette, style = self.theme.palette, self.theme.style
        face = palette.accent if pressed else mixed(palette.panel, palette.light, 0.6) if hot else palette.panel
        inner = box.inset(1, 1)
        if style == "bevel":
            target.fill(mixed(palette.panel, palette.dark, 0.35) if pressed else face, box)
            light, dark = (palette.dark, palette.light) if pressed else (palette.light, palette.dark)
            _draw_edges(target, inner, light, dark)
        elif style == "flat":
            target.fill(palette.panel, box)
            target.fill(face if pressed or hot else palette.light, inner)
        elif style == "round":
            target.fill(palette.panel, box)
            pygame.draw.rect(target, face if pressed else palette.light, inner, border_radius=max(box.height // 5, 2))
            pygame.draw.rect(target, palette.dark, inner, 1, border_radius=max(box.height // 5, 2))
        else:
            target.fill(face, box)
            pygame.draw.rect(target, palette.accent if pressed or hot else palette.frame, inner, 1)

    def _draw_well(self, target: pygame.Surface, box: Box) -> None:
        """Draw the sunken place of a value."""
        palette, style = self.theme.palette, self.theme.style
        target.fill(palette.field, box)
        if style == "bevel":
            _draw_edges(target, box, palette.dark, palette.light)
        elif style == "line":
            pygame.draw.rect(target, mixed(palette.field, palette.frame, 0.5), box, 1)

    def _write(self, target: pygame.Surface, text: str, box: Box, color: Color, side: str = "middle") -> None:
        """Write a line of text in a box, cut off at its end."""
        line = self.face.write(text, color)
        left = box.left + _PAD
        if side == "middle":
            left = box.left + (box.width - line.get_width()) // 2
        elif side == "right":
            left = box.right - line.get_width() - _PAD
        target.blit(line, (left, box.top + (box.height - line.get_height() + 1) // 2), (0, 0, box.width, box.height))


def _draw_edges(target: pygame.Surface, box: Box, upper: Color, lower: Color) -> None:
    target.fill(upper, (box.left, box.top, box.width, 1))
    target.fill(upper, (box.left, box.top, 1, box.height))
    target.fill(lower, (box.left, box.bottom - 1, box.width, 1))
    target.fill(lower, (box.right - 1, box.top, 1, box.height))


@cache
def draw_mark(width: int, height: int) -> pygame.Surface:
    """Draw the mark around the cells at the pointer."""
    picture = new_surface((width, height), alpha=True)
    pygame.draw.rect(picture, (0, 0, 0, 255), picture.get_rect(), 2)
    pygame.draw.rect(picture, (255, 255, 255, 255), picture.get_rect(), 1)
    return picture


def _moved(box: Box, origin: Box) -> Box:
    return Box(box.left - origin.left, box.top - origin.top, box.width, box.height)


_FLAGS = {Overlay[flag.name]: flag for flag in Flag if flag not in (Flag.ROAD, Flag.PARK)}  # they have no overlay


def overlay_levels(simulation: CitySimulation, game: int, overlay: Overlay) -> NDArray[np.int32]:
    """Return the step of every cell of a game, `(cells,)`; what is reached by a service is warm, the rest is cold."""
    cells = simulation.cells
    if overlay in _FLAGS:
        share = np.where(cells.flags[game] & int(_FLAGS[overlay]), 0.5, 0.0)
    elif overlay == Overlay.TRAFFIC:
        share = np.where(cells.kind[game] == Kind.ROAD, cells.load[game] / ROAD_CAPACITY, 0.0)
    elif overlay == Overlay.POLLUTION:
        share = cells.air[game] / 100.0
    else:
        share = cells.value[game] / 100.0
    levels: NDArray[np.int32] = np.clip(share * LEVELS, 0, LEVELS - 1).astype(np.int32)
    return levels


_MOST_DAMAGE = 1000  # parts of the picture; more of them are all of it

# A function that draws what covers the scene, its arguments, and where the picture is.
_Cover: TypeAlias = tuple[Callable[..., pygame.Surface], tuple[object, ...], Box]


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
        self._drawn = np.full(len(self._places), -1, np.int32)
        self._texts: dict[str, str] = {}
        self._tool, self._demands, self._camera = -1, (-1000, 0, 0), (-1, -1)
        self._serial = -1
        self._covers: list[_Cover] = []
        self._shown: list[tuple[pygame.Surface, tuple[int, int]]] = []
        self._whole = Box(0, 0, *size)
        self._damage = [self._whole]
        hud.draw_frame(self._scene)
        self.canvas.blit(self._scene, (0, 0))

    def paint(self) -> None:
        """Bring the picture up to date; call `CitySimulation.write_sprites` first."""
        has_new_cells, boxes = self._paint_cells(), self._paint_hud()
        self._damage += boxes
        self.canvas.blits([(self._scene, box[:2], box) for box in boxes], False)
        self._paint_covers(is_fresh=bool(boxes) or has_new_cells)
        if len(self._damage) > _MOST_DAMAGE:  # not consumed
            self._damage = [self._whole]

    def take_damage(self) -> list[Box]:
        """Return the parts of the picture that may have changed since the last call."""
        damage, self._damage = self._damage, []
        return damage

    def _paint_cells(self) -> bool:
        """Draw the cells that look different from before, and return whether there were any."""
        interface, view, sprites = self._interface, self._hud.layout.view, self._hud.sprites
        state, places = interface.state, self._places
        keys = self._simulation.sprite_codes[interface.game]
        if state.overlay != Overlay.NONE:
            levels = overlay_levels(self._simulation, interface.game, Overlay(state.overlay))
            keys = keys * LEVELS + levels + TINTED
        if (view.columns, view.rows) != self._map_size:
            in_view = (slice(state.row, state.row + view.rows), slice(state.column, state.column + view.columns))
            keys = keys.reshape(-1, self._map_size[0])[in_view].ravel()
        changed = np.flatnonzero(keys != self._drawn).tolist()
        if not changed:
            return False
        pairs = [(sprites.of(int(keys[c])), places[c]) for c in changed]
        self._scene.fblits(pairs)
        self.canvas.fblits(pairs)
        self._damage += [Box(*places[c], view.tile, view.tile) for c in changed]
        self._drawn[:] = keys
        return True

    def _paint_hud(self) -> list[Box]:
        """Draw the parts of the HUD that look different from before, and return where they are."""
        interface, hud, scene = self._interface, self._hud, self._scene
        state, texts, demands = interface.state, interface.texts(), interface.figures.demands()
        boxes = [hud.draw_text(scene, name, text) for name, text in texts.items() if self._texts.get(name) != text]
        self._texts = texts
        if state.tool != self._tool:
            if self._tool >= 0:
                boxes.append(hud.draw_tool(scene, Tool(self._tool), selected=False))
            boxes.append(hud.draw_tool(scene, Tool(state.tool), selected=True))
            self._tool = state.tool
        if demands != self._demands:
            boxes.append(hud.draw_demand(scene, demands))
            self._demands = demands
        if (state.column, state.row) != self._camera:
            self._camera = (state.column, state.row)
            boxes += hud.draw_thumbs(scene, *self._camera, self._map_size)
        return boxes

    def _paint_covers(self, *, is_fresh: bool) -> None:
        """Draw what covers the scene; `is_fresh` if something below may have been drawn over it."""
        interface = self._interface
        if interface.serial != self._serial or interface.has_pane:
            self._serial = interface.serial
            covers = self._find_covers()
            if covers != self._covers:
                self._damage += [box for *_, box in self._covers + covers]
                self.canvas.blits([(self._scene, box[:2], box) for *_, box in self._covers], False)
                self._shown = [(draw(*given), box[:2]) for draw, given, box in covers]
                self._covers, is_fresh = covers, True
        if is_fresh:
            self.canvas.blits(self._shown, False)

    def _find_covers(self) -> list[_Cover]:
        """Return what covers the scene, lowest first."""
        interface, hud, state = self._interface, self._hud, self._interface.state
        pane, name, hint = interface.pane(), interface.hovered(), interface.hint()
        found: list[_Cover] = []
        place = None if state.dialogs or state.path else interface.cell_at(state.pointer_x, state.pointer_y)
        if place is not None and (pane is None or not pane.box.holds(state.pointer_x, state.pointer_y)):
            box = self._mark_box(place)
            found.append((draw_mark, (box.width, box.height), box))
        if pane is not None:
            found.append((hud.pane, (pane, name), pane.box))
        if state.path and not state.dialogs:
            heading, marked = hud.layout.menus[state.path[0]], interface.marks()
            found.append((hud.heading, (heading,), heading.box))
            found += [(hud.menu, (menu, name, marked), menu.box) for menu in interface.lists()]
        if hint is not None:
            found.append((hud.hint, (hint,), hint.box))
        return found

    def _mark_box(self, place: tuple[int, int]) -> Box:
        """Where the mark at the pointer is: as large as what one click would build, cut off at the end of the view."""
        view, state = self._hud.layout.view, self._interface.state
        brush = self._simulation.rules.zone_brush if state.tool in ZONES else 1
        column, row = place[0] - state.column, place[1] - state.row
        across, down = min(brush, view.columns - column), min(brush, view.rows - row)
        left, top = view.box.left + column * view.tile, view.box.top + row * view.tile
        return Box(left, top, across * view.tile, down * view.tile)
