"""The walker's body: segment lengths, masses and inertias from anthropometric tables.

Fractions of body height and mass are those of Dempster as given by Winter, *Biomechanics and Motor Control of Human
Movement*; radii of gyration are about the segment's centre of mass, in segment lengths.
"""

from dataclasses import dataclass

from ludus.core.errors import ConfigError

HEIGHT_RANGE_M = (1.2, 2.2)
MASS_RANGE_KG = (30.0, 200.0)
BODY_MASS_INDEX_RANGE = (12.0, 50.0)  # kg/m^2; beyond it the segments' shapes no longer hold


@dataclass(frozen=True, slots=True)
class Segment:
    """One rigid part.

    Attributes:
        length_m: From its upper joint to its lower one.
        mass_kg: Its mass.
        com_m: Distance of the centre of mass from the upper joint (from the lower end for the trunk parts).
        inertia_kg_m2: About the two axes across the segment, through its centre of mass.
        axial_inertia_kg_m2: About the segment's own axis.
    """

    length_m: float
    mass_kg: float
    com_m: float
    inertia_kg_m2: float
    axial_inertia_kg_m2: float


@dataclass(frozen=True, slots=True)
class Body:
    """A whole body.

    Attributes:
        height_m: Standing height.
        mass_kg: Total mass.
        thigh: Hip to knee.
        shank: Knee to ankle.
        foot: Heel to toe; lies on the ground.
        trunk: Everything above the hips, as one part: head, arms and trunk.
        pelvis: Lower part of `trunk` where it is divided.
        upper: Upper part of `trunk` where it is divided.
        hip_half_width_m: Distance of a hip joint from the middle.
        ankle_height_m: Ankle joint above the sole.
        heel_m: Heel behind the ankle joint.
        ball_m: Ball of the foot, where it rolls over, in front of the ankle joint.
        foot_half_width_m: Half of the sole's width.
    """

    height_m: float
    mass_kg: float
    thigh: Segment
    shank: Segment
    foot: Segment
    trunk: Segment
    pelvis: Segment
    upper: Segment
    hip_half_width_m: float
    ankle_height_m: float
    heel_m: float
    ball_m: float
    foot_half_width_m: float

    @property
    def hip_height_m(self) -> float:
        """Height of the hips over the sole of a straight leg."""
        return self.thigh.length_m + self.shank.length_m + self.ankle_height_m


def make_body(height_m: float = 1.75, mass_kg: float = 75.0) -> Body:
    """Makes the body of a person.

    Raises:
        ConfigError: No person is like that.
    """
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
    for name, value, (low, high) in (
        ("height_m", height_m, HEIGHT_RANGE_M),
        ("mass_kg", mass_kg, MASS_RANGE_KG),
    ):
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
