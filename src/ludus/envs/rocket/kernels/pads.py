"""Boost pads: who takes one (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.maths import axes
from ludus.envs.rocket.kernels.sight import PadRow
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.kernels.tables import EventRow, Tables
from ludus.envs.rocket.layout import (
    BIG,
    PAD_BOX_TOP_Z,
    PAD_CELL,
    PAD_CELLS_X,
    PAD_CELLS_Y,
    PAD_TOP_Z,
    SMALL,
)
from ludus.envs.rocket.rules import (
    BOOST_MAX,
    HULL_HALF_X,
    HULL_HALF_Y,
    HULL_HALF_Z,
    HULL_OFFSET_X,
    HULL_OFFSET_Z,
    TICK_HZ,
    Event,
)

_PER_CELL = 1.0 / PAD_CELL
_BIG_HALF = BIG.box_half
_SMALL_HALF = SMALL.box_half
_BIG_BOOST = BIG.boost
_SMALL_BOOST = SMALL.boost
_BIG_TICKS = round(BIG.back_s * TICK_HZ)
_SMALL_TICKS = round(SMALL.back_s * TICK_HZ)


@wp.func
def touches_box(car: Car, pad: wp.vec4f) -> bool:
    """Whether the upright box around a car's hull meets the box of a pad."""
    half = wp.where(pad[3] > 0.0, _BIG_HALF, _SMALL_HALF)
    m = axes(car.rotation)
    middle_x = car.position[0] + m[0, 0] * HULL_OFFSET_X + m[0, 2] * HULL_OFFSET_Z
    middle_y = car.position[1] + m[1, 0] * HULL_OFFSET_X + m[1, 2] * HULL_OFFSET_Z
    middle_z = car.position[2] + m[2, 0] * HULL_OFFSET_X + m[2, 2] * HULL_OFFSET_Z
    reach_x = wp.abs(m[0, 0]) * HULL_HALF_X + wp.abs(m[0, 1]) * HULL_HALF_Y + wp.abs(m[0, 2]) * HULL_HALF_Z
    reach_y = wp.abs(m[1, 0]) * HULL_HALF_X + wp.abs(m[1, 1]) * HULL_HALF_Y + wp.abs(m[1, 2]) * HULL_HALF_Z
    reach_z = wp.abs(m[2, 0]) * HULL_HALF_X + wp.abs(m[2, 1]) * HULL_HALF_Y + wp.abs(m[2, 2]) * HULL_HALF_Z
    across = wp.abs(middle_x - pad[0]) < half + reach_x and wp.abs(middle_y - pad[1]) < half + reach_y
    return across and middle_z - reach_z < PAD_BOX_TOP_Z


@wp.func
def pad_below(car: Car, tables: Tables) -> wp.int32:
    """The pad in whose cylinder the middle of a car is, -1 none."""
    if car.position[2] > PAD_TOP_Z:
        return -1
    column = wp.clamp(wp.int32(wp.floor(car.position[0] * _PER_CELL)) + PAD_CELLS_X / 2, 0, PAD_CELLS_X - 1)
    row = wp.clamp(wp.int32(wp.floor(car.position[1] * _PER_CELL)) + PAD_CELLS_Y / 2, 0, PAD_CELLS_Y - 1)
    index = tables.pad_grid[column, row]
    if index >= 0:
        pad = tables.pads[index]
        dx = car.position[0] - pad[0]
        dy = car.position[1] - pad[1]
        if dx * dx + dy * dy < pad[2]:
            return index
    return -1


@wp.func
def take_pad(car: wp.ref[Car], pads: wp.ref[PadRow], tick: wp.int32, tables: Tables, events: wp.ref[EventRow]):
    """Gives a car the boost of the pad that it is in, if the pad is there and the car has room for it.

    A car is in a pad when its middle comes into the pad's cylinder, until its hull leaves the pad's box.
    """
    if car.inside_pad >= 0:  # noqa: SIM102 - Warp evaluates both sides of an `and`
        if not touches_box(car, tables.pads[car.inside_pad]):
            car.inside_pad = -1
    if car.inside_pad < 0:
        car.inside_pad = pad_below(car, tables)
    if car.inside_pad < 0 or car.boost >= BOOST_MAX:
        return
    if tick < pads[car.inside_pad]:
        return
    is_big = tables.pads[car.inside_pad][3] > 0.0
    gained = wp.min(wp.where(is_big, _BIG_BOOST, _SMALL_BOOST), BOOST_MAX - car.boost)
    car.boost += gained
    pads[car.inside_pad] = tick + wp.where(is_big, _BIG_TICKS, _SMALL_TICKS)
    events[Event.BOOST_GAINED] += gained
    if is_big:
        events[Event.BIG_PADS] += 1.0
    else:
        events[Event.SMALL_PADS] += 1.0
