"""`ludus rlbot AGENT [DIR]`: a folder for RLBot, or one line that says why not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ludus.worlds.rocket.rlbot.folder import check_folder

if TYPE_CHECKING:
    from tests.cli.conftest import Run

MakeAgent = Callable[[str], Path]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_written_and_tested(run: "Run", make_agent: MakeAgent, place: Path) -> None:
    agent = make_agent("rocket")
    code, out, err = run("rlbot", agent)
    assert code == 0, err
    assert out.startswith("[OK] rocket-run-rlbot: a bot for RLBot v5, offline; 1220 packets replayed, 156 ")
    assert check_folder(place / "rocket-run-rlbot").packets == 1220
    code, out, err = run("rlbot", agent, "bots/mine", "--json")
    assert code == 0, err
    said = json.loads(out)
    assert (said["folder"], said["packets"], said["file"]) == ("bots/mine", 1220, "bots/mine/agent.ludus")
    assert (place / "bots" / "mine" / "agent.ludus").stat().st_size == said["bytes"]


def test_what_is_wrong_is_one_line(run: "Run", make_agent: MakeAgent, place: Path) -> None:
    (place / "full").mkdir()
    (place / "full" / "letters.txt").write_text("")
    for arguments, fault in (
        ((make_agent("brawl"),), "brawl-v1"),
        ((make_agent("rocket"), "full"), "export"),
    ):
        code, _, err = run("rlbot", *arguments)
        assert code == 2
        assert err.startswith("[ERROR]")
        assert fault in err
    assert sorted(path.name for path in place.iterdir()) == ["brawl-run", "full", "rocket-run"]
