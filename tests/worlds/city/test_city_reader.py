"""The screen reader: stable reads, ages, fallback in the background, files of glyphs."""

import json
import threading
from concurrent.futures import wait
from pathlib import Path

import numpy as np
import pygame
import pytest

from ludus.core.errors import FormatError, UnknownNameError
from ludus.worlds.city.drivers.driver import Frame, Region
from ludus.worlds.city.perception.glyph_learning import Label, learn_all
from ludus.worlds.city.perception.glyphs import GlyphBank, known_glyphs, load_glyphs, save_glyphs
from ludus.worlds.city.perception.reader import HELD_SHARE, OcrWorker, ScreenReader
from ludus.worlds.city.perception.reading import Field, Notation

FUNDS = Field("funds", "money", Region(0.0, 0.0, 1.0, 0.5), prefix="Funds:", most=1e6)
DATE = Field("date", "date", Region(0.0, 0.5, 1.0, 1.0))
LESSONS = ("Funds: $1,234,567", "-890", "Mar 12, 1985", "Jan 3, 1900", "Feb 1, 2046")


def line(text: str) -> Frame:
    pygame.font.init()
    font = pygame.font.Font(None, 20)
    surface = pygame.Surface((200, 24))
    surface.fill((210, 210, 200))
    surface.blit(font.render(text, True, (10, 10, 20)), (4, 4))
    return np.ascontiguousarray(pygame.surfarray.array3d(surface).swapaxes(0, 1))


def picture(funds: str, date: str) -> Frame:
    return np.concatenate((line(funds), line(date)))


@pytest.fixture(scope="module")
def bank() -> GlyphBank:
    bank = GlyphBank()
    learn_all(bank, [Label(line(text), text) for text in LESSONS])
    assert all(bank.read(line(text)) == (text, 1.0) for text in LESSONS)
    return bank


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class FakeEngine:
    """An engine that says what it was told to, and counts."""

    name = "fake"

    def __init__(self, *texts: str) -> None:
        self.texts, self.crops, self.hold = texts, 0, threading.Event()
        self.hold.set()

    def opinions(self, crop: Frame) -> list[tuple[str, float]]:
        assert self.hold.wait(60.0)
        assert crop.ndim == 3
        self.crops += 1
        return [(text, 0.9) for text in self.texts]


def test_reads_fields_with_their_prefix(bank: GlyphBank) -> None:
    readings = ScreenReader([FUNDS, DATE], bank).read(picture("Funds: $5,470", "Mar 12, 1985"))
    assert readings["funds"].value == 5470.0
    assert readings["funds"].confidence == 1.0
    assert readings["funds"].engine == "glyphs"
    assert str(readings["date"].value) == "Date(year=1985, month=3, day=12)"


@pytest.mark.parametrize("text", ["$5,470", "Funds: $1,234,567", "Funds: $54,70", "Funds:", ""])
def test_is_unreadable_without_prefix_out_of_range_or_malformed(bank: GlyphBank, text: str) -> None:
    reading = ScreenReader([FUNDS], bank).read(picture(text, ""))["funds"]
    assert reading.value is None
    assert reading.confidence == 0.0


def test_a_value_counts_when_it_was_read_twice_and_is_held_with_its_age(bank: GlyphBank) -> None:
    clock = Clock()
    reader = ScreenReader([FUNDS], bank, stable_reads=2, hold_s=10.0, clock=clock)
    old, new = picture("Funds: $500", ""), picture("Funds: $400", "")
    assert not reader.read(old)["funds"].is_readable
    assert reader.read(old)["funds"].value == 500.0
    clock.now_s = 3.0
    held = reader.read(new)["funds"]
    assert (held.value, held.age_s, held.confidence) == (500.0, 3.0, HELD_SHARE)
    assert reader.read(new)["funds"].value == 400.0
    clock.now_s = 20.0
    assert not reader.read(picture("nothing", ""))["funds"].is_readable


def test_unchanged_regions_are_not_read_again(bank: GlyphBank) -> None:
    reader = ScreenReader([FUNDS, DATE], bank)
    frame = picture("Funds: $500", "Mar 12, 1985")
    reader.read(frame)
    spent_s = reader.stage_s["glyphs"]
    for _ in range(5):
        reader.read(frame)
    assert reader.stage_s["glyphs"] == spent_s
    assert reader.frames == 6


def test_settle_waits_for_two_equal_reads(bank: GlyphBank) -> None:
    frames = iter([picture("Funds: $50", ""), picture("Funds: $54", ""), picture("Funds: $54", "")])
    readings = ScreenReader([FUNDS], bank, stable_reads=2).settle(lambda: next(frames), 5.0)
    assert readings["funds"].value == 54.0


def test_unknown_field(bank: GlyphBank) -> None:
    with pytest.raises(UnknownNameError, match="funds"):
        ScreenReader([FUNDS], bank).read_field(picture("", ""), "fund")


def test_the_fallback_reads_in_the_background_and_teaches_the_bank() -> None:
    bank, engine = GlyphBank(), FakeEngine("Funds: $500", "Funds: $500")
    worker = OcrWorker([engine], bank)
    reader = ScreenReader([FUNDS], bank, worker)
    frame = picture("Funds: $500", "")
    engine.hold.clear()
    assert not reader.read(frame)["funds"].is_readable
    engine.hold.set()
    assert not wait(worker._asked.values(), 60.0).not_done
    reading = reader.read(frame)["funds"]
    assert (reading.value, reading.engine) == (500.0, "fake")
    assert ScreenReader([FUNDS], bank).read(frame)["funds"].engine == "glyphs"
    worker.close()


@pytest.mark.parametrize(("thousands", "value"), [("", 5838.0), (" ", None)])
def test_digits_far_apart_are_one_number_where_spaces_cannot_stand(thousands: str, value: float | None) -> None:
    bank, frame = GlyphBank(), np.full((24, 200, 3), 210, np.uint8)
    for place, digit in enumerate("5838"):
        letter = line(digit)[:, 4:16]
        frame[:, 8 + 24 * place : 20 + 24 * place] = letter
    people = Field("people", "number", Region(0.0, 0.0, 1.0, 1.0), Notation(thousands=thousands))
    worker = OcrWorker([FakeEngine("5838", "5838")], bank)
    assert worker.read(people, frame).value == 5838.0
    assert people.understood(*bank.read(frame), "glyphs").value == value
    worker.close()


def test_opinions_that_differ_say_and_teach_nothing() -> None:
    bank = GlyphBank()
    worker = OcrWorker([FakeEngine("Funds: $500", "Funds: $800")], bank)
    assert not worker.read(FUNDS, line("Funds: $500")).is_readable
    assert len(bank) == 0
    worker.close()


def test_glyphs_come_back_from_their_file(bank: GlyphBank, tmp_path: Path) -> None:
    file = tmp_path / "cache" / "glyphs.json"
    save_glyphs(bank, file)
    again = load_glyphs(file)
    assert again.glyphs == bank.glyphs
    assert again.read(line("Jan 12, 1985")) == bank.read(line("Jan 12, 1985")) == ("Jan 12, 1985", 1.0)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 99},
        {"format": "other"},
        {"glyphs": [{"columns": [1 << 60], "place": "full", "rise": 1, "votes": {"1": 1}}]},
        {"glyphs": [{"columns": [1], "place": "elsewhere", "rise": 1, "votes": {"1": 1}}]},
        {"glyphs": [{"columns": [1], "place": "full", "rise": 1, "votes": {"1": -1}}]},
        {"glyphs": [{"columns": [], "place": "full", "rise": 1, "votes": {"1": 1}}]},
        {"inner_gap": "wide"},
    ],
)
def test_damaged_files_are_refused(bank: GlyphBank, tmp_path: Path, change: dict[str, object]) -> None:
    file = tmp_path / "glyphs.json"
    save_glyphs(bank, file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(FormatError, match=r"glyphs\.json"):
        load_glyphs(file)
    assert len(known_glyphs(file)) == 0
