"""Random streams: hand-computed values, host against tensors, uniformity and independence of neighbours."""

import math

import pytest
import torch

from ludus.core.errors import ConfigError
from ludus.core.random import mix, stream_hash, stream_hash_tensor, uniform


def test_mix_of_one_by_hand() -> None:
    # (0 ^ 1) * 0x9E3779B1         = 0x9E3779B1; ^ (>> 16 = 0x00009E37) = 0x9E37E786
    # * 0x85EBCA6B modulo 2**32    = 0x640F8102; ^ (>> 13 = 0x0003207C) = 0x640CA17E
    # * 0xC2B2AE35 modulo 2**32    = 0x11FD1316; ^ (>> 16 = 0x000011FD) = 0x11FD02EB
    assert mix(0, 1) == 0x11FD02EB
    assert int(mix(torch.tensor(0), 1)) == 0x11FD02EB


def test_a_hash_folds_low_seed_then_high_seed_then_keys() -> None:
    seed = (7 << 32) | 5
    assert stream_hash(seed) == mix(5, 7)
    assert stream_hash(seed, 11, 13) == mix(mix(mix(5, 7), 11), 13)
    assert stream_hash(-1, 2) == stream_hash(2**64 - 1, 2)


def test_tensors_equal_integers_at_the_edges_and_everywhere() -> None:
    edges = [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF]
    games = torch.tensor(edges, dtype=torch.int64)[:, None]
    frames = torch.tensor([*edges, -1, 2**40 + 3], dtype=torch.int64)[None, :]
    for seed in (0, 1, 2**32 - 1, 2**63 + 12345, 2**64 - 1):
        hashed = stream_hash_tensor(seed, games, 3, frames)
        assert hashed.dtype == torch.int64
        assert hashed.shape == (7, 9)
        expected = [[stream_hash(seed, game, 3, int(frame)) for frame in frames[0]] for game in edges]
        assert hashed.tolist() == expected


@pytest.mark.cuda
def test_cuda_gives_the_same_hashes() -> None:
    keys = torch.arange(100_000) * 43_000
    assert torch.equal(stream_hash_tensor(77, keys.cuda(), 5).cpu(), stream_hash_tensor(77, keys, 5))


def test_every_integer_type_gives_the_same_hash_and_floats_are_refused() -> None:
    expected = [stream_hash(9, key) for key in (0, 1, 100)]
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        assert stream_hash_tensor(9, torch.tensor([0, 1, 100], dtype=dtype)).tolist() == expected
    assert int(stream_hash_tensor(9, 100)) == expected[2]
    with pytest.raises(ConfigError, match=r"key 1 .* torch\.float32"):
        stream_hash_tensor(9, 0, torch.zeros(2))


def test_uniform_is_the_top_24_bits() -> None:
    assert uniform(0x80000000) == 0.5
    assert uniform(0xFF) == 0.0
    assert uniform(0xFFFFFFFF) == 1.0 - 2.0**-24
    values = uniform(torch.tensor([0x80000000, 0xFF, 0xFFFFFFFF]))
    assert values.dtype == torch.float32
    assert values.tolist() == [0.5, 0.0, 1.0 - 2.0**-24]


@pytest.mark.parametrize("varied", ["seed", "game", "frame", "stream"])
def test_uniform_over_each_key_by_chi_square(varied: str) -> None:
    count, bins = 2**16, 256
    run = torch.arange(count)
    hashed = {
        "seed": lambda: torch.tensor([stream_hash(seed, 0, 0, 0) for seed in range(count)]),
        "game": lambda: stream_hash_tensor(1, run, 0, 0),
        "frame": lambda: stream_hash_tensor(1, 5, run, 0),
        "stream": lambda: stream_hash_tensor(1, 5, 7, run),
    }[varied]()
    for part in (uniform(hashed), (hashed & 0xFF).to(torch.float32) / 256):  # the top bits and the lowest ones
        observed = torch.histc(part.double(), bins=bins, min=0.0, max=1.0)
        chi_square = float(((observed - count / bins) ** 2 / (count / bins)).sum())
        # 255 degrees of freedom: mean 255, standard deviation sqrt(510) = 22.6; six deviations either way.
        assert abs(chi_square - 255.0) < 6 * math.sqrt(510.0)


def test_neighbouring_keys_are_not_correlated() -> None:
    size = 512
    grid = uniform(stream_hash_tensor(3, torch.arange(size)[:, None], torch.arange(size)[None, :])).double() - 0.5
    deviation = 1.0 / math.sqrt(size * size)  # of a correlation of independent numbers
    pairs = {
        "next game": (grid[1:], grid[:-1]),
        "next frame": (grid[:, 1:], grid[:, :-1]),
        "diagonal": (grid[1:, 1:], grid[:-1, :-1]),
        "swapped keys": (grid.triu(1), grid.T.triu(1)),
        "next seed": (
            grid,
            uniform(stream_hash_tensor(4, torch.arange(size)[:, None], torch.arange(size))).double() - 0.5,
        ),
    }
    for name, (left, right) in pairs.items():
        correlation = float((left * right).sum() / (left.norm() * right.norm()))
        assert abs(correlation) < 7 * deviation, name
