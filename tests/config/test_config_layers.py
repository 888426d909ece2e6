"""Layers: what a child changes and keeps, what it may extend, and where every value comes from."""

import sys
from pathlib import Path
from typing import Any

import pytest

from ludus.config import Document, Node, Shelf, merge_layers, parse_document, read_layers, read_overrides
from ludus.core.errors import UnknownNameError
from ludus.core.schedules import ScheduleConfig

EMPTY = Shelf("")


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
    schedules = dict[str, ScheduleConfig]
    assert merged(lower, upper, annotation=schedules).plain() == {"clip": {"kind": "constant", "level": 2}}
    same = merged(lower, "clip: {end: 5}\n", annotation=schedules)
    assert same.plain() == {"clip": {"kind": "linear", "start": 1, "end": 5}}
    # Where `kind` is a setting like any other, as in weights of rewards, it changes alone.
    assert merged(lower, "clip: {kind: cosine}\n").plain() == {"clip": {"kind": "cosine", "start": 1, "end": 0}}


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A package with the presets `quick` and `slow`."""
    presets = tmp_path / "packages" / "shelf_of_tests" / "presets"
    presets.mkdir(parents=True)
    (presets.parent / "__init__.py").touch()
    (presets / "quick.yaml").write_text("# Fast.\na: 1\nb: 1\n")
    (presets / "slow.yaml").write_text("extends: quick\nb: 2\n")
    (presets / "notes.txt").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    monkeypatch.delitem(sys.modules, "shelf_of_tests", raising=False)
    return Shelf("shelf_of_tests")


def test_a_shelf_has_names_files_and_words_about_them(shelf: Shelf) -> None:
    assert shelf.names() == ("quick", "slow")
    assert shelf.about("quick") == "Fast."
    assert shelf.about("slow") == ""
    with pytest.raises(UnknownNameError, match=r"unknown preset 'quik' .did you mean 'quick'.*valid: quick, slow"):
        shelf.file("quik")
    for name in ("../presets/quick", "", "quick.yaml", "notes"):
        with pytest.raises(UnknownNameError):
            shelf.file(name)
    assert EMPTY.names() == Shelf("ludus.core").names() == ()
    with pytest.raises(UnknownNameError, match="valid: none"):
        EMPTY.file("quick")


def test_a_file_extends_a_preset_that_extends_another(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("extends: slow\nc: 3\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.yaml").write_text("extends: ../base.yaml\nd: 4\n")
    documents = read_layers(tmp_path / "sub" / "mine.yaml", shelf)
    assert not faults(documents)
    root = merge_layers([document.root for document in documents])
    assert root.plain() == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert where(root, "a") == f"{shelf.file('quick')}:2:4"
    assert where(root, "b") == f"{shelf.file('slow')}:2:4"


@pytest.mark.parametrize(
    ("parent", "words"),
    [
        (
            "quik",
            "extends: should be a preset, or the path of a file ending in .yaml (got 'quik'); did you mean 'quick'?",
        ),
        ("gone.yaml", "gone.yaml' (got 'gone.yaml')"),
        ("/etc/passwd.yaml", "extends: should be a path relative to this file"),
        ("[quick, slow]", "extends: should be the name of a preset or a file beside this one (got ['quick', 'slow'])"),
        ("''", "extends: should be the name of a preset or a file beside this one"),
        ("null", "extends: should be the name of a preset or a file beside this one"),
        ('"a\\0b.yaml"', "extends: there is no file"),
        (f"{'x' * 5000}.yaml", "extends: there is no file"),
        ("mine.yaml", "extends: goes round in a circle: mine.yaml -> mine.yaml"),
        ("other.yaml", "other.yaml:1:10: extends: goes round in a circle: mine.yaml -> other.yaml -> mine.yaml"),
    ],
)
def test_parents_that_cannot_be_followed(shelf: Shelf, tmp_path: Path, parent: str, words: str) -> None:
    (tmp_path / "mine.yaml").write_text(f"a: 1\nextends: {parent}\n")
    (tmp_path / "other.yaml").write_text("extends: mine.yaml\n")
    found = faults(read_layers(tmp_path / "mine.yaml", shelf))
    assert len(found) == 1
    assert words in found[0]
    assert ":2:10: " in found[0] or "other.yaml:1:10: " in found[0]
    assert found[0].isprintable()


def test_endless_chains_end(tmp_path: Path) -> None:
    for index in range(40):
        (tmp_path / f"{index}.yaml").write_text(f"extends: {index + 1}.yaml\n")
    assert "more than 20 files extend each other" in faults(read_layers(tmp_path / "0.yaml", EMPTY))[0]


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
            "write key.path=value, such as ppo.steps=128",
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
    layers = [parse_document("ppo:\n  steps: 1\n", "f.yaml"), *read_overrides(["ppo.epochs=2"])]
    root = merge_layers([layer.root for layer in layers])
    assert where(root, "ppo") == "f.yaml:2:3"
    assert where(root, "ppo", "epochs") == "command line: ppo.epochs=2"
