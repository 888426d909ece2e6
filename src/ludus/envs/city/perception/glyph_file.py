"""Glyphs on disk: strict JSON with a version. A stranger's file can be wrong, never dangerous."""

from pathlib import Path
from typing import Any, get_args

from ludus.core.errors import FormatError
from ludus.core.files import JSON, write_atomic
from ludus.envs.city.perception.binarise import MAX_ROWS
from ludus.envs.city.perception.glyphs import Glyph, GlyphBank, Place
from ludus.store.documents import decode_document, encode_document
from ludus.store.limits import Limits

VERSION = 1
_FORMAT = "ludus glyphs"
_LIMITS = Limits(document_bytes=4 << 20, document_values=400_000, document_depth=6)
_MAX_COLUMNS = 256
_MAX_LETTERS = 4


def save_glyphs(bank: GlyphBank, file: Path) -> None:
    """Writes all that a bank knows, replacing the file as a whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    glyphs: list[Any] = [
        {"columns": list(glyph.columns), "place": glyph.place, "rise": glyph.rise, "votes": dict(glyph.votes)}
        for glyph in list(bank.glyphs.values())
    ]
    document: JSON = {
        "format": _FORMAT,
        "version": VERSION,
        "inner_gap": bank.inner_gap,
        "space_gap": bank.space_gap,
        "glyphs": glyphs,
    }
    write_atomic(file, encode_document(document, _LIMITS))


def load_glyphs(file: Path) -> GlyphBank:
    """Returns the bank in a file.

    Raises:
        FormatError: It is damaged, of another version, or no file of glyphs at all.
    """
    try:
        document = decode_document(file.read_bytes(), _LIMITS)
        return _bank(document)
    except FormatError as error:
        raise FormatError(f"{file} holds no glyphs: {error}; remove it to learn them anew") from None


def known_glyphs(file: Path) -> GlyphBank:
    """Returns the bank in a file, or an empty one if none can be used: what is lost is learnt anew."""
    try:
        return load_glyphs(file)
    except (FormatError, OSError):
        return GlyphBank()


def _bank(document: object) -> GlyphBank:
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise FormatError(f"its format is not {_FORMAT!r}")
    if document.get("version") != VERSION:
        raise FormatError(f"its version is {document.get('version')!r}, this is for {VERSION}")
    bank = GlyphBank()
    bank.inner_gap, bank.space_gap = _whole(document, "inner_gap", -1, 1000), _whole(document, "space_gap", 0, 1000)
    glyphs = document.get("glyphs")
    if not isinstance(glyphs, list):
        raise FormatError("it has no list of glyphs")
    for item in glyphs:
        bank.insert(_glyph(item))
    return bank


def _glyph(item: object) -> Glyph:
    if not isinstance(item, dict):
        raise FormatError("a glyph is no mapping")
    columns, votes, place = item.get("columns"), item.get("votes"), item.get("place")
    if not isinstance(columns, list) or not 1 <= len(columns) <= _MAX_COLUMNS:
        raise FormatError(f"a glyph needs 1 to {_MAX_COLUMNS} columns")
    if not all(type(column) is int and 0 <= column < 1 << MAX_ROWS for column in columns) or not columns[0]:
        raise FormatError("a column of a glyph is no whole number of its rows")
    if not isinstance(votes, dict) or not votes:
        raise FormatError("a glyph has no votes")
    for text, count in votes.items():
        if not 1 <= len(text) <= _MAX_LETTERS or type(count) is not int or count < 1:
            raise FormatError(f"a glyph has the vote {text[:9]!r}: {count!r}")
    if place not in get_args(Place):
        raise FormatError(f"a glyph is at {place!r}; valid: {', '.join(get_args(Place))}")
    kept: Place = "high" if place == "high" else "low" if place == "low" else "full"
    return Glyph(tuple(columns), kept, _whole(item, "rise", -MAX_ROWS, MAX_ROWS), dict(votes))


def _whole(mapping: dict[str, Any], name: str, least: int, most: int) -> int:
    value = mapping.get(name)
    if type(value) is not int or not least <= value <= most:
        raise FormatError(f"{name} is {value!r}; valid: whole numbers from {least} to {most}")
    return value
