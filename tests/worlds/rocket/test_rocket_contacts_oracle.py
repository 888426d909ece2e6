"""Rocket's ball and contacts against RocketSim 2.2.1, from random states: bounces anywhere, hits, tumbling hulls.

RocketSim's arena is a mesh of our own signed distance, whose arcs are cut into flat triangles; what bounces off an arc
differs by their angles.
"""

import numpy as np
import pytest
import torch
from benchmarks.rocket_lab import arena_at
from benchmarks.rocket_mesh import FACETS
from benchmarks.rocket_oracle import one_bounce, own_tracks, wall_bounces
from benchmarks.rocket_rival import MOTION, PLANES, Numbers, Scenes, axes, rival_tracks

pytest.importorskip("RocketSim", reason="the package rocketsim is missing: pip install -e '.[rocket-oracle]'")


def still(car: dict[str, Numbers], ball: dict[str, Numbers], ticks: int) -> Scenes:
    """Scenes in which nothing is pressed and nobody has a second jump."""
    return Scenes(car, np.zeros((len(car["position"]), ticks, 8)), {name: ball[name] for name in MOTION}, False)


def motions(generator: np.random.Generator, count: int, speed: float, spin: float) -> dict[str, Numbers]:
    """Random velocities, spins within the limit of a car and rotations; all at the origin."""
    spins = generator.normal(scale=spin, size=(count, 3))
    spins *= np.minimum(1.0, 5.0 / np.linalg.norm(spins, axis=1, keepdims=True))
    rotation = generator.normal(size=(count, 4))
    return {
        "position": np.zeros((count, 3)),
        "velocity": generator.normal(scale=speed, size=(count, 3)),
        "spin": spins,
        "rotation": rotation / np.linalg.norm(rotation, axis=1, keepdims=True),
    }


def bounces() -> Scenes:
    """Balls near any surface; the car is far away."""
    generator = np.random.default_rng(1)
    places = generator.uniform([-4096, -5900, 0], [4096, 5900, 2048], (6000, 3))
    distance = arena_at(torch.from_numpy(places))[:, 3].numpy()
    ball, car = motions(generator, 300, 900.0, 2.0), motions(generator, 300, 0.0, 0.1)
    ball["position"] = places[(distance > 95.0) & (distance < 300.0)][:300]
    car["position"] += np.array([0.0, 0.0, 1000.0])
    return still(car, ball, 30)


def hits() -> Scenes:
    """Balls at cars in the air, above their middle: below it the wheels push RocketSim's ball, too, but not ours."""
    generator = np.random.default_rng(2)
    car, ball = motions(generator, 400, 700.0, 1.5), motions(generator, 400, 800.0, 1.5)
    way = np.abs(generator.normal(size=(400, 3))) * np.array([1.0, 1.0, 0.5]) + np.array([0.0, 0.0, 0.5])
    way *= generator.choice([-1.0, 1.0], (400, 3)) * np.array([1.0, 1.0, 0.0]) + np.array([0.0, 0.0, 1.0])
    way *= generator.uniform(95.0, 150.0, (400, 1)) / np.linalg.norm(way, axis=1, keepdims=True)
    world = np.stack([axes(rotation) @ local for rotation, local in zip(car["rotation"], way, strict=True)])
    car["position"] += np.array([0.0, 0.0, 1000.0])
    ball["position"] = car["position"] + world
    return still(car, ball, 1)


def tumbles() -> Scenes:
    """Cars that fall to the floor in any attitude; the ball is far away."""
    generator = np.random.default_rng(3)
    car, ball = motions(generator, 150, 300.0, 1.5), motions(generator, 150, 0.0, 0.1)
    car["position"][:, 2] = generator.uniform(120.0, 200.0, 150)
    ball["position"] += np.array([3000.0, 3000.0, 1200.0])
    return still(car, ball, 90)


def differences(scenes: Scenes, arena: int) -> dict[str, Numbers]:
    """Ours minus RocketSim's at the end, by name of the track: `(scenes, 3)`."""
    ours, theirs = own_tracks(scenes), rival_tracks(scenes, arena)
    return {name: ours[name][:, -1] - theirs[name][:, -1] for name in ours}


def test_balls_bounce_alike_everywhere_in_the_arena() -> None:
    off = np.abs(differences(bounces(), FACETS)["ball_position"]).max(axis=1)
    assert np.median(off) < 0.01
    assert np.percentile(off, 90) < 1.0
    assert off.max() < 120.0


def test_balls_bounce_off_arcs_by_the_same_law() -> None:
    """Off RocketSim's normal, the mean over the triangles that the ball touches, ours bounces as RocketSim does."""
    errors = one_bounce("arcs", wall_bounces(60, flat=False), 8)
    assert np.median(errors["velocity"]) > 10.0  # with our own normal
    assert np.median(errors["velocity_left"]) < 0.5
    assert np.percentile(errors["velocity_left"], 90) < 10.0
    assert np.median(errors["spin_left"]) < 0.01


def test_cars_hit_the_ball_alike() -> None:
    scenes = hits()
    off = {name: np.abs(values) for name, values in differences(scenes, PLANES).items()}
    hit = np.abs(own_tracks(scenes)["velocity"][:, -1] - scenes.car["velocity"])[:, :2].max(axis=1) > 1.0
    assert hit.sum() > 80
    assert off["velocity"].max() < 1.0
    assert off["ball_velocity"].max() < 5.0
    assert off["spin"].max() < 0.1


def test_hulls_tumble_alike_over_the_floor() -> None:
    off = np.abs(differences(tumbles(), PLANES)["position"]).max(axis=1)
    assert np.median(off) < 0.5
    assert np.percentile(off, 90) < 30.0  # flat falls: RocketSim finds one corner a tick, ours all at once
