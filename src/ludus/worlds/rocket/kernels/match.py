"""The step kernel of Rocket: one decision of all cars of a game, and the state metrics; one thread per game."""

import warp as wp

from ludus.worlds.rocket.kernels import structs
from ludus.worlds.rocket.kernels.controls import press
from ludus.worlds.rocket.kernels.maths import axes, column
from ludus.worlds.rocket.kernels.structs import Ball, Car, EventRow, Match, MeasureRow, Rules
from ludus.worlds.rocket.kernels.tick import play_tick
from ludus.worlds.rocket.rules import BACK_Y, DT, GOAL_HEIGHT, MAX_CARS, Event, Measure

wp.set_module_options(structs.PHYSICS)

_GOAL_Z = 0.5 * GOAL_HEIGHT

_HALF_TICK = 0.5 * DT


@wp.func
def flag(condition: bool) -> float:
    """Return 1 if the condition holds, else 0."""
    return wp.where(condition, 1.0, 0.0)


@wp.func
def along(velocity: wp.vec3f, way: wp.vec3f) -> float:
    """Return the part of a velocity in the direction of `way`; 0 if that has no length."""
    length = wp.length(way)
    return wp.where(length > 1.0e-6, wp.dot(velocity, way) / wp.max(length, 1.0e-6), 0.0)


@wp.func
def write_team(row: wp.ref[MeasureRow], cars: wp.array[Car], seat: int, ball: Ball, count: int):
    """Write a seat's rank and distance among its teammates."""
    own_sq = wp.length_sq(ball.position - cars[seat].position)
    rank = float(0.0)
    nearest_sq = float(1.0e12)
    for other in range(count):
        if other != seat and cars[other].team == cars[seat].team:
            to_ball_sq = wp.length_sq(ball.position - cars[other].position)
            rank += flag(to_ball_sq < own_sq or (to_ball_sq == own_sq and other < seat))
            nearest_sq = wp.min(nearest_sq, wp.length_sq(cars[other].position - cars[seat].position))
    row[Measure.TEAM_RANK] = rank
    row[Measure.TEAMMATE_DISTANCE] = wp.where(nearest_sq < 1.0e12, wp.sqrt(nearest_sq), 0.0)


@wp.func
def write_ball(row: wp.ref[MeasureRow], ball: Ball, side: float):
    """Write position and velocity of the ball."""
    v = ball.velocity
    row[Measure.BALL_X] = ball.position[0] * side
    row[Measure.BALL_Y] = ball.position[1] * side
    row[Measure.BALL_Z] = ball.position[2]
    row[Measure.BALL_VX] = v[0] * side
    row[Measure.BALL_VY] = v[1] * side
    row[Measure.BALL_VZ] = v[2]
    row[Measure.BALL_SPEED] = wp.length(v)
    goal = wp.vec3f(0.0, BACK_Y * side, _GOAL_Z)
    own_goal = wp.vec3f(0.0, -BACK_Y * side, _GOAL_Z)
    row[Measure.BALL_SPEED_TO_GOAL] = along(v, goal - ball.position)
    row[Measure.BALL_SPEED_TO_OWN_GOAL] = along(v, own_goal - ball.position)


@wp.func
def write_car(row: wp.ref[MeasureRow], car: Car, ball: Ball, side: float):
    """Write position and velocity of a car, and its relation to the ball."""
    row[Measure.X] = car.position[0] * side
    row[Measure.Y] = car.position[1] * side
    row[Measure.Z] = car.position[2]
    row[Measure.VX] = car.velocity[0] * side
    row[Measure.VY] = car.velocity[1] * side
    row[Measure.VZ] = car.velocity[2]
    row[Measure.SPEED] = wp.length(car.velocity)
    row[Measure.BOOST] = car.boost
    row[Measure.ON_GROUND] = wp.float32(car.on_ground)
    row[Measure.SUPERSONIC] = wp.float32(car.supersonic)
    row[Measure.DEMOLISHED] = flag(car.demolished_s > 0.0)
    row[Measure.SINCE_TOUCH_S] = car.since_touch_s
    way = ball.position - car.position
    distance = wp.length(way)
    per_distance = wp.where(distance > 1.0e-6, 1.0 / wp.max(distance, 1.0e-6), 0.0)
    row[Measure.BALL_DISTANCE] = distance
    row[Measure.SPEED_TO_BALL] = wp.dot(car.velocity, way) * per_distance
    row[Measure.FACING_BALL] = wp.dot(column(axes(car.rotation), 0), way) * per_distance
    own_goal = wp.vec3f(0.0, -BACK_Y * side, _GOAL_Z)
    to_ball = ball.position - own_goal
    row[Measure.BETWEEN] = along(to_ball, car.position - own_goal) / wp.max(wp.length(to_ball), 1.0e-6)


@wp.func
def write_measures(row: wp.ref[MeasureRow], cars: wp.array[Car], seat: int, ball: Ball, match: Match, rules: Rules):
    """Write all state metrics of a seat."""
    team = cars[seat].team
    side = wp.where(team == 0, 1.0, -1.0)
    write_car(row, cars[seat], ball, side)
    write_ball(row, ball, side)
    write_team(row, cars, seat, ball, rules.blue + rules.orange)
    row[Measure.GOAL_DIFFERENCE] = wp.float32(match.blue_goals - match.orange_goals) * side
    row[Measure.CLOCK_S] = match.clock_s
    row[Measure.KICKOFF] = wp.float32(match.kickoff)
    touched_by = wp.where(match.last_touch < rules.blue, 0, 1)
    row[Measure.POSSESSION] = flag(match.last_touch >= 0 and touched_by == team)


@wp.func
def is_terminated(match: Match, rules: Rules) -> bool:
    """Return whether the game is over by its rules."""
    if rules.ends_by_goal != 0:
        return match.goal >= 0
    if match.clock_s > _HALF_TICK:
        return False
    over = -match.clock_s > rules.overtime_s - _HALF_TICK and rules.overtime_s > 0.0
    return match.blue_goals != match.orange_goals or rules.overtime == 0 or over


@wp.func
def is_truncated(match: Match, rules: Rules) -> bool:
    """Return whether the game is cut off; a match never is."""
    if rules.ends_by_goal == 0 or match.goal >= 0:
        return False
    passed_s = wp.float32(match.tick) * DT
    late = rules.episode_s > 0.0 and passed_s > rules.episode_s - _HALF_TICK
    return late or (rules.no_touch_s > 0.0 and match.untouched_s > rules.no_touch_s - _HALF_TICK)


@wp.func
def write_result(match: Match, events: wp.array[EventRow], rules: Rules):
    """Write wins, losses and draws of a game that is over."""
    lead = match.blue_goals - match.orange_goals
    for seat in range(rules.blue + rules.orange):
        own = wp.where(seat < rules.blue, lead, -lead)
        events[seat][Event.WINS] = wp.where(own > 0, 1.0, 0.0)
        events[seat][Event.LOSSES] = wp.where(own < 0, 1.0, 0.0)
        events[seat][Event.DRAWS] = wp.where(own == 0, 1.0, 0.0)


@wp.func
def run_clock(match: wp.ref[Match], rules: Rules):
    """Set the clock after a decision; a kickoff is due after a goal and at the start of overtime."""
    before_s = match.clock_s
    length_s = wp.where(rules.ends_by_goal != 0, rules.episode_s, rules.match_s)
    match.clock_s = wp.where(length_s > 0.0, length_s - wp.float32(match.tick) * DT, 0.0)
    overtime_begins = before_s > _HALF_TICK and match.clock_s <= _HALF_TICK
    if rules.ends_by_goal == 0 and (match.goal >= 0 or overtime_begins):
        match.kickoff_due = 1


@wp.func
def end_decision(match: wp.ref[Match], events: wp.array[EventRow], rules: Rules, last_tick: int) -> int:
    """End a decision; return 1 if the game is over by its rules, 2 if it is cut off, else 0."""
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
    pads: wp.array[structs.PadRow],
    controls: wp.array2d[structs.ControlRow],
    tables: structs.Tables,
    rules: Rules,
    events: wp.array2d[EventRow],
    state_metrics: wp.array2d[MeasureRow],
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    first: int,
):
    """Advance one game by one decision and report what happened.

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
        write_measures(state_metrics[game, seat], own, seat, ball, match, rules)
        cars[game, seat] = own[seat]
    balls[game] = ball
    matches[game] = match
