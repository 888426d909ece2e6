"""`ludus tournament`, run for real: tables, cycles, a bracket, files, JSON, strangers' files and mistakes."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.store import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.train

Run = Callable[..., tuple[int, str, str]]
MakeAgent = Callable[[str], Path]
MOVES = ("stone", "paper", "scissors")


@pytest.fixture
def trio(make_agent: MakeAgent, tmp_path: Path) -> list[Path]:
    """Agents of duel-v1 that always play the same."""
    run_folder = make_agent("duel")
    for move, name in enumerate(MOVES):
        checkpoint = load_checkpoint(run_folder / "checkpoints" / "best")
        checkpoint.tensors["policy"]["parameter.head.linear.bias"][move] += 50.0
        save_checkpoint(tmp_path / name, checkpoint)
    return [tmp_path / name for name in MOVES]


def test_tables_cycles_and_a_bracket(run: Run, trio: list[Path], tmp_path: Path) -> None:
    out_folder = tmp_path / "results" / "cup"
    code, out, err = run(
        "tournament", *trio, "random", "--matches", 30, "--elimination", "--best-of", 3, "--out", out_folder
    )
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].split()[:4] == ["place", "player", "rating", "won"]
    assert {line.split()[1] for line in lines[1:5]} == {*MOVES, "random"}
    assert any(line.startswith("cycle: ") and line.count(" beats ") == 3 for line in lines)
    assert "winners 1" in lines
    assert "standings" in lines
    assert out.isascii()
    assert "round robin: 100 %" in err
    assert "elimination: 100 %" in err
    assert lines[-1] == f"[OK] written to {out_folder}"
    assert (out_folder / "payoffs.png").read_bytes().startswith(b"\x89PNG")
    document = json.loads((out_folder / "tournament.json").read_text())
    assert len(document["pairs"]) == 6
    assert (out_folder / "bracket.txt").read_text().startswith("winners 1\n")
    rows = list(csv.DictReader((out_folder / "payoffs.csv").open()))
    assert rows[0] == {"first": "stone", "second": "paper", "matches": "30", "wins": "0", "draws": "0", "losses": "30"}


def test_json_is_the_same_twice(run: Run, trio: list[Path]) -> None:
    arguments = ("tournament", *trio, "--bots", "--matches", 10, "--seed", 4, "--set", "rounds=3", "--json")
    documents = [json.loads(run(*arguments)[1]) for _ in range(2)]
    for document in documents:
        assert document.pop("seconds") > 0.0
        for player in document["players"]:
            reaction = player.pop("reaction")
            assert (reaction is None) == (player["name"] in ("rock", "cycle", "random"))
    assert documents[0] == documents[1]
    first = documents[0]
    assert (first["world"], first["seed"], first["bracket"]) == ("duel-v1", 4, None)
    assert len(first["players"]) == 6
    assert {frozenset(cycle) for cycle in first["cycles"]} == {frozenset(MOVES), frozenset(("rock", *MOVES[1:]))}


def test_it_goes_on_without_wrong_files_and_says_so_loudly(run: Run, trio: list[Path], make_agent: MakeAgent) -> None:
    file = trio[0] / "policy.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    foreign = make_agent("rps")
    code, out, err = run("tournament", *trio, foreign, "--matches", 4)
    assert code == 0
    assert f"[WARN] REFUSED {trio[0]}: " in err
    assert f"[WARN] REFUSED {foreign}: the agent does not fit the world" in err
    assert "[WARN] continuing with 2 players; 2 rejected" in err
    assert "[OK] 4 matches of 2 players" in out
    assert "no cycles" in out
    code, out, err = run("tournament", trio[0], trio[1], "--matches", 4)
    assert (code, out) == (2, "")
    assert "needs two players or more; 1 can take part" in err


def test_mistakes_are_errors(run: Run, trio: list[Path], make_agent: MakeAgent) -> None:
    for arguments, words in (
        ((*trio, "rok"), "did you mean 'rock'?"),
        ((), "--world"),
        (("rock", "cycle", "--world", "dual"), "did you mean 'duel"),
        ((make_agent("rps"), make_agent("identity")), "two sides and a winner"),
        ((*trio, "--set", "round=3"), "unknown key 'round'"),
        ((*trio, "--device", "tpu"), "unknown device 'tpu'; valid: cpu, cuda"),
    ):
        code, out, err = run("tournament", *arguments, "--matches", 2)
        assert (code, out) == (2, ""), arguments
        assert words in err
