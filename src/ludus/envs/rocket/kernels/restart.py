"""The kernels that begin an episode or a kickoff; one thread is one game."""

import warp as wp

from ludus.envs.rocket.kernels.placing import clear_score, kickoff, stream
from ludus.envs.rocket.kernels.setters import set_scene
from ludus.envs.rocket.kernels.sight import PadRow
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.kernels.tables import Tables
from ludus.envs.rocket.layout import PAD_COUNT
from ludus.envs.rocket.rules import Stream
from ludus.envs.rocket.setters import SETTERS, Setter
from ludus.envs.warp_functions import uniform
from ludus.envs.warp_tools import EXACT

wp.set_module_options(EXACT)

_COUNT = len(SETTERS)


@wp.func
def drawn_setter(h: wp.uint32, tables: Tables) -> wp.int32:
    """The state setter that a hash chooses."""
    drawn = uniform(h)
    chosen = int(0)
    for setter in range(_COUNT):
        chosen += wp.where(drawn >= tables.setters[setter], 1, 0)
    return chosen


@wp.func
def restart(
    cars: wp.array[Car],
    ball: wp.ref[Ball],
    episode: wp.int32,
    pads: wp.ref[PadRow],
    tables: Tables,
    rules: Rules,
    game: wp.int32,
) -> Match:
    """Begins an episode of a game."""
    begun = Match()
    begun.episode = episode
    begun.clock_s = wp.where(rules.ends_by_goal != 0, rules.episode_s, rules.match_s)
    begun.setter = drawn_setter(stream(rules, game, begun, Stream.SETTER), tables)
    for seat in range(rules.blue + rules.orange):
        cars[seat].since_touch_s = 0.0
    if begun.setter == Setter.KICKOFF:
        kickoff(cars, ball, begun, pads, tables, rules, game)
    else:
        for pad in range(PAD_COUNT):
            pads[pad] = 0
        clear_score(begun)
        set_scene(cars, ball, begun, rules, game)
    return begun


@wp.kernel
def finish_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    tables: Tables,
    rules: Rules,
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    first: int,
):
    """Starts a game anew if it ended, or lets a kickoff follow a goal; not in the step, which it would slow down."""
    game = wp.tid() + first
    if terminated[game] or truncated[game]:
        matches[game] = restart(cars[game], balls[game], matches[game].episode + 1, pads[game], tables, rules, game)
    elif matches[game].kickoff_due != 0:
        kickoff(cars[game], balls[game], matches[game], pads[game], tables, rules, game)


@wp.kernel
def restart_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    tables: Tables,
    rules: Rules,
    chosen: wp.array[wp.bool],
    first: int,
):
    """Starts the chosen games anew."""
    game = wp.tid() + first
    if chosen[game]:
        matches[game] = restart(cars[game], balls[game], matches[game].episode + 1, pads[game], tables, rules, game)
