"""The car on its wheels: golden values of driving, rest, symmetry, limits, and that it gets back onto its wheels."""

import importlib
import math
from pathlib import Path

import pytest
import torch
from benchmarks.rocket_lab import Lab, drive, lone_car
from torch import Tensor

from ludus.worlds.rocket.rules import BOOST_MAX, CAR_MAX_SPEED, CAR_MAX_SPIN, Control

ROOT = Path(__file__).parents[3]
MIRRORED = [Control.STEER, Control.YAW, Control.ROLL]


@pytest.mark.parametrize("part", ["throttle_rows", "boost_rows", "stopping_rows", "turning_rows", "wall_rows"])
def test_driving_meets_the_golden_values(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    rows = getattr(importlib.import_module("benchmarks.rocket_parity_car"), part)()
    assert {row.name: row.ours for row in rows} == {
        row.name: pytest.approx(row.golden, abs=row.tolerance) for row in rows
    }


def test_reverse_is_as_fast_as_forward() -> None:
    track = drive(lone_car(y=3000.0), (400, {Control.THROTTLE: -1.0}))
    assert track.velocity[-1, 1].item() == pytest.approx(-1410.0, abs=1.0)


def test_half_throttle_accelerates_half_as_much() -> None:
    track = drive(lone_car(), (11, {Control.THROTTLE: 0.5}))
    assert track.speed[11].item() == pytest.approx(10 * 800.0 / 120.0, rel=0.03)  # the first tick only sets the wheels


@pytest.mark.parametrize(("steer", "side"), [(1.0, 1.0), (-1.0, -1.0)])
def test_positive_steering_turns_right(steer: float, side: float) -> None:
    track = drive(lone_car(), (120, {Control.THROTTLE: 1.0, Control.STEER: steer}))
    assert side * track.position[-1, 0].item() > 100.0  # heading toward +y, right is +x
    assert side * track.spin[-1, 2].item() < -1.0


def test_handbrake_alone_does_not_brake() -> None:
    track = drive(lone_car(speed=1000.0), (60, {Control.HANDBRAKE: 1.0}))
    assert track.speed[-1].item() == pytest.approx(1000.0, abs=0.1)


def test_a_car_at_rest_stays_at_rest() -> None:
    lab = lone_car(z=17.03)
    drive(lab, (240, {}))
    track = drive(lab, (1200, {}))
    assert track.way.max().item() < 0.01
    assert track.speed.max().item() < 0.01
    assert bool((track.wheels == 4).all())


def test_a_parked_car_slides_down_a_wall_and_a_driven_one_stays_on_it() -> None:
    half = 0.5**0.5
    for throttle, stays in ((0.0, False), (1.0, True)):
        lab = lone_car(y=0.0, speed=1000.0)
        lab.cars["position"][0, 0] = torch.tensor([4096.0 - 17.03, -2000.0, 1000.0])
        # Heading toward +y with the wheels on the wall at +x: a quarter turn left, then a quarter roll to the left.
        lab.cars["rotation"][0, 0] = torch.tensor([-half * half, -half * half, half * half, half * half])
        track = drive(lab, (180, {Control.THROTTLE: throttle}))
        assert track.wheels[-1].item() == 4
        assert (track.velocity[-1, 2].item() > -150.0) == stays


def random_cars(games: int, seed: int, low: bool) -> Lab:
    """Cars anywhere in the field with any motion; `low` ones near the floor."""
    random = torch.Generator().manual_seed(seed)
    lab = Lab(games)

    def draw(*shape: int) -> Tensor:
        return 2.0 * torch.rand((games, 1, *shape), generator=random) - 1.0

    lab.cars["position"][:] = draw(3) * torch.tensor([3900.0, 4900.0, 800.0]) + torch.tensor([0.0, 0.0, 950.0])
    if low:
        lab.cars["position"][..., 2] = 120.0
    lab.cars["velocity"][:] = draw(3) * 1500.0
    lab.cars["spin"][:] = draw(3) * 4.0
    lab.cars["rotation"][:] = torch.nn.functional.normalize(draw(4), dim=-1)
    lab.cars["boost"][:] = 50.0 + 50.0 * draw()
    lab.ball["position"][:] = torch.tensor([0.0, 0.0, 1900.0])
    lab.ball["asleep"][:] = 1
    return lab


def random_controls(games: int, random: torch.Generator) -> Tensor:
    """Random controls `(games, 1, 8)`."""
    controls = (2.4 * torch.rand((games, 1, 8), generator=random) - 1.2).clamp(-1.0, 1.0)
    controls[..., Control.JUMP :] = (controls[..., Control.JUMP :] > 0.3).float()
    return controls


def turned(field: dict[str, Tensor], how: str) -> dict[str, Tensor]:
    """A car's motion, mirrored in x or turned by half a turn about z."""
    x, y, z, w = field["rotation"].unbind(-1)
    if how == "mirror":
        place, spin = [-1.0, 1.0, 1.0], [1.0, -1.0, -1.0]
        rotation = torch.stack((-y, -x, w, z), dim=-1)  # mirrored in x, and left and right of the car change places
    else:
        place, spin = [-1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]
        rotation = torch.stack((-y, x, w, -z), dim=-1)
    return {
        "position": field["position"] * torch.tensor(place),
        "velocity": field["velocity"] * torch.tensor(place),
        "spin": field["spin"] * torch.tensor(spin),
        "rotation": rotation,
    }


@pytest.mark.parametrize("how", ["mirror", "half turn"])
def test_the_other_side_is_the_same_bit_for_bit(how: str) -> None:
    games = 128
    one, other = random_cars(games, 3, low=True), random_cars(games, 3, low=True)
    for name, values in turned(one.cars, how).items():
        other.cars[name][:] = values
    random = torch.Generator().manual_seed(4)
    for _ in range(40):
        one.controls[:] = random_controls(games, random)
        other.controls[:] = one.controls
        if how == "mirror":
            other.controls[..., MIRRORED] *= -1.0
        one.step(8)
        other.step(8)
    for name, values in turned(one.cars, how).items():
        assert torch.equal(other.cars[name], values), name
    assert one.cars["on_ground"].float().mean().item() > 0.05  # some drive


def test_limits_hold_and_nothing_is_lost_with_random_controls() -> None:
    games = 256
    lab = random_cars(games, 1, low=False)
    random = torch.Generator().manual_seed(2)
    for _ in range(250):
        lab.controls[:] = random_controls(games, random)
        lab.step(8)
        for name, values in lab.cars.items():
            assert bool(torch.isfinite(values).all()), name
        assert lab.cars["velocity"].norm(dim=-1).max().item() <= CAR_MAX_SPEED * 1.00001
        assert lab.cars["spin"].norm(dim=-1).max().item() <= CAR_MAX_SPIN * 1.00001
        assert (lab.cars["rotation"].norm(dim=-1) - 1.0).abs().max().item() < 1.0e-5
    assert 0.0 <= lab.cars["boost"].min().item() <= lab.cars["boost"].max().item() <= BOOST_MAX
    position = lab.cars["position"].abs().amax(dim=(0, 1))
    assert bool((position < torch.tensor([4096.0, 6000.0, 2048.0])).all()), position


def test_a_dropped_car_comes_to_rest_and_throttle_puts_it_on_its_wheels() -> None:
    games = 200
    lab = random_cars(games, 5, low=True)
    lab.cars["position"][..., :2] *= 0.5
    lab.cars["velocity"].zero_()
    lab.step(1200)
    assert lab.cars["velocity"].norm(dim=-1).max().item() < 10.0
    lab.controls[..., Control.THROTTLE] = 1.0
    rolled = torch.zeros((games, 1), dtype=torch.bool)
    for _ in range(40):
        lab.step(15)
        rolled |= lab.cars["on_ground"] == 1
    assert bool(rolled.all()), f"{int((~rolled).sum())} of {games} cars never came back onto their wheels"


@pytest.mark.parametrize("heading_deg", range(0, 360, 45))
def test_ramps_lead_up_every_wall_and_corner(heading_deg: int) -> None:
    """With what RocketSim's car has left at z 264 on ramps of eight facets: 1191 uu/s, or 940 before the back walls."""
    heading = math.radians(heading_deg)
    way = torch.tensor([math.cos(heading), math.sin(heading), 0.0])
    # Some 900 uu before the wall or corner plane, beside the goals.
    if heading_deg % 180 == 90:
        place, speed = (1500.0, 4200.0), 940.0
    else:
        place, speed = ((2900.0, 3900.0) if heading_deg % 90 else (3200.0, 0.0)), 1191.0
    lab = lone_car()
    lab.cars["position"][0, 0, :2] = torch.tensor(place) * torch.where(way[:2] < -0.1, -1.0, 1.0)
    lab.cars["velocity"][0, 0] = 1400.0 * way
    lab.cars["rotation"][0, 0] = torch.tensor([0.0, 0.0, math.sin(0.5 * heading), math.cos(0.5 * heading)])
    track = drive(lab, (150, {Control.THROTTLE: 1.0}))
    high = next(tick for tick, z in enumerate(track.position[:, 2].tolist()) if z > 264.0)
    assert track.speed[high].item() == pytest.approx(speed, rel=0.03)
    assert track.wheels[high].item() == 4
    assert track.position[-1, 2].item() > 450.0
