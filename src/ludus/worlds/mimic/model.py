"""Builds a walker for MuJoCo from its body, its joints and how it is driven; `rendering.figure` adds what is seen."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias
from xml.etree.ElementTree import Element, tostring

import mujoco

from ludus.worlds.mimic.body import SIDES, WALKERS, Body, Joint, Segment, make_body
from ludus.worlds.mimic.config import MimicConfig

Value: TypeAlias = str | float | bool | tuple[float, ...]

CONTACT_RADIUS_M = 0.02  # of the spheres under heel and ball
POINTS = ("heel", "ball")  # of each foot; the ends of the sole
STEP = "step_"  # before the numbers of a stair's steps
_STAIR_HALF_WIDTH_M = 2.0
_ARMATURE = 0.012  # kg m^2; the inertia of muscles about a joint, and what keeps light feet stable at long steps
_STIFFNESS = 2.0  # N m/rad of the servos for every N m of strength
_LIMB_INERTIA = 0.25  # kg m^2; what the servos are damped for


@dataclass(frozen=True, slots=True)
class Walker:
    """A walker that MuJoCo can run."""

    name: str
    height_m: float  # standing height
    mass_kg: float  # total mass
    hip_height_m: float  # of the hips over the sole of a straight leg
    ankle_height_m: float  # of the ankle over the sole
    standing_m: float  # height of the root where it stands straight
    joints: tuple[Joint, ...]  # in the order of actions and of the angles behind the root's 7 positions
    limits_nm: tuple[float, ...]  # largest torque of each joint
    model: mujoco.MjModel  # what MuJoCo compiled
    text: str  # the MJCF text of it
    hips: tuple[float, ...] = (0.0, 0.0, 0.0)  # where the middle of the hips is in the frame of the root
    feet: tuple[str, ...] = ("right_foot", "left_foot")  # names of their bodies
    # Names in the model of the joints that follow the reference, by its names; others have the same.
    anchors: Mapping[str, str] = field(default_factory=dict)
    mark: str = ""  # before the names of heels, balls and soles
    contact_radius_m: float = CONTACT_RADIUS_M  # of the spheres that mark heels and balls
    body: Body | None = None  # what a built-in walker was made from
    spec: mujoco.MjSpec | None = None  # what a body of the user's own was compiled from


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a stair, along x."""

    first_m: float  # x of the edge of the first
    depth_m: float
    height_m: float
    count: int


def make_walker(config: MimicConfig, steps: Steps | None = None) -> Walker:
    """Build the walker that a world's settings describe, on level ground or before a stair.

    Raises ConfigError if the body is impossible.
    """
    if config.body is not None:
        from ludus.worlds.mimic.own_body import load_walker

        return load_walker(config, config.body)
    body, joints = make_body(config.height_m, config.mass_kg), WALKERS[config.walker]
    limits = tuple(joint.strength * config.mass_kg * config.strength for joint in joints)
    text = tostring(_whole(body, joints, limits, config, steps), encoding="unicode")
    return Walker(
        name=config.walker,
        height_m=body.height_m,
        mass_kg=body.mass_kg,
        hip_height_m=body.hip_height_m,
        ankle_height_m=body.ankle_height_m,
        standing_m=body.hip_height_m,
        joints=joints,
        limits_nm=limits,
        model=_compiled(text),
        text=text,
        body=body,
    )


@lru_cache(maxsize=8)
def _compiled(text: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(text)


def _element(tag: str, *children: Element | Iterable[Element], **attributes: Value) -> Element:
    """Make an XML element; children are elements or lists of them, `class_` is the attribute `class`."""
    node = Element(tag, {name.rstrip("_"): _text(value) for name, value in attributes.items()})
    for child in children:
        node.extend([child] if isinstance(child, Element) else child)
    return node


def _text(value: Value) -> str:
    """Format an attribute; numbers have six digits."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " ".join(map(_text, value))
    return value if isinstance(value, str) else f"{value:.6g}"


def _stair(steps: Steps | None, config: MimicConfig) -> list[Element]:
    """Return the steps as boxes, each from the ground to its height."""
    if steps is None:
        return []
    half = 0.5 * steps.depth_m
    tops = [(number + 1) * steps.height_m for number in range(steps.count)]
    return [
        _element(
            "geom", name=f"{STEP}{number}", type="box", size=(half, _STAIR_HALF_WIDTH_M, 0.5 * top),
            pos=(steps.first_m + (2 * number + 1) * half, 0.0, 0.5 * top), contype=0, conaffinity=1, condim=3,
            friction=config.friction,
        )
        for number, top in enumerate(tops)
    ]  # fmt: skip


def _whole(
    body: Body, joints: tuple[Joint, ...], limits: tuple[float, ...], config: MimicConfig, steps: Steps | None
) -> Element:
    contact = _element(
        "geom", type="sphere", size=CONTACT_RADIUS_M, contype=1, conaffinity=0, condim=3, friction=config.friction,
        solref=(0.015, 1.0),
    )  # fmt: skip
    root = _element(
        "body",
        _element("freejoint", name="root"),
        _torso(body, joints),
        (_leg(body, joints, side) for side in SIDES),
        name="root", pos=(0.0, 0.0, body.hip_height_m),
    )  # fmt: skip
    ground = _element(
        "geom", name="ground", type="plane", size=(0.0, 0.0, 1.0), contype=0, conaffinity=1, condim=3,
        friction=config.friction,
    )  # fmt: skip
    damping = config.joint_damping * config.mass_kg
    return _element(
        "mujoco",
        _element("compiler", angle="degree", autolimits=True, inertiafromgeom=False),
        _option(config),
        _element(
            "default",
            _element("joint", type="hinge", armature=_ARMATURE, damping=damping, limited=True),
            _element("geom", contype=0, conaffinity=0),
            _element("default", contact, class_="contact"),
        ),
        _element("worldbody", ground, _stair(steps, config), root),
        _element("actuator", (_drive(joint, limit, config) for joint, limit in zip(joints, limits, strict=True))),
        _element("sensor", _sensors(joints)),
        model=config.walker,
    )  # fmt: skip


def _option(config: MimicConfig) -> Element:
    return _element(
        "option",
        # Damping is taken as it is: its implicit treatment costs a factorisation, and here it is small.
        _element("flag", eulerdamp="disable"),
        timestep=config.physics_step_s, integrator=config.integrator, cone="pyramidal", solver="Newton",
        iterations=config.solver_iterations, ls_iterations=4 * config.solver_iterations,
    )  # fmt: skip


def _sensors(joints: tuple[Joint, ...]) -> list[Element]:
    """Return heels and balls as the root sees them, the loads of both feet and all torques, in this order."""
    points = [f"{side}_{point}" for side in SIDES for point in POINTS]
    return [
        *(_element("framepos", objtype="site", objname=name, reftype="xbody", refname="root") for name in points),
        *(_element("touch", site=f"{side}_sole") for side in SIDES),
        *(_element("jointactuatorfrc", joint=joint.name) for joint in joints),
    ]


def _drive(joint: Joint, limit: float, config: MimicConfig) -> Element:
    """Return the actuator: a motor controlled by a share of its torque, or a servo by an angle in rad."""
    if config.action == "torque":
        return _element("motor", name=joint.name, joint=joint.name, gear=limit, ctrlrange=(-1.0, 1.0))
    stiffness, damping = servo_gains(config, limit, _LIMB_INERTIA)
    return _element("position", name=joint.name, joint=joint.name, kp=stiffness, kv=damping, forcerange=(-limit, limit))


def servo_gains(config: MimicConfig, limit_nm: float, inertia_kg_m2: float) -> tuple[float, float]:
    """Return stiffness in N m/rad and damping in N m s/rad of the servo of a joint with a largest torque."""
    stiffness = config.stiffness * _STIFFNESS * limit_nm / config.strength
    return stiffness, 2.0 * config.damping * math.sqrt(stiffness * inertia_kg_m2)


def _inertia(segment: Segment, position: tuple[float, float, float], axis: int = 2) -> Element:
    """Return the inertia of a segment that lies along the axis with the given number."""
    across, along = segment.inertia_kg_m2, segment.axial_inertia_kg_m2
    values = tuple(along if number == axis else across for number in range(3))
    return _element("inertial", pos=position, mass=segment.mass_kg, diaginertia=values)


def _hinges(joints: tuple[Joint, ...], segment: str) -> list[Element]:
    return [
        _element("joint", name=joint.name, axis=joint.axis, range=joint.range_deg)
        for joint in joints
        if joint.segment == segment
    ]


def _torso(body: Body, joints: tuple[Joint, ...]) -> list[Element]:
    """Return head, arms and trunk: in one part, or as pelvis and a moving upper part."""
    if not any(joint.segment == "upper" for joint in joints):
        return [_inertia(body.trunk, (0.0, 0.0, body.trunk.com_m))]
    pelvis, upper = body.pelvis, body.upper
    above = _element(
        "body",
        _hinges(joints, "upper"),
        _inertia(upper, (0.0, 0.0, upper.com_m)),
        name="upper", pos=(0.0, 0.0, pelvis.length_m),
    )  # fmt: skip
    return [_inertia(pelvis, (0.0, 0.0, pelvis.com_m)), above]


def _leg(body: Body, joints: tuple[Joint, ...], side: str) -> Element:
    y = body.hip_half_width_m * (-1.0 if side == "right" else 1.0)
    shank = _element(
        "body",
        _hinges(joints, f"{side}_shank"),
        _inertia(body.shank, (0.0, 0.0, -body.shank.com_m)),
        _foot(body, joints, side),
        name=f"{side}_shank", pos=(0.0, 0.0, -body.thigh.length_m),
    )  # fmt: skip
    return _element(
        "body",
        _hinges(joints, f"{side}_thigh"),
        _inertia(body.thigh, (0.0, 0.0, -body.thigh.com_m)),
        shank,
        name=f"{side}_thigh", pos=(0.0, y, 0.0),
    )  # fmt: skip


def _foot(body: Body, joints: tuple[Joint, ...], side: str) -> Element:
    length, ankle = body.foot.length_m, body.ankle_height_m
    centre = -ankle + CONTACT_RADIUS_M  # of the spheres that touch the ground
    ends = {"heel": CONTACT_RADIUS_M - body.heel_m, "ball": body.ball_m}
    half = body.foot_half_width_m - CONTACT_RADIUS_M
    middle = 0.5 * length - body.heel_m
    spheres = [
        _element("geom", name=f"{side}_{name}_{index}", class_="contact", pos=(x, y, centre))
        for name, x in ends.items()
        for index, y in enumerate((-half, half))
    ]
    sites = [_element("site", name=f"{side}_{name}", pos=(x, 0.0, -ankle)) for name, x in ends.items()]
    sole = _element(
        "site", name=f"{side}_sole", type="box", pos=(0.5 * sum(ends.values()), 0.0, centre),
        size=(0.5 * length, 0.1, 0.05),
    )  # fmt: skip
    return _element(
        "body",
        _hinges(joints, f"{side}_foot"),
        _inertia(body.foot, (middle, 0.0, -0.6 * ankle), axis=0),
        spheres, sites, sole,
        name=f"{side}_foot", pos=(0.0, 0.0, -body.shank.length_m),
    )  # fmt: skip
