"""Rocket's car against RocketSim 2.2.1, tick by tick, over random flights, jumps, dodges and drives.

RocketSim's numbers are those of a left-handed world: its steer, yaw and roll have the other sign. In the air its arena
without walls is used, on the ground its built-in floor. Where the game is known to differ from RocketSim 2 ours follows
the game (docs/rocket.md), so that dodges begin to turn one tick earlier.
"""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ludus.envs.rocket.lab import Lab
from ludus.envs.rocket.rules import Control

pytest.importorskip("RocketSim", reason="the package rocketsim is missing: pip install 'ludus[rocket-oracle]'")

Numbers = NDArray[np.float64]
GAMES = 16
TICKS = 120
IN_THE_AIR, ON_THE_FLOOR = False, True
RIVAL = Path(__file__).with_name("rocket_rival.py")
MOTION = ("position", "velocity", "spin")


def axes(rotation: Numbers) -> Numbers:
    """Columns forward, left and up of a quaternion."""
    x, y, z, w = rotation
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), w * w + y * y - x * x - z * z, 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), w * w + z * z - x * x - y * y],
        ]
    )


def rival_tracks(floor: bool, starts: dict[str, Numbers], controls: Numbers) -> dict[str, Numbers]:
    """Drives RocketSim's cars from starts `(games, n)` with controls `(games, ticks, 8)`; gives `(games, ticks, 3)`."""
    cars = [
        {name: starts[name][game].tolist() for name in MOTION} | {"axes": axes(starts["rotation"][game]).T.tolist()}
        for game in range(len(controls))
    ]
    task = json.dumps({"floor": floor, "starts": cars, "controls": controls.tolist()})
    done = subprocess.run([sys.executable, RIVAL], input=task, capture_output=True, text=True, check=True)
    tracks = np.array(json.loads(done.stdout.splitlines()[-1]))
    return dict(zip((*MOTION, "nose"), tracks.transpose(2, 0, 1, 3), strict=True))


def own_tracks(starts: dict[str, Numbers], controls: Numbers) -> dict[str, Numbers]:
    """Our cars from the same starts `(games, n)` with controls `(games, ticks, 8)`; gives `(games, ticks, 3)`."""
    lab = Lab(len(controls))
    for name, values in starts.items():
        lab.cars[name][:, 0] = torch.from_numpy(values)
    lab.cars["boost"][:] = 100.0
    lab.ball["position"][:] = torch.tensor([3500.0, 3500.0, 1800.0])
    lab.ball["asleep"][:] = 1
    tracks: dict[str, list[Numbers]] = {name: [] for name in (*MOTION, "nose")}
    for tick in range(controls.shape[1]):
        lab.controls[:, 0] = torch.from_numpy(controls[:, tick])
        lab.step()
        for name in MOTION:
            tracks[name].append(lab.cars[name][:, 0].numpy().astype(np.float64))
        tracks["nose"].append(np.array([axes(rotation)[:, 0] for rotation in lab.cars["rotation"][:, 0].numpy()]))
    return {name: np.stack(values, axis=1) for name, values in tracks.items()}


def apart(floor: bool, starts: dict[str, Numbers], controls: Numbers) -> dict[str, Numbers]:
    """How far ours and RocketSim's cars are apart, `(games, ticks)` of each part of the motion; the nose in rad."""
    ours, theirs = own_tracks(starts, controls), rival_tracks(floor, starts, controls)
    found = {name: np.linalg.norm(ours[name] - theirs[name], axis=-1) for name in ours}
    return found | {"height": np.abs(ours["position"] - theirs["position"])[..., 2]}


def flying(random: np.random.Generator) -> dict[str, Numbers]:
    """Cars in the air with any attitude and motion."""
    rotation = random.normal(size=(GAMES, 4))
    return {
        "position": np.tile([0.0, 0.0, 1000.0], (GAMES, 1)),
        "velocity": random.uniform(-500.0, 500.0, (GAMES, 3)),
        "spin": random.uniform(-3.0, 3.0, (GAMES, 3)),
        "rotation": rotation / np.linalg.norm(rotation, axis=1, keepdims=True),
    }


def driving(random: np.random.Generator) -> dict[str, Numbers]:
    """Cars on the floor with any heading that roll forward."""
    heading, speed = random.uniform(-math.pi, math.pi, GAMES), random.uniform(0.0, 1800.0, GAMES)
    zero = np.zeros(GAMES)
    return {
        "position": np.tile([0.0, 0.0, 17.03], (GAMES, 1)),
        "velocity": np.stack((speed * np.cos(heading), speed * np.sin(heading), zero), axis=1),
        "spin": np.zeros((GAMES, 3)),
        "rotation": np.stack((zero, zero, np.sin(0.5 * heading), np.cos(0.5 * heading)), axis=1),
    }


def held(random: np.random.Generator, choices: dict[Control, list[float]], ticks: int = TICKS) -> Numbers:
    """Controls `(games, ticks, 8)` that change every 8 ticks to random ones of the choices."""
    controls = np.zeros((GAMES, -(-ticks // 8), 8))
    for control, values in choices.items():
        controls[..., control] = random.choice(values, size=controls.shape[:2])
    return np.repeat(controls, 8, axis=1)[:, :ticks]


STICK = {control: [-1.0, -0.4, 0.0, 0.7, 1.0] for control in (Control.PITCH, Control.YAW, Control.ROLL)}
PEDALS = {Control.THROTTLE: [-1.0, 0.0, 0.5, 1.0, 1.0], Control.STEER: [-1.0, -0.5, 0.0, 0.0, 1.0]}


@pytest.mark.parametrize("push", [{Control.THROTTLE: [-1.0, 0.0, 1.0]}, {Control.BOOST: [0.0, 1.0]}])
def test_free_flight_with_stick_and_throttle_or_boost(push: dict[Control, list[float]]) -> None:
    random = np.random.default_rng(1)
    off = apart(IN_THE_AIR, flying(random), held(random, STICK | push))
    assert off["position"].max() < 0.05
    assert off["velocity"].max() < 0.05
    assert off["spin"].max() < 1.0e-3
    assert off["nose"].max() < 1.0e-3


def test_jumps_from_the_floor() -> None:
    """Of any length, with a second jump at any time after it; until the first landing."""
    random = np.random.default_rng(2)
    controls = np.zeros((GAMES, TICKS, 8))
    for game in range(GAMES):
        length, second = random.integers(1, 30), random.integers(32, 90)
        controls[game, :length, Control.JUMP] = 1.0
        controls[game, second : second + 4, Control.JUMP] = 1.0
    starts = driving(random)
    off = apart(ON_THE_FLOOR, starts, controls)
    air = slice(0, 55)  # a tap is down again after some 110 ticks at the earliest, without its second jump
    assert off["position"][:, air].max() < 1.0
    assert off["velocity"][:, air].max() < 4.0
    assert np.median(off["position"][:, -1]) < 0.5


STICKS = {"forward": (-1.0, 0.0, 0.0), "backward": (1.0, 0.0, 0.0), "left": (0.0, -1.0, 0.0), "right": (0.0, 0.0, 1.0)}


@pytest.mark.parametrize("kind", [*STICKS, "any way"])
def test_dodges(kind: str) -> None:
    """One tick of torque and of damping apart: nose and height differ a little, the way over the field does not."""
    random = np.random.default_rng(3)
    controls = np.zeros((GAMES, 100, 8))
    stick = [Control.PITCH, Control.YAW, Control.ROLL]
    controls[:, 5, stick] = STICKS[kind] if kind in STICKS else random.uniform(-1.0, 1.0, (GAMES, 3))
    controls[:, 5, Control.JUMP] = 1.0
    starts = driving(random) | {"position": np.tile([0.0, 0.0, 1000.0], (GAMES, 1))}
    off = apart(IN_THE_AIR, starts, controls)
    across = np.sqrt(np.maximum(off["position"] ** 2 - off["height"] ** 2, 0.0))
    assert across.max() < 0.1
    assert off["height"].max() < 6.0
    assert off["nose"].max() < 0.12
    assert off["spin"][:, 12:80].max() < 0.1


def test_a_cancelled_dodge() -> None:
    random = np.random.default_rng(4)
    controls = np.zeros((GAMES, 100, 8))
    controls[:, 0, [Control.PITCH, Control.JUMP]] = [-1.0, 1.0]
    controls[:, 10:, Control.PITCH] = random.uniform(0.2, 1.0, (GAMES, 1))
    starts = driving(random) | {"position": np.tile([0.0, 0.0, 1000.0], (GAMES, 1))}
    off = apart(IN_THE_AIR, starts, controls)
    assert off["height"].max() < 6.0
    assert off["nose"].max() < 0.12


@pytest.mark.parametrize(("slides", "most"), [(False, 10.0), (True, 25.0)])
def test_drives_on_the_floor(slides: bool, most: float) -> None:
    """A second of pedals, wheel and boost; RocketSim's grip is that of the tick before, ours that of the tick."""
    random = np.random.default_rng(5)
    keys = {Control.BOOST: [0.0, 0.0, 1.0], Control.HANDBRAKE: [0.0, 0.0, 1.0] if slides else [0.0]}
    off = apart(ON_THE_FLOOR, driving(random), held(random, PEDALS | keys))
    assert np.median(off["position"][:, -1]) < 0.3 * most  # after ways of about 1000 uu
    assert off["position"].max() < most
    assert np.median(off["velocity"][:, -1]) < 10.0
    assert off["nose"][:, :60].max() < 0.03


def test_landing_on_the_wheels() -> None:
    """Drops on all four wheels, as hard as a fall from 6 m: the springs bounce as high."""
    random = np.random.default_rng(6)
    starts = driving(random)
    starts["position"][:, 2] = 60.0
    starts["velocity"][:, 2] = -random.uniform(0.0, 800.0, GAMES)
    off = apart(ON_THE_FLOOR, starts, np.zeros((GAMES, 60, 8)))
    assert off["height"].max() < 3.0
    assert off["height"][:, -1].max() < 0.5
    assert off["nose"].max() < 0.05
