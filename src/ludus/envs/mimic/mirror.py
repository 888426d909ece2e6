"""How a walker looks in a mirror: which numbers change places, and which change their sign."""

from collections.abc import Sequence

from ludus.envs.mimic.joints import Joint
from ludus.envs.mirror import Reflection


def joint_reflection(joints: Sequence[Joint]) -> Reflection:
    """Returns the reflection of anything that has one number for each joint."""
    names = [joint.name for joint in joints]
    source = tuple(names.index(joint.mirror) for joint in joints)
    return Reflection(source, tuple(joint.mirror_sign for joint in joints))


def side_by_side(parts: Sequence[Reflection]) -> Reflection:
    """Returns the reflection of several parts, one behind the other."""
    source: tuple[int, ...] = ()
    sign: tuple[float, ...] = ()
    for part in parts:
        source += tuple(len(sign) + index for index in part.source)
        sign += part.sign
    return Reflection(source, sign)


def signs(*sign: float) -> Reflection:
    """Returns the reflection of numbers that stay where they are."""
    return Reflection(tuple(range(len(sign))), sign)
