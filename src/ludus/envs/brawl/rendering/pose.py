"""A pose: where the parts of a fighter are, in `(forward, down)` units from its centre, and blending between poses."""

from dataclasses import dataclass, replace
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]

FLOOR = 0.5  # units below the centre: half a body
CHEST = (0.0, -0.12)  # what blows start from
ARM = 0.21  # units, upper and lower each
LEG = 0.205


@dataclass(frozen=True, slots=True)
class Pose:
    """One moment of a body.

    Attributes:
        hip: Lower end of the trunk.
        lean: Tilt of the trunk, radians forward.
        front_hand: The hand that holds the weapon.
        back_hand: The other one.
        front_foot: The foot further forward at rest.
        back_foot: The other one.
        weapon_angle: Direction of the weapon's tip, radians; 0 is forward, positive is downward.
        spin: Turn of the whole body around its centre, radians forward.
    """

    hip: Point = (0.0, 0.14)
    lean: float = 0.06
    front_hand: Point = (0.27, -0.03)
    back_hand: Point = (0.13, 0.06)
    front_foot: Point = (0.15, FLOOR)
    back_foot: Point = (-0.15, FLOOR)
    weapon_angle: float = -0.95
    spin: float = 0.0


STANCE = Pose()
RISING = Pose(
    lean=0.12, front_hand=(0.24, -0.24), back_hand=(-0.26, 0.0), front_foot=(0.17, 0.33), back_foot=(-0.14, 0.5)
)
FALLING = Pose(
    lean=-0.05, front_hand=(0.30, -0.30), back_hand=(-0.28, -0.28), front_foot=(0.19, 0.44), back_foot=(-0.16, 0.40)
)


def blend(a: Pose, b: Pose, share: float) -> Pose:
    """Returns the pose at `share` (0 to 1) of the way from `a` to `b`."""
    t = min(max(share, 0.0), 1.0)

    def number(x: float, y: float) -> float:
        return x + (y - x) * t

    def place(x: Point, y: Point) -> Point:
        return number(x[0], y[0]), number(x[1], y[1])

    return Pose(
        hip=place(a.hip, b.hip),
        lean=number(a.lean, b.lean),
        front_hand=place(a.front_hand, b.front_hand),
        back_hand=place(a.back_hand, b.back_hand),
        front_foot=place(a.front_foot, b.front_foot),
        back_foot=place(a.back_foot, b.back_foot),
        weapon_angle=number(a.weapon_angle, b.weapon_angle),
        spin=number(a.spin, b.spin),
    )


def breathing(pose: Pose, wave: float) -> Pose:
    """Moves trunk and hands a little up and down with `wave` (-1 to 1)."""
    lift = 0.012 * wave
    return replace(
        pose,
        hip=(pose.hip[0], pose.hip[1] + lift),
        front_hand=(pose.front_hand[0], pose.front_hand[1] + 1.6 * lift),
        back_hand=(pose.back_hand[0], pose.back_hand[1] + 1.6 * lift),
    )
