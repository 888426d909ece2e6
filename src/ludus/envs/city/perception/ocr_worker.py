"""Slow reading in the background: the newest crop of every field is read by OCR, and what is sure is learnt."""

import threading
from collections.abc import Sequence

from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.perception.fields import Field
from ludus.envs.city.perception.glyph_learning import learn
from ludus.envs.city.perception.glyphs import GlyphBank
from ludus.envs.city.perception.ocr import Engine
from ludus.envs.city.perception.reading import Reading, unreadable

LEAST_CONFIDENCE = 0.6
_AGREED = 2  # opinions that must be equal before letters are learnt


class OcrWorker:
    """One thread that reads what the glyph reader could not.

    Every engine gives an opinion at each of its scales. Opinions must say the same value; two that do teach the bank.

    Attributes:
        learnt: Crops that the bank has learnt from.
        reads: Crops that were read.
    """

    def __init__(self, engines: Sequence[Engine], bank: GlyphBank) -> None:
        """Prepares the worker; its thread starts with the first question."""
        self.learnt, self.reads = 0, 0
        self._engines, self._bank = tuple(engines), bank
        self._waiting: dict[str, tuple[Field, Frame, bytes]] = {}
        self._answers: dict[str, tuple[bytes, Reading]] = {}
        self._busy_with: dict[str, bytes] = {}
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def answer(self, field: Field, crop: Frame, raw: bytes) -> Reading | None:
        """Returns the reading of these pixels if it is there; else asks for it and returns None at once.

        A question replaces an older one about the same field.
        """
        with self._condition:
            known = self._answers.get(field.name)
            if known is not None and known[0] == raw:
                return known[1]
            if self._is_closed or self._busy_with.get(field.name) == raw:
                return None
            waiting = self._waiting.get(field.name)
            if waiting is None or waiting[2] != raw:
                self._waiting[field.name] = (field, crop.copy(), raw)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="ludus-ocr", daemon=True)
                    self._thread.start()
                self._condition.notify_all()
        return None

    def wait(self, timeout_s: float) -> bool:
        """Waits until no question is open; returns whether that was in time."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._waiting and not self._busy_with, timeout_s)

    def close(self) -> None:
        """Ends the thread after the crop it is at; may be called twice."""
        with self._condition:
            self._is_closed = True
            self._waiting.clear()
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join()

    def read(self, field: Field, crop: Frame) -> Reading:
        """Reads a crop now, in the caller's thread, and learns from it if two opinions agree."""
        opinions = [
            (field.understood(text, confidence, engine.name), text)
            for engine in self._engines
            for text, confidence in engine.opinions(crop)
            if confidence >= LEAST_CONFIDENCE
        ]
        self.reads += 1
        sure = [(reading, text) for reading, text in opinions if reading.is_readable]
        if not sure or len({reading.value for reading, _ in sure}) > 1:
            return unreadable(field.name, opinions[0][1] if opinions else "", "ocr")
        texts = [f"{field.prefix} {field.value_text(text)}" for _, text in sure]
        label = max(set(texts), key=texts.count)
        if len(sure) >= _AGREED and texts.count(label) >= _AGREED:
            self.learnt += learn(self._bank, crop, label, spaces=False)
        return max((reading for reading, _ in sure), key=lambda reading: reading.confidence)

    def _work(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._is_closed or bool(self._waiting))
                if self._is_closed:
                    return
                name = next(iter(self._waiting))
                field, crop, raw = self._waiting.pop(name)
                self._busy_with[name] = raw
            reading = unreadable(name, engine="ocr")
            try:
                reading = self.read(field, crop)
            finally:
                with self._condition:
                    self._answers[name] = (raw, reading)
                    del self._busy_with[name]
                    self._condition.notify_all()
