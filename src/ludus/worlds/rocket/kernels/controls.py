"""Turns the actions of each action space into controls, `(games, seats, 8)`; one thread is one game."""

import warp as wp

from ludus.envs.warp_tools import EXACT
from ludus.worlds.rocket.actions import AXES, TABLE_SIZE
from ludus.worlds.rocket.kernels.structs import Car, ControlRow, Rules, Tables
from ludus.worlds.rocket.rules import CONTROLS, Control

wp.set_module_options(EXACT)


@wp.func
def decoded_continuous(action: ControlRow) -> ControlRow:
    """Return controls of a continuous action: clamped, NaN counts as 0, and a button is pressed above 0."""
    row = ControlRow()
    for axis in range(AXES):
        row[axis] = wp.where(wp.isnan(action[axis]), 0.0, wp.clamp(action[axis], -1.0, 1.0))
    for button in range(AXES, CONTROLS):
        row[button] = wp.where(action[button] > 0.0, 1.0, 0.0)  # NaN is not above 0
    return row


@wp.kernel
def table_kernel(
    actions: wp.array2d[wp.int64], tables: Tables, rules: Rules, controls: wp.array2d[ControlRow], first: int
):
    """Look the actions up; indices outside the table are clamped."""
    game = wp.tid() + first
    for seat in range(rules.blue + rules.orange):
        row = wp.int32(wp.clamp(actions[game, seat], wp.int64(0), wp.int64(TABLE_SIZE - 1)))
        controls[game, seat] = tables.actions[row]


@wp.kernel
def continuous_kernel(actions: wp.array2d[ControlRow], rules: Rules, controls: wp.array2d[ControlRow], first: int):
    """Clamp continuous controls."""
    game = wp.tid() + first
    for seat in range(rules.blue + rules.orange):
        controls[game, seat] = decoded_continuous(actions[game, seat])


@wp.func
def press(car: wp.ref[Car], row: ControlRow):
    """Copy controls into a car."""
    car.throttle = row[Control.THROTTLE]
    car.steer = row[Control.STEER]
    car.pitch = row[Control.PITCH]
    car.yaw = row[Control.YAW]
    car.roll = row[Control.ROLL]
    car.jump = wp.int32(row[Control.JUMP])
    car.boost_key = wp.int32(row[Control.BOOST])
    car.handbrake = wp.int32(row[Control.HANDBRAKE])
