"""The car in the air, its boost and its limits: golden values, directions of the controls, auto-flip and auto-roll."""

import importlib
import math
from pathlib import Path

import pytest
import torch
from benchmarks.rocket_lab import Track, drive, lone_car

from ludus.worlds.rocket.rules import GRAVITY, Control

pytestmark = pytest.mark.compile

ROOT = Path(__file__).parents[3]


def up_z(track: Track) -> list[float]:
    """How far the roof points upward, 1 to -1, at each tick."""
    x, y, z, w = track.rotation.unbind(1)
    return (w * w + z * z - x * x - y * y).tolist()


@pytest.mark.parametrize("part", ["air_rows", "air_boost_rows"])
def test_stick_and_boost_in_the_air_meet_the_golden_values(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    rows = getattr(importlib.import_module("benchmarks.rocket_parity_car"), part)()
    assert {row.name: row.ours for row in rows} == {
        row.name: pytest.approx(row.golden, abs=row.tolerance) for row in rows
    }


@pytest.mark.parametrize(
    ("control", "axis", "sign"),
    [
        (Control.PITCH, 0, 1.0),  # heading toward +y: nose up is a turn about +x,
        (Control.YAW, 2, -1.0),  # to the right about -z,
        (Control.ROLL, 1, 1.0),  # right side down about +y
    ],
)
def test_the_stick_turns_the_car_about_one_axis(control: Control, axis: int, sign: float) -> None:
    track = drive(lone_car(z=1000.0), (10, {control: 1.0}))
    spin = track.spin[-1].tolist()
    assert sign * spin.pop(axis) > 0.7
    assert spin == pytest.approx([0.0, 0.0], abs=1.0e-4)


def test_steering_does_nothing_in_the_air_and_the_stick_nothing_on_the_ground() -> None:
    flying = drive(lone_car(z=1000.0), (10, {Control.STEER: 1.0, Control.HANDBRAKE: 1.0}))
    assert flying.spin.abs().max().item() == 0.0
    stick = {Control.PITCH: 1.0, Control.YAW: 1.0, Control.ROLL: 1.0}
    standing, parked = drive(lone_car(), (60, stick)), drive(lone_car(), (60, {}))
    assert torch.equal(standing.position, parked.position)


@pytest.mark.parametrize(
    ("controls", "acceleration"),
    [
        ({Control.THROTTLE: 1.0}, 66.667),
        ({Control.THROTTLE: -1.0}, -66.667),
        ({Control.BOOST: 1.0}, 1058.333),
        ({Control.BOOST: 1.0, Control.THROTTLE: -1.0}, 1058.333),  # boost is full throttle
    ],
)
def test_throttle_and_boost_push_along_the_nose_in_the_air(controls: dict[Control, float], acceleration: float) -> None:
    track = drive(lone_car(y=0.0, z=1000.0), (60, controls))
    assert track.velocity[-1, 1].item() == pytest.approx(0.5 * acceleration, rel=1.0e-4)
    assert track.velocity[-1, 2].item() == pytest.approx(0.5 * GRAVITY, rel=1.0e-4)


def test_boost_burns_a_third_of_a_tank_in_a_second_and_ends() -> None:
    track = drive(lone_car(y=0.0, boost=40.0), (180, {Control.BOOST: 1.0}))
    assert (track.boost[0] - track.boost[60]).item() == pytest.approx(16.667, abs=0.001)
    assert track.boost[-1].item() == 0.0
    empty = drive(lone_car(y=0.0, boost=0.0), (30, {Control.BOOST: 1.0}))
    assert abs(empty.velocity[-1, 1].item()) < 0.1  # the key alone is no throttle


def test_supersonic_holds_for_a_second_below_its_speed() -> None:
    lab = lone_car(y=-4000.0, z=1900.0, speed=2250.0)
    lab.cars["supersonic"][:] = 0
    drive(lab, (1, {}))
    assert lab.cars["supersonic"].item() == 1
    lab.cars["velocity"][0, 0] = torch.tensor([0.0, 2150.0, 0.0])
    held = []
    for _ in range(130):
        lab.cars["velocity"][0, 0, 2] = 0.0  # keeps its speed
        lab.step()
        held.append(lab.cars["supersonic"].item())
    assert sum(held) == pytest.approx(120, abs=1)
    assert held[-1] == 0


def test_supersonic_ends_at_once_below_2100() -> None:
    lab = lone_car(y=-4000.0, z=1000.0, speed=2250.0)
    drive(lab, (1, {}))
    lab.cars["velocity"][0, 0, 1] = 2090.0
    drive(lab, (1, {}))
    assert lab.cars["supersonic"].item() == 0


def upside_down(roll: float) -> torch.Tensor:
    """Rotation of a car that heads toward +y and rolled to the right by an angle."""
    half, side = 0.5**0.5, 0.5 * roll
    sine, cosine = math.sin(side), math.cos(side)
    return torch.tensor([half * sine, half * sine, half * cosine, half * cosine])


@pytest.mark.parametrize("roll", [3.0, -3.0])
def test_a_jump_turns_a_car_over_that_lies_on_its_roof(roll: float) -> None:
    lab = lone_car(z=45.0)
    lab.cars["rotation"][0, 0] = upside_down(roll)
    lying = drive(lab, (120, {}))
    assert up_z(lying)[-1] < -0.95
    track = drive(lab, (1, {Control.JUMP: 1.0}), (180, {}))
    assert track.velocity[1, 2].item() == pytest.approx(200.0, abs=10.0)
    assert up_z(track)[-1] > 0.99
    assert track.wheels[-1].item() == 4
    assert lab.cars["double_jumped"].item() == 0


def test_throttle_rolls_a_car_off_its_side_and_without_it_stays() -> None:
    side = {}
    for throttle in (0.0, 1.0):
        lab = lone_car(z=46.0)
        lab.cars["rotation"][0, 0] = upside_down(1.55)
        side[throttle] = drive(lab, (20, {}), (100, {Control.THROTTLE: throttle}))
    assert side[0.0].wheels[-1].item() == 0
    assert side[1.0].wheels[-1].item() == 4
