"""`ludus export AGENT --rlbot [DIR]`: a folder for RLBot, or one line that says why not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ludus.evaluation.rlbot.folder import check_folder

if TYPE_CHECKING:
    from tests.cli.conftest import Run

MakeAgent = Callable[[str], Path]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_written_and_tested(run: "Run", make_agent: MakeAgent, place: Path) -> None:
    agent = make_agent("rocket")
    code, out, err = run("export", agent, "--rlbot")
    assert code == 0, err
    agent_line, bot_line = out.splitlines()
    assert agent_line.startswith("[OK] rocket-run-rlbot/agent.ludus: ")
    assert bot_line.startswith("[OK] rocket-run-rlbot: a bot for RLBot v5, offline; 1220 packets replayed, 156 ")
    assert check_folder(place / "rocket-run-rlbot").packets == 1220
    assert not (place / "rocket-run.ludus").exists()  # the agent is in the folder
    code, out, err = run("export", agent, "--rlbot", "bots/mine", "--out", "mine.ludus", "--json")
    assert code == 0, err
    said = json.loads(out)
    assert (said["file"], said["rlbot"]["folder"], said["rlbot"]["packets"]) == ("mine.ludus", "bots/mine", 1220)
    assert (place / "bots" / "mine" / "agent.ludus").read_bytes() == (place / "mine.ludus").read_bytes()


def test_what_is_wrong_is_one_line(run: "Run", make_agent: MakeAgent, place: Path) -> None:
    fighter = make_agent("brawl")
    (place / "full").mkdir()
    (place / "full" / "letters.txt").write_text("")
    for arguments, fault in (
        ((fighter, "--rlbot"), "only agents of rocket can play in RLBot"),
        ((fighter, "somewhere"), "goes with --rlbot alone; name a file with --out"),
        ((make_agent("rocket"), "--rlbot", "full"), "no bot of an earlier export"),
    ):
        code, _, err = run("export", *arguments)
        assert code == 2
        assert err.startswith("[ERROR]")
        assert fault in err
    assert sorted(path.name for path in place.iterdir()) == ["brawl-run", "full", "rocket-run"]
