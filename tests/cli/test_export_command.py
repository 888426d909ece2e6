"""`ludus export`: the file is an agent for every command, and the card's command gives the card's numbers again."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ludus
from ludus.training.api import TrainedRun

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.train

MakeAgent = Callable[[str], Path]
DUEL: dict[str, Any] = {
    "world": {"name": "duel", "num_envs": 16, "settings": {"rounds": 7}},
    "total_env_steps": 10 * 256,
    "ppo": {"n_steps": 16, "sequence_length": 8, "batch_size": 64, "n_epochs": 1, "learning_rate": 3e-3},
    "opponents": {"rock": 1, "random": 1},
    "evaluation": {"every_env_steps": 5 * 256, "opponents": ["rock", "random"], "matches": 60, "seed": 6},
    "monitoring": {"console": "off", "tensorboard": False, "curves": False},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    return ludus.train(DUEL, folder=tmp_path_factory.mktemp("runs") / "duel")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_cards_command_gives_the_cards_numbers(run: "Run", trained: TrainedRun, place: Path) -> None:
    code, out, err = run("export", trained.folder, "--card", "cards/duel.md")
    assert code == 0, err
    assert re.fullmatch(r"\[OK\] duel\.ludus: [\d,]+ bytes, SHA-256 [0-9a-f]{64}; try: ludus eval duel\.ludus\n"
                        r"\[OK\] card written to cards/duel\.md\n", out)  # fmt: skip
    card = (place / "cards" / "duel.md").read_text()
    for words in ("`duel-v1`", "`rounds=7`", "| seed | 0 |", "2,560 env steps", " cores, device cpu |", "ludus 0.1.0"):
        assert words in card
    command = next(line for line in card.splitlines() if line.startswith("ludus eval duel.ludus --"))
    assert command == "ludus eval duel.ludus --against rock --against random --matches 60 --seed 6"
    code, out, err = run(*shlex.split(command)[1:], "--json", "--device", "cpu")
    assert code == 0, err
    for row in json.loads(out)["opponents"]:
        ends = f"{row['win_rate']:.1%} ({row['win_rate_low']:.1%} to {row['win_rate_high']:.1%})"
        assert f"| {row['opponent']} | 60 | {ends} |" in card


def test_the_card_names_the_code_of_every_session_and_the_parent(run: "Run", trained: TrainedRun, place: Path) -> None:
    folder = place / "run"
    shutil.copytree(trained.folder, folder)
    document = json.loads((folder / "run.json").read_text())
    [session] = document["sessions"]
    document["parent"] = {"folder": "runs/old", "env_steps": 640}
    typed = ["/home/me/.venv/bin/ludus", "train", "duel", "opponents={rock: 1}"]
    first = session | {"git": {"commit": "ab" * 20, "clean": False}, "command": typed}
    as_module = ["/home/me/src/ludus/__main__.py", *typed[1:]]
    document["sessions"] = [first, session | {"git": None, "command": as_module}]
    (folder / "run.json").write_text(json.dumps(document))
    assert run("export", folder, "--card", "a.md")[0] == 0
    card = (place / "a.md").read_text()
    assert f"| code | commit `{'ab' * 20}` with uncommitted changes; Ludus " in card
    assert ", not run from a git checkout |" in card
    assert "| command | `ludus train duel 'opponents={rock: 1}'` |" in card
    assert "| `runs/old`, after 640 env steps |" in card


def test_what_the_run_does_not_say_is_not_measured(run: "Run", make_agent: MakeAgent, place: Path) -> None:
    code, out, err = run(
        "export", make_agent("rps"), "--out", "a/b.ludus", "--card", "b.md", "--onnx", "o/b.onnx", "--json"
    )
    assert code == 0, err
    said = json.loads(out)
    assert (said["file"], said["card"], said["onnx"]) == ("a/b.ludus", "b.md", "o/b.onnx")
    assert (place / "o" / "b.onnx").stat().st_size > 1_000
    assert said["bytes"] == (place / "a" / "b.ludus").stat().st_size
    card = (place / "b.md").read_text()
    assert "## Results\n\nnot measured" in card
    assert "| not measured: the agent" in card
    assert not re.search(r"\d%", card)  # no invented number


def test_the_file_plays_everywhere(run: "Run", trained: TrainedRun, make_agent: MakeAgent, place: Path) -> None:
    assert run("export", trained.folder)[0] == 0
    code, out, err = run("eval", "duel.ludus", "--against", "duel.ludus", "--matches", 10)
    assert code == 0, err
    assert "duel.ludus" in out
    code, _, err = run(
        "train", "duel", "--run-dir", "again", *(f"{key}=off" for key in ("monitoring.console",)),
        "total_env_steps=256", "world.num_envs=16", "ppo.n_steps=16", "ppo.sequence_length=8", "ppo.batch_size=64",
        "opponents=rock", 'evaluation={opponents: ["duel.ludus"], matches: 4}', "world.settings.rounds=7",
    )  # fmt: skip
    assert code == 0, err
    assert "duel.ludus" in (place / "again" / "evaluation_results.csv").read_text()
    assert run("export", make_agent("brawl"), "--out", "fighter.ludus")[0] == 0
    code, out, err = run("demo", "fighter.ludus", "--against", "fighter.ludus", "--video", "a.gif", "--frames", 2)
    assert code == 0, err
    assert (place / "a.gif").stat().st_size > 0


@pytest.mark.usefixtures("place")
def test_what_is_wrong_is_one_line(run: "Run", make_agent: MakeAgent) -> None:
    agent = make_agent("rps")
    for arguments, fault in (
        (("gone",), "unknown agent 'gone'"),
        ((agent, "--out", "a.zip"), "must end in .ludus"),
        ((agent, "--card", "a.html"), "must end in .md"),
        ((agent, "--onnx", "a.pt"), "must end in .onnx"),
    ):
        code, _, err = run("export", *arguments)
        assert code == 2
        assert err.startswith("[ERROR]")
        assert fault in err
    Path("broken.ludus").write_bytes(b"\x80\x04nonsense")
    code, _, err = run("eval", "broken.ludus")
    assert code == 2
    assert "expected a file of `ludus export`" in err
