"""The kernels of the scripted players: style, then noise, then reaction delay, then the action space.

Everything is seen as blue. One thread per seat of a game.
"""

from collections.abc import Callable
from typing import NamedTuple

import warp as wp

from ludus.envs.warp_functions import below, mix, uniform
from ludus.envs.warp_tools import EXACT
from ludus.worlds.rocket.actions import AXES, TABLE_SIZE
from ludus.worlds.rocket.kernels import bot_driving as driving
from ludus.worlds.rocket.kernels.structs import Ball, Car, ControlRow, Match, PadRow, Rules, Tables
from ludus.worlds.rocket.rules import BACK_Y, CONTROLS, GOAL_HALF_WIDTH, GRAVITY, Control, Stream

wp.set_module_options(EXACT)

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

MAX_DELAY = 32  # decisions that are remembered
NOISE_STEPS = 3  # noise holds its random controls this long
_LEVELS = 15.0  # steps of an axis on either side of 0 in a remembered decision
_BITS = 5


@wp.func
def speed_for(s: driving.Sense, place: wp.vec3f) -> float:
    """Return the speed that brings the car to a place when the ball is there."""
    way = driving.flat_length(place - s.car.position)
    return wp.where(
        s.meet_s >= driving.NEVER_S, FULL_SPEED, wp.clamp(way / wp.max(s.meet_s, 0.1) + 150.0, 500.0, FULL_SPEED)
    )


@wp.func
def chaser(s: driving.Sense) -> ControlRow:
    """Drive at the ball with all available boost; around it if the car is on the wrong side."""
    onward = driving.flat_unit(wp.vec3f(0.0, BACK_Y, 0.0) - s.ball.position)
    target = s.ball.position - BEHIND * onward
    if s.car.position[1] > s.ball.position[1] + 50.0:
        side = wp.where(s.car.position[0] > s.ball.position[0], 1.0, -1.0)
        target = s.ball.position + wp.vec3f(side * ROUND, -ROUND, 0.0)
    return driving.go(s, target, FULL_SPEED, True, False)


@wp.func
def strike(s: driving.Sense, aim: wp.vec3f) -> ControlRow:
    """Hit the ball toward a place: circle it until it is in line, then dodge through it."""
    onward = driving.flat_unit(aim - s.meet)
    way = driving.flat_unit(s.meet - s.car.position)
    cosine = wp.dot(way, onward)
    far = driving.flat_length(s.meet - s.car.position)
    if cosine > STRAIGHT or far < 250.0:
        target = s.meet - BEHIND * onward
        return driving.go(s, target, speed_for(s, target), True, True)
    # Not in line yet: to a point behind the ball, the farther the more it has to turn, and around the ball.
    back = wp.clamp(0.6 * far, 300.0, 1400.0)
    target = s.meet - back * onward
    if cosine < 0.0:
        side = wp.where(way[0] * onward[1] - way[1] * onward[0] > 0.0, 1.0, -1.0)
        target = target + wp.vec3f(side * onward[1], -side * onward[0], 0.0) * (-350.0)
    target = wp.vec3f(wp.clamp(target[0], -3900.0, 3900.0), wp.clamp(target[1], -5000.0, 5000.0), 17.0)
    return driving.go(s, target, FULL_SPEED, far > 1200.0, False)


@wp.func
def retreat(s: driving.Sense) -> ControlRow:
    """Return to the own goal, past the ball on the side of the nearer post."""
    x = wp.where(s.ball.position[0] > s.car.position[0], -1.0, 1.0)
    target = wp.vec3f(0.6 * x * GOAL_HALF_WIDTH, -BACK_Y + 300.0, 17.0)
    return driving.go(s, target, FULL_SPEED, True, False)


@wp.func
def shooter(s: driving.Sense) -> ControlRow:
    """Kick off straight, shoot when it is behind the ball and come back when it is not."""
    if s.kickoff != 0:
        return driving.go(s, s.ball.position - wp.vec3f(0.0, 60.0, 0.0), FULL_SPEED, True, True)
    beyond = s.car.position[1] > s.meet[1] + 200.0
    if beyond and s.meet[1] < 3500.0 and driving.flat_length(s.meet - s.car.position) < 4000.0:
        return retreat(s)
    if s.car.position[1] < s.meet[1] and s.meet[1] < -3800.0:
        return clear(s)
    aim = wp.vec3f(wp.clamp(0.4 * s.meet[0], -POST_X, POST_X), BACK_Y + 300.0, 0.0)
    return strike(s, aim)


@wp.func
def clear(s: driving.Sense) -> ControlRow:
    """Hit the ball away from the own goal, to the nearer side."""
    if s.car.position[1] > s.meet[1] + 150.0:
        return retreat(s)
    wide = wp.where(s.meet[0] > 0.0, 1.0, -1.0)
    aim = s.meet + wp.vec3f(wide * 800.0, 1200.0, 0.0)
    onward = driving.flat_unit(aim - s.meet)
    target = s.meet - 60.0 * onward
    return driving.go(s, target, speed_for(s, target), True, True)


@wp.func
def leap(s: driving.Sense, row: ControlRow) -> ControlRow:
    """Jump at a ball that is about to come over the car; twice if it is high."""
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
def goalkeeper(s: driving.Sense) -> ControlRow:
    """Stay between the own goal and the ball and clear what comes; the nearest car kicks off."""
    if s.kickoff != 0 and s.rank == 0:
        return shooter(s)
    near = s.meet[1] < DANGER_Y or (s.ball.position[1] < 0.0 and s.meet_s < s.rival_s - 0.3)
    shot_s = (s.ball.position[1] + BACK_Y) / wp.max(-s.ball.velocity[1], 1.0)
    crossing = s.ball.position[0] + s.ball.velocity[0] * shot_s
    shot = s.ball.velocity[1] < -500.0 and shot_s < 2.0 and wp.abs(crossing) < GOAL_HALF_WIDTH + 300.0
    goal_side = s.car.position[1] < s.meet[1] - 50.0 and s.meet[1] > -BACK_Y + 150.0
    row = ControlRow()
    if (near or shot) and goal_side and s.rank == 0 and s.meet_s < driving.NEVER_S:
        row = clear(s)
    else:
        x = wp.where(shot, crossing, 0.2 * s.ball.position[0])
        if s.rank > 0:  # the other post
            x = wp.where(s.ball.position[0] > 0.0, -1.0, 1.0) * 0.5 * KEEPER_X
        place = wp.vec3f(wp.clamp(x, -KEEPER_X, KEEPER_X), KEEPER_Y, 17.0)
        row = driving.hold_place(s, place, s.ball.position)
    return leap(s, row)


@wp.func
def support(s: driving.Sense) -> ControlRow:
    """Return the second man: takes pads, waits behind the ball, and attacks when the ball is its own."""
    if s.kickoff != 0 and s.rank == 0:
        return shooter(s)
    alone = s.mates == 0 and s.meet_s < s.rival_s + 0.4
    near_goal = s.meet[1] < -3000.0
    if (s.rank == 0 and s.mates > 0) or alone or near_goal:
        return shooter(s)
    if s.car.boost < 70.0 and s.pad_cost < 1500.0:
        return driving.go(s, s.pad, FULL_SPEED, False, False)
    goal = wp.vec3f(0.0, -BACK_Y, 0.0)
    back = driving.flat_unit(goal - s.ball.position)
    place = s.ball.position + SHADOW * back - wp.vec3f(0.3 * s.ball.position[0], 0.0, 0.0)
    place = wp.vec3f(wp.clamp(place[0], -3500.0, 3500.0), wp.max(place[1], -BACK_Y + 500.0), 17.0)
    if driving.may_dodge(s) and s.ball.position[1] > s.car.position[1]:
        return shooter(s)
    return driving.hold_place(s, place, s.ball.position)


class Bot(NamedTuple):
    """A scripted player; a new one is a function above and a line in `BOTS`."""

    name: str
    decide: Callable[..., ControlRow] | None = None  # its style; None for those that the kernel plays itself
    delay: int = 1  # decisions between seeing and acting, unless the name says otherwise
    # Share of the time in which it holds random controls. Without any, two equal bots that start in places that mirror
    # each other would meet in the middle for ever.
    noise: float = 0.02
    foresees: bool = True  # whether it knows where it will meet the ball
    sees_pads: bool = False


# New ones go to the end: networks that classify opponents know bots by their place.
BOTS = (
    Bot("idle", delay=0, noise=0.0),
    Bot("random", delay=0, noise=0.0),
    Bot("chaser", chaser, foresees=False),
    Bot("shooter", shooter),
    Bot("goalkeeper", goalkeeper),
    Bot("support", support, sees_pads=True),
)
IDLE, RANDOM = (next(place for place, bot in enumerate(BOTS) if bot.name == name) for name in ("idle", "random"))
STYLES = tuple((place, bot) for place, bot in enumerate(BOTS) if bot.decide is not None)


@wp.struct
class BotSettings:
    """One entry of a roster of bots."""

    style: wp.int32
    delay: wp.int32  # decisions between seeing and acting
    noise: wp.float32  # share of the time in which random controls are held


@wp.func
def chance(rules: Rules, game: int, match: Match, step: int, seat: int, name: int) -> wp.uint32:
    """Return the hash for one seat of one game."""
    h = mix(rules.seed_hash, wp.uint32(rules.first_game + game))
    h = mix(mix(h, wp.uint32(match.episode)), wp.uint32(step))
    return mix(mix(h, wp.uint32(seat)), wp.uint32(name))


@wp.func
def random_controls(h: wp.uint32, tables: Tables) -> ControlRow:
    """Return a row of the table of actions, each as likely as any other."""
    return tables.actions[below(h, TABLE_SIZE)]


@wp.func
def styled_controls(
    style: int,
    cars: wp.array2d[Car],
    ball: Ball,
    match: Match,
    pads: wp.array[PadRow],
    tables: Tables,
    rules: Rules,
    game: int,
    seat: int,
) -> ControlRow:
    """Return controls of a style that looks at the game."""
    row = ControlRow()
    for place in range(wp.static(len(STYLES))):
        if style == wp.static(STYLES[place][0]):
            s = driving.look(cars, ball, match, rules, game, seat, wp.static(STYLES[place][1].foresees))
            if wp.static(STYLES[place][1].sees_pads):
                driving.look_at_pads(s, pads[game], match.tick, tables, 1.0 - 2.0 * wp.float32(s.car.team))
            row = wp.static(STYLES[place][1].decide)(s)
    return row


@wp.func
def remembered(row: ControlRow) -> int:
    """Pack controls into one integer, axes to a fifteenth."""
    word = int(0)
    for axis in range(AXES):
        level = wp.int32(wp.floor(wp.clamp(row[axis], -1.0, 1.0) * _LEVELS + 0.5)) + wp.int32(_LEVELS)
        word = word | (level << (_BITS * axis))
    for button in range(AXES, CONTROLS):
        word = word | (wp.where(row[button] > 0.0, 1, 0) << (_BITS * AXES + button - AXES))
    return word


@wp.func
def recalled(word: int) -> ControlRow:
    """Unpack the controls that `remembered` packed."""
    row = ControlRow()
    for axis in range(AXES):
        level = (word >> (_BITS * axis)) & ((1 << _BITS) - 1)
        row[axis] = wp.float32(level) * (1.0 / _LEVELS) - 1.0
    for button in range(AXES, CONTROLS):
        row[button] = wp.float32((word >> (_BITS * AXES + button - AXES)) & 1)
    return row


@wp.kernel
def bot_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    tables: Tables,
    rules: Rules,
    roster: wp.array[BotSettings],
    assignment: wp.array2d[wp.int32],
    delayed: wp.array3d[wp.int32],
    controls: wp.array2d[ControlRow],
    first: int,
):
    """Decide the controls of the bot that plays this seat, if one does."""
    index = wp.tid() + first
    seats = rules.blue + rules.orange
    game = index / seats
    seat = index % seats
    entry = assignment[game, seat]
    if entry < 0 or entry >= roster.shape[0]:
        return
    bot = roster[entry]
    match = matches[game]
    row = ControlRow()
    if bot.style == RANDOM:
        row = random_controls(chance(rules, game, match, match.step, seat, Stream.RANDOM_ACTIONS), tables)
    elif bot.style != IDLE and cars[game, seat].demolished_s <= 0.0:
        row = styled_controls(bot.style, cars, balls[game], match, pads, tables, rules, game, seat)
    if bot.noise > 0.0:
        h = chance(rules, game, match, match.step / NOISE_STEPS, seat, Stream.BOTS)
        if uniform(h) < bot.noise:
            row = random_controls(mix(h, wp.uint32(1)), tables)
    if bot.delay > 0:
        delayed[game, seat, match.step % MAX_DELAY] = remembered(row)
        row = ControlRow()
        if match.step >= bot.delay:
            row = recalled(delayed[game, seat, (match.step - bot.delay) % MAX_DELAY])
    controls[game, seat] = row


@wp.func
def is_played(assignment: wp.array2d[wp.int32], game: int, seat: int, bots: int) -> bool:
    """Return whether a bot of the roster plays a seat."""
    return assignment[game, seat] >= 0 and assignment[game, seat] < bots


@wp.func
def rounded(row: ControlRow) -> int:
    """Return a number for the controls with every axis at -1, 0 or 1; see `bots.nearest_actions` for the order."""
    code = int(0)
    for axis in range(AXES):
        code = 3 * code + wp.where(row[axis] > 0.5, 2, wp.where(row[axis] < -0.5, 0, 1))
    for button in range(AXES, CONTROLS):
        code = 2 * code + wp.where(row[button] > 0.0, 1, 0)
    return code


@wp.kernel
def table_actions_kernel(
    cars: wp.array2d[Car],
    controls: wp.array2d[ControlRow],
    nearest: wp.array2d[wp.int64],
    rules: Rules,
    assignment: wp.array2d[wp.int32],
    bots: int,
    actions: wp.array2d[wp.int64],
    first: int,
):
    """Write the nearest action of the table for seats that bots play."""
    index = wp.tid() + first
    seats = rules.blue + rules.orange
    game = index / seats
    seat = index % seats
    if is_played(assignment, game, seat, bots):
        actions[game, seat] = nearest[cars[game, seat].on_ground, rounded(controls[game, seat])]


@wp.kernel
def continuous_actions_kernel(
    controls: wp.array2d[ControlRow],
    rules: Rules,
    assignment: wp.array2d[wp.int32],
    bots: int,
    actions: wp.array2d[ControlRow],
    first: int,
):
    """Write the controls as they are for seats that bots play; a button that is up is -1."""
    index = wp.tid() + first
    seats = rules.blue + rules.orange
    game = index / seats
    seat = index % seats
    if is_played(assignment, game, seat, bots):
        row = controls[game, seat]
        for button in range(AXES, CONTROLS):
            row[button] = wp.where(row[button] > 0.0, 1.0, -1.0)
        actions[game, seat] = row
