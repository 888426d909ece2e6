"""The document of chosen runs: the report's, made again in parts as the runs grow."""

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.watch.conftest import append, eventually

from ludus.reports.page.document import make_document
from ludus.reports.page.runs import Group, group_runs, read_runs
from ludus.watch.documents import Documents, Texts
from ludus.watch.runs import Catalogue

MakeRun = Callable[..., Path]


@pytest.fixture
def folders(make_run: MakeRun) -> list[Path]:
    return [make_run("quick-0", seed=0), make_run("quick-1", seed=1), make_run("other", config="guard: {}\nppo2: 1\n")]


def make_whole(catalogue: Catalogue, ids: Sequence[str], *, merged: bool) -> dict[str, Any]:
    """Returns the document once the doctor, who comes a little later, was asked too."""
    documents = Documents(catalogue)
    first = documents.make(ids, merged=merged)
    assert "notices" not in first
    assert "panels/episode_return" in first
    return decoded(eventually(lambda: (made := documents.make(ids, merged=merged)) and "notices" in made and made))


def decoded(texts: Texts) -> dict[str, Any]:
    parts = {name: json.loads(text) for name, text in texts.items()}
    return parts | {"panels": [parts[f"panels/{name}"] for name in parts["panels"]]}


@pytest.mark.parametrize("merged", [False, True])
def test_the_parts_are_those_of_the_report(folders: list[Path], tmp_path: Path, merged: bool) -> None:
    catalogue = Catalogue(tmp_path)
    catalogue.refresh()
    ids = {run.name: run.id for run in catalogue.runs()}
    made = make_whole(catalogue, [ids[folder.name] for folder in folders], merged=merged)
    runs = read_runs(folders)
    groups = group_runs(runs) if merged else [Group(run.name, (run,)) for run in runs]
    report = json.loads(json.dumps(make_document(groups)))
    colors = {run.name: run.color for run in catalogue.runs()}
    for group in report["groups"]:
        group["color"] = colors[group["runs"][0]]
    for name in set(report) - {"made", "replays", "replay_notes", "times"}:
        assert made[name] == report[name], name
    assert len(made["groups"]) == (2 if merged else 3)


def test_only_what_changed_is_made_again(folders: list[Path], tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    catalogue.refresh()
    [run_id] = [run.id for run in catalogue.runs() if run.name == "quick-0"]
    documents = Documents(catalogue)
    first = documents.make([run_id], merged=False)
    assert documents.make([run_id], merged=False) == first
    append(folders[0], 2, since=8)
    limit_s = time.monotonic() + 30.0
    while (now := documents.make([run_id], merged=False))["panels/episode_return"] == first["panels/episode_return"]:
        assert time.monotonic() < limit_s
        time.sleep(0.05)
    curve = json.loads(now["panels/episode_return"])["curves"][0]
    assert (curve["x"][-2:], curve["y"][-2:]) == ([900, 1000], [9, 10])
    assert now["rewards"] == first["rewards"]


@pytest.mark.usefixtures("folders")
def test_runs_that_are_gone_or_unknown_are_left_out(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    catalogue.refresh()
    [run_id] = [run.id for run in catalogue.runs() if run.name == "other"]
    made = decoded(Documents(catalogue).make(["../../etc", run_id, "0" * 12], merged=False))
    assert [run["name"] for run in made["runs"]] == ["other"]
    assert Documents(catalogue).make(["unknown"], merged=False) == {}


@pytest.mark.parametrize("link", ["checkpoints", "checkpoints/best", "analysis", "analysis/analysis.json"])
def test_nothing_is_read_through_links_inside_a_run(folders: list[Path], tmp_path: Path, link: str) -> None:
    outside = tmp_path / "elsewhere"
    (outside / "best").mkdir(parents=True)
    (outside / "best" / "manifest.json").write_text('{"step": 400}')
    (outside / "manifest.json").write_text('{"step": 400}')
    analysis = {"styles": ["secret"], "times_s": [1], "maps": {"frames": [[0, 1]], "frame_labels": [0], "matches": [],
                "labels": []}, "probes": {"trained": {"so_far": [{"estimate": 0.5}]}}}  # fmt: skip
    (outside / "analysis.json").write_text(json.dumps(analysis))
    target = folders[0] / link
    target.parent.mkdir(exist_ok=True)
    target.symlink_to(outside / "analysis.json" if link.endswith("json") else outside)
    root = tmp_path / "quick-0"
    catalogue = Catalogue(root)
    catalogue.refresh()
    [run] = catalogue.runs()
    made = Documents(catalogue).make([run.id], merged=False)
    assert "secret" not in json.dumps(made)
    assert json.loads(made["latents"]) == [None]
    # The agent of 800 steps was evaluated last: 9 and 5 of 10 won. The manifest outside names that of 400: 5 and 1.
    read, _ = run.read()
    assert not read.folder.exists()


def test_a_status_is_part_of_the_document(folders: list[Path]) -> None:
    run = json.loads((folders[0] / "run.json").read_text())
    del run["sessions"][-1]["ended"]
    (folders[0] / "run.json").write_text(json.dumps(run))
    (folders[0] / "run.lock").write_text(f' {{"pid": {2**22 + 1}, "host": "{os.uname().nodename}"}}')
    catalogue = Catalogue(folders[0])
    catalogue.refresh()
    [watched] = catalogue.runs()
    made = make_whole(catalogue, [watched.id], merged=False)
    assert made["runs"][0]["state"] == "killed"
    assert any("was killed" in notice["text"] for notice in made["notices"])
