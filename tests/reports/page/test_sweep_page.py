"""The page of a sweep, drawn by a browser without a complaint."""

import json
from pathlib import Path
from typing import Any

from ludus.reports.sweep_page import write_sweep_page

HOSTILE = "</script><img src=x onerror=document.title='taken'>"


def trial(number: int, state: str, value: list[float | None] | None, **more: Any) -> dict[str, Any]:
    """Return a trial as `results.json` has it, with two evaluations unless it has no value."""
    curve = [] if value is None else [[0.1, None, None], value]
    return {
        "number": number, "values": {"ppo.learning_rate": 0.001 * number, "opponents": {HOSTILE: 1.0}}, "state": state,
        "reason": "", "points": [], "wall_s": 10.0 * number, "forks": [], "folder": f"trials/trial-{number:04}",
        "evaluations": len(curve), "env_steps": 64 * len(curve), "value": value,
        "curve": {"env_steps": [64, 128][: len(curve)], "value": curve},
    } | more  # fmt: skip


def document() -> dict[str, Any]:
    """Return the results of a sweep of four trials, one of which failed."""
    fork = {"source": "trial-0001", "evaluations": 1, "before": {}}
    return {
        "version": 1, "world": "duel", "state": "stopped", "reason": HOSTILE, "wall_s": 75.0,
        "sweep": {"trials": 8, "seeds": 2, "search": "tpe", "scheduler": "asha", "objective": "win_rate"},
        "keys": [{"name": "ppo.learning_rate", "sweep": "log_uniform", "low": 1e-4, "high": 1e-2, "log": True},
                 {"name": "opponents", "sweep": "choice", "values": [{HOSTILE: 1.0}, None], "log": False}],
        "trials": [trial(1, "finished", [0.4, 0.2, 0.6]), trial(2, "finished", [0.8, 0.7, 0.9], forks=[fork]),
                   trial(3, "stopped", [0.5, 0.5, 0.5], reason="asha stopped it at evaluation 2"),
                   trial(4, "failed", None, reason=f"ValueError: {HOSTILE}")],
        "ranking": [2, 1, 3, 4], "best": 2, "front": [1, 2],
        "importance": {"evaluator": "fANOVA", "evaluation": 2, "trials": 3,
                       "keys": {"ppo.learning_rate": 0.75, "opponents": 0.25}},
    }  # fmt: skip


def write(found: dict[str, Any], folder: Path) -> Path:
    (folder / "results.json").write_text(json.dumps(found))
    return write_sweep_page(folder / "results.json")


def test_the_page_is_drawn(browser: Any, tmp_path: Path) -> None:
    page = write(document(), tmp_path)
    for width, dark in ((1280, False), (390, True)):
        browser.open(page, width=width, dark=dark)
        browser.wait("document.documentElement.dataset.ready")
        assert browser.run("document.documentElement.dataset.problems || ''") == ""
        assert browser.complaints == []
        assert browser.requests == []
        assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("[...document.querySelectorAll('section')].map(each => each.id)") == [
        "best", "keys", "cost", "curves", "trials",
    ]  # fmt: skip
    charts = browser.run("[...document.querySelectorAll('[data-chart]')].map(each => each.dataset.chart)")
    assert charts == ["importance", "key-ppo.learning_rate", "key-opponents", "cost", "curves", "trials"]
    assert browser.run("document.querySelector('.tile b').textContent") == "0.8"
    assert "fANOVA" in browser.run("document.querySelector('[data-chart=importance]').textContent")
    # Trials with a value have a dot; the line of the front joins two of them.
    assert browser.run("document.querySelectorAll('[data-chart=cost] circle').length") == 3
    assert browser.run("document.querySelectorAll('[data-chart=cost] path.line').length") == 1
    rows = browser.run("[...document.querySelectorAll('#trials tbody tr')].map(each => each.cells[0].textContent)")
    assert rows == ["2", "1", "3", "4"]
    table = browser.run("document.querySelector('#trials').textContent")
    assert "asha stopped it at evaluation 2" in table
    assert "forked from trial-0001 at evaluation 1" in table
    # What files say is text.
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert HOSTILE in table


def test_a_sweep_that_has_just_begun_is_drawn_too(browser: Any, tmp_path: Path) -> None:
    nothing: dict[str, Any] = {
        "trials": [], "ranking": [], "best": None, "front": [], "importance": None, "state": "running",
    }  # fmt: skip
    browser.open(write(document() | nothing, tmp_path))
    browser.wait("document.documentElement.dataset.ready")
    assert browser.run("document.documentElement.dataset.problems || ''") == ""
    assert browser.run("document.querySelectorAll('.missing').length") == 4
