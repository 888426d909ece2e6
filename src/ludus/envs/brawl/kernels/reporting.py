"""What a step of Brawl reports of a fighter: events and measures (Warp functions)."""

import warp as wp

from ludus.envs.brawl.kernels.observe import flag
from ludus.envs.brawl.kernels.structs import Player
from ludus.envs.brawl.rules import EVENTS, MEASURES, Event, Ground

EventRow = wp.types.vector(length=len(EVENTS), dtype=wp.float32)
MeasureRow = wp.types.vector(length=len(MEASURES), dtype=wp.float32)


@wp.func
def write_blows(row: wp.ref[EventRow], dealt: float, taken: float, in_stun: float, hit: int):
    """Writes the events of blows."""
    row[Event.DAMAGE_DEALT] = dealt
    row[Event.DAMAGE_TAKEN] = taken
    row[Event.HITS] = flag(hit >= 0)
    row[Event.STUN_HITS] = in_stun


@wp.func
def write_stocks(row: wp.ref[EventRow], knockouts: float, knocked_out: float, falls: float):
    """Writes the events of lost stocks."""
    row[Event.KNOCKOUTS] = knockouts
    row[Event.KNOCKED_OUT] = knocked_out
    row[Event.FALLS] = falls


@wp.func
def write_weapons(row: wp.ref[EventRow], took: float, dropped: float, values: wp.array[wp.float32]):
    """Writes the events of weapons; `took` is a weapon index, 0 for none."""
    row[Event.PICKUPS] = flag(took > 0.0)
    row[Event.PICKUP_VALUE] = flag(took > 0.0) * values[wp.int32(took)]  # empty hands may have a value too
    row[Event.DROPS] = dropped


@wp.func
def write_result(row: wp.ref[EventRow], result: float):
    """Writes the events of the end of a match."""
    row[Event.WINS] = flag(result > 0.0)
    row[Event.LOSSES] = flag(result < 0.0)
    row[Event.DRAWS] = flag(result == 0.0)


@wp.func
def bits_set(mask: wp.int32) -> wp.int32:
    """Counts the bits of a key mask: in pairs, in fours, in eights."""
    pairs = mask - ((mask >> 1) & 0x5555)
    fours = (pairs & 0x3333) + ((pairs >> 2) & 0x3333)
    eights = (fours + (fours >> 4)) & 0x0F0F
    return (eights + (eights >> 8)) & 0x1F


@wp.func
def write_measures(row: wp.ref[MeasureRow], p: Player, other: Player, distance: float, per_distance: float):
    """Writes where a fighter stands after the step, from its own side; `per_distance` is 0 if there is no distance."""
    dx = other.x - p.x
    dy = other.y - p.y
    towards = dx * wp.float32(p.facing)
    mirror = -wp.float32(p.home)
    row[0] = mirror * p.x
    row[1] = p.y
    row[2] = distance
    row[3] = flag(towards > 0.0) - flag(towards < 0.0)
    row[4] = p.damage
    row[5] = wp.float32(p.stocks)
    row[6] = wp.float32(p.state)
    row[7] = flag(p.ground != Ground.NONE)
    row[8] = wp.float32(p.weapon)
    row[9] = wp.float32(bits_set(p.keys))
    row[10] = (p.vx * dx + p.vy * dy) * per_distance
    row[11] = mirror * other.x
    row[12] = other.y
