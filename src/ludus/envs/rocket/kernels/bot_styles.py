"""How each style of scripted player decides; everything is seen as blue (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.bot_driving import go, hold_place, may_dodge
from ludus.envs.rocket.kernels.bot_sense import NEVER_S, Sense, flat_length, flat_unit
from ludus.envs.rocket.kernels.tables import ControlRow
from ludus.envs.rocket.rules import BACK_Y, GOAL_HALF_WIDTH, GRAVITY, Control

FULL_SPEED = 2300.0
POST_X = GOAL_HALF_WIDTH - 250.0  # where a shot aims at most
ROUND = 220.0  # and how far beside it a chaser passes it
BEHIND = 90.0  # how far behind the middle of the ball a shot aims
STRAIGHT = 0.8  # cosine between the way to the ball and on to the goal from which a shot goes straight
KEEPER_Y = -BACK_Y + 250.0
KEEPER_X = 750.0
LEAP_S = 0.35  # before the ball arrives
DANGER_Y = -2200.0  # a ball that is met behind this is the keeper's
SHADOW = 2500.0  # how far behind the ball a second man waits


@wp.func
def speed_for(s: Sense, place: wp.vec3f) -> wp.float32:
    """The speed that brings the car to a place when the ball is there."""
    way = flat_length(place - s.car.position)
    return wp.where(s.meet_s >= NEVER_S, FULL_SPEED, wp.clamp(way / wp.max(s.meet_s, 0.1) + 150.0, 500.0, FULL_SPEED))


@wp.func
def chaser(s: Sense) -> ControlRow:
    """Drives at the ball, wherever it is, with all the boost that it has; around it if it comes from the wrong side."""
    onward = flat_unit(wp.vec3f(0.0, BACK_Y, 0.0) - s.ball.position)
    target = s.ball.position - BEHIND * onward
    if s.car.position[1] > s.ball.position[1] + 50.0:
        side = wp.where(s.car.position[0] > s.ball.position[0], 1.0, -1.0)
        target = s.ball.position + wp.vec3f(side * ROUND, -ROUND, 0.0)
    return go(s, target, FULL_SPEED, True, False)


@wp.func
def strike(s: Sense, aim: wp.vec3f) -> ControlRow:
    """Hits the ball toward a place: goes round it until it lies on the way there, then through it with a dodge."""
    onward = flat_unit(aim - s.meet)
    way = flat_unit(s.meet - s.car.position)
    cosine = wp.dot(way, onward)
    far = flat_length(s.meet - s.car.position)
    if cosine > STRAIGHT or far < 250.0:
        target = s.meet - BEHIND * onward
        return go(s, target, speed_for(s, target), True, True)
    # Not in line yet: to a point behind the ball, the farther the more it has to turn, and around the ball.
    back = wp.clamp(0.6 * far, 300.0, 1400.0)
    target = s.meet - back * onward
    if cosine < 0.0:
        side = wp.where(way[0] * onward[1] - way[1] * onward[0] > 0.0, 1.0, -1.0)
        target = target + wp.vec3f(side * onward[1], -side * onward[0], 0.0) * (-350.0)
    target = wp.vec3f(wp.clamp(target[0], -3900.0, 3900.0), wp.clamp(target[1], -5000.0, 5000.0), 17.0)
    return go(s, target, FULL_SPEED, far > 1200.0, False)


@wp.func
def retreat(s: Sense) -> ControlRow:
    """Back to the own goal, past the ball on the side of the nearer post."""
    x = wp.where(s.ball.position[0] > s.car.position[0], -1.0, 1.0)
    target = wp.vec3f(0.6 * x * GOAL_HALF_WIDTH, -BACK_Y + 300.0, 17.0)
    return go(s, target, FULL_SPEED, True, False)


@wp.func
def shooter(s: Sense) -> ControlRow:
    """Kicks off straight, shoots when it is behind the ball and comes back when it is not."""
    if s.kickoff != 0:
        return go(s, s.ball.position - wp.vec3f(0.0, 60.0, 0.0), FULL_SPEED, True, True)
    beyond = s.car.position[1] > s.meet[1] + 200.0
    if beyond and s.meet[1] < 3500.0 and flat_length(s.meet - s.car.position) < 4000.0:
        return retreat(s)
    if s.car.position[1] < s.meet[1] and s.meet[1] < -3800.0:
        return clear(s)
    aim = wp.vec3f(wp.clamp(0.4 * s.meet[0], -POST_X, POST_X), BACK_Y + 300.0, 0.0)
    return strike(s, aim)


@wp.func
def clear(s: Sense) -> ControlRow:
    """Hits the ball away from the own goal, to the nearer side."""
    if s.car.position[1] > s.meet[1] + 150.0:
        return retreat(s)
    wide = wp.where(s.meet[0] > 0.0, 1.0, -1.0)
    aim = s.meet + wp.vec3f(wide * 800.0, 1200.0, 0.0)
    onward = flat_unit(aim - s.meet)
    target = s.meet - 60.0 * onward
    return go(s, target, speed_for(s, target), True, True)


@wp.func
def leap(s: Sense, row: ControlRow) -> ControlRow:
    """Jumps at a ball that is about to come over the car; twice if it is high."""
    arrival_s = (s.ball.position[1] - s.car.position[1] - 120.0) / wp.max(-s.ball.velocity[1], 1.0)
    x = s.ball.position[0] + s.ball.velocity[0] * arrival_s
    z = s.ball.position[2] + (s.ball.velocity[2] + 0.5 * GRAVITY * arrival_s) * arrival_s
    comes = s.ball.velocity[1] < -300.0 and arrival_s > 0.0 and wp.abs(x - s.car.position[0]) < 260.0
    result = row
    if comes and z > 170.0 and z < 560.0:
        if s.car.on_ground != 0 and arrival_s < LEAP_S + wp.where(z > 350.0, 0.25, 0.0):
            result[Control.JUMP] = 1.0
        elif s.car.jumping != 0:
            result = ControlRow()
            result[Control.JUMP] = 1.0
        elif s.car.on_ground == 0 and z > s.car.position[2] + 60.0:
            result = ControlRow()  # without a direction a second press is a second jump
            result[Control.JUMP] = wp.where(s.car.jump_before == 0, 1.0, 0.0)
    return result


@wp.func
def goalkeeper(s: Sense) -> ControlRow:
    """Stays in front of the own goal, between it and the ball, and clears what comes; the nearest kicks off."""
    if s.kickoff != 0 and s.rank == 0:
        return shooter(s)
    near = s.meet[1] < DANGER_Y or (s.ball.position[1] < 0.0 and s.meet_s < s.rival_s - 0.3)
    shot_s = (s.ball.position[1] + BACK_Y) / wp.max(-s.ball.velocity[1], 1.0)
    crossing = s.ball.position[0] + s.ball.velocity[0] * shot_s
    shot = s.ball.velocity[1] < -500.0 and shot_s < 2.0 and wp.abs(crossing) < GOAL_HALF_WIDTH + 300.0
    goal_side = s.car.position[1] < s.meet[1] - 50.0 and s.meet[1] > -BACK_Y + 150.0
    row = ControlRow()
    if (near or shot) and goal_side and s.rank == 0 and s.meet_s < NEVER_S:
        row = clear(s)
    else:
        x = wp.where(shot, crossing, 0.2 * s.ball.position[0])
        if s.rank > 0:  # the other post
            x = wp.where(s.ball.position[0] > 0.0, -1.0, 1.0) * 0.5 * KEEPER_X
        place = wp.vec3f(wp.clamp(x, -KEEPER_X, KEEPER_X), KEEPER_Y, 17.0)
        row = hold_place(s, place, s.ball.position)
    return leap(s, row)


@wp.func
def support(s: Sense) -> ControlRow:
    """The second man: takes pads, waits behind the ball, and attacks when the ball is its own."""
    if s.kickoff != 0 and s.rank == 0:
        return shooter(s)
    alone = s.mates == 0 and s.meet_s < s.rival_s + 0.4
    near_goal = s.meet[1] < -3000.0
    if (s.rank == 0 and s.mates > 0) or alone or near_goal:
        return shooter(s)
    if s.car.boost < 70.0 and s.pad_cost < 1500.0:
        return go(s, s.pad, FULL_SPEED, False, False)
    goal = wp.vec3f(0.0, -BACK_Y, 0.0)
    back = flat_unit(goal - s.ball.position)
    place = s.ball.position + SHADOW * back - wp.vec3f(0.3 * s.ball.position[0], 0.0, 0.0)
    place = wp.vec3f(wp.clamp(place[0], -3500.0, 3500.0), wp.max(place[1], -BACK_Y + 500.0), 17.0)
    if may_dodge(s) and s.ball.position[1] > s.car.position[1]:
        return shooter(s)
    return hold_place(s, place, s.ball.position)
