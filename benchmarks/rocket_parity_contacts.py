"""The rows of the ball and of contacts in Rocket's parity table: golden values, what ours does, how far it may be off.

`python -m benchmarks.rocket_parity` prints and keeps them together with those of the car. The golden values were
measured with RocketSim 2.2.1; the tests check the same rows.
"""

from collections.abc import Iterable

import torch
from benchmarks.rocket_lab import Lab
from benchmarks.rocket_parity_car import Row
from torch import Tensor

from ludus.worlds.rocket.kernels.car import SUPERSONIC_ON
from ludus.worlds.rocket.kernels.car_car import Contact
from ludus.worlds.rocket.layout import PADS, SMALL
from ludus.worlds.rocket.rules import BALL_REST_Z, BOOST_START, CAR_REST_Z, DT, Control

HIT_SHARE = 0.03  # hits and bumps, relative
BOUNCE = 0.5  # velocities after a bounce, uu/s
APEX = 0.5  # heights of bounces, uu
Vector = tuple[float, float, float]


def lone_ball(position: Vector, velocity: Vector = (0.0, 0.0, 0.0), spin: Vector = (0.0, 0.0, 0.0)) -> Lab:
    """A ball without cars, awake."""
    lab = Lab(seats=0)
    for name, value in (("position", position), ("velocity", velocity), ("spin", spin)):
        lab.ball[name][0] = torch.tensor(value)
    return lab


def fly(lab: Lab, ticks: int) -> Tensor:
    """Positions, velocities and spins of the ball before the first tick and after each, `(ticks + 1, 9)`."""
    rows = [torch.cat([lab.ball[name][0] for name in ("position", "velocity", "spin")])]
    for _ in range(ticks):
        lab.step()
        rows.append(torch.cat([lab.ball[name][0] for name in ("position", "velocity", "spin")]))
    return torch.stack(rows)


def bounce(position: Vector, velocity: Vector, spin: Vector = (0.0, 0.0, 0.0)) -> Tensor:
    """Position, velocity and spin of a ball `(9,)` after the tick in which it bounces off what it touches."""
    return fly(lone_ball(position, velocity, spin), 1)[-1]


def drop_rows() -> list[Row]:
    """A ball that falls from z 1000."""
    height = fly(lone_ball((0.0, 0.0, 1000.0)), 700)[:, 2]
    first = next(tick for tick in range(1, 700) if height[tick + 1] > height[tick])
    rows = [Row("drop from z 1000, tick of the first contact", 202, first, 0.0)]
    apexes = [t for t in range(first, 700) if height[t] >= height[t - 1] and height[t] > height[t + 1]]
    for count, (z, ticks) in enumerate(((402.4, 319), (200.5, 506), (130.6, 617))):
        rows.append(Row(f"drop from z 1000, apex {count + 1}, uu", z, height[apexes[count]].item(), APEX))
        rows.append(Row(f"drop from z 1000, tick of apex {count + 1}", ticks, apexes[count], 1.0))
    return rows


def near(name: str, golden: Iterable[float], ours: Tensor, tolerance: float) -> list[Row]:
    """Rows of a vector, one a component."""
    axes = ("x", "y", "z")
    return [
        Row(f"{name} {axis}", value, found, tolerance)
        for axis, value, found in zip(axes, golden, ours.tolist(), strict=False)
    ]


def bounce_rows() -> list[Row]:
    """Bounces off floor and wall, given the velocities before the tick of the contact."""
    steep = bounce((0.0, 0.0, 92.0), (993.9, 0.0, -1123.5))
    wall = bounce((4096.0 - 92.0, 0.0, 600.0), (1984.3, 496.1, -167.3))
    spun = bounce((0.0, 0.0, 92.0), (0.0, 0.0, -799.4), (0.0, 6.0, 0.0))
    return [
        *near("bounce at 45 degrees, velocity", (709.8, 0.0, 674.0), steep[3:6], BOUNCE),
        Row("bounce at 45 degrees, spin, rad/s", 6.0, steep[6:9].norm().item(), 0.01),
        *near("bounce off a side wall, velocity", (-1190.3, 354.3, -123.3), wall[3:6], BOUNCE),
        *near("bounce off a side wall, spin", (0.0, -1.35, -3.88), wall[6:9], 0.02),
        Row("spinning drop, velocity x, uu/s", 156.4, spun[3].item(), BOUNCE),
        Row("spinning drop, velocity z, uu/s", 479.5, spun[5].item(), BOUNCE),
        Row("spinning drop, spin y, rad/s", 1.714, spun[7].item(), 0.005),
    ]


def flight_rows() -> list[Row]:
    """Free flight of two seconds, drag, and a ball that slides because it cannot spin faster."""
    flown = fly(lone_ball((-2000.0, -3000.0, 300.0), (1000.0, 1500.0, 900.0), (1.0, 2.0, 3.0)), 240)
    drag = fly(lone_ball((-1500.0, 0.0, 1000.0), (3000.0, 0.0, 300.0)), 120)
    rows = near("free flight of 2 s, place", (-59.95, -89.92, 766.63), flown[240, :3], 1.0)
    rows += near("free flight of 2 s, velocity", (940.90, 1411.35, -414.55), flown[240, 3:6], 1.0)
    rows.append(Row("drag, 3000 uu/s after 1 s, uu/s", 2909.99, drag[120, 3].item(), 0.1))
    for speed, loss in ((1466.0, 272.0), (1000.0, 258.0)):
        rolled = fly(lone_ball((0.0, 0.0, 92.0), (speed, 0.0, 0.0), (0.0, 6.0, 0.0)), 2)
        rows.append(
            Row(f"rolling at {speed:g} uu/s, deceleration", loss, 120.0 * (rolled[1, 3] - rolled[2, 3]).item(), 1.0)
        )
    return rows


def approach(speed: float, distance: float = 400.0) -> Lab:
    """A car that comes at a sleeping ball head-on with full throttle."""
    lab = Lab()
    lab.cars["position"][0, 0] = torch.tensor([0.0, -distance, CAR_REST_Z])
    lab.cars["velocity"][0, 0, 1] = speed
    lab.controls[0, 0, Control.THROTTLE] = 1.0
    lab.ball["position"][0] = torch.tensor([0.0, 0.0, BALL_REST_Z])
    lab.ball["asleep"][:] = 1
    return lab


def run_into_ball(lab: Lab, ticks: int = 400) -> tuple[int, float]:
    """Drives on until the ball moves; returns the tick and the speed of the car before it."""
    for tick in range(1, ticks):
        before = lab.cars["velocity"][0, 0, 1].item()
        lab.step()
        if lab.ball["velocity"].any():
            return tick, before
    raise AssertionError("the car missed the ball")


def share(name: str, golden: float, ours: float) -> Row:
    """A row of a hit or a bump: within three percent."""
    return Row(name, golden, ours, HIT_SHARE * abs(golden))


def hit_rows() -> list[Row]:
    """Head-on hits of a resting ball: speed before, the ball after that tick, the car four ticks later."""
    golden = {
        300: (763, 1037, 322, 705),
        500: (829, 1121, 349, 760),
        1000: (1116, 1486, 464, 1002),
        1400: (1410, 1852, 574, 1245),
        1800: (1800, 2291, 761, 1585),
        2300: (2300, 2898, 922, 2020),
    }
    rows = []
    for start, (speed, ball_y, ball_z, car_y) in golden.items():
        lab = approach(float(start))
        _, before = run_into_ball(lab)
        ball = lab.ball["velocity"][0].tolist()
        lab.step(4)
        rows.append(share(f"hit at {speed} uu/s, car before, uu/s", speed, before))
        rows.append(share(f"hit at {speed} uu/s, ball velocity y", ball_y, ball[1]))
        rows.append(share(f"hit at {speed} uu/s, ball velocity z", ball_z, ball[2]))
        rows.append(share(f"hit at {speed} uu/s, car after, uu/s", car_y, lab.cars["velocity"][0, 0, 1].item()))
    return rows


def kickoff_rows() -> list[Row]:
    """Straight boost from the rearmost kickoff place over its three small pads."""
    lab = approach(0.0, 4608.0)
    lab.controls[0, 0, Control.BOOST] = 1.0
    lab.cars["boost"][:] = BOOST_START
    pads = sorted(y for x, y in PADS if x == 0.0 and y < 0.0)
    tick = 0
    while not lab.ball["velocity"].any():
        lab.step()
        tick += 1
        if pads and abs(lab.cars["position"][0, 0, 1].item() - pads[0]) < SMALL.radius:
            lab.cars["boost"] += SMALL.boost
            pads.pop(0)
    ball = lab.ball["velocity"][0].tolist()
    return [
        Row("straight kickoff, tick of the touch", 316, tick, 0.0),
        Row("straight kickoff, ball velocity x", 0.0, ball[0], 1.0),
        share("straight kickoff, ball velocity y", 2920, ball[1]),
        share("straight kickoff, ball velocity z", 896, ball[2]),
    ]


def rear_bump(speed: float) -> Lab:
    """Two cars one behind the other a tick after the rear one has run into the other at a speed."""
    lab = Lab(seats=2)
    lab.ball["position"][0, 0] = 3000.0
    lab.cars["position"][0, 0] = torch.tensor([0.0, -121.0 - speed * DT, CAR_REST_Z])
    lab.cars["position"][0, 1] = torch.tensor([0.0, 0.0, CAR_REST_Z])
    lab.cars["velocity"][0, 0, 1] = speed
    lab.cars["supersonic"][0, 0] = int(speed >= SUPERSONIC_ON)
    lab.controls[0, 0, Control.THROTTLE] = 1.0
    while not lab.contacts.any():
        lab.step()
    lab.step()
    return lab


def bump_rows() -> list[Row]:
    """Rear bumps of a resting car.

    The attackers of the golden values were still accelerating; named by the speeds at which they set off (500, 1000,
    1400, 2100), they had these when they met the victim.
    """
    rows = []
    for speed, along, up in ((997, 1314, 200), (1198, 1581, 240), (1408, 1852, 282), (2100, 2243, 346)):
        lab = rear_bump(float(speed))
        rows.append(
            share(f"rear bump at {speed} uu/s, victim's velocity y", along, lab.cars["velocity"][0, 1, 1].item())
        )
        rows.append(share(f"rear bump at {speed} uu/s, victim's velocity z", up, lab.cars["velocity"][0, 1, 2].item()))
    demolished = bool(int(rear_bump(2300.0).contacts[0]) & Contact.A_DEMOLISHES)
    rows.append(Row("rear bump at 2300 uu/s, supersonic: demolitions", 1, int(demolished), 0.0))
    return rows


def contact_rows() -> list[Row]:
    """All rows of the ball and of contacts."""
    parts = (drop_rows, bounce_rows, flight_rows, hit_rows, kickoff_rows, bump_rows)
    return [row for part in parts for row in part()]
