"""The page of a strategy analysis: made from its file alone, and drawn by a browser without a complaint."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.strategies import MINIMAL

from ludus.analysis.belief import SwitchingMatch
from ludus.analysis.summary import analyse
from ludus.core.errors import ConfigError, FormatError
from ludus.envs.registry import make_env
from ludus.policies.agent import Agent
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.reports.analysis_page import write_analysis_page

pytestmark = pytest.mark.browser

HOSTILE = "</script><img src=x onerror=document.title='taken'>"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The analysis of a small agent, with a match against a switching bot and a style of a hostile name."""
    with make_env("duel") as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        agent = Agent(Policy(env.spec, PolicyConfig.model_validate({"strategy": MINIMAL})))
    found = analyse(agent, matches=4).as_json()
    shares = np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.0, 1.0, 0.0]])
    switching = SwitchingMatch("switcher", 2, np.array([0.0, 0.2, 0.4]), shares, ((0.0, "rock"), (0.2, HOSTILE)))
    found["styles"] = found["belief"]["classes"] = ["rock", HOSTILE, "random"]
    curve = {"times_s": [-1, 0, 1], "new_style": [0.1, 0.1, 0.6], "old_style": [0.8, 0.8, 0.2], "switches": 3}
    return found | {"agent": HOSTILE, "seed": 0, "device": "cpu", "switching": [switching.as_json()], "drift": curve}


def write(document: dict[str, Any], folder: Path) -> Path:
    file = folder / "analysis.json"
    file.write_text(json.dumps(document))
    return write_analysis_page(file, folder / "analysis.html")


def test_the_page_is_drawn_and_answers(browser: Any, document: dict[str, Any], tmp_path: Path) -> None:
    page = write(document, tmp_path)
    for width, dark in ((1280, False), (390, True)):
        browser.open(page, width=width, dark=dark)
        browser.wait("document.documentElement.dataset.ready")
        assert browser.run("document.documentElement.dataset.problems || ''") == ""
        assert browser.complaints == []
        assert browser.requests == []
        assert browser.run("document.documentElement.scrollWidth") <= width
    sections = browser.run("[...document.querySelectorAll('section')].map(each => each.id)")
    assert sections == ["verdict", "who", "switches", "sure", "different", "wins"]
    charts = browser.run("[...document.querySelectorAll('[data-chart]')].map(each => each.dataset.chart)")
    assert {"belief", "confusion", "probe", "switching", "drift", "top", "entropy", "calibration",
            "behaviour", "effects", "shifts", "largest", "ablation"} <= set(charts)  # fmt: skip
    assert browser.run("document.querySelectorAll('.verdict').length") == len(document["verdict"])
    # Names are text.
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert HOSTILE in browser.run("document.querySelector('h1').textContent")
    # The slider moves through the match: the numbers are those of the file.
    cells = "[...document.querySelectorAll('.confusion tbody td')].map(each => each.textContent)"
    slider = "document.querySelector('[data-chart=confusion] input')"
    for index in (0, 5):
        browser.run(f"{slider}.value = {index}; {slider}.dispatchEvent(new Event('input'))")
        shares = np.array(document["belief"]["confusion_by_time"][index]).flatten()
        assert np.array(browser.run(cells), float) == pytest.approx(100 * shares, abs=0.51)
    # Another opponent can be chosen.
    choice = "document.querySelector('#who select')"
    browser.run(f"{choice}.value = 1; {choice}.dispatchEvent(new Event('change'))")
    assert f"One match against {HOSTILE}" in browser.run("document.querySelector('[data-chart=belief]').textContent")
    # Two styles are true in the match against the switching bot, and one switch is marked.
    assert browser.run("document.querySelectorAll('[data-chart=switching] .truth').length") == 2
    assert browser.run("document.querySelectorAll('[data-chart=switching] .phase').length") == 1
    # Of an analysis without the optional parts the rest is drawn.
    bare = document | {"switching": [], "drift": None, "ablation": None}
    browser.open(write(bare, tmp_path))
    browser.wait("document.documentElement.dataset.ready")
    assert browser.run("document.documentElement.dataset.problems || ''") == ""
    assert browser.complaints == []
    assert "--no-ablation" in browser.run("document.querySelector('#wins').textContent")
    assert browser.run("document.querySelector('#switches')") is None


def test_the_file_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="belief"):
        write({"verdict": [], "styles": []}, tmp_path)
    (tmp_path / "analysis.json").write_text("[]")
    with pytest.raises(FormatError, match="JSON object"):
        write_analysis_page(tmp_path / "analysis.json", tmp_path / "page.html")


def test_nothing_in_the_page_can_end_its_script(document: dict[str, Any], tmp_path: Path) -> None:
    page = write(document | {"chance": float("inf")}, tmp_path).read_text()
    assert HOSTILE not in page
    assert page.count("</script>") == 2
    assert "Infinity" not in page.partition('id="data">')[2].partition("</script>")[0]
