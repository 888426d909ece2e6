"""Plays scenes of one car and the ball in RocketSim for comparisons: JSON in, JSON out, in a process of its own.

Its arena is the mesh that `rocket_mesh` makes of our own numbers. RocketSim can be told only once in a process where
its meshes are.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import RocketSim  # type: ignore[import-not-found,unused-ignore]  # optional, without types
from rocket_mesh import write_meshes  # type: ignore[import-not-found,unused-ignore]  # beside this file

OUT_OF_THE_WAY = (0.0, -2000.0, 1700.0)


def set_motion(state: Any, scene: dict[str, Any], prefix: str) -> None:
    """Sets place, velocity and spin of a car or the ball."""
    state.pos, state.vel, state.ang_vel = (
        RocketSim.Vec(*scene[prefix + name]) for name in ("position", "velocity", "spin")
    )


def play(arena: Any, car: Any, scene: dict[str, Any]) -> list[float]:
    """Plays a scene; gives place, velocity and spin of the ball and of the car."""
    state = car.get_state()
    state.pos, state.vel = RocketSim.Vec(*OUT_OF_THE_WAY), RocketSim.Vec(0, 0, 0)
    car.set_state(state)
    arena.step(4)  # forgets the contacts of the scene before
    ball = arena.ball.get_state()
    set_motion(ball, scene, "ball_")
    arena.ball.set_state(ball)
    state = car.get_state()
    set_motion(state, scene, "car_")
    state.rot_mat = RocketSim.RotMat(*(RocketSim.Vec(*axis) for axis in scene["car_axes"]))
    state.has_flipped = True
    car.set_state(state)
    arena.step(scene["ticks"])
    ball, state = arena.ball.get_state(), car.get_state()
    vectors = (ball.pos, ball.vel, ball.ang_vel, state.pos, state.vel, state.ang_vel)
    return [number for vector in vectors for number in vector.as_tuple()]


def main() -> None:
    """Reads scenes; writes a row of 18 numbers a scene."""
    scenes = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        write_meshes(Path(folder))
        RocketSim.init(folder)
        arena = RocketSim.Arena(RocketSim.GameMode.SOCCAR)
        car = arena.add_car(RocketSim.Team.BLUE)
        rows = [play(arena, car, scene) for scene in scenes]
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
