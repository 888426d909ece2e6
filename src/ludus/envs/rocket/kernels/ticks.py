"""A decision in several kernels, for GPUs; the same functions in the same order as in `match.step_kernel`.

In most games nobody comes near anybody else during a decision. There the ball plays all its ticks in one thread and
every car in another. In the others, in each tick first every car drives by itself, then the game goes on. What comes of
it are the same bits. Cars and games are taken in an order of their own (`likeness`): threads that run in step then
compute alike.
"""

import warp as wp

from ludus.envs.rocket.kernels.controls import press
from ludus.envs.rocket.kernels.match import end_decision
from ludus.envs.rocket.kernels.measures import write_measures
from ludus.envs.rocket.kernels.options import PHYSICS
from ludus.envs.rocket.kernels.sight import PadRow
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.kernels.tables import ControlRow, EventRow, MeasureRow, Tables
from ludus.envs.rocket.kernels.tick import drive, drive_alone, play_alone, play_rest

wp.set_module_options(PHYSICS)


@wp.kernel
def ball_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    meets: wp.array[wp.uint8],
    rules: Rules,
    events: wp.array2d[EventRow],
    last_ticks: wp.array[wp.int32],
    first: int,
):
    """Begins a decision of one game, whose events must be 0, and plays its ball to the end where nobody meets it."""
    game = wp.tid() + first
    match = matches[game]
    match.goal = -1
    match.step += 1
    last_tick = match.tick + rules.ticks
    last_ticks[game] = last_tick
    if wp.int32(meets[game]) == 0:
        ball = balls[game]
        while match.tick < last_tick and match.goal < 0:
            play_alone(cars[game], ball, match, events[game], rules)
        balls[game] = ball
    matches[game] = match


@wp.kernel
def alone_kernel(
    cars: wp.array2d[Car],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    meets: wp.array[wp.uint8],
    controls: wp.array2d[ControlRow],
    order: wp.array[wp.int64],
    tables: Tables,
    rules: Rules,
    events: wp.array2d[EventRow],
    last_ticks: wp.array[wp.int32],
    first: int,
):
    """Lets one car drive to the end of the decision, or to the goal that ends it, if it can meet nobody."""
    seats = rules.blue + rules.orange
    place = wp.int32(order[wp.tid() + first])
    game = place / seats
    seat = place - game * seats
    if wp.int32(meets[game]) != 0:
        return
    before = last_ticks[game] - rules.ticks
    played = matches[game].tick - before  # the ball has played already
    car = cars[game, seat]
    for tick in range(rules.ticks):
        if tick == rules.delay_ticks:
            press(car, controls[game, seat])
        if tick < played:
            drive_alone(car, pads[game], before + tick + 1, tables, rules, events[game, seat])
    cars[game, seat] = car


@wp.kernel
def drive_kernel(
    cars: wp.array2d[Car],
    matches: wp.array[Match],
    meets: wp.array[wp.uint8],
    controls: wp.array2d[ControlRow],
    order: wp.array[wp.int64],
    rules: Rules,
    events: wp.array2d[EventRow],
    tick: wp.int32,
    first: int,
):
    """Lets one car that can meet others drive for a tick, unless a goal has ended its game's decision."""
    seats = rules.blue + rules.orange
    place = wp.int32(order[order.shape[0] - 1 - (wp.tid() + first)])  # they come last
    game = place / seats
    seat = place - game * seats
    presses = tick == rules.delay_ticks
    if wp.int32(meets[game]) == 0 or (not presses and matches[game].goal >= 0):
        return
    car = cars[game, seat]
    if presses:
        press(car, controls[game, seat])
    if car.demolished_s <= 0.0 and matches[game].goal < 0:
        drive(car, rules, events[game, seat])
    cars[game, seat] = car


@wp.kernel
def rest_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    meets: wp.array[wp.uint8],
    order: wp.array[wp.int64],
    tables: Tables,
    rules: Rules,
    events: wp.array2d[EventRow],
    first: int,
):
    """Plays the rest of a tick of one game in which somebody can meet others."""
    game = wp.int32(order[order.shape[0] - 1 - (wp.tid() + first)])  # they come last
    if wp.int32(meets[game]) == 0 or matches[game].goal >= 0:
        return
    ball = balls[game]
    match = matches[game]
    play_rest(cars[game], ball, match, pads[game], events[game], tables, rules, game)
    balls[game] = ball
    matches[game] = match


@wp.kernel
def end_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    controls: wp.array2d[ControlRow],
    rules: Rules,
    events: wp.array2d[EventRow],
    last_ticks: wp.array[wp.int32],
    measures: wp.array2d[MeasureRow],
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    first: int,
):
    """Ends a decision of one game and reports where things stand."""
    game = wp.tid() + first
    match = matches[game]
    end = end_decision(match, events[game], rules, last_ticks[game])
    terminated[game] = end == 1
    truncated[game] = end == 2
    for seat in range(rules.blue + rules.orange):
        if rules.delay_ticks >= rules.ticks:
            press(cars[game, seat], controls[game, seat])
        write_measures(measures[game, seat], cars[game], seat, balls[game], match, rules)
    matches[game] = match
