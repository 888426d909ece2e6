"""Observations: one seat's view of a match, written straight into the observation tensor (Warp functions)."""

import warp as wp

from ludus.envs.brawl.kernels.stage import platform_at, support_below
from ludus.envs.brawl.kernels.structs import Item, Match, Move, Player, Rules
from ludus.envs.brawl.observation import ITEM_FIELDS, PLAYER_FIELDS, PLAYER_SIZE, SIZE, WORLD_FIELDS
from ludus.envs.brawl.rules import (
    AIR_JUMPS,
    BODY_HALF_HEIGHT,
    DODGE_COOLDOWN_AIR,
    DODGE_FRAMES,
    DROP_THROUGH_FRAMES,
    ITEM_SLOTS,
    JUMP_COOLDOWN,
    KEYS,
    KILL_X,
    KILL_Y,
    MAX_WEAPONS,
    MOVES_PER_WEAPON,
    RATE_HZ,
    RESPAWN_INVINCIBLE,
    SPAWN_LIFE,
    Ground,
    Key,
    Slot,
    State,
)

# One seat's observation as one array element: its components lie at fixed places, so that writing one costs a
# single store. As a third dimension of the array each would cost an address computation: four times slower.
Row = wp.types.vector(length=SIZE, dtype=wp.float32)

_WORLD_AT = 2 * PLAYER_SIZE
_ITEM_SIZE = len(ITEM_FIELDS) + MAX_WEAPONS - 1
_ITEMS_AT = 2 * PLAYER_SIZE + len(WORLD_FIELDS)

_PLAYER_FIXED = len(PLAYER_FIELDS)
_ITEM_FIXED = len(ITEM_FIELDS)
_STATE_AT = len(PLAYER_FIELDS) - len(Slot) - len(State)
_SLOT_AT = len(PLAYER_FIELDS) - len(Slot)
_KEYS_AT = len(WORLD_FIELDS) - KEYS
# Products with a reciprocal instead of quotients: a division costs as much as ten products.
_PER_X = 1.0 / KILL_X
_PER_Y = 1.0 / KILL_Y
_PER_SPEED = 1.0 / 20.0
_PER_DAMAGE = 1.0 / 200.0
_PER_TIMER = 1.0 / 30.0
_PER_DODGE = 1.0 / (DODGE_FRAMES + DODGE_COOLDOWN_AIR)
_PER_JUMPS = 1.0 / AIR_JUMPS
_PER_JUMP_COOLDOWN = 1.0 / JUMP_COOLDOWN
_PER_INVINCIBLE = 1.0 / RESPAWN_INVINCIBLE
_PER_DROP = 1.0 / DROP_THROUGH_FRAMES
_PER_LIFE = 1.0 / SPAWN_LIFE


@wp.func
def flag(condition: bool) -> wp.float32:
    """1 if the condition holds, else 0."""
    return wp.where(condition, 1.0, 0.0)


@wp.struct
class Aspect:
    """What both viewers see alike of a fighter, computed once."""

    clearance: wp.float32
    progress: wp.float32
    charge: wp.float32
    phase: wp.int32  # 0 startup, 1 charging, 2 active, 3 recovery
    slot: wp.int32  # -1 if not attacking


@wp.func
def aspect_of(p: Player, moves: wp.array[Move], platform: wp.vec2) -> Aspect:
    """Computes what does not depend on the viewer."""
    aspect = Aspect()
    aspect.clearance = wp.max(support_below(p.x, p.y, platform) - p.y - BODY_HALF_HEIGHT, 0.0) * _PER_Y
    aspect.slot = -1
    if p.state == State.ATTACK:
        total = moves[p.move].total
        charge_max = moves[p.move].charge_max
        aspect.slot = p.move % MOVES_PER_WEAPON
        aspect.progress = wp.float32(p.move_frame) / wp.float32(total)
        aspect.charge = wp.float32(p.charge) / wp.float32(wp.max(charge_max, 1))
        late = wp.where(p.move_frame > moves[p.move].active_end, 3, 2)
        early = wp.where(p.move_frame == moves[p.move].charge_frame, 1, 0)
        aspect.phase = wp.where(p.move_frame < moves[p.move].startup, early, late)
    return aspect


@wp.func
def write_player(row: wp.ref[Row], at: int, p: Player, aspect: Aspect, mirror: float, rules: Rules):
    """Writes a player block from column `at` on; `mirror` is -1 if the viewer sees the stage mirrored."""
    row[at + 0] = p.x * mirror * _PER_X
    row[at + 1] = p.y * _PER_Y
    row[at + 2] = p.vx * mirror * _PER_SPEED
    row[at + 3] = p.vy * _PER_SPEED
    row[at + 4] = wp.float32(p.facing) * mirror
    row[at + 5] = p.damage * _PER_DAMAGE
    row[at + 6] = wp.float32(p.stocks) * rules.per_stock
    row[at + 7] = wp.float32(p.jumps) * _PER_JUMPS
    row[at + 8] = wp.float32(p.jump_cooldown) * _PER_JUMP_COOLDOWN
    row[at + 9] = wp.float32(p.dodge_cooldown) * _PER_DODGE
    row[at + 10] = wp.float32(1 - p.recovery_used)
    row[at + 11] = wp.float32(p.invincible) * _PER_INVINCIBLE
    row[at + 12] = flag(p.ground == Ground.SOLID)
    row[at + 13] = flag(p.ground == Ground.PLATFORM)
    row[at + 14] = aspect.clearance
    row[at + 15] = wp.float32(p.timer) * _PER_TIMER
    row[at + 16] = aspect.progress
    row[at + 21] = aspect.charge
    row[at + 22] = flag(p.hit_mask != 0)
    row[at + 23] = wp.float32(p.drop_timer) * _PER_DROP
    row[at + _STATE_AT + p.state] = 1.0
    row[at + _PLAYER_FIXED + p.weapon] = 1.0
    if aspect.slot >= 0:
        row[at + 17 + aspect.phase] = 1.0
        row[at + _SLOT_AT + aspect.slot] = 1.0


@wp.func
def write_item(row: wp.ref[Row], at: int, item: Item, p: Player, mirror: float):
    """Writes what lies in one slot from column `at` on."""
    row[at + 0] = 1.0
    row[at + 1] = (item.x - p.x) * mirror * _PER_X
    row[at + 2] = (item.y - p.y) * _PER_Y
    row[at + 3] = flag(item.lock == 0)
    row[at + 4] = wp.float32(item.life) * _PER_LIFE
    row[at + _ITEM_FIXED + item.weapon - 1] = 1.0


@wp.func
def write_world(
    row: wp.ref[Row], p: Player, other: Player, mirror: float, clock: float, platform: wp.vec2, speed: wp.vec2
):
    """Writes the world block, without the weapons that lie there."""
    at = _WORLD_AT
    row[at + 0] = clock
    row[at + 1] = mirror
    row[at + 2] = platform[0] * mirror * _PER_X
    row[at + 3] = platform[1] * _PER_Y
    row[at + 4] = speed[0] * mirror
    row[at + 5] = speed[1]
    row[at + 6] = (other.x - p.x) * mirror * _PER_X
    row[at + 7] = (other.y - p.y) * _PER_Y
    row[at + 8] = (platform[0] - p.x) * mirror * _PER_X
    row[at + 9] = (platform[1] - p.y) * _PER_Y
    for key in range(KEYS):
        row[at + _KEYS_AT + key] = wp.float32((p.keys >> key) & 1)
    if mirror < 0.0:
        row[at + _KEYS_AT + Key.LEFT] = wp.float32((p.keys >> Key.RIGHT) & 1)
        row[at + _KEYS_AT + Key.RIGHT] = wp.float32((p.keys >> Key.LEFT) & 1)


@wp.func
def observe_seat(
    row: wp.ref[Row],
    game: int,
    seat: int,
    p: Player,
    other: Player,
    aspect: Aspect,
    other_aspect: Aspect,
    platform: wp.vec2,
    match: Match,
    items: wp.array2d[Item],
    rules: Rules,
):
    """Fills the observation of one seat into a row of zeros."""
    speed = (platform_at(match.frame + 1) - platform) * float(RATE_HZ)
    clock = wp.float32(rules.step_limit - match.frame) * rules.per_frame
    mirror = -wp.float32(p.home)
    write_player(row, 0, p, aspect, mirror, rules)
    write_player(row, PLAYER_SIZE, other, other_aspect, mirror, rules)
    write_world(row, p, other, mirror, clock, platform, speed)
    for slot in range(ITEM_SLOTS):
        if items[game, slot].life > 0:
            place = slot ^ seat  # dropped weapons: the own one first
            if slot < 2:
                place = slot ^ ((1 - p.home) / 2)  # spawns: the own ground first; slot 0 is the high one, home +1
            write_item(row, _ITEMS_AT + place * _ITEM_SIZE, items[game, slot], p, mirror)


@wp.func
def observe_match(
    out: wp.array2d[Row],
    game: int,
    players: wp.array2d[Player],
    match: Match,
    items: wp.array2d[Item],
    moves: wp.array[Move],
    rules: Rules,
):
    """Writes the observations of both seats in their places."""
    platform = platform_at(match.frame)
    a = players[game, 0]
    b = players[game, 1]
    aspect_a = aspect_of(a, moves, platform)
    aspect_b = aspect_of(b, moves, platform)
    out[game, 0] = Row()
    out[game, 1] = Row()
    observe_seat(out[game, 0], game, 0, a, b, aspect_a, aspect_b, platform, match, items, rules)
    observe_seat(out[game, 1], game, 1, b, a, aspect_b, aspect_a, platform, match, items, rules)
