"""`ludus report`: a page about runs, from the command line, with matches that are played or were recorded."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ludus.cli import report
from ludus.evaluation import trajectory

MakeAgent = Callable[[str], Path]
METRICS = '{"iteration": 1, "env_steps": 100, "entropy": 1.5}\n{"iteration": 2, "env_steps": 200, "entropy": 1.0}\n'
EVALUATION = """iteration,env_steps,opponent,matches,wins,draws,losses,win_rate,score
2,200,constant,10,9,0,1,0.9,0.4
2,200,random,10,8,0,2,0.8,0.4
2,200,based,10,2,0,8,0.2,0.4
2,200,aerial,10,1,0,9,0.1,0.4
"""


def _data(file: Path) -> Any:
    text = file.read_text(encoding="utf-8")
    [data] = re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(data)


@pytest.fixture
def duel_run(tmp_path: Path) -> Path:
    folder = tmp_path / "duel-run"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text(METRICS)
    (folder / "config.yaml").write_text("world: {name: duel}\ntotal_env_steps: 200\nseed: 3\n")
    return folder


def test_a_report_is_written_beside_its_run(run: Callable[..., Any], duel_run: Path) -> None:
    code, out, err = run("report", duel_run)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["run", "seed", "state", "steps", "steps/s", "best", "score"]
    assert lines[1].split() == ["duel-run", "3", "finished", "200", "-", "-"]
    assert lines[2].startswith(f"[OK] report of 1 run written to {duel_run / 'report.html'} (0.1 MB)")
    assert [panel["name"] for panel in _data(duel_run / "report.html")["panels"]] == ["entropy"]


def test_json_says_what_was_written(run: Callable[..., Any], duel_run: Path, tmp_path: Path) -> None:
    code, out, _ = run("report", duel_run, "--out", tmp_path / "page.html", "--json")
    document = json.loads(out)
    assert (code, document["file"]) == (0, str(tmp_path / "page.html"))
    assert document["bytes"] == (tmp_path / "page.html").stat().st_size
    assert (document["runs"][0]["name"], document["runs"][0]["env_steps"]) == ("duel-run", 200)


def test_faults_are_one_line(run: Callable[..., Any], duel_run: Path, tmp_path: Path) -> None:
    code, _, err = run("report", tmp_path / "nowhere")
    assert (code, err.count("\n")) == (2, 1)
    assert "no folder" in err
    code, _, err = run("report", duel_run, "--against", "rock")
    assert code == 2
    assert "--replays 1" in err


def test_matches_against_the_hardest_opponents_play_in_the_page(
    run: Callable[..., Any], make_agent: MakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectory, "MOST_STEPS", 60)
    folder = make_agent("brawl")
    (folder / "metrics.jsonl").write_text(METRICS)
    (folder / "evaluation_results.csv").write_text(EVALUATION)
    code, _, err = run("report", folder, "--replays", 1, "--out", tmp_path / "page.html")
    assert (code, err) == (0, "")
    replays = _data(tmp_path / "page.html")["replays"]
    titles = [replay["title"] for replay in replays]
    assert titles == [f"brawl-run against {name}, match 1" for name in ("aerial", "based", "random")]
    assert [replay["players"] for replay in replays] == [["brawl-run", name] for name in ("aerial", "based", "random")]
    assert [len(replay["columns"]["x0"]) for replay in replays] == [61] * 3  # and the start


def test_without_an_evaluation_the_first_bots_are_played(
    run: Callable[..., Any], make_agent: MakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectory, "MOST_STEPS", 5)
    folder = make_agent("brawl")
    (folder / "metrics.jsonl").write_text(METRICS)
    assert run("report", folder, "--replays", 1, "--out", tmp_path / "page.html")[0] == 0
    titles = [replay["title"] for replay in _data(tmp_path / "page.html")["replays"]]
    assert titles == [f"brawl-run against {name}, match 1" for name in ("constant", "random", "clockwork")]


def test_replay_files_of_the_run_play_in_the_page(
    run: Callable[..., Any], duel_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (duel_run / "replays").mkdir()
    match = duel_run / "replays" / "match.replay"
    code, _, err = run("demo", "brawl", "--left", "constant", "--against", "random", "--frames", 30,
                       "--video", tmp_path / "x.gif", "--record", match)  # fmt: skip
    assert code == 0, err
    (duel_run / "replays" / "a-torn.replay").write_bytes(match.read_bytes()[:-5])
    code, out, err = run("report", duel_run, "--json")
    assert code == 0
    [note] = json.loads(out)["notes"]
    assert "a-torn.replay" in note
    assert err == f"[WARN] {note}\n"
    data = _data(duel_run / "report.html")
    [replay] = data["replays"]
    assert (replay["title"], replay["players"]) == ("duel-run: match.replay", ["constant", "random"])
    assert data["replay_notes"] == [note]
    monkeypatch.setattr(trajectory, "MOST_STEPS", 29)
    code, _, err = run("report", duel_run)
    assert code == 0
    assert "match.replay has 30 steps, a page shows at most 29; watch it with: ludus replay" in err
    assert _data(duel_run / "report.html")["replays"] == []
    monkeypatch.setattr(trajectory, "MOST_STEPS", 30)
    monkeypatch.setattr(report, "_MOST_RECORDED_STEPS", 45)
    (duel_run / "replays" / "z-second.replay").write_bytes(match.read_bytes())
    code, _, err = run("report", duel_run)
    assert code == 0
    assert "z-second.replay is left out: its 30 steps would be more than replay files of 45 steps in all" in err
    assert [replay["title"] for replay in _data(duel_run / "report.html")["replays"]] == ["duel-run: match.replay"]


def test_a_world_that_a_page_cannot_draw_is_said_to_be_one(
    run: Callable[..., Any], make_agent: MakeAgent, tmp_path: Path
) -> None:
    folder = make_agent("duel")
    (folder / "metrics.jsonl").write_text(METRICS)
    code, _, err = run("report", folder, "--replays", 1, "--out", tmp_path / "page.html")
    assert code == 0
    [note] = _data(tmp_path / "page.html")["replay_notes"]
    assert note.startswith("no replays of duel-run: ")
    assert "brawl, mimic, rocket, not duel-v1" in note
    assert err == f"[WARN] {note}\n"


def test_an_agent_that_is_missing_is_no_reason_to_give_up(run: Callable[..., Any], duel_run: Path) -> None:
    code, _, err = run("report", duel_run, "--replays", 1)
    assert code == 0
    assert "[WARN] no replays of duel-run" in err
    code, _, err = run("report", duel_run, "--replays", 1, "--against", "rock")  # but what was asked for is an error
    assert code == 2
    assert "[ERROR]" in err
