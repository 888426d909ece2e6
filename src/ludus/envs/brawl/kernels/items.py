"""Weapons on the stage: spawning, falling, taking and dropping (Warp functions).

Slots: 0 spawns on the high ground, 1 on the low ground, 2 and 3 hold the weapon that seat 0 or 1 dropped last.
"""

import warp as wp

from ludus.envs.brawl.kernels.stage import ground_top
from ludus.envs.brawl.kernels.structs import Item, Match, Player, Rules
from ludus.envs.brawl.rules import (
    DROP_LIFE,
    DT,
    FIRST_SPAWN_WITHIN,
    HIGH_TOP,
    ITEM_FALL_SPEED,
    ITEM_LOCK,
    ITEM_SLOTS,
    KILL_Y,
    LOW_TOP,
    REACH_X,
    REACH_Y,
    SPAWN_EVERY_MAX,
    SPAWN_EVERY_MIN,
    SPAWN_LIFE,
    SPAWN_X_MAX,
    SPAWN_X_MIN,
    Mask,
    State,
    Stream,
)
from ludus.envs.warp_functions import below, mix, uniform


@wp.func
def stream(rules: Rules, game: wp.int32, match: Match, name: wp.int32) -> wp.uint32:
    """Hash of the named random stream of this game, episode and frame."""
    h = mix(rules.seed_hash, wp.uint32(rules.first_game + game))
    h = mix(h, wp.uint32(match.episode))
    h = mix(h, wp.uint32(match.frame))
    return mix(h, wp.uint32(name))


@wp.func
def schedule_first_spawns(match: wp.ref[Match], rules: Rules, game: wp.int32):
    """Draws when the first weapon appears on either ground."""
    h = stream(rules, game, match, Stream.SPAWN_TIME)
    match.spawn_high = below(mix(h, wp.uint32(0)), FIRST_SPAWN_WITHIN)
    match.spawn_low = below(mix(h, wp.uint32(1)), FIRST_SPAWN_WITHIN)


@wp.func
def spawned(rules: Rules, game: wp.int32, match: Match, place: wp.int32) -> Item:
    """A new weapon at a random place of one ground: `place` 0 is the high ground, 1 the low one."""
    item = Item()
    item.x = SPAWN_X_MIN + (SPAWN_X_MAX - SPAWN_X_MIN) * uniform(
        mix(stream(rules, game, match, Stream.SPAWN_PLACE), wp.uint32(place))
    )
    item.y = HIGH_TOP
    if place == 1:
        item.x = -item.x
        item.y = LOW_TOP
    item.weapon = 1 + below(mix(stream(rules, game, match, Stream.SPAWN_KIND), wp.uint32(place)), rules.weapons - 1)
    item.life = SPAWN_LIFE
    item.lock = ITEM_LOCK
    return item


@wp.func
def next_spawn(rules: Rules, game: wp.int32, match: Match, place: wp.int32) -> wp.int32:
    """Frame of the weapon after the one that appears now."""
    h = mix(stream(rules, game, match, Stream.SPAWN_TIME), wp.uint32(place))
    return match.frame + SPAWN_EVERY_MIN + below(h, SPAWN_EVERY_MAX - SPAWN_EVERY_MIN + 1)


@wp.func
def advance_items(items: wp.array2d[Item], game: wp.int32, match: wp.ref[Match], rules: Rules):
    """Ages and drops what lies there and lets new weapons appear."""
    for slot in range(ITEM_SLOTS):
        if items[game, slot].life > 0:
            item = items[game, slot]
            item.life -= 1
            item.lock = wp.max(item.lock - 1, 0)
            rest = ground_top(item.x)
            if item.y < rest:
                item.y = wp.min(item.y + ITEM_FALL_SPEED * DT, rest)
            if item.y >= KILL_Y:
                item.life = 0
            items[game, slot] = item
    if rules.weapon_spawns != 0:
        if match.frame >= match.spawn_high:
            items[game, 0] = spawned(rules, game, match, 0)
            match.spawn_high = next_spawn(rules, game, match, 0)
        if match.frame >= match.spawn_low:
            items[game, 1] = spawned(rules, game, match, 1)
            match.spawn_low = next_spawn(rules, game, match, 1)


@wp.func
def may_handle(p: Player) -> bool:
    """Whether a fighter has its hands free to take or drop a weapon."""
    return (
        p.state != State.ATTACK
        and p.state != State.STUN
        and p.state != State.DODGE
        and p.state != State.KO
        and p.state != State.TAUNT
    )


@wp.func
def wants_weapon(p: Player) -> bool:
    """Whether a fighter would take a weapon within its reach."""
    return (p.keys & Mask.PICKUP) != 0 and p.weapon == 0 and may_handle(p)


@wp.func
def reach_sq(p: Player, wants: bool, item: Item) -> wp.float32:
    """Squared distance at which a fighter that wants the weapon could take it, or -1 if it cannot."""
    dx = item.x - p.x
    dy = item.y - p.y
    if not wants or wp.abs(dx) > REACH_X or wp.abs(dy) > REACH_Y:
        return -1.0
    return dx * dx + dy * dy


@wp.func
def drop_weapon(p: wp.ref[Player], pressed: wp.int32) -> Item:
    """The weapon that a fighter lets go, with `life` 0 if it does not."""
    item = Item()
    item.life = 0
    if p.weapon != 0 and (pressed & Mask.PICKUP) != 0 and may_handle(p):
        item.x = p.x
        item.y = p.y
        item.weapon = p.weapon
        item.life = DROP_LIFE
        item.lock = ITEM_LOCK
        p.weapon = 0
    return item
