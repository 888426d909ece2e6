"""The joints of both walkers: names, axes, ranges, strength and who is whose mirror image."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Joint:
    """A hinge with a motor.

    Angles are 0 where a person stands straight. Hips and ankles are positive in flexion (the thigh forward, the toes
    up), knees in flexion, hip_frontal in adduction, hip_rotation inward, the trunk forward, to the right and to the
    left (flexion, bending, rotation).

    Attributes:
        name: With the side, such as `right_knee`.
        segment: The part that it moves.
        axis: In the frame of the part before it; x is forward, y left, z up.
        range_deg: What an anatomical joint allows.
        strength: Largest torque, N m for every kg of body mass.
        mirror: Name of the joint on the other side; its own in the middle.
        mirror_sign: What an angle is multiplied with in a mirror.
    """

    name: str
    segment: str
    axis: tuple[int, int, int]
    range_deg: tuple[float, float]
    strength: float
    mirror: str
    mirror_sign: float = 1.0


# Name -> (segment, axis on the right side, does the axis turn round on the left?, range in degrees, strength).
# Ranges are normal passive ranges of motion; torques in walking reach about 0.6 N m/kg in the hip and knee (0.9 in the
# frontal plane) and 1.7 in the ankle (Winter), and what an adult can do at most is near two to three N m/kg.
_LEG: Mapping[str, tuple[str, tuple[int, int, int], bool, tuple[float, float], float]] = MappingProxyType(
    {
        "hip": ("thigh", (0, -1, 0), False, (-35.0, 90.0), 1.8),
        "hip_frontal": ("thigh", (1, 0, 0), True, (-35.0, 20.0), 1.6),
        "hip_rotation": ("thigh", (0, 0, 1), True, (-30.0, 30.0), 0.8),
        "knee": ("shank", (0, 1, 0), False, (-2.0, 130.0), 1.8),
        "ankle": ("foot", (0, -1, 0), False, (-40.0, 30.0), 2.0),
    }
)
_TRUNK = (
    Joint("trunk_flexion", "upper", (0, 1, 0), (-20.0, 45.0), 2.4, "trunk_flexion"),
    Joint("trunk_bending", "upper", (1, 0, 0), (-25.0, 25.0), 2.0, "trunk_bending", -1.0),
    Joint("trunk_rotation", "upper", (0, 0, 1), (-30.0, 30.0), 1.0, "trunk_rotation", -1.0),
)
SIDES = ("right", "left")


def _leg_joint(side: str, kind: str) -> Joint:
    segment, axis, turns, range_deg, strength = _LEG[kind]
    sign = -1 if turns and side == "left" else 1
    other = SIDES[1 - SIDES.index(side)]
    turned = (axis[0] * sign, axis[1] * sign, axis[2] * sign)
    return Joint(f"{side}_{kind}", f"{side}_{segment}", turned, range_deg, strength, f"{other}_{kind}")


def _legs(*kinds: str) -> tuple[Joint, ...]:
    return tuple(_leg_joint(side, kind) for side in SIDES for kind in kinds)


WALKER_8 = _legs("hip_frontal", "hip", "knee", "ankle")
WALKER_13 = (*_TRUNK, *_legs("hip_frontal", "hip", "hip_rotation", "knee", "ankle"))
WALKERS: Mapping[str, tuple[Joint, ...]] = MappingProxyType({"walker-8": WALKER_8, "walker-13": WALKER_13})


def kind_of(joint: str) -> str:
    """Returns a joint's name without its side: `knee` for `right_knee`."""
    side, _, kind = joint.partition("_")
    return kind if side in SIDES else joint
