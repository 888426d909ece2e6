"""The move table: schema, loading with checks, and packing for the kernels.

The table is data (`moves.yaml` beside this file, or a file of the user's own): changing a move or adding a weapon
needs no change in a kernel. The schema below is its documentation; every field says its unit.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from torch import Tensor

from ludus.config import list_faults, read_yaml
from ludus.core.errors import ConfigError
from ludus.envs.brawl.kernels.structs import Hit, Move
from ludus.envs.brawl.rules import HITS_PER_MOVE, MAX_WEAPONS, MOVES_PER_WEAPON, Slot
from ludus.envs.warp_tools import pack_struct, struct_fields

DEFAULT_TABLE = Path(__file__).with_name("moves.yaml")
SLOT_NAMES = tuple(slot.name.lower() for slot in Slot)
MAX_TABLE_BYTES = 200_000  # four weapons take about 20,000; a file of this size takes 2 s to read

Frames = Annotated[int, Field(ge=0, le=120)]
Offset = Annotated[float, Field(ge=-4.0, le=4.0)]
Speed = Annotated[float, Field(ge=-30.0, le=30.0)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HitModel(_Model):
    """One active capsule.

    Attributes:
        frames: First and last active frame.
        start: Centre of one end of the capsule, `[forward, down]` from the fighter's centre (units).
        end: Centre of the other end.
        radius: Radius of the capsule (units).
        damage: Damage dealt.
        stun: Frames of stun at no launch speed.
        angle: Launch direction in degrees above the forward horizontal; negative spikes downward.
        launch: `[fixed, variable]` launch speed (units/s): fixed + variable * (X/70 + X^2/12000).
    """

    frames: tuple[Frames, Frames]
    start: tuple[Offset, Offset]
    end: tuple[Offset, Offset]
    radius: Annotated[float, Field(gt=0.0, le=2.0)]
    damage: Annotated[float, Field(gt=0.0, le=60.0)]
    stun: Annotated[int, Field(ge=1, le=40)]
    angle: Annotated[float, Field(ge=-90.0, le=180.0)]
    launch: tuple[Annotated[float, Field(ge=0.0, le=30.0)], Annotated[float, Field(ge=0.0, le=30.0)]]

    @field_validator("frames")
    @classmethod
    def _ordered(cls, frames: tuple[int, int]) -> tuple[int, int]:
        if frames[0] > frames[1]:
            raise ValueError(f"first active frame {frames[0]} is after the last {frames[1]}")
        return frames


class ChargeModel(_Model):
    """A move that waits while its key is held.

    Attributes:
        frame: Frame at which it waits, before the first hit.
        max_frames: Longest wait.
        bonus: Fraction by which damage and launch speed grow at full charge.
    """

    frame: Frames
    max_frames: Annotated[int, Field(ge=1, le=90)]
    bonus: Annotated[float, Field(gt=0.0, le=3.0)]


class MotionModel(_Model):
    """Velocity that the move gives to its own fighter.

    Attributes:
        frames: First and last frame in which it is set.
        velocity: `[forward, down]` in units/s.
    """

    frames: tuple[Frames, Frames]
    velocity: tuple[Speed, Speed]


class FollowUpModel(_Model):
    """A move that can follow when this one has hit and its key is held.

    Attributes:
        move: Slot of the following move.
        frame: From this frame on.
    """

    move: Literal[
        "ground_light_neutral",
        "ground_light_down",
        "ground_light_side",
        "ground_heavy_neutral",
        "ground_heavy_down",
        "ground_heavy_side",
        "air_light_neutral",
        "air_light_down",
        "air_light_side",
        "recovery",
        "ground_pound",
    ]
    frame: Frames


class MoveModel(_Model):
    """One move.

    Attributes:
        name: Name shown to people.
        total: Frames from the start until the fighter is free (whiff).
        hits: One to four active capsules; each connects at most once.
        charge: Only for moves that charge.
        motion: Only for moves that carry their fighter.
        follow_up: Only for moves that lead into another on hit.
        landing_lag: Frames of recovery left after landing; only for moves that end on landing.
    """

    name: Annotated[str, Field(min_length=1, max_length=40)]
    total: Annotated[int, Field(ge=4, le=120)]
    hits: Annotated[tuple[HitModel, ...], Field(min_length=1, max_length=HITS_PER_MOVE)]
    charge: ChargeModel | None = None
    motion: MotionModel | None = None
    follow_up: FollowUpModel | None = None
    landing_lag: Frames | None = None

    @model_validator(mode="after")
    def _fits(self) -> "MoveModel":
        first, last = min(hit.frames[0] for hit in self.hits), max(hit.frames[1] for hit in self.hits)
        if last >= self.total:
            raise ValueError(f"last active frame {last} is not before the end of the move, total {self.total}")
        if self.charge and self.charge.frame >= first:
            raise ValueError(f"charge frame {self.charge.frame} is not before the first hit, frame {first}")
        if self.motion and self.motion.frames[0] > self.motion.frames[1]:
            raise ValueError(f"motion frames {list(self.motion.frames)} are in the wrong order")
        if self.follow_up and self.follow_up.frame >= self.total:
            raise ValueError(f"follow-up frame {self.follow_up.frame} is not before the end, total {self.total}")
        if self.landing_lag is not None and self.landing_lag > self.total:
            raise ValueError(f"landing_lag {self.landing_lag} is longer than the move, total {self.total}")
        return self


class WeaponModel(_Model):
    """A weapon: its eleven moves and what picking it up is worth.

    Attributes:
        value: Worth of picking it up, reported as the event `pickup_value`.
        color: RGB, how the renderer draws it.
        length: Length of the drawn weapon (units).
        moves: One move a slot.
    """

    value: Annotated[float, Field(ge=0.0, le=10.0)] = 0.0
    color: tuple[
        Annotated[int, Field(ge=0, le=255)], Annotated[int, Field(ge=0, le=255)], Annotated[int, Field(ge=0, le=255)]
    ] = (200, 200, 200)
    length: Annotated[float, Field(ge=0.0, le=3.0)] = 0.0
    moves: dict[str, MoveModel]

    @field_validator("moves")
    @classmethod
    def _complete(cls, moves: dict[str, MoveModel]) -> dict[str, MoveModel]:
        missing, extra = sorted(set(SLOT_NAMES) - set(moves)), sorted(set(moves) - set(SLOT_NAMES))
        if missing or extra:
            parts = [f"missing {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(extra)}"] * bool(extra)
            raise ValueError(f"{'; '.join(parts)}; a weapon has exactly: {', '.join(SLOT_NAMES)}")
        return {name: moves[name] for name in SLOT_NAMES}


class MoveTable(_Model):
    """All weapons; the first one is what a fighter has with empty hands."""

    weapons: Annotated[dict[str, WeaponModel], Field(min_length=1, max_length=MAX_WEAPONS)]

    @property
    def names(self) -> tuple[str, ...]:
        """Weapon names in the order of their indices."""
        return tuple(self.weapons)

    def move(self, index: int) -> MoveModel:
        """Returns the move of a packed index."""
        weapon, slot = divmod(index, MOVES_PER_WEAPON)
        return self.weapons[self.names[weapon]].moves[SLOT_NAMES[slot]]


@dataclass(frozen=True, slots=True)
class PackedMoves:
    """The table as struct tensors: `moves` `(weapons * 11, words)`, `hits` `(weapons * 11 * 4, words)`."""

    moves: Tensor
    hits: Tensor


def load_move_table(path: Path | str | None = None) -> MoveTable:
    """Reads and checks a move table.

    Raises:
        ConfigError: The file cannot be read or breaks the schema; all faults are listed at once.
    """
    return _read_table(Path(path)) if path is not None else _default_table()


@cache
def _default_table() -> MoveTable:
    """The table of the package, read once a process."""
    return _read_table(DEFAULT_TABLE)


def _read_table(file: Path) -> MoveTable:
    return parse_move_table(read_yaml(file, "move table", MAX_TABLE_BYTES), str(file))


def parse_move_table(document: object, source: str) -> MoveTable:
    """Checks a move table that has been read already; `source` names it in errors."""
    if not isinstance(document, Mapping):
        raise ConfigError(
            f"move table {source} must be a mapping with the key 'weapons', got {type(document).__name__}"
        )
    try:
        return MoveTable.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"move table {source} has {list_faults(error)}") from error


_NO_HIT: dict[str, float] = dict.fromkeys(struct_fields(Hit), 0.0) | {"start": -1}


def pack_moves(table: MoveTable) -> PackedMoves:
    """Packs a table for the kernels."""
    moves: list[dict[str, float]] = []
    hits: list[dict[str, float]] = []
    for weapon_index, weapon in enumerate(table.weapons.values()):
        for move in weapon.moves.values():
            moves.append(_move_row(move, weapon_index * MOVES_PER_WEAPON))
            hits.extend(_hit_row(hit) for hit in move.hits)
            hits.extend(_NO_HIT for _ in range(HITS_PER_MOVE - len(move.hits)))
    return PackedMoves(pack_struct(Move, moves), pack_struct(Hit, hits))


def _move_row(move: MoveModel, first_move: int) -> dict[str, float]:
    charge, motion, follow_up = move.charge, move.motion, move.follow_up
    return {
        "total": move.total,
        "startup": min(hit.frames[0] for hit in move.hits),
        "active_end": max(hit.frames[1] for hit in move.hits),
        "charge_frame": charge.frame if charge else -1,
        "charge_max": charge.max_frames if charge else 0,
        "charge_bonus": charge.bonus if charge else 0.0,
        "follow_up": first_move + SLOT_NAMES.index(follow_up.move) if follow_up else -1,
        "cancel_frame": follow_up.frame if follow_up else 0,
        "motion_start": motion.frames[0] if motion else -1,
        "motion_end": motion.frames[1] if motion else -1,
        "motion_x": motion.velocity[0] if motion else 0.0,
        "motion_y": motion.velocity[1] if motion else 0.0,
        "landing_frame": move.total - move.landing_lag if move.landing_lag is not None else -1,
    }


def _hit_row(hit: HitModel) -> dict[str, float]:
    angle = math.radians(hit.angle)
    return {
        "start": hit.frames[0],
        "end": hit.frames[1],
        "from_x": hit.start[0],
        "from_y": hit.start[1],
        "to_x": hit.end[0],
        "to_y": hit.end[1],
        "radius": hit.radius,
        "damage": hit.damage,
        "stun": hit.stun,
        "launch_x": math.cos(angle),
        "launch_y": -math.sin(angle),
        "fixed": hit.launch[0],
        "variable": hit.launch[1],
    }
