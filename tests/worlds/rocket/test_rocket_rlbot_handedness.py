"""The mirror between the game's left-handed world and ours, by numbers worked out by hand, and by cars that drive."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from benchmarks.rocket_lab import Lab

from ludus.worlds.rocket.observation import LAYOUT
from ludus.worlds.rocket.rlbot.observer import GameState, Observer
from ludus.worlds.rocket.rlbot.packet import Physics, angles_of, mirrored, mirrored_spin, rotation_of
from ludus.worlds.rocket.rules import Control
from ludus.worlds.rocket.view import Quaternion

if TYPE_CHECKING:
    from tests.worlds.rocket.conftest import Pitch

PLACES = {field.name: place for place, field in enumerate(LAYOUT.fields)}


def axes(rotation: Quaternion) -> np.ndarray:
    """Columns forward, left and up."""
    x, y, z, w = rotation
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@pytest.mark.parametrize(
    ("angles", "forward", "left", "up"),
    [
        # Toward orange's goal, as blue: its left is the game's +x, which is our -x.
        ((0.0, math.pi / 2, 0.0), (0, 1, 0), (-1, 0, 0), (0, 0, 1)),
        # Toward the game's +x: to blue's left.
        ((0.0, 0.0, 0.0), (-1, 0, 0), (0, -1, 0), (0, 0, 1)),
        # Yaw grows clockwise: from the game's +x to its +y, further on to its -x.
        ((0.0, math.pi, 0.0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
        # Nose straight up, roof toward where the car came from.
        ((math.pi / 2, math.pi / 2, 0.0), (0, 0, 1), (-1, 0, 0), (0, -1, 0)),
        # Rolled to the right by a quarter: the left side is up, the roof to blue's right.
        ((0.0, math.pi / 2, math.pi / 2), (0, 1, 0), (0, 0, 1), (1, 0, 0)),
    ],
)
def test_axes_by_hand(
    angles: tuple[float, float, float], forward: tuple[int, ...], left: tuple[int, ...], up: tuple[int, ...]
) -> None:
    assert np.allclose(axes(rotation_of(angles)), np.array([forward, left, up]).T, atol=1e-12)


def test_the_games_own_formula_in_a_mirror() -> None:
    """Forward, right and up as the game's tools compute them from the angles; in our world x is negated."""
    generator = np.random.default_rng(1)
    for pitch, yaw, roll in generator.uniform([-1.5, -3.1, -3.1], [1.5, 3.1, 3.1], (50, 3)):
        sp, cp, sy, cy, sr, cr = (f(a) for a in (pitch, yaw, roll) for f in (math.sin, math.cos))
        forward = (cp * cy, cp * sy, sp)
        right = (cy * sp * sr - cr * sy, sy * sp * sr + cr * cy, -cp * sr)
        up = (-cr * cy * sp - sr * sy, -cr * sy * sp + sr * cy, cp * cr)
        found = axes(rotation_of((pitch, yaw, roll)))
        expected = [mirrored(forward), [-part for part in mirrored(right)], mirrored(up)]
        assert np.allclose(found, np.array(expected).T, atol=1e-12)
        assert angles_of(rotation_of((pitch, yaw, roll))) == pytest.approx((pitch, yaw, roll), abs=1e-9)


def test_rotations_come_back() -> None:
    for rotation in np.random.default_rng(2).normal(size=(50, 4)):
        rotation = rotation / np.linalg.norm(rotation)
        back = rotation_of(angles_of(tuple(rotation)))
        assert abs(float(np.dot(back, rotation))) == pytest.approx(1.0, abs=1e-12)


def test_turning_right_is_about_minus_z_here() -> None:
    # In the game a car that turns right has a growing yaw and a positive spin about z.
    assert mirrored_spin((0.5, 0.25, 2.0)) == (0.5, -0.25, -2.0)
    step = 1e-6
    before, after = (axes(rotation_of((0.0, yaw, 0.0)))[:, 0] for yaw in (0.7, 0.7 + 2.0 * step))
    assert np.allclose((after - before) / step, np.cross([0.0, 0.0, -2.0], before), atol=1e-4)


def test_a_ball_to_the_right_is_reached_by_steering_right(pitch: "Pitch") -> None:
    """In the game: a blue car at (0, -2000) looks along +y; the ball at x -800 lies to its right."""
    pitch.park(0, *mirrored((0.0, -2000.0, 0.0))[:2], look="y", speed=800.0)
    pitch.put_ball(*mirrored((-800.0, -1000.0, 93.15)))
    env = pitch.env
    state = GameState.of(env.cars[0], env.balls[0], env.matches[0], env.pads[0])
    seen = Observer().observe(state, 0)
    assert seen[PLACES["ball.ahead"]] == pytest.approx(1000 / 4096, abs=1e-6)
    assert seen[PLACES["ball.left"]] == pytest.approx(-800 / 4096, abs=1e-6)
    pitch.step({"throttle": 1.0, "steer": 1.0}, steps=4)
    x, y, z, w = pitch.cars["rotation"][0, 0].tolist()
    _, yaw, _ = angles_of((x, y, z, w))
    assert math.pi / 2 + 0.2 < yaw < math.pi  # the game's yaw grew: clockwise, to the right
    assert float(pitch.cars["spin"][0, 0, 2]) < -0.5
    assert mirrored_spin(tuple(pitch.cars["spin"][0, 0].tolist()))[2] > 0.5
    way = pitch.ball["position"][0] - pitch.cars["position"][0, 0]
    nose = torch.tensor(axes((x, y, z, w))[:, 0], dtype=torch.float32)
    assert float(torch.dot(way, nose) / way.norm()) > math.cos(math.atan2(800, 1000)) + 0.05  # it turned to the ball


@pytest.mark.parametrize(
    ("floor", "location", "angles", "velocity", "keys"),
    [
        (False, (100.0, -200.0, 900.0), (0.3, 0.7, -0.4), (300.0, 500.0, 100.0), {"yaw": 1.0}),
        (
            False,
            (100.0, -200.0, 900.0),
            (-0.3, 2.7, 0.9),
            (300.0, 500.0, 100.0),
            {"pitch": -0.7, "roll": 0.8, "boost": 1},
        ),
        (True, (500.0, -1000.0, 17.0), (0.0, 1.2, 0.0), (300.0, 772.0, 0.0), {"throttle": 1.0, "steer": -1.0}),
    ],
)
def test_a_car_of_the_game_moves_as_ours_does_with_the_same_keys(
    floor: bool,
    location: tuple[float, float, float],
    angles: tuple[float, float, float],
    velocity: tuple[float, float, float],
    keys: dict[str, float],
) -> None:
    """RocketSim has the game's own numbers: read as packets are, its car is ours, tick by tick."""
    pytest.importorskip("RocketSim", reason="the package rocketsim is missing: pip install -e '.[rocket-oracle]'")
    ticks = 40
    row = [float(keys.get(control.name.lower(), 0.0)) for control in Control]
    task = {"floor": floor, "location": location, "rotation": angles, "velocity": velocity}
    task |= {"angular_velocity": (0.2, -0.1, 0.3) if not floor else (0.0, 0.0, 0.0), "controls": [row] * ticks}
    rival = Path(__file__).with_name("rocket_rival_game.py")
    done = subprocess.run([sys.executable, rival], input=json.dumps(task), capture_output=True, text=True, check=True)
    game = [Physics(**moment) for moment in json.loads(done.stdout.splitlines()[-1])]
    lab = Lab()
    lab.ball["position"][:] = torch.tensor([3500.0, 3500.0, 1800.0])
    lab.ball["asleep"][:] = 1
    lab.cars["boost"][:] = 100.0
    for name, value in read(game[0]).items():
        lab.cars[name][0, 0] = torch.tensor(value)
    for _ in range(ticks):
        lab.controls[0, 0] = torch.tensor(row)
        lab.step()
    theirs = read(game[-1])
    rotation = lab.cars["rotation"][0, 0].tolist()
    assert abs(float(np.dot(rotation, theirs["rotation"]))) > math.cos(0.01)  # half of 0.02 rad apart at most
    assert lab.cars["position"][0, 0].tolist() == pytest.approx(theirs["position"], abs=2.0)
    assert lab.cars["velocity"][0, 0].tolist() == pytest.approx(theirs["velocity"], abs=12.0)
    assert lab.cars["spin"][0, 0].tolist() == pytest.approx(theirs["spin"], abs=0.05)
    assert float(np.linalg.norm(theirs["spin"])) > 0.5  # there was something to mistake


def read(physics: Physics) -> dict[str, tuple[float, ...]]:
    """A car of the game as the sense reads it."""
    return {
        "position": mirrored(physics.location),
        "rotation": rotation_of(physics.rotation),
        "velocity": mirrored(physics.velocity),
        "spin": mirrored_spin(physics.angular_velocity),
    }
