"""The styles of the scripted players, one function each, and the skills they share (Warp functions).

Everything is in the player's own frame (its start on the left), so that a bot plays the same from either side. A style
maps what the bot sees to the keys it holds; `Memo` is what it remembers between frames. `habits` is not one style but
as many as there are random numbers: its rules are drawn for every match.
"""

from enum import IntEnum

import warp as wp

from ludus.envs.warp_functions import below, mix, uniform
from ludus.worlds.brawl import rules as const
from ludus.worlds.brawl.kernels.structs import Match, Memo, Move, Player
from ludus.worlds.brawl.rules import Choice, Ground, Mask, State

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
    item_dx: wp.float32  # the way to the nearest weapon that can be taken; over 90 if there is none
    item_dy: wp.float32
    frame: wp.int32
    patience: wp.int32  # frames between two presses of a key, longer for slow bots
    chance: wp.uint32  # random bits of this frame


@wp.func
def no_ground_below(x: float) -> bool:
    """Return whether a body at x falls out of the stage."""
    return wp.abs(x) < const.GROUND_INNER - 0.2 or wp.abs(x) > const.GROUND_OUTER + 0.2


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
    """Compute what a bot sees of a match."""
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
    """Return the key mask of a direction: -1 left, +1 right, 0 none."""
    return wp.where(direction > 0, int(Mask.RIGHT), wp.where(direction < 0, int(Mask.LEFT), 0))


@wp.func
def tap(s: Sight, last: wp.ref[wp.int32], key: int) -> int:
    """Press a key for one frame, and not again before the bot can have seen the effect."""
    if s.frame < last:
        return 0
    last = s.frame + s.patience
    return key


@wp.func
def recover(s: Sight, goal: float, last_jump: wp.ref[wp.int32]) -> int:
    """Return keys that bring a falling fighter back to the stage, or -1 if it is safe.

    `goal`, where it wants to go, says which side to land on when over the gap; `last_jump` is the memory of `tap`.
    """
    if s.grounded != 0:
        return -1
    x = s.x * s.high  # standard stage: high ground at positive x
    top = wp.where(x > 0.0, float(const.HIGH_TOP), float(const.LOW_TOP))
    feet = s.y + const.BODY_HALF_HEIGHT
    if not no_ground_below(x) and feet <= top + 0.2:
        return -1
    side = wp.where(x > 0.0, 1.0, -1.0)
    if wp.abs(x) < const.GROUND_INNER:
        lift = 2.0 * float(s.jumps) + 2.0 * float(s.can_recover)
        wants_high = goal * s.high > 0.0
        can_high = feet - lift < const.HIGH_TOP
        side = wp.where((wants_high and can_high) or (x > 1.0 and can_high), 1.0, -1.0)
    top = wp.where(side > 0.0, float(const.HIGH_TOP), float(const.LOW_TOP))
    inner = wp.abs(x) < (const.GROUND_INNER + const.GROUND_OUTER) * 0.5
    target = side * wp.where(inner, const.GROUND_INNER + 0.6, const.GROUND_OUTER - 0.6)
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
    """Return keys that walk to a place on the stage, jumping the gap where it lies between."""
    rescue = recover(s, goal, last_jump)
    if rescue >= 0:
        return rescue
    x = s.x * s.high
    target = wp.clamp(goal * s.high, -SAFE_OUTER, SAFE_OUTER)
    here = wp.where(x > 0.0, 1.0, -1.0)
    if wp.abs(target) < const.GROUND_INNER + 0.3:  # over the gap: wait at the edge of this side
        target = here * (const.GROUND_INNER + 0.5)
    if wp.abs(target - x) < 0.3:
        return 0
    direction = wp.where((target - x) * s.high > 0.0, 1, -1)
    keys = sideways(direction)
    crossing = target * here < 0.0
    at_edge = wp.abs(x) < const.GROUND_INNER + LEDGE
    if s.grounded != 0 and crossing and (at_edge or s.on_platform != 0):
        keys = keys | tap(s, last_jump, Mask.JUMP)
    return keys


@wp.func
def draw(s: Sight, salt: int) -> float:
    """Return a random number in [0, 1) that stays the same within this frame."""
    return uniform(mix(s.chance, wp.uint32(salt)))


@wp.func
def near(s: Sight, wide: float, tall: float) -> bool:
    """Return whether the opponent is within this distance and can be fought."""
    return wp.abs(s.dx) < wide and wp.abs(s.dy) < tall and s.opponent_state != State.KO


@wp.func
def risky(s: Sight, direction: int) -> bool:
    """Return whether a step or a lunge this way leads over an edge."""
    x = s.x * s.high
    outward = float(direction) * s.high * x > 0.0
    return wp.where(outward, wp.abs(x) > 5.6, wp.abs(x) < 3.9)


@wp.func
def toward(s: Sight, key: int) -> int:
    """Return an attack toward the opponent; on the spot where the lunge would lead over an edge."""
    if s.grounded != 0 and s.facing == s.towards and risky(s, s.towards):
        return key
    return sideways(s.towards) | key


@wp.func
def may_fight_here(s: Sight) -> bool:
    """Return whether an attack in the air leaves a way back to the stage."""
    soon = s.x + 0.4 * s.vx
    return not (no_ground_below(s.x * s.high) or no_ground_below(soon * s.high)) or (s.jumps > 0 and s.y < 0.2)


@wp.func
def follow_through(s: Sight, memo: wp.ref[Memo]) -> int:
    """Return the keys during an own attack: steer back to the stage, or chain the next blow if this one hit."""
    untouched = memo.next_jump  # an attack cannot be broken off by a jump, so none is spent here
    rescue = recover(s, s.x + s.dx, memo.next_jump)
    memo.next_jump = untouched
    if rescue >= 0:
        return rescue & (Mask.LEFT | Mask.RIGHT)
    if s.opponent_state == State.STUN and near(s, 2.2, 1.5):
        return Mask.LIGHT
    return 0


@wp.func
def based(s: Sight, memo: wp.ref[Memo]) -> int:  # noqa: ARG001 - as all styles are called
    """Return the rule bot of the tournament: walks at the opponent, jumps when lower, knows no gap."""
    keys = int(0)
    if wp.abs(s.x) > 5.335:
        keys = sideways(wp.where(s.x > 0.0, -1, 1))
    elif s.opponent_state != State.KO and s.opponent_state != State.STUN:
        keys = sideways(s.towards)
    if s.frame % 2 == 0 and (s.y > 1.6 or s.dy < 0.0):
        keys = keys | Mask.JUMP
    if s.dx * s.dx + s.dy * s.dy < 4.0:
        keys = keys | Mask.LIGHT
    return keys


@wp.func
def based_safe(s: Sight, memo: wp.ref[Memo]) -> int:
    """Return the same rule bot, but it crosses the gap and comes back when it falls."""
    goal = s.x + s.dx
    if s.opponent_state == State.KO or s.opponent_state == State.STUN:
        goal = s.x
    keys = travel_to(s, goal, memo.next_jump)
    if s.grounded != 0 and s.dy < -0.5:
        keys = keys | tap(s, memo.next_jump, Mask.JUMP)
    within = 2.0 + s.reach
    if s.dx * s.dx + s.dy * s.dy < within * within:
        keys = keys | Mask.LIGHT
    return keys


@wp.func
def aggressive(s: Sight, memo: wp.ref[Memo]) -> int:
    """Close in at a dash and attack without a pause; heavy blows once the opponent is hurt."""
    if s.state == State.ATTACK:
        return follow_through(s, memo)
    rescue = recover(s, s.x + s.dx, memo.next_jump)
    if rescue >= 0:
        return rescue
    if near(s, 1.7 + s.reach, 1.1):
        choice = draw(s, 1)
        if s.opponent_damage > 80.0 and choice < 0.45:
            return toward(s, Mask.HEAVY)
        if choice > 0.75:
            return Mask.DOWN | Mask.LIGHT
        if choice > 0.5 and s.facing == s.towards:
            return Mask.LIGHT
        return toward(s, Mask.LIGHT)
    if near(s, 1.3, 2.8) and s.dy < 0.0:
        if s.grounded != 0:
            return sideways(s.towards) | tap(s, memo.next_jump, Mask.JUMP)
        return Mask.LIGHT
    keys = travel_to(s, s.x + s.dx, memo.next_jump)
    if s.grounded != 0 and wp.abs(s.dx) > 3.0 and s.facing == s.towards and not risky(s, s.towards):
        keys = keys | tap(s, memo.next_dodge, Mask.DODGE)
    return keys


@wp.func
def defensive(s: Sight, memo: wp.ref[Memo]) -> int:
    """Hold its own ground, dodge what comes and strike only into an opening."""
    if s.state == State.ATTACK:
        return follow_through(s, memo)
    rescue = recover(s, -4.5, memo.next_jump)
    if rescue >= 0:
        return rescue
    if near(s, 2.6, 1.6):
        if s.opponent_threat != 0 and s.can_dodge != 0:
            return tap(s, memo.next_dodge, Mask.DODGE)
        if s.opponent_open != 0 or near(s, 1.2, 1.0):
            if near(s, 1.5 + s.reach, 1.0):
                return wp.where(draw(s, 1) < 0.5, int(Mask.DOWN | Mask.LIGHT), toward(s, Mask.LIGHT))
            return wp.where(risky(s, s.towards), 0, sideways(s.towards))
        if s.grounded != 0 and s.facing == s.towards and not risky(s, -s.towards):
            return sideways(-s.towards) | tap(s, memo.next_dodge, Mask.DODGE)
        return 0
    if s.grounded != 0 and wp.abs(s.x + 4.5) < 0.8:
        return wp.where(s.facing != s.towards, sideways(s.towards), 0)
    return travel_to(s, -4.5, memo.next_jump)


@wp.func
def hit_and_run(s: Sight, memo: wp.ref[Memo]) -> int:
    """Rush in, land a blow and retreat before the answer."""
    if s.state == State.ATTACK:
        return follow_through(s, memo)
    if memo.mode == 1 and s.frame >= memo.until:
        memo.mode = 0
    if memo.mode == 0 and near(s, 2.6, 1.8) and s.opponent_state == State.STUN:
        memo.mode = 1
        memo.until = s.frame + 45
    if memo.mode == 0:
        rescue = recover(s, s.x + s.dx, memo.next_jump)
        if rescue >= 0:
            return rescue
        if near(s, 1.6 + s.reach, 1.0):
            return wp.where(draw(s, 1) < 0.4 and s.facing == s.towards, int(Mask.LIGHT), toward(s, Mask.LIGHT))
        keys = travel_to(s, s.x + s.dx, memo.next_jump)
        if s.grounded != 0 and wp.abs(s.dx) > 2.0 and s.facing == s.towards and not risky(s, s.towards):
            keys = keys | tap(s, memo.next_dodge, Mask.DODGE)
        return keys
    away = wp.where(s.dx > 0.0, -1.0, 1.0)
    goal = s.x + s.dx + away * 5.0
    if wp.abs(goal) > 7.0:  # cornered: over the opponent's head to the other side
        goal = -away * 4.5
        if s.grounded != 0 and near(s, 2.5, 1.5):
            return sideways(s.towards) | tap(s, memo.next_jump, Mask.JUMP)
    return travel_to(s, goal, memo.next_jump)


@wp.func
def aerial(s: Sight, memo: wp.ref[Memo]) -> int:
    """Fight from the air: jump at the opponent and strike sideways or down."""
    if s.state == State.ATTACK:
        return follow_through(s, memo)
    if s.grounded == 0 and near(s, 1.7 + s.reach, 1.7) and may_fight_here(s):
        if s.dy > 0.6 and wp.abs(s.dx) < 1.0:
            return wp.where(
                s.opponent_off == 0 and draw(s, 1) < 0.3, int(Mask.DOWN | Mask.HEAVY), int(Mask.DOWN | Mask.LIGHT)
            )
        return sideways(s.towards) | Mask.LIGHT
    rescue = recover(s, s.x + s.dx, memo.next_jump)
    if rescue >= 0:
        return rescue
    keys = travel_to(s, s.x + s.dx, memo.next_jump)
    if s.grounded != 0 and wp.abs(s.dx) < 4.0:
        keys = keys | tap(s, memo.next_jump, Mask.JUMP)
    elif s.grounded == 0 and s.vy > 2.0 and s.jumps > 1 and s.dy < -0.5:
        keys = keys | tap(s, memo.next_jump, Mask.JUMP)
    return keys


@wp.func
def heavy_spammer(s: Sight, memo: wp.ref[Memo]) -> int:
    """Walk into range and throw one charged blow after the other."""
    if s.state == State.ATTACK:
        return wp.where(s.frame < memo.until, int(Mask.HEAVY), 0)
    rescue = recover(s, s.x + s.dx, memo.next_jump)
    if rescue >= 0:
        return rescue
    if s.grounded != 0 and near(s, 2.3 + s.reach, 1.3):
        memo.until = s.frame + 10 + int(24.0 * draw(s, 1))
        choice = draw(s, 2)
        if s.dy < -0.7 or choice < 0.15:
            return Mask.HEAVY
        if choice > 0.85:
            return Mask.DOWN | Mask.HEAVY
        return toward(s, Mask.HEAVY)
    return travel_to(s, s.x + s.dx - float(s.towards) * (1.4 + s.reach), memo.next_jump)


@wp.func
def weapon_seeker(s: Sight, memo: wp.ref[Memo]) -> int:
    """Fetch a weapon before anything else and fight with it."""
    if s.state == State.ATTACK:
        return follow_through(s, memo)
    if s.armed != 0:
        return aggressive(s, memo)
    if s.item_dx > 90.0:
        return defensive(s, memo)
    if wp.abs(s.item_dx) < 0.7 and wp.abs(s.item_dy) < 0.9:
        return Mask.PICKUP
    if near(s, 1.3, 1.0):
        return toward(s, Mask.LIGHT)
    return travel_to(s, s.x + s.item_dx, memo.next_jump)


@wp.func
def edge_guarder(s: Sight, memo: wp.ref[Memo]) -> int:
    """Throw the opponent off the stage and wait at the edge for its return."""
    if s.state == State.ATTACK:
        return follow_through(s, memo)
    goal = s.x + s.dx
    if s.opponent_off != 0 and s.opponent_state != State.KO:
        x = goal * s.high
        edge = wp.where(wp.abs(x) < 2.0, 2.5, 6.5) * wp.where(x > 0.0, 1.0, -1.0)
        goal = edge * s.high
        rescue = recover(s, goal, memo.next_jump)
        if rescue >= 0:
            return rescue
        if near(s, 2.4 + s.reach, 2.2):
            if s.grounded == 0 and may_fight_here(s):
                return wp.where(s.dy > 0.5, int(Mask.DOWN | Mask.LIGHT), sideways(s.towards) | int(Mask.LIGHT))
            if s.dy < -0.8:
                return Mask.HEAVY
            return toward(s, Mask.HEAVY)
        return travel_to(s, goal, memo.next_jump)
    rescue = recover(s, goal, memo.next_jump)
    if rescue >= 0:
        return rescue
    if near(s, 1.8 + s.reach, 1.1):
        outward = s.towards * wp.where(s.x > 0.0, 1, -1) > 0
        if outward and draw(s, 1) < 0.6:
            return toward(s, Mask.HEAVY)
        return toward(s, Mask.LIGHT)
    return travel_to(s, goal - float(s.towards) * (1.2 + s.reach), memo.next_jump)


class Situation(IntEnum):
    """What habits go by: each has favourite intents of its own."""

    FAR, MIDDLE, NEAR, OPEN, THREAT, OFF_STAGE = range(6)


class Intent(IntEnum):
    """What a bot with habits does for some frames; attacks come last."""

    APPROACH, SPACE, RETREAT, DASH, JUMP_IN, WAIT, DODGE, FETCH = range(8)
    STRIKE, LUNGE, SWEEP = range(8, 11)


TRAITS = 3  # a family of habits is a combination of these: it fights from the air, with heavy blows, patiently
FAMILIES = 1 << TRAITS
FAVOURITES = 3  # intents that a bot with habits chooses from in a situation


@wp.func
def situation_of(s: Sight) -> int:
    """Return the situation that a bot with habits is in."""
    if s.opponent_off != 0:
        return Situation.OFF_STAGE
    if near(s, 2.2 + s.reach, 1.6):
        if s.opponent_open != 0:
            return Situation.OPEN
        return wp.where(s.opponent_threat != 0, int(Situation.THREAT), int(Situation.NEAR))
    return wp.where(wp.abs(s.dx) < 4.5, int(Situation.MIDDLE), int(Situation.FAR))


@wp.func
def favourite(habit: wp.uint32, situation: int, place: int, family: int) -> int:
    """Return one of the favourite intents in a situation: a function of the habit, which is drawn for a match."""
    h = mix(mix(habit, wp.uint32(16 + situation)), wp.uint32(place))
    moves = below(h, Intent.STRIKE)
    attacks = Intent.STRIKE + below(mix(h, wp.uint32(1)), 3)
    # How often a favourite is an attack: nearly always into an opening, hardly ever from afar.
    share = float(0.05)
    if situation == Situation.NEAR:
        share = wp.where((family & 4) != 0, 0.35, 0.8)
    elif situation == Situation.OPEN or situation == Situation.OFF_STAGE:
        share = 0.85
    elif situation == Situation.THREAT:
        share = 0.3
    elif situation == Situation.MIDDLE:
        share = 0.1
    if uniform(mix(h, wp.uint32(2))) < share:
        return attacks
    # From afar the first favourite leads to the opponent, or to the distance it keeps: else nobody would ever come.
    if place == 0 and (situation == Situation.FAR or situation == Situation.MIDDLE):
        if (family & 4) != 0:
            return Intent.SPACE
        return wp.where((family & 1) != 0, int(Intent.JUMP_IN), int(Intent.APPROACH))
    return moves


@wp.func
def habits(s: Sight, memo: wp.ref[Memo], habit: wp.uint32, family: int) -> int:
    """Follow rules that were drawn for the match: in each situation one of a few intents, held for some frames.

    Args:
        s: What it sees.
        memo: What it remembers: the intent is its mode, the situation its style.
        habit: Random bits of the match, from which all rules are drawn.
        family: Combination of traits that the rules keep to.
    """
    charges = uniform(mix(habit, wp.uint32(3))) < 0.5
    if s.state == State.ATTACK:
        if charges and s.frame < memo.until:
            return Mask.HEAVY
        return follow_through(s, memo)
    rescue = recover(s, s.x + s.dx, memo.next_jump)
    if rescue >= 0:
        return rescue
    situation = situation_of(s)
    if s.frame >= memo.style_until or memo.style != situation + 1:
        # The most liked one with a chance of 0.5 to 0.9, so that some are easy to read and others are not.
        liking = 0.5 + 0.4 * uniform(mix(habit, wp.uint32(4)))
        place = int(0)
        if draw(s, 1) > liking:
            place = 1 + below(mix(s.chance, wp.uint32(2)), FAVOURITES - 1)
        memo.mode = favourite(habit, situation, place, family)
        memo.style = situation + 1
        memo.style_until = s.frame + 2 + below(mix(habit, wp.uint32(5)), 14)
    keeps = 1.2 + 2.8 * uniform(mix(habit, wp.uint32(6)))  # the distance that it likes, units
    intent = memo.mode
    if intent >= Intent.STRIKE:
        if not near(s, 2.4 + s.reach, 2.0) and s.opponent_off == 0:
            return travel_to(s, s.x + s.dx, memo.next_jump)
        if (family & 1) != 0 and s.grounded != 0 and draw(s, 3) < 0.5:
            return sideways(s.towards) | tap(s, memo.next_jump, Mask.JUMP)
        if s.grounded == 0 and not may_fight_here(s):
            return travel_to(s, s.x + s.dx, memo.next_jump)
        is_heavy = ((family & 2) != 0) == (draw(s, 4) < 0.85)
        key = wp.where(is_heavy, int(Mask.HEAVY), int(Mask.LIGHT))
        memo.until = s.frame + wp.where(is_heavy, 4 + below(mix(habit, wp.uint32(7)), 20), 0)
        if intent == Intent.SWEEP and (s.grounded != 0 or s.dy > 0.0):
            return int(Mask.DOWN) | key
        if intent == Intent.LUNGE:
            return toward(s, key)
        return wp.where(s.facing == s.towards, key, sideways(s.towards) | key)
    if intent == Intent.SPACE:
        return travel_to(s, s.x + s.dx - float(s.towards) * keeps, memo.next_jump)
    if intent == Intent.RETREAT:
        return travel_to(s, -4.5, memo.next_jump)
    if intent == Intent.WAIT:
        return wp.where(s.facing != s.towards, sideways(s.towards), 0)
    if intent == Intent.DODGE:
        return wp.where(s.can_dodge != 0, tap(s, memo.next_dodge, Mask.DODGE), 0)
    if intent == Intent.FETCH and s.armed == 0 and s.item_dx < 90.0:
        if wp.abs(s.item_dx) < 0.7 and wp.abs(s.item_dy) < 0.9:
            return Mask.PICKUP
        return travel_to(s, s.x + s.item_dx, memo.next_jump)
    keys = travel_to(s, s.x + s.dx, memo.next_jump)
    if s.grounded != 0 and s.facing == s.towards and not risky(s, s.towards):
        if intent == Intent.DASH:
            keys = keys | tap(s, memo.next_dodge, Mask.DODGE)
        elif intent == Intent.JUMP_IN:
            keys = keys | tap(s, memo.next_jump, Mask.JUMP)
    return keys


GUESSES = len(Choice)


@wp.func
def clash_keys(choice: int) -> int:
    """Return the keys of a choice in a clash."""
    if choice == Choice.STRIKE:
        return int(Mask.LIGHT)
    return wp.where(choice == Choice.THROW, int(Mask.HEAVY), 0)
