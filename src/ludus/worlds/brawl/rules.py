"""The rules in numbers: every constant of the game with its unit, in one table.

Distances are in units (a body is one unit high), y grows downward, speeds are in units per second, times in
frames of 1/30 s. Magnitudes follow the tournament fighter that this world replaces; the moves themselves are
data (`moves.yaml`).

Coordinates are those of the standard stage: the high ground lies at positive x. A mirrored stage is the same
game seen in a mirror, so only presentation knows of it.
"""

from enum import IntEnum

RATE_HZ = 30
DT = 1.0 / RATE_HZ  # s per frame
SEATS = 2
KEYS = 10
ITEM_SLOTS = 4  # two spawn places, then one dropped weapon per seat
MOVES_PER_WEAPON = 11
HITS_PER_MOVE = 4
MAX_WEAPONS = 4  # places for weapons in an observation, so that its size does not depend on the move table
MAX_DELAY = 32  # frames; longest reaction delay of a bot

# --- stage (units) ---
KILL_X, KILL_Y = 14.0, 8.0
GROUND_INNER = 2.0  # both grounds reach from here ...
GROUND_OUTER = 7.0  # ... to here, left and right of the gap, and down to the kill box
HIGH_TOP, LOW_TOP = 0.85, 2.85
START_X, START_Y = 5.0, 0.0
PLATFORM_HALF_WIDTH, PLATFORM_THICKNESS = 1.0, 0.2
PLATFORM_X = 0.93  # travels between (0.93, 0.07) and (-0.93, 1.93)
PLATFORM_Y = 1.0
PLATFORM_RISE = 0.93
PLATFORM_CYCLE = 290  # frames there and back

# --- body (units) ---
BODY_HALF_WIDTH, BODY_HALF_HEIGHT = 0.435, 0.5
HURT_RADIUS = 0.465  # the hurtbox is an upright capsule, 0.93 x 1.02
HURT_HALF_LENGTH = 0.045
OVERHANG = 0.2  # how far a body's centre may hang over an edge in a ground move
CONTACT = 0.001  # slack in resting contact

# --- motion (units/s; eases are units/s per frame) ---
GRAVITY = 17.808  # units/s^2
WALK_SPEED, SPRINT_SPEED = 6.75, 8.0
DASH_SPEED, BACKDASH_SPEED = 10.0, 4.0
JUMP_SPEED = 8.9
AIR_JUMP_DRIFT = 4.5  # an air jump with a direction has at least this speed
MAX_FALL = 12.0
FAST_FALL_GRAVITY = 2.0  # factor while down is held
MAX_FAST_FALL = 16.0
GROUND_EASE, AIR_EASE, STUN_EASE = 1.5, 0.358, 0.239
BOUNCE = 0.7  # speed kept when a stunned body meets the stage
BOUNCE_MIN = 3.0  # slower impacts do not bounce
MAX_SPEED = 45.0

# --- times (frames) ---
DASH_FRAMES, BACKDASH_FRAMES, TURN_FRAMES = 9, 7, 1
DODGE_FRAMES, DODGE_COOLDOWN_GROUND, DODGE_COOLDOWN_AIR = 10, 30, 82
TAUNT_FRAMES = 30
KO_FRAMES = 90
RESPAWN_INVINCIBLE = 90
JUMP_COOLDOWN = 6
AIR_JUMPS = 2
DROP_THROUGH_FRAMES = 8

# --- hits ---
MAX_DAMAGE = 700.0
KNOCKBACK_LINEAR = 70.0  # launch = fixed + variable * (X / 70 + X^2 / 12000)
KNOCKBACK_SQUARE = 12000.0
STUN_PER_SPEED = 0.25  # frames of stun per unit/s of launch, on top of the move's own

# --- weapons on the ground ---
FIRST_SPAWN_WITHIN = 350
SPAWN_EVERY_MIN, SPAWN_EVERY_MAX = 250, 1050
SPAWN_LIFE, DROP_LIFE = 350, 250
ITEM_LOCK = 36  # cannot be taken for this long
ITEM_FALL_SPEED = 6.0
SPAWN_X_MIN, SPAWN_X_MAX = 2.6, 6.5
REACH_X, REACH_Y = 0.75, 0.9  # how far a weapon can be and still be taken


class State(IntEnum):
    """What a fighter is doing."""

    STANDING, WALKING, SPRINTING, TURNAROUND, IN_AIR, AIR_TURNAROUND = range(6)
    DASH, BACKDASH, DODGE, ATTACK, STUN, TAUNT, KO = range(6, 13)
    CLASH = 13  # observations show it as none of the others, so that their size did not change with it


class Key(IntEnum):
    """Bit of each key in a key mask, and its place in an action."""

    UP, LEFT, DOWN, RIGHT, JUMP, PICKUP, DODGE, LIGHT, HEAVY, TAUNT = range(10)


class Mask(IntEnum):
    """Key mask values, `1 << Key`."""

    UP, LEFT, DOWN, RIGHT, JUMP, PICKUP, DODGE, LIGHT, HEAVY, TAUNT = (1 << key for key in range(10))


class Ground(IntEnum):
    """What a fighter stands on."""

    NONE, SOLID, PLATFORM = range(3)


class Choice(IntEnum):
    """What a fighter does in a clash; each beats the next but one."""

    STRIKE, GUARD, THROW = range(3)


class Slot(IntEnum):
    """The eleven moves of a weapon, in the order of the move table."""

    GROUND_LIGHT_NEUTRAL, GROUND_LIGHT_DOWN, GROUND_LIGHT_SIDE = range(3)
    GROUND_HEAVY_NEUTRAL, GROUND_HEAVY_DOWN, GROUND_HEAVY_SIDE = range(3, 6)
    AIR_LIGHT_NEUTRAL, AIR_LIGHT_DOWN, AIR_LIGHT_SIDE, RECOVERY, GROUND_POUND = range(6, 11)


class Stream(IntEnum):
    """Names of the independent random streams within one frame of one game."""

    SIDE, SPAWN_TIME, SPAWN_PLACE, SPAWN_KIND, PICKUP_TIE = range(5)
    BOT_NOISE, BOT_CHOICE, BOT_HABIT = 6, 7, 8


class Event(IntEnum):
    """Column of each event in the event tensor."""

    DAMAGE_DEALT, DAMAGE_TAKEN, HITS, STUN_HITS, KNOCKOUTS, KNOCKED_OUT, FALLS = range(7)
    ATTACKS, PICKUPS, PICKUP_VALUE, DROPS, WINS, LOSSES, DRAWS = range(7, 14)


EVENTS = tuple(event.name.lower() for event in Event)
MEASURES = (
    *("x", "y", "distance", "heading", "damage", "stocks", "state", "grounded", "weapon", "keys_held", "closing"),
    *("opponent_x", "opponent_y"),
)
