"""`ludus share`: what it says, writes and refuses."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.compile

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _needs_compiler() -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs the extra `web`: pip install ziglang")


def test_it_writes_a_page_and_says_who_plays(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, said, _ = run("share", "rookie")
    page = tmp_path / "rookie.html"
    assert code == 0
    assert "rookie.html" in said
    assert "brawl-v1, 1 agent and 14 bots to play against" in said
    assert page.read_text().startswith("<!doctype html>")
    page.write_text("mine")
    code, _, error = run("share", "rookie")
    assert (code, "rookie.html exists" in error, "--overwrite" in error) == (2, True, True)
    assert page.read_text() == "mine"
    code, said, _ = run("share", "rookie", "--overwrite", "--json")
    written = json.loads(said)
    assert code == 0
    assert (written["file"], written["world"], written["left_out"]) == ("rookie.html", "brawl-v1", [])
    assert written["bytes"] == page.stat().st_size
    assert written["players"][:2] == ["rookie", "constant"]


def test_a_world_without_a_page_is_refused(run: Run, tmp_path: Path) -> None:
    code, _, error = run("share", "builder", "--out", tmp_path / "builder.html")
    assert (code, "city-v1 cannot be played in a browser; valid: brawl, mimic, rocket" in error) == (2, True)
    assert not (tmp_path / "builder.html").exists()
