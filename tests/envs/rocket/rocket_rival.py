"""Drives cars of RocketSim for comparisons: JSON in, JSON out, in a process of its own.

RocketSim can be told only once in a process where its meshes are, and whoever makes an arena first settles it. It
wants some mesh for an arena with a floor: here one triangle that nothing can reach; the floor itself is built in.
"""

import json
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import RocketSim  # type: ignore[import-not-found,unused-ignore]  # optional, without types

CONTROLS = ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")
MIRRORED = ("steer", "yaw", "roll")  # its numbers are those of a left-handed world


def write_mesh(folder: Path) -> None:
    """Writes the triangle where RocketSim looks for meshes."""
    (folder / "soccar").mkdir()
    triangle = struct.pack("<5i9f", 1, 3, 0, 1, 2, *(0.0, 0.0, -90.0, 1.0, 0.0, -90.0, 0.0, 1.0, -90.0))
    (folder / "soccar" / "far.cmf").write_bytes(triangle)


def controls_of(row: list[float]) -> Any:
    """RocketSim's controls of one of our rows."""
    controls = RocketSim.CarControls()
    for name, value in zip(CONTROLS, row, strict=True):
        if name in ("jump", "boost", "handbrake"):
            setattr(controls, name, bool(value))
        else:
            setattr(controls, name, -value if name in MIRRORED else value)
    return controls


def track(mode: int, start: dict[str, Any], rows: list[list[float]]) -> list[list[tuple[float, ...]]]:
    """Position, velocity, spin and nose after each tick of one car."""
    arena = RocketSim.Arena(mode)
    arena.set_car_ball_collision(False)
    car = arena.add_car(RocketSim.Team.BLUE)
    state = car.get_state()
    state.pos, state.vel, state.ang_vel = (RocketSim.Vec(*start[name]) for name in ("position", "velocity", "spin"))
    state.rot_mat = RocketSim.RotMat(*(RocketSim.Vec(*axis) for axis in start["axes"]))
    state.boost = 100.0
    car.set_state(state)
    found = []
    for row in rows:
        car.set_controls(controls_of(row))
        arena.step(1)
        state = car.get_state()
        found.append([v.as_tuple() for v in (state.pos, state.vel, state.ang_vel, state.rot_mat.forward)])
    return found


def main() -> None:
    """Reads mode, starts and controls; writes a track a car."""
    task = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        write_mesh(Path(folder))
        RocketSim.init(folder)
        mode = RocketSim.GameMode.SOCCAR if task["floor"] else RocketSim.GameMode.THE_VOID
        tracks = [track(mode, start, rows) for start, rows in zip(task["starts"], task["controls"], strict=True)]
    print(json.dumps(tracks))


if __name__ == "__main__":
    main()
