"""The ball: golden bounces and flights, spin and friction, sleep, limits, symmetries."""

import importlib

import pytest
import torch
from benchmarks.rocket_lab import Lab, arena_at
from torch import Tensor

from ludus.worlds.rocket.rules import BALL_MAX_SPEED, BALL_MAX_SPIN, BALL_RADIUS

pytestmark = pytest.mark.compile

GAMES = 400
MIRRORS = {
    "mirrored in x": ((-1.0, 1.0, 1.0), (1.0, -1.0, -1.0)),  # spins are axial: they mirror the other way
    "mirrored in y": ((1.0, -1.0, 1.0), (-1.0, 1.0, -1.0)),
    "turned by half a turn": ((-1.0, -1.0, 1.0), (-1.0, -1.0, 1.0)),
}


def balls(place: Tensor, velocity: Tensor, spin: Tensor) -> Lab:
    """Awake balls, all `(games, 3)`, without cars."""
    lab = Lab(len(place), seats=0)
    for name, value in (("position", place), ("velocity", velocity), ("spin", spin)):
        lab.ball[name][:] = value
    return lab


def random_balls(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Places in free space, half of them near a surface; velocities and spins within their limits."""
    generator = torch.Generator().manual_seed(seed)
    place = (2.0 * torch.rand((40 * GAMES, 3), generator=generator) - 1.0) * torch.tensor([4096.0, 5900.0, 1024.0])
    place[:, 2] += 1024.0
    distance = arena_at(place)[:, 3]
    near = place[(distance > BALL_RADIUS) & (distance < BALL_RADIUS + 150.0)][: GAMES // 2]
    far = place[distance > BALL_RADIUS + 150.0][: GAMES // 2]
    velocity = 1500.0 * torch.randn((GAMES, 3), generator=generator)
    spin = 1.5 * torch.randn((GAMES, 3), generator=generator)
    return torch.cat((near, far)), velocity, spin


@pytest.mark.parametrize("part", ["drop_rows", "bounce_rows", "flight_rows"])
def test_golden_values(part: str) -> None:
    for row in getattr(importlib.import_module("benchmarks.rocket_parity_contacts"), part)():
        assert row.ours == pytest.approx(row.golden, abs=row.tolerance + 1e-9), row.name


def test_a_slow_ball_comes_to_rest_and_stays() -> None:
    lab = balls(torch.tensor([[0.0, 0.0, 120.0]]), torch.tensor([[30.0, 0.0, 0.0]]), torch.zeros(1, 3))
    lab.step(1200)
    place = lab.ball["position"].clone()
    assert BALL_RADIUS - 0.1 < place[0, 2].item() < BALL_RADIUS + 1.91
    assert lab.ball["velocity"][0, 2].abs().item() < 1e-3
    rolling = lab.ball["velocity"][0, 0].item()
    assert lab.ball["spin"][0, 1].item() * BALL_RADIUS == pytest.approx(rolling, rel=1e-3)  # it rolls, and so goes on
    assert 15.0 < rolling < 30.0


def test_friction_takes_two_sevenths_of_a_slip_that_it_can_stop() -> None:
    place, velocity = torch.tensor([[0.0, 0.0, 92.0]]), torch.tensor([[70.0, -35.0, -500.0]])
    lab = balls(place, velocity, torch.zeros(1, 3))
    lab.step()
    kept = 0.97 ** (1.0 / 120.0)
    assert lab.ball["velocity"][0, :2].tolist() == pytest.approx([50.0 * kept, -25.0 * kept], abs=1e-3)
    # The spin of rolling: v = spin x r with r the radius upward.
    assert lab.ball["spin"][0].tolist() == pytest.approx([25.0 * kept / 91.25, 50.0 * kept / 91.25, 0.0], abs=1e-5)


def test_spin_about_the_normal_does_not_change_in_a_bounce() -> None:
    lab = balls(torch.tensor([[0.0, 0.0, 92.0]]), torch.tensor([[0.0, 0.0, -500.0]]), torch.tensor([[0.0, 0.0, 5.0]]))
    lab.step()
    assert lab.ball["spin"][0].tolist() == [0.0, 0.0, 5.0]
    assert lab.ball["velocity"][0, :2].tolist() == [0.0, 0.0]


def test_a_sleeping_ball_hangs_in_the_air_until_it_moves() -> None:
    lab = balls(torch.tensor([[0.0, 0.0, 700.0]]), torch.zeros(1, 3), torch.zeros(1, 3))
    lab.ball["asleep"][:] = 1
    lab.step(60)
    assert lab.ball["position"][0].tolist() == [0.0, 0.0, 700.0]
    lab.ball["velocity"][0, 0] = 10.0
    lab.step(2)
    assert lab.ball["asleep"][0].item() == 0
    assert lab.ball["velocity"][0, 2].item() < 0.0


def test_speed_and_spin_are_limited() -> None:
    lab = balls(torch.tensor([[0.0, 0.0, 900.0]]), torch.tensor([[9e3, 0.0, 0.0]]), torch.tensor([[0.0, 20.0, 0.0]]))
    lab.step()
    assert lab.ball["velocity"].norm().item() == pytest.approx(BALL_MAX_SPEED, rel=1e-6)
    assert lab.ball["spin"].norm().item() == pytest.approx(BALL_MAX_SPIN, rel=1e-6)


def test_a_ball_at_the_foot_of_a_post_touches_floor_and_post() -> None:
    # It rolls along the goal line into the post at x = 896: it must turn without sinking into the floor.
    lab = balls(torch.tensor([[700.0, 5150.0, 92.0]]), torch.tensor([[900.0, 0.0, 0.0]]), torch.zeros(1, 3))
    lowest = 92.0
    for _ in range(60):
        lab.step()
        lowest = min(lowest, lab.ball["position"][0, 2].item())
    assert lowest > BALL_RADIUS - 1.0
    assert lab.ball["velocity"][0, 0].item() < -200.0


@pytest.mark.parametrize("way", MIRRORS)
def test_mirrored_and_turned_balls_do_the_same_bit_for_bit(way: str) -> None:
    true, axial = (torch.tensor(signs) for signs in MIRRORS[way])
    place, velocity, spin = random_balls(1)
    lab = balls(place, velocity, spin)
    image = balls(place * true, velocity * true, spin * axial)
    lab.step(240)
    image.step(240)
    assert torch.equal(image.ball["position"], lab.ball["position"] * true)
    assert torch.equal(image.ball["velocity"], lab.ball["velocity"] * true)
    assert torch.equal(image.ball["spin"], lab.ball["spin"] * axial)


def test_balls_only_lose_energy_and_stay_numbers() -> None:
    place, velocity, spin = random_balls(2)
    lab = balls(place, velocity.clamp(-3000.0, 3000.0), spin)

    def energy() -> Tensor:
        """Over the mass: motion, turning (2/5 r^2) and height."""
        turning = 0.4 * BALL_RADIUS**2 * lab.ball["spin"].square().sum(1)
        return 0.5 * (lab.ball["velocity"].square().sum(1) + turning) + 650.0 * lab.ball["position"][:, 2]

    before = energy()
    for _ in range(60):
        speed = (2.0 * before).sqrt()
        lab.step(10)
        after = energy()
        # What entered a surface is moved out of it, at most the way of a tick, which may lift it.
        lifted = 650.0 * speed / 120.0
        assert (after < before * 1.001 + lifted + 100.0).all()
        before = after
    assert torch.isfinite(lab.ball["position"]).all()
    assert (arena_at(lab.ball["position"])[:, 3] > BALL_RADIUS - 30.0).all()
