"""What a scripted player sees, and the skills all of them share: recovering and travelling (Warp functions).

Everything is in the player's own frame (its start on the left), so that a bot plays the same from either side.
"""

import warp as wp

from ludus.envs.brawl.kernels.structs import Match, Move, Player
from ludus.envs.brawl.rules import (
    BODY_HALF_HEIGHT,
    GROUND_INNER,
    GROUND_OUTER,
    HIGH_TOP,
    LOW_TOP,
    Ground,
    Mask,
    State,
)

LEDGE = 0.9  # a bot that wants to cross the gap jumps this far from the edge
SAFE_OUTER = 6.6  # bots do not walk further out than this


@wp.struct
class Sight:
    """One frame as a bot sees it, own start on the left."""

    x: wp.float32
    y: wp.float32
    vx: wp.float32
    vy: wp.float32
    facing: wp.int32
    dx: wp.float32  # opponent minus self
    dy: wp.float32
    towards: wp.int32  # -1, 0 or +1: the way to the opponent
    high: wp.float32  # side of the high ground
    state: wp.int32
    grounded: wp.int32
    on_platform: wp.int32
    jumps: wp.int32
    can_recover: wp.int32
    can_dodge: wp.int32
    armed: wp.int32
    reach: wp.float32  # how much farther the own weapon reaches than bare hands
    opponent_state: wp.int32
    opponent_damage: wp.float32
    opponent_threat: wp.int32  # 1 while the opponent's attack is before or in its active frames
    opponent_open: wp.int32  # 1 while the opponent recovers from an attack or is stunned
    opponent_off: wp.int32  # 1 while there is no ground below the opponent
    frame: wp.int32
    patience: wp.int32  # frames between two presses of a key, longer for slow bots
    chance: wp.uint32  # random bits of this frame


@wp.func
def no_ground_below(x: wp.float32) -> bool:
    """Whether a body at x falls out of the stage."""
    return wp.abs(x) < GROUND_INNER - 0.2 or wp.abs(x) > GROUND_OUTER + 0.2


@wp.func
def look(
    p: Player,
    other: Player,
    match: Match,
    moves: wp.array[Move],
    reaches: wp.array[wp.float32],
    delay: int,
    chance: wp.uint32,
) -> Sight:
    """Takes in the state of a match."""
    mirror = -wp.float32(p.home)
    s = Sight()
    s.x = p.x * mirror
    s.y = p.y
    s.vx = p.vx * mirror
    s.vy = p.vy
    s.facing = p.facing * -p.home
    s.dx = (other.x - p.x) * mirror
    s.dy = other.y - p.y
    s.towards = wp.where(s.dx > 0.0, 1, wp.where(s.dx < 0.0, -1, 0))
    s.high = mirror
    s.state = p.state
    s.grounded = wp.where(p.ground != Ground.NONE, 1, 0)
    s.on_platform = wp.where(p.ground == Ground.PLATFORM, 1, 0)
    s.jumps = p.jumps
    s.can_recover = 1 - p.recovery_used
    s.can_dodge = wp.where(p.dodge_cooldown == 0, 1, 0)
    s.armed = wp.where(p.weapon > 0, 1, 0)
    s.reach = reaches[p.weapon]
    s.opponent_state = other.state
    s.opponent_damage = other.damage
    if other.state == State.ATTACK:
        active = other.move_frame <= moves[other.move].active_end
        s.opponent_threat = wp.where(active, 1, 0)
        s.opponent_open = 1 - s.opponent_threat
    elif other.state == State.STUN:
        s.opponent_open = 1
    s.opponent_off = wp.where(no_ground_below(other.x) and other.ground == Ground.NONE, 1, 0)
    s.frame = match.frame
    s.patience = 8 + delay
    s.chance = chance
    return s


@wp.func
def sideways(direction: int) -> int:
    """Key mask of a direction: -1 left, +1 right, 0 none."""
    return wp.where(direction > 0, int(Mask.RIGHT), wp.where(direction < 0, int(Mask.LEFT), 0))


@wp.func
def tap(s: Sight, last: wp.ref[wp.int32], key: int) -> int:
    """Presses a key for one frame, and not again before the bot can have seen the effect."""
    if s.frame < last:
        return 0
    last = s.frame + s.patience
    return key


@wp.func
def recover(s: Sight, goal: float, last_jump: wp.ref[wp.int32]) -> int:
    """Keys that bring a falling fighter back to the stage, or -1 if it is in no danger.

    Args:
        s: What the bot sees.
        goal: Where it wants to go; says which side to land on when over the gap.
        last_jump: Memory of `tap`.
    """
    if s.grounded != 0:
        return -1
    x = s.x * s.high  # standard stage: high ground at positive x
    top = wp.where(x > 0.0, float(HIGH_TOP), float(LOW_TOP))
    feet = s.y + BODY_HALF_HEIGHT
    if not no_ground_below(x) and feet <= top + 0.2:
        return -1
    side = wp.where(x > 0.0, 1.0, -1.0)
    if wp.abs(x) < GROUND_INNER:
        lift = 2.0 * float(s.jumps) + 2.0 * float(s.can_recover)
        wants_high = goal * s.high > 0.0
        can_high = feet - lift < HIGH_TOP
        side = wp.where((wants_high and can_high) or (x > 1.0 and can_high), 1.0, -1.0)
    top = wp.where(side > 0.0, float(HIGH_TOP), float(LOW_TOP))
    inner = wp.abs(x) < (GROUND_INNER + GROUND_OUTER) * 0.5
    target = side * wp.where(inner, GROUND_INNER + 0.6, GROUND_OUTER - 0.6)
    direction = wp.where((target - x) * s.high > 0.0, 1, -1)
    keys = sideways(direction)
    far = wp.abs(target - x) > 2.5
    low = feet > top - 0.3
    if s.vy > -1.0 and (low or (far and s.vy > 4.0)):
        if s.jumps > 0:
            keys = keys | tap(s, last_jump, Mask.JUMP)
        elif s.can_recover != 0 and low:
            keys = keys | Mask.HEAVY
    return keys


@wp.func
def travel_to(s: Sight, goal: float, last_jump: wp.ref[wp.int32]) -> int:
    """Keys that walk to a place on the stage, jumping the gap where it lies between."""
    rescue = recover(s, goal, last_jump)
    if rescue >= 0:
        return rescue
    x = s.x * s.high
    target = wp.clamp(goal * s.high, -SAFE_OUTER, SAFE_OUTER)
    here = wp.where(x > 0.0, 1.0, -1.0)
    if wp.abs(target) < GROUND_INNER + 0.3:  # over the gap: wait at the edge of this side
        target = here * (GROUND_INNER + 0.5)
    if wp.abs(target - x) < 0.3:
        return 0
    direction = wp.where((target - x) * s.high > 0.0, 1, -1)
    keys = sideways(direction)
    crossing = target * here < 0.0
    at_edge = wp.abs(x) < GROUND_INNER + LEDGE
    if s.grounded != 0 and crossing and (at_edge or s.on_platform != 0):
        keys = keys | tap(s, last_jump, Mask.JUMP)
    return keys
