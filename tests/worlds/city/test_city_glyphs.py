"""The glyph reader: learns from a few labelled crops in several fonts, and never invents what it did not learn."""

import time
from collections.abc import Callable

import numpy as np
import pygame
import pytest

from ludus.worlds.city.drivers.driver import Frame
from ludus.worlds.city.perception.glyph_learning import Label, learn, learn_all
from ludus.worlds.city.perception.glyphs import UNKNOWN, GlyphBank, line_of

Write = Callable[[str], Frame]
LESSONS = ("1,234,567,890", "-$20,485", "+$3,176", "48%", "97.6k", "Mar 12, 1985", "Feb 3, 2047")


def writer(
    size: int, ink: tuple[int, int, int] = (20, 20, 30), ground: tuple[int, int, int] = (230, 230, 220)
) -> Write:
    """Returns a function that draws text in pygame's own font with smooth edges."""
    pygame.font.init()
    font = pygame.font.Font(None, size)

    def write(text: str) -> Frame:
        face = font.render(text, True, ink)
        surface = pygame.Surface((face.get_width() + 40, face.get_height() + 4))
        surface.fill(ground)
        surface.blit(face, (3, 2))
        return np.ascontiguousarray(pygame.surfarray.array3d(surface).swapaxes(0, 1))

    return write


def taught(write: Write) -> GlyphBank:
    bank = GlyphBank()
    learn_all(bank, [Label(write(text), text) for text in LESSONS])
    return bank


@pytest.mark.parametrize("size", [15, 18, 22, 30])
def test_reads_hundreds_of_numbers_after_seven_lessons(size: int) -> None:
    write = writer(size)
    bank = taught(write)
    random = np.random.default_rng(size)
    wrong, unread = 0, 0
    for value in random.integers(-99_999, 9_999_999, 300):
        text = f"{'-' if value < 0 else ''}${abs(int(value)):,}"
        said, confidence = bank.read(write(text))
        unread += confidence == 0.0
        wrong += confidence > 0.0 and said != text
    assert wrong == 0
    assert unread <= 3


def test_reads_the_same_letters_in_other_colours() -> None:
    bank = taught(writer(18))
    for ink, ground in (((255, 122, 112), (30, 35, 44)), ((0, 96, 24), (232, 232, 222)), ((255, 255, 255), (0, 0, 0))):
        assert bank.read(writer(18, ink, ground)("-$1,234,567"))[0] == "-$1,234,567"


def test_reads_spaces_where_they_were_learnt() -> None:
    write = writer(18)
    assert taught(write).read(write("Mar 12, 1985"))[0] == "Mar 12, 1985"


def test_an_unknown_letter_is_marked_and_makes_the_whole_unsure() -> None:
    write = writer(18)
    said, confidence = taught(write).read(write("12Q4"))
    assert said == f"12{UNKNOWN}4"
    assert confidence == 0.0


def test_nothing_is_read_off_an_empty_or_faint_picture() -> None:
    bank = taught(writer(18))
    assert bank.read(np.full((16, 60, 3), 128, dtype=np.uint8)) == ("", 0.0)
    assert bank.read(writer(18, (200, 200, 195), (220, 220, 215))("123")) == ("", 0.0)
    noise = np.random.default_rng(0).integers(0, 256, (16, 60, 3)).astype(np.uint8)
    assert bank.read(noise)[1] == 0.0


def test_a_label_that_does_not_fit_teaches_nothing() -> None:
    bank = GlyphBank()
    assert not learn(bank, writer(18)("12345"), "12")
    assert len(bank) == 0


def test_a_bitmap_with_two_names_is_refused_unless_only_one_can_be_meant() -> None:
    bank, write = GlyphBank(), writer(18)
    crop = write("0")
    assert learn(bank, crop, "0")
    line = line_of(crop)
    assert line is not None
    bank.add(line.segments[0].columns, line, "O")
    assert bank.read(crop)[1] == 0.0
    assert bank.read(crop, frozenset("0123456789")) == ("0", 1.0)


def test_letters_that_touch_are_taken_apart_by_what_is_known() -> None:
    write = writer(22)
    bank = taught(write)
    one = write("4")
    line = line_of(one)
    assert line is not None
    segment = line.segments[0]
    glyph = one[:, segment.start : segment.end]
    margin = one[:, :3]
    touching = np.concatenate((margin, glyph, glyph, margin), axis=1)
    assert bank.read(touching) == ("44", 0.9)


def test_a_few_flipped_pixels_are_forgiven_in_large_letters_only() -> None:
    write = writer(30)
    bank = taught(write)
    crop = write("8").copy()
    line = line_of(crop)
    assert line is not None
    rows, columns = np.nonzero(crop[:, :, 0] == crop[:, :, 0].min())
    crop[rows[0], columns[0]] = crop[0, 0]
    said, confidence = bank.read(crop)
    assert said == "8"
    assert 0.9 < confidence < 1.0


def test_a_field_takes_less_than_a_millisecond() -> None:
    write = writer(18)
    bank, crop = taught(write), write("-$1,234,567")
    times = []
    for _ in range(50):
        start = time.perf_counter()
        bank.read(crop)
        times.append(time.perf_counter() - start)
    assert min(times) < 1e-3
