"""Play scenes of one car and the ball in RocketSim, for comparisons with ours.

RocketSim's numbers are those of a left-handed world: its steer, yaw and roll have the other sign. It can be told only
once per process where its meshes are, so every comparison runs in a process of its own, which needs no torch.
"""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from benchmarks.rocket_mesh import write_meshes
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from ludus.worlds.rocket.rules import BOOST_MIN_S, DT, Control

Numbers = NDArray[np.float64]
VOID, PLANES = -1, 0  # arenas: without anything, and of floor, ceiling and side walls alone
MOTION = ("position", "velocity", "spin")
TRACKS = (*MOTION, "nose", *(f"ball_{name}" for name in MOTION))
AWAY = (0.0, -2000.0, 1700.0)
MIRRORED = (Control.STEER, Control.YAW, Control.ROLL)
KEYS = (Control.JUMP, Control.BOOST, Control.HANDBRAKE)
GATE_TICKS, TORQUE_TICKS = 5, 79  # of a dodge: until it can be cancelled, and until its torque ends


def axes(rotation: Numbers) -> Numbers:
    """Rotation matrices `(..., 3, 3)` of quaternions `(..., 4)`; their columns are forward, left and up."""
    x, y, z, w = np.moveaxis(rotation, -1, 0)
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w + y * y - x * x - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w + z * z - x * x - y * y],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


@dataclass(frozen=True, slots=True)
class Scenes:
    """Scenes of one car and the ball.

    Attributes:
        car: `position`, `velocity` and `spin` `(scenes, 3)` and `rotation` `(scenes, 4)`; its tank is full.
        controls: `(scenes, ticks, 8)`.
        ball: `position`, `velocity` and `spin` `(scenes, 3)`; without it the ball is out of the way.
        can_dodge: Whether the car has its second jump.
    """

    car: Mapping[str, Numbers]
    controls: Numbers
    ball: Mapping[str, Numbers] = field(default_factory=dict)
    can_dodge: bool = True


def rival_tracks(scenes: Scenes, arena: int, *, as_the_game: bool = False) -> dict[str, Numbers]:
    """RocketSim's motion after every tick: `TRACKS`, each `(scenes, ticks, 3)`.

    Args:
        scenes: What to play.
        arena: `VOID`, `PLANES`, or the number of facets per quarter circle in a mesh of the whole arena.
        as_the_game: Impose on RocketSim the rules of the game that RocketSim 2 lacks, through its state and controls.
            Boost in the air is 1058.3 uu/s^2 whatever the throttle: the throttle is released while boost burns. The
            torque of a dodge acts from the tick of the press to 78 ticks after it and can be cancelled after 0.041 s;
            its height is held by the timer as it was before the tick.
    """
    parts = {f"car_{name}": values for name, values in scenes.car.items()}
    parts |= {f"ball_{name}": values for name, values in scenes.ball.items()}
    options = np.array([arena, as_the_game, scenes.can_dodge])
    with TemporaryDirectory() as folder:
        file = Path(folder) / "scenes.safetensors"
        save_file({"controls": scenes.controls, "options": options} | parts, file)
        command = [sys.executable, "-m", "benchmarks.rocket_rival", str(file)]
        subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[1])
        return load_file(file)


def main() -> None:
    """Play the scenes of a file and write their tracks in their place."""
    import RocketSim  # type: ignore[import-not-found,unused-ignore]  # optional, without types

    file = Path(sys.argv[1])
    parts = load_file(file)
    arena, as_the_game, can_dodge = parts.pop("options").tolist()
    controls = parts.pop("controls")
    car, ball = (
        {name.removeprefix(what): values for name, values in parts.items() if name.startswith(what)}
        for what in ("car_", "ball_")
    )
    scenes = Scenes(car, controls, ball, bool(can_dodge))
    with TemporaryDirectory() as folder:
        write_meshes(Path(folder), max(arena, 0))
        RocketSim.init(folder)
    mode = RocketSim.GameMode.THE_VOID if arena == VOID else RocketSim.GameMode.SOCCAR
    rival = _Rival(RocketSim, mode, bool(as_the_game))
    tracks = np.array([rival.track(scenes, index) for index in range(len(controls))])
    save_file({name: np.ascontiguousarray(tracks[:, :, index]) for index, name in enumerate(TRACKS)}, file)


class _Rival:
    """An arena of RocketSim with one car, for one scene after the other."""

    def __init__(self, simulator: Any, mode: Any, as_the_game: bool) -> None:  # noqa: ANN401 - without types
        self._sim = simulator
        self._arena = simulator.Arena(mode)
        self._car = self._arena.add_car(simulator.Team.BLUE)
        self._as_the_game = as_the_game
        self._dodging_ticks = -1  # since a dodge began; -1 without one

    def track(self, scenes: Scenes, index: int) -> list[list[tuple[float, ...]]]:
        """Play one scene; the vectors of `TRACKS` after each tick."""
        self._place(scenes, index)
        found = []
        for row in scenes.controls[index]:
            self._step(row)
            car, ball = self._car.get_state(), self._arena.ball.get_state()
            vectors = (car.pos, car.vel, car.ang_vel, car.rot_mat.forward, ball.pos, ball.vel, ball.ang_vel)
            found.append([vector.as_tuple() for vector in vectors])
        return found

    def _place(self, scenes: Scenes, index: int) -> None:
        """Set up a scene, after ticks far from everything in which the contacts of the scene before are forgotten.

        RocketSim's wheels act with the drive and the brake of the tick before: with the handbrake both are 0.
        """
        vector = self._sim.Vec
        self._car.set_state(self._sim.CarState(pos=vector(*AWAY)))
        for _ in range(4):
            self._advance(np.eye(len(Control))[Control.HANDBRAKE])
        car = {name: values[index].tolist() for name, values in scenes.car.items() if name != "rotation"}
        state = self._sim.CarState(
            boost=100.0, has_flipped=not scenes.can_dodge, is_on_ground=car["position"][2] < 30.0
        )
        state.pos, state.vel, state.ang_vel = (vector(*car[name]) for name in MOTION)
        columns = axes(scenes.car["rotation"][index]).T.tolist()
        state.rot_mat = self._sim.RotMat(*(vector(*column) for column in columns))
        self._car.set_state(state)
        self._arena.set_car_ball_collision(bool(scenes.ball))
        ball = self._sim.BallState(pos=vector(3500.0, 3500.0, 1800.0))
        if scenes.ball:
            ball.pos, ball.vel, ball.ang_vel = (vector(*scenes.ball[name][index].tolist()) for name in MOTION)
        self._arena.ball.set_state(ball)
        self._dodging_ticks = -1

    def _step(self, row: Numbers) -> None:
        """Advance by a tick with a row of our controls."""
        if not self._as_the_game:
            self._advance(row)
            return
        row, before = row.copy(), self._car.get_state()
        if row[Control.BOOST] or 0.0 < before.boosting_time < BOOST_MIN_S - 0.5 * DT:
            row[Control.THROTTLE] = 0.0
        if self._dodging_ticks >= 0:
            self._dodging_ticks += 1
            if self._dodging_ticks < GATE_TICKS and before.flip_rel_torque.y * row[Control.PITCH] > 0.0:
                row[Control.PITCH] = 0.0
            if self._dodging_ticks == TORQUE_TICKS:
                before.flip_time += DT
                self._car.set_state(before)
        self._advance(row)
        after = self._car.get_state()
        if after.has_flipped and not before.has_flipped:
            self._begin_dodge(before, after, row)

    def _begin_dodge(self, before: Any, after: Any, row: Numbers) -> None:  # noqa: ANN401 - without types
        """Play the tick of the press again as if the dodge had begun before it, with its timer one tick behind."""
        row[Control.JUMP] = 0.0
        self._car.set_state(before)
        self._advance(row)
        push = np.subtract(after.vel.as_tuple(), self._car.get_state().vel.as_tuple())
        before.vel = self._sim.Vec(*np.add(before.vel.as_tuple(), push).tolist())
        before.flip_rel_torque, before.flip_time = after.flip_rel_torque, -DT
        before.has_flipped = before.is_flipping = True
        self._car.set_state(before)
        self._advance(row)
        self._dodging_ticks = 0

    def _advance(self, row: Numbers) -> None:
        controls = self._sim.CarControls()
        for control, value in zip(Control, row.tolist(), strict=True):
            signed = -value if control in MIRRORED else value
            setattr(controls, control.name.lower(), bool(value) if control in KEYS else signed)
        self._car.set_controls(controls)
        self._arena.step(1)


if __name__ == "__main__":
    main()
