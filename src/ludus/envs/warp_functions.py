"""Random streams as Warp functions: the same hash as `ludus.core.random`, for simulators."""

import warp as wp

_GOLDEN = wp.constant(wp.uint32(0x9E3779B1))
_MIX_A = wp.constant(wp.uint32(0x85EBCA6B))
_MIX_B = wp.constant(wp.uint32(0xC2B2AE35))


@wp.func
def mix(h: wp.uint32, k: wp.uint32) -> wp.uint32:
    """Mix a key into a hash; the same function as `ludus.core.random` uses."""
    v = (h ^ k) * _GOLDEN
    v = v ^ (v >> wp.uint32(16))
    v = v * _MIX_A
    v = v ^ (v >> wp.uint32(13))
    v = v * _MIX_B
    return v ^ (v >> wp.uint32(16))


@wp.func
def uniform(h: wp.uint32) -> wp.float32:
    """Turn a hash into a number in [0, 1)."""
    return wp.float32(h >> wp.uint32(8)) * 5.9604644775390625e-08


@wp.func
def below(h: wp.uint32, n: wp.int32) -> wp.int32:
    """Turn a hash into a whole number in [0, n)."""
    return wp.min(wp.int32(uniform(h) * wp.float32(n)), n - 1)
