"""The HUD, the palette, the menu bar and the message line; everything of it that changes is drawn by itself."""

from ludus.envs.city.game.rules import Tool
from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.interface.demand import demand_places
from ludus.envs.city.interface.layout import Layout
from ludus.envs.city.interface.theme import FIELDS, Theme
from ludus.envs.city.painting.faces import Face
from ludus.envs.city.painting.framing import button_ink, draw_button, draw_panel, draw_well
from ludus.envs.city.painting.icons import field_icon, tool_icon
from ludus.envs.colors import Color
from ludus.envs.pygame_tools import pygame

_PAD = 3


class Hud:
    """Draws the HUD of one layout in one theme; keeps nothing of any game."""

    def __init__(self, theme: Theme, layout: Layout, face: Face) -> None:
        self._theme, self._layout, self._face = theme, layout, face
        self._line_boxes = {"speed": layout.speed, "tool": layout.tool_label, "message": layout.message}
        country = theme.country
        self._demand_places = demand_places(layout.demand)
        self._demand_colors = (country.residential, country.commercial, country.industrial)

    def draw_frame(self, target: pygame.Surface) -> None:
        """Draws all that never changes."""
        theme, layout = self._theme, self._layout
        target.fill(theme.palette.frame)
        for box in (layout.menu_bar, *layout.panels):
            draw_panel(target, theme, box)
        for element in layout.menus:
            self._write(target, element.label, element.box, theme.palette.ink, "middle")
        for name in FIELDS:
            self._draw_label(target, name, layout.fields[name].label)
        for element in layout.tax_buttons:
            draw_button(target, theme, element.box)
            self._write(target, element.label, element.box, button_ink(theme), "middle")
        for element in layout.view.scrolls:
            draw_button(target, theme, element.box)
            self._draw_arrow(target, element.box, element.name.removeprefix("scroll."))
        for tool in Tool:
            self.draw_tool(target, tool, selected=False)

    def draw_text(self, target: pygame.Surface, name: str, text: str) -> Box:
        """Draws the value of a field and returns where."""
        theme = self._theme
        if name in self._line_boxes:
            box = self._line_boxes[name]
            draw_panel(target, theme, box)
            self._write(target, text, box, theme.palette.ink, "left")
            return box
        box = self._layout.fields[name].value
        draw_well(target, theme, box)
        color = theme.palette.field_ink
        if name in ("funds", "balance") and text[0] in "+-":
            color = theme.palette.loss if text[0] == "-" else theme.palette.gain
        self._write(target, text, box, color, "right" if theme.right_aligned else "left")
        return box

    def draw_tool(self, target: pygame.Surface, tool: Tool, *, selected: bool) -> Box:
        """Draws the button of a tool and returns where."""
        box = self._layout.tools[tool].box
        draw_button(target, self._theme, box, pressed=selected)
        side = box.width - 6
        target.blit(tool_icon(self._theme.country, tool, side), (box.left + 3, box.top + 3))
        if selected:
            pygame.draw.rect(target, self._theme.palette.accent, box.inset(1, 1), 2)
        return box

    def draw_demand(self, target: pygame.Surface, demands: tuple[int, int, int]) -> Box:
        """Draws the three bars of demand, to the right for more and to the left for less, and returns where."""
        box, places = self._layout.demand, self._demand_places
        draw_well(target, self._theme, box)
        for index, demand in enumerate(demands):
            length = places.length(demand)
            left = places.middle if demand >= 0 else places.middle - length
            target.fill(self._demand_colors[index], (left, places.tops[index], length, places.height))
        target.fill(self._theme.palette.dim, (places.middle, box.top + 1, 1, box.height - 2))
        return box

    def draw_thumbs(self, target: pygame.Surface, column: int, row: int, map_size: tuple[int, int]) -> list[Box]:
        """Draws between the arrows which part of the map is in view; returns where."""
        boxes = []
        arrows = {element.name.removeprefix("scroll."): element.box for element in self._layout.view.scrolls}
        view, palette = self._layout.view, self._theme.palette
        if "up" in arrows:
            track = Box(arrows["up"].left, arrows["up"].bottom, arrows["up"].width, 0)
            track = track._replace(height=arrows["down"].top - track.top)
            target.fill(palette.field, track)
            length = track.height * view.rows // map_size[1]
            target.fill(
                palette.accent, (track.left + 2, track.top + track.height * row // map_size[1], track.width - 4, length)
            )
            boxes.append(track)
        if "left" in arrows:
            track = Box(arrows["left"].right, arrows["left"].top, 0, arrows["left"].height)
            track = track._replace(width=arrows["right"].left - track.left)
            target.fill(palette.field, track)
            length = track.width * view.columns // map_size[0]
            target.fill(
                palette.accent,
                (track.left + track.width * column // map_size[0], track.top + 2, length, track.height - 4),
            )
            boxes.append(track)
        return boxes

    def _draw_label(self, target: pygame.Surface, name: str, box: Box) -> None:
        if self._theme.words:
            self._write(target, self._theme.words[name], box, self._theme.palette.ink, "left")
        else:
            icon = field_icon(name, box.height, self._theme.palette.ink)
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
        pygame.draw.polygon(target, self._theme.palette.ink, corners[way])

    def _write(self, target: pygame.Surface, text: str, box: Box, color: Color, side: str) -> None:
        line = self._face.write(text, color)
        left = box.left + _PAD
        if side == "middle":
            left = box.left + (box.width - line.get_width()) // 2
        elif side == "right":
            left = box.right - line.get_width() - _PAD
        target.blit(line, (left, box.top + (box.height - line.get_height() + 1) // 2), (0, 0, box.width, box.height))
