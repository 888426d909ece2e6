"""What a seat sees: every value of the observation with its bounds and meaning.

Every seat sees the world from its own side: x and left/right are mirrored so that its own start lies on the left.
The blocks `self` and `opponent` have the same layout, so that an encoder can be fed the opponent alone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ludus.envs.base import Mirror, Reflection
from ludus.worlds.brawl.rules import KEYS, MAX_WEAPONS, Key, Slot, State


@dataclass(frozen=True, slots=True)
class Field:
    """One value of the observation: its name, bounds and meaning."""

    name: str
    low: float
    high: float
    meaning: str


# A clash is shown by zeros alone: a fighter is in one of the others at any other time. Agents from before clashes fit.
SHOWN_STATES = tuple(state for state in State if state != State.CLASH)
_STATES = tuple(
    Field(f"state_{s.name.lower()}", 0, 1, f"1 while {s.name.lower().replace('_', ' ')}") for s in SHOWN_STATES
)
_SLOTS = tuple(Field(f"move_{s.name.lower()}", 0, 1, "1 while in this move") for s in Slot)
PLAYER_FIELDS = (
    Field("x", -1, 1, "position / 14, own start on the left"),
    Field("y", -1, 1, "position / 8, downward"),
    Field("vx", -2.25, 2.25, "velocity / 20 units/s"),
    Field("vy", -2.25, 2.25, "velocity / 20 units/s, downward"),
    Field("facing", -1, 1, "+1 away from the viewer's start, -1 toward it"),
    Field("damage", 0, 3.5, "damage / 200"),
    Field("stocks", 0, 1, "stocks left / stocks at the start"),
    Field("air_jumps", 0, 1, "air jumps left / 2"),
    Field("jump_cooldown", 0, 1, "frames until the next jump / 6"),
    Field("dodge_cooldown", 0, 1, "frames until the next dodge / 92"),
    Field("recovery_ready", 0, 1, "1 if the recovery move is left in this airtime"),
    Field("invincible", 0, 1, "frames of invincibility left / 90"),
    Field("on_ground", 0, 1, "1 on solid ground"),
    Field("on_platform", 0, 1, "1 on the platform"),
    Field("clearance", 0, 2, "distance down to what could be stood on, or to the kill box, / 8"),
    Field("timer", 0, 3, "frames left in a timed state / 30"),
    Field("move_progress", 0, 1, "frame of the move / its length"),
    Field("phase_startup", 0, 1, "1 before the first active frame"),
    Field("phase_charging", 0, 1, "1 while the move waits and charges"),
    Field("phase_active", 0, 1, "1 from the first to the last active frame"),
    Field("phase_recovery", 0, 1, "1 after the last active frame"),
    Field("charge", 0, 1, "frames charged / most for this move"),
    Field("connected", 0, 1, "1 if the move has hit"),
    Field("dropping", 0, 1, "frames left of falling through the platform / 8"),
    *_STATES,
    *_SLOTS,
)
WORLD_FIELDS = (
    Field("clock", 0, 1, "time left / time limit"),
    Field("high_side", -1, 1, "+1 if the high ground is on the opponent's side, -1 if on the own side"),
    Field("platform_x", -1, 1, "centre of its top / 14"),
    Field("platform_y", -1, 1, "centre of its top / 8"),
    Field("platform_vx", -1, 1, "units/s"),
    Field("platform_vy", -1, 1, "units/s"),
    Field("opponent_dx", -2, 2, "opponent minus self / 14"),
    Field("opponent_dy", -2, 2, "opponent minus self / 8"),
    Field("platform_dx", -2, 2, "platform minus self / 14"),
    Field("platform_dy", -2, 2, "platform minus self / 8"),
    *(Field(f"held_{key.name.lower()}", 0, 1, "1 if the own key was held in the last frame") for key in Key),
)
ITEM_FIELDS = (
    Field("present", 0, 1, "1 if a weapon lies there"),
    Field("dx", -2, 2, "weapon minus self / 14"),
    Field("dy", -2, 2, "weapon minus self / 8"),
    Field("ready", 0, 1, "1 if it can be taken"),
    Field("life", 0, 1, "frames left / 350"),
)
# In the order a seat sees them: spawns on the own and the far ground, own and opponent's dropped weapon.
ITEM_NAMES = ("near_spawn", "far_spawn", "own_drop", "opponent_drop")


def _all_fields() -> tuple[Field, ...]:
    held = [
        Field(f"weapon_{index}", 0, 1, "1 while holding this weapon of the move table") for index in range(MAX_WEAPONS)
    ]
    kinds = [Field(f"is_{index}", 0, 1, "1 if it is this weapon of the move table") for index in range(1, MAX_WEAPONS)]
    players = [_prefixed(who, field) for who in ("self", "opponent") for field in (*PLAYER_FIELDS, *held)]
    world = [_prefixed("world", field) for field in WORLD_FIELDS]
    return (*players, *world, *(_prefixed(name, field) for name in ITEM_NAMES for field in (*ITEM_FIELDS, *kinds)))


def _prefixed(prefix: str, field: Field) -> Field:
    return Field(f"{prefix}.{field.name}", field.low, field.high, field.meaning)


FIELDS = _all_fields()
SIZE = len(FIELDS)
PLAYER_SIZE = len(PLAYER_FIELDS) + MAX_WEAPONS
BLOCKS = {"self": (0, PLAYER_SIZE), "opponent": (PLAYER_SIZE, 2 * PLAYER_SIZE), "world": (2 * PLAYER_SIZE, SIZE)}
LOW: NDArray[np.float32] = np.array([field.low for field in FIELDS], np.float32)
HIGH: NDArray[np.float32] = np.array([field.high for field in FIELDS], np.float32)


def _reflected(name: str) -> tuple[str, float]:
    """Return the value of which a value is the mirror image, and the sign that it changes by."""
    block, _, field = name.partition(".")
    block = {"near_spawn": "far_spawn", "far_spawn": "near_spawn"}.get(block, block)
    is_sideways = field in ("x", "vx", "facing", "high_side", "platform_x", "platform_vx") or field.endswith("dx")
    field = {"held_left": "held_right", "held_right": "held_left"}.get(field, field)
    return f"{block}.{field}", -1.0 if is_sideways else 1.0


def _mirror() -> Mirror:
    """Describe a seat's view in a mirror: that of a seat in the same place whose start is on the other ground.

    The grounds differ in height, so left and right cannot be exchanged on the stage. But a start matters to a fighter
    only when it comes back after a lost stock. Two fighters that exchange their starts in the middle of a match play on
    exactly as before until one of them loses a stock, and each sees it mirrored.
    """
    places = {field.name: place for place, field in enumerate(FIELDS)}
    images = [_reflected(field.name) for field in FIELDS]
    keys = [{Key.LEFT: Key.RIGHT, Key.RIGHT: Key.LEFT}.get(Key(key), key) for key in range(KEYS)]
    vector = Reflection(tuple(places[name] for name, _ in images), tuple(sign for _, sign in images))
    actions = Reflection(tuple(int(key) for key in keys), (1.0,) * KEYS)
    return Mirror({"vector": vector}, actions, side=("vector", places["world.high_side"]))


MIRROR = _mirror()
