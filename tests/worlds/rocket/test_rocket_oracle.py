"""Rocket's car against RocketSim 2.2.1, tick by tick, over random flights, jumps, dodges and drives.

In the air RocketSim's arena without walls is used, on the ground its built-in floor. Where the game is known to differ
from RocketSim 2 ours follows the game (docs/research/rocket-physics.md): with the game's rules imposed on it, RocketSim
agrees.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.rocket_oracle import STICK, apart, driving, flying, held, own_tracks, second_jumps
from benchmarks.rocket_rival import PLANES, VOID, Numbers, Scenes, rival_tracks

from ludus.worlds.rocket.rules import Control

pytestmark = pytest.mark.train

pytest.importorskip("RocketSim", reason="the package rocketsim is missing: pip install -e '.[rocket-oracle]'")

GAMES = 16
TICKS = 120


def played(
    arena: int, starts: dict[str, Numbers], controls: Numbers, *, as_the_game: bool = False
) -> dict[str, Numbers]:
    """How far ours and RocketSim's cars are apart, `(games, ticks)` of each part of the motion; the nose in rad."""
    scenes = Scenes(starts, controls)
    return apart(own_tracks(scenes), rival_tracks(scenes, arena, as_the_game=as_the_game))


def test_rocketsims_process_imports_nothing_heavy() -> None:
    """There is one per comparison, and torch and Warp would take it five seconds."""
    code = "import sys, benchmarks.rocket_rival; print(sorted({'torch', 'warp', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


PEDALS = {Control.THROTTLE: [-1.0, 0.0, 0.5, 1.0, 1.0], Control.STEER: [-1.0, -0.5, 0.0, 0.0, 1.0]}


THROTTLE, BOOST = {Control.THROTTLE: [-1.0, 0.0, 1.0]}, {Control.BOOST: [0.0, 1.0]}


@pytest.mark.parametrize(("push", "as_the_game"), [(THROTTLE, False), (BOOST, False), (THROTTLE | BOOST, True)])
def test_free_flight_with_stick_throttle_and_boost(push: dict[Control, list[float]], as_the_game: bool) -> None:
    """RocketSim 2 adds the throttle to a boost that has it already: with both, it must be given the game's rule."""
    random = np.random.default_rng(1)
    off = played(VOID, flying(random, GAMES), held(random, GAMES, STICK | push), as_the_game=as_the_game)
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
    starts = driving(random, GAMES)
    off = played(PLANES, starts, controls)
    air = slice(0, 55)  # a tap is down again after some 110 ticks at the earliest, without its second jump
    assert off["position"][:, air].max() < 1.0
    assert off["velocity"][:, air].max() < 4.0
    assert np.median(off["position"][:, -1]) < 0.5


@pytest.mark.parametrize("dodges", [False, True])
def test_second_jumps_agree_to_the_tick_by_the_rules_of_the_game(dodges: bool) -> None:
    """With any stick before, in and after the press, so that some dodges are cancelled; RocketSim 2 knows no gate."""
    scenes = second_jumps(40, dodges=dodges)
    off = apart(own_tracks(scenes), rival_tracks(scenes, VOID, as_the_game=dodges))
    assert off["position"].max() < 0.02
    assert off["spin"].max() < 1.0e-3
    assert off["nose"].max() < 1.0e-3


STICKS = {"forward": (-1.0, 0.0, 0.0), "backward": (1.0, 0.0, 0.0), "left": (0.0, -1.0, 0.0), "right": (0.0, 0.0, 1.0)}


@pytest.mark.parametrize("kind", [*STICKS, "any way"])
def test_dodges(kind: str) -> None:
    """One tick of torque and of damping apart: nose and height differ a little, the way over the field does not."""
    random = np.random.default_rng(3)
    controls = np.zeros((GAMES, 100, 8))
    stick = [Control.PITCH, Control.YAW, Control.ROLL]
    controls[:, 5, stick] = STICKS[kind] if kind in STICKS else random.uniform(-1.0, 1.0, (GAMES, 3))
    controls[:, 5, Control.JUMP] = 1.0
    starts = driving(random, GAMES) | {"position": np.tile([0.0, 0.0, 1000.0], (GAMES, 1))}
    off = played(VOID, starts, controls)
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
    starts = driving(random, GAMES) | {"position": np.tile([0.0, 0.0, 1000.0], (GAMES, 1))}
    off = played(VOID, starts, controls)
    assert off["height"].max() < 6.0
    assert off["nose"].max() < 0.12


@pytest.mark.parametrize(("slides", "most"), [(False, 10.0), (True, 25.0)])
def test_drives_on_the_floor(slides: bool, most: float) -> None:
    """A second of pedals, wheel and boost; RocketSim's grip is that of the tick before, ours that of the tick."""
    random = np.random.default_rng(5)
    keys = {Control.BOOST: [0.0, 0.0, 1.0], Control.HANDBRAKE: [0.0, 0.0, 1.0] if slides else [0.0]}
    off = played(PLANES, driving(random, GAMES), held(random, GAMES, PEDALS | keys))
    assert np.median(off["position"][:, -1]) < 0.3 * most  # after ways of about 1000 uu
    assert off["position"].max() < most
    assert np.median(off["velocity"][:, -1]) < 10.0
    assert off["nose"][:, :60].max() < 0.03


def test_landing_on_the_wheels() -> None:
    """Drops on all four wheels, as hard as a fall from 6 m: the springs bounce as high."""
    random = np.random.default_rng(6)
    starts = driving(random, GAMES)
    starts["position"][:, 2] = 60.0
    starts["velocity"][:, 2] = -random.uniform(0.0, 800.0, GAMES)
    off = played(PLANES, starts, np.zeros((GAMES, 60, 8)))
    assert off["height"].max() < 3.0
    assert off["height"][:, -1].max() < 0.5
    assert off["nose"].max() < 0.05
