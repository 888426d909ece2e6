"""Reads games that look alike, many at a time: what one picture said, the next one with the same pixels says too."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.perception.demand import DemandReader
from ludus.envs.city.perception.fields import Field
from ludus.envs.city.perception.glyphs import GlyphBank
from ludus.envs.city.perception.reading import Date, Reading

_KEPT = 1 << 15  # crops of a field whose readings are remembered, by their hashes


class Said(NamedTuple):
    """What a field says, in numbers.

    Attributes:
        value: A number, or days since year 0; 0 if it could not be read.
        is_readable: Whether it could.
        confidence: From 0 to 1.
        grain: By how much the value can be less than what it stands for; 0 where every digit is written.
    """

    value: float
    is_readable: bool
    confidence: float
    grain: float


_Memory: TypeAlias = "OrderedDict[bytes, tuple[Said, ...]]"
_Part: TypeAlias = tuple[int, int, int, int, _Memory, Callable[[Frame], Sequence[Reading]]]


class LookReader:
    """Reads the fields of pictures that all look alike: the same theme, the same size.

    Attributes:
        names: Of the fields, in the order in which they are read: those of the HUD, then the bars of demand.
    """

    def __init__(self, fields: Sequence[Field], bank: GlyphBank, demand: DemandReader, size: tuple[int, int]) -> None:
        """Makes a reader of pictures of a width and height."""
        self._bank = bank
        self._parts: list[_Part] = []
        for field in fields:
            left, top, right, bottom = field.region.pixels(*size)
            self._parts.append((left, top, right, bottom, OrderedDict(), self._words_of(field)))
        box: Box = demand.box
        self._parts.append((box.left, box.top, box.right, box.bottom, OrderedDict(), demand.read))
        self._number = {field.name: number for number, field in enumerate(fields)}

    def read(self, pixels: NDArray[np.uint8], words: NDArray[np.uint32]) -> list[Said]:
        """Returns what every field of a picture says.

        Args:
            pixels: The picture `(height, width, 4)`.
            words: The same bytes as one number for each pixel `(height, width)`.
        """
        return [said for part in self._parts for said in self._read(part, pixels, words)]

    def read_one(self, name: str, pixels: NDArray[np.uint8], words: NDArray[np.uint32]) -> Said:
        """Returns what one field of the HUD says; arguments as in `read`."""
        return self._read(self._parts[self._number[name]], pixels, words)[0]

    def _read(self, part: _Part, pixels: NDArray[np.uint8], words: NDArray[np.uint32]) -> tuple[Said, ...]:
        left, top, right, bottom, memory, look = part
        key = hashlib.sha256(words[top:bottom, left:right].tobytes()).digest()
        known = memory.get(key)
        if known is None:
            known = memory[key] = tuple(map(_said, look(pixels[..., :3])))
            if len(memory) > _KEPT:
                memory.popitem(last=False)
        return known

    def _words_of(self, field: Field) -> Callable[[Frame], Sequence[Reading]]:
        alphabet = field.alphabet

        def look(frame: Frame) -> Sequence[Reading]:
            text, confidence = self._bank.read(field.region.cut(frame), alphabet)
            return (field.understood(text, confidence, "glyphs"),)

        return look


def _said(reading: Reading) -> Said:
    value = reading.value
    if value is None or isinstance(value, str):
        return Said(0.0, False, 0.0, 0.0)
    # One digit stands after the point of an abbreviated number.
    grain = 100_000.0 if "M" in reading.text else 100.0 if "k" in reading.text.lower() else 0.0
    number = float(value.days) if isinstance(value, Date) else float(value)
    return Said(number, True, reading.confidence, grain if not isinstance(value, Date) else 0.0)
