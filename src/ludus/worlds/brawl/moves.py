"""The move table: schema, loading with checks, and packing for the kernels.

The table is data (`moves.yaml` beside this file, or a file of the user's own): changing a move or adding a weapon
needs no change in a kernel. The schema below is its documentation; every field says its unit. A table with
`extends: standard` names only the weapons and moves that differ from those of `moves.yaml`; `clash.yaml` is one.
"""

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from torch import Tensor

from ludus.config import list_faults, read_yaml
from ludus.core.errors import ConfigError
from ludus.envs.warp_tools import pack_struct, struct_fields
from ludus.worlds.brawl.kernels.structs import Hit, Move
from ludus.worlds.brawl.rules import HITS_PER_MOVE, MAX_WEAPONS, MOVES_PER_WEAPON, Slot

DEFAULT_TABLE = Path(__file__).with_name("moves.yaml")
OWN_TABLES = {  # by `BrawlConfig.rules`
    "standard": DEFAULT_TABLE,
    "clash": DEFAULT_TABLE.with_name("clash.yaml"),
}
SLOT_NAMES = tuple(slot.name.lower() for slot in Slot)
MAX_TABLE_BYTES = 200_000  # four weapons take about 20,000; a file of this size takes 2 s to read

Frames = Annotated[int, Field(ge=0, le=120)]
Offset = Annotated[float, Field(ge=-4.0, le=4.0)]
Speed = Annotated[float, Field(ge=-30.0, le=30.0)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HitModel(_Model):
    """One active capsule."""

    frames: tuple[Frames, Frames]  # first and last active frame
    # Centre of one end of the capsule, `[forward, down]` from the fighter's centre (units).
    start: tuple[Offset, Offset]
    end: tuple[Offset, Offset]  # centre of the other end
    radius: Annotated[float, Field(gt=0.0, le=2.0)]  # radius of the capsule (units)
    damage: Annotated[float, Field(gt=0.0, le=60.0)]
    stun: Annotated[int, Field(ge=1, le=40)]  # frames of stun at no launch speed
    # Launch direction in degrees above the forward horizontal; negative spikes downward.
    angle: Annotated[float, Field(ge=-90.0, le=180.0)]
    # `[fixed, variable]` launch speed (units/s): fixed + variable * (X/70 + X^2/12000).
    launch: tuple[Annotated[float, Field(ge=0.0, le=30.0)], Annotated[float, Field(ge=0.0, le=30.0)]]

    @field_validator("frames")
    @classmethod
    def _ordered(cls, frames: tuple[int, int]) -> tuple[int, int]:
        if frames[0] > frames[1]:
            raise ValueError(f"first active frame {frames[0]} is after the last {frames[1]}")
        return frames


class ChargeModel(_Model):
    """A move that waits while its key is held."""

    frame: Frames  # frame at which it waits, before the first hit
    max_frames: Annotated[int, Field(ge=1, le=90)]  # longest wait
    bonus: Annotated[float, Field(gt=0.0, le=3.0)]  # fraction by which damage and launch speed grow at full charge


class MotionModel(_Model):
    """Velocity that the move gives to its own fighter."""

    frames: tuple[Frames, Frames]  # first and last frame in which it is set
    velocity: tuple[Speed, Speed]  # `[forward, down]` in units/s


class FollowUpModel(_Model):
    """A move that can follow when this one has hit and its key is held."""

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
    frame: Frames  # from this frame on


class MoveModel(_Model):
    """One move."""

    name: Annotated[str, Field(min_length=1, max_length=40)]  # name shown to people
    total: Annotated[int, Field(ge=4, le=120)]  # frames from the start until the fighter is free (whiff)
    # One to four active capsules; each connects at most once.
    hits: Annotated[tuple[HitModel, ...], Field(min_length=1, max_length=HITS_PER_MOVE)]
    charge: ChargeModel | None = None  # only for moves that charge
    motion: MotionModel | None = None  # only for moves that carry their fighter
    follow_up: FollowUpModel | None = None  # only for moves that lead into another on hit
    landing_lag: Frames | None = None  # frames of recovery left after landing; only for moves that end on landing

    @model_validator(mode="after")
    def _fits(self) -> "MoveModel":
        first, last = self.active
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

    @property
    def active(self) -> tuple[int, int]:
        """The first and the last frame in which it hits."""
        frames = [hit.frames for hit in self.hits]
        return min(first for first, _ in frames), max(last for _, last in frames)


class ClashModel(_Model):
    """What a blow opens that meets a fighter who is not stunned: both choose, and one of them takes a blow."""

    frames: Annotated[
        int, Field(ge=1, le=60)
    ]  # both are held this long; what a fighter holds in the last is its choice
    damage: Annotated[float, Field(gt=0.0, le=60.0)]  # to whom the other's choice beats ...
    stun: Annotated[int, Field(ge=1, le=40)]  # ... with frames of stun at no launch speed
    angle: Annotated[float, Field(ge=-90.0, le=90.0)]  # launch direction in degrees above the way from the winner
    # `[fixed, variable]` launch speed (units/s), as of a hit.
    launch: tuple[Annotated[float, Field(ge=0.0, le=30.0)], Annotated[float, Field(ge=0.0, le=30.0)]]
    push: Annotated[float, Field(ge=0.0, le=30.0)]  # speed at which equal choices push both apart (units/s) ...
    recoil: Annotated[int, Field(ge=1, le=40)]  # ... with frames of stun for both


class WeaponModel(_Model):
    """A weapon: its eleven moves and what picking it up is worth."""

    # Worth of picking it up, reported as the event `pickup_value`.
    value: Annotated[float, Field(ge=0.0, le=10.0)] = 0.0
    # RGB, how the renderer draws it.
    color: tuple[
        Annotated[int, Field(ge=0, le=255)], Annotated[int, Field(ge=0, le=255)], Annotated[int, Field(ge=0, le=255)]
    ] = (200, 200, 200)
    length: Annotated[float, Field(ge=0.0, le=3.0)] = 0.0  # length of the drawn weapon (units)
    moves: dict[str, MoveModel]  # one move a slot

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
    clash: ClashModel | None = None  # only for rules in which blows open clashes

    @property
    def names(self) -> tuple[str, ...]:
        """Weapon names in the order of their indices."""
        return tuple(self.weapons)

    def move(self, index: int) -> MoveModel:
        """Return the move of a packed index."""
        weapon, slot = divmod(index, MOVES_PER_WEAPON)
        return self.weapons[self.names[weapon]].moves[SLOT_NAMES[slot]]


def load_move_table(path: Path | str | None = None, rules: str = "standard") -> MoveTable:
    """Read and check a move table; raise ConfigError with all faults if it cannot be read or breaks the schema.

    Without a path, the table is that of `rules` in `OWN_TABLES`.
    """
    if path is None:
        return _own_table(rules)
    return parse_move_table(read_yaml(Path(path), "move table", MAX_TABLE_BYTES), str(path))


@cache
def _own_table(rules: str) -> MoveTable:
    """Return a table of the package, read once per process."""
    return load_move_table(OWN_TABLES[rules])


def parse_move_table(document: object, source: str) -> MoveTable:
    """Check a move table that has been read already; `source` names it in errors."""
    if not isinstance(document, Mapping):
        raise ConfigError(
            f"move table {source} must be a mapping with the key 'weapons', got {type(document).__name__}"
        )
    if "extends" in document:
        document = _extended(document, source)
    try:
        return MoveTable.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"move table {source} has {list_faults(error)}") from error


def _extended(document: Mapping[Any, Any], source: str) -> dict[Any, Any]:
    """Return the standard table with the changes of a table that extends it."""
    if document["extends"] != "standard":
        raise ConfigError(f"move table {source} extends {document['extends']!r}; valid: 'standard'")
    base: Any = read_yaml(DEFAULT_TABLE, "move table", MAX_TABLE_BYTES)
    return _merged(base, {key: value for key, value in document.items() if key != "extends"}, depth=3)


def _merged(base: Mapping[Any, Any], changes: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
    """Merge mappings of weapons and of moves; a move that is named is replaced as a whole."""
    merged = dict(base)
    for key, value in changes.items():
        below: Any = base.get(key)
        is_deeper = depth > 0 and isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(below, value, depth - 1) if is_deeper else value
    return merged


_CLASH_FIELDS = (
    *("clash_frames", "clash_damage", "clash_stun", "clash_launch_x", "clash_launch_y"),
    *("clash_fixed", "clash_variable", "clash_push", "clash_recoil"),
)
_NO_HIT: dict[str, float] = dict.fromkeys(struct_fields(Hit), 0.0) | {"start": -1}


def pack_moves(table: MoveTable) -> tuple[Tensor, Tensor]:
    """Pack a table for the kernels: structs of moves `(weapons * 11, words)` and hits `(weapons * 11 * 4, words)`."""
    moves: list[dict[str, float]] = []
    hits: list[dict[str, float]] = []
    for weapon_index, weapon in enumerate(table.weapons.values()):
        for move in weapon.moves.values():
            moves.append(_move_row(move, weapon_index * MOVES_PER_WEAPON))
            hits.extend(_hit_row(hit) for hit in move.hits)
            hits.extend(_NO_HIT for _ in range(HITS_PER_MOVE - len(move.hits)))
    return pack_struct(Move, moves), pack_struct(Hit, hits)


def clash_rules(clash: ClashModel | None) -> dict[str, float]:
    """Return the fields of `structs.Rules` about clashes; `clash_frames` is 0 where there are none."""
    if clash is None:
        return dict.fromkeys(_CLASH_FIELDS, 0)
    angle = math.radians(clash.angle)
    values = (
        *(clash.frames, clash.damage, clash.stun, math.cos(angle), -math.sin(angle)),
        *(*clash.launch, clash.push, clash.recoil),
    )
    return dict(zip(_CLASH_FIELDS, values, strict=True))


def _move_row(move: MoveModel, first_move: int) -> dict[str, float]:
    charge, motion, follow_up = move.charge, move.motion, move.follow_up
    return {
        "total": move.total,
        "startup": move.active[0],
        "active_end": move.active[1],
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
