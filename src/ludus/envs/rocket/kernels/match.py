"""The step kernel of Rocket: one decision of all cars of a game; one thread is one game."""

import warp as wp

from ludus.envs.rocket.kernels.controls import press
from ludus.envs.rocket.kernels.measures import write_measures
from ludus.envs.rocket.kernels.options import PHYSICS
from ludus.envs.rocket.kernels.sight import PadRow
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.kernels.tables import ControlRow, EventRow, MeasureRow, Tables
from ludus.envs.rocket.kernels.tick import play_tick
from ludus.envs.rocket.rules import DT, MAX_CARS, Event

wp.set_module_options(PHYSICS)

_HALF_TICK = 0.5 * DT


@wp.func
def is_terminated(match: Match, rules: Rules) -> bool:
    """Whether the game is over by its rules."""
    if rules.ends_by_goal != 0:
        return match.goal >= 0
    if match.clock_s > _HALF_TICK:
        return False
    over = -match.clock_s > rules.overtime_s - _HALF_TICK and rules.overtime_s > 0.0
    return match.blue_goals != match.orange_goals or rules.overtime == 0 or over


@wp.func
def is_truncated(match: Match, rules: Rules) -> bool:
    """Whether the game is cut off; a match never is."""
    if rules.ends_by_goal == 0 or match.goal >= 0:
        return False
    passed_s = wp.float32(match.tick) * DT
    late = rules.episode_s > 0.0 and passed_s > rules.episode_s - _HALF_TICK
    return late or (rules.no_touch_s > 0.0 and match.untouched_s > rules.no_touch_s - _HALF_TICK)


@wp.func
def write_result(match: Match, events: wp.array[EventRow], rules: Rules):
    """Writes who has won a game that is over."""
    lead = match.blue_goals - match.orange_goals
    for seat in range(rules.blue + rules.orange):
        own = wp.where(seat < rules.blue, lead, -lead)
        events[seat][Event.WINS] = wp.where(own > 0, 1.0, 0.0)
        events[seat][Event.LOSSES] = wp.where(own < 0, 1.0, 0.0)
        events[seat][Event.DRAWS] = wp.where(own == 0, 1.0, 0.0)


@wp.func
def run_clock(match: wp.ref[Match], rules: Rules):
    """Sets the clock after a decision, and notes that a kickoff follows a goal or begins the overtime."""
    before_s = match.clock_s
    length_s = wp.where(rules.ends_by_goal != 0, rules.episode_s, rules.match_s)
    match.clock_s = wp.where(length_s > 0.0, length_s - wp.float32(match.tick) * DT, 0.0)
    overtime_begins = before_s > _HALF_TICK and match.clock_s <= _HALF_TICK
    if rules.ends_by_goal == 0 and (match.goal >= 0 or overtime_begins):
        match.kickoff_due = 1


@wp.func
def end_decision(match: wp.ref[Match], events: wp.array[EventRow], rules: Rules, last_tick: wp.int32) -> wp.int32:
    """Ends a decision; returns 1 if the game is over by its rules, 2 if it is cut off, else 0."""
    match.tick = last_tick
    run_clock(match, rules)
    over = is_terminated(match, rules)
    cut = not over and is_truncated(match, rules)
    if over or cut:
        write_result(match, events, rules)
    return wp.where(over, 1, wp.where(cut, 2, 0))


@wp.kernel
def step_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    controls: wp.array2d[ControlRow],
    tables: Tables,
    rules: Rules,
    events: wp.array2d[EventRow],
    measures: wp.array2d[MeasureRow],
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    first: int,
):
    """Advances one game by one decision and reports what happened.

    Cars are copied into the thread's own memory and back: on a GPU, neighbouring threads then read neighbouring words.
    """
    game = wp.tid() + first
    count = rules.blue + rules.orange
    own = wp.zeros(shape=(MAX_CARS,), dtype=Car)
    for seat in range(count):
        own[seat] = cars[game, seat]
        events[game, seat] = EventRow()
    ball = balls[game]
    match = matches[game]
    match.goal = -1
    match.step += 1
    last_tick = match.tick + rules.ticks
    for tick in range(rules.ticks + 1):
        if tick == rules.delay_ticks:
            for seat in range(count):
                press(own[seat], controls[game, seat])
        if tick < rules.ticks and match.goal < 0:
            play_tick(own, ball, match, pads[game], events[game], tables, rules, game)
    end = end_decision(match, events[game], rules, last_tick)
    terminated[game] = end == 1
    truncated[game] = end == 2
    for seat in range(count):
        write_measures(measures[game, seat], own, seat, ball, match, rules)
        cars[game, seat] = own[seat]
    balls[game] = ball
    matches[game] = match
