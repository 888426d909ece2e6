"""Rocket's speed in agent steps, next to RocketSim with as many cars where it is installed."""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.files import temporary_folder, write_atomic
from ludus.envs.base import EnvSpec
from ludus.envs.world_parts import SimBench, Speedrun, Yardstick, cartpole
from ludus.worlds.rocket.rules import TICK_HZ, Control

_BACK_EVERY = 100  # calls
_POOL = 64  # controls drawn before timing starts


def rocketsim(spec: EnvSpec) -> Yardstick:
    """Make one arena of RocketSim with random controls; CartPole where the package `rocketsim` is missing.

    Floor, ceiling and side walls are RocketSim's own planes. The collision meshes for the rest of the arena belong to a
    game and are not used; without them it is about twice as fast.
    """
    try:
        import RocketSim  # type: ignore[import-not-found,unused-ignore]  # optional, without types
    except ImportError:
        return cartpole(spec)
    _show_mesh(RocketSim)
    arena: Any = RocketSim.Arena(RocketSim.GameMode.SOCCAR)
    teams = (RocketSim.Team.BLUE, RocketSim.Team.ORANGE)
    cars = [arena.add_car(teams[team]) for team in spec.teams]
    ticks, calls = round(TICK_HZ / spec.rate_hz), 0
    pool = [_controls(RocketSim, row) for row in np.random.default_rng(0).integers(-1, 2, (_POOL, len(Control)))]

    def step() -> None:
        nonlocal calls
        for place, car in enumerate(cars):
            car.set_controls(pool[(calls + 7 * place) % _POOL])
        arena.step(ticks)
        calls += 1
        if calls % _BACK_EVERY == 0:
            arena.reset_kickoff()  # there are no back walls: return what has rolled away

    mode = f"{spec.teams.count(0)}v{spec.teams.count(1)}"
    name = f"RocketSim {mode} between plane walls, one arena, physics alone"
    return Yardstick(name, step, len(cars), lambda: None)


def _show_mesh(simulator: Any) -> None:  # noqa: ANN401 - RocketSim has no types
    """Give RocketSim the mesh that it requires: one unreachable triangle."""
    with temporary_folder("ludus-mesh-") as folder:
        triangle = struct.pack("<5i9f", 1, 3, 0, 1, 2, *(0.0, 0.0, -90.0, 1.0, 0.0, -90.0, 0.0, 1.0, -90.0))
        write_atomic(folder / "soccar" / "far.cmf", triangle)
        try:
            simulator.init(str(folder))
        except RuntimeError as error:  # it can be initialised once per process
            if "Already" not in str(error):
                raise


def _controls(simulator: Any, row: NDArray[np.int64]) -> Any:  # noqa: ANN401 - RocketSim has no types
    """Return controls of a row of numbers from -1 to 1; a button is pressed above 0."""
    named = {control.name.lower(): value for control, value in zip(Control, row.tolist(), strict=True)}
    keys = {name: named.pop(name) > 0 for name in ("jump", "boost", "handbrake")}
    return simulator.CarControls(**{name: float(value) for name, value in named.items()}, **keys)


BENCH = SimBench(rocketsim, agent_steps=True, rewards="dense")

# Every row is a pair of one scripted player; matches are whole ones from a kickoff.
SPEEDRUN = Speedrun(
    "lowest_win_rate", 0.95, "95 % against every pair", "1v1-2v2", ("evaluation.modes={2v2: {mode: 2v2}}",)
)
