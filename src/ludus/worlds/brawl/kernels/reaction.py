"""Observations with a reaction time: the kernels that take the place of `finish_kernel` and of the observe kernels.

`history` is a ring of past fighters, `(N + 1, games, seats)` for a reaction time of N frames. All games write the same
slot in a step, and most read the same one: memory is streamed. With the slots of a game side by side a step of 4,096
games took 14 % more time. Nothing is moved, and a restart needs no reset: in frame f of a match a seat looks back
min(f, N) slots, never into the match before. Observing writes the current slot and reads another one, so observing
twice gives the same bytes.

The ring holds what was written into the observation, not the fighter. That adds 18 ns to the 113 ns per game in which a
core writes observations; computing it again from the fighter would add 88 ns. The module is compiled only for
environments with a reaction time.
"""

from collections.abc import Mapping

import warp as wp
from torch import Tensor

from ludus.core.state import FINITE, WORD
from ludus.envs.warp_tools import EXACT, check_state_range, check_struct
from ludus.worlds.brawl.kernels import observe
from ludus.worlds.brawl.kernels.match import OBSERVE_TILE, restart
from ludus.worlds.brawl.kernels.observe import SLOT_AT, STATE_AT, WEAPON_AT, PlayerBlock, Row, WorldBlock
from ludus.worlds.brawl.kernels.stage import platform_at
from ludus.worlds.brawl.kernels.structs import Item, Match, Move, Player, Rules
from ludus.worlds.brawl.observation import PLAYER_SIZE, SIZE

wp.set_module_options(EXACT)

Values = wp.types.vector(length=STATE_AT, dtype=wp.float32)


@wp.struct
class Past:
    """A fighter as it was: half as many words as its block of the observation."""

    values: Values  # of its own block, before the one-hot entries
    x: wp.float32
    y: wp.float32
    hot: wp.int32  # one-hot entries: bits 0-3 the state, 4-5 the weapon, 6-9 one more than the slot of the move


def check_history(snapshot: Mapping[str, Tensor]) -> None:
    """Raise SnapshotError unless the past fighters of a snapshot are numbers and its slots exist."""
    ranges = {"values": FINITE, "x": FINITE, "y": FINITE, "hot": WORD}
    check_struct(snapshot["history"], Past, ranges, "brawl: past fighter")
    check_state_range(snapshot["history_slot"], 0, len(snapshot["history"]) - 1, "brawl: history_slot")


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    const char* both = (const char*)history.data;
    both += (size_t)slot * history.strides[0] + (size_t)game * history.strides[1];
    for (int place = 0; place < 2 * (int)sizeof(history.data[0]); place += 64) __builtin_prefetch(both + place, 1, 3);
#endif
""")
def fetch_past(history: wp.array3d[Past], slot: int, game: int):
    """Prefetch a slot of a game; see `observe.fetch_rows`."""


@wp.func
def seen_slot(slot: int, frame: int, slots: int) -> int:
    """Return the slot of the opponent that a seat sees: that of N frames ago, or of the first frame of the match."""
    seen = slot - wp.min(frame, slots - 1)
    return wp.where(seen < 0, seen + slots, seen)


@wp.func
def past_of(p: Player, aspect: observe.Aspect, block: wp.ref[PlayerBlock]) -> Past:
    """Return what to keep of a fighter whose own block has been written."""
    past = Past()
    for column in range(STATE_AT):
        past.values[column] = block[column]
    past.x = p.x
    past.y = p.y
    past.hot = p.state | (p.weapon << 4) | ((aspect.slot + 1) << 6)
    return past


@wp.func
def values_of(past: Past, sign: float) -> PlayerBlock:
    """Return the block of a past fighter without its one-hot entries, seen from the other side if `sign` is -1."""
    block = PlayerBlock()
    for column in range(STATE_AT):
        block[column] = past.values[column]
    block[0] = block[0] * sign
    block[2] = block[2] * sign
    block[4] = block[4] * sign
    return block


@wp.func
def write_hot(block: wp.ref[PlayerBlock], hot: int):
    """Add the one-hot entries; no value of `hot` leads beyond the block."""
    slot = ((hot >> 6) & 15) - 1
    observe.write_state(block, hot & 15)
    block[SLOT_AT + wp.max(slot, 0)] = observe.flag(slot >= 0)
    block[WEAPON_AT + ((hot >> 4) & 3)] = 1.0


@wp.func
def at_place(p: Player, past: Past) -> Player:
    """Return a fighter at the place of a past one: `observe.observe_world` reads nothing else of an opponent."""
    p.x = past.x
    p.y = past.y
    return p


@wp.func
def observe_late(
    out: wp.array2d[Row],
    game: int,
    players: wp.array2d[Player],
    history: wp.array3d[Past],
    slot: int,
    match: Match,
    items: wp.array2d[Item],
    moves: wp.array[Move],
    rules: Rules,
):
    """Keep the fighters and write the observations of both seats in place; see `observe.observe_match`."""
    seen = seen_slot(slot, match.frame, history.shape[0])
    platform = platform_at(match.frame)
    a = players[game, 0]
    b = players[game, 1]
    aspect_a = observe.aspect_of(a, moves, platform)
    aspect_b = observe.aspect_of(b, moves, platform)
    mirror_a = -wp.float32(a.home)
    mirror_b = -wp.float32(b.home)
    out[game, 0].own = PlayerBlock()
    out[game, 0].world = WorldBlock()
    out[game, 1].own = PlayerBlock()
    out[game, 1].world = WorldBlock()
    observe.write_player(out[game, 0].own, a, aspect_a, mirror_a, rules)
    observe.write_player(out[game, 1].own, b, aspect_b, mirror_b, rules)
    history[slot, game, 0] = past_of(a, aspect_a, out[game, 0].own)
    history[slot, game, 1] = past_of(b, aspect_b, out[game, 1].own)
    past_a = history[seen, game, 0]
    past_b = history[seen, game, 1]
    out[game, 0].opponent = values_of(past_b, mirror_a * mirror_b)
    out[game, 1].opponent = values_of(past_a, mirror_a * mirror_b)
    write_hot(out[game, 0].opponent, past_b.hot)
    write_hot(out[game, 1].opponent, past_a.hot)
    observe.observe_world(out[game, 0].world, game, 0, a, at_place(b, past_b), platform, match, items, rules)
    observe.observe_world(out[game, 1].world, game, 1, b, at_place(a, past_a), platform, match, items, rules)


@wp.kernel
def finish_late_kernel(
    players: wp.array2d[Player],
    matches: wp.array[Match],
    items: wp.array2d[Item],
    history: wp.array3d[Past],
    history_slot: wp.array[wp.int32],
    moves: wp.array[Move],
    rules: Rules,
    terminated: wp.array[wp.bool],
    final: wp.array2d[Row],
    first: int,
):
    """Go on to the next slot; write the last observation of a game that ended and restart it."""
    game = wp.tid() + first
    slot = history_slot[game] + 1
    slot = wp.where(slot < history.shape[0], slot, 0)
    history_slot[game] = slot
    if terminated[game]:
        observe_late(final, game, players, history, slot, matches[game], items, moves, rules)
        restart(players, matches, items, game, rules)


@wp.kernel
def observe_late_kernel(
    players: wp.array2d[Player],
    matches: wp.array[Match],
    items: wp.array2d[Item],
    history: wp.array3d[Past],
    history_slot: wp.array[wp.int32],
    moves: wp.array[Move],
    rules: Rules,
    out: wp.array2d[Row],
    first: int,
):
    """Write the observations of one game; for a CPU, see `match.observe_kernel`."""
    game = wp.tid() + first
    slot = history_slot[game]
    observe.fetch_rows(out, game + 1)
    fetch_past(history, slot, game + 1)
    fetch_past(history, seen_slot(slot, history.shape[0], history.shape[0]), game + 1)
    observe_late(out, game, players, history, slot, matches[game], items, moves, rules)


@wp.kernel
def observe_late_tiles_kernel(
    players: wp.array2d[Player],
    matches: wp.array[Match],
    items: wp.array2d[Item],
    history: wp.array3d[Past],
    history_slot: wp.array[wp.int32],
    moves: wp.array[Move],
    rules: Rules,
    out: wp.array2d[wp.float32],
):
    """Write the observations of a tile of rows; for a GPU, see `match.observe_tiles_kernel`."""
    tile, lane = wp.tid()
    index = tile * OBSERVE_TILE + lane
    game = wp.min(index / 2, matches.shape[0] - 1)  # the last tile may reach beyond the last game
    seat = index % 2
    row = Row()
    match = matches[game]
    slot = history_slot[game]
    p = players[game, seat]
    other = players[game, 1 - seat]
    platform = platform_at(match.frame)
    mirror = -wp.float32(p.home)
    aspect = observe.aspect_of(p, moves, platform)
    observe.write_player(row.own, p, aspect, mirror, rules)
    history[slot, game, seat] = past_of(p, aspect, row.own)
    if match.frame == 0:  # the slot of the first frame is just being written by the thread of the other seat
        observe.write_player(row.opponent, other, observe.aspect_of(other, moves, platform), mirror, rules)
    else:
        past = history[seen_slot(slot, match.frame, history.shape[0]), game, 1 - seat]
        row.opponent = values_of(past, -wp.float32(other.home) * mirror)
        write_hot(row.opponent, past.hot)
        other = at_place(other, past)
    observe.observe_world(row.world, game, seat, p, other, platform, match, items, rules)
    rows = wp.tile_zeros(shape=(OBSERVE_TILE, SIZE), dtype=wp.float32, storage="shared")
    column = int(0)
    while column < PLAYER_SIZE:
        rows[lane, column] = row.own[column]
        rows[lane, PLAYER_SIZE + column] = row.opponent[column]
        column += 1
    column = int(0)
    while column < observe.WORLD_SIZE:
        rows[lane, 2 * PLAYER_SIZE + column] = row.world[column]
        column += 1
    wp.tile_store(out, rows, offset=(tile * OBSERVE_TILE, 0))
