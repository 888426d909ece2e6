"""The state of a match as Warp structs: what a kernel loads, changes and stores.

Every field is 32 bits wide, so that an array of structs is also an int32 tensor `(..., words)`: snapshots are
plain tensor copies, and `warp_tools.struct_views` gives any field as a tensor without copying.
"""

from collections.abc import Mapping

import warp as wp
from torch import Tensor

from ludus.core.state import FINITE, FLAG, WORD, Range
from ludus.envs.warp_tools import check_state_range, check_struct, struct_views
from ludus.worlds.brawl.rules import KEYS, MOVES_PER_WEAPON, Ground, State


@wp.struct
class Player:
    """One fighter. Coordinates are those of the standard stage; see `rules`."""

    x: wp.float32
    y: wp.float32
    vx: wp.float32
    vy: wp.float32
    damage: wp.float32
    home: wp.int32  # side of the start: +1 high ground, -1 low ground
    facing: wp.int32  # +1 or -1
    state: wp.int32  # rules.State
    timer: wp.int32  # frames left in a timed state
    ground: wp.int32  # rules.Ground
    jumps: wp.int32  # air jumps left
    jump_cooldown: wp.int32
    dodge_cooldown: wp.int32
    recovery_used: wp.int32  # 1 until the next landing
    invincible: wp.int32  # frames left
    drop_timer: wp.int32  # frames left of falling through the platform
    weapon: wp.int32  # index into the move table's weapons
    stocks: wp.int32
    move: wp.int32  # index into the move table, -1 if not attacking
    move_frame: wp.int32
    charge: wp.int32  # frames charged
    hit_mask: wp.int32  # bit i: hit i of the move has connected
    keys: wp.int32  # keys held in the last frame, standard-stage directions
    threatened: wp.int32  # 1 from being hit until standing safely again


def player_ranges(weapons: int, stocks: int, *, clashes: bool = False) -> dict[str, Range]:
    """Return the valid ranges of a `Player` in a snapshot, given the number of weapons and of stocks at the start."""
    return {
        **dict.fromkeys(("x", "y", "vx", "vy", "damage"), FINITE),
        **dict.fromkeys(("home", "facing"), (-1, 1)),
        "state": (0, State.CLASH if clashes else State.KO),
        "ground": (0, max(Ground)),
        "weapon": (0, weapons - 1),
        "stocks": (1, stocks),
        "move": (-1, weapons * MOVES_PER_WEAPON - 1),
        "keys": (0, 2**KEYS - 1),
        **dict.fromkeys(("recovery_used", "threatened"), FLAG),
        **dict.fromkeys(("timer", "jumps", "jump_cooldown", "dodge_cooldown", "invincible", "drop_timer"), WORD),
        **dict.fromkeys(("move_frame", "charge", "hit_mask"), WORD),
    }


@wp.struct
class Match:
    """What both fighters share."""

    frame: wp.int32
    episode: wp.int32
    spawn_high: wp.int32  # frame of the next weapon on the high ground
    spawn_low: wp.int32


def match_ranges(step_limit: int) -> dict[str, Range]:
    """Return the valid ranges of a `Match` in a snapshot."""
    return {"frame": (0, step_limit - 1), "episode": (0, 2**30), "spawn_high": WORD, "spawn_low": WORD}


@wp.struct
class Item:
    """A weapon lying on the stage; `life` 0 means the slot is empty."""

    x: wp.float32
    y: wp.float32
    weapon: wp.int32
    life: wp.int32  # frames left
    lock: wp.int32  # frames until it can be taken


def item_ranges(weapons: int) -> dict[str, Range]:
    """Return the valid ranges of an `Item` in a snapshot."""
    return {"x": FINITE, "y": FINITE, "weapon": (0, weapons - 1), "life": WORD, "lock": WORD}


@wp.struct
class Memo:
    """What a bot remembers; cleared at the start of a match."""

    match: wp.int32  # 1 + the episode that this memory is of
    decided: wp.int32  # 1 + the last frame in which it decided ...
    decided_style: wp.int32  # ... its style then ...
    keys: wp.int32  # ... and the keys it chose
    next_jump: wp.int32  # frame before which `tap` does not jump again
    next_dodge: wp.int32
    mode: wp.int32  # meaning depends on the style
    until: wp.int32  # frame at which the mode ends
    style: wp.int32  # of a bot that switches styles
    style_until: wp.int32


MEMO_RANGES: dict[str, Range] = dict.fromkeys(Memo.vars, WORD)  # none of them is an index


@wp.struct
class Move:
    """A move of the move table; frames count from the start of the move."""

    total: wp.int32  # frames until the fighter is free again
    startup: wp.int32  # first frame in which a hit is active
    active_end: wp.int32  # last frame in which a hit is active
    charge_frame: wp.int32  # the move waits here while the key is held, -1 never
    charge_max: wp.int32  # frames it can wait
    charge_bonus: wp.float32  # damage and launch grow by this fraction at full charge
    follow_up: wp.int32  # move that can follow a hit, -1 none
    cancel_frame: wp.int32  # from this frame on
    motion_start: wp.int32  # frames in which the move sets the fighter's own velocity, -1 never
    motion_end: wp.int32
    motion_x: wp.float32  # forward
    motion_y: wp.float32  # downward
    landing_frame: wp.int32  # landing jumps to this frame, -1 landing does not matter


@wp.struct
class Hit:
    """One active capsule of a move, relative to the fighter's centre, facing right."""

    start: wp.int32  # active from this frame ...
    end: wp.int32  # ... to this one; start -1 means there is no such hit
    from_x: wp.float32
    from_y: wp.float32
    to_x: wp.float32
    to_y: wp.float32
    radius: wp.float32
    damage: wp.float32
    stun: wp.int32
    launch_x: wp.float32  # unit vector
    launch_y: wp.float32
    fixed: wp.float32  # launch speed at no damage
    variable: wp.float32  # and its growth


@wp.struct
class Rules:
    """Settings of the environment that kernels read."""

    step_limit: wp.int32
    stocks: wp.int32
    per_frame: wp.float32  # 1 / step_limit
    per_stock: wp.float32  # 1 / stocks
    weapons: wp.int32  # number of weapons in the move table, fists included
    weapon_spawns: wp.int32
    fixed_weapon_0: wp.int32  # weapon that seat 0 keeps for the whole match, -1 normal play
    fixed_weapon_1: wp.int32
    swap_sides: wp.int32
    seed_hash: wp.uint32  # the two halves of the seed, mixed
    first_game: wp.int32
    set_length: wp.int32  # matches in a row of a game that are one set; bots keep their habits over it
    clash_frames: wp.int32  # how long a clash lasts, 0 if blows open none
    clash_damage: wp.float32  # the blow that the loser takes
    clash_stun: wp.int32
    clash_launch_x: wp.float32  # unit vector
    clash_launch_y: wp.float32
    clash_fixed: wp.float32  # launch speed at no damage
    clash_variable: wp.float32  # and its growth
    clash_push: wp.float32  # speed at which equal choices push both apart
    clash_recoil: wp.int32  # and how long both are stunned then


def check_state(snapshot: Mapping[str, Tensor], weapons: int, stocks: int, step_limit: int, *, clashes: bool) -> None:
    """Raise SnapshotError unless a state is possible with these settings, this number of weapons, with clashes or not.

    Kernels use some of its numbers as indices without checking them, and a snapshot may come from an untrusted
    checkpoint: a wrong number would read or write beyond an array.
    """
    ranges = player_ranges(weapons, stocks, clashes=clashes)
    check_struct(snapshot["players"], Player, ranges, "brawl: player")
    check_struct(snapshot["matches"], Match, match_ranges(step_limit), "brawl: match")
    check_struct(snapshot["items"], Item, item_ranges(weapons), "brawl: item")
    check_struct(snapshot["bot_memory"], Memo, MEMO_RANGES, "brawl: bot memory")
    check_state_range(snapshot["bot_delayed"], *WORD, "brawl: bot_delayed")
    players = struct_views(snapshot["players"].contiguous(), Player)
    items = struct_views(snapshot["items"].contiguous(), Item)
    attacking = players["move"][players["state"] == State.ATTACK]
    check_state_range(attacking, 0, ranges["move"][1], "brawl: player move while attacking")
    check_state_range(players["facing"].abs(), 1, 1, "brawl: player facing, either way,")
    check_state_range(players["home"].abs(), 1, 1, "brawl: player home, either side,")
    check_state_range(players["home"].sum(-1), 0, 0, "brawl: sum of both homes")
    check_state_range(items["weapon"][items["life"] > 0], 1, weapons - 1, "brawl: weapon on the stage")
