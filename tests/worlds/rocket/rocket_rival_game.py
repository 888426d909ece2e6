"""Stands in for the game: a car of RocketSim, whose numbers are the game's; JSON in and out, in a process of its own.

Controls go in as RLBot would send them, and what a packet of RLBot would say of the car comes out.
"""

import json
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import RocketSim  # type: ignore[import-not-found,unused-ignore]  # optional, without types

CONTROLS = ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")


def write_mesh(folder: Path) -> None:
    """Write the mesh that RocketSim insists on: one triangle that nothing can reach."""
    (folder / "soccar").mkdir()
    triangle = struct.pack("<5i9f", 1, 3, 0, 1, 2, *(0.0, 0.0, -90.0, 1.0, 0.0, -90.0, 0.0, 1.0, -90.0))
    (folder / "soccar" / "far.cmf").write_bytes(triangle)


def controls_of(row: list[float]) -> Any:
    """RocketSim's controls, without any change of sign."""
    controls = RocketSim.CarControls()
    for name, value in zip(CONTROLS, row, strict=True):
        setattr(controls, name, bool(value) if name in ("jump", "boost", "handbrake") else value)
    return controls


def physics_of(state: Any) -> dict[str, tuple[float, ...]]:
    """Place and motion of a car."""
    angle = state.rot_mat.as_angle()
    return {
        "location": state.pos.as_tuple(),
        "rotation": (angle.pitch, angle.yaw, angle.roll),
        "velocity": state.vel.as_tuple(),
        "angular_velocity": state.ang_vel.as_tuple(),
    }


def main() -> None:
    """Reads a mode, a start and rows of controls; writes the car's motion at the start and after each tick."""
    task = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        write_mesh(Path(folder))
        RocketSim.init(folder)
        arena = RocketSim.Arena(RocketSim.GameMode.SOCCAR if task["floor"] else RocketSim.GameMode.THE_VOID)
        arena.set_car_ball_collision(False)
        car = arena.add_car(RocketSim.Team.BLUE)
        state, (pitch, yaw, roll) = car.get_state(), task["rotation"]
        state.pos, state.vel = RocketSim.Vec(*task["location"]), RocketSim.Vec(*task["velocity"])
        state.ang_vel, state.boost = RocketSim.Vec(*task["angular_velocity"]), 100.0
        state.rot_mat = RocketSim.Angle(pitch=pitch, yaw=yaw, roll=roll).as_rot_mat()
        car.set_state(state)
        found = [physics_of(car.get_state())]
        for row in task["controls"]:
            car.set_controls(controls_of(row))
            arena.step(1)
            found.append(physics_of(car.get_state()))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
