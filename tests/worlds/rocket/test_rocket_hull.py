"""The car's hull against the arena: lying, sliding, crashing, at goal posts; symmetries."""

import pytest
import torch
from benchmarks.rocket_lab import Lab, arena_at
from torch import Tensor

from ludus.worlds.rocket.rules import HULL_HALF_X, HULL_HALF_Y, HULL_HALF_Z, HULL_OFFSET_X, HULL_OFFSET_Z

UPSIDE_DOWN = (1.0, 0.0, 0.0, 0.0)  # half a turn about the x axis
ROOF_Z = HULL_OFFSET_Z + HULL_HALF_Z  # height of the centre of mass of a car on its roof
SIGNS = torch.cartesian_prod(*(torch.tensor([-1.0, 1.0]),) * 3)
CORNERS = SIGNS * torch.tensor([HULL_HALF_X, HULL_HALF_Y, HULL_HALF_Z]) + torch.tensor(
    [HULL_OFFSET_X, 0.0, HULL_OFFSET_Z]
)


def lone_cars(games: int = 1) -> Lab:
    """Cars without a ball in reach."""
    lab = Lab(games)
    lab.ball["position"][:] = torch.tensor([0.0, 0.0, 1900.0])
    lab.ball["asleep"][:] = 1
    return lab


def put(lab: Lab, place: tuple[float, ...], velocity: tuple[float, ...], rotation: tuple[float, ...]) -> None:
    """Puts all cars somewhere; they have used their dodge."""
    lab.cars["position"][:, 0] = torch.tensor(place)
    lab.cars["velocity"][:, 0] = torch.tensor(velocity)
    lab.cars["rotation"][:, 0] = torch.tensor(rotation)
    lab.cars["dodged"][:] = 1


def corner_gaps(lab: Lab) -> Tensor:
    """Distances of the corners from the arena, `(games, 8)`."""
    v, w = lab.cars["rotation"][:, 0, :3], lab.cars["rotation"][:, 0, 3:]
    v, w = v[:, None].expand(-1, 8, -1), w[:, None]
    corners = CORNERS.expand(len(v), -1, -1)
    across = 2.0 * torch.linalg.cross(v, corners)
    places = corners + w * across + torch.linalg.cross(v, across) + lab.cars["position"][:, :1]
    return arena_at(places.reshape(-1, 3))[:, 3].reshape(-1, 8)


def test_a_car_that_falls_on_its_roof_bounces_with_the_restitution_and_lies_still() -> None:
    lab = lone_cars()
    put(lab, (0.0, 0.0, ROOF_Z + 1.0), (0.0, 0.0, -300.0), UPSIDE_DOWN)
    lab.step()
    assert lab.cars["velocity"][0, 0, 2].item() == pytest.approx(0.3 * 300.0, abs=1.0)
    assert lab.cars["spin"].abs().max().item() < 0.01
    assert lab.cars["body_contact"][0, 0].item() == 1
    assert lab.cars["normal"][0, 0].tolist() == [0.0, 0.0, 1.0]
    lab.step(360)
    place = lab.cars["position"][0, 0].clone()
    assert ROOF_Z - 0.5 < place[2].item() < ROOF_Z + 2.0
    lab.step(240)
    assert (lab.cars["position"][0, 0] - place).abs().max().item() < 0.5
    assert lab.cars["velocity"].abs().max().item() < 0.5


def test_a_car_on_its_roof_slides_with_the_friction_of_the_body() -> None:
    lab = lone_cars()
    put(lab, (0.0, -1000.0, ROOF_Z + 0.5), (0.0, 600.0, 0.0), UPSIDE_DOWN)
    lab.step(30)
    first = lab.cars["velocity"][0, 0, 1].item()
    lab.step(60)
    lost = (first - lab.cars["velocity"][0, 0, 1].item()) * 2.0  # in half a second
    assert lost == pytest.approx(0.3 * 650.0, rel=0.05)


def test_a_slow_contact_does_not_bounce() -> None:
    lab = lone_cars()
    put(lab, (0.0, 0.0, ROOF_Z + 0.5), (0.0, 0.0, -45.0), UPSIDE_DOWN)
    lab.step()
    assert lab.cars["velocity"][0, 0, 2].item() == pytest.approx(0.0, abs=0.1)


def test_a_car_on_its_wheels_does_not_touch_with_its_body() -> None:
    lab = lone_cars()
    lab.step(60)
    assert lab.cars["body_contact"][0, 0].item() == 0
    assert lab.cars["wheels"][0, 0].item() == 4


@pytest.mark.parametrize("x", [896.0, 880.0, 915.0])
def test_a_car_cannot_drive_through_a_goal_post(x: float) -> None:
    lab = lone_cars()
    put(lab, (x, 4850.0, 60.0), (0.0, 1400.0, 200.0), (0.0, 0.0, 0.5**0.5, 0.5**0.5))
    nose = 0.0
    for _ in range(25):
        lab.step()
        nose = max(nose, lab.cars["position"][0, 0, 1].item() + HULL_OFFSET_X + HULL_HALF_X)
    assert 5100.0 < nose < 5150.0  # the post's front is at 5120, its chamfer ends at 5128
    assert lab.cars["velocity"][0, 0, 1].item() < 700.0


def tumbles(seed: int, games: int) -> Lab:
    """Cars in any attitude near surfaces, as fast as they can be."""
    generator = torch.Generator().manual_seed(seed)
    lab = lone_cars(games)
    place = torch.rand((60 * games, 3), generator=generator) * 2.0 - 1.0
    place = place * torch.tensor([4096.0, 5900.0, 1024.0]) + torch.tensor([0.0, 0.0, 1024.0])
    distance = arena_at(place)[:, 3]
    place = place[(distance > 95.0) & (distance < 250.0)][:games]
    rotation = torch.randn((games, 4), generator=generator)
    lab.cars["position"][:, 0] = place
    lab.cars["rotation"][:, 0] = rotation / rotation.norm(dim=1, keepdim=True)
    lab.cars["velocity"][:, 0] = 900.0 * torch.randn((games, 3), generator=generator)
    lab.cars["spin"][:, 0] = 2.0 * torch.randn((games, 3), generator=generator)
    lab.cars["dodged"][:] = 1
    return lab


def test_tumbling_cars_stay_in_the_arena_and_come_to_rest_outside_of_its_surfaces() -> None:
    lab = tumbles(1, 500)
    for _ in range(30):
        lab.step(4)
        assert (corner_gaps(lab).amin(dim=1) > -60.0).all()
        for name in ("position", "velocity", "spin", "rotation"):
            assert torch.isfinite(lab.cars[name]).all()
    lab.step(900)
    gaps = corner_gaps(lab).amin(dim=1)
    assert (gaps > -8.0).all()
    assert (gaps > -1.0).float().mean().item() > 0.97
    assert (lab.cars["rotation"].norm(dim=-1) - 1.0).abs().max().item() < 1e-5


@pytest.mark.parametrize("way", ["mirrored in x", "turned by half a turn"])
def test_images_of_tumbles_do_the_same_bit_for_bit(way: str) -> None:
    lab, image = tumbles(2, 300), tumbles(2, 300)
    x, y, z, w = image.cars["rotation"].clone().unbind(-1)
    true = axial = torch.tensor([-1.0, -1.0, 1.0])
    rotation = torch.stack((-y, x, w, -z), dim=-1)
    if way == "mirrored in x":
        true, axial = torch.tensor([-1.0, 1.0, 1.0]), torch.tensor([1.0, -1.0, -1.0])
        rotation = torch.stack((-y, -x, w, z), dim=-1)
    image.cars["rotation"][:] = rotation
    image.cars["position"] *= true
    image.cars["velocity"] *= true
    image.cars["spin"] *= axial
    lab.step(90)
    image.step(90)
    assert torch.equal(image.cars["position"], lab.cars["position"] * true)
    assert torch.equal(image.cars["velocity"], lab.cars["velocity"] * true)
    assert torch.equal(image.cars["spin"], lab.cars["spin"] * axial)
