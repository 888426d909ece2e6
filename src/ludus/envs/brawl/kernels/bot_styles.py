"""The styles of the scripted players, one function each (Warp functions).

A style maps what the bot sees to the keys it holds, in its own frame. `Memo` is what it remembers between frames.
"""

import warp as wp

from ludus.envs.brawl.kernels.bot_sense import Sight, no_ground_below, recover, sideways, tap, travel_to
from ludus.envs.brawl.rules import Mask, State
from ludus.envs.warp_functions import mix, uniform


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


@wp.func
def draw(s: Sight, salt: int) -> wp.float32:
    """A random number in [0, 1) that stays the same within this frame."""
    return uniform(mix(s.chance, wp.uint32(salt)))


@wp.func
def near(s: Sight, wide: float, tall: float) -> bool:
    """Whether the opponent is within this distance and can be fought."""
    return wp.abs(s.dx) < wide and wp.abs(s.dy) < tall and s.opponent_state != State.KO


@wp.func
def risky(s: Sight, direction: int) -> bool:
    """Whether a step or a lunge this way leads over an edge."""
    x = s.x * s.high
    outward = float(direction) * s.high * x > 0.0
    return wp.where(outward, wp.abs(x) > 5.6, wp.abs(x) < 3.9)


@wp.func
def toward(s: Sight, key: int) -> int:
    """An attack toward the opponent; on the spot where the lunge would lead over an edge."""
    if s.grounded != 0 and s.facing == s.towards and risky(s, s.towards):
        return key
    return sideways(s.towards) | key


@wp.func
def may_fight_here(s: Sight) -> bool:
    """Whether an attack in the air leaves a way back to the stage."""
    soon = s.x + 0.4 * s.vx
    return not (no_ground_below(s.x * s.high) or no_ground_below(soon * s.high)) or (s.jumps > 0 and s.y < 0.2)


@wp.func
def follow_through(s: Sight, memo: wp.ref[Memo]) -> int:
    """During an own attack: steer back to the stage, or lead into the next blow when this one has hit."""
    untouched = memo.next_jump  # an attack cannot be broken off by a jump, so none is spent here
    rescue = recover(s, s.x + s.dx, memo.next_jump)
    memo.next_jump = untouched
    if rescue >= 0:
        return rescue & (Mask.LEFT | Mask.RIGHT)
    if s.opponent_state == State.STUN and near(s, 2.2, 1.5):
        return Mask.LIGHT
    return 0


@wp.func
def based(s: Sight) -> int:
    """The rule bot of the tournament: walks at the opponent, jumps when lower, knows no gap."""
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
    """The same rule bot, but it crosses the gap and comes back when it falls."""
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
    """Closes in at a dash and attacks without a pause; heavy blows once the opponent is hurt."""
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
    """Holds its own ground, dodges what comes and strikes only into an opening."""
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
    """Rushes in, lands a blow and is gone before the answer."""
    if memo.mode == 1 and s.frame >= memo.until:
        memo.mode = 0
    if memo.mode == 0:
        if near(s, 2.6, 1.8) and s.opponent_state == State.STUN:
            memo.mode = 1
            memo.until = s.frame + 45
        elif s.state == State.ATTACK and memo.until < s.frame:
            memo.mode = 1
            memo.until = s.frame + 60
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
    """Fights from the air: jumps at the opponent and strikes sideways or down on it."""
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
    """Walks into range and throws one charged blow after the other."""
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
def weapon_seeker(s: Sight, memo: wp.ref[Memo], item_dx: float, item_dy: float) -> int:
    """Fetches a weapon before anything else and fights with it; `item_dx` over 90 means there is none to take."""
    if s.armed != 0:
        return aggressive(s, memo)
    if item_dx > 90.0:
        return defensive(s, memo)
    if wp.abs(item_dx) < 0.7 and wp.abs(item_dy) < 0.9:
        return Mask.PICKUP
    if near(s, 1.3, 1.0):
        return toward(s, Mask.LIGHT)
    return travel_to(s, s.x + item_dx, memo.next_jump)


@wp.func
def edge_guarder(s: Sight, memo: wp.ref[Memo]) -> int:
    """Throws the opponent off the stage and waits at the edge for its return."""
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
