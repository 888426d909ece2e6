"""A decision as several kernels, for GPUs: the same functions in the same order as in `match.step_kernel`, to the bit.

In most games no contact is possible during a decision. There the ball plays all its ticks in one thread and every car
in another. In the other games each tick has two kernels: first every car drives by itself, then the rest of the tick
follows. Cars and games are sorted by `gpu_sort`, so that the threads of a warp take the same code path.
"""

import warp as wp

from ludus.worlds.rocket.kernels import structs
from ludus.worlds.rocket.kernels.controls import press
from ludus.worlds.rocket.kernels.match import end_decision, write_measures
from ludus.worlds.rocket.kernels.tick import drive, drive_alone, play_alone, play_rest

wp.set_module_options(structs.PHYSICS)


@wp.kernel
def ball_kernel(
    cars: wp.array2d[structs.Car],
    balls: wp.array[structs.Ball],
    matches: wp.array[structs.Match],
    meets: wp.array[wp.uint8],
    rules: structs.Rules,
    events: wp.array2d[structs.EventRow],
    last_ticks: wp.array[wp.int32],
    first: int,
):
    """Begin a decision of one game, whose events must be 0, and play its ball to the end where nobody meets it."""
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
    cars: wp.array2d[structs.Car],
    matches: wp.array[structs.Match],
    pads: wp.array[structs.PadRow],
    meets: wp.array[wp.uint8],
    controls: wp.array2d[structs.ControlRow],
    order: wp.array[wp.int64],
    tables: structs.Tables,
    rules: structs.Rules,
    events: wp.array2d[structs.EventRow],
    last_ticks: wp.array[wp.int32],
    first: int,
):
    """Drive one car to the end of the decision, or to the goal that ends it, if it can meet nobody."""
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
    cars: wp.array2d[structs.Car],
    matches: wp.array[structs.Match],
    meets: wp.array[wp.uint8],
    controls: wp.array2d[structs.ControlRow],
    order: wp.array[wp.int64],
    rules: structs.Rules,
    events: wp.array2d[structs.EventRow],
    tick: int,
    first: int,
):
    """Drive one car that can meet others for a tick, unless a goal has ended its game's decision."""
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
    cars: wp.array2d[structs.Car],
    balls: wp.array[structs.Ball],
    matches: wp.array[structs.Match],
    pads: wp.array[structs.PadRow],
    meets: wp.array[wp.uint8],
    order: wp.array[wp.int64],
    tables: structs.Tables,
    rules: structs.Rules,
    events: wp.array2d[structs.EventRow],
    first: int,
):
    """Play the rest of a tick of one game in which cars or balls can meet."""
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
    cars: wp.array2d[structs.Car],
    balls: wp.array[structs.Ball],
    matches: wp.array[structs.Match],
    controls: wp.array2d[structs.ControlRow],
    rules: structs.Rules,
    events: wp.array2d[structs.EventRow],
    last_ticks: wp.array[wp.int32],
    state_metrics: wp.array2d[structs.MeasureRow],
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    first: int,
):
    """End a decision of one game and write its state metrics."""
    game = wp.tid() + first
    match = matches[game]
    end = end_decision(match, events[game], rules, last_ticks[game])
    terminated[game] = end == 1
    truncated[game] = end == 2
    for seat in range(rules.blue + rules.orange):
        if rules.delay_ticks >= rules.ticks:
            press(cars[game, seat], controls[game, seat])
        write_measures(state_metrics[game, seat], cars[game], seat, balls[game], match, rules)
    matches[game] = match
