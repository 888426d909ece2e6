"""The screen reader: readings of all fields of a picture, fast where nothing changed, honest where nothing is sure."""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ludus.core.errors import UnknownNameError
from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.perception.fields import Field
from ludus.envs.city.perception.glyphs import GlyphBank
from ludus.envs.city.perception.ocr_worker import OcrWorker
from ludus.envs.city.perception.reading import Reading, unreadable

HELD_SHARE = 0.5  # of its confidence that a reading keeps while its field cannot be read
_KEPT = 512  # crops of a field whose readings are remembered
_POLL_S = 0.01


@dataclass(slots=True)
class _Track:
    """What is known about one field.

    Attributes:
        raw: The pixels seen last.
        now: What they say.
        equal_reads: How often in a row that was said.
        good: The last reading that was confirmed, and when.
    """

    raw: bytes = b""
    now: Reading | None = None
    equal_reads: int = 0
    good: Reading | None = None
    good_at_s: float = 0.0


class ScreenReader:
    """Reads the fields of one game's pictures.

    A value counts when it was read so often in a row as `stable_reads` says; a picture torn in the middle of drawing
    is not read the same twice. Until then, and while a field cannot be read, the last value that counted is given with
    its age and less confidence. Only what has changed is read again.

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
        """Makes a reader.

        Args:
            fields: What to read.
            bank: Letters, of which readers of equal games can share one.
            fallback: Reads in the background what the bank does not know; nothing is if None.
            stable_reads: Equal reads in a row that make a value count; 2 where pictures can be torn.
            hold_s: How long an old value is given for a field that cannot be read any more.
            clock: Tells the time in seconds.
        """
        self.fields = {field.name: field for field in fields}
        self.bank, self.stage_s, self.frames = bank, defaultdict[str, float](float), 0
        self._fallback, self._stable_reads, self._hold_s, self._clock = fallback, stable_reads, hold_s, clock
        self._alphabets = {field.name: field.alphabet for field in fields}
        self._tracks = {field.name: _Track() for field in fields}
        self._memory: dict[str, OrderedDict[bytes, Reading]] = {field.name: OrderedDict() for field in fields}

    def read(self, frame: Frame) -> dict[str, Reading]:
        """Returns the reading of every field of the next picture `(height, width, 3)`."""
        now_s = self._clock()
        self.frames += 1
        return {name: self._follow(field, frame, now_s) for name, field in self.fields.items()}

    def read_field(self, frame: Frame, name: str) -> Reading:
        """Returns what one field of a picture says by itself, without regard to other pictures.

        Raises:
            UnknownNameError: There is no such field.
        """
        if name not in self.fields:
            raise UnknownNameError("field", name, self.fields)
        crop = self.fields[name].region.cut(frame)
        return self._recognise(self.fields[name], crop, crop.tobytes())

    def settle(self, capture: Callable[[], Frame], timeout_s: float) -> dict[str, Reading]:
        """Reads picture after picture until every field counts, or the time is over; returns the last readings."""
        give_up = time.monotonic() + timeout_s
        readings = self.read(capture())
        while time.monotonic() < give_up and any(r.age_s > 0.0 or not r.is_readable for r in readings.values()):
            time.sleep(_POLL_S)
            readings = self.read(capture())
        return readings

    def forget(self) -> None:
        """Forgets all values, as when another city begins; letters are kept."""
        self._tracks = {name: _Track() for name in self.fields}

    def _follow(self, field: Field, frame: Frame, now_s: float) -> Reading:
        start_s = time.perf_counter()
        track = self._tracks[field.name]
        crop = field.region.cut(frame)
        raw = crop.tobytes()
        changed = raw != track.raw
        self.stage_s["compare"] += time.perf_counter() - start_s
        if changed or track.now is None:
            reading = self._recognise(field, crop, raw)
            is_equal = track.now is not None and reading.is_readable and reading.value == track.now.value
            track.equal_reads = track.equal_reads + 1 if is_equal else 1
            track.raw, track.now = raw, reading
        else:
            track.equal_reads += 1
        if not track.now.is_readable and self._fallback is not None:
            track.now = self._ask_fallback(self._fallback, field, crop, raw, track.now)
        if track.now.is_readable and track.equal_reads >= self._stable_reads:
            track.good, track.good_at_s = track.now, now_s
            return track.now
        return self._held(track, now_s, field.name)

    def _held(self, track: _Track, now_s: float, name: str) -> Reading:
        """Returns the last value that counted, marked as old; after some time it is worth nothing."""
        age_s = now_s - track.good_at_s
        if track.good is None or age_s > self._hold_s:
            return unreadable(name, track.now.text if track.now is not None else "")
        return replace(track.good, confidence=track.good.confidence * HELD_SHARE).aged(max(age_s, 1e-9))

    def _recognise(self, field: Field, crop: Frame, raw: bytes) -> Reading:
        memory = self._memory[field.name]
        known = memory.get(raw)
        if known is not None:
            memory.move_to_end(raw)
            return known
        start_s = time.perf_counter()
        text, confidence = self.bank.read(crop, self._alphabets[field.name])
        reading = field.understood(text, confidence, "glyphs")
        if reading.is_readable:  # what is not may be learnt later
            memory[raw] = reading
            if len(memory) > _KEPT:
                memory.popitem(last=False)
        self.stage_s["glyphs"] += time.perf_counter() - start_s
        return reading

    def _ask_fallback(self, worker: OcrWorker, field: Field, crop: Frame, raw: bytes, reading: Reading) -> Reading:
        start_s = time.perf_counter()
        answer = worker.answer(field, crop, raw)
        self.stage_s["fallback"] += time.perf_counter() - start_s
        if answer is None or not answer.is_readable:
            return reading
        self._memory[field.name][raw] = answer
        return answer
