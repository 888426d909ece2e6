"""The kernels of Roshambo: step, restart and observe; one thread per game."""

import warp as wp

from ludus.envs.warp_tools import EXACT
from ludus.worlds.roshambo.kernels.structs import Match, Rules
from ludus.worlds.roshambo.rules import EARLIER, OPPONENT, OWN, PAIR

wp.set_module_options(EXACT)

Base = wp.types.vector(length=EARLIER, dtype=wp.float32)  # what an observation of one throw is


@wp.func
def as_throw(action: wp.int64) -> int:
    """Return an action as 0 rock, 1 paper or 2 scissors, whatever number it is."""
    return (wp.int32(action % wp.int64(3)) + 3) % 3


@wp.func
def throw_of(code: int, seat: int) -> int:
    """Return a seat's throw from the history's code, which holds that of seat 0 in bits 2-3, of seat 1 in bits 0-1."""
    return (code >> (2 - 2 * seat)) & 3


@wp.func
def observe(
    match: Match, history: wp.array2d[wp.int8], game: int, seat: int, rules: Rules, out: wp.array3d[wp.float32]
):
    """Write what a seat sees: clock, lead, the last throws from the latest on, and the clock's phase."""
    base = Base()
    base[0] = wp.float32(match.frame) * rules.per_throw
    base[1] = wp.float32(match.lead) * rules.per_throw * wp.float32(1 - 2 * seat)
    if match.frame > 0:
        last = wp.int32(history[game, match.frame - 1])
        own = throw_of(last, seat)
        opponent = throw_of(last, 1 - seat)
        base[OWN + own] = 1.0
        base[OPPONENT + opponent] = 1.0
        base[PAIR + 3 * own + opponent] = 1.0
    row = out[game, seat]
    for column in range(EARLIER):
        row[column] = base[column]
    for ago in range(1, rules.last_throws):
        first = EARLIER + 6 * (ago - 1)
        for column in range(6):
            row[first + column] = 0.0
        if ago < match.frame:
            code = wp.int32(history[game, match.frame - 1 - ago])
            row[first + throw_of(code, seat)] = 1.0
            row[first + 3 + throw_of(code, 1 - seat)] = 1.0
    phases = EARLIER + 6 * (rules.last_throws - 1)
    for phase in range(rules.clock_period):
        row[phases + phase] = 0.0
    if rules.clock_period > 0:
        row[phases + match.frame % rules.clock_period] = 1.0


@wp.kernel
def step_kernel(
    matches: wp.array[Match],
    history: wp.array2d[wp.int8],
    actions: wp.array2d[wp.int64],
    rules: Rules,
    rewards: wp.array2d[wp.float32],
    leads: wp.array2d[wp.float32],
    terminated: wp.array[wp.bool],
    final: wp.array3d[wp.float32],
    out: wp.array3d[wp.float32],
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
            observe(match, history, game, seat, rules, final)
        match.frame = 0
        match.lead = 0
        match.episode += 1
    for seat in range(2):
        observe(match, history, game, seat, rules, out)
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
    matches: wp.array[Match], history: wp.array2d[wp.int8], rules: Rules, out: wp.array3d[wp.float32], first: int
):
    """Write the observations of one game."""
    game = wp.tid() + first
    for seat in range(2):
        observe(matches[game], history, game, seat, rules, out)
