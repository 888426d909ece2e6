"""The screen reader: readings of all fields of a picture, cached where nothing changed, never guessed.

What the known letters do not cover is read by OCR in the background: rapidocr, whose models come with it.
"""

import contextlib
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ludus.core.errors import MissingDependencyError, UnknownNameError
from ludus.worlds.city.drivers.driver import Box, Frame
from ludus.worlds.city.perception.glyph_learning import learn
from ludus.worlds.city.perception.glyphs import GlyphBank, known_glyphs, save_glyphs
from ludus.worlds.city.perception.pictures import cache_folder, opencv
from ludus.worlds.city.perception.reading import Field, Notation, Reading, unreadable
from ludus.worlds.city.profile_schema import GameProfile

_SCALES = (2.0, 3.0)  # crops are read at both: letters of screens are smaller than those that engines were taught on
_MARGIN = 4  # pixels of ground around a crop


class Engine(Protocol):
    """Reads single lines."""

    name: str

    def opinions(self, crop: Frame) -> list[tuple[str, float]]:
        """Return what a crop `(height, width, 3)` of one line says at several scales, each with a confidence."""


class RapidOcr:
    """rapidocr's recognition; about 0.1 s per crop."""

    name = "rapidocr"

    def __init__(self) -> None:
        """Load the models; raise MissingDependencyError if rapidocr is not installed."""
        try:
            from rapidocr import RapidOCR
        except ImportError as error:
            raise MissingDependencyError("rapidocr", "city", "reading by rapidocr") from error
        quiet = {"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": 1}
        self._engine: Any = RapidOCR(params=quiet)  # it keeps its mode from the last call: one instance per mode

    def opinions(self, crop: Frame) -> list[tuple[str, float]]:
        """Return what the crop says, enlarged two and three times."""
        modes = {"use_det": False, "use_cls": False, "use_rec": True}
        results = [self._engine(_enlarged(crop, scale), **modes) for scale in _SCALES]
        return [(str(result.txts[0]), float(result.scores[0])) for result in results if result.txts]

    def lines(self, frame: Frame) -> list[tuple[str, Box, float]]:
        """Return all lines of a picture `(height, width, 3)` with their boxes and confidences; seconds per picture."""
        enlarged = opencv("reading by OCR").resize(np.ascontiguousarray(frame[:, :, ::-1]), None, fx=2.0, fy=2.0)
        result = self._engine(enlarged, use_det=True, use_cls=False, use_rec=True)
        if result.boxes is None:
            return []
        corners = [(np.asarray(box).min(axis=0) / 2.0, np.asarray(box).max(axis=0) / 2.0) for box in result.boxes]
        boxes = [Box(*map(int, (*low, *np.ceil(high - low)))) for low, high in corners]
        return list(zip(map(str, result.txts), boxes, map(float, result.scores), strict=True))


def available_engines() -> list[Engine]:
    """Return the engine, if it is installed; it is not needed where the letters are known."""
    with contextlib.suppress(MissingDependencyError):
        return [RapidOcr()]
    return []


def _enlarged(crop: Frame, scale: float) -> Frame:
    """Return a crop with some ground around it, enlarged."""
    cv2 = opencv("reading by OCR")
    edges = np.concatenate((crop[0], crop[-1], crop[:, 0], crop[:, -1]))
    ground = tuple(int(value) for value in np.median(edges, axis=0))
    reversed_colors = np.ascontiguousarray(crop[:, :, ::-1])  # OpenCV's and the engines' order
    framed = cv2.copyMakeBorder(reversed_colors, *[_MARGIN] * 4, cv2.BORDER_CONSTANT, value=ground[::-1])
    enlarged: Frame = cv2.resize(framed, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    return enlarged


_LEAST_CONFIDENCE = 0.6  # of OCR in a text that counts
_WITHOUT_SPACES = frozenset("0123456789/")  # signs of numbers and dates that are written in one word
_AGREED = 2  # opinions that must be equal before letters are learned
_KEPT = 512  # crops whose readings are remembered


class OcrWorker:
    """One thread that reads what the glyph reader could not.

    Every engine gives an opinion at each of its scales. Opinions must say the same value; two that do teach the bank.

    Attributes:
        engines: Those that give opinions.
    """

    def __init__(self, engines: Sequence[Engine], bank: GlyphBank) -> None:
        """Prepare the worker; its thread starts with the first question."""
        self.engines, self._bank = tuple(engines), bank
        self._asked: dict[tuple[str, bytes], Future[Reading]] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ludus-ocr")
        self._lock = threading.Lock()  # games in several threads may share a worker
        self._is_closed = False

    def answer(self, field: Field, crop: Frame, raw: bytes) -> Reading | None:
        """Return the reading of these pixels if it is known; else queue them and return None at once.

        A question replaces an older one about the same field.
        """
        with self._lock:
            asked = self._asked.get((field.name, raw))
            if asked is None and not self._is_closed:
                for key in [key for key in self._asked if key[0] == field.name]:
                    if self._asked[key].cancel():  # it still waited
                        del self._asked[key]
                if len(self._asked) >= _KEPT:
                    del self._asked[next(iter(self._asked))]
                self._asked[field.name, raw] = self._pool.submit(self.read, field, crop.copy())
        if asked is None or not asked.done() or asked.cancelled():
            return None
        return asked.result() if asked.exception() is None else unreadable(field.name, engine="ocr")

    def close(self) -> None:
        """End the thread after the crop it is at; may be called twice."""
        with self._lock:
            self._is_closed = True
        self._pool.shutdown(cancel_futures=True)

    def read(self, field: Field, crop: Frame) -> Reading:
        """Read a crop now, in the caller's thread, and learn from it if two opinions agree."""
        opinions = [
            field.understood(text, confidence, engine.name)
            for engine in self.engines
            for text, confidence in engine.opinions(crop)
            if confidence >= _LEAST_CONFIDENCE
        ]
        sure = [reading for reading in opinions if reading.is_readable]
        if not sure or len({reading.value for reading in sure}) > 1:
            return unreadable(field.name, opinions[0].text if opinions else "", "ocr")
        texts = [f"{field.prefix} {field.value_text(reading.text)}".strip() for reading in sure]
        label = max(set(texts), key=texts.count)
        if texts.count(label) >= _AGREED:
            # OCR leaves out spaces, but none can stand in these: wide gaps between digits belong to the typeface.
            has_no_spaces = field.notation.thousands != " " and set(label) <= _WITHOUT_SPACES
            learn(self._bank, crop, label, spaces=has_no_spaces)
        return max(sure, key=lambda reading: reading.confidence)


HELD_SHARE = 0.5  # of its confidence that a reading keeps while its field cannot be read
_POLL_S = 0.01


@dataclass(slots=True)
class _Track:
    """What is known about one field."""

    now: Reading  # what the pixels seen last say
    good: Reading  # the last reading that was confirmed, and when
    good_at_s: float = -math.inf
    raw: bytes = b""  # the pixels seen last
    equal_reads: int = 0  # how often in a row the same was said


class ScreenReader:
    """Reads the fields of one game's pictures.

    A value counts when it was read `stable_reads` times in a row; a picture torn in the middle of drawing is not read
    the same twice. Until then, and while a field cannot be read, the last value that counted is
    returned with its age and less confidence. Only what has changed is read again.

    Attributes:
        fields: By name.
        bank: The letters that it knows.
        stage_s: Seconds spent so far, by stage: `compare`, `glyphs` and `fallback`.
        frames: Pictures read so far.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        bank: GlyphBank,
        fallback: OcrWorker | None = None,
        *,
        stable_reads: int = 1,
        hold_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a reader; readers of equal games can share a bank. `fallback` reads what the bank does not know.

        A value counts after `stable_reads` equal reads in a row; 2 where pictures can be torn. An old value is given
        for `hold_s` for a field that cannot be read any more.
        """
        self.fields = {field.name: field for field in fields}
        self.bank, self.stage_s, self.frames = bank, defaultdict[str, float](float), 0
        self._fallback, self._stable_reads, self._hold_s, self._clock = fallback, stable_reads, hold_s, clock
        self._memory: defaultdict[str, dict[bytes, Reading]] = defaultdict(dict)  # of crops, the latest ones last
        self.forget()

    def read(self, frame: Frame) -> dict[str, Reading]:
        """Return the reading of every field of the next picture `(height, width, 3)`."""
        now_s = self._clock()
        self.frames += 1
        return {name: self._follow(field, frame, now_s) for name, field in self.fields.items()}

    def read_field(self, frame: Frame, name: str) -> Reading:
        """Return what one field of a picture says by itself, without regard to other pictures."""
        if name not in self.fields:
            raise UnknownNameError("field", name, self.fields)
        crop = self.fields[name].cut(frame)
        return self._recognise(self.fields[name], crop, crop.tobytes())

    def settle(self, capture: Callable[[], Frame], timeout_s: float) -> dict[str, Reading]:
        """Read picture after picture until every field counts, or the time is over; return the last readings."""
        give_up = time.monotonic() + timeout_s
        readings = self.read(capture())
        while time.monotonic() < give_up and any(r.age_s > 0.0 or not r.is_readable for r in readings.values()):
            time.sleep(_POLL_S)
            readings = self.read(capture())
        return readings

    def forget(self) -> None:
        """Forget all values, as when another city begins; letters are kept."""
        self._tracks = {name: _Track(unreadable(name), unreadable(name)) for name in self.fields}

    def _follow(self, field: Field, frame: Frame, now_s: float) -> Reading:
        start_s = time.perf_counter()
        track = self._tracks[field.name]
        crop = field.cut(frame)
        raw = crop.tobytes()
        changed = raw != track.raw
        self.stage_s["compare"] += time.perf_counter() - start_s
        if changed:
            reading = self._recognise(field, crop, raw)
            is_equal = reading.is_readable and reading.value == track.now.value
            track.equal_reads = track.equal_reads + 1 if is_equal else 1
            track.raw, track.now = raw, reading
        else:
            track.equal_reads += 1
        if not track.now.is_readable and self._fallback is not None:
            start_s = time.perf_counter()
            answer = self._fallback.answer(field, crop, raw)
            self.stage_s["fallback"] += time.perf_counter() - start_s
            if answer is not None and answer.is_readable:
                track.now = self._memory[field.name][raw] = answer
        if track.now.is_readable and track.equal_reads >= self._stable_reads:
            track.good, track.good_at_s = track.now, now_s
            return track.now
        age_s = now_s - track.good_at_s
        if age_s > self._hold_s:  # a value as old as that is worth nothing
            return unreadable(field.name, track.now.text)
        return replace(track.good, confidence=track.good.confidence * HELD_SHARE, age_s=max(age_s, 1e-9))

    def _recognise(self, field: Field, crop: Frame, raw: bytes) -> Reading:
        memory = self._memory[field.name]
        known = memory.pop(raw, None)
        if known is not None:
            memory[raw] = known
            return known
        start_s = time.perf_counter()
        reading = field.understood(*self.bank.read(crop, field.alphabet), "glyphs")
        if reading.is_readable:  # what is not may be learned later
            memory[raw] = reading
            if len(memory) > _KEPT:
                del memory[next(iter(memory))]
        self.stage_s["glyphs"] += time.perf_counter() - start_s
        return reading


STABLE_READS = 2  # a game draws while it is captured


def profile_fields(profile: GameProfile) -> Iterator[Field]:
    """Yield the fields that a profile names."""
    for name, spec in profile.readings.items():
        region = profile.regions[spec.region]
        notation = Notation(thousands=spec.thousands, short_years=spec.short_years)
        yield Field(name, spec.kind, region, notation, spec.prefix, spec.least, spec.most, spec.ink)


class ProfileReader:
    """The reader of a game with a profile, with its letters on disk.

    Attributes:
        bank: Its letters.
        worker: Reads what the bank does not know.
        reader: Reads its pictures.
    """

    def __init__(
        self,
        profile: GameProfile,
        folder: Path | None = None,
        *,
        use_ocr: bool = True,
        names: Sequence[str] | None = None,
    ) -> None:
        """Load the letters that were learned before, from the user's cache if `folder` is None.

        With `use_ocr`, OCR reads in the background what the letters do not tell. `names` are the fields to read; None
        reads all of the profile.
        """
        self._file = (folder or cache_folder()) / f"glyphs-{profile.name}-{profile.fingerprint}.json"
        self.bank: GlyphBank = known_glyphs(self._file)
        self.worker = OcrWorker(available_engines() if use_ocr else [], self.bank)
        fallback = self.worker if use_ocr else None
        fields = [field for field in profile_fields(profile) if names is None or field.name in names]
        self.reader = ScreenReader(fields, self.bank, fallback, stable_reads=STABLE_READS)

    def save(self) -> None:
        """Keep the letters for the next time."""
        save_glyphs(self.bank, self._file)

    def close(self) -> None:
        """End the background thread and keep what was learned."""
        self.worker.close()
        if len(self.bank):
            self.save()
