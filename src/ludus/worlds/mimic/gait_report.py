"""`ludus mimic gait`: how an agent walks, in numbers, over the gait cycle and under pushes, as JSON and as a page."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ludus.core.errors import ConfigError
from ludus.core.files import JSON, write_text_atomic
from ludus.envs.base import EnvRequest
from ludus.envs.display import read_scripts
from ludus.policies.agent import Agent
from ludus.reports.page.document import fill_page, read_asset, round_document
from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.norms import KINDS, SOURCE, USUAL, Band, norm_band
from ludus.worlds.mimic.rendering.figure import StickFigure, reference_positions
from ludus.worlds.mimic.walk_analysis import (
    CURVE_POINTS,
    UNITS,
    GaitNumbers,
    JointSymmetry,
    NormDistance,
    joint_band,
    joint_symmetry,
    mean_numbers,
    measure_walk,
    norm_distance,
)
from ludus.worlds.mimic.walk_recording import AFTER_PUSH_S, WARM_UP_S, Recovery, push_recovery, record_walks

WORLD_ID = "mimic-v1"
_SYMMETRIC = (*KINDS, "hip_frontal")
TITLES = {
    "hip": "Hip flexion",
    "knee": "Knee flexion",
    "ankle": "Ankle dorsiflexion",
    "hip_frontal": "Hip adduction",
}
_SCRIPTS = ("elements.js", "chart.js", "marks.js", "sections.js")  # of the report's page


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """How the reference that the agent imitates compares with people.

    Attributes:
        distances: How far its joints are from the published bands, by kind of joint.
        heel_mm: Height of its heel over the ground at the phase of its contact.
    """

    distances: dict[str, NormDistance]
    heel_mm: float


@dataclass(frozen=True, slots=True)
class GaitReport:
    """How an agent walks.

    Attributes:
        agent: Its name.
        walks: How many undisturbed walks were recorded.
        fallen: How many of them ended in a fall.
        speed_m_s: Desired speed; None if the walks cover the speeds of training.
        numbers: Means over the walks; see `GaitNumbers`.
        curves: Mean and deviation over strides, by joint of a side, such as `right_knee`.
        norms: Published bands at the same phases, by kind of joint.
        distances: How far the curves are from them.
        symmetry: How alike both sides are, by kind of joint; None without a whole stride.
        recovery: Who survives pushes; empty if none was tried.
        reference: The same of what the agent imitates, at the mean of the speeds.
        seconds: How long all of it took.
    """

    agent: str
    walks: int
    fallen: int
    speed_m_s: float | None
    numbers: GaitNumbers
    curves: dict[str, Band]
    norms: dict[str, Band]
    distances: dict[str, NormDistance]
    symmetry: dict[str, JointSymmetry | None]
    recovery: tuple[Recovery, ...]
    reference: ReferenceCheck
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values; None stands for what is not defined."""
        return {
            "agent": self.agent,
            "world": WORLD_ID,
            "walks": self.walks,
            "fallen": self.fallen,
            "desired_speed_m_s": self.speed_m_s,
            "numbers": {
                name: {"value": value, "unit": UNITS[name], "usual": USUAL.get(name)}
                for name, value in asdict(self.numbers).items()
            },
            "percent": np.linspace(0.0, 100.0, CURVE_POINTS).tolist(),
            "curves": {name: _band_json(band) for name, band in self.curves.items()},
            "norms": {name: _band_json(band) for name, band in self.norms.items()},
            "norm_source": SOURCE,
            "distances": {name: each._asdict() for name, each in self.distances.items()},
            "symmetry": {name: None if each is None else each._asdict() for name, each in self.symmetry.items()},
            "recovery": [_recovery_json(each) for each in self.recovery],
            "reference": {
                "distances": {name: each._asdict() for name, each in self.reference.distances.items()},
                "heel_mm": self.reference.heel_mm,
            },
            "seconds": self.seconds,
        }


def analyse_gait(
    agent: Agent,
    name: str,
    *,
    walks: int = 20,
    seconds: float = 15.0,
    speed_m_s: float | None = None,
    pushes: bool = True,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> GaitReport:
    """Record walks of an agent, push others, and return what follows.

    Raises:
        ConfigError: No walk lasted for longer than what is left out at its beginning.
        StateError: The agent is for another world.
    """
    agent.check_world_id(WORLD_ID)
    started_s = time.perf_counter()
    tell = progress or (lambda _share: None)
    half = 0.5 if pushes else 1.0
    records = record_walks(
        agent, walks=walks, seconds=seconds, speed_m_s=speed_m_s, seed=seed, progress=lambda share: tell(half * share)
    )
    if not records:
        raise ConfigError(f"{name} fell within {WARM_UP_S:g} s in all of {walks} walks: there is no gait to measure")
    recovery: tuple[Recovery, ...] = ()
    if pushes:
        recovery = push_recovery(agent, walks=walks, seed=seed, progress=lambda share: tell(half + half * share))
    whole = round((seconds - WARM_UP_S) * records[0].rate_hz)
    # The last sample of a whole walk is that of the restart, which is not recorded.
    fallen = walks - sum(len(record.down) >= whole - 1 for record in records)
    phases = np.linspace(0.0, 1.0, CURVE_POINTS)
    lean_deg = float(np.mean([record.trunk_lean_deg for record in records]))
    norms = {kind: norm_band(kind, phases, lean_deg) for kind in KINDS}
    curves = {
        f"{side}_{kind}": band
        for kind in KINDS
        for side in SIDES
        if (band := joint_band(records, kind, side)) is not None
    }
    distances = {joint: norm_distance(band.mean, norms[joint.partition("_")[2]]) for joint, band in curves.items()}
    symmetry = {kind: joint_symmetry(records, kind) for kind in _SYMMETRIC if f"right_{kind}" in records[0].joints}
    numbers = mean_numbers([measure_walk(record) for record in records])
    return GaitReport(
        agent=name,
        walks=walks,
        fallen=fallen,
        speed_m_s=speed_m_s,
        numbers=numbers,
        curves=curves,
        norms=norms,
        distances=distances,
        symmetry=symmetry,
        recovery=recovery,
        reference=_check_reference(agent, speed_m_s),
        seconds=time.perf_counter() - started_s,
    )


def _check_reference(agent: Agent, speed_m_s: float | None) -> ReferenceCheck:
    """Compare what an agent imitates with people; its phase 0 is the contact of the right heel."""
    env = MimicEnv(EnvRequest(1, "cpu", 0, 0, {**agent.settings, "physics": "mujoco"}))
    speed = sum(env.config.speed_range) / 2.0 if speed_m_s is None else speed_m_s
    phases = torch.arange(CURVE_POINTS) / (CURVE_POINTS - 1)
    frame = env.reference.at(torch.full_like(phases, speed), phases % 1.0)
    joints = [joint.name for joint in env.walker.joints]
    angles, leans = np.rad2deg(frame.angles.double().numpy()), np.rad2deg(frame.root[:, 2].double().numpy())
    distances = {
        kind: norm_distance(
            angles[:, joints.index(f"right_{kind}")], norm_band(kind, phases.double().numpy(), float(leans.mean()))
        )
        for kind in KINDS
    }
    figure, heel = StickFigure(env.walker), StickFigure.names.index("right_heel")
    height_m = float(figure.points(reference_positions(frame, 0))[heel, 2])
    env.close()
    return ReferenceCheck(distances, 1000.0 * height_m)


def _band_json(band: Band) -> dict[str, Any]:
    return {"mean": np.round(band.mean, 3).tolist(), "deviation": np.round(band.deviation, 3).tolist()}


def _recovery_json(recovery: Recovery) -> dict[str, Any]:
    return {
        "direction": recovery.direction,
        "impulses_ns": list(recovery.impulses_ns),
        "survived": [each._asdict() if each.estimate == each.estimate else None for each in recovery.survived],
        "walks": list(recovery.walks),
        "half_ns": recovery.half_ns,
    }


def write_page(report: GaitReport, file: Path) -> None:
    """Write a report as one HTML file that loads nothing."""
    made: dict[str, JSON] = {"made": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "after_s": AFTER_PUSH_S}
    scripts = "\n".join((*map(read_asset, _SCRIPTS), read_scripts(["ludus.worlds.mimic:gait.js"])))
    document = round_document(report.as_json() | made | {"titles": dict(TITLES)})
    title = f"Ludus gait: {report.agent}"[:200]
    style = read_asset("page.css")
    page = fill_page(read_asset("page.html"), title=title, style=style, scripts=scripts, document=document)
    write_text_atomic(file, page)
