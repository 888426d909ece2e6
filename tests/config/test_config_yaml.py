"""YAML read and written: values, positions, hostile documents, limits, and data that goes there and back."""

import math
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ludus.config import Document, dump_yaml, parse_document, read_document, read_yaml
from ludus.config.yaml import MAX_CONFIG_BYTES, MAX_NESTING, resolve_scalar
from ludus.core.errors import ConfigFileError, FormatError

# Nine lists of nine lists of ...: 9^6 words if they were written out.
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 6)
)
LADDER = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 2_000))


def lines(document: Document) -> list[str]:
    return [str(fault) for fault in document.faults]


def test_every_key_and_value_knows_its_place() -> None:
    text = "world:\n  name: duel\nlist:\n  - 1\n  - {a: 2}\n"
    root = parse_document(text, "f.yaml").root
    assert root.plain() == {"world": {"name": "duel"}, "list": [1, {"a": 2}]}
    places = {
        ("world",): ("f.yaml:2:3", "f.yaml:1:1"),
        ("world", "name"): ("f.yaml:2:9", "f.yaml:2:3"),
        ("list",): ("f.yaml:4:3", "f.yaml:3:1"),
        ("list", 0): ("f.yaml:4:5", "f.yaml:4:5"),
        ("list", 1): ("f.yaml:5:5", "f.yaml:5:5"),
        ("list", 1, "a"): ("f.yaml:5:9", "f.yaml:5:6"),
    }
    for path, expected in places.items():
        node = root.find(path)
        assert node is not None
        assert (str(node.origin), str(node.key_origin)) == expected
    assert root.find(("world", "nothing", "below")) is None


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("on", "on"),
        ("12", 12),
        ("-3", -3),
        ("500_000", 500_000),
        ("0x1F", 31),
        ("0o17", 15),
        ("010", 10),
        ("1.5", 1.5),
        ("1e6", 1e6),
        ("3e-4", 3e-4),
        ("1.0e-05", 1e-5),
        (".5", 0.5),
        ("5.", 5.0),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("2020-01-01", "2020-01-01"),
        ("1_", "1_"),
        ("_1", "_1"),
        ("1__0", "1__0"),
        ("e5", "e5"),
        ("gym:CartPole-v1", "gym:CartPole-v1"),
        (".", "."),
        ("-", "-"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_what_words_stand_for(word: str, value: object) -> None:
    assert resolve_scalar(word) == value
    assert type(resolve_scalar(word)) is type(value)


def test_quotes_make_text_and_keys_are_text() -> None:
    text = "a: '1'\nb: \"true\"\nc: |\n  12\n1: x\nnull: y\n"
    assert parse_document(text, "f").root.plain() == {"a": "1", "b": "true", "c": "12\n", "1": "x", "null": "y"}
    value = parse_document("a: .nan", "f").root.find(("a",))
    assert value is not None
    assert isinstance(value.content, float)
    assert math.isnan(value.content)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "\ufeff"])
def test_an_empty_document_is_null(text: str) -> None:
    document = parse_document(text, "f")
    assert document.root.plain() is None
    assert not document.faults


def test_a_key_given_twice_names_both_places() -> None:
    document = parse_document("ppo:\n  n_steps: 1\n  n_epochs: 2\n  n_steps: 3\n", "f.yaml")
    (line,) = lines(document)
    assert line.startswith("f.yaml:4:3: ppo.n_steps: ")
    assert "f.yaml:2:3" in line
    assert document.readable


@pytest.mark.parametrize(
    ("text", "start", "value"),
    [
        ("a: *x\n", "f:1:4: a: ", "*x"),
        ("a: &x [*x]\n", "f:1:8: a.0: ", "*x"),
        ("a:\n  b: !!str 1\n", "f:2:6: a.b: ", "'tag:yaml.org,2002:str'"),
        ("a: ! b\n", "f:1:4: a: ", "'!'"),
        ("- 1\n- !x {a: 1}\n", "f:2:3: 1: ", "'!x'"),
        ("<<: {a: 1}\n", 'f:1:1: "<<": ', "extends"),
        ("%YAML 1.1\n---\na: yes\n", "f:2:1: top level: ", "%"),
        ('a: "\\ud800"\n', "f:1:4: a: ", "(got '\\ud800')"),
        (f"a: {'9' * 500}\n", "f:1:4: a: ", "500"),
    ],
)
def test_what_is_rejected_while_the_rest_is_read(text: str, start: str, value: str) -> None:
    document = parse_document(text + ("z: 5\n" if not text.startswith("-") else ""), "f")
    (line,) = lines(document)
    assert line.startswith(start)
    assert value in line
    assert document.readable
    assert text.startswith("-") or document.root.find(("z",)) is not None


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("a: [1, 2\n", "f:2:1: a.2: is not valid YAML: while parsing a flow sequence"),
        ("a: 1\n\tb: 2\n", "f:2:1: top level: is not valid YAML: while scanning for the next token"),
        ("a: b: c\n", "f:1:5: top level: is not valid YAML: mapping values are not allowed here"),
        ("a: 'x\n", "f:2:1: a: is not valid YAML: while scanning a quoted scalar"),
        ("a: 1\n---\nb: 2\n", "f:2:1: top level: a second document"),
        ("? [1]\n: 2\n", "f:1:3: top level: "),
        ("a: 1\nb: \x07\n", "f:2:4: top level: is not valid YAML: character #x0007 is not allowed"),
        ("a: &x b\n*x : 1\n", "f:2:1: top level: a key"),
        ("&x a: 1\n", "f:1:1: top level: a key"),
        (BOMB, "f:5:10: a4.0: "),
        (LADDER, "f:40:12: a39.0: "),
        ("- " * 100, "f:1:81: 0.0.0"),
        ("[" * 100, "f:1:41: 0.0.0"),
        ("{a: " * 100, "f:1:161: a.a.a"),
    ],
)
def test_what_ends_the_reading(text: str, beginning: str) -> None:
    document = parse_document(text, "f")
    assert lines(document)[0].startswith(beginning), lines(document)
    assert not document.readable
    assert len(document.faults) == 1


def test_an_alias_stands_for_what_its_anchor_is_on() -> None:
    text = "a: &x {b: [1, 2]}\nc: *x\nd: [&y 3, *y]\ne: &x 4\nf: *x\n"
    document = parse_document(text, "f")
    assert not document.faults
    assert document.root.plain() == {"a": {"b": [1, 2]}, "c": {"b": [1, 2]}, "d": [3, 3], "e": 4, "f": 4}
    node = document.root.find(("c", "b"))
    assert node is not None
    assert str(node.origin) == "f:1:11", "the value is where it is written"
    alias = document.root.find(("c",))
    assert alias is not None
    assert (str(alias.origin), str(alias.key_origin)) == ("f:2:4", "f:2:1")


def test_nesting_up_to_the_limit_is_read() -> None:
    assert not parse_document("[" * MAX_NESTING + "]" * MAX_NESTING, "f").faults
    assert parse_document("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1), "f").faults


def test_thousands_of_faults_do_not_take_long() -> None:
    document = parse_document("a: 1\n" * 20_000, "f")
    assert len(document.faults) == 100
    assert not document.readable


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "big.yaml").write_bytes(b"#" * (MAX_CONFIG_BYTES + 1))
    (tmp_path / "bytes.yaml").write_bytes(b"a: 1\nb: \xff\n")
    for path in (pipe, tmp_path, tmp_path / "gone", tmp_path / "loop", Path("/dev/zero"), Path("a\0b")):
        assert "cannot be read: there is no such file" in lines(read_document(path))[0]
    assert "cannot be read: File name too long" in lines(read_document(tmp_path / ("x" * 5_000)))[0]
    assert lines(read_document(tmp_path / "big.yaml")) == [
        f"{tmp_path}/big.yaml:1:1: top level: configuration is larger than 200000 bytes"
    ]
    assert lines(read_document(tmp_path / "bytes.yaml")) == [
        f"{tmp_path}/bytes.yaml:2:4: top level: is not valid YAML: not UTF-8 text, invalid start byte"
    ]


def test_plain_data_or_all_faults_at_once(tmp_path: Path) -> None:
    file = tmp_path / "table.yaml"
    file.write_text("a: [1, 2.5, x]\n")
    assert read_yaml(file, "table", 100) == {"a": [1, 2.5, "x"]}
    file.write_text("a: !x 1\nb: *x\n")
    with pytest.raises(ConfigFileError, match=r"^2 faults.*\n.*:1:4: a: .*\n.*:2:4: b: ") as caught:
        read_yaml(file, "table", 100)
    assert [fault.key for fault in caught.value.faults] == ["a", "b"]
    with pytest.raises(ConfigFileError, match="10 bytes"):
        read_yaml(file, "table", 10)


@given(st.text(max_size=300))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    started = time.process_time()
    document = parse_document(text, "f")
    assert document.readable or document.faults
    assert time.process_time() - started < 2.0


@given(st.lists(st.sampled_from(list("ab:-[]{},&*!|>'\"#%@`?\n \t0.<~")), max_size=80).map("".join))
def test_no_punctuation_makes_the_reader_fail(text: str) -> None:
    document = parse_document(text, "f")
    assert document.readable or document.faults


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
    with pytest.raises(FormatError, match="YAML"):
        dump_yaml(data)
