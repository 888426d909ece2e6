"""The stage: grounds, gap, moving platform, and how a body meets them (Warp functions)."""

import warp as wp

from ludus.envs.brawl.kernels.structs import Player
from ludus.envs.brawl.rules import (
    BODY_HALF_HEIGHT,
    BODY_HALF_WIDTH,
    BOUNCE,
    BOUNCE_MIN,
    CONTACT,
    DT,
    GROUND_INNER,
    GROUND_OUTER,
    HIGH_TOP,
    KILL_Y,
    LOW_TOP,
    OVERHANG,
    PLATFORM_CYCLE,
    PLATFORM_HALF_WIDTH,
    PLATFORM_RISE,
    PLATFORM_X,
    PLATFORM_Y,
    Ground,
    State,
)

_PER_HALF_CYCLE = 2.0 / PLATFORM_CYCLE


@wp.func
def platform_at(frame: wp.int32) -> wp.vec2:
    """Centre of the platform's top: it eases in and out between its two ends."""
    phase = frame % PLATFORM_CYCLE
    phase = wp.min(phase, PLATFORM_CYCLE - phase)
    t = wp.float32(phase) * _PER_HALF_CYCLE
    s = 1.0 - 2.0 * (t * t * (3.0 - 2.0 * t))  # 1 at the start, -1 half a cycle later
    return wp.vec2(PLATFORM_X * s, PLATFORM_Y - PLATFORM_RISE * s)


@wp.func
def ground_top(x: wp.float32) -> wp.float32:
    """Height of the solid ground at x, or the lower edge of the kill box where there is none."""
    top = KILL_Y
    if wp.abs(x) >= GROUND_INNER and wp.abs(x) <= GROUND_OUTER:
        top = LOW_TOP
        if x > 0.0:
            top = HIGH_TOP
    return top


@wp.func
def support_below(x: wp.float32, y: wp.float32, platform: wp.vec2) -> wp.float32:
    """Height of the first thing below a body at (x, y) that it could stand on; the kill box if there is none."""
    reach = wp.abs(x) + BODY_HALF_WIDTH
    top = KILL_Y
    if reach > GROUND_INNER and wp.abs(x) - BODY_HALF_WIDTH < GROUND_OUTER:
        side_top = LOW_TOP
        if x > 0.0:
            side_top = HIGH_TOP
        if y + BODY_HALF_HEIGHT <= side_top + CONTACT:
            top = side_top
    if (
        wp.abs(x - platform[0]) < PLATFORM_HALF_WIDTH + BODY_HALF_WIDTH
        and y + BODY_HALF_HEIGHT <= platform[1] + CONTACT
    ):
        top = wp.min(top, platform[1])
    return top


@wp.func
def bounced(speed: wp.float32, state: wp.int32) -> wp.float32:
    """Speed after an impact: a stunned body bounces, any other stops."""
    if state == State.STUN and wp.abs(speed) > BOUNCE_MIN:
        return -BOUNCE * speed
    return 0.0


@wp.func
def move_sideways(p: wp.ref[Player]):
    """Moves along x and stops or bounces at the flanks of the grounds."""
    old = p.x
    p.x = old + p.vx * DT
    side = 1.0
    top = HIGH_TOP
    if p.x < 0.0:
        side = -1.0
        top = LOW_TOP
    if p.y + BODY_HALF_HEIGHT > top + CONTACT:
        inner = GROUND_INNER - BODY_HALF_WIDTH
        outer = GROUND_OUTER + BODY_HALF_WIDTH
        depth = p.x * side
        if depth > inner and depth < outer:
            if old * side < (inner + outer) * 0.5:
                p.x = inner * side
            else:
                p.x = outer * side
            p.vx = bounced(p.vx, p.state)


@wp.func
def stop_at_edge(p: wp.ref[Player], old: wp.float32, platform: wp.vec2):
    """Keeps a fighter that stands on something from sliding off it.

    Args:
        p: The fighter, moved sideways already.
        old: Its x before; one that hung over further than a ground move may go is not pulled back.
        platform: Platform after this frame.
    """
    x = p.x
    if p.ground == Ground.SOLID:
        side = wp.where(x > 0.0, 1.0, -1.0)
        inner = wp.min(GROUND_INNER - OVERHANG, wp.abs(old))
        outer = wp.max(GROUND_OUTER + OVERHANG, wp.abs(old))
        p.x = side * wp.clamp(wp.abs(x), inner, outer)
    elif p.ground == Ground.PLATFORM:
        reach = wp.max(PLATFORM_HALF_WIDTH + OVERHANG, wp.abs(old - platform[0]))
        p.x = wp.clamp(x, platform[0] - reach, platform[0] + reach)
    if p.x != x:
        p.vx = 0.0


@wp.func
def move_vertically(p: wp.ref[Player], before: wp.vec2, after: wp.vec2):
    """Moves along y; lands on the grounds and, from above, on the platform; sets what the body stands on.

    Args:
        p: The fighter.
        before: Platform before this frame.
        after: Platform after this frame.
    """
    old_feet = p.y + BODY_HALF_HEIGHT
    p.y = p.y + p.vy * DT
    feet = p.y + BODY_HALF_HEIGHT
    p.ground = Ground.NONE
    reach = wp.abs(p.x)
    if reach + BODY_HALF_WIDTH > GROUND_INNER + CONTACT and reach - BODY_HALF_WIDTH < GROUND_OUTER - CONTACT:
        top = LOW_TOP
        if p.x > 0.0:
            top = HIGH_TOP
        if p.vy >= 0.0 and old_feet <= top + CONTACT and feet >= top - CONTACT:
            p.y = top - BODY_HALF_HEIGHT
            p.vy = bounced(p.vy, p.state)
            if p.vy == 0.0:
                p.ground = Ground.SOLID
    if p.ground == Ground.NONE and p.vy >= 0.0 and p.drop_timer == 0:
        over = wp.abs(p.x - after[0]) < PLATFORM_HALF_WIDTH + BODY_HALF_WIDTH
        if over and old_feet <= wp.max(before[1], after[1]) + CONTACT and feet >= after[1] - CONTACT:
            p.y = after[1] - BODY_HALF_HEIGHT
            p.vy = bounced(p.vy, p.state)
            if p.vy == 0.0:
                p.ground = Ground.PLATFORM
