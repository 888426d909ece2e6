"""Hits: capsules of one fighter against the other's, and what a hit does (Warp functions).

Both fighters' hits are found before any takes effect, so that two blows in one frame trade.
"""

import warp as wp

from ludus.worlds.brawl import rules as const
from ludus.worlds.brawl.kernels.fighter import forget_move, set_free
from ludus.worlds.brawl.kernels.structs import Hit, Move, Player, Rules
from ludus.worlds.brawl.rules import Choice, Ground, Mask, State


@wp.struct
class Blow:
    """A hit that connected; `hit` -1 means none did."""

    hit: wp.int32  # bit number in the attacker's hit mask
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
def find_blow(attacker: Player, victim: Player, move: Move, hits: wp.array[Hit]) -> Blow:
    """Return the first hit of the attacker's move that newly touches the victim in this frame."""
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
        if blow.hit < 0 and active and (attacker.hit_mask & (1 << index)) == 0:
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
    return blow


@wp.func
def chosen(keys: int) -> int:
    """Return what a fighter chooses in a clash by holding these keys."""
    if (keys & Mask.HEAVY) != 0:  # before light, as in `fighter.chosen_slot`
        return int(Choice.THROW)
    return wp.where((keys & Mask.LIGHT) != 0, int(Choice.STRIKE), int(Choice.GUARD))


@wp.func
def enter_clash(p: wp.ref[Player], frames: int, facing: int):
    """Hold a fighter for a clash, as if it had been hit, but in its place."""
    p.state = State.CLASH
    p.timer = frames
    p.facing = facing
    p.vx = 0.0
    p.vy = 0.0
    forget_move(p)
    p.invincible = 0  # whoever strikes can be struck
    p.recovery_used = 0
    p.jumps = wp.max(p.jumps, 1)


@wp.func
def recoil(p: wp.ref[Player], rules: Rules):
    """Push a fighter back from a clash in which both chose the same."""
    p.state = State.STUN
    p.timer = rules.clash_recoil
    p.vx = -wp.float32(p.facing) * rules.clash_push


@wp.func
def clash_blow(winner: Player, rules: Rules) -> Blow:
    """Return the blow for whoever loses a clash; it counts as the first hit of a move."""
    blow = Blow()
    blow.hit = 0
    blow.damage = rules.clash_damage
    blow.stun = rules.clash_stun
    blow.launch_x = rules.clash_launch_x
    blow.launch_y = rules.clash_launch_y
    blow.fixed = rules.clash_fixed
    blow.variable = rules.clash_variable
    blow.side = winner.facing
    blow.boost = 1.0
    return blow


@wp.func
def clash(a: wp.ref[Player], b: wp.ref[Player], blow_a: wp.ref[Blow], blow_b: wp.ref[Blow], rules: Rules):
    """Let blows open a clash instead of hitting, and end one that is over: then the winner's blow is the clash's.

    Both choose by the keys of the last frame, which neither sees of the other. Strike beats throw, throw beats guard
    and guard beats strike: in the order of `Choice` each beats the one before it, in a circle.
    """
    if a.state == State.CLASH or b.state == State.CLASH:
        if a.state != b.state:  # the other has left the stage
            if a.state == State.CLASH:
                set_free(a)
            else:
                set_free(b)
        elif a.timer == 0 and b.timer == 0:
            lead = (chosen(a.keys) - chosen(b.keys) + 3) % 3
            set_free(a)
            set_free(b)
            if lead == 1:
                blow_a = clash_blow(a, rules)
            elif lead == 2:
                blow_b = clash_blow(b, rules)
            else:
                recoil(a, rules)
                recoil(b, rules)
        return
    opens_a = blow_a.hit >= 0 and b.state != State.STUN
    opens_b = blow_b.hit >= 0 and a.state != State.STUN
    if opens_a or opens_b:
        facing = -a.home  # in the same place each faces the other's start: no seat and no side has an edge
        if a.x != b.x:
            facing = wp.where(b.x > a.x, 1, -1)
        enter_clash(a, rules.clash_frames, facing)
        enter_clash(b, rules.clash_frames, -facing)
        blow_a = Blow()
        blow_b = Blow()
        blow_a.hit = -1
        blow_b.hit = -1


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
    forget_move(p)
    p.recovery_used = 0
    p.jumps = wp.max(p.jumps, 1)
    p.threatened = 1
    return p.damage - before
