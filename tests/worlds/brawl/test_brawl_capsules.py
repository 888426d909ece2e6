"""The distance between two segments, on which every hit depends, against brute force."""

import numpy as np
import pytest
import torch
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ludus.envs.warp_tools import EXACT
from ludus.worlds.brawl.kernels.combat import segment_distance_sq

wp.set_module_options(EXACT)

Floats = NDArray[np.float64]
Segments = tuple[float, float, float, float, float, float, float, float]


@wp.kernel
def distance_kernel(segments: wp.array2d(dtype=wp.float32), out: wp.array(dtype=wp.float32)) -> None:  # type: ignore[valid-type]
    i = wp.tid()
    a = wp.vec2(segments[i, 0], segments[i, 1])
    b = wp.vec2(segments[i, 2], segments[i, 3])
    c = wp.vec2(segments[i, 4], segments[i, 5])
    d = wp.vec2(segments[i, 6], segments[i, 7])
    out[i] = segment_distance_sq(a, b, c, d)


def kernel_distance(segments: Floats) -> Floats:
    """Distances of segments `(n, 8)`: ax, ay, bx, by, cx, cy, dx, dy."""
    rows, out = torch.tensor(segments, dtype=torch.float32), torch.zeros(len(segments))
    arrays = [wp.from_torch(rows), wp.from_torch(out)]
    wp.launch(distance_kernel, dim=len(segments), inputs=arrays, device="cpu")
    return np.asarray(np.sqrt(out.double().numpy()))


def brute_distance(segments: Floats, samples: int = 201) -> Floats:
    """Least distance over a grid of points of both; at most one grid step along each too large."""
    t = np.linspace(0.0, 1.0, samples)
    a, b, c, d = (segments[:, None, 2 * i : 2 * i + 2] for i in range(4))
    first, second = a + t[None, :, None] * (b - a), c + t[None, :, None] * (d - c)
    gaps = first[:, :, None, :] - second[:, None, :, :]
    return np.asarray(np.hypot(gaps[..., 0], gaps[..., 1]).min(axis=(1, 2)))


def spacing(segments: Floats, samples: int = 201) -> Floats:
    """How much too large brute force can be: half a grid step of either segment."""
    lengths = np.hypot(segments[:, 2::4] - segments[:, 0::4], segments[:, 3::4] - segments[:, 1::4])
    return np.asarray(lengths.sum(axis=1) / (samples - 1))


coordinate = st.floats(-4.0, 4.0, width=32)
# Half the time coordinates on a coarse grid, where segments touch, coincide, are parallel or have no length.
grid = st.integers(-4, 4).map(float)
segment_pairs = st.one_of(st.tuples(*[coordinate] * 8), st.tuples(*[grid] * 8))


@settings(max_examples=80, derandomize=True)
@given(st.lists(segment_pairs, min_size=1, max_size=8))
def test_the_distance_is_that_of_brute_force(pairs: list[Segments]) -> None:
    segments = np.array(pairs, dtype=np.float32).astype(np.float64)
    exact, brute = kernel_distance(segments), brute_distance(segments)
    assert np.all(exact <= brute + 1e-4)
    assert np.all(brute <= exact + spacing(segments) + 1e-4)


@settings(max_examples=100, derandomize=True)
@given(segment_pairs)
def test_the_distance_does_not_depend_on_the_order(pair: Segments) -> None:
    ax, ay, bx, by, cx, cy, dx, dy = pair
    same = [pair, (bx, by, ax, ay, cx, cy, dx, dy), (cx, cy, dx, dy, ax, ay, bx, by), (ax, ay, bx, by, dx, dy, cx, cy)]
    distances = kernel_distance(np.array(same))
    assert distances == pytest.approx([distances[0]] * 4, abs=2e-3)


@pytest.mark.parametrize(
    ("segments", "distance"),
    [
        ((0, 0, 2, 0, 1, -1, 1, 1), 0.0),  # they cross
        ((0, 0, 2, 0, 2, 0, 2, 5), 0.0),  # they touch at an end
        ((0, 0, 2, 0, 3, 1, 3, 5), 2**0.5),  # end to end
        ((0, 0, 4, 0, 1, 2, 3, 2), 2.0),  # parallel, beside each other
        ((0, 0, 1, 0, 4, 0, 5, 0), 3.0),  # on one line
        ((0, 0, 4, 0, 1, 0, 2, 0), 0.0),  # one inside the other
        ((1, 1, 1, 1, 4, 5, 4, 5), 5.0),  # two points
        ((0, 0, 4, 0, 2, 3, 2, 3), 3.0),  # a point beside a segment
        ((0, 0, 4, 4, 3, 0, 3, 1), 2**0.5),  # an end beside the middle
    ],
)
def test_distances_by_hand(segments: Segments, distance: float) -> None:
    assert kernel_distance(np.array([segments], dtype=np.float64))[0] == pytest.approx(distance, abs=1e-6)
