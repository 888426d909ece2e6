"""One game decoded into plain numbers, for renderers, tests and analyses."""

from dataclasses import dataclass

from torch import Tensor

from ludus.envs.warp_tools import struct_views
from ludus.worlds.brawl import rules
from ludus.worlds.brawl.kernels.structs import Item, Match, Player
from ludus.worlds.brawl.moves import MoveTable
from ludus.worlds.brawl.rules import Ground, Slot, State


@dataclass(frozen=True, slots=True)
class HitView:
    """An active capsule in stage coordinates (units)."""

    start: tuple[float, float]
    end: tuple[float, float]
    radius: float


@dataclass(frozen=True, slots=True)
class PlayerView:
    """One fighter; x and facing as a spectator sees them, mirrored if the stage is."""

    x: float
    y: float
    vx: float
    vy: float
    facing: int
    damage: float
    stocks: int
    state: State
    timer: int
    ground: Ground
    invincible: int
    air_jumps: int
    dodge_cooldown: int
    weapon: str
    slot: Slot | None
    move_frame: int
    charge: int
    hits: tuple[HitView, ...]


@dataclass(frozen=True, slots=True)
class ItemView:
    """A weapon lying on the stage."""

    x: float
    y: float
    weapon: str
    life: int
    lock: int


@dataclass(frozen=True, slots=True)
class MatchView:
    """One game at one moment."""

    frame: int
    step_limit: int
    mirrored: bool
    platform: tuple[float, float]
    players: tuple[PlayerView, PlayerView]
    items: tuple[ItemView, ...]


def platform_position(frame: int) -> tuple[float, float]:
    """Return the centre of the platform's top on the standard stage; the same curve as `stage.platform_at`."""
    phase = frame % rules.PLATFORM_CYCLE
    t = min(phase, rules.PLATFORM_CYCLE - phase) * 2.0 / rules.PLATFORM_CYCLE
    s = 1.0 - 2.0 * t * t * (3.0 - 2.0 * t)
    return rules.PLATFORM_X * s, rules.PLATFORM_Y - rules.PLATFORM_RISE * s


def match_view(
    players: Tensor, match: Tensor, items: Tensor, table: MoveTable, step_limit: int, *, mirrored: bool
) -> MatchView:
    """Decode one game from its struct tensors `(2, words)`, `(words,)` and `(4, words)`."""
    sign = -1.0 if mirrored else 1.0
    frame = int(struct_views(match.cpu(), Match)["frame"])
    fields = {name: values.tolist() for name, values in struct_views(players.cpu(), Player).items()}
    lying = {name: values.tolist() for name, values in struct_views(items.cpu(), Item).items()}
    platform_x, platform_y = platform_position(frame)
    first, second = (_player_view({name: v[seat] for name, v in fields.items()}, table, sign) for seat in (0, 1))
    return MatchView(
        frame=frame,
        step_limit=step_limit,
        mirrored=mirrored,
        platform=(sign * platform_x, platform_y),
        players=(first, second),
        items=tuple(
            ItemView(sign * lying["x"][i], lying["y"][i], table.names[lying["weapon"][i]], life, lying["lock"][i])
            for i, life in enumerate(lying["life"])
            if life > 0
        ),
    )


def _player_view(p: dict[str, float], table: MoveTable, sign: float) -> PlayerView:
    move = int(p["move"])
    return PlayerView(
        x=sign * p["x"],
        y=p["y"],
        vx=sign * p["vx"],
        vy=p["vy"],
        facing=int(sign * p["facing"]),
        damage=p["damage"],
        stocks=int(p["stocks"]),
        state=State(int(p["state"])),
        timer=int(p["timer"]),
        ground=Ground(int(p["ground"])),
        invincible=int(p["invincible"]),
        air_jumps=int(p["jumps"]),
        dodge_cooldown=int(p["dodge_cooldown"]),
        weapon=table.names[int(p["weapon"])],
        slot=Slot(move % rules.MOVES_PER_WEAPON) if move >= 0 else None,
        move_frame=int(p["move_frame"]),
        charge=int(p["charge"]),
        hits=_active_hits(p, table, sign) if move >= 0 else (),
    )


def _active_hits(p: dict[str, float], table: MoveTable, sign: float) -> tuple[HitView, ...]:
    x, y, facing = sign * p["x"], p["y"], sign * p["facing"]
    return tuple(
        HitView((x + facing * hit.start[0], y + hit.start[1]), (x + facing * hit.end[0], y + hit.end[1]), hit.radius)
        for hit in table.move(int(p["move"])).hits
        if hit.frames[0] <= p["move_frame"] <= hit.frames[1]
    )
