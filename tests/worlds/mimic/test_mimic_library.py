"""The motions of the package: feet on the ground, joints within their ranges, steady loops, and bodies in balance."""

import math

import numpy as np
import pytest
import torch

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.registry import make_env
from ludus.worlds.mimic.body import WALKERS
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import Walker, make_walker
from ludus.worlds.mimic.motion.clip import Clip, check_clip, foot_points
from ludus.worlds.mimic.motion.footsteps import Gait
from ludus.worlds.mimic.motion.library import ENTRIES, library_clip, library_reference
from ludus.worlds.mimic.motion.planner import centre_of_mass, plan_gait

pytestmark = pytest.mark.train

BODIES = {kind: make_walker(MimicConfig(walker=kind)) for kind in WALKERS}  # type: ignore[arg-type]
MADE = [
    (kind, name)
    for kind in WALKERS
    for name, entry in ENTRIES.items()
    if kind == "walker-13" or not entry.needs_rotation
]


@pytest.fixture(scope="module")
def clips() -> dict[tuple[str, str], Clip]:
    return {(kind, name): library_clip(name, BODIES[kind]) for kind, name in MADE}


def degrees(clip: Clip, joint: str) -> Floats:
    angles: Floats = np.rad2deg(clip.angles[:, clip.joints.index(joint)])
    return angles


@pytest.mark.parametrize(("kind", "name"), MADE)
def test_feet_stand_on_the_ground_and_joints_stay_within_their_ranges(
    clips: dict[tuple[str, str], Clip], kind: str, name: str
) -> None:
    clip, entry = clips[kind, name], ENTRIES[name]
    quality = check_clip(BODIES[kind], clip)
    assert quality.float_mm < 6.5
    assert quality.sink_mm < 2.0
    assert quality.slide_mm < 11.0
    assert quality.beyond_deg == 0.0
    assert quality.fastest_rad_s < 20.0  # a sprinter's knee
    assert quality.seam_deg < 0.5
    assert np.isfinite(clip.positions()).all()
    if clip.is_cyclic and entry.gait is not None and not entry.gait.turn_deg_s:
        way = clip.root[-1, :2] - clip.root[0, :2]
        assert np.linalg.norm(way) * clip.rate_hz / (clip.frames - 1) == pytest.approx(entry.speed_m_s, abs=0.01)


def test_directions_and_turns(clips: dict[tuple[str, str], Clip]) -> None:
    ways = {name: clip.root[-1] - clip.root[0] for (kind, name), clip in clips.items() if kind == "walker-13"}
    assert ways["backward"][0] < -1.5
    assert ways["side-left"][1] > 0.6
    assert ways["side-right"][1] < -0.6
    assert abs(ways["side-left"][0]) < 0.02
    assert ways["stairs-up"][2] == pytest.approx(4 * 0.17, abs=0.03)  # two strides of two steps each
    turns = {name: np.rad2deg(np.ptp(clip.turns[:, 2])) for (kind, name), clip in clips.items() if kind == "walker-13"}
    assert turns["turn-left"] == pytest.approx(35.0 * 2 * 1.3, rel=0.02)
    assert turns["walk"] < 10.0


def test_running_flies_and_walking_does_not(clips: dict[tuple[str, str], Clip]) -> None:
    """Runners of 2.5 and 3.5 m/s bend their knees to 90 to 110 degrees in swing (Novacheck 1998), and fall freely."""
    for name, duty in (("run-2.5", 0.39), ("run-3.5", 0.34)):
        clip = clips["walker-8", name]
        assert clip.contacts.mean() == pytest.approx(duty, abs=0.02)
        assert 85.0 < degrees(clip, "right_knee").max() < 115.0
        standing = clip.contacts.sum(axis=1)
        inner = np.flatnonzero(standing[:-2] + standing[1:-1] + standing[2:] == 0) + 1
        height = clip.root[:, 2]
        falls = (height[inner + 1] - 2.0 * height[inner] + height[inner - 1]) * clip.rate_hz**2
        assert falls == pytest.approx(-9.81, abs=0.05)
    for name in ("walk-slow", "march", "backward", "side-left"):
        assert clips["walker-8", name].contacts.any(axis=1).all()


def test_marching_lifts_the_knees_and_slow_walking_hardly_the_feet(clips: dict[tuple[str, str], Clip]) -> None:
    assert degrees(clips["walker-8", "march"], "right_hip").max() > 65.0
    points, _ = foot_points(BODIES["walker-8"], clips["walker-8", "walk-slow"])
    assert points[:, 0, :, 2].min(axis=1).max() == pytest.approx(0.025, abs=0.005)


def test_the_left_leg_does_the_same_half_a_stride_later(clips: dict[tuple[str, str], Clip]) -> None:
    for name in ("walk-slow", "run-2.5", "march", "backward"):
        clip = clips["walker-13", name]
        half = clip.frames // 4
        for kind in ("hip", "hip_frontal", "knee", "ankle"):
            right, left = degrees(clip, f"right_{kind}"), degrees(clip, f"left_{kind}")
            assert np.abs(np.roll(left, -half) - right).max() < 0.5


def pressure(walker: Walker, clip: Clip) -> Floats:
    """Returns where the weight rests, `(frames, 2)`: c - z / (g + z'') c'' of the centre of mass."""
    centre = centre_of_mass(walker, clip)
    width = round(0.04 * clip.rate_hz)
    kernel = np.hanning(2 * width + 3)[1:-1]
    kernel /= kernel.sum()
    smooth = np.stack([np.convolve(column, kernel, mode="same") for column in centre.T], axis=1)
    speed = np.gradient(np.gradient(smooth, axis=0), axis=0) * clip.rate_hz**2
    rests: Floats = smooth[:, :2] - smooth[:, 2:] / (9.81 + speed[:, 2:]) * speed[:, :2]
    return rests


@pytest.mark.parametrize("name", ["walk-slow", "stroll", "backward", "march"])
def test_planned_walking_is_in_balance(name: str) -> None:
    """The weight rests within the standing feet, to a few millimetres; that of the normal gait at 0.4 m/s does not."""
    walker, gait = BODIES["walker-8"], ENTRIES[name].gait
    assert gait is not None
    clip = plan_gait(gait, walker, name, 3)
    rests, (points, _) = pressure(walker, clip), foot_points(walker, clip)
    inner = slice(clip.frames // 3, 2 * clip.frames // 3)
    for axis in range(2):
        places = points[..., axis]
        high = np.where(clip.contacts[:, :, None], places, -np.inf).max(axis=(1, 2))[inner]
        low = np.where(clip.contacts[:, :, None], places, np.inf).min(axis=(1, 2))[inner]
        out = np.maximum(rests[inner, axis] - high, low - rests[inner, axis])
        assert np.maximum(out, 0.0).mean() < 0.03


def test_slow_steps_sway_more_than_fast_ones() -> None:
    """The sway of a pendulum of period T under weight that goes from side to side: less where T is short."""
    walker = BODIES["walker-8"]
    sways = [np.ptp(plan_gait(Gait(0.5, period_s=period), walker, "sway", 1).root[:, 1]) for period in (0.8, 1.2, 1.8)]
    assert sways[0] < 0.7 * sways[1] < 0.6 * sways[2]


@pytest.mark.parametrize("height_m", [1.5, 1.95])
def test_other_bodies_move_alike(height_m: float) -> None:
    """At equal Froude numbers: lengths grow with the body, speeds with the square root of it."""
    walker = make_walker(MimicConfig(height_m=height_m, mass_kg=70.0))
    clip = library_clip("walk-slow", walker)
    usual = library_clip("walk-slow", BODIES["walker-8"])
    scale = height_m / 1.75
    assert clip.frames / clip.rate_hz == pytest.approx(usual.frames / usual.rate_hz * scale**0.5, rel=0.01)
    way = (clip.root[-1, 0] - clip.root[0, 0]) / (usual.root[-1, 0] - usual.root[0, 0])
    assert way == pytest.approx(scale, rel=0.01)
    assert degrees(clip, "right_knee").max() == pytest.approx(degrees(usual, "right_knee").max(), abs=4.0)
    assert check_clip(walker, clip).slide_mm < 11.0


def test_standing_stays_where_it_is(clips: dict[tuple[str, str], Clip]) -> None:
    clip = clips["walker-8", "stand"]
    assert not clip.is_cyclic
    assert clip.contacts.all()
    assert np.ptp(clip.root, axis=0).max() < 1e-6


@pytest.mark.parametrize("name", ENTRIES)
def test_walkers_can_follow_them(name: str) -> None:
    """The reference moves as the clip does: its velocities are those of its angles, its mean speed that of its name."""
    entry = ENTRIES[name]
    walker = BODIES["walker-13" if entry.needs_rotation else "walker-8"]
    reference, limits = library_reference(name, walker, mirror=False)
    ranges = {"walk": (0.32, 1.6), "stroll": (0.572, 1.43)}  # 0.4 to 2.0 m/s, and 0.4 to 1.0
    low, high = ranges.get(name, (0.8, 1.2))
    # In a curve the body leans inward: c - (z / g) c'' = p on a circle makes c smaller than p by 1 + z w^2 / g.
    turn = math.radians(entry.gait.turn_deg_s) if entry.gait is not None else 0.0
    speed_m_s = entry.speed_m_s / (1.0 + 0.56 * 1.75 / 9.81 * turn**2)
    assert limits == pytest.approx((low * speed_m_s, high * speed_m_s), rel=0.02, abs=1e-6)
    phases = torch.arange(128) / 128
    frame = reference.at(torch.full((128,), speed_m_s), phases)
    way = frame.root_velocity[:, :2].mean(dim=0)
    assert float(way.norm()) == pytest.approx(speed_m_s, rel=0.02, abs=1e-6)
    (part,) = reference.parts
    expected = speed_m_s * torch.tensor([math.cos(part.way_rad), math.sin(part.way_rad)])
    torch.testing.assert_close(way, expected, rtol=0.0, atol=0.03)
    later = reference.at(torch.full((128,), speed_m_s), (phases + 1.0 / 128) % 1.0)
    steps = (later.angles - frame.angles) * (128 / frame.period_s[:, None])
    between = 0.5 * (later.velocities + frame.velocities)
    assert float((steps - between).abs().max()) < 0.15 * float(between.abs().max()) + 0.1


def test_an_environment_follows_a_motion_by_name() -> None:
    env = make_env("mimic", num_envs=4, config={"motion": "run-2.5", "threads": 1})
    try:
        observations = env.reset(seed=3)
        assert torch.isfinite(observations["vector"]).all()
        speeds = observations["vector"][:, 0, 3]
        assert float(speeds.min()) >= 2.0
        assert float(speeds.max()) <= 3.0
    finally:
        env.close()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"motion": "stairs-up", "physics": "warp"}, "has stairs, which MuJoCo Warp cannot do; set physics: mujoco"),
        ({"motion": "turn-left"}, "which walker-8 cannot; use walker-13"),
        ({"motion": "side-left"}, "set mirror: false"),
        ({"motion": "stand"}, "set mirror: false"),
        ({"motion": "march", "speed_range": (0.1, 0.2)}, "does not fit the motion march; valid: from 0.72 to 1.08"),
    ],
)
def test_what_cannot_be_imitated_is_told(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        make_env("mimic", num_envs=1, config=settings)
    assert said in str(error.value)


def test_an_unknown_motion_is_told() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'march'"):
        library_clip("marsh", BODIES["walker-8"])
