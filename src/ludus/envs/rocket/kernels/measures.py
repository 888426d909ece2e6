"""Measures: where things stand for one seat, seen as blue (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.maths import axes, column
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.kernels.tables import MeasureRow
from ludus.envs.rocket.rules import BACK_Y, GOAL_HEIGHT, Measure

_GOAL_Z = 0.5 * GOAL_HEIGHT


@wp.func
def flag(condition: bool) -> wp.float32:
    """1 if the condition holds, else 0."""
    return wp.where(condition, 1.0, 0.0)


@wp.func
def along(velocity: wp.vec3f, way: wp.vec3f) -> wp.float32:
    """Part of a velocity in the direction of `way`; 0 if that has no length."""
    length = wp.length(way)
    return wp.where(length > 1.0e-6, wp.dot(velocity, way) / wp.max(length, 1.0e-6), 0.0)


@wp.func
def write_team(row: wp.ref[MeasureRow], cars: wp.array[Car], seat: wp.int32, ball: Ball, count: wp.int32):
    """Writes how a seat stands among its teammates."""
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
def write_ball(row: wp.ref[MeasureRow], ball: Ball, side: wp.float32):
    """Writes where the ball is and goes."""
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
def write_car(row: wp.ref[MeasureRow], car: Car, ball: Ball, side: wp.float32):
    """Writes where a car is and goes, and how it stands to the ball."""
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
def write_measures(
    row: wp.ref[MeasureRow], cars: wp.array[Car], seat: wp.int32, ball: Ball, match: Match, rules: Rules
):
    """Writes all measures of a seat."""
    team = cars[seat].team
    side = wp.where(team == 0, 1.0, -1.0)
    write_car(row, cars[seat], ball, side)
    write_ball(row, ball, side)
    write_team(row, cars, seat, ball, rules.blue + rules.orange)
    row[Measure.GOAL_DIFFERENCE] = wp.float32(match.blue_goals - match.orange_goals) * side
    row[Measure.CLOCK_S] = match.clock_s
    row[Measure.KICKOFF] = wp.float32(match.kickoff)
    last_team = wp.where(match.last_touch < rules.blue, 0, 1)
    row[Measure.POSSESSION] = flag(match.last_touch >= 0 and last_team == team)
    touched_by = wp.where(match.last_touch < rules.blue, 0, 1)
    row[Measure.POSSESSION] = flag(match.last_touch >= 0 and touched_by == team)
