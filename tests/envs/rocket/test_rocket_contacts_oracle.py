"""Rocket's ball and contacts against RocketSim 2.2.1, from random states: bounces anywhere, hits, tumbling hulls.

RocketSim's arena is a mesh of our own signed distance, whose arcs are cut into flat triangles; what bounces off an arc
differs by their angles.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ludus.envs.rocket.lab import Lab, arena_at

pytest.importorskip("RocketSim", reason="the package rocketsim is missing: pip install 'ludus[rocket-oracle]'")

Numbers = NDArray[np.float64]
RIVAL = Path(__file__).with_name("rocket_rival_contacts.py")
MOTION = ("position", "velocity", "spin")
BALL_V, CAR_V, CAR_SPIN = slice(3, 6), slice(12, 15), slice(15, 18)


def axes_of(rotation: Numbers) -> Numbers:
    """Forward, left and up as rows, of a quaternion x, y, z, w."""
    x, y, z, w = rotation
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y + w * z), 2 * (x * z - w * y)],
            [2 * (x * y - w * z), w * w + y * y - x * x - z * z, 2 * (y * z + w * x)],
            [2 * (x * z + w * y), 2 * (y * z - w * x), w * w + z * z - x * x - y * y],
        ]
    )


@dataclass(frozen=True)
class Scenes:
    """Scenes of one car and the ball: fields `(scenes, n)`, and how long they last."""

    ball: dict[str, Numbers]
    car: dict[str, Numbers]
    ticks: int

    def ours(self) -> Numbers:
        """Place, velocity and spin of ball and car at the end, `(scenes, 18)`, in our simulator."""
        lab = Lab(len(self.ball["position"]))
        for name in MOTION:
            lab.ball[name][:] = torch.from_numpy(self.ball[name])
            lab.cars[name][:, 0] = torch.from_numpy(self.car[name])
        lab.cars["rotation"][:, 0] = torch.from_numpy(self.car["rotation"])
        lab.cars["dodged"][:] = 1
        lab.step(self.ticks)
        parts = [lab.ball[name] for name in MOTION] + [lab.cars[name][:, 0] for name in MOTION]
        return torch.cat(parts, dim=1).double().numpy()

    def as_lists(self) -> list[dict[str, Any]]:
        """For the rival's process."""
        return [
            {f"ball_{name}": self.ball[name][index].tolist() for name in MOTION}
            | {f"car_{name}": self.car[name][index].tolist() for name in MOTION}
            | {"car_axes": axes_of(self.car["rotation"][index]).tolist(), "ticks": self.ticks}
            for index in range(len(self.ball["position"]))
        ]


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
    return Scenes(ball, car, 30)


def hits() -> Scenes:
    """Balls at cars in the air, above their middle: below it the wheels push RocketSim's ball, too, but not ours."""
    generator = np.random.default_rng(2)
    car, ball = motions(generator, 400, 700.0, 1.5), motions(generator, 400, 800.0, 1.5)
    way = np.abs(generator.normal(size=(400, 3))) * np.array([1.0, 1.0, 0.5]) + np.array([0.0, 0.0, 0.5])
    way *= generator.choice([-1.0, 1.0], (400, 3)) * np.array([1.0, 1.0, 0.0]) + np.array([0.0, 0.0, 1.0])
    way *= generator.uniform(95.0, 150.0, (400, 1)) / np.linalg.norm(way, axis=1, keepdims=True)
    world = np.stack([axes_of(rotation).T @ local for rotation, local in zip(car["rotation"], way, strict=True)])
    car["position"] += np.array([0.0, 0.0, 1000.0])
    ball["position"] = car["position"] + world
    return Scenes(ball, car, 1)


def tumbles() -> Scenes:
    """Cars that fall to the floor in any attitude; the ball is far away."""
    generator = np.random.default_rng(3)
    car, ball = motions(generator, 150, 300.0, 1.5), motions(generator, 150, 0.0, 0.1)
    car["position"][:, 2] = generator.uniform(120.0, 200.0, 150)
    ball["position"] += np.array([3000.0, 3000.0, 1200.0])
    return Scenes(ball, car, 90)


Played = dict[str, tuple[Scenes, Numbers, Numbers]]


@pytest.fixture(scope="module")
def played() -> Played:
    """All scenes with the ends of ours and of RocketSim's, which needs long to load the arena."""
    scenes = {"bounces": bounces(), "hits": hits(), "tumbles": tumbles()}
    task = json.dumps([scene for part in scenes.values() for scene in part.as_lists()])
    done = subprocess.run([sys.executable, RIVAL], input=task, capture_output=True, text=True, check=True)
    theirs = iter(json.loads(done.stdout.splitlines()[-1]))
    found = {}
    for name, part in scenes.items():
        ours = part.ours()
        found[name] = (part, ours, np.array([next(theirs) for _ in ours]))
    return found


def test_balls_bounce_alike_everywhere_in_the_arena(played: Played) -> None:
    _, ours, theirs = played["bounces"]
    off = np.abs(ours - theirs)[:, :3].max(axis=1)
    assert np.median(off) < 0.01
    assert np.percentile(off, 90) < 1.0
    assert off.max() < 120.0


def test_cars_hit_the_ball_alike(played: Played) -> None:
    scenes, ours, theirs = played["hits"]
    hit = np.abs(theirs[:, CAR_V] - scenes.car["velocity"])[:, :2].max(axis=1) > 1.0
    assert hit.sum() > 80
    off = np.abs(ours - theirs)
    assert off[:, CAR_V].max() < 1.0
    assert off[:, BALL_V].max() < 5.0
    assert off[:, CAR_SPIN].max() < 0.1


def test_hulls_tumble_alike_over_the_floor(played: Played) -> None:
    _, ours, theirs = played["tumbles"]
    off = np.abs(ours - theirs)[:, 9:12].max(axis=1)
    assert np.median(off) < 0.5
    assert np.percentile(off, 90) < 30.0  # flat falls: RocketSim finds one corner a tick, ours all at once
