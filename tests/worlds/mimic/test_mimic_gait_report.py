"""`ludus mimic gait` with the shipped walker: walks are recorded, pushes topple, page and picture are drawn."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.reports.page.conftest import browser

from ludus.core.errors import ConfigError, StateError
from ludus.core.intervals import Interval
from ludus.evaluation.players import load_agent
from ludus.policies.agent import Agent
from ludus.worlds.mimic.gait_report import GaitReport, analyse_gait, write_page
from ludus.worlds.mimic.walk_analysis import WalkRecord, measure_walk
from ludus.worlds.mimic.walk_recording import DIRECTIONS, Recovery, push_recovery, record_walks

if TYPE_CHECKING:
    from tests.commands import Commands

pytestmark = pytest.mark.browser

__all__ = ["browser"]


@pytest.fixture(scope="module")
def agent() -> Agent:
    return load_agent("walker")


@pytest.fixture(scope="module")
def walks(agent: Agent) -> list[WalkRecord]:
    return record_walks(agent, walks=2, seconds=6.0, speed_m_s=1.2)


@pytest.fixture(scope="module")
def report(agent: Agent) -> GaitReport:
    return analyse_gait(agent, "walker", walks=2, seconds=5.0, speed_m_s=1.2, pushes=False)


def test_a_record_holds_a_walk_after_its_first_seconds(walks: list[WalkRecord]) -> None:
    for walk in walks:
        assert len(walk.down) in (399, 400)  # 4 s at 100 Hz
        assert walk.angles_deg.shape == (len(walk.down), len(walk.joints))
        numbers = measure_walk(walk)
        # The reference walks with 0.5 * 1.10 s * sqrt(1.25 / 1.2) per step: 106.9 steps per minute.
        assert numbers.cadence_steps_min == pytest.approx(106.9, rel=0.02)
        assert numbers.speed_m_s == pytest.approx(1.2, rel=0.06)
        assert numbers.stride_length_m == pytest.approx(2 * 60 * 1.2 / 106.9, rel=0.06)
        feet = walk.heels_m[walk.strikes[:, 0], 0, 0] - walk.heels_m[walk.strikes[:, 0], 1, 0]
        assert np.all(feet > 0.3)  # who strikes is in front
        assert np.all(np.abs(walk.toes_m[walk.down.all(axis=1)][..., 2]) < 0.12)
        assert numbers.toe_clearance_mm is not None
        assert 0.0 < numbers.toe_clearance_mm < 80.0


def test_hard_pushes_topple_and_soft_ones_do_not(agent: Agent) -> None:
    found = push_recovery(agent, walks=2, impulses_ns=(1.0, 300.0))
    assert [each.direction for each in found] == list(DIRECTIONS)
    for each in found:
        assert [interval.estimate for interval in each.survived] == [1.0, 0.0], each.direction
        assert each.walks == (2, 2)
        assert each.half_ns == pytest.approx(150.5)


def test_the_impulse_that_half_survive_lies_between_two_that_were_tried() -> None:
    def recovery(*shares: float) -> Recovery:
        impulses = (10.0, 20.0, 40.0)
        return Recovery("from behind", impulses, tuple(Interval(share, 0.0, 1.0) for share in shares), (10, 10, 10))

    assert recovery(1.0, 0.8, 0.2).half_ns == pytest.approx(30.0)
    assert recovery(0.9, 0.4, 0.0).half_ns == pytest.approx(18.0)
    assert recovery(1.0, 0.9, 0.5).half_ns is None  # not weak enough
    assert recovery(0.4, 0.2, 0.0).half_ns is None  # nor strong


def test_a_report_has_every_number_with_its_unit(report: GaitReport) -> None:
    found = report.as_json()
    json.dumps(found, allow_nan=False)
    assert found["fallen"] == 0
    assert found["numbers"]["stance_share"]["usual"] == "0.62"
    assert all(each["unit"] or name == "strides" for name, each in found["numbers"].items())
    assert set(found["curves"]) == {f"{side}_{kind}" for side in ("right", "left") for kind in ("hip", "knee", "ankle")}
    assert set(found["symmetry"]) == {"hip", "knee", "ankle", "hip_frontal"}
    for joint, each in found["distances"].items():
        assert each["rms_without_lag_deg"] < 7.0, joint  # it walks as people do, but for when its feet strike
        assert abs(each["lag_percent"]) < 12.0
    reference = found["reference"]
    for kind in ("hip", "knee"):  # made of other people than the bands, and within them all the same
        assert reference["distances"][kind]["share_within"] == 1.0
        assert abs(reference["distances"][kind]["lag_percent"]) <= 2.0
    assert 0.0 < reference["heel_mm"] < 60.0


def test_what_cannot_be_measured_is_refused(agent: Agent) -> None:
    with pytest.raises(ConfigError, match="too short"):
        record_walks(agent, walks=1, seconds=1.5)
    with pytest.raises(StateError, match="brawl-v1"):
        analyse_gait(load_agent("rookie"), "rookie")


def test_the_page_draws_everything_and_loads_nothing(browser: Any, report: GaitReport, tmp_path: Path) -> None:
    recovery = (Recovery("from <b>", (10.0, 20.0), (Interval(1.0, 0.3, 1.0), Interval(0.0, 0.0, 0.7)), (2, 2)),)
    fields = {name: getattr(report, name) for name in report.__slots__} | {"recovery": recovery, "agent": "<i>me</i>"}
    write_page(GaitReport(**fields), tmp_path / "gait.html")
    browser.open(tmp_path / "gait.html")
    browser.wait("document.documentElement.dataset.ready === 'yes'")
    charts = browser.run("[...document.querySelectorAll('[data-chart]')].map((each) => each.dataset.chart)")
    assert charts == ["hip", "knee", "ankle", "recovery"]
    assert browser.run("document.querySelectorAll('[data-chart=knee] path.band').length") == 3
    assert browser.run("document.querySelector('h1').textContent") == "<i>me</i>"
    assert "from <b>" in browser.run("document.querySelector('#pushes').textContent")
    assert browser.run("document.documentElement.dataset.problems || ''") == ""
    assert browser.complaints == []
    assert browser.requests == []


def test_the_command_writes_json_and_page(commands: "Commands", tmp_path: Path) -> None:
    arguments = ("walker", "--walks", 1, "--seconds", 4, "--speed", 1.1, "--no-pushes", "--out", tmp_path / "out")
    code, said = commands.run("mimic", "gait", *arguments)
    assert code == 0, said
    assert "double_support_share" in said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"gait.json", "gait.html"}
    assert json.loads((tmp_path / "out" / "gait.json").read_text())["desired_speed_m_s"] == 1.1
