"""Layers: what a child changes and keeps, what it may extend, and where every value comes from."""

import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pydantic import BaseModel, create_model

from ludus.config import (
    Document,
    Node,
    PresetDirectory,
    layers,
    merge_layers,
    parse_document,
    read_layers,
    read_overrides,
)
from ludus.config.yaml import read_document
from ludus.core.errors import UnknownNameError
from ludus.core.schedules import ScheduleConfig

EMPTY = PresetDirectory("")


def merged(*texts: str, annotation: Any = Any) -> Node:
    return merge_layers([parse_document(text, f"{index}.yaml").root for index, text in enumerate(texts)], annotation)


def where(root: Node, *path: str) -> str:
    node = root.find(path)
    assert node is not None
    return str(node.origin)


def faults(documents: list[Document]) -> list[str]:
    return [str(fault) for document in documents for fault in document.faults]


def test_mappings_merge_and_all_else_is_replaced() -> None:
    root = merged("a: {x: 1, y: [1, 2]}\nb: 3\nc: {d: 1}\n", "a: {y: [9], z: 4}\nb: {e: 1}\nc: null\n")
    assert root.plain() == {"a": {"x": 1, "y": [9], "z": 4}, "b": {"e": 1}, "c": None}
    assert where(root, "a", "x") == "0.yaml:1:8"
    assert where(root, "a", "y") == "1.yaml:1:8"
    assert where(root, "c") == "1.yaml:3:4"
    assert merged("a: null\n", "a: {b: 1}\n").plain() == {"a": {"b": 1}}


def test_a_mapping_of_another_kind_replaces_what_was_there() -> None:
    lower, upper = "clip: {kind: linear, start: 1, end: 0}\n", "clip: {kind: constant, level: 2}\n"
    schedules = create_model("Schedules", clip=(ScheduleConfig, ...))
    assert merged(lower, upper, annotation=schedules).plain() == {"clip": {"kind": "constant", "level": 2}}
    same = merged(lower, "clip: {end: 5}\n", annotation=schedules)
    assert same.plain() == {"clip": {"kind": "linear", "start": 1, "end": 5}}
    # Where `kind` is a setting like any other, as in weights of rewards, it changes alone.
    assert merged(lower, "clip: {kind: cosine}\n").plain() == {"clip": {"kind": "cosine", "start": 1, "end": 0}}


class Section(BaseModel):
    """A section with a mapping of free keys, and one whose keys belong to a world."""

    weights: dict[str, float] = {}
    settings: dict[str, Any] = {}
    named: "dict[str, Section]" = {}


class Whole(BaseModel):
    """A document with such a section."""

    part: Section = Section()
    opponents: dict[str, float] | None = None


LOWER = "opponents: {a: 1, b: 2}\npart: {weights: {x: 1}, settings: {m: 1, n: {o: 1}}, named: {one: {}}}\n"


@pytest.mark.parametrize(
    ("upper", "expected"),
    [
        ("opponents: {c: 3}\n", {"opponents": {"c": 3}}),
        ("opponents: {}\n", {"opponents": {}}),
        ("opponents+: {c: 3, a: 0}\n", {"opponents": {"a": 0, "b": 2, "c": 3}}),
        ("part: {weights: {y: 1}}\n", {"weights": {"y": 1}}),
        ("part: {weights+: {y: 1}}\n", {"weights": {"x": 1, "y": 1}}),
        ("part: {named: {two: {}}}\n", {"named": {"one": {}, "two": {}}}),
        ("part: {settings: {n: {p: 2}}}\n", {"settings": {"m": 1, "n": {"o": 1, "p": 2}}}),
    ],
)
def test_mappings_with_free_keys_replace_and_add_only_where_a_plus_says_so(
    upper: str, expected: dict[str, Any]
) -> None:
    plain: Any = merged(LOWER, upper, annotation=Whole).plain()
    assert {**plain, **plain["part"]}.items() >= expected.items()
    assert set(plain) == {"opponents", "part"}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("opponents={c: 3}", {"c": 3}),
        ("opponents+={c: 3}", {"a": 1, "b": 2, "c": 3}),
        ("opponents.c=3", {"a": 1, "b": 2, "c": 3}),
        ("opponents=null", None),
    ],
)
def test_an_override_replaces_adds_or_sets_one_key(word: str, expected: dict[str, float] | None) -> None:
    lower = parse_document(LOWER, "0.yaml").root
    (override,) = read_overrides([word])
    opponents = merge_layers([lower, override.root], Whole).child("opponents")
    assert opponents is not None
    assert opponents.plain() == expected


def test_a_plus_on_anything_else_is_an_unknown_key() -> None:
    assert "part+" in merged(LOWER, "part+: {weights: {}}\n", annotation=Whole).plain()  # type: ignore[operator]
    assert merged("part: {weights+: {y: 1}}\n", annotation=Whole).plain() == {"part": {"weights": {"y": 1}}}


@pytest.fixture
def presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PresetDirectory:
    """A package with the presets `quick` and `slow`."""
    presets = tmp_path / "packages" / "presets_of_tests" / "presets"
    presets.mkdir(parents=True)
    (presets.parent / "__init__.py").touch()
    (presets / "quick.yaml").write_text("# Fast.\na: 1\nb: 1\n")
    (presets / "slow.yaml").write_text("extends: quick\nb: 2\n")
    (presets / "notes.txt").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    monkeypatch.delitem(sys.modules, "presets_of_tests", raising=False)
    return PresetDirectory("presets_of_tests")


def test_a_presets_has_names_files_and_words_about_them(presets: PresetDirectory) -> None:
    assert presets.names() == ("quick", "slow")
    assert presets.about("quick") == "Fast."
    assert presets.about("slow") == ""
    with pytest.raises(UnknownNameError, match=r"'quik'.*'quick'.*quick, slow"):
        presets.file("quik")
    for name in ("../presets/quick", "", "quick.yaml", "notes"):
        with pytest.raises(UnknownNameError):
            presets.file(name)
    assert EMPTY.names() == PresetDirectory("ludus.core").names() == ()
    with pytest.raises(UnknownNameError, match="none"):
        EMPTY.file("quick")


def test_a_file_extends_a_preset_that_extends_another(presets: PresetDirectory, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("extends: slow\nc: 3\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.yaml").write_text("extends: ../base.yaml\nd: 4\n")
    documents = read_layers(tmp_path / "sub" / "mine.yaml", presets)
    assert not faults(documents)
    root = merge_layers([document.root for document in documents])
    assert root.plain() == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert where(root, "a") == f"{presets.file('quick')}:2:4"
    assert where(root, "b") == f"{presets.file('slow')}:2:4"


@pytest.mark.parametrize(
    ("parent", "words"),
    [
        (
            "quik",
            "(got 'quik'); did you mean 'quick'?",
        ),
        ("gone.yaml", "gone.yaml' (got 'gone.yaml')"),
        ("/etc/passwd.yaml", "extends: should be a path relative to this file"),
        ("[quick, slow]", "extends: should be the name of a preset or a file beside this one (got ['quick', 'slow'])"),
        ("''", "extends: should be the name of a preset or a file beside this one"),
        ("null", "extends: should be the name of a preset or a file beside this one"),
        ('"a\\0b.yaml"', "extends: there is no file"),
        (f"{'x' * 5000}.yaml", "extends: there is no file"),
        ("mine.yaml", ": mine.yaml -> mine.yaml"),
        ("other.yaml", ": mine.yaml -> other.yaml -> mine.yaml"),
    ],
)
def test_parents_that_cannot_be_followed(presets: PresetDirectory, tmp_path: Path, parent: str, words: str) -> None:
    (tmp_path / "mine.yaml").write_text(f"a: 1\nextends: {parent}\n")
    (tmp_path / "other.yaml").write_text("extends: mine.yaml\n")
    found = faults(read_layers(tmp_path / "mine.yaml", presets))
    assert len(found) == 1
    assert words in found[0]
    assert ":2:10: " in found[0] or "other.yaml:1:10: " in found[0]
    assert found[0].isprintable()


def test_endless_chains_end(tmp_path: Path) -> None:
    for index in range(40):
        (tmp_path / f"{index}.yaml").write_text(f"extends: {index + 1}.yaml\n")
    assert "more than 20 files extend each other" in faults(read_layers(tmp_path / "0.yaml", EMPTY))[0]


def test_files_that_extend_each_other_have_one_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(20):
        (tmp_path / f"{index}.yaml").write_text(f"extends: {index + 1}.yaml\n#{'x' * 66_000}\n")
    reader = Mock(wraps=read_document)
    monkeypatch.setattr(layers, "read_document", reader)
    (fault,) = faults(read_layers(tmp_path / "0.yaml", EMPTY))
    assert fault.startswith(f"{tmp_path}/2.yaml:1:10: extends: files that extend each other have 264")
    assert "bytes in all; at most 200000 are read (got '3.yaml')" in fault
    assert reader.call_count == 3


def test_faults_of_a_parent_come_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: base.yaml\n")
    (tmp_path / "base.yaml").write_text("a: [\n")
    assert faults(read_layers(tmp_path / "mine.yaml", EMPTY))[0].startswith(f"{tmp_path}/base.yaml:2:1: ")


@pytest.mark.parametrize(
    ("word", "data"),
    [
        ("a=1", {"a": 1}),
        ("a.b.c=x", {"a": {"b": {"c": "x"}}}),
        ("a.b=", {"a": {"b": None}}),
        ("a=null", {"a": None}),
        ("a=[1, {b: 2}]", {"a": [1, {"b": 2}]}),
        ("a={}", {"a": {}}),
        ("a=x=y", {"a": "x=y"}),
        ('opponents."based:delay=8"=0.5', {"opponents": {"based:delay=8": 0.5}}),
        ('"a.b".c=1', {"a.b": {"c": 1}}),
        ("world.name=gym:CartPole-v1", {"world": {"name": "gym:CartPole-v1"}}),
    ],
)
def test_overrides(word: str, data: object) -> None:
    (document,) = read_overrides([word])
    assert not document.faults
    assert document.root.plain() == data


@pytest.mark.parametrize(
    ("word", "line"),
    [
        (
            "steps",
            "command line: steps: 'steps': should be a key, an equals sign and a value; "
            "write key.path=value, such as ppo.n_steps=128",
        ),
        ("=1", "command line: =1: '=1': should be a key"),
        ("a..b=1", "command line: a..b=1: 'a..b=1': should be a key"),
        (".a=1", "command line: .a=1: '.a=1': should be a key"),
        ('"a=1', "command line: \"a=1: '\"a=1': should be a key"),
        ("a=[1", "command line: a=[1: a: is not valid YAML: "),
        ("a.b=!!str 1", "command line: a.b=!!str 1: a.b: tag 'tag:yaml.org,2002:str' is not allowed"),
        ("a" + ".a" * 50 + "=1", "is a path of more than 40 keys"),
        (
            "hook=https://example.com/secret\x1b[",
            "command line: hook=https://...: hook: is not valid YAML: character #x001b",
        ),
        ("a=\udcff", "command line: a=\\udcff: a: "),
    ],
)
def test_overrides_that_are_none(word: str, line: str) -> None:
    (document,) = read_overrides([word])
    assert line in str(document.faults[0])
    assert str(document.faults[0]).isprintable()
    assert "secret" not in str(document.faults[0])


def test_an_override_keeps_the_place_of_what_it_does_not_change() -> None:
    layers = [parse_document("ppo:\n  n_steps: 1\n", "f.yaml"), *read_overrides(["ppo.n_epochs=2"])]
    root = merge_layers([layer.root for layer in layers])
    assert where(root, "ppo") == "f.yaml:2:3"
    assert where(root, "ppo", "n_epochs") == "command line: ppo.n_epochs=2"
