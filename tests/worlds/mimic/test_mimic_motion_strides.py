"""Tests of motions that are as they should be: round trips, one leg, asymmetry, noise, and walkers that follow them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.worlds.mimic.captures import write_gait

from ludus.core.errors import ConfigError
from ludus.envs.registry import make_env
from ludus.envs.world_parts import merge_settings
from ludus.worlds.mimic.body import SIDES, WALKERS
from ludus.worlds.mimic.capture.importing import write_clip
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import Floats, NormalGait
from ludus.worlds.mimic.model import make_walker
from ludus.worlds.mimic.motion.library import library_clip
from ludus.worlds.mimic.motion.motion import load_motion
from ludus.worlds.mimic.motion.reference import (
    MotionCurves,
    checked_stride,
    flight,
    follow_motion,
    natural_speed_m_s,
    reference_of_motion,
    scuffing,
    summarise,
)
from ludus.worlds.mimic.reference import PHASES, normal_reference
from ludus.worlds.mimic.scenarios import SCENARIOS

PERIOD_S = 1.1
STRIDE = np.arange(PHASES) / PHASES
WALKER = make_walker(MimicConfig())

# Winter, The Biomechanics and Motor Control of Human Gait: normal cadence, degrees at 0, 2, ... 100 % of the stride.
WINTER = {
    "right_hip_deg": """
        19.33 18.92 18.45 17.94 17.30 16.40 15.18 13.67 11.97 10.21 8.48 6.74 4.94 3.13 1.42 -0.13 -1.54 -2.87
        -4.12 -5.30 -6.40 -7.43 -8.39 -9.27 -10.02 -10.61 -10.95 -10.91 -10.31 -9.00 -6.95 -4.25 -1.05 2.42 5.93
        9.22 12.11 14.55 16.53 18.13 19.45 20.54 21.38 21.84 21.87 21.50 20.84 20.09 19.50 19.18 19.01
    """,
    "right_knee_deg": """
        3.97 7.00 10.52 14.12 17.38 19.84 21.27 21.67 21.22 20.20 18.86 17.35 15.73 14.08 12.50 11.09 9.91 8.97
        8.28 7.86 7.72 7.94 8.60 9.76 11.50 13.86 16.97 20.96 26.00 32.03 38.74 45.60 52.05 57.54 61.66 64.12
        64.86 63.95 61.59 57.97 53.27 47.58 40.94 33.46 25.38 17.27 9.94 4.31 1.12 0.54 2.21
    """,
    "right_ankle_deg": """
        0.02 -2.06 -3.88 -4.60 -3.98 -2.40 -0.45 1.45 3.04 4.27 5.13 5.71 6.10 6.43 6.76 7.12 7.54 7.99 8.44 8.86
        9.23 9.51 9.62 9.43 8.70 7.20 4.69 1.15 -3.26 -8.17 -13.05 -17.13 -19.52 -19.77 -18.12 -15.29 -12.04
        -8.85 -5.96 -3.51 -1.64 -0.50 -0.07 -0.16 -0.42 -0.52 -0.26 0.36 1.00 1.20 0.58
    """,
}
WINTER_PERIOD_S = 1.1396


def gait_columns(phases: Floats) -> dict[str, Floats]:
    """Returns hips, knees and ankles of both sides in degrees at phases of a stride."""
    curves = NormalGait(has_trunk=False)
    return {
        f"{side}_{kind}_deg": np.rad2deg(curves.joint(kind, side, phases % 1.0, 1.0))
        for side in SIDES
        for kind in ("hip", "knee", "ankle")
    }


def steady(frames: int = 460, rate_hz: float = 100.0, first: float = 0.0) -> dict[str, Floats]:
    """Returns such columns of steady walking that begins at phase `first`."""
    return gait_columns(first + np.arange(frames) / (rate_hz * PERIOD_S))


def write_csv(path: Path, columns: Mapping[str, Floats], rate_hz: float | None = 100.0) -> Path:
    """Writes a motion file; line 1 is the rate, line 2 the header, so that frame n is on line n + 3."""
    lines = ["# rate_hz: " + f"{rate_hz:g}" if rate_hz else "# no rate", ",".join(columns)]
    lines += [",".join(f"{value:.5f}" for value in row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("kind", list(WALKERS))
@pytest.mark.parametrize(("rate_hz", "speed_m_s"), [(100.0, 1.25), (40.0, 0.8), (500.0, 1.5)])
def test_export_and_load_give_the_same_gait(tmp_path: Path, kind: str, rate_hz: float, speed_m_s: float) -> None:
    walker = make_walker(MimicConfig.model_validate({"walker": kind}))
    frames = write_gait(tmp_path / "a.csv", walker, speed_m_s, rate_hz)
    motion = load_motion(tmp_path / "a.csv")
    assert motion.frames == frames
    assert motion.stride.count >= 4
    stride = checked_stride(motion, walker)
    expected = normal_reference(walker).at(torch.full((PHASES,), speed_m_s), torch.from_numpy(STRIDE).float())
    assert motion.stride.period_s == pytest.approx(float(expected.period_s[0]), rel=1e-3)
    assert np.abs(np.rad2deg(stride.angles - expected.angles.numpy())).max() < 0.5
    assert np.rad2deg(motion.stride.spread).max() < 0.5
    assert natural_speed_m_s(motion, stride) == pytest.approx(speed_m_s, rel=0.01)
    assert scuffing(stride) is None


@pytest.mark.parametrize("speed_m_s", [0.4, 2.0])
def test_the_gait_is_exported_beyond_the_speeds_of_its_reference(tmp_path: Path, speed_m_s: float) -> None:
    """Steps a minute go with the root of the speed: a stride of 1.10 s at 1.25 m/s takes 1.94 s at 0.4 m/s."""
    write_clip(library_clip("walk", WALKER, speed_m_s=speed_m_s), tmp_path / "a.csv", "gait")
    motion = load_motion(tmp_path / "a.csv")
    assert motion.stride.period_s == pytest.approx(1.10 * (1.25 / speed_m_s) ** 0.5, rel=1e-3)
    assert natural_speed_m_s(motion, checked_stride(motion, WALKER)) == pytest.approx(speed_m_s, rel=0.01)


@pytest.mark.parametrize("first", [0.0, 0.31, 0.5, 0.87])
def test_heel_contact_is_found_wherever_the_file_begins(tmp_path: Path, first: float) -> None:
    motion = load_motion(write_csv(tmp_path / "a.csv", steady(first=first)))
    angles = MotionCurves(motion, has_trunk=False).joint("knee", "right", STRIDE, 1.0)
    assert np.abs(np.rad2deg(angles) - gait_columns(STRIDE)["right_knee_deg"]).max() < 0.5
    assert motion.stride.first_contact % 110.0 == pytest.approx((1.0 - first) % 1.0 * 110.0, abs=0.5)


@pytest.mark.parametrize("side", SIDES)
def test_one_leg_is_enough(tmp_path: Path, side: str) -> None:
    columns = {name: values for name, values in steady(first=0.2).items() if name.startswith(side)}
    motion = load_motion(write_csv(tmp_path / "a.csv", columns))
    curves, expected = MotionCurves(motion, has_trunk=False), gait_columns(STRIDE)
    for one in SIDES:
        angles = np.rad2deg(curves.joint("hip", one, STRIDE, 1.0))
        assert np.abs(angles - expected[f"{one}_hip_deg"]).max() < 0.5
    other = SIDES[1 - SIDES.index(side)]
    assert f"{other}_knee is not in the file: {side}_knee half a stride later" in motion.notes
    assert "hip_frontal is not in the file: that of the normal gait" in motion.notes
    assert "root_roll, root_yaw not in the file: those of the normal gait" in motion.notes
    assert "root_pitch is not in the file: the root stays upright" in motion.notes
    assert not curves.trunk("pitch", STRIDE).any()
    frontal = curves.joint("hip_frontal", side, STRIDE, 1.0)
    assert np.array_equal(frontal, NormalGait(has_trunk=False).joint("hip_frontal", side, STRIDE, 1.0))


@pytest.mark.parametrize("closing", [True, False])
def test_a_file_may_be_one_stride(tmp_path: Path, closing: bool) -> None:
    columns = steady(frames=111 if closing else 110)  # 110 frames are a stride; one more repeats the first
    motion = load_motion(write_csv(tmp_path / "a.csv", columns))
    assert motion.stride.count == 1
    assert motion.stride.period_s == pytest.approx(PERIOD_S)
    assert "there is one whole stride, so nothing is known about the spread" in motion.notes
    angles = np.rad2deg(MotionCurves(motion, has_trunk=False).joint("ankle", "left", STRIDE, 1.0))
    assert np.abs(angles - gait_columns(STRIDE)["left_ankle_deg"]).max() < 0.5


def test_another_table_of_gait_begins_at_its_own_heel_contact(tmp_path: Path) -> None:
    columns = {name: np.array(numbers.split(), dtype=float) for name, numbers in WINTER.items()}
    motion = load_motion(write_csv(tmp_path / "winter.csv", columns, 50.0 / WINTER_PERIOD_S))
    assert motion.stride.count == 1
    assert motion.stride.period_s == pytest.approx(WINTER_PERIOD_S, rel=1e-3)
    contact = motion.stride.first_contact / 50.0
    assert min(contact, 1.0 - contact) < 0.03
    speed = natural_speed_m_s(motion, checked_stride(motion, WALKER))
    assert speed == pytest.approx(0.97, abs=0.05)  # these angles imply about 0.99 m/s on a planar model


def test_strides_of_different_length_and_noise_are_averaged(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lengths = np.repeat([1.05, 1.10, 1.15, 1.08, 1.12, 1.10], 130)
    phases = np.cumsum(1.0 / (100.0 * lengths))
    columns = {name: values + random.normal(0.0, 0.5, len(values)) for name, values in gait_columns(phases).items()}
    stride = load_motion(write_csv(tmp_path / "a.csv", columns)).stride
    assert stride.count == 6
    assert stride.period_s == pytest.approx(1.10, abs=0.015)
    assert 0.01 < stride.period_spread_s < 0.05
    mean = np.rad2deg(stride.column("right_knee"))
    assert np.abs(mean - gait_columns(STRIDE)["right_knee_deg"]).max() < 2.0
    assert 0.1 < np.rad2deg(stride.spread).mean() < 1.0


def test_strides_unlike_the_others_are_left_out(tmp_path: Path) -> None:
    columns = steady(frames=900)
    halting = 1.0 - np.sin(np.pi * np.linspace(0.0, 1.0, 110)) ** 2
    for values in columns.values():
        values[330:440] = values.mean() + halting * (values[330:440] - values.mean())  # the fourth of eight strides
    motion = load_motion(write_csv(tmp_path / "a.csv", columns))
    assert motion.stride.left_out == 1
    assert any("1 of 7 strides are unlike the others: left out" in note for note in motion.notes)


def test_sides_may_differ_and_mirror_makes_them_alike(tmp_path: Path) -> None:
    columns = steady()
    columns["left_hip_deg"] = columns["left_hip_deg"] + 6.0
    columns["root_roll_deg"] = np.full_like(columns["left_hip_deg"], 2.0)
    motion = load_motion(write_csv(tmp_path / "a.csv", columns))
    own, even = (MotionCurves(motion, has_trunk=False, symmetric=symmetric) for symmetric in (False, True))
    later = (STRIDE + 0.5) % 1.0
    difference = np.rad2deg(own.joint("hip", "left", later, 1.0) - own.joint("hip", "right", STRIDE, 1.0))
    assert difference == pytest.approx(np.full(PHASES, 6.0), abs=0.3)
    assert even.joint("hip", "left", later, 1.0) == pytest.approx(even.joint("hip", "right", STRIDE, 1.0))
    assert np.rad2deg(own.trunk("roll", STRIDE)) == pytest.approx(np.full(PHASES, 2.0), abs=1e-3)
    assert even.trunk("roll", STRIDE) == pytest.approx(np.zeros(PHASES), abs=1e-9)


def test_amplitude_scales_about_the_mean(tmp_path: Path) -> None:
    curves = MotionCurves(load_motion(write_csv(tmp_path / "a.csv", steady())), has_trunk=False)
    whole, half = (curves.joint("knee", "right", STRIDE, amplitude) for amplitude in (1.0, 0.5))
    assert half.mean() == pytest.approx(whole.mean())
    assert np.ptp(half) == pytest.approx(0.5 * np.ptp(whole))


def test_yaw_is_counted_from_the_way_that_is_walked(tmp_path: Path) -> None:
    columns = steady()
    columns["root_yaw_deg"] = (179.0 + 4.0 * np.cos(np.arange(460) * 2.0 * np.pi / 110.0) + 180.0) % 360.0 - 180.0
    motion = load_motion(write_csv(tmp_path / "a.csv", columns))
    yaw = np.rad2deg(MotionCurves(motion, has_trunk=False).trunk("yaw", STRIDE))
    assert np.abs(yaw).max() == pytest.approx(4.0, abs=0.3)


def test_times_give_the_rate(tmp_path: Path) -> None:
    times = {"time_s": 1.7e9 + np.arange(552) / 120.0}
    motion = load_motion(write_csv(tmp_path / "a.csv", times | steady(552, 120.0), rate_hz=None))
    assert motion.rate_hz == pytest.approx(120.0, rel=1e-4)
    assert motion.stride.period_s == pytest.approx(PERIOD_S, rel=1e-3)


def test_a_motion_file_trains_as_the_built_in_gait_does(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    write_gait(file, WALKER)
    reference, speeds, warnings = follow_motion(file, MimicConfig(), WALKER)
    assert not warnings
    assert speeds == (0.8, 1.4)
    places = torch.full((PHASES,), 1.25), torch.from_numpy(STRIDE).float()
    own, normal = reference.at(*places), normal_reference(WALKER).at(*places)
    assert torch.rad2deg(own.angles - normal.angles).abs().max() < 0.5
    assert torch.allclose(own.velocities, normal.velocities, atol=0.3)
    assert torch.allclose(own.root[:, 0], normal.root[:, 0], atol=0.003)
    assert torch.allclose(own.root_velocity[:, 0], normal.root_velocity[:, 0], atol=0.05)
    assert torch.allclose(own.points, normal.points, atol=0.01)
    with make_env("mimic", num_envs=3, config={"motion": str(file)}) as env:
        env.reset()
        for _ in range(5):
            result = env.step(torch.zeros(3, 1, 8))
        assert torch.isfinite(result.observations["vector"]).all()
        assert not result.terminated.any()


# Running at about 3 m/s by the figures of Novacheck (1998), read off every 10 % of the stride from the foot's contact.
RUNNING = {
    "hip": (35, 33, 20, 5, -6, 2, 20, 38, 47, 45),
    "knee": (15, 36, 42, 28, 20, 45, 78, 95, 75, 32),
    "ankle": (8, 20, 25, 5, -20, -8, 0, 3, 5, 8),
}


def running(period_s: float) -> dict[str, Floats]:
    turns = np.arange(460) / (100.0 * period_s)
    columns = {}
    for kind, degrees in RUNNING.items():
        spectrum = np.fft.rfft(degrees)[:5] * ([0.1] + [0.2] * 4)
        for side, shift in zip(SIDES, (0.0, 0.5), strict=True):
            waves = np.exp(2j * np.pi * np.outer(turns + shift, np.arange(5)))
            columns[f"{side}_{kind}_deg"] = (waves * spectrum).real.sum(axis=1)
    return columns


def test_a_run_is_told_to_have_a_flight_phase(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for period_s in (0.6, 0.72, 0.9):
        file = write_csv(tmp_path / f"run-{period_s}.csv", running(period_s))
        motion = load_motion(file)
        said = flight(motion, checked_stride(motion, WALKER), WALKER)
        assert said is not None
        assert f"{file} has a flight phase, as running does" in said
        assert summarise(motion, WALKER)["notes"] == [*motion.notes, said]
    make_env("mimic", config={"motion": str(file)}).close()
    make_env("mimic", config={"motion": str(file)}).close()
    assert caplog.messages == [f"[WARN] {said}"]


@pytest.mark.parametrize("rate_hz", [60.0, 100.0, 130.0, 190.0])
def test_walking_is_taken_for_running_only_if_it_is_played_fast(tmp_path: Path, rate_hz: float) -> None:
    motion = load_motion(write_csv(tmp_path / "a.csv", steady(900), rate_hz))
    stride = checked_stride(motion, WALKER)
    said = flight(motion, stride, WALKER)
    assert (said is not None) == (natural_speed_m_s(motion, stride) > 2.2)
    assert said is None or "above 2.1 m/s people run, with a flight phase" in said


def test_a_speed_that_the_reference_does_not_have_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write_csv(tmp_path / "slow.csv", steady(), rate_hz=60.0)
    low, high = follow_motion(file, MimicConfig(), WALKER)[0].speeds
    for name, trial in SCENARIOS.items():
        with make_env("mimic", config=merge_settings({"motion": str(file)}, trial)) as env:
            is_beyond = trial.get("speed", 0.0) > high
            assert len(env.warnings) == is_beyond, name
    assert [message.split()[5] for message in caplog.messages] == ["1.2", "1.4"]
    assert f"outside the range of the motion {file}, {low:.2f} to {high:.2f} m/s" in caplog.text
    with make_env("mimic", config={"speed": 1.6}) as env:
        assert not env.warnings
    for config in ({"speed": 1.7}, {"speed_range": (0.5, 1.0)}):
        with make_env("mimic", config=config) as env:
            assert "m/s is outside the range of the normal gait, 0.70 to 1.60 m/s" in env.warnings[0]


def test_default_speeds_give_way_to_a_slow_motion_and_others_are_refused(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "slow.csv", steady(), rate_hz=60.0)
    motion = load_motion(file)
    natural = natural_speed_m_s(motion, checked_stride(motion, WALKER))
    assert 0.6 < natural < 0.8
    reference, speeds, warnings = follow_motion(file, MimicConfig(), WALKER)
    assert not warnings
    assert speeds == pytest.approx((0.8 * natural, 1.2 * natural))
    assert reference.speeds == pytest.approx((0.6 * natural, 1.4 * natural))
    with make_env("mimic", config={"motion": str(file)}) as env:
        env.reset()
        column = env.step(torch.zeros(1, 1, 8)).state_metrics["desired"]
        assert speeds[0] <= float(column[0, 0]) <= speeds[1]
    low, high = reference.speeds
    with pytest.raises(ConfigError, match=rf"speed_range 0\.8 to 1\.5 .*valid: from {low:.2f} to {high:.2f}"):
        make_env("mimic", config={"motion": str(file), "speed_range": (0.8, 1.5)})
    with pytest.raises(ConfigError, match=r"slow\.csv"):
        reference_of_motion(motion, WALKER, (0.5, 3.0))
