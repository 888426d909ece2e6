"""The arena as a signed distance: surfaces by hand, gradients, symmetry, seams, and that nothing gets out."""

import importlib
import math

import numpy as np
import pytest
import torch
from benchmarks.rocket_lab import Lab, arena_at
from numpy.typing import NDArray

from ludus.worlds.rocket.rules import BALL_MAX_SPEED, BALL_RADIUS, CORNER_FILLET

pytestmark = pytest.mark.compile

Points = NDArray[np.float32]
ROOT = math.sqrt(0.5)


def probe(places: object) -> Points:
    """Normals and distances `(n, 4)` at places `(n, 3)`."""
    return arena_at(torch.from_numpy(np.asarray(places, dtype=np.float32))).numpy()


def random_places(count: int, seed: int) -> Points:
    """Places in and just outside of the arena, its goals included."""
    generator = np.random.default_rng(seed)
    return generator.uniform([-4106, -6010, -10], [4106, 6010, 2058], (count, 3)).astype(np.float32)


# Place, distance there, normal. On fillets: centre minus or plus radius times a direction, from the published table.
SURFACES = {
    "floor": ((100.0, 200.0, 30.0), 30.0, (0.0, 0.0, 1.0)),
    "below the floor": ((100.0, 200.0, -5.0), -5.0, (0.0, 0.0, 1.0)),
    "ceiling": ((-500.0, 100.0, 2000.0), 48.0, (0.0, 0.0, -1.0)),
    "side wall": ((4000.0, 100.0, 900.0), 96.0, (-1.0, 0.0, 0.0)),
    "other side wall": ((-4000.0, 100.0, 900.0), 96.0, (1.0, 0.0, 0.0)),
    "back wall": ((1500.0, 5100.0, 900.0), 20.0, (0.0, -1.0, 0.0)),
    "above the goal": ((0.0, -5100.0, 900.0), 20.0, (0.0, 1.0, 0.0)),
    "corner plane": ((3500.0, 4500.0, 900.0), 64.0 * ROOT, (-ROOT, -ROOT, 0.0)),
    "floor and side wall": ((4096.0 - 256.0 + 200.0 * 0.6, 0.0, 256.0 - 200.0 * 0.8), 56.0, (-0.6, 0.0, 0.8)),
    "floor and back wall": ((2000.0, 5120.0 - 160.0 + 100.0 * 0.8, 160.0 - 100.0 * 0.6), 60.0, (0.0, -0.8, 0.6)),
    "floor and corner": (
        (3500.0 - 256.0 * ROOT + 32.0 + 90.0, 4500.0 - 256.0 * ROOT + 32.0 + 90.0, 256.0 - 90.0 * math.sqrt(2.0)),
        256.0 - 180.0,
        (-0.5, -0.5, ROOT),
    ),
    "ceiling and side wall": ((-(4096.0 - 512.0 + 400.0 * 0.8), 9.0, 1536.0 + 400.0 * 0.6), 112.0, (0.8, 0.0, -0.6)),
    "ceiling and back wall": ((0.0, 5120.0 - 512.0 + 400.0 * 0.6, 1536.0 + 400.0 * 0.8), 112.0, (0.0, -0.6, -0.8)),
    "vertical fillet": (
        (4096.0 - CORNER_FILLET + 800.0 * math.cos(0.3), 3605.961 + 800.0 * math.sin(0.3), 900.0),
        CORNER_FILLET - 800.0,
        (-math.cos(0.3), -math.sin(0.3), 0.0),
    ),
    "side of a goal": ((880.0, 5300.0, 300.0), 16.0, (-1.0, 0.0, 0.0)),
    "ceiling of a goal": ((0.0, 5250.0, 630.0), 10.0, (0.0, 0.0, -1.0)),
    "floor of a goal": ((0.0, -5250.0, 12.0), 12.0, (0.0, 0.0, 1.0)),
    "back of a goal": ((0.0, 5760.0 + 200.0 * 0.96, 256.0 + 200.0 * 0.28), 40.0, (0.0, -0.96, -0.28)),
    "vertical edge of a goal": ((800.0 + 80.0 * 0.8, 5904.0 + 80.0 * 0.6, 256.0), 16.0, (-0.8, -0.6, 0.0)),
    "chamfer of a post": ((890.0, 5114.0, 300.0), 10.0 * math.sqrt(2.0), (-ROOT, -ROOT, 0.0)),
    "edge of a post": ((896.0 - 40.0, 5128.0 - 30.0, 300.0), 50.0, (-0.8, -0.6, 0.0)),
    "edge of the bar": ((0.0, 5128.0 - 30.0, 640.0 - 40.0), 50.0, (0.0, -0.6, -0.8)),
}


@pytest.mark.parametrize("name", SURFACES)
def test_distance_and_normal_are_those_computed_by_hand(name: str) -> None:
    place, distance, normal = SURFACES[name]
    found = probe([place])[0]
    assert found[3] == pytest.approx(distance, abs=0.01)
    np.testing.assert_allclose(found[:3], normal, atol=1e-4)


def test_the_published_places_of_the_vertical_fillet_lie_on_it() -> None:
    found = probe([(3200.0, 4864.0, 900.0), (3840.0, 4224.0, 900.0), (4096.0, 3605.96, 900.0)])
    np.testing.assert_allclose(found[:, 3], 0.0, atol=0.01)


def test_the_surface_agrees_with_a_mesh_made_of_the_same_numbers() -> None:
    triangles = importlib.import_module("benchmarks.rocket_mesh").arena_triangles()
    # The mesh leaves the goals' vertical edges sharp; elsewhere its corners lie on the surface, and flat triangles cut
    # the arcs.
    corners, middles = triangles.reshape(-1, 3), triangles.mean(axis=1)
    plain = (np.abs(corners[:, 1]) < 5700.0) | (np.abs(corners[:, 0]) < 700.0)
    plain &= (np.abs(corners[:, 0]) != 904.0) | (corners[:, 2] > 160.0)  # the foot of the chamfer is in a ramp
    assert np.abs(probe(corners[plain])[:, 3]).max() < 0.02
    plain = (np.abs(middles[:, 1]) < 5700.0) | (np.abs(middles[:, 0]) < 700.0)
    assert probe(middles[plain])[:, 3].min() > -0.01
    assert probe(middles[plain])[:, 3].max() < 0.8


def gradients(places: Points, step: float = 0.5) -> NDArray[np.float64]:
    """Gradients `(n, 3)` of the distance by central differences."""
    columns = []
    for axis in range(3):
        shift = np.zeros(3, dtype=np.float32)
        shift[axis] = step
        columns.append((probe(places + shift)[:, 3].astype(float) - probe(places - shift)[:, 3]) / (2.0 * step))
    return np.stack(columns, axis=1)


def test_the_normal_is_the_gradient_and_its_length_is_one_near_the_surfaces() -> None:
    places = random_places(300_000, 1)
    found = probe(places)
    near = (found[:, 3] > 0.0) & (found[:, 3] < 120.0)
    places, found = places[near], found[near]
    assert len(places) > 30_000
    np.testing.assert_allclose(np.linalg.norm(found[:, :3], axis=1), 1.0, atol=1e-6)
    measured = gradients(places)
    length = np.linalg.norm(measured, axis=1)
    along = (measured * found[:, :3]).sum(axis=1)
    # Halfway between two surfaces that meet in a sharp edge of a goal's room the gradient jumps: some places in 10,000.
    odd = (np.abs(length - 1.0) > 0.01) | (along < 0.995)
    assert odd.mean() < 5e-4
    assert (np.abs(places[odd, 1]) > 5120.0).all()


def test_mirrored_places_have_mirrored_normals_bit_for_bit() -> None:
    places = random_places(100_000, 2)
    found = probe(places)
    for x, y in ((-1, 1), (1, -1), (-1, -1)):
        mirror = np.array([x, y, 1], dtype=np.float32)
        turned = probe(places * mirror)
        np.testing.assert_array_equal(turned[:, :3], found[:, :3] * mirror)
        np.testing.assert_array_equal(turned[:, 3], found[:, 3])


def test_the_distance_never_jumps_along_random_walks() -> None:
    # A signed distance changes by at most the way that was walked, across all seams of its pieces.
    generator = np.random.default_rng(3)
    places = random_places(4_000, 3)
    before = probe(places)[:, 3]
    for _ in range(100):
        moved = places + generator.normal(scale=6.0, size=places.shape).astype(np.float32)
        after = probe(moved)[:, 3]
        way = np.linalg.norm(moved.astype(float) - places, axis=1)
        inside = (before > -40.0) & (after > -40.0)  # deeper in the solid nothing ever gets
        assert (np.abs(after - before)[inside] <= 1.02 * way[inside] + 0.01).all()
        lost = after < -60.0
        places = np.where(lost[:, None], places, moved)
        before = np.where(lost, before, after)


def test_no_ball_leaves_the_arena_at_full_speed() -> None:
    places = random_places(6_000, 4)
    places = places[probe(places)[:, 3] > BALL_RADIUS][:1500]
    lab = Lab(len(places), seats=0)
    ways = np.random.default_rng(5).normal(size=places.shape)
    lab.ball["position"][:] = torch.from_numpy(places)
    lab.ball["velocity"][:] = torch.from_numpy(BALL_MAX_SPEED * ways / np.linalg.norm(ways, axis=1, keepdims=True))
    lab.ball["spin"][:] = torch.from_numpy(np.random.default_rng(6).uniform(-3.0, 3.0, places.shape))
    for _ in range(120):
        lab.step(4)
        distance = probe(lab.ball["position"].numpy())[:, 3]
        assert distance.min() > 20.0  # a tick at 6000 uu/s is 50 uu
        lab.ball["velocity"] *= 1.05  # keeps them fast
    assert torch.isfinite(lab.ball["velocity"]).all()
    assert torch.isfinite(lab.ball["spin"]).all()
