"""One fighter's own frame: timers, what its keys do, and its motion (Warp functions).

Nothing here looks at the other fighter, so both act at the same instant whatever the order of the calls.
"""

import warp as wp

from ludus.worlds.brawl import rules as const
from ludus.worlds.brawl.kernels.stage import move_sideways, move_vertically, stop_at_edge
from ludus.worlds.brawl.kernels.structs import Move, Player
from ludus.worlds.brawl.rules import Ground, Key, Mask, Slot, State


@wp.func
def eased(value: float, target: float, ease: float) -> float:
    """Move `value` toward `target` by at most `ease`."""
    if value < target:
        return wp.min(value + ease, target)
    return wp.max(value - ease, target)


@wp.func
def forget_move(p: wp.ref[Player]):
    """Clear everything about the move that a fighter was in."""
    p.move = -1
    p.move_frame = 0
    p.charge = 0
    p.hit_mask = 0


@wp.func
def place_at_start(p: wp.ref[Player], weapon: int):
    """Place a fighter at its start; only stocks, side and keys are kept."""
    p.x = wp.float32(p.home) * const.START_X
    p.y = const.START_Y
    p.vx = 0.0
    p.vy = 0.0
    p.damage = 0.0
    p.facing = -p.home
    p.state = State.IN_AIR
    p.timer = 0
    p.ground = Ground.NONE
    p.jumps = const.AIR_JUMPS
    p.jump_cooldown = 0
    p.dodge_cooldown = 0
    p.recovery_used = 0
    p.invincible = 0
    p.drop_timer = 0
    p.weapon = weapon
    forget_move(p)
    p.threatened = 0


@wp.func
def set_free(p: wp.ref[Player]):
    """End a timed state."""
    p.state = State.STANDING
    if p.ground == Ground.NONE:
        p.state = State.IN_AIR
    p.timer = 0
    forget_move(p)


@wp.func
def start_move(p: wp.ref[Player], move: int):
    """Begin an attack."""
    p.state = State.ATTACK
    p.timer = 0
    p.move = move
    p.move_frame = 0
    p.charge = 0
    p.hit_mask = 0


@wp.func
def chosen_slot(p: Player, keys: int, direction: int) -> int:
    """Return the slot of the attack that the keys ask for, or -1."""
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
def try_jump(p: wp.ref[Player], pressed: int, direction: int) -> bool:
    """Jump from the ground or in the air, if the key was pressed and a jump is left."""
    if (pressed & Mask.JUMP) == 0 or p.jump_cooldown > 0:
        return False
    if p.ground == Ground.NONE:
        if p.jumps == 0:
            return False
        p.jumps -= 1
        if direction != 0:
            p.vx = wp.float32(direction) * wp.max(const.AIR_JUMP_DRIFT, wp.float32(direction) * p.vx)
    p.vy = -const.JUMP_SPEED
    p.jump_cooldown = const.JUMP_COOLDOWN
    p.ground = Ground.NONE
    p.state = State.IN_AIR
    p.timer = 0
    return True


@wp.func
def try_dodge(p: wp.ref[Player], pressed: int, direction: int) -> bool:
    """Dash, back-dash or dodge if the key was pressed."""
    if (pressed & Mask.DODGE) == 0:
        return False
    grounded = p.ground != Ground.NONE
    if grounded and direction != 0:
        p.state = State.BACKDASH
        p.timer = const.BACKDASH_FRAMES
        p.vx = -wp.float32(p.facing) * const.BACKDASH_SPEED
        if direction == p.facing:
            p.state = State.DASH
            p.timer = const.DASH_FRAMES
            p.vx = wp.float32(p.facing) * const.DASH_SPEED
        return True
    if p.dodge_cooldown > 0:
        return False
    p.state = State.DODGE
    p.timer = const.DODGE_FRAMES
    p.vx = 0.0
    p.vy = 0.0
    p.dodge_cooldown = const.DODGE_FRAMES + const.DODGE_COOLDOWN_AIR
    if grounded:
        p.dodge_cooldown = const.DODGE_FRAMES + const.DODGE_COOLDOWN_GROUND
    return True


@wp.func
def try_attack(p: wp.ref[Player], keys: int, direction: int) -> bool:
    """Start an attack, if a key for one is held."""
    slot = chosen_slot(p, keys, direction)
    if slot < 0:
        return False
    if direction != 0:
        p.facing = direction
    if slot == Slot.RECOVERY:
        p.recovery_used = 1
    start_move(p, p.weapon * const.MOVES_PER_WEAPON + slot)
    return True


@wp.func
def walk(p: wp.ref[Player], direction: int):
    """Walking, sprinting, standing and turning on the ground; drifting and turning in the air."""
    if p.ground == Ground.NONE:
        p.state = State.IN_AIR
        if direction != 0:
            if direction != p.facing:
                p.facing = direction
                p.state = State.AIR_TURNAROUND
            p.vx = eased(p.vx, wp.float32(direction) * const.WALK_SPEED, const.AIR_EASE)
        return
    if direction == 0:
        p.state = State.STANDING
        p.vx = eased(p.vx, 0.0, const.GROUND_EASE)
    elif direction != p.facing:
        p.facing = direction
        p.state = State.TURNAROUND
        p.timer = const.TURN_FRAMES
        p.vx = eased(p.vx, 0.0, const.GROUND_EASE)
    elif p.state == State.SPRINTING:
        p.vx = wp.float32(direction) * const.SPRINT_SPEED
    else:
        p.state = State.WALKING
        p.vx = wp.float32(direction) * const.WALK_SPEED


@wp.func
def act_freely(p: wp.ref[Player], keys: int, pressed: int, direction: int) -> float:
    """Advance a fighter that may act freely by a frame; return 1 if an attack began."""
    if (keys & Mask.DOWN) != 0 and p.ground == Ground.PLATFORM:
        p.drop_timer = const.DROP_THROUGH_FRAMES
        p.ground = Ground.NONE
    if try_dodge(p, pressed, direction):
        return 0.0
    if try_jump(p, pressed, direction):
        return 0.0
    if try_attack(p, keys, direction):
        return 1.0
    if (pressed & Mask.TAUNT) != 0 and p.ground != Ground.NONE:
        p.state = State.TAUNT
        p.timer = const.TAUNT_FRAMES
        p.vx = 0.0
        return 0.0
    walk(p, direction)
    return 0.0


@wp.func
def carry_attack(p: wp.ref[Player], move: Move, keys: int, direction: int) -> float:
    """Advance an attack by a frame: charge, own motion, follow-up, end; return 1 if a follow-up began."""
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
        p.vx = eased(p.vx, 0.0, const.GROUND_EASE)
    elif direction != 0:
        p.vx = eased(p.vx, wp.float32(direction) * const.WALK_SPEED, const.AIR_EASE)
    return 0.0


@wp.func
def act(p: wp.ref[Player], move: Move, keys: int, respawn_weapon: int) -> float:
    """Apply timers, state and keys (standard-stage directions) of one frame; return 1 if an attack began.

    `move` is the fighter's current one; any if it is not attacking.
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
            p.invincible = const.RESPAWN_INVINCIBLE
        return 0.0
    if p.state == State.STUN:
        if p.timer > 0:
            p.vx = eased(p.vx, 0.0, const.STUN_EASE)
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
    if p.state == State.CLASH:  # `combat.clash` ends it
        return 0.0
    return act_freely(p, keys, pressed, direction)


@wp.func
def carry_dash(p: wp.ref[Player], keys: int, pressed: int, direction: int) -> float:
    """Advance a dash or back-dash by a frame; a jump or an attack cancels it, a held dash becomes a sprint."""
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
        p.vx = wp.float32(p.facing) * const.DASH_SPEED
    else:
        p.vx = -wp.float32(p.facing) * const.BACKDASH_SPEED
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
    hovers = p.state == State.DODGE or p.state == State.CLASH
    if not hovers and not (carried and p.ground == Ground.NONE):
        pull = const.GRAVITY * const.DT
        limit = const.MAX_FALL
        if p.state == State.STUN:
            limit = const.MAX_SPEED
        elif (p.keys & Mask.DOWN) != 0 and p.vy >= 0.0:
            pull = pull * const.FAST_FALL_GRAVITY
            limit = const.MAX_FAST_FALL
        if p.vy < limit:
            p.vy = wp.min(p.vy + pull, limit)
        else:
            p.vy = eased(p.vy, limit, pull)
    was_ground = p.ground
    was_x = p.x
    move_sideways(p)
    if p.state == State.ATTACK and p.move % const.MOVES_PER_WEAPON <= Slot.GROUND_HEAVY_SIDE:
        stop_at_edge(p, was_x, after)
    move_vertically(p, before, after)
    if p.ground != Ground.NONE:
        p.jumps = const.AIR_JUMPS
        p.recovery_used = 0
        if p.state == State.IN_AIR or p.state == State.AIR_TURNAROUND:
            p.state = State.STANDING
        slides = p.vx != 0.0 and (p.state == State.STANDING or p.state == State.TURNAROUND)
        if p.state != State.STUN and not slides:  # a fighter that slides after a blow may still slide over the edge
            p.threatened = 0
        if p.state == State.ATTACK and was_ground == Ground.NONE and move.landing_frame >= 0:
            p.move_frame = wp.max(p.move_frame, move.landing_frame)
    elif p.state == State.STANDING or p.state == State.WALKING or p.state == State.SPRINTING:
        p.state = State.IN_AIR
    elif p.state == State.TURNAROUND or p.state == State.TAUNT:
        set_free(p)
