"""The kernels of the observations, for both layouts: of all games, of games that ended, and of tiles on a GPU.

Their first arguments are the state: cars `(games, seats)`, balls, matches and pads `(games,)`, a game's pads as one
`sight.PadRow`, and the rules. Then follow the masks of games that ended, where it is about them, and the rows to write.
"""

import warp as wp

from ludus.envs.rocket.kernels.observe_compact import CompactRow, observe_compact
from ludus.envs.rocket.kernels.observe_full import FullRow, observe_full
from ludus.envs.rocket.kernels.sight import PadRow, landing
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.observation import COMPACT, FULL
from ludus.envs.warp_tools import EXACT

wp.set_module_options(EXACT)

OBSERVE_TILE = 64
COMPACT_SIZE = COMPACT.size
FULL_SIZE = FULL.size


@wp.kernel
def compact_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    out: wp.array2d[CompactRow],
    first: int,
):
    """Writes the compact observations of all seats of one game."""
    game = wp.tid() + first
    ball = balls[game]
    match = matches[game]
    lands = landing(ball)
    for seat in range(rules.blue + rules.orange):
        observe_compact(out[game, seat], cars, ball, match, pads, rules, lands, game, seat)


@wp.kernel
def compact_final_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    out: wp.array2d[CompactRow],
    first: int,
):
    """Writes the compact observations of one game if it ended."""
    game = wp.tid() + first
    if terminated[game] or truncated[game]:
        ball = balls[game]
        match = matches[game]
        lands = landing(ball)
        for seat in range(rules.blue + rules.orange):
            observe_compact(out[game, seat], cars, ball, match, pads, rules, lands, game, seat)


@wp.kernel
def compact_tiles_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    out: wp.array2d[wp.float32],
):
    """Writes the compact observations of a tile of rows `(games * seats, 136)`; for a GPU, one thread is one seat.

    Rows go through shared memory, so that neighbouring threads write neighbouring numbers.
    """
    tile, lane = wp.tid()
    index = tile * OBSERVE_TILE + lane
    seats = rules.blue + rules.orange
    game = wp.min(index / seats, matches.shape[0] - 1)  # the last tile may reach beyond the last game
    ball = balls[game]
    row = CompactRow()
    observe_compact(row, cars, ball, matches[game], pads, rules, landing(ball), game, index % seats)
    rows = wp.tile_zeros(shape=(OBSERVE_TILE, COMPACT_SIZE), dtype=wp.float32, storage="shared")
    place = int(0)
    while place < COMPACT_SIZE:
        rows[lane, place] = row[place]
        place += 1
    wp.tile_store(out, rows, offset=(tile * OBSERVE_TILE, 0))


@wp.kernel
def full_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    out: wp.array2d[FullRow],
    first: int,
):
    """Writes the full observations of all seats of one game."""
    game = wp.tid() + first
    ball = balls[game]
    match = matches[game]
    for seat in range(rules.blue + rules.orange):
        observe_full(out[game, seat], cars, ball, match, pads, rules, game, seat)


@wp.kernel
def full_final_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    out: wp.array2d[FullRow],
    first: int,
):
    """Writes the full observations of one game if it ended."""
    game = wp.tid() + first
    if terminated[game] or truncated[game]:
        ball = balls[game]
        match = matches[game]
        for seat in range(rules.blue + rules.orange):
            observe_full(out[game, seat], cars, ball, match, pads, rules, game, seat)


@wp.kernel
def full_tiles_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    out: wp.array2d[wp.float32],
):
    """Writes the full observations of a tile of rows `(games * seats, 180)`; see `compact_tiles_kernel`."""
    tile, lane = wp.tid()
    index = tile * OBSERVE_TILE + lane
    seats = rules.blue + rules.orange
    game = wp.min(index / seats, matches.shape[0] - 1)
    row = FullRow()
    observe_full(row, cars, balls[game], matches[game], pads, rules, game, index % seats)
    rows = wp.tile_zeros(shape=(OBSERVE_TILE, FULL_SIZE), dtype=wp.float32, storage="shared")
    place = int(0)
    while place < FULL_SIZE:
        rows[lane, place] = row[place]
        place += 1
    wp.tile_store(out, rows, offset=(tile * OBSERVE_TILE, 0))


KERNELS = {
    "compact": (compact_kernel, compact_final_kernel, compact_tiles_kernel),
    "full": (full_kernel, full_final_kernel, full_tiles_kernel),
}
