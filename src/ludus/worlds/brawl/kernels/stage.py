"""The stage: grounds, gap and moving platform, how a body meets them, and the weapons that appear (Warp functions).

Weapon slots: 0 spawns on the high ground, 1 on the low ground, 2 and 3 hold the weapon that seat 0 or 1 dropped last.
"""

import warp as wp

from ludus.envs.warp_functions import below, mix, uniform
from ludus.worlds.brawl import rules as const
from ludus.worlds.brawl.kernels.structs import Item, Match, Player, Rules
from ludus.worlds.brawl.rules import BODY_HALF_HEIGHT, BODY_HALF_WIDTH, Ground, Mask, State, Stream

_PER_HALF_CYCLE = 2.0 / const.PLATFORM_CYCLE


@wp.func
def platform_at(frame: int) -> wp.vec2:
    """Return the centre of the platform's top: it eases in and out between its two ends."""
    phase = frame % const.PLATFORM_CYCLE
    phase = wp.min(phase, const.PLATFORM_CYCLE - phase)
    # Smoothstep 3 t^2 - 2 t^3 from one end to the other.
    t = wp.float32(phase) * _PER_HALF_CYCLE
    s = 1.0 - 2.0 * (t * t * (3.0 - 2.0 * t))  # 1 at the start, -1 half a cycle later
    return wp.vec2(const.PLATFORM_X * s, const.PLATFORM_Y - const.PLATFORM_RISE * s)


@wp.func
def ground_top(x: float) -> float:
    """Return the height of the solid ground at x, or the lower edge of the kill box where there is none."""
    top = const.KILL_Y
    if wp.abs(x) >= const.GROUND_INNER and wp.abs(x) <= const.GROUND_OUTER:
        top = const.LOW_TOP
        if x > 0.0:
            top = const.HIGH_TOP
    return top


@wp.func
def support_below(x: float, y: float, platform: wp.vec2) -> float:
    """Return the height of the first support below a body at (x, y); the kill box if there is none."""
    reach = wp.abs(x) + BODY_HALF_WIDTH
    top = const.KILL_Y
    if reach > const.GROUND_INNER and wp.abs(x) - BODY_HALF_WIDTH < const.GROUND_OUTER:
        side_top = const.LOW_TOP
        if x > 0.0:
            side_top = const.HIGH_TOP
        if y + BODY_HALF_HEIGHT <= side_top + const.CONTACT:
            top = side_top
    if (
        wp.abs(x - platform[0]) < const.PLATFORM_HALF_WIDTH + BODY_HALF_WIDTH
        and y + BODY_HALF_HEIGHT <= platform[1] + const.CONTACT
    ):
        top = wp.min(top, platform[1])
    return top


@wp.func
def bounced(speed: float, state: int) -> float:
    """Return the speed after an impact: a stunned body bounces, any other stops."""
    if state == State.STUN and wp.abs(speed) > const.BOUNCE_MIN:
        return -const.BOUNCE * speed
    return 0.0


@wp.func
def move_sideways(p: wp.ref[Player]):
    """Move along x and stop or bounce at the flanks of the grounds."""
    old = p.x
    p.x = old + p.vx * const.DT
    side = 1.0
    top = const.HIGH_TOP
    if p.x < 0.0:
        side = -1.0
        top = const.LOW_TOP
    if p.y + BODY_HALF_HEIGHT > top + const.CONTACT:
        inner = const.GROUND_INNER - BODY_HALF_WIDTH
        outer = const.GROUND_OUTER + BODY_HALF_WIDTH
        depth = p.x * side
        if depth > inner and depth < outer:
            if old * side < (inner + outer) * 0.5:
                p.x = inner * side
            else:
                p.x = outer * side
            p.vx = bounced(p.vx, p.state)


@wp.func
def stop_at_edge(p: wp.ref[Player], old: float, platform: wp.vec2):
    """Keep a fighter that stands on something, and has moved sideways already, from sliding off it.

    `old` is its x before: one that hung over further than a ground move may go is not pulled back. `platform` is after
    this frame.
    """
    x = p.x
    if p.ground == Ground.SOLID:
        side = wp.where(x > 0.0, 1.0, -1.0)
        inner = wp.min(const.GROUND_INNER - const.OVERHANG, wp.abs(old))
        outer = wp.max(const.GROUND_OUTER + const.OVERHANG, wp.abs(old))
        p.x = side * wp.clamp(wp.abs(x), inner, outer)
    elif p.ground == Ground.PLATFORM:
        reach = wp.max(const.PLATFORM_HALF_WIDTH + const.OVERHANG, wp.abs(old - platform[0]))
        p.x = wp.clamp(x, platform[0] - reach, platform[0] + reach)
    if p.x != x:
        p.vx = 0.0


@wp.func
def move_vertically(p: wp.ref[Player], before: wp.vec2, after: wp.vec2):
    """Move along y; land on the grounds and, from above, on the platform; set what the body stands on.

    `before` and `after` are the platform before and after this frame.
    """
    old_feet = p.y + BODY_HALF_HEIGHT
    p.y = p.y + p.vy * const.DT
    feet = p.y + BODY_HALF_HEIGHT
    p.ground = Ground.NONE
    reach = wp.abs(p.x)
    if (
        reach + BODY_HALF_WIDTH > const.GROUND_INNER + const.CONTACT
        and reach - BODY_HALF_WIDTH < const.GROUND_OUTER - const.CONTACT
    ):
        top = const.LOW_TOP
        if p.x > 0.0:
            top = const.HIGH_TOP
        if p.vy >= 0.0 and old_feet <= top + const.CONTACT and feet >= top - const.CONTACT:
            p.y = top - BODY_HALF_HEIGHT
            p.vy = bounced(p.vy, p.state)
            if p.vy == 0.0:
                p.ground = Ground.SOLID
    if p.ground == Ground.NONE and p.vy >= 0.0 and p.drop_timer == 0:
        over = wp.abs(p.x - after[0]) < const.PLATFORM_HALF_WIDTH + BODY_HALF_WIDTH
        if over and old_feet <= wp.max(before[1], after[1]) + const.CONTACT and feet >= after[1] - const.CONTACT:
            p.y = after[1] - BODY_HALF_HEIGHT
            p.vy = bounced(p.vy, p.state)
            if p.vy == 0.0:
                p.ground = Ground.PLATFORM


@wp.func
def stream(rules: Rules, game: int, match: Match, name: int) -> wp.uint32:
    """Return the hash of the named random stream of this game, episode and frame."""
    h = mix(rules.seed_hash, wp.uint32(rules.first_game + game))
    h = mix(h, wp.uint32(match.episode))
    h = mix(h, wp.uint32(match.frame))
    return mix(h, wp.uint32(name))


@wp.func
def schedule_first_spawns(match: wp.ref[Match], rules: Rules, game: int):
    """Draw when the first weapon appears on each ground."""
    h = stream(rules, game, match, Stream.SPAWN_TIME)
    match.spawn_high = below(mix(h, wp.uint32(0)), const.FIRST_SPAWN_WITHIN)
    match.spawn_low = below(mix(h, wp.uint32(1)), const.FIRST_SPAWN_WITHIN)


@wp.func
def spawned(rules: Rules, game: int, match: Match, place: int) -> Item:
    """Return a new weapon at a random place of one ground: `place` 0 is the high ground, 1 the low one."""
    item = Item()
    item.x = const.SPAWN_X_MIN + (const.SPAWN_X_MAX - const.SPAWN_X_MIN) * uniform(
        mix(stream(rules, game, match, Stream.SPAWN_PLACE), wp.uint32(place))
    )
    item.y = const.HIGH_TOP
    if place == 1:
        item.x = -item.x
        item.y = const.LOW_TOP
    item.weapon = 1 + below(mix(stream(rules, game, match, Stream.SPAWN_KIND), wp.uint32(place)), rules.weapons - 1)
    item.life = const.SPAWN_LIFE
    item.lock = const.ITEM_LOCK
    return item


@wp.func
def next_spawn(rules: Rules, game: int, match: Match, place: int) -> int:
    """Return the frame of the weapon after the one that appears now."""
    h = mix(stream(rules, game, match, Stream.SPAWN_TIME), wp.uint32(place))
    return match.frame + const.SPAWN_EVERY_MIN + below(h, const.SPAWN_EVERY_MAX - const.SPAWN_EVERY_MIN + 1)


@wp.func
def advance_items(items: wp.array2d[Item], game: int, match: wp.ref[Match], rules: Rules):
    """Age and drop the weapons on the stage, and spawn new ones."""
    for slot in range(const.ITEM_SLOTS):
        if items[game, slot].life > 0:
            item = items[game, slot]
            item.life -= 1
            item.lock = wp.max(item.lock - 1, 0)
            rest = ground_top(item.x)
            if item.y < rest:
                item.y = wp.min(item.y + const.ITEM_FALL_SPEED * const.DT, rest)
            if item.y >= const.KILL_Y:
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
    """Return whether a fighter has its hands free to take or drop a weapon."""
    return (
        p.state != State.ATTACK
        and p.state != State.STUN
        and p.state != State.DODGE
        and p.state != State.KO
        and p.state != State.TAUNT
        and p.state != State.CLASH
    )


@wp.func
def wants_weapon(p: Player) -> bool:
    """Return whether a fighter would take a weapon within its reach."""
    return (p.keys & Mask.PICKUP) != 0 and p.weapon == 0 and may_handle(p)


@wp.func
def reach_sq(p: Player, wants: bool, item: Item) -> float:
    """Return the squared distance at which a fighter that wants the weapon could take it, or -1 if it cannot."""
    dx = item.x - p.x
    dy = item.y - p.y
    if not wants or wp.abs(dx) > const.REACH_X or wp.abs(dy) > const.REACH_Y:
        return -1.0
    return dx * dx + dy * dy


@wp.func
def drop_weapon(p: wp.ref[Player], pressed: int) -> Item:
    """Return the weapon that a fighter lets go, with `life` 0 if it does not."""
    item = Item()
    item.life = 0
    if p.weapon != 0 and (pressed & Mask.PICKUP) != 0 and may_handle(p):
        item.x = p.x
        item.y = p.y
        item.weapon = p.weapon
        item.life = const.DROP_LIFE
        item.lock = const.ITEM_LOCK
        p.weapon = 0
    return item
