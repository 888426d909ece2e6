"""`ludus benchmark`, run for real: table, verdicts, JSON, two agents, a tier that is required, and faults."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.store import load_checkpoint, save_checkpoint

Run = Callable[..., tuple[int, str, str]]
MakeAgent = Callable[[str], Path]

SUITE = """\
tiers: [easy, hard]
matches: 20
rows:
  - opponent: rock
    at_least: {win_rate: {easy: 0.0, hard: 1.0}}
  - opponent: random
    delay_frames: 1
    at_least: {mean_return: {easy: -9.0}}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    file = tmp_path / "mine.yaml"
    file.write_text(SUITE)
    return file


def test_a_suite_of_ones_own(run: Run, make_agent: MakeAgent, suite: Path) -> None:
    code, out, err = run("benchmark", make_agent("duel"), "--suite", suite, "--device", "cpu", "--games", 32)
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].split() == ["row", "matches", "won", "%"]
    assert [line.split()[0] for line in lines[1:3]] == ["rock", "random"]
    assert lines[3].startswith("mean over all rows: won ")
    assert lines[5].startswith("[WARN] rock ")
    assert "easy reached; hard asks for 100.0 %" in lines[5]
    assert lines[6].startswith("[OK]   random [1 frame late]  mean return ")
    assert lines[8] == "[WARN] readiness: easy; hard misses 1 of 1 targets"
    assert lines[9].startswith("[OK] 40 matches in ")
    assert out.isascii()
    assert "benchmark: 100 %" in err


def test_json_is_the_same_twice_and_a_required_tier_is_an_exit_code(
    run: Run, make_agent: MakeAgent, suite: Path
) -> None:
    agent = make_agent("duel")
    arguments = ("benchmark", agent, "--suite", suite, "--matches", 10, "--seed", 3, "--json")
    documents = []
    for tier, expected in (("easy", 0), ("hard", 1)):
        code, out, _ = run(*arguments, "--require", tier)
        assert code == expected
        documents.append(json.loads(out))
        assert documents[-1].pop("seconds") > 0.0
    assert documents[0] == documents[1]
    first = documents[0]
    assert (first["agent"], first["seed"], first["world"]) == (str(agent), 3, "duel-v1")
    assert [row["matches"] for row in first["rows"]] == [10, 10]
    assert first["readiness"]["reached"] == "easy"
    code, _, err = run(*arguments, "--require", "gold")
    assert code == 2
    assert "no such tier; valid: easy, hard" in err


def test_against_another_agent(run: Run, make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent("duel")
    checkpoint = load_checkpoint(agent / "checkpoints" / "best")
    checkpoint.tensors["policy"]["parameter.head.linear.bias"][1] += 20.0  # paper
    save_checkpoint(tmp_path / "paper", checkpoint)
    arguments = ("benchmark", tmp_path / "paper", "--against", agent, "--matches", 40)
    code, out, err = run(*arguments)
    assert code == 0, err
    lines = out.splitlines()
    header = next(place for place, line in enumerate(lines) if line.startswith("row") and "verdict" in line)
    assert [line.split()[0] for line in lines[header + 1 : header + 5]] == ["rock", "cycle", "random", "all"]
    assert " better " in lines[header + 1]
    assert " no difference seen " in lines[header + 3]
    assert "intervals that hold together with 95 %" in out
    assert "row by row: better in 2, worse in 0, no difference seen in 1" in out
    comparison = json.loads(run(*arguments, "--json")[1])["against"]["comparison"]
    assert [row["verdict"] for row in comparison["rows"]][0::2] == ["better", "no difference seen"]


def test_a_population_is_scored(run: Run, make_agent: MakeAgent, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text("population: true\nmatches: 20\n")
    arguments = ("benchmark", make_agent("duel"), "--suite", file)
    code, out, err = run(*arguments)
    assert code == 0, err
    lines = [line for line in out.splitlines() if "population" in line or "aggregate" in line]
    assert [line.split(" (")[0].rpartition(" ")[0] for line in lines] == [
        "population return",
        "within-population exploitability",
        "aggregate",
    ]
    score = json.loads(run(*arguments, "--json")[1])["population"]
    assert score["exploiter"] in ("rock", "cycle", "random")
    assert score["aggregate"]["value"] == score["mean_return"]["value"] - score["exploitability"]["value"]


def test_faults_are_one_error(run: Run, make_agent: MakeAgent, suite: Path) -> None:
    agent = make_agent("duel")
    suite.write_text(SUITE.replace("opponent: rock", "opponent: rok"))
    code, out, err = run("benchmark", agent, "--suite", suite)
    assert (code, out) == (2, "")
    assert f"{suite}:4:15: rows.0.opponent: " in err
    code, _, err = run("benchmark", agent, "--suite", "standart")
    assert code == 2
    assert "did you mean 'standard'?" in err
    code, _, err = run("benchmark", agent, "--suite", suite.with_name("none.yaml"))
    assert code == 2
    code, _, err = run("benchmark", agent, "--against", make_agent("rps"))
    assert code == 2
    assert "the agent does not fit the world" in err
