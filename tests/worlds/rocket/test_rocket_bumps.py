"""Two cars that meet: golden bumps, demolitions, cooldown, contact of hulls, symmetries."""

import importlib

import pytest
import torch
from benchmarks.rocket_lab import Lab
from torch import Tensor

from ludus.worlds.rocket.kernels.car_car import Contact

pytestmark = pytest.mark.compile

GAMES = 400
HIGH = 1000.0
LOOK = {"y": (0.0, 0.0, 0.5**0.5, 0.5**0.5), "x": (0.0, 0.0, 0.0, 1.0), "-y": (0.0, 0.0, -(0.5**0.5), 0.5**0.5)}


def two_cars(place_a: tuple[float, ...], place_b: tuple[float, ...], look_a: str = "y", look_b: str = "y") -> Lab:
    """Two level cars, by default high in the air, of different teams; the ball far away."""
    lab = Lab(seats=2)
    lab.ball["position"][0] = torch.tensor([3000.0, 3000.0, 500.0])
    lab.ball["asleep"][:] = 1
    for seat, (place, look) in enumerate(((place_a, look_a), (place_b, look_b))):
        lab.cars["position"][0, seat] = torch.tensor(place)
        lab.cars["rotation"][0, seat] = torch.tensor(LOOK[look])
    return lab


def test_golden_values() -> None:
    for row in importlib.import_module("benchmarks.rocket_parity_contacts").bump_rows():
        assert row.ours == pytest.approx(row.golden, abs=row.tolerance + 1e-9), row.name


def flags(lab: Lab) -> Contact:
    """What came of all ticks so far."""
    return Contact(int(lab.contacts[0]))


def test_a_bump_in_the_air_follows_the_curves() -> None:
    # At 1400 uu/s from behind: 1390 along the attacker's way and 278 up, beside the push of the hulls.
    lab = two_cars((0.0, -119.5, HIGH), (0.0, 0.0, HIGH))
    lab.cars["velocity"][0, 0, 1] = 1400.0
    lab.step()
    assert flags(lab) == Contact.TOUCH | Contact.A_BUMPS
    push = 1400.0 - lab.cars["velocity"][0, 0, 1].item()
    assert 0.4 * 1400.0 < push < 0.6 * 1400.0
    assert lab.cars["velocity"][0, 1, 1].item() == pytest.approx(push + 1390.0, abs=3.0)
    assert lab.cars["velocity"][0, 1, 2].item() == pytest.approx(278.0 - 650.0 / 120.0, abs=3.0)


@pytest.mark.parametrize(("team", "outcome"), [(1, Contact.A_DEMOLISHES), (0, Contact.A_BUMPS)])
def test_a_supersonic_car_demolishes_opponents_and_bumps_teammates(team: int, outcome: Contact) -> None:
    lab = two_cars((0.0, -119.5, HIGH), (0.0, 0.0, HIGH))
    lab.cars["team"][0, 1] = team
    lab.cars["velocity"][0, 0, 1] = 2300.0
    lab.cars["supersonic"][0, 0] = 1
    lab.step()
    assert flags(lab) == Contact.TOUCH | outcome


def test_head_on_both_bump_and_the_same_happens_to_both() -> None:
    lab = two_cars((0.0, -74.0, HIGH), (0.0, 74.0, HIGH), "y", "-y")
    lab.cars["velocity"][0, 0, 1] = 1000.0
    lab.cars["velocity"][0, 1, 1] = -1000.0
    lab.step()
    assert flags(lab) == Contact.TOUCH | Contact.A_BUMPS | Contact.B_BUMPS
    a, b = lab.cars["velocity"][0]
    assert torch.equal(a * torch.tensor([-1.0, -1.0, 1.0]), b)
    assert torch.equal(lab.cars["spin"][0, 0] * torch.tensor([-1.0, -1.0, 1.0]), lab.cars["spin"][0, 1])


@pytest.mark.parametrize(
    ("place", "look", "velocity"),
    [
        pytest.param((0.0, -92.4, HIGH), "-y", (0.0, 700.0, 0.0), id="in reverse, with the tail"),
        pytest.param((85.5, 50.0, HIGH), "y", (-700.0, 0.0, 0.0), id="with its side"),
        pytest.param((0.0, -119.5, HIGH), "y", (0.0, -100.0, 0.0), id="while it drives away"),
    ],
)
def test_only_a_bumper_that_comes_nearer_bumps(
    place: tuple[float, ...], look: str, velocity: tuple[float, ...]
) -> None:
    lab = two_cars(place, (0.0, 0.0, HIGH), look)
    lab.cars["velocity"][0, 0] = torch.tensor(velocity)
    lab.step()
    assert flags(lab) == Contact.TOUCH


def test_a_car_bumps_the_same_car_only_after_its_cooldown() -> None:
    lab = two_cars((0.0, -119.5, HIGH), (0.0, 0.0, HIGH))
    lab.cars["velocity"][0, 0, 1] = 1000.0
    lab.cars["bump_s"][0, 0] = 0.1
    lab.cars["bump_seat"][0, 0] = 1
    lab.step()
    assert flags(lab) == Contact.TOUCH
    assert lab.cars["velocity"][0, 1, 1].item() < 700.0
    again = two_cars((0.0, -119.5, HIGH), (0.0, 0.0, HIGH))
    again.cars["velocity"][0, 0, 1] = 1000.0
    again.step()
    assert again.cars["bump_s"][0, 0].item() == 0.25
    assert again.cars["bump_seat"][0, 0].item() == 1


@pytest.mark.parametrize(
    ("offset", "look", "touches"),
    [
        ((0.0, 120.3, 0.0), "y", True),  # nose to tail: 120.507 long
        ((0.0, 120.7, 0.0), "y", False),
        ((86.5, 0.0, 0.0), "y", True),  # side by side: 86.6994 wide
        ((86.9, 0.0, 0.0), "y", False),
        ((0.0, 0.0, 38.4), "y", True),  # one upon the other: 38.6591 high
        ((0.0, 0.0, 38.9), "y", False),
        ((0.0, 0.0, 38.4), "x", True),  # crossed: no corner of one is in the other
        ((0.0, 0.0, 38.9), "x", False),
    ],
)
def test_hulls_touch_from_their_sizes_on(offset: tuple[float, ...], look: str, touches: bool) -> None:
    place = (offset[0], offset[1], HIGH + offset[2])
    lab = two_cars((0.0, 0.0, HIGH), place, "y", "y")
    if look == "x":  # crossed over the middle of the hulls, 13.8757 before the centre of mass
        lab = two_cars((0.0, 0.0, HIGH), (-13.8757, 13.8757, place[2]), "y", "x")
    lab.step()
    assert (flags(lab) != Contact(0)) == touches


def test_a_car_that_falls_onto_another_comes_to_rest_on_it() -> None:
    lab = two_cars((0.0, 0.0, 17.01), (-13.8757, 13.8757, 80.0), "y", "x")
    lab.step(240)
    assert lab.cars["position"][0, 1, 2].item() > 40.0
    assert lab.cars["velocity"][0].abs().max().item() < 60.0


def random_meetings(seed: int, games: int = GAMES) -> Lab:
    """Cars that overlap or nearly do, high in the air, at random speeds and rotations."""
    generator = torch.Generator().manual_seed(seed)
    lab = Lab(games, seats=2)
    lab.ball["position"][:] = torch.tensor([3000.0, 3000.0, 500.0])
    lab.ball["asleep"][:] = 1
    rotation = torch.randn((games, 2, 4), generator=generator)
    lab.cars["rotation"][:] = rotation / rotation.norm(dim=2, keepdim=True)
    lab.cars["velocity"][:] = 700.0 * torch.randn((games, 2, 3), generator=generator)
    lab.cars["spin"][:] = torch.randn((games, 2, 3), generator=generator)
    lab.cars["position"][:] = 45.0 * torch.randn((games, 2, 3), generator=generator)
    lab.cars["position"][..., 2] += HIGH
    return lab


def same(ours: Tensor, theirs: Tensor, signs: Tensor) -> bool:
    """Whether one is the image of the other."""
    return torch.equal(theirs, ours * signs)


@pytest.mark.parametrize("swapped", [False, True], ids=["same seats", "seats swapped"])
@pytest.mark.parametrize("way", ["as it is", "mirrored in x", "turned by half a turn"])
def test_images_of_meetings_do_the_same_bit_for_bit(way: str, swapped: bool) -> None:
    lab, image = random_meetings(1), random_meetings(1)
    true, axial = torch.ones(3), torch.ones(3)
    x, y, z, w = image.cars["rotation"].clone().unbind(-1)
    if way == "mirrored in x":
        true, axial = torch.tensor([-1.0, 1.0, 1.0]), torch.tensor([1.0, -1.0, -1.0])
        image.cars["rotation"][:] = torch.stack((-y, -x, w, z), dim=-1)
    elif way == "turned by half a turn":
        true = axial = torch.tensor([-1.0, -1.0, 1.0])
        image.cars["rotation"][:] = torch.stack((-y, x, w, -z), dim=-1)
    image.cars["position"] *= true
    image.cars["velocity"] *= true
    image.cars["spin"] *= axial
    if swapped:
        for name in ("position", "velocity", "spin", "rotation", "team"):
            image.cars[name][:] = image.cars[name].flip(1)
    lab.step(20)
    image.step(20)
    assert (lab.contacts != 0).float().mean().item() > 0.5
    theirs = {
        name: image.cars[name].flip(1) if swapped else image.cars[name] for name in ("position", "velocity", "spin")
    }
    assert same(lab.cars["position"], theirs["position"], true)
    assert same(lab.cars["velocity"], theirs["velocity"], true)
    assert same(lab.cars["spin"], theirs["spin"], axial)


def test_meetings_stay_numbers_keep_momentum_and_come_apart() -> None:
    lab = random_meetings(2, 2000)
    lab.cars["bump_s"][:] = 1.0  # no bumps: they push one car alone
    lab.cars["bump_seat"][:] = torch.tensor([1, 0])
    before = lab.cars["velocity"].sum(dim=1)
    lab.step()
    after = lab.cars["velocity"].sum(dim=1) + torch.tensor([0.0, 0.0, 2.0 * 650.0 / 120.0])
    slow = (lab.cars["velocity"].norm(dim=2) < 2299.0).all(dim=1)
    assert slow.float().mean().item() > 0.9
    assert (after - before)[slow].abs().max().item() < 0.1
    lab.step(59)
    for name in ("position", "velocity", "spin", "rotation"):
        assert torch.isfinite(lab.cars[name]).all()
    lab.contacts.zero_()
    lab.step()
    assert (lab.contacts != 0).float().mean().item() < 0.1
