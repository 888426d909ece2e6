"""A stranger's run folder on the live page and in the report: what is too much or too long is left out."""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ludus.reports.page.document import read_groups, write_report
from ludus.watch import documents as module
from ludus.watch.documents import Documents
from ludus.watch.matches import newest_source
from ludus.watch.runs import Catalogue
from ludus.watch.server import WatchServer

pytestmark = pytest.mark.fault

SECONDS = 20.0  # of CPU time for both pages; the slowest needs about four
BYTES = 4_000_000  # of a page
NAME = "</script><img src=x onerror=alert(1)>\u202e\x1b[2J"
OPPONENTS = "iteration,env_steps,learner,opponent,kind,matches,wins,draws,losses,mode\n"


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def rows(count: int) -> str:
    return lines([{"env_steps": number, "episode_return": 1} for number in range(count)])


def wide(header: str, start: str, columns: int) -> str:
    names, values = ",".join(f"c{place}" for place in range(columns)), ",1" * columns
    return f"{header},{names}\n" + f"{start}{values}\n" * 3


# File and content. Each took minutes, or gigabytes, or a page of tens of megabytes.
HOSTILE: dict[str, Callable[[], tuple[str, str]]] = {
    "new columns in each line": lambda: ("metrics.jsonl", lines([{f"k{row}-{place}": 1 for place in range(10)}
                                                                 for row in range(2500)])),
    "columns": lambda: ("metrics.jsonl", lines([{"env_steps": row} | {f"k{place}": row for place in range(30_000)}
                                                for row in range(3)])),
    "columns of evaluations": lambda: ("evaluation_results.csv", wide("env_steps,opponent,score", "1,x,1", 50_000)),
    "columns of rewards": lambda: ("reward_breakdown.csv", wide("iteration,env_steps,total", "1,1,1", 30_000)),
    "columns of times": lambda: ("resources.csv", wide("iteration,env_steps,elapsed_s", "1,1,1", 30_000)),
    "a long text": lambda: ("metrics.jsonl", rows(20_000) + lines([{"env_steps": 1, "stage": "s" * 3_000_000}])),
    "a long name": lambda: ("metrics.jsonl", lines([{"env_steps": row, "k" * 3_000_000: row} for row in range(3)])),
    "a long cell": lambda: ("opponents.csv", OPPONENTS + f"1,1,l,{'o' * 130_000},bot,2,1,0,1,1v1\n"
                            + "1,1,l,o,bot,2,1,0,1,1v1\n" * 100_000),
    "phases": lambda: ("metrics.jsonl", lines([{"env_steps": row, "stage": f"s{row}"} for row in range(50_000)])),
    "opponents": lambda: ("opponents.csv", OPPONENTS + "".join(
        f"{row},{row},l{row},o{row},bot,2,1,0,1,1v1\n" for row in range(100_000))),
    "modes": lambda: ("opponents.csv", OPPONENTS + "".join(
        f"{row},{row},l,o,bot,2,1,0,1,m{row}\n" for row in range(20_000))),
    "labels": lambda: ("evaluation_results.csv", "env_steps,opponent,score,win_rate\n" + "".join(
        f"{row},o{row},1,0.5\n" for row in range(100_000))),
    "texts": lambda: ("run.json", json.dumps({
        "world": "w" * 3_000_000, "warnings": ["w" * 1_000_000] * 3, "parent": {"changes": ["c"] * 1_000_000},
        "sessions": [{"started": "x" * 1_000_000, "command": ["a" * 1_000_000], "versions": {"v" * 1_000_000: 1},
                      "machine": {"device": "d" * 1_000_000}, "end_reason": "e" * 1_000_000, "ended": 1}]})),
    "notices": lambda: ("run.json", json.dumps({f"k{place}": place for place in range(300_000)})),
    "settings": lambda: ("config.yaml", "".join(f"{NAME.encode('ascii', 'ignore').hex()}{place}: 1\n"
                                                for place in range(4_000))),
    "styles": lambda: ("analysis/analysis.json", json.dumps({
        "styles": [f"s{place}" for place in range(300_000)], "times_s": [1] * 10, "chance": 0.1,
        "maps": {"frames": [[1, 2]] * 300_000, "frame_labels": list(range(300_000)), "matches": [], "labels": []},
        "probes": {"trained": {"so_far": [{"estimate": 1}] * 10}}})),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_too_much_is_left_out(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LATE_S", 0.0)
    run = tmp_path / "runs" / "a"
    run.mkdir(parents=True)
    (run / "metrics.jsonl").write_text(rows(3))
    name, content = HOSTILE[kind]()
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_text(content)
    started_s = time.process_time()
    report = write_report(read_groups([run]), tmp_path / "report.html")
    assert report.size_bytes < BYTES
    catalogue = Catalogue(tmp_path / "runs")
    catalogue.refresh(at_once=True)
    [found] = catalogue.runs()
    parts = Documents(catalogue).make([found.id], merged=False)
    assert {"groups", "runs", "notices", "panels"} <= parts.keys()
    assert len(json.dumps(found.summary)) + sum(map(len, parts.values())) < BYTES
    assert time.process_time() - started_s < SECONDS


def test_names_are_neither_markup_nor_turned_around(tmp_path: Path) -> None:
    run = tmp_path / "runs" / NAME.replace("/", "-")
    run.mkdir(parents=True)
    (run / "metrics.jsonl").write_text(lines([{"env_steps": 1, NAME: 1, "stage": NAME}]))
    (run / "run.json").write_text(json.dumps({"world": NAME, "warnings": [NAME], "sessions": [{"command": [NAME]}]}))
    (run / "config.yaml").write_text(json.dumps({"world": {"name": NAME}, NAME.partition("\x1b")[0]: NAME}))
    (run / "run.log").write_text(f"[WARN] {NAME}\n")
    (run / "evaluation_results.csv").write_text(f"env_steps,opponent,score\n1,{NAME},1\n")
    catalogue = Catalogue(tmp_path / "runs")
    catalogue.refresh(at_once=True)
    [found] = catalogue.runs()
    parts = Documents(catalogue).make([found.id], merged=False)
    text = json.dumps(found.summary, ensure_ascii=False) + "".join(
        json.dumps(json.loads(part), ensure_ascii=False) for part in parts.values()
    )
    assert "onerror" in text
    assert "\u202e" not in text
    assert "\\u001b" not in text
    page = write_report(read_groups([run]), tmp_path / "report.html").file.read_text()
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert "\u202e" not in page
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    shown = json.dumps(json.loads(data[1]), ensure_ascii=False)
    assert "onerror" in shown
    assert "\u202e" not in shown
    assert "\\u001b" not in shown


def test_what_a_link_leads_to_is_on_no_page(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret, run = "a-secret-of-this-machine", tmp_path / "runs" / "a"
    outside = tmp_path / "outside"
    for folder in (outside / "analysis", outside / "best", run / "checkpoints", run / "videos"):
        folder.mkdir(parents=True)
    (run / "metrics.jsonl").write_text(rows(3))
    stored = {"world": secret, "warnings": [secret], secret: 1, "step": 1}
    for name in ("run.json", "config.yaml", "best/manifest.json", "replay.json", "film.mp4"):
        (outside / name).write_text(json.dumps(stored))
    styles = {"styles": [secret], "times_s": [1], "maps": {"frames": [[1, 2]], "frame_labels": [0], "matches": [],
              "labels": []}, "probes": {"trained": {"so_far": [{"estimate": 1}]}}}  # fmt: skip
    (outside / "analysis" / "analysis.json").write_text(json.dumps(styles))
    (outside / "run.log").write_text(f"{secret}\n")
    for name in ("evaluation_results.csv", "monitor.csv", "opponents.csv", "resources.csv"):
        (outside / name).write_text(f"env_steps,{secret},opponent,score\n1,1,{secret},1\n")
    for path in (*outside.glob("*.*"), outside / "analysis"):
        (run / path.name).symlink_to(path)
    (run / "checkpoints" / "best").symlink_to(outside / "best")
    (run / "replays").symlink_to(outside)
    (run / "videos" / "film.mp4").symlink_to(outside / "film.mp4")
    catalogue = Catalogue(tmp_path / "runs")
    catalogue.refresh(at_once=True)
    [found] = catalogue.runs()
    assert newest_source(found.folder) is None
    shown = json.dumps(found.summary) + "".join(Documents(catalogue).make([found.id], merged=False).values())
    shown += write_report(read_groups([run]), tmp_path / "report.html").file.read_text()
    assert secret not in shown
    assert f"{run / 'config.yaml'} is a link out of the run folder" in caplog.text


def test_a_link_within_the_folder_is_followed_by_the_report(tmp_path: Path) -> None:
    run = tmp_path / "a"
    run.mkdir()
    (run / "mine.jsonl").write_text(rows(3))
    (run / "metrics.jsonl").symlink_to("mine.jsonl")
    [group] = read_groups([run])
    assert group.runs[0].env_steps == 2


def test_thousands_of_checkpoints_replays_and_runs(
    serve: Callable[..., WatchServer], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "runs" / "a"
    run.mkdir(parents=True)
    (run / "metrics.jsonl").write_text(rows(3))
    (run / "replays").mkdir()
    for number in range(3000):
        folder = run / "checkpoints" / f"{NAME.replace('/', '-')}{number}"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}")
        (run / "replays" / f"{number}.json").write_text("{}")
    for number in range(2500):
        other = tmp_path / "runs" / f"b{number}"
        other.mkdir()
        (other / "metrics.jsonl").write_text("")
    os.utime(run / "checkpoints" / f"{NAME.replace('/', '-')}7" / "manifest.json", (2e9, 2e9))
    started_s = time.process_time()
    server = serve(tmp_path / "runs")
    server.catalogue.refresh(at_once=True)
    found = server.catalogue.runs()
    assert len(found) == 2000
    source = newest_source(run)
    assert source is not None
    assert source[0] == f"checkpoints/{NAME.replace('/', '-')}7"
    write_report(read_groups([run]), tmp_path / "report.html")
    assert time.process_time() - started_s < SECONDS
    assert len(caplog.text) < 10_000
