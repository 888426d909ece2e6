"""Observations: one seat's view of a match, written straight into the observation tensor (Warp functions)."""

import warp as wp

from ludus.worlds.brawl import rules as const
from ludus.worlds.brawl.kernels.stage import platform_at, support_below
from ludus.worlds.brawl.kernels.structs import Item, Match, Move, Player, Rules
from ludus.worlds.brawl.observation import ITEM_FIELDS, PLAYER_FIELDS, PLAYER_SIZE, SHOWN_STATES, SIZE, WORLD_FIELDS
from ludus.worlds.brawl.rules import Ground, Key, Slot, State

WORLD_SIZE = SIZE - 2 * PLAYER_SIZE

PlayerBlock = wp.types.vector(length=PLAYER_SIZE, dtype=wp.float32)
WorldBlock = wp.types.vector(length=WORLD_SIZE, dtype=wp.float32)


@wp.struct
class Row:
    """One seat's observation as one array element.

    Its values lie at fixed places, so that writing one costs a single store. As a third dimension of the array each
    would cost an address computation: four times slower.
    """

    own: PlayerBlock
    opponent: PlayerBlock
    world: WorldBlock


_ITEM_SIZE = len(ITEM_FIELDS) + const.MAX_WEAPONS - 1
_ITEMS_AT = len(WORLD_FIELDS)

_ITEM_FIXED = len(ITEM_FIELDS)
# Columns of a player block from which on its one-hot entries lie.
STATE_AT = len(PLAYER_FIELDS) - len(Slot) - len(SHOWN_STATES)
SLOT_AT = len(PLAYER_FIELDS) - len(Slot)
WEAPON_AT = len(PLAYER_FIELDS)
_KEYS_AT = len(WORLD_FIELDS) - const.KEYS
# Products with a reciprocal instead of quotients: a division costs as much as ten products.
_PER_X, _PER_Y = 1.0 / const.KILL_X, 1.0 / const.KILL_Y
_PER_SPEED, _PER_DAMAGE, _PER_TIMER = 1.0 / 20.0, 1.0 / 200.0, 1.0 / 30.0
_PER_DODGE = 1.0 / (const.DODGE_FRAMES + const.DODGE_COOLDOWN_AIR)
_PER_JUMPS = 1.0 / const.AIR_JUMPS
_PER_JUMP_COOLDOWN = 1.0 / const.JUMP_COOLDOWN
_PER_INVINCIBLE = 1.0 / const.RESPAWN_INVINCIBLE
_PER_DROP = 1.0 / const.DROP_THROUGH_FRAMES
_PER_LIFE = 1.0 / const.SPAWN_LIFE


@wp.func
def flag(condition: bool) -> float:
    """Return 1 if the condition holds, else 0."""
    return wp.where(condition, 1.0, 0.0)


@wp.struct
class Aspect:
    """What both viewers see of a fighter in the same way, computed once."""

    clearance: wp.float32
    progress: wp.float32
    charge: wp.float32
    phase: wp.int32  # 0 startup, 1 charging, 2 active, 3 recovery
    slot: wp.int32  # -1 if not attacking


@wp.func
def aspect_of(p: Player, moves: wp.array[Move], platform: wp.vec2) -> Aspect:
    """Compute what does not depend on the viewer."""
    aspect = Aspect()
    aspect.clearance = wp.max(support_below(p.x, p.y, platform) - p.y - const.BODY_HALF_HEIGHT, 0.0) * _PER_Y
    aspect.slot = -1
    if p.state == State.ATTACK:
        total = moves[p.move].total
        charge_max = moves[p.move].charge_max
        aspect.slot = p.move % const.MOVES_PER_WEAPON
        aspect.progress = wp.float32(p.move_frame) / wp.float32(total)
        aspect.charge = wp.float32(p.charge) / wp.float32(wp.max(charge_max, 1))
        late = wp.where(p.move_frame > moves[p.move].active_end, 3, 2)
        early = wp.where(p.move_frame == moves[p.move].charge_frame, 1, 0)
        aspect.phase = wp.where(p.move_frame < moves[p.move].startup, early, late)
    return aspect


@wp.func
def write_state(block: wp.ref[PlayerBlock], state: int):
    """Write the one-hot entries of a state into a block of zeros; those of a clash stay zeros."""
    is_shown = state != State.CLASH
    block[STATE_AT + wp.where(is_shown, state, 0)] = flag(is_shown)


@wp.func
def write_player(block: wp.ref[PlayerBlock], p: Player, aspect: Aspect, mirror: float, rules: Rules):
    """Fill a block of zeros; `mirror` is -1 if the viewer sees the stage mirrored."""
    block[0] = p.x * mirror * _PER_X
    block[1] = p.y * _PER_Y
    block[2] = p.vx * mirror * _PER_SPEED
    block[3] = p.vy * _PER_SPEED
    block[4] = wp.float32(p.facing) * mirror
    block[5] = p.damage * _PER_DAMAGE
    block[6] = wp.float32(p.stocks) * rules.per_stock
    block[7] = wp.float32(p.jumps) * _PER_JUMPS
    block[8] = wp.float32(p.jump_cooldown) * _PER_JUMP_COOLDOWN
    block[9] = wp.float32(p.dodge_cooldown) * _PER_DODGE
    block[10] = wp.float32(1 - p.recovery_used)
    block[11] = wp.float32(p.invincible) * _PER_INVINCIBLE
    block[12] = flag(p.ground == Ground.SOLID)
    block[13] = flag(p.ground == Ground.PLATFORM)
    block[14] = aspect.clearance
    block[15] = wp.float32(p.timer) * _PER_TIMER
    block[16] = aspect.progress
    block[21] = aspect.charge
    block[22] = flag(p.hit_mask != 0)
    block[23] = wp.float32(p.drop_timer) * _PER_DROP
    write_state(block, p.state)
    block[WEAPON_AT + p.weapon] = 1.0
    if aspect.slot >= 0:
        block[17 + aspect.phase] = 1.0
        block[SLOT_AT + aspect.slot] = 1.0


@wp.func
def write_item(block: wp.ref[WorldBlock], at: int, item: Item, p: Player, mirror: float):
    """Write the weapon of one slot from column `at` on."""
    block[at + 0] = 1.0
    block[at + 1] = (item.x - p.x) * mirror * _PER_X
    block[at + 2] = (item.y - p.y) * _PER_Y
    block[at + 3] = flag(item.lock == 0)
    block[at + 4] = wp.float32(item.life) * _PER_LIFE
    block[at + _ITEM_FIXED + item.weapon - 1] = 1.0


@wp.func
def write_world(
    block: wp.ref[WorldBlock], p: Player, other: Player, mirror: float, clock: float, platform: wp.vec2, speed: wp.vec2
):
    """Write the world block, without the weapons that lie there."""
    block[0] = clock
    block[1] = mirror
    block[2] = platform[0] * mirror * _PER_X
    block[3] = platform[1] * _PER_Y
    block[4] = speed[0] * mirror
    block[5] = speed[1]
    block[6] = (other.x - p.x) * mirror * _PER_X
    block[7] = (other.y - p.y) * _PER_Y
    block[8] = (platform[0] - p.x) * mirror * _PER_X
    block[9] = (platform[1] - p.y) * _PER_Y
    for key in range(const.KEYS):
        block[_KEYS_AT + key] = wp.float32((p.keys >> key) & 1)
    if mirror < 0.0:
        block[_KEYS_AT + Key.LEFT] = wp.float32((p.keys >> Key.RIGHT) & 1)
        block[_KEYS_AT + Key.RIGHT] = wp.float32((p.keys >> Key.LEFT) & 1)


@wp.func
def observe_world(
    block: wp.ref[WorldBlock],
    game: int,
    seat: int,
    p: Player,
    other: Player,
    platform: wp.vec2,
    match: Match,
    items: wp.array2d[Item],
    rules: Rules,
):
    """Fill a block of zeros with all that is neither of the two fighters."""
    speed = (platform_at(match.frame + 1) - platform) * float(const.RATE_HZ)
    clock = wp.float32(rules.step_limit - match.frame) * rules.per_frame
    mirror = -wp.float32(p.home)
    write_world(block, p, other, mirror, clock, platform, speed)
    for slot in range(const.ITEM_SLOTS):
        if items[game, slot].life > 0:
            place = slot ^ seat  # dropped weapons: the own one first
            if slot < 2:
                place = slot ^ ((1 - p.home) / 2)  # spawns: the own ground first; slot 0 is the high one, home +1
            write_item(block, _ITEMS_AT + place * _ITEM_SIZE, items[game, slot], p, mirror)


@wp.func
def turn(block: wp.ref[PlayerBlock], sign: float):
    """Show a fighter from the other side: x, vx and facing change their sign."""
    block[0] = block[0] * sign
    block[2] = block[2] * sign
    block[4] = block[4] * sign


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    const char* rows = (const char*)out.data + (size_t)game * out.strides[0];
    for (int place = 0; place < 2 * (int)sizeof(out.data[0]); place += 64) __builtin_prefetch(rows + place, 1, 3);
#endif
""")
def fetch_rows(out: wp.array2d[Row], game: int):
    """Prefetch the memory of a game's rows; nothing else depends on it.

    The rows of a large batch are in no cache when they are written. Without this a third of the time of
    `observe_kernel` goes into waiting for them, and more when other cores use the memory too.
    """


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
    """Write the observations of both seats in place.

    Each fighter is written once and copied to the other's row: half the stores, of which a core does one per cycle.
    """
    platform = platform_at(match.frame)
    a = players[game, 0]
    b = players[game, 1]
    mirror_a = -wp.float32(a.home)
    mirror_b = -wp.float32(b.home)
    out[game, 0].own = PlayerBlock()
    out[game, 0].world = WorldBlock()
    out[game, 1].own = PlayerBlock()
    out[game, 1].world = WorldBlock()
    write_player(out[game, 0].own, a, aspect_of(a, moves, platform), mirror_a, rules)
    write_player(out[game, 1].own, b, aspect_of(b, moves, platform), mirror_b, rules)
    observe_world(out[game, 0].world, game, 0, a, b, platform, match, items, rules)
    observe_world(out[game, 1].world, game, 1, b, a, platform, match, items, rules)
    out[game, 0].opponent = out[game, 1].own
    out[game, 1].opponent = out[game, 0].own
    turn(out[game, 0].opponent, mirror_a * mirror_b)
    turn(out[game, 1].opponent, mirror_a * mirror_b)
