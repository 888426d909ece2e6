"""The kernels of Roshambo: step, restart and observe; one thread per game."""

import warp as wp

from ludus.envs.warp_tools import EXACT
from ludus.worlds.roshambo.kernels.structs import Match, Rules
from ludus.worlds.roshambo.rules import OPPONENT, OWN, PAIR, SIZE

wp.set_module_options(EXACT)

Row = wp.types.vector(length=SIZE, dtype=wp.float32)


@wp.func
def as_throw(action: wp.int64) -> int:
    """Return an action as 0 rock, 1 paper or 2 scissors, whatever number it is."""
    return (wp.int32(action % wp.int64(3)) + 3) % 3


@wp.func
def throw_of(code: int, seat: int) -> int:
    """Return a seat's throw from the history's code, which holds that of seat 0 in bits 2-3, of seat 1 in bits 0-1."""
    return (code >> (2 - 2 * seat)) & 3


@wp.func
def observation(match: Match, last: int, seat: int, rules: Rules) -> Row:
    """Return what a seat sees; `last` is the history's code of the last throw."""
    row = Row()
    row[0] = wp.float32(match.frame) * rules.per_throw
    row[1] = wp.float32(match.lead) * rules.per_throw * wp.float32(1 - 2 * seat)
    if match.frame > 0:
        own = throw_of(last, seat)
        opponent = throw_of(last, 1 - seat)
        row[OWN + own] = 1.0
        row[OPPONENT + opponent] = 1.0
        row[PAIR + 3 * own + opponent] = 1.0
    return row


@wp.kernel
def step_kernel(
    matches: wp.array[Match],
    history: wp.array2d[wp.int8],
    actions: wp.array2d[wp.int64],
    rules: Rules,
    rewards: wp.array2d[wp.float32],
    leads: wp.array2d[wp.float32],
    terminated: wp.array[wp.bool],
    final: wp.array2d[Row],
    out: wp.array2d[Row],
    first: int,
):
    """Play one throw of a game, restart it if that was the last one, and observe."""
    game = wp.tid() + first
    match = matches[game]
    a = as_throw(actions[game, 0])
    b = as_throw(actions[game, 1])
    difference = (a - b + 3) % 3  # 1: seat 0 wins, 2: seat 1 wins
    gain = difference - 3 * (difference / 2)
    code = (a << 2) | b
    history[game, match.frame] = wp.int8(code)
    match.frame += 1
    match.lead += gain
    for seat in range(2):
        sign = 1 - 2 * seat
        rewards[game, seat] = wp.float32(gain * sign)
        leads[game, seat] = wp.float32(match.lead * sign)
    ended = match.frame >= rules.throws
    terminated[game] = ended
    if ended:
        for seat in range(2):
            final[game, seat] = observation(match, code, seat, rules)
        match.frame = 0
        match.lead = 0
        match.episode += 1
    for seat in range(2):
        out[game, seat] = observation(match, code, seat, rules)
    matches[game] = match


@wp.kernel
def restart_kernel(matches: wp.array[Match], chosen: wp.array[wp.bool], first: int):
    """Restart the chosen games."""
    game = wp.tid() + first
    if chosen[game]:
        match = matches[game]
        match.frame = 0
        match.lead = 0
        match.episode += 1
        matches[game] = match


@wp.kernel
def observe_kernel(
    matches: wp.array[Match], history: wp.array2d[wp.int8], rules: Rules, out: wp.array2d[Row], first: int
):
    """Write the observations of one game."""
    game = wp.tid() + first
    match = matches[game]
    last = wp.int32(history[game, wp.max(match.frame - 1, 0)])
    for seat in range(2):
        out[game, seat] = observation(match, last, seat, rules)
