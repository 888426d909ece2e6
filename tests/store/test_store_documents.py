"""Strict JSON documents: equal round trips, refusals that say where, bounded size, depth and number of values."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ludus.core.errors import FormatError
from ludus.core.files import JSON
from ludus.store.documents import DEFAULT_LIMITS, decode_document, encode_document

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
DOCUMENTS = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(DOCUMENTS)
def test_what_is_written_comes_back_equal(document: JSON) -> None:
    raw = encode_document(document, DEFAULT_LIMITS)
    again = decode_document(raw, DEFAULT_LIMITS)
    assert json.dumps(again) == json.dumps(document)  # text, because True == 1 and -0.0 == 0.0
    assert raw.isascii()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"scores": [1.0, float("nan")]}, "document/scores/1 is nan; JSON has only finite numbers, use null"),
        ({"best": float("-inf")}, "document/best is -inf"),
        ({"pair": (1, 2)}, "document/pair is a tuple; valid: dict, list"),
        ({"counts": {1: 2}}, "document/counts has a key that is no string"),
        ([object()], r"document/0 is a object"),
        (1 << 5000, "more than 4096 bits"),
    ],
)
def test_what_would_not_come_back_equal_is_refused(document: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        encode_document(document, DEFAULT_LIMITS)


def test_a_document_that_contains_itself_is_refused() -> None:
    document: list[JSON] = []
    document.append(document)
    with pytest.raises(FormatError, match=r"nested.*64"):
        encode_document(document, DEFAULT_LIMITS)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"a": 1, "a": 2}', "same key twice"),
        (b"NaN", "NaN is not a JSON number"),
        (b"[-Infinity]", "-Infinity is not"),
        (b"1e999", "document is inf"),
        (b'"\xff"', "not UTF-8 text at byte 1"),
        (b"{", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"1 2", "not valid JSON"),
        (b"9" * 5000, "not valid JSON"),
        (b"[" * 65 + b"]" * 65, "nested deeper than 64"),
        (b"[" * 100_000, "nested deeper than 64"),
        (b"[" * 100_000 + b"]" * 100_000, "nested deeper than 64"),
    ],
)
def test_malformed_text_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        decode_document(raw, DEFAULT_LIMITS)


def test_the_limits_are_exact() -> None:
    limits = replace(DEFAULT_LIMITS, document_bytes=10, document_values=3, document_depth=2)
    assert decode_document(b"[[ ],  12]", limits) == [[], 12]
    with pytest.raises(FormatError, match=r"11 bytes.*10"):
        decode_document(b"[[ ],  123]", limits)
    with pytest.raises(FormatError, match=r"nested.*2"):
        decode_document(b"[[[]]]", limits)
    with pytest.raises(FormatError, match="3 values"):
        decode_document(b"[1,2,3,4]", limits)
    with pytest.raises(FormatError, match="3 values"):
        encode_document([1, 2, 3], limits)


def test_messages_about_hostile_keys_stay_short_and_ascii() -> None:
    raw = json.dumps({"\u2028" * 100_000: [[float("inf")]]}).replace("Infinity", "1e999").encode()
    with pytest.raises(FormatError) as caught:
        decode_document(raw, DEFAULT_LIMITS)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isascii()
