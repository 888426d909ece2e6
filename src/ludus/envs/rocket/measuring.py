"""Rocket's speed is measured in decisions of cars, beside RocketSim with as many cars where it is installed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.envs.base import EnvSpec
from ludus.envs.measuring import Measuring, Yardstick, cartpole
from ludus.envs.rocket.rules import TICK_HZ, Control

_LIFT_EVERY = 100  # calls
_POOL = 64  # controls that were drawn before the clock starts


def rocketsim(spec: EnvSpec) -> Yardstick:
    """Makes one arena of RocketSim with random controls; CartPole where the package `rocketsim` is missing.

    Its arena without walls needs no collision meshes; what it does not compute there makes it faster, not slower.
    """
    try:
        import RocketSim  # type: ignore[import-not-found,unused-ignore]  # optional, without types
    except ImportError:
        return cartpole(spec)
    arena: Any = RocketSim.Arena(RocketSim.GameMode.THE_VOID)
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
        if calls % _LIFT_EVERY == 0:
            arena.reset_kickoff()  # there is no floor: back from where everything has fallen to

    name = f"RocketSim {'v'.join(map(str, map(spec.teams.count, (0, 1))))} in free fall, one arena, physics alone"
    return Yardstick(name, step, len(cars), lambda: None)


def _controls(simulator: Any, row: NDArray[np.int64]) -> Any:  # noqa: ANN401 - RocketSim has no types
    """Controls of a row of numbers from -1 to 1; a button is pressed above 0."""
    named = {control.name.lower(): value for control, value in zip(Control, row.tolist(), strict=True)}
    keys = {name: named.pop(name) > 0 for name in ("jump", "boost", "handbrake")}
    return simulator.CarControls(**{name: float(value) for name, value in named.items()}, **keys)


MEASURING = Measuring(rocketsim, agent_steps=True, rewards="dense")
