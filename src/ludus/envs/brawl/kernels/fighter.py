"""One fighter's own frame: timers, what its keys do, and its motion (Warp functions).

Nothing here looks at the other fighter, so both act at the same instant whatever the order of the calls.
"""

import warp as wp

from ludus.envs.brawl.kernels.stage import move_sideways, move_vertically, stop_at_edge
from ludus.envs.brawl.kernels.structs import Move, Player
from ludus.envs.brawl.rules import (
    AIR_EASE,
    AIR_JUMP_DRIFT,
    AIR_JUMPS,
    BACKDASH_FRAMES,
    BACKDASH_SPEED,
    DASH_FRAMES,
    DASH_SPEED,
    DODGE_COOLDOWN_AIR,
    DODGE_COOLDOWN_GROUND,
    DODGE_FRAMES,
    DROP_THROUGH_FRAMES,
    DT,
    FAST_FALL_GRAVITY,
    GRAVITY,
    GROUND_EASE,
    JUMP_COOLDOWN,
    JUMP_SPEED,
    MAX_FALL,
    MAX_FAST_FALL,
    MAX_SPEED,
    MOVES_PER_WEAPON,
    RESPAWN_INVINCIBLE,
    SPRINT_SPEED,
    START_X,
    START_Y,
    STUN_EASE,
    TAUNT_FRAMES,
    TURN_FRAMES,
    WALK_SPEED,
    Ground,
    Key,
    Mask,
    Slot,
    State,
)


@wp.func
def eased(value: wp.float32, target: wp.float32, ease: wp.float32) -> wp.float32:
    """Moves `value` toward `target` by at most `ease`."""
    if value < target:
        return wp.min(value + ease, target)
    return wp.max(value - ease, target)


@wp.func
def place_at_start(p: wp.ref[Player], weapon: wp.int32):
    """Puts a fighter at its start with nothing of its past but stocks, side and keys."""
    p.x = wp.float32(p.home) * START_X
    p.y = START_Y
    p.vx = 0.0
    p.vy = 0.0
    p.damage = 0.0
    p.facing = -p.home
    p.state = State.IN_AIR
    p.timer = 0
    p.ground = Ground.NONE
    p.jumps = AIR_JUMPS
    p.jump_cooldown = 0
    p.dodge_cooldown = 0
    p.recovery_used = 0
    p.invincible = 0
    p.drop_timer = 0
    p.weapon = weapon
    p.move = -1
    p.move_frame = 0
    p.charge = 0
    p.hit_mask = 0
    p.threatened = 0


@wp.func
def set_free(p: wp.ref[Player]):
    """Ends a timed state."""
    p.state = State.STANDING
    if p.ground == Ground.NONE:
        p.state = State.IN_AIR
    p.timer = 0
    p.move = -1
    p.move_frame = 0
    p.charge = 0
    p.hit_mask = 0


@wp.func
def start_move(p: wp.ref[Player], move: wp.int32):
    """Begins an attack."""
    p.state = State.ATTACK
    p.timer = 0
    p.move = move
    p.move_frame = 0
    p.charge = 0
    p.hit_mask = 0


@wp.func
def chosen_slot(p: Player, keys: wp.int32, direction: wp.int32) -> wp.int32:
    """Slot of the attack that the keys ask for, or -1."""
    light = (keys & Mask.LIGHT) != 0
    heavy = (keys & Mask.HEAVY) != 0
    if not (light or heavy):
        return -1
    down = (keys & Mask.DOWN) != 0
    aim = int(0)
    if down:
        aim = 1
    elif direction != 0:
        aim = 2
    if p.ground != Ground.NONE:
        if heavy:
            return Slot.GROUND_HEAVY_NEUTRAL + aim
        return Slot.GROUND_LIGHT_NEUTRAL + aim
    if heavy:
        if down:
            return Slot.GROUND_POUND
        if p.recovery_used == 0:
            return Slot.RECOVERY
        return -1
    return Slot.AIR_LIGHT_NEUTRAL + aim


@wp.func
def try_jump(p: wp.ref[Player], pressed: wp.int32, direction: wp.int32) -> bool:
    """Jumps from the ground or in the air, if the key was pressed and a jump is left."""
    if (pressed & Mask.JUMP) == 0 or p.jump_cooldown > 0:
        return False
    if p.ground == Ground.NONE:
        if p.jumps == 0:
            return False
        p.jumps -= 1
        if direction != 0:
            p.vx = wp.float32(direction) * wp.max(AIR_JUMP_DRIFT, wp.float32(direction) * p.vx)
    p.vy = -JUMP_SPEED
    p.jump_cooldown = JUMP_COOLDOWN
    p.ground = Ground.NONE
    p.state = State.IN_AIR
    p.timer = 0
    return True


@wp.func
def try_dodge(p: wp.ref[Player], pressed: wp.int32, direction: wp.int32) -> bool:
    """Dashes, back-dashes or dodges, if the key was pressed."""
    if (pressed & Mask.DODGE) == 0:
        return False
    grounded = p.ground != Ground.NONE
    if grounded and direction != 0:
        p.state = State.BACKDASH
        p.timer = BACKDASH_FRAMES
        p.vx = -wp.float32(p.facing) * BACKDASH_SPEED
        if direction == p.facing:
            p.state = State.DASH
            p.timer = DASH_FRAMES
            p.vx = wp.float32(p.facing) * DASH_SPEED
        return True
    if p.dodge_cooldown > 0:
        return False
    p.state = State.DODGE
    p.timer = DODGE_FRAMES
    p.vx = 0.0
    p.vy = 0.0
    p.dodge_cooldown = DODGE_FRAMES + DODGE_COOLDOWN_AIR
    if grounded:
        p.dodge_cooldown = DODGE_FRAMES + DODGE_COOLDOWN_GROUND
    return True


@wp.func
def try_attack(p: wp.ref[Player], keys: wp.int32, direction: wp.int32) -> bool:
    """Starts an attack, if a key for one is held."""
    slot = chosen_slot(p, keys, direction)
    if slot < 0:
        return False
    if direction != 0:
        p.facing = direction
    if slot == Slot.RECOVERY:
        p.recovery_used = 1
    start_move(p, p.weapon * MOVES_PER_WEAPON + slot)
    return True


@wp.func
def walk(p: wp.ref[Player], direction: wp.int32):
    """Walking, sprinting, standing and turning on the ground; drifting and turning in the air."""
    if p.ground == Ground.NONE:
        p.state = State.IN_AIR
        if direction != 0:
            if direction != p.facing:
                p.facing = direction
                p.state = State.AIR_TURNAROUND
            p.vx = eased(p.vx, wp.float32(direction) * WALK_SPEED, AIR_EASE)
        return
    if direction == 0:
        p.state = State.STANDING
        p.vx = eased(p.vx, 0.0, GROUND_EASE)
    elif direction != p.facing:
        p.facing = direction
        p.state = State.TURNAROUND
        p.timer = TURN_FRAMES
        p.vx = eased(p.vx, 0.0, GROUND_EASE)
    elif p.state == State.SPRINTING:
        p.vx = wp.float32(direction) * SPRINT_SPEED
    else:
        p.state = State.WALKING
        p.vx = wp.float32(direction) * WALK_SPEED


@wp.func
def act_freely(p: wp.ref[Player], keys: wp.int32, pressed: wp.int32, direction: wp.int32) -> wp.float32:
    """A frame of a fighter that may do as it likes; returns 1 if an attack began."""
    if (keys & Mask.DOWN) != 0 and p.ground == Ground.PLATFORM:
        p.drop_timer = DROP_THROUGH_FRAMES
        p.ground = Ground.NONE
    if try_dodge(p, pressed, direction):
        return 0.0
    if try_jump(p, pressed, direction):
        return 0.0
    if try_attack(p, keys, direction):
        return 1.0
    if (pressed & Mask.TAUNT) != 0 and p.ground != Ground.NONE:
        p.state = State.TAUNT
        p.timer = TAUNT_FRAMES
        p.vx = 0.0
        return 0.0
    walk(p, direction)
    return 0.0


@wp.func
def carry_attack(p: wp.ref[Player], move: Move, keys: wp.int32, direction: wp.int32) -> wp.float32:
    """A frame of an attack: charge, own motion, follow-up; returns 1 if a follow-up began; sets free at the end."""
    charging = p.move_frame == move.charge_frame and p.charge < move.charge_max and (keys & Mask.HEAVY) != 0
    if charging:
        p.charge += 1
    else:
        p.move_frame += 1
    if p.hit_mask != 0 and move.follow_up >= 0 and p.move_frame >= move.cancel_frame and (keys & Mask.LIGHT) != 0:
        if direction != 0:
            p.facing = direction
        start_move(p, move.follow_up)
        return 1.0
    if p.move_frame >= move.total:
        set_free(p)
        return 0.0
    if p.move_frame >= move.motion_start and p.move_frame <= move.motion_end:
        p.vx = wp.float32(p.facing) * move.motion_x
        if p.ground == Ground.NONE:
            p.vy = move.motion_y
    elif p.ground != Ground.NONE:
        p.vx = eased(p.vx, 0.0, GROUND_EASE)
    elif direction != 0:
        p.vx = eased(p.vx, wp.float32(direction) * WALK_SPEED, AIR_EASE)
    return 0.0


@wp.func
def act(p: wp.ref[Player], move: Move, keys: wp.int32, respawn_weapon: wp.int32) -> wp.float32:
    """Timers, state and keys of one frame.

    Args:
        p: The fighter.
        move: Its current move; any if it is not attacking.
        keys: Keys held in this frame, standard-stage directions.
        respawn_weapon: Weapon after a respawn.

    Returns:
        1 if an attack began in this frame.
    """
    pressed = keys & ~p.keys
    p.keys = keys
    direction = ((keys >> Key.RIGHT) & 1) - ((keys >> Key.LEFT) & 1)
    p.jump_cooldown = wp.max(p.jump_cooldown - 1, 0)
    p.dodge_cooldown = wp.max(p.dodge_cooldown - 1, 0)
    p.invincible = wp.max(p.invincible - 1, 0)
    p.drop_timer = wp.max(p.drop_timer - 1, 0)
    p.timer = wp.max(p.timer - 1, 0)

    if p.state == State.ATTACK:
        began = carry_attack(p, move, keys, direction)
        if p.state == State.ATTACK:
            return began
    if p.state == State.KO:
        if p.timer == 0:
            place_at_start(p, respawn_weapon)
            p.invincible = RESPAWN_INVINCIBLE
        return 0.0
    if p.state == State.STUN:
        if p.timer > 0:
            p.vx = eased(p.vx, 0.0, STUN_EASE)
            return 0.0
        set_free(p)
    if p.state == State.DASH or p.state == State.BACKDASH:
        return carry_dash(p, keys, pressed, direction)
    if p.state == State.DODGE or p.state == State.TAUNT or p.state == State.TURNAROUND:
        if p.timer > 0:
            if p.state == State.DODGE:
                p.vx = 0.0
                p.vy = 0.0
            return 0.0
        set_free(p)
    return act_freely(p, keys, pressed, direction)


@wp.func
def carry_dash(p: wp.ref[Player], keys: wp.int32, pressed: wp.int32, direction: wp.int32) -> wp.float32:
    """A frame of a dash or back-dash; a jump or an attack breaks it off; a held dash becomes a sprint."""
    if p.ground == Ground.NONE:
        set_free(p)
        return act_freely(p, keys, pressed, direction)
    if try_jump(p, pressed, direction):
        return 0.0
    if try_attack(p, keys, direction):
        return 1.0
    if p.timer == 0:
        sprint = p.state == State.DASH and direction == p.facing
        set_free(p)
        if sprint:
            p.state = State.SPRINTING
        walk(p, direction)
    elif p.state == State.DASH:
        p.vx = wp.float32(p.facing) * DASH_SPEED
    else:
        p.vx = -wp.float32(p.facing) * BACKDASH_SPEED
    return 0.0


@wp.func
def travel(p: wp.ref[Player], move: Move, before: wp.vec2, after: wp.vec2):
    """Gravity, motion and contact of one frame."""
    if p.state == State.KO:
        return
    if p.ground == Ground.PLATFORM:
        p.x += after[0] - before[0]
        p.y += after[1] - before[1]
    carried = p.state == State.ATTACK and p.move_frame >= move.motion_start and p.move_frame <= move.motion_end
    if p.state != State.DODGE and not (carried and p.ground == Ground.NONE):
        pull = GRAVITY * DT
        limit = MAX_FALL
        if p.state == State.STUN:
            limit = MAX_SPEED
        elif (p.keys & Mask.DOWN) != 0 and p.vy >= 0.0:
            pull = pull * FAST_FALL_GRAVITY
            limit = MAX_FAST_FALL
        if p.vy < limit:
            p.vy = wp.min(p.vy + pull, limit)
        else:
            p.vy = eased(p.vy, limit, pull)
    was_ground = p.ground
    was_x = p.x
    move_sideways(p)
    if p.state == State.ATTACK and p.move % MOVES_PER_WEAPON <= Slot.GROUND_HEAVY_SIDE:
        stop_at_edge(p, was_x, after)
    move_vertically(p, before, after)
    if p.ground != Ground.NONE:
        p.jumps = AIR_JUMPS
        p.recovery_used = 0
        if p.state == State.IN_AIR or p.state == State.AIR_TURNAROUND:
            p.state = State.STANDING
        slides = p.vx != 0.0 and (p.state == State.STANDING or p.state == State.TURNAROUND)
        if p.state != State.STUN and not slides:  # whoever slides on from a blow may still slide over the edge
            p.threatened = 0
        if p.state == State.ATTACK and was_ground == Ground.NONE and move.landing_frame >= 0:
            p.move_frame = wp.max(p.move_frame, move.landing_frame)
    elif p.state == State.STANDING or p.state == State.WALKING or p.state == State.SPRINTING:
        p.state = State.IN_AIR
    elif p.state == State.TURNAROUND or p.state == State.TAUNT:
        set_free(p)
