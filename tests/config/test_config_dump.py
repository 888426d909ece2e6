"""YAML output: readable, stable, plain ASCII, and the same data when it is read again."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ludus.config import dump_yaml, parse_document
from ludus.core.errors import FormatError

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
WORDS = st.sampled_from(["yes", "null", "1e5", "a: b", "- x", "#", " a", "a ", "gym:X", "a:", "...", "---", "0x1", "~"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT | WORDS
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | WORDS, inner, max_size=4), max_leaves=20
)


def test_the_form_by_hand() -> None:
    data: dict[str, Any] = {
        "world": {"name": "gym:CartPole-v1", "settings": {}},
        "pi": (64, 64),
        "rate": 3e-4,
        "small": 1e-05,
        "flag": True,
        "none": None,
        "word": "no",
        "number": "12",
        "stages": [{"name": "one", "against": ["a", "b"]}, [1, [2]], []],
        "based:delay=8": 0.5,
        "with space": "two words",
        "odd": "a: b\n\u00e9",
    }
    assert dump_yaml(data) == (
        "world:\n  name: gym:CartPole-v1\n  settings: {}\npi: [64, 64]\nrate: 0.0003\nsmall: 1.0e-05\nflag: true\n"
        'none: null\nword: "no"\nnumber: "12"\nstages:\n  - name: one\n    against: [a, b]\n  - - 1\n    - [2]\n'
        '  - []\nbased:delay=8: 0.5\nwith space: two words\nodd: "a: b\\n\\U000000e9"\n'
    )


def test_a_long_list_gets_a_line_for_each_item() -> None:
    long = [f"a_rather_long_word_{index}" for index in range(10)]
    assert dump_yaml({"list": long}).splitlines()[:2] == ["list:", "  - a_rather_long_word_0"]


def test_comments_line_up_and_cannot_become_content() -> None:
    text = dump_yaml({"a": 1, "bcd": {"e": [1]}}, lambda path: {1: "from f:1", 2: "x\ny: 2"}[len(path)])
    assert text == "a: 1      # from f:1\nbcd:      # from f:1\n  e: [1]  # x\\ny: 2\n"
    assert parse_document(text, "f").root.plain() == {"a": 1, "bcd": {"e": [1]}}


@given(DATA)
def test_what_is_written_is_read_again(data: Any) -> None:
    text = dump_yaml(data)
    assert text.isascii()
    document = parse_document(text, "f")
    assert not document.faults
    assert document.root.plain() == data
    assert dump_yaml(document.root.plain()) == text


@given(DATA)
def test_other_readers_read_the_same(data: Any) -> None:
    assert YAML(typ="safe", pure=True).load(dump_yaml(data)) == data


def test_numbers_that_are_not_finite() -> None:
    assert dump_yaml([math.inf, -math.inf, math.nan]) == "- .inf\n- -.inf\n- .nan\n"
    assert dump_yaml({"a": [math.inf]}) == "a: [.inf]\n"


@pytest.mark.parametrize("data", [{"a": object()}, {1: 2}, [b"x"], {"a": {1, 2}}])
def test_what_yaml_cannot_hold_is_refused(data: Any) -> None:
    with pytest.raises(FormatError, match="cannot be written as YAML"):
        dump_yaml(data)
