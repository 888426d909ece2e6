"""The file itself: self-contained, closed to everything but its own script, small, and safe from whatever runs say."""

import base64
import hashlib
import html
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import StoreError
from ludus.core.files import JSON
from ludus.reports.page.document import MOST_BYTES, default_file, embedded, make_page, read_groups, write_report

MakeRun = Callable[..., Path]
HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>{{data}}&amp;\u2028'\""


def _data(page: str) -> Any:
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def test_a_page_needs_nothing_beside_itself(make_run: MakeRun, tmp_path: Path) -> None:
    report = write_report(read_groups([make_run("run")]), tmp_path / "new" / "page.html")
    page = report.file.read_text(encoding="utf-8")
    assert report.size_bytes == report.file.stat().st_size < 200_000
    assert not re.search(r"https?://|src=|@import|url\(|<link|<iframe|<img|\bimport\(|fetch\(|XMLHttp", page)
    assert _data(page)["groups"][0]["runs"] == ["run"]


def test_only_our_own_script_and_style_may_run() -> None:
    page = make_page({}, "title")
    [policy] = [html.unescape(each) for each in re.findall(r'Content-Security-Policy" content="([^"]*)"', page)]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_what_a_run_says_cannot_leave_its_place(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run("run", config="rewards: " + json.dumps({HOSTILE: HOSTILE}) + "\n")
    document = json.loads((folder / "run.json").read_text())
    document["sessions"][0] |= {"command": [HOSTILE], "versions": {HOSTILE: HOSTILE}, "git": {"commit": HOSTILE}}
    (folder / "run.json").write_text(json.dumps(document))
    with (folder / "opponents.csv").open("a") as file:
        file.write('8,800,self-8,"' + HOSTILE.replace('"', '""').replace("\u2028", "") + '",rock,1,1,0,0\n')
    groups = read_groups([folder])
    page = write_report(groups, tmp_path / "page.html", [{"title": HOSTILE}]).file.read_text(encoding="utf-8")
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "alert(1)</script>" not in page
    data = _data(page)
    assert data["runs"][0]["command"] == HOSTILE
    assert HOSTILE.replace("\u2028", "") in data["payoffs"][0][0]["opponents"]
    assert [row[1] for row in data["settings"]["rewards"]] == [[HOSTILE]]
    assert data["replays"] == [{"title": HOSTILE}]
    assert f"<title>{html.escape(HOSTILE)}</title>" in make_page({}, HOSTILE)


def test_embedded_json_has_no_bracket_that_html_would_see() -> None:
    text = embedded({HOSTILE: [1, None, "<!--"]})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {HOSTILE: [1, None, "<!--"]}


def test_a_run_with_many_long_curves_makes_a_small_file(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run("run", iterations=800)
    names = [f"number_{place}" for place in range(150)]
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    lines = (json.dumps(row | dict.fromkeys(names, 1.23456789 / row["iteration"])) for row in rows)
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    report = write_report(read_groups([folder]), tmp_path / "page.html")
    data = _data(report.file.read_text(encoding="utf-8"))
    points = [len(panel["curves"][0]["x"]) for panel in data["panels"]]
    assert len(points) == 153
    assert 500 < min(points) <= max(points) < 700  # fewer than 1,000, because there are so many curves
    assert report.size_bytes < MOST_BYTES


def test_replays_that_do_not_fit_are_left_out_by_name(make_run: MakeRun, tmp_path: Path) -> None:
    zeros: list[JSON] = [0] * 2_500_000
    large: dict[str, JSON] = {"title": "large", "columns": zeros}
    small: dict[str, JSON] = {"title": "small"}
    report = write_report(read_groups([make_run("run")]), tmp_path / "page.html", [large, small])
    assert report.left_out == ("large",)
    assert _data(report.file.read_text(encoding="utf-8"))["replays"] == [small]
    assert report.describe()["replays_left_out"] == ["large"]


def test_where_a_report_goes(tmp_path: Path, make_run: MakeRun) -> None:
    assert default_file([tmp_path]) == tmp_path / "report.html"
    assert default_file([tmp_path, tmp_path / "other"]) == Path("report.html")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"page\.html.*File exists"):
        write_report(read_groups([make_run("run")]), tmp_path / "file" / "page.html")


def test_reports_never_import_torch(make_run: MakeRun, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from ludus.reports.page.document import read_groups, write_report; "
        "write_report(read_groups([Path(sys.argv[1])]), Path(sys.argv[2])); "
        "sys.exit(sorted({'torch', 'ludus.training'} & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", script, make_run("run"), tmp_path / "page.html"], check=True)
