"""The walker's body: segment lengths, masses and inertias from anthropometric tables, and its joints.

Fractions of body height and mass are those of Dempster as given by Winter, *Biomechanics and Motor Control of Human
Movement*; radii of gyration are about the segment's centre of mass, in segment lengths.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ludus.core.errors import ConfigError

HEIGHT_RANGE_M = (1.2, 2.2)
MASS_RANGE_KG = (30.0, 200.0)
BODY_MASS_INDEX_RANGE = (12.0, 50.0)  # kg/m^2; beyond it the segments' shapes no longer hold

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
SIDES = ("right", "left")


@dataclass(frozen=True, slots=True)
class Segment:
    """One rigid part."""

    length_m: float  # from its upper joint to its lower one
    mass_kg: float
    com_m: float  # distance of the centre of mass from the upper joint (from the lower end for the trunk parts)
    inertia_kg_m2: float  # about the two axes across the segment, through its centre of mass
    axial_inertia_kg_m2: float  # about the segment's own axis


@dataclass(frozen=True, slots=True)
class Body:
    """A whole body."""

    height_m: float  # standing height
    mass_kg: float  # total mass
    thigh: Segment  # hip to knee
    shank: Segment  # knee to ankle
    foot: Segment  # heel to toe; lies on the ground
    trunk: Segment  # everything above the hips, as one part: head, arms and trunk
    pelvis: Segment  # lower part of `trunk` where it is divided
    upper: Segment  # upper part of `trunk` where it is divided
    hip_half_width_m: float  # distance of a hip joint from the middle
    ankle_height_m: float  # ankle joint above the sole
    heel_m: float  # heel behind the ankle joint
    ball_m: float  # ball of the foot, where it rolls over, in front of the ankle joint
    foot_half_width_m: float  # half of the sole's width

    @property
    def hip_height_m(self) -> float:
        """Height of the hips over the sole of a straight leg."""
        return self.thigh.length_m + self.shank.length_m + self.ankle_height_m


def make_body(height_m: float = 1.75, mass_kg: float = 75.0) -> Body:
    """Make the body of a person; raise ConfigError if no person is like that."""
    _check(height_m, mass_kg)
    foot_length = 0.152 * height_m
    return Body(
        height_m=height_m,
        mass_kg=mass_kg,
        thigh=_segment(0.245 * height_m, 0.100 * mass_kg, 0.433, 0.323, 0.15),
        shank=_segment(0.246 * height_m, 0.0465 * mass_kg, 0.433, 0.302, 0.10),
        foot=_segment(foot_length, 0.0145 * mass_kg, 0.5, 0.475, 0.25),
        trunk=_segment(0.470 * height_m, 0.678 * mass_kg, 0.626, 0.496, 0.21),
        # The pelvis holds 0.142 of the body's mass; what is above it the rest of head, arms and trunk.
        pelvis=_segment(0.085 * height_m, 0.142 * mass_kg, 0.4, 0.6, 0.8),
        upper=_segment(0.385 * height_m, 0.536 * mass_kg, 0.56, 0.42, 0.25),
        # Hip joint centres lie about half as far apart as the hips are wide (0.191 of the height).
        hip_half_width_m=0.25 * 0.191 * height_m,
        ankle_height_m=0.039 * height_m,
        heel_m=0.25 * foot_length,
        ball_m=0.52 * foot_length,
        foot_half_width_m=0.17 * foot_length,
    )


def _segment(length_m: float, mass_kg: float, com: float, gyration: float, axial_gyration: float) -> Segment:
    return Segment(
        length_m,
        mass_kg,
        com * length_m,
        mass_kg * (gyration * length_m) ** 2,
        mass_kg * (axial_gyration * length_m) ** 2,
    )


def _check(height_m: float, mass_kg: float) -> None:
    for name, value, (low, high) in (("height_m", height_m, HEIGHT_RANGE_M), ("mass_kg", mass_kg, MASS_RANGE_KG)):
        if not low <= value <= high:
            raise ConfigError(
                f"{name} must be from {low:g} to {high:g}, got {value:g}; heights are in metres, masses in kilograms"
            )
    index, (low, high) = mass_kg / height_m**2, BODY_MASS_INDEX_RANGE
    if not low <= index <= high:
        raise ConfigError(
            f"a body of {height_m:g} m and {mass_kg:g} kg has a body mass index of {index:.1f}; "
            f"valid: {low:g} to {high:g}, so {low * height_m**2:.0f} to {high * height_m**2:.0f} kg at that height"
        )


@dataclass(frozen=True, slots=True)
class Joint:
    """A hinge with a motor.

    Angles are 0 where a person stands straight. Hips and ankles are positive in flexion (the thigh forward, the toes
    up), knees in flexion, hip_frontal in adduction, hip_rotation inward, the trunk forward, to the right and to the
    left (flexion, bending, rotation).
    """

    name: str  # with the side, such as `right_knee`
    segment: str  # the part that it moves
    axis: tuple[int, int, int]  # in the frame of the part before it; x is forward, y left, z up
    range_deg: tuple[float, float]  # what an anatomical joint allows
    strength: float  # largest torque, N m for every kg of body mass
    mirror: str  # name of the joint on the other side; its own in the middle
    mirror_sign: float = 1.0  # what an angle is multiplied with in a mirror
    is_held: bool = False  # whether it stays at 0 in the reference, which knows no such joint


_TRUNK = (
    Joint("trunk_flexion", "upper", (0, 1, 0), (-20.0, 45.0), 2.4, "trunk_flexion"),
    Joint("trunk_bending", "upper", (1, 0, 0), (-25.0, 25.0), 2.0, "trunk_bending", -1.0),
    Joint("trunk_rotation", "upper", (0, 0, 1), (-30.0, 30.0), 1.0, "trunk_rotation", -1.0),
)


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
REFERENCE_JOINTS: Mapping[str, Joint] = MappingProxyType({joint.name: joint for joint in WALKER_13})
WALKERS: Mapping[str, tuple[Joint, ...]] = MappingProxyType({"walker-8": WALKER_8, "walker-13": WALKER_13})


def kind_of(joint: str) -> str:
    """Return a joint's name without its side: `knee` for `right_knee`."""
    side, _, kind = joint.partition("_")
    return kind if side in SIDES else joint
