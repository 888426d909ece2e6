"""The kernels of the scripted players: style, then noise, then reaction delay, then the action space.

One thread is one seat of one game.
"""

from enum import IntEnum

import warp as wp

from ludus.envs.rocket.actions import AXES, TABLE_SIZE
from ludus.envs.rocket.kernels.bot_sense import look, look_at_pads
from ludus.envs.rocket.kernels.bot_styles import chaser, goalkeeper, shooter, support
from ludus.envs.rocket.kernels.sight import PadRow
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.kernels.tables import BinRow, ControlRow, Tables
from ludus.envs.rocket.rules import CONTROLS, Stream
from ludus.envs.warp_functions import below, mix, uniform
from ludus.envs.warp_tools import EXACT

wp.set_module_options(EXACT)

MAX_DELAY = 32  # decisions that are remembered
NOISE_STEPS = 3  # noise holds its random controls this long
_LEVELS = 15.0  # steps of an axis on either side of 0 in a remembered decision
_BITS = 5


class Style(IntEnum):
    """How a scripted player decides."""

    IDLE = 0
    RANDOM = 1
    CHASER = 2
    SHOOTER = 3
    GOALKEEPER = 4
    SUPPORT = 5


@wp.struct
class BotSettings:
    """One entry of a roster of bots."""

    style: wp.int32
    delay: wp.int32  # decisions between seeing and acting
    noise: wp.float32  # share of the time in which random controls are held


@wp.func
def chance(rules: Rules, game: int, match: Match, step: int, seat: int, name: int) -> wp.uint32:
    """Hash for one seat of one game."""
    h = mix(rules.seed_hash, wp.uint32(rules.first_game + game))
    h = mix(mix(h, wp.uint32(match.episode)), wp.uint32(step))
    return mix(mix(h, wp.uint32(seat)), wp.uint32(name))


@wp.func
def random_controls(h: wp.uint32, tables: Tables) -> ControlRow:
    """A row of the table of actions, each as likely as any other."""
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
    """Controls of a style that looks at the game."""
    s = look(cars, ball, match, rules, game, seat, style != Style.CHASER)
    if style == Style.CHASER:
        return chaser(s)
    if style == Style.SHOOTER:
        return shooter(s)
    if style == Style.GOALKEEPER:
        return goalkeeper(s)
    look_at_pads(s, pads[game], match.tick, tables, 1.0 - 2.0 * wp.float32(s.car.team))
    return support(s)


@wp.func
def remembered(row: ControlRow) -> wp.int32:
    """Controls in one number, axes to a fifteenth."""
    word = int(0)
    for axis in range(AXES):
        level = wp.int32(wp.floor(wp.clamp(row[axis], -1.0, 1.0) * _LEVELS + 0.5)) + wp.int32(_LEVELS)
        word = word | (level << (_BITS * axis))
    for button in range(AXES, CONTROLS):
        word = word | (wp.where(row[button] > 0.0, 1, 0) << (_BITS * AXES + button - AXES))
    return word


@wp.func
def recalled(word: wp.int32) -> ControlRow:
    """Controls out of the number that `remembered` made of them."""
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
    """Decides the controls of the bot that plays this seat, if one does."""
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
    if bot.style == Style.RANDOM:
        row = random_controls(chance(rules, game, match, match.step, seat, Stream.RANDOM_ACTIONS), tables)
    elif bot.style != Style.IDLE and cars[game, seat].demolished_s <= 0.0:
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
    """Whether a bot of the roster plays a seat."""
    return assignment[game, seat] >= 0 and assignment[game, seat] < bots


@wp.func
def rounded(row: ControlRow) -> wp.int32:
    """A number for the controls with every axis at -1, 0 or 1; see `bots.nearest_actions` for the order."""
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
    """Writes the nearest action of the table for seats that bots play."""
    index = wp.tid() + first
    seats = rules.blue + rules.orange
    game = index / seats
    seat = index % seats
    if is_played(assignment, game, seat, bots):
        actions[game, seat] = nearest[cars[game, seat].on_ground, rounded(controls[game, seat])]


@wp.kernel
def bin_actions_kernel(
    controls: wp.array2d[ControlRow],
    rules: Rules,
    assignment: wp.array2d[wp.int32],
    bots: int,
    actions: wp.array2d[BinRow],
    first: int,
):
    """Writes the nearest bins for seats that bots play."""
    index = wp.tid() + first
    seats = rules.blue + rules.orange
    game = index / seats
    seat = index % seats
    if is_played(assignment, game, seat, bots):
        row = controls[game, seat]
        per_step = 0.5 * wp.float32(rules.bins - 1)
        for axis in range(AXES):
            actions[game, seat][axis] = wp.int64(wp.floor((wp.clamp(row[axis], -1.0, 1.0) + 1.0) * per_step + 0.5))
        for button in range(AXES, CONTROLS):
            actions[game, seat][button] = wp.int64(wp.where(row[button] > 0.0, 1, 0))


@wp.kernel
def continuous_actions_kernel(
    controls: wp.array2d[ControlRow],
    rules: Rules,
    assignment: wp.array2d[wp.int32],
    bots: int,
    actions: wp.array2d[ControlRow],
    first: int,
):
    """Writes the controls as they are for seats that bots play; a button that is up is -1."""
    index = wp.tid() + first
    seats = rules.blue + rules.orange
    game = index / seats
    seat = index % seats
    if is_played(assignment, game, seat, bots):
        row = controls[game, seat]
        for button in range(AXES, CONTROLS):
            row[button] = wp.where(row[button] > 0.0, 1.0, -1.0)
        actions[game, seat] = row
