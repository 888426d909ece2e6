"""Panels, buttons and sunken fields, framed in the style of a theme."""

from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.interface.theme import Theme
from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import pygame


def draw_panel(target: pygame.Surface, theme: Theme, box: Box) -> None:
    """Draws the background of a panel."""
    palette = theme.palette
    target.fill(palette.panel, box)
    if theme.style == "bevel":
        _draw_edges(target, box, palette.light, palette.dark)
    elif theme.style in ("line", "round"):
        pygame.draw.rect(target, palette.frame, box, 1)


def draw_button(target: pygame.Surface, theme: Theme, box: Box, *, pressed: bool = False, hot: bool = False) -> None:
    """Draws a button; `hot` is under the pointer."""
    palette = theme.palette
    face = palette.accent if pressed else mixed(palette.panel, palette.light, 0.6) if hot else palette.panel
    inner = box.inset(1, 1)
    if theme.style == "bevel":
        target.fill(mixed(palette.panel, palette.dark, 0.35) if pressed else face, box)
        light, dark = (palette.dark, palette.light) if pressed else (palette.light, palette.dark)
        _draw_edges(target, inner, light, dark)
    elif theme.style == "flat":
        target.fill(palette.panel, box)
        target.fill(face if pressed or hot else palette.light, inner)
    elif theme.style == "round":
        target.fill(palette.panel, box)
        pygame.draw.rect(target, face if pressed else palette.light, inner, border_radius=max(box.height // 5, 2))
        pygame.draw.rect(target, palette.dark, inner, 1, border_radius=max(box.height // 5, 2))
    else:
        target.fill(face, box)
        pygame.draw.rect(target, palette.accent if pressed or hot else palette.frame, inner, 1)


def draw_well(target: pygame.Surface, theme: Theme, box: Box) -> None:
    """Draws the sunken place of a value."""
    palette = theme.palette
    target.fill(palette.field, box)
    if theme.style == "bevel":
        _draw_edges(target, box, palette.dark, palette.light)
    elif theme.style == "line":
        pygame.draw.rect(target, mixed(palette.field, palette.frame, 0.5), box, 1)


def button_ink(theme: Theme, *, pressed: bool = False) -> Color:
    """Returns the colour of what is written on a button."""
    return theme.palette.accent_ink if pressed and theme.style != "bevel" else theme.palette.ink


def _draw_edges(target: pygame.Surface, box: Box, upper: Color, lower: Color) -> None:
    target.fill(upper, (box.left, box.top, box.width, 1))
    target.fill(upper, (box.left, box.top, 1, box.height))
    target.fill(lower, (box.left, box.bottom - 1, box.width, 1))
    target.fill(lower, (box.right - 1, box.top, 1, box.height))
