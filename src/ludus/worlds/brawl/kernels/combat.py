"""Hits: capsules of one fighter against the other's, and what a hit does (Warp functions).

Both fighters' hits are found before any takes effect, so that two blows in one frame trade.
"""

import warp as wp

from ludus.worlds.brawl import rules as const
from ludus.worlds.brawl.kernels.fighter import set_free
from ludus.worlds.brawl.kernels.structs import Hit, Move, Player
from ludus.worlds.brawl.rules import Ground, State


@wp.struct
class Blow:
    """A hit that connected; `hit` -1 means none did."""

    hit: wp.int32  # bit number in the attacker's hit mask
    parried: wp.int32  # frames of stun for the attacker, whose hit met a guard; 0 if none did
    damage: wp.float32
    stun: wp.int32
    launch_x: wp.float32
    launch_y: wp.float32
    fixed: wp.float32
    variable: wp.float32
    boost: wp.float32  # charge factor
    side: wp.int32  # the way the attacker faced


@wp.func
def segment_distance_sq(a: wp.vec2, b: wp.vec2, c: wp.vec2, d: wp.vec2) -> float:
    """Return the squared distance between the segments ab and cd in the plane.

    In the plane two segments either cross, or an end of one is nearest: so the least of four distances from an end
    to the other segment, or 0 if they cross.
    """
    ab = b - a
    cd = d - c
    ac = c - a
    cross = ab[0] * cd[1] - ab[1] * cd[0]
    if cross != 0.0:
        t = (ac[0] * cd[1] - ac[1] * cd[0]) / cross
        u = (ac[0] * ab[1] - ac[1] * ab[0]) / cross
        if t >= 0.0 and t <= 1.0 and u >= 0.0 and u <= 1.0:
            return 0.0
    nearest = point_distance_sq(a, c, d)
    nearest = wp.min(nearest, point_distance_sq(b, c, d))
    nearest = wp.min(nearest, point_distance_sq(c, a, b))
    return wp.min(nearest, point_distance_sq(d, a, b))


@wp.func
def point_distance_sq(p: wp.vec2, a: wp.vec2, b: wp.vec2) -> float:
    """Return the squared distance from the point p to the segment ab."""
    ab = b - a
    length_sq = ab[0] * ab[0] + ab[1] * ab[1]
    t = float(0.0)
    if length_sq > 0.0:
        t = wp.clamp(((p[0] - a[0]) * ab[0] + (p[1] - a[1]) * ab[1]) / length_sq, 0.0, 1.0)
    dx = p[0] - (a[0] + t * ab[0])
    dy = p[1] - (a[1] + t * ab[1])
    return dx * dx + dy * dy


@wp.func
def can_be_hit(p: Player) -> bool:
    """Return whether a blow has any effect on the fighter."""
    return p.invincible == 0 and p.state != State.DODGE and p.state != State.KO


@wp.func
def guards_against(p: Player, move: Move, x: float) -> bool:
    """Return whether a fighter in this move of its own guards itself against a strike from the place x."""
    if p.state != State.ATTACK or p.move_frame < move.guard_start or p.move_frame > move.guard_end:
        return False
    return move.guard_start >= 0 and (x - p.x) * wp.float32(p.facing) >= 0.0


@wp.func
def find_blow(attacker: Player, victim: Player, move: Move, victim_move: Move, hits: wp.array[Hit]) -> Blow:
    """Return the first hit of the attacker's move that newly touches the victim in this frame, or that is parried."""
    blow = Blow()
    blow.hit = -1
    if attacker.state != State.ATTACK or not can_be_hit(victim):
        return blow
    if attacker.move_frame < move.startup or attacker.move_frame > move.active_end:
        return blow
    facing = wp.float32(attacker.facing)
    high = wp.vec2(victim.x, victim.y - const.HURT_HALF_LENGTH)
    low = wp.vec2(victim.x, victim.y + const.HURT_HALF_LENGTH)
    for index in range(const.HITS_PER_MOVE):
        hit = hits[attacker.move * const.HITS_PER_MOVE + index]
        active = hit.start >= 0 and attacker.move_frame >= hit.start and attacker.move_frame <= hit.end
        reachable = hit.grab == 0 or victim.ground != Ground.NONE
        if blow.hit < 0 and active and reachable and (attacker.hit_mask & (1 << index)) == 0:
            start = wp.vec2(attacker.x + facing * hit.from_x, attacker.y + hit.from_y)
            end = wp.vec2(attacker.x + facing * hit.to_x, attacker.y + hit.to_y)
            reach = hit.radius + const.HURT_RADIUS
            if segment_distance_sq(start, end, high, low) <= reach * reach:
                blow.hit = index
                blow.damage = hit.damage
                blow.stun = hit.stun
                blow.launch_x = hit.launch_x
                blow.launch_y = hit.launch_y
                blow.fixed = hit.fixed
                blow.variable = hit.variable
                blow.side = attacker.facing
                blow.boost = 1.0
                if move.charge_max > 0:
                    blow.boost += move.charge_bonus * wp.float32(attacker.charge) / wp.float32(move.charge_max)
                if hit.grab == 0 and guards_against(victim, victim_move, attacker.x):
                    blow.parried = victim_move.guard_stun
    if blow.parried > 0:
        blow.hit = -1
    return blow


@wp.func
def parry(attacker: wp.ref[Player], guard: wp.ref[Player], stun: int):
    """Stun an attacker that struck a guard, and free the fighter behind the guard to strike back."""
    attacker.state = State.STUN
    attacker.timer = stun
    attacker.vx = 0.0
    attacker.move = -1
    attacker.move_frame = 0
    attacker.charge = 0
    attacker.hit_mask = 0
    set_free(guard)


@wp.func
def take_blow(p: wp.ref[Player], blow: Blow) -> float:
    """Apply damage, launch and stun to a fighter that was hit; return the damage taken."""
    before = p.damage
    p.damage = wp.min(before + blow.damage * blow.boost, const.MAX_DAMAGE)
    # launch = fixed + variable * (X / 70 + X^2 / 12000) at damage X, so fresh fighters hardly fly.
    growth = p.damage / const.KNOCKBACK_LINEAR + p.damage * p.damage / const.KNOCKBACK_SQUARE
    speed = wp.min((blow.fixed + blow.variable * growth) * blow.boost, const.MAX_SPEED)
    p.vx = wp.float32(blow.side) * blow.launch_x * speed
    p.vy = blow.launch_y * speed
    p.facing = -blow.side
    p.state = State.STUN
    p.timer = blow.stun + wp.int32(speed * const.STUN_PER_SPEED)
    p.ground = Ground.NONE
    p.move = -1
    p.move_frame = 0
    p.charge = 0
    p.hit_mask = 0
    p.recovery_used = 0
    p.jumps = wp.max(p.jumps, 1)
    p.threatened = 1
    return p.damage - before
