"""The engine knows no world by name, and finds every world through its entry point."""

import ast
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import ludus
from ludus.envs import world as worlds
from ludus.envs.world import World, find_world, registered_worlds, resolve

ENGINE = Path(ludus.__file__).parent
WORLD_NAMES = re.compile(r"(brawl|rocket|mimic|city|rlbot|micropolis)(-v\d+)?(:.*)?", re.IGNORECASE)
LAZY = ("env", "config", "rewards", "metrics", "scenarios", "display", "replay_view", "browser", "styles")


def _names(file: Path) -> list[str]:
    """Identifiers and strings of a module; sentences, such as help texts with an example, are no names."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found += [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Name):
            found.append(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(node.name)
    return found


def test_the_engine_knows_no_world_by_name() -> None:
    files = [file for file in ENGINE.rglob("*.py") if "worlds" not in file.relative_to(ENGINE).parts]
    assert len(files) > 100
    known = {
        f"{file.relative_to(ENGINE)}: {name}"
        for file in files
        for name in _names(file)
        if WORLD_NAMES.fullmatch(name) or name.startswith("ludus.worlds.")
    }
    assert known == set()
    scripts = [file.name for file in (ENGINE / "reports").rglob("*.js")]
    assert scripts
    assert not [name for name in scripts if WORLD_NAMES.match(name) or name.startswith("walker")]


def test_every_part_of_every_world_can_be_imported() -> None:
    assert {"brawl", "city", "duel", "mimic", "rocket"} <= {world.name for world in registered_worlds()}
    for world in registered_worlds():
        for part in LAZY:
            value = getattr(world, part)
            if value is not None:
                resolve(value)
        for command in world.commands.values():
            assert callable(resolve(command))
        for check in world.checks.values():
            assert callable(resolve(check))


def test_all_worlds_come_through_entry_points() -> None:
    assert {entry.value for entry in entry_points(group=worlds.GROUP)} >= {
        "ludus.worlds.brawl:WORLD",
        "ludus.envs.tiny:DUEL",
    }


class Entry:
    """An entry point of a package of others."""

    def __init__(self, name: str, loaded: object) -> None:
        self.name, self.value, self._loaded = name, f"{name}:WORLD", loaded

    def load(self) -> object:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


def test_a_broken_package_costs_its_own_world_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    good, twin = World(id="good-v1", env="a.b:make"), World(id="good-v1", env="c.d:make")
    entries = [
        Entry("broken", ImportError("no module")),
        Entry("odd", "text"),
        Entry("good", good),
        Entry("twin", twin),
    ]
    monkeypatch.setattr(worlds, "_WORLDS", {})
    monkeypatch.setattr(worlds, "entry_points", lambda group: entries if group == worlds.GROUP else [])
    assert registered_worlds() == (good,)
    assert find_world("good").package == "a"
    for text in ("broken:WORLD", "odd:WORLD", "twin:WORLD"):
        assert text in caplog.text
