"""The car's rows of Rocket's parity table: golden values, what ours does, and how far apart they may be.

    python benchmarks/rocket_parity_car.py

`benchmarks/rocket_parity.py` prints and keeps them together with those of the ball and the contacts. The golden values
were measured with RocketSim 2.2.1; the tests check the same rows.
"""

from typing import NamedTuple

from benchmarks.rocket_lab import Track, drive, lone_car

from ludus.worlds.rocket.rules import Control

SHARE = 0.01  # driving, relative
APEX = 2.0  # heights of jumps, uu
RATE = 0.02  # angular velocities, rad/s
THROTTLE, STEER, JUMP, BOOST = Control.THROTTLE, Control.STEER, Control.JUMP, Control.BOOST


class Row(NamedTuple):
    """One golden value.

    Attributes:
        name: What was measured, with its unit.
        golden: The value to meet.
        ours: The value of our car.
        tolerance: How far it may be off.
    """

    name: str
    golden: float
    ours: float
    tolerance: float


def near(name: str, golden: float, ours: float) -> Row:
    """A row of driving: within one percent."""
    return Row(name, golden, float(ours), SHARE * abs(golden))


def throttle_rows() -> list[Row]:
    """Full throttle from rest."""
    track = drive(lone_car(), (360, {THROTTLE: 1.0}))
    golden = {30: (346, 45), 60: (624, 169), 120: (1002, 585), 180: (1227, 1148), 240: (1360, 1798), 360: (1410, 3202)}
    rows = []
    for ticks, (speed, way) in golden.items():
        rows.append(near(f"throttle, speed after {ticks} ticks, uu/s", speed, track.speed[ticks].item()))
        rows.append(near(f"throttle, way after {ticks} ticks, uu", way, track.way[ticks].item()))
    return rows


def boost_rows() -> list[Row]:
    """Full throttle and boost from rest; the tank is full again after a second, as when the values were measured."""
    lab = lone_car()
    first = drive(lab, (60, {THROTTLE: 1.0, BOOST: 1.0}))
    lab.cars["boost"][:] = 100.0
    second = drive(lab, (150, {THROTTLE: 1.0, BOOST: 1.0}))
    speed = [*first.speed.tolist(), *second.speed[1:].tolist()]
    way = [y - first.position[0, 1].item() for y in (*first.position[:, 1].tolist(), *second.position[1:, 1].tolist())]
    rows = []
    for ticks, (fast, far) in {30: (567, 75), 60: (1015, 277), 120: (1617, 951), 180: (2113, 1886)}.items():
        rows.append(near(f"boost, speed after {ticks} ticks, uu/s", fast, speed[ticks]))
        rows.append(near(f"boost, way after {ticks} ticks, uu", far, way[ticks]))
    for limit, ticks, far in ((1410, 96, 647), (2200, 191, 2084), (2299, 203, 2310)):
        reached = next(tick for tick, value in enumerate(speed) if value >= limit)
        rows.append(Row(f"boost, ticks until {limit} uu/s", ticks, reached, 1.0))
        rows.append(near(f"boost, way until {limit} uu/s, uu", far, way[reached]))
    return rows


def stopping_rows() -> list[Row]:
    """From 1400 uu/s to rest, braking and rolling."""
    rows = []
    for name, throttle, ticks, far in (("brake", -1.0, 49, 285.8), ("coast", 0.0, 318, 1872.0)):
        track = drive(lone_car(speed=1400.0), (ticks + 10, {THROTTLE: throttle}))
        stopped = next(tick for tick, value in enumerate(track.forward_speed.tolist()) if value < 1.0)
        rows.append(Row(f"{name}, ticks from 1400 uu/s to rest", ticks, stopped, 1.0))
        rows.append(near(f"{name}, way to rest, uu", far, track.way[stopped].item()))
    return rows


def turning_rows() -> list[Row]:
    """Full lock: the steady circle, the curvature at given speeds, a powerslide."""
    circle = drive(lone_car(), (900, {THROTTLE: 1.0, STEER: 1.0}))
    speed, yaw = circle.speed[-1].item(), -circle.spin[-1, 2].item()
    rows = [
        near("full lock, steady speed, uu/s", 1234.5, speed),
        near("full lock, steady yaw rate, rad/s", 2.343, yaw),
        near("full lock, steady radius, uu", 527, speed / yaw),
    ]
    bends = {519: 0.004216, 704: 0.003444, 1085: 0.002152, 1393: 0.001537, 1711: 0.00112, 2154: 0.000896}
    for wanted, curvature in bends.items():
        track = bend_at(float(wanted))
        rows.append(near(f"full lock, curvature at {wanted} uu/s, 1/uu", curvature, curvature_of(track)))
    slide = drive(lone_car(speed=1400.0), (60, {THROTTLE: 1.0, STEER: 1.0, Control.HANDBRAKE: 1.0}))
    for ticks, rate in ((15, 2.23), (30, 2.81), (60, 3.23)):
        rows.append(near(f"powerslide, yaw rate after {ticks} ticks, rad/s", rate, -slide.spin[ticks, 2].item()))
    rows.append(near("powerslide, forward speed after 60 ticks, uu/s", 824, slide.forward_speed[60].item()))
    return rows


def curvature_of(track: Track) -> float:
    """Curvature of the way at a track's end: yaw rate over speed."""
    return -track.spin[-1, 2].item() / track.speed[-1].item()


def bend_at(wanted: float) -> Track:
    """Half a second at full lock that ends at a wanted speed; its first speed is found by halving."""
    low, high = 0.0, 2300.0
    for _ in range(10):
        start = 0.5 * (low + high)
        track = drive(lone_car(speed=start), (30, {THROTTLE: 1.0, STEER: 1.0}))
        low, high = (start, high) if track.speed[-1].item() < wanted else (low, start)
    return track


def wall_rows() -> list[Row]:
    """Straight up a side wall with full throttle."""
    lab = lone_car(speed=1400.0)
    lab.cars["position"][0, 0, 0] = 2500.0
    lab.cars["velocity"][0, 0] = lab.cars["velocity"][0, 0].roll(-1)  # along x
    lab.cars["rotation"][0, 0] = lab.cars["rotation"][0, 0].new_tensor([0.0, 0.0, 0.0, 1.0])
    track = drive(lab, (160, {THROTTLE: 1.0}))
    high = next(tick for tick, z in enumerate(track.position[:, 2].tolist()) if z > 264.0)
    return [near("wall ride, speed at z 264, uu/s", 1192, track.speed[high].item())]


def jump_rows() -> list[Row]:
    """Apexes of jumps from rest."""
    tap = drive(lone_car(), (1, {JUMP: 1.0}), (80, {}))
    full = drive(lone_car(), (150, {JUMP: 1.0}))
    rows = []
    for name, track, height, ticks in (("tap jump", tap, 89.15, 57), ("full jump", full, 231.8, 104)):
        rows.append(Row(f"{name}, apex, uu", height, track.position[:, 2].max().item(), APEX))
        rows.append(Row(f"{name}, ticks to the apex", ticks, int(track.position[:, 2].argmax()), 1.0))
    for held, height in ((25, 485.9), (30, 473.8)):
        double = drive(lone_car(), (held, {JUMP: 1.0}), (1, {}), (150, {JUMP: 1.0}))
        name = f"double jump {held + 2} ticks after the first, apex, uu"
        rows.append(Row(name, height, double.position[:, 2].max().item(), APEX))
    rest = drive(lone_car(), (240, {}))
    rows.append(Row("height at rest, uu", 17.01, rest.position[-1, 2].item(), 0.05))
    burn = drive(lone_car(), (1, {BOOST: 1.0}), (30, {}))
    rows.append(Row("boost of one press", 3.333, (burn.boost[0] - burn.boost[-1]).item(), 0.01))
    return rows


def dodge_change(speed: float, pitch: float, yaw: float) -> tuple[float, float]:
    """Change of velocity, forward and to the right, by a dodge 10 ticks after a jump at a speed, without throttle."""
    track = drive(
        lone_car(speed=speed), (1, {JUMP: 1.0}), (9, {}), (1, {JUMP: 1.0, Control.PITCH: pitch, Control.YAW: yaw})
    )
    change = track.velocity[-1] - track.velocity[-2]
    return change[1].item(), change[0].item()


def dodge_rows() -> list[Row]:
    """Changes of velocity by dodges, how long their torque acts, and how they hold the height.

    RocketSim 2.2.1 ends the torque in the same tick. It holds the height one tick early: the two vertical speeds were
    measured with the game's timer imposed on it (`benchmarks/rocket_rival.py`).
    """
    press = (1, {JUMP: 1.0, Control.PITCH: -1.0})
    falling, rising = lone_car(z=1000.0), lone_car(z=300.0)
    rising.cars["velocity"][0, 0, 2] = 1500.0
    fall = drive(falling, (1, {}), press, (90, {}))
    rise = drive(rising, (1, {}), press, (40, {}))
    turning = fall.spin.norm(dim=1)
    return [
        Row("dodge, spin 78 ticks after the press, rad/s", 5.5, turning[80].item(), RATE),
        Row("dodge, spin 79 ticks after the press, rad/s", 5.3682, turning[81].item(), RATE),
        Row("dodge of a falling car, vertical speed while it is held, uu/s", -15.48, fall.velocity[60, 2].item(), 0.1),
        Row("dodge at 1500 uu/s upward, vertical speed after 25 ticks, uu/s", 29.53, rise.velocity[27, 2].item(), 0.5),
        near("dodge forward, uu/s", 500, dodge_change(0.0, -1.0, 0.0)[0]),
        near("dodge to the side at 0 uu/s, uu/s", 500, dodge_change(0.0, 0.0, 1.0)[1]),
        near("dodge to the side at 1000 uu/s, uu/s", 692, dodge_change(1000.0, 0.0, 1.0)[1]),
        near("dodge back at 0 uu/s, uu/s", -533.5, dodge_change(0.0, 1.0, 0.0)[0]),
        near("dodge back at 1000 uu/s, uu/s", -874.7, dodge_change(1000.0, 1.0, 0.0)[0]),
        near("diagonal dodge at 1000 uu/s, forward, uu/s", 353.6, dodge_change(1000.0, -1.0, 1.0)[0]),
        near("diagonal dodge at 1000 uu/s, side, uu/s", 489.3, dodge_change(1000.0, -1.0, 1.0)[1]),
    ]


def air_boost_rows() -> list[Row]:
    """Half a second of boost in the air with any throttle: 991.67 and 66.67 uu/s^2, as published.

    RocketSim 2.2.1 gains 529.17 uu/s without throttle only: it adds the pedal to a boost that has the air throttle.
    """
    gains = {}
    for throttle in (1.0, 0.0, -1.0):
        track = drive(lone_car(z=1000.0), (60, {THROTTLE: throttle, BOOST: 1.0}))
        gains[throttle] = (track.forward_speed[60] - track.forward_speed[0]).item()
    return [near(f"air boost with throttle {throttle:g}, gain, uu/s", 529.17, gain) for throttle, gain in gains.items()]


def air_rows() -> list[Row]:
    """Angular velocities by the stick in the air, and after it was let go."""
    golden = {
        Control.PITCH: (1.246, 5.5, 2.656),
        Control.YAW: (0.911, 4.554, 2.809),
        Control.ROLL: (3.095, 5.5, 1.619),
    }
    rows = []
    for control, rates in golden.items():
        track = drive(lone_car(z=1000.0), (60, {control: 1.0}), (30, {}))
        rate = track.spin.norm(dim=1)
        for ticks, value in zip((12, 60, 90), rates, strict=True):
            when = f"after {ticks} ticks" if ticks <= 60 else "30 ticks after release"
            rows.append(Row(f"air {control.name.lower()}, rate {when}, rad/s", value, rate[ticks].item(), RATE))
    return rows


def car_rows() -> list[Row]:
    """All rows of the car."""
    ground = (throttle_rows, boost_rows, stopping_rows, turning_rows, wall_rows)
    air = (jump_rows, dodge_rows, air_rows, air_boost_rows)
    return [row for part in (*ground, *air) for row in part()]


def main() -> None:
    """Prints the rows."""
    for row in car_rows():
        verdict = "ok" if abs(row.ours - row.golden) <= row.tolerance else "OFF"
        print(f"{row.name:55} {row.golden:12.6g} {row.ours:12.6g} +-{row.tolerance:<9.3g} {verdict}")


if __name__ == "__main__":
    main()
