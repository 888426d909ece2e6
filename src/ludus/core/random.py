"""Counter-based random streams: a random number is a pure function of a seed and whole-number keys.

There is no generator whose state has to be kept: the number for (seed, game, episode, frame, stream) is the same
on every device, for every batch size and in every order of asking. The algorithm is part of the contract between
the host and the simulators' kernels, which implement the same function; all arithmetic is modulo 2**32:

    mix(h, k):  h = (h ^ k) * 0x9E3779B1;  h ^= h >> 16
                h = h * 0x85EBCA6B;        h ^= h >> 13
                h = h * 0xC2B2AE35;        h ^= h >> 16

A hash starts as the low 32 bits of the seed, then the high 32 bits of the seed are mixed in, then each key in
turn: `mix(mix(mix(low, high), game), episode)` and so on. Seeds and keys below 2**32 therefore never collide in
the place where they are mixed in. Always use the same number of keys in the same order for one purpose, and a
stream number (the last key) of its own for each use of randomness.
"""

from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError

_MASK = 0xFFFFFFFF
# The multipliers modulo 2**32, but negative and smaller than 2**31 in size: their product with a 32-bit number
# fits into int64, so tensors never overflow, and its low 32 bits are the ones that are wanted.
_MULTIPLIER_1 = 0x9E3779B1 - 2**32
_MULTIPLIER_2 = 0x85EBCA6B - 2**32
_MULTIPLIER_3 = 0xC2B2AE35 - 2**32
_ARRAY_MULTIPLIER_1, _ARRAY_MULTIPLIER_2, _ARRAY_MULTIPLIER_3 = map(np.uint32, (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35))
_SHIFT_13, _SHIFT_16 = np.uint32(13), np.uint32(16)


@overload
def mix(h: int, k: int) -> int: ...
@overload
def mix(h: Tensor, k: Tensor | int) -> Tensor: ...
@overload
def mix(h: int, k: Tensor) -> Tensor: ...
def mix(h: Tensor | int, k: Tensor | int) -> Tensor | int:
    """Mix the key `k` into the hash `h`; both hold 0..2**32-1, tensors are int64 and broadcast together."""
    h = ((h ^ k) * _MULTIPLIER_1) & _MASK
    h = h ^ (h >> 16)
    h = (h * _MULTIPLIER_2) & _MASK
    h = h ^ (h >> 13)
    h = (h * _MULTIPLIER_3) & _MASK
    return h ^ (h >> 16)


def stream_hash(seed: int, *keys: int) -> int:
    """Return the hash of whole numbers as 0..2**32-1: the seed modulo 2**64, each key modulo 2**32."""
    h = mix(seed & _MASK, (seed >> 32) & _MASK)
    for key in keys:
        h = mix(h, key & _MASK)
    return h


def stream_hash_tensor(seed: int, *keys: Tensor | int) -> Tensor:
    """Return the hashes of all combinations of keys, int64; equal to `stream_hash` element by element.

    Keys are numbers, or tensors of any integer type whose shapes broadcast together; the result has the broadcast
    shape and the device of the tensors (the CPU if there are none).
    """
    for position, key in enumerate(keys):
        if isinstance(key, Tensor) and (key.is_floating_point() or key.is_complex()):
            raise ConfigError(f"key {position} of a random stream is {key.dtype}; use an integer type")
    if all(key.device.type == "cpu" for key in keys if isinstance(key, Tensor)):
        return _stream_hash_array(seed, *keys)
    h: Tensor | int = mix(seed & _MASK, (seed >> 32) & _MASK)
    for key in keys:
        h = mix(h, key.to(torch.int64) & _MASK) if isinstance(key, Tensor) else mix(h, key & _MASK)
    return h if isinstance(h, Tensor) else torch.tensor(h, dtype=torch.int64)


def _stream_hash_array(seed: int, *keys: Tensor | int) -> Tensor:
    """Do the same on the CPU with NumPy, whose uint32 wraps by itself.

    The keys are those of a few games mostly, so what counts is the cost of an operation: four keys of 8 games take
    100 us here and 350 us with tensors.
    """
    h: NDArray[np.uint32] | np.uint32 = np.uint32(mix(seed & _MASK, (seed >> 32) & _MASK))
    with np.errstate(over="ignore"):  # which NumPy reports of numbers, not of arrays
        for key in keys:
            k = key.numpy().astype(np.uint32) if isinstance(key, Tensor) else np.uint32(key & _MASK)
            h = (h ^ k) * _ARRAY_MULTIPLIER_1
            h = (h ^ (h >> _SHIFT_16)) * _ARRAY_MULTIPLIER_2
            h = (h ^ (h >> _SHIFT_13)) * _ARRAY_MULTIPLIER_3
            h = h ^ (h >> _SHIFT_16)
    return torch.from_numpy(np.asarray(h, np.int64))


@overload
def uniform(hashed: int) -> float: ...
@overload
def uniform(hashed: Tensor) -> Tensor: ...
def uniform(hashed: Tensor | int) -> Tensor | float:
    """Turn hashes into uniform numbers in [0, 1): the top 24 bits, which float32 holds exactly."""
    if isinstance(hashed, Tensor):
        return (hashed >> 8).to(torch.float32) * 2.0**-24
    return (hashed >> 8) * 2.0**-24
