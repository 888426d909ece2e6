"""What covers the map: open menus, dialogs, windows and tooltips, each as a picture of its own."""

from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.interface.elements import Element
from ludus.envs.city.interface.hints import Hint
from ludus.envs.city.interface.open_menus import MenuList
from ludus.envs.city.interface.panes import PlacedPane, Row
from ludus.envs.city.interface.theme import Theme
from ludus.envs.city.painting.faces import Face
from ludus.envs.city.painting.framing import button_ink, draw_button, draw_panel
from ludus.envs.city.painting.icons import tool_icon
from ludus.envs.colors import Color
from ludus.envs.pygame_tools import new_surface, pygame

_HINT_GROUND: Color = (255, 250, 205)
_HINT_INK: Color = (40, 34, 10)


class Covers:
    """Draws covers in one theme; keeps nothing of any game."""

    def __init__(self, theme: Theme, face: Face) -> None:
        self._theme, self._face = theme, face
        self._marks: dict[tuple[int, int], pygame.Surface] = {}

    def menu(self, menu: MenuList, hovered: str, marked: frozenset[str]) -> pygame.Surface:
        """Draws an open list; `hovered` names the entry at the pointer, `marked` those that hold at present."""
        palette, face = self._theme.palette, self._face
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
        """Draws a dialog or a window; `hovered` names the button at the pointer."""
        theme, palette, face = self._theme, self._theme.palette, self._face
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
                draw_button(picture, theme, box, hot=hovered == element.name)
                line = face.write(element.label, button_ink(theme))
                place = (box.left + (box.width - line.get_width()) // 2, box.top + (box.height - face.height + 1) // 2)
                picture.blit(line, place)
        return picture

    def heading(self, element: Element) -> pygame.Surface:
        """Draws the heading of an open menu."""
        palette, box = self._theme.palette, element.box
        picture = new_surface((box.width, box.height))
        picture.fill(palette.accent)
        line = self._face.write(element.label, palette.accent_ink)
        place = ((box.width - line.get_width()) // 2, (box.height - line.get_height() + 1) // 2)
        picture.blit(line, place)
        return picture

    def mark(self, box: Box) -> pygame.Surface:
        """Draws the mark around the cells at the pointer."""
        size = (box.width, box.height)
        picture = self._marks.get(size)
        if picture is None:
            picture = self._marks[size] = new_surface(size, alpha=True)
            pygame.draw.rect(picture, (0, 0, 0, 255), picture.get_rect(), 2)
            pygame.draw.rect(picture, (255, 255, 255, 255), picture.get_rect(), 1)
        return picture

    def hint(self, hint: Hint) -> pygame.Surface:
        """Draws a tooltip."""
        picture = new_surface((hint.box.width, hint.box.height))
        picture.fill(_HINT_GROUND)
        pygame.draw.rect(picture, _HINT_INK, picture.get_rect(), 1)
        picture.blit(self._face.write(hint.text, _HINT_INK), (4, 3))
        return picture

    def _picture(self, box: Box) -> pygame.Surface:
        picture = new_surface((box.width, box.height))
        draw_panel(picture, self._theme, Box(0, 0, box.width, box.height))
        pygame.draw.rect(picture, self._theme.palette.frame, picture.get_rect(), 1)
        return picture

    def _draw_row(self, picture: pygame.Surface, box: Box, row: Row) -> None:
        face, ink = self._face, self._theme.palette.ink
        left = box.left
        if row.swatch >= 0:
            picture.blit(tool_icon(self._theme.country, row.swatch, face.height), (left, box.top + 1))
            left += face.height + 4
        picture.blit(face.write(row.label, ink), (left, box.top + 2))
        if row.value:
            right = box.right - (2 * (box.height - 2) + 8 if row.adjust else 0)
            picture.blit(face.write(row.value, ink), (right - face.width(row.value), box.top + 2))

    def _draw_graph(self, picture: pygame.Surface, box: Box, numbers: tuple[int, ...]) -> None:
        palette = self._theme.palette
        area = Box(box.left, box.top, box.width, box.height - 4)
        picture.fill(palette.field, area)
        most, last = max(*numbers, 1), max(len(numbers) - 1, 1)
        points = [
            (area.left + 2 + index * (area.width - 5) // last, area.bottom - 3 - number * (area.height - 6) // most)
            for index, number in enumerate(numbers)
        ]
        if len(points) > 1:
            pygame.draw.lines(picture, palette.gain, False, points, 2)


def _moved(box: Box, origin: Box) -> Box:
    return Box(box.left - origin.left, box.top - origin.top, box.width, box.height)
