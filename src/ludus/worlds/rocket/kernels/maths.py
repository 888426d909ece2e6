"""Rotations, angles and curves that compute the same bits on every device (Warp functions).

Only +, -, *, / and sqrt are used: the library versions of sin, cos, atan2 and pow round differently on CPU and GPU.
Sums are written so that mirroring the world in x, or turning it by half a turn about z, changes signs and the order
of the two terms of a sum alone; neither changes a rounding, so both symmetries hold bit for bit.
"""

import math

import warp as wp

_PER_QUARTER = 2.0 / math.pi
# Cody-Waite reduction: pi / 2 in three parts, the first two with few bits, so that integer multiples are exact.
_QUARTER_HIGH = 201.0 / 128.0
_QUARTER_MIDDLE = 32465.0 / 2.0**26
_QUARTER_LOW = math.pi / 2.0 - _QUARTER_HIGH - _QUARTER_MIDDLE


@wp.func
def sin_cos(angle: float) -> wp.vec2f:
    """Return the sine and cosine of an angle of up to some hundred turns; at most 2e-7 off."""
    quarter = wp.floor(angle * _PER_QUARTER + 0.5)
    x = ((angle - quarter * _QUARTER_HIGH) - quarter * _QUARTER_MIDDLE) - quarter * _QUARTER_LOW
    xx = x * x
    sine = x + x * xx * (-1.6666654611e-1 + xx * (8.3321608736e-3 - xx * 1.9515295891e-4))
    cosine = (1.0 - 0.5 * xx) + xx * xx * (
        4.166664568298827e-2 + xx * (-1.388731625493765e-3 + xx * 2.443315711809948e-5)
    )
    turn_quarters = wp.int32(quarter) & 3
    if turn_quarters == 1:
        return wp.vec2f(cosine, -sine)
    if turn_quarters == 2:
        return wp.vec2f(-sine, -cosine)
    if turn_quarters == 3:
        return wp.vec2f(-cosine, sine)
    return wp.vec2f(sine, cosine)


@wp.func
def axes(rotation: wp.quatf) -> wp.mat33f:
    """Return the rotation matrix of a unit quaternion; its columns are forward, left and up in world axes."""
    x = rotation[0]
    y = rotation[1]
    z = rotation[2]
    w = rotation[3]
    xx = x * x
    yy = y * y
    zz = z * z
    ww = w * w
    return wp.mat33f(
        (ww + xx) - (yy + zz),
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        (ww + yy) - (xx + zz),
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        (ww + zz) - (xx + yy),
    )


@wp.func
def column(m: wp.mat33f, index: int) -> wp.vec3f:
    """Return a column of a matrix: with 0, 1 and 2 of `axes` the forward, left and up vectors."""
    return wp.vec3f(m[0, index], m[1, index], m[2, index])


@wp.func
def to_local(m: wp.mat33f, v: wp.vec3f) -> wp.vec3f:
    """Return a world vector in the axes whose columns are given."""
    return wp.vec3f(
        m[0, 0] * v[0] + m[1, 0] * v[1] + m[2, 0] * v[2],
        m[0, 1] * v[0] + m[1, 1] * v[1] + m[2, 1] * v[2],
        m[0, 2] * v[0] + m[1, 2] * v[1] + m[2, 2] * v[2],
    )


@wp.func
def to_world(m: wp.mat33f, v: wp.vec3f) -> wp.vec3f:
    """Return a vector given in the axes whose columns are given, in world axes."""
    return wp.vec3f(
        m[0, 0] * v[0] + m[0, 1] * v[1] + m[0, 2] * v[2],
        m[1, 0] * v[0] + m[1, 1] * v[1] + m[1, 2] * v[2],
        m[2, 0] * v[0] + m[2, 1] * v[1] + m[2, 2] * v[2],
    )


@wp.func
def turn(rotation: wp.quatf, spin: wp.vec3f, dt: float) -> wp.quatf:
    """Return the rotation after turning for `dt` at a constant angular velocity in world axes; a unit quaternion again.

    The half angle is at most some hundredths, for which three terms of the series are exact in single precision.
    """
    half = 0.5 * dt
    squared = (spin[0] * spin[0] + spin[1] * spin[1] + spin[2] * spin[2]) * half * half
    scale = half * (1.0 - squared * (1.0 / 6.0 - squared * (1.0 / 120.0)))  # sin(h) / h
    dx = spin[0] * scale
    dy = spin[1] * scale
    dz = spin[2] * scale
    dw = 1.0 - squared * (0.5 - squared * (1.0 / 24.0 - squared * (1.0 / 720.0)))
    x = rotation[0]
    y = rotation[1]
    z = rotation[2]
    w = rotation[3]
    # Hamilton product of the rotation by spin * dt with the old rotation.
    qx = dw * x + dx * w + dy * z - dz * y
    qy = dw * y - dx * z + dy * w + dz * x
    qz = dw * z + dx * y - dy * x + dz * w
    qw = dw * w - dx * x - dy * y - dz * z
    inverse = 1.0 / wp.sqrt((qx * qx + qy * qy) + (qz * qz + qw * qw))
    return wp.quatf(qx * inverse, qy * inverse, qz * inverse, qw * inverse)


@wp.func
def unit(v: wp.vec3f) -> wp.vec3f:
    """Return the vector at length 1, with one division (`wp.normalize` takes three); nothing stays nothing."""
    squared = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    if squared > 0.0:
        return v * (1.0 / wp.sqrt(squared))
    return v


@wp.func
def clamp_length(v: wp.vec3f, limit: float) -> wp.vec3f:
    """Return the vector, shortened to `limit` if it is longer."""
    squared = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    if squared > limit * limit:
        return v * (limit / wp.sqrt(squared))
    return v


@wp.func
def line(x: float, x0: float, y0: float, x1: float, y1: float) -> float:
    """Return the height at x of the straight line through two points, held level outside them."""
    share = wp.clamp((x - x0) / (x1 - x0), 0.0, 1.0)
    return y0 + (y1 - y0) * share
