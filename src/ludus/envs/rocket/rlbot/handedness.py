"""Between the game's left-handed numbers and our right-handed ones: the same places in a mirror that turns x round.

There as here y points toward orange's goal and z up. Their x points to blue's left, ours to blue's right. What is seen
from the car (steer, yaw, roll, boost) is the same in both.
"""

import math

from ludus.envs.rocket.view import Quaternion, Vector


def mirrored(vector: Vector) -> Vector:
    """A place or a velocity in the other world."""
    x, y, z = vector
    return 0.0 - x, y, z


def mirrored_spin(spin: Vector) -> Vector:
    """An angular velocity in the other world: a mirror keeps the turn about its own axis and reverses the others."""
    x, y, z = spin
    return x, 0.0 - y, 0.0 - z


def rotation_of(angles: Vector) -> Quaternion:
    """Our rotation of a car with the game's pitch, yaw and roll (rad).

    There, yaw 0 looks along their +x, which is our -x, and grows clockwise seen from above: our heading is pi - yaw.
    """
    pitch, yaw, roll = angles
    half_heading, half_pitch, half_roll = 0.5 * (math.pi - yaw), -0.5 * pitch, 0.5 * roll
    turn = (0.0, 0.0, math.sin(half_heading), math.cos(half_heading))
    raise_nose = (0.0, math.sin(half_pitch), 0.0, math.cos(half_pitch))
    lean = (math.sin(half_roll), 0.0, 0.0, math.cos(half_roll))
    return _product(_product(turn, raise_nose), lean)


def angles_of(rotation: Quaternion) -> Vector:
    """The game's pitch, yaw and roll (rad) of a car with our rotation."""
    length = math.sqrt(sum(part * part for part in rotation))
    x, y, z, w = (part / length for part in rotation)
    forward = (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y))
    left_z, up_z = 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
    pitch = math.atan2(forward[2], math.hypot(forward[0], forward[1]))
    return pitch, math.atan2(forward[1], -forward[0]), math.atan2(left_z, up_z)


def _product(a: Quaternion, b: Quaternion) -> Quaternion:
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )
