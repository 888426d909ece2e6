"""The rules in numbers: every constant of the game with its unit, in one table.

Distances are in units (a body is one unit high), y grows downward, speeds are in units a second, times are in
frames of 1/30 s. Magnitudes follow the tournament fighter that this world replaces; the moves themselves are
data (`moves.yaml`).

Coordinates are those of the standard stage: the high ground lies at positive x. A mirrored stage is the same
game seen in a mirror, so only presentation knows of it.
"""

from enum import IntEnum

RATE_HZ = 30
DT = 1.0 / RATE_HZ  # s a frame
SEATS = 2
KEYS = 10
ITEM_SLOTS = 4  # two spawn places, then one dropped weapon a seat
MOVES_PER_WEAPON = 11
HITS_PER_MOVE = 4
MAX_WEAPONS = 4  # places for weapons in an observation, so that its size does not depend on the move table
MAX_DELAY = 32  # frames; longest reaction delay of a bot

# --- stage (units) ---
KILL_X = 14.0
KILL_Y = 8.0
GROUND_INNER = 2.0  # both grounds reach from here ...
GROUND_OUTER = 7.0  # ... to here, left and right of the gap, and down to the kill box
HIGH_TOP = 0.85
LOW_TOP = 2.85
START_X = 5.0
START_Y = 0.0
PLATFORM_HALF_WIDTH = 1.0
PLATFORM_THICKNESS = 0.2
PLATFORM_X = 0.93  # travels between (0.93, 0.07) and (-0.93, 1.93)
PLATFORM_Y = 1.0
PLATFORM_RISE = 0.93
PLATFORM_CYCLE = 290  # frames there and back

# --- body (units) ---
BODY_HALF_WIDTH = 0.435
BODY_HALF_HEIGHT = 0.5
HURT_RADIUS = 0.465  # the hurtbox is an upright capsule, 0.93 x 1.02
HURT_HALF_LENGTH = 0.045
OVERHANG = 0.2  # how far a body's centre may hang over an edge in a ground move
CONTACT = 0.001  # slack in resting contact

# --- motion (units a second; a frame where an ease) ---
GRAVITY = 17.808  # units/s^2
WALK_SPEED = 6.75
SPRINT_SPEED = 8.0
DASH_SPEED = 10.0
BACKDASH_SPEED = 4.0
JUMP_SPEED = 8.9
AIR_JUMP_DRIFT = 4.5  # an air jump with a direction has at least this speed
MAX_FALL = 12.0
FAST_FALL_GRAVITY = 2.0  # factor while down is held
MAX_FAST_FALL = 16.0
GROUND_EASE = 1.5  # a frame
AIR_EASE = 0.358  # a frame
STUN_EASE = 0.239  # a frame
BOUNCE = 0.7  # speed kept when a stunned body meets the stage
BOUNCE_MIN = 3.0  # slower impacts do not bounce
MAX_SPEED = 45.0

# --- times (frames) ---
DASH_FRAMES = 9
BACKDASH_FRAMES = 7
TURN_FRAMES = 1
DODGE_FRAMES = 10
DODGE_COOLDOWN_GROUND = 30
DODGE_COOLDOWN_AIR = 82
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
STUN_PER_SPEED = 0.25  # frames of stun a unit/s of launch, on top of the move's own

# --- weapons on the ground ---
FIRST_SPAWN_WITHIN = 350
SPAWN_EVERY_MIN = 250
SPAWN_EVERY_MAX = 1050
SPAWN_LIFE = 350
DROP_LIFE = 250
ITEM_LOCK = 36  # cannot be taken for this long
ITEM_FALL_SPEED = 6.0
SPAWN_X_MIN = 2.6
SPAWN_X_MAX = 6.5
REACH_X = 0.75  # how far a weapon can be and still be taken
REACH_Y = 0.9


class State(IntEnum):
    """What a fighter is doing."""

    STANDING = 0
    WALKING = 1
    SPRINTING = 2
    TURNAROUND = 3
    IN_AIR = 4
    AIR_TURNAROUND = 5
    DASH = 6
    BACKDASH = 7
    DODGE = 8
    ATTACK = 9
    STUN = 10
    TAUNT = 11
    KO = 12


class Key(IntEnum):
    """Bit of each key in a key mask, and its place in an action."""

    UP = 0
    LEFT = 1
    DOWN = 2
    RIGHT = 3
    JUMP = 4
    PICKUP = 5
    DODGE = 6
    LIGHT = 7
    HEAVY = 8
    TAUNT = 9


class Mask(IntEnum):
    """Key mask values, `1 << Key`."""

    UP = 1
    LEFT = 2
    DOWN = 4
    RIGHT = 8
    JUMP = 16
    PICKUP = 32
    DODGE = 64
    LIGHT = 128
    HEAVY = 256
    TAUNT = 512


class Ground(IntEnum):
    """What a fighter stands on."""

    NONE = 0
    SOLID = 1
    PLATFORM = 2


class Slot(IntEnum):
    """The eleven moves of a weapon, in the order of the move table."""

    GROUND_LIGHT_NEUTRAL = 0
    GROUND_LIGHT_DOWN = 1
    GROUND_LIGHT_SIDE = 2
    GROUND_HEAVY_NEUTRAL = 3
    GROUND_HEAVY_DOWN = 4
    GROUND_HEAVY_SIDE = 5
    AIR_LIGHT_NEUTRAL = 6
    AIR_LIGHT_DOWN = 7
    AIR_LIGHT_SIDE = 8
    RECOVERY = 9
    GROUND_POUND = 10


class Stream(IntEnum):
    """Names of the independent random streams within one frame of one game."""

    SIDE = 0
    SPAWN_TIME = 1
    SPAWN_PLACE = 2
    SPAWN_KIND = 3
    PICKUP_TIE = 4
    BOT_KEYS = 5
    BOT_NOISE = 6
    BOT_CHOICE = 7
    RANDOM_KEYS = 8


EVENTS = (
    "damage_dealt",
    "damage_taken",
    "hits",
    "stun_hits",
    "knockouts",
    "knocked_out",
    "falls",
    "attacks",
    "pickups",
    "pickup_value",
    "drops",
    "wins",
    "losses",
    "draws",
)
MEASURES = (
    "x",
    "y",
    "distance",
    "heading",
    "damage",
    "stocks",
    "state",
    "grounded",
    "weapon",
    "keys_held",
    "closing",
    "opponent_x",
    "opponent_y",
)


class Event(IntEnum):
    """Column of each event in the event tensor."""

    DAMAGE_DEALT = 0
    DAMAGE_TAKEN = 1
    HITS = 2
    STUN_HITS = 3
    KNOCKOUTS = 4
    KNOCKED_OUT = 5
    FALLS = 6
    ATTACKS = 7
    PICKUPS = 8
    PICKUP_VALUE = 9
    DROPS = 10
    WINS = 11
    LOSSES = 12
    DRAWS = 13
