"""The YAML reader: places of keys and values, what words stand for, and everything that it refuses."""

import math
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ludus.config import Document, parse_document, read_document, read_yaml
from ludus.config.reader import MAX_CONFIG_BYTES, MAX_NESTING
from ludus.config.scalars import resolve_scalar
from ludus.core.errors import ConfigFileError

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
    document = parse_document("ppo:\n  steps: 1\n  epochs: 2\n  steps: 3\n", "f.yaml")
    assert lines(document) == ["f.yaml:4:3: ppo.steps: key is given twice; the first is at f.yaml:2:3; leave one out"]
    assert document.readable


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: *x\n", "f:1:4: a: alias *x stands for nothing that comes before it"),
        ("a: &x [*x]\n", "f:1:8: a.0: alias *x stands for nothing that comes before it"),
        ("a:\n  b: !!str 1\n", "f:2:6: a.b: tag 'tag:yaml.org,2002:str' is not allowed; leave it out"),
        ("a: ! b\n", "f:1:4: a: tag '!' is not allowed; leave it out"),
        ("- 1\n- !x {a: 1}\n", "f:2:3: 1: tag '!x' is not allowed; leave it out"),
        ("<<: {a: 1}\n", 'f:1:1: "<<": merge keys are not allowed; write the values out or use extends'),
        (
            "%YAML 1.1\n---\na: yes\n",
            "f:2:1: top level: directives are not allowed; leave the lines that begin with % out",
        ),
        ('a: "\\ud800"\n', "f:1:4: a: is half a character, which no file can hold (got '\\ud800')"),
        (f"a: {'9' * 500}\n", "f:1:4: a: is a number of 500 characters; at most 400 are read"),
    ],
)
def test_what_is_refused_while_the_rest_is_read(text: str, line: str) -> None:
    document = parse_document(text + ("z: 5\n" if not text.startswith("-") else ""), "f")
    assert lines(document) == [line]
    assert document.readable
    assert text.startswith("-") or document.root.find(("z",)) is not None


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("a: [1, 2\n", "f:2:1: a.2: is not valid YAML: while parsing a flow sequence"),
        ("a: 1\n\tb: 2\n", "f:2:1: top level: is not valid YAML: while scanning for the next token"),
        ("a: b: c\n", "f:1:5: top level: is not valid YAML: mapping values are not allowed here"),
        ("a: 'x\n", "f:2:1: a: is not valid YAML: while scanning a quoted scalar"),
        ("a: 1\n---\nb: 2\n", "f:2:1: top level: a second document begins here; a file is one document"),
        ("? [1]\n: 2\n", "f:1:3: top level: a key must be text, not a mapping or a list"),
        ("a: 1\nb: \x07\n", "f:2:4: top level: is not valid YAML: character #x0007 is not allowed"),
        ("a: &x b\n*x : 1\n", "f:2:1: top level: a key must be plain text, without an anchor or alias"),
        ("&x a: 1\n", "f:1:1: top level: a key must be plain text, without an anchor or alias"),
        (BOMB, "f:5:10: a4.0: all aliases together stand for more than 10000 values"),
        (LADDER, "f:40:12: a39.0: mappings and lists are nested deeper than 40"),
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
    with pytest.raises(ConfigFileError, match=r"^2 faults in the configuration\n.*:1:4: a: .*\n.*:2:4: b: ") as caught:
        read_yaml(file, "table", 100)
    assert [fault.key for fault in caught.value.faults] == ["a", "b"]
    with pytest.raises(ConfigFileError, match="table is larger than 10 bytes"):
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
