"""Writes MJCF, the XML that MuJoCo compiles: elements with attributes, numbers in six digits."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | float | bool | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """An XML element.

    Attributes:
        tag: Its name.
        attributes: Its attributes; a trailing underscore keeps Python's own words apart (`class_`).
        children: What is inside.
    """

    tag: str
    attributes: Mapping[str, Value]
    children: tuple["Element", ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, indent: str = "") -> Iterator[str]:
        """Yields its lines of text, each behind `indent`."""
        listed = "".join(f' {name.rstrip("_")}="{_text(value)}"' for name, value in self.attributes.items())
        if not self.children:
            yield f"{indent}<{self.tag}{listed}/>"
            return
        yield f"{indent}<{self.tag}{listed}>"
        for child in self.children:
            yield from child.lines(indent + "  ")
        yield f"{indent}</{self.tag}>"


def element(tag: str, *children: Element | Iterable[Element], **attributes: Value) -> Element:
    """Makes an element; children may be given one by one or in lists."""
    flat: list[Element] = []
    for child in children:
        flat.extend([child] if isinstance(child, Element) else child)
    return Element(tag, attributes, tuple(flat))


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return " ".join(_text(part) for part in value)
    return f"{value:.6g}"
