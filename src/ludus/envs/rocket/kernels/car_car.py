"""Two cars meet: bumps, demolitions and the rigid contact of their hulls (Warp functions)."""

from enum import IntFlag

import warp as wp

from ludus.envs.rocket.kernels.hulls import Clash, collide_hulls, find_clash
from ludus.envs.rocket.kernels.maths import axes, column, line
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.rules import BUMP_COOLDOWN_S, BUMPER_X, DT, GRAVITY, HULL_REACH


class Contact(IntFlag):
    """What a meeting of two cars comes to."""

    TOUCH = 1
    A_BUMPS = 2
    B_BUMPS = 4
    A_DEMOLISHES = 8
    B_DEMOLISHES = 16


_FALL = GRAVITY * DT
_BUMP = 1
_DEMOLITION = 2


@wp.func
def bump_speed(speed: wp.float32, on_ground: wp.int32) -> wp.float32:
    """Speed that a bump gives the victim along the attacker's way."""
    if on_ground != 0:
        if speed < 1400.0:
            return line(speed, 0.0, 0.83, 1400.0, 1100.0)
        return line(speed, 1400.0, 1100.0, 2200.0, 1530.0)
    if speed < 1400.0:
        return line(speed, 0.0, 0.83, 1400.0, 1390.0)
    return line(speed, 1400.0, 1390.0, 2200.0, 1945.0)


@wp.func
def bump_lift(speed: wp.float32) -> wp.float32:
    """Speed that a bump gives the victim upward."""
    if speed < 1400.0:
        return line(speed, 0.0, 0.33, 1400.0, 278.0)
    return line(speed, 1400.0, 278.0, 2200.0, 417.0)


@wp.func
def judge_bump(attacker: wp.ref[Car], victim: Car, seat: wp.int32, bumper: wp.float32) -> wp.int32:
    """What an attacker does to a victim by this contact: 0 nothing, a bump or a demolition.

    Args:
        attacker: The car that may bump; its cooldown begins.
        victim: The other one.
        seat: The victim's seat.
        bumper: How far forward on the attacker the contact reaches.
    """
    if bumper <= BUMPER_X or (attacker.bump_s > 0.0 and attacker.bump_seat == seat):
        return 0
    way = victim.position - attacker.position
    closing = wp.dot(attacker.velocity, way)
    if closing <= 0.0 or closing <= wp.dot(victim.velocity, way):
        return 0
    attacker.bump_s = BUMP_COOLDOWN_S
    attacker.bump_seat = seat
    return wp.where(attacker.supersonic != 0 and attacker.team != victim.team, _DEMOLITION, _BUMP)


@wp.func
def bump_change(attacker: Car, victim: Car) -> wp.vec3f:
    """Change of the victim's velocity by a bump: along the attacker's velocity before this tick's gravity, and up."""
    velocity = attacker.velocity - wp.vec3f(0.0, 0.0, _FALL)
    speed = wp.length(velocity)
    up = wp.vec3f(0.0, 0.0, 1.0)
    if victim.on_ground != 0:
        up = column(axes(victim.rotation), 2)
    return velocity * (bump_speed(speed, victim.on_ground) / speed) + up * bump_lift(speed)


@wp.func
def take_bump(victim: wp.ref[Car], change: wp.vec3f):
    """Adds a bump, which holds from the end of the tick: what moving will add to the position is taken off before."""
    victim.velocity = victim.velocity + change
    victim.position = victim.position - change * DT


@wp.func
def collide_cars(a: wp.ref[Car], b: wp.ref[Car], seat_a: wp.int32, seat_b: wp.int32) -> wp.int32:
    """Lets two cars collide: velocities change at once.

    Swapping the cars, mirroring the world or turning it by half a turn gives the swapped, mirrored or turned result.

    Args:
        a: One car.
        b: The other.
        seat_a: Seat of one.
        seat_b: Seat of the other.

    Returns:
        Flags of `Contact`; a car that is demolished is for the caller to take off the field.
    """
    between = b.position - a.position
    if wp.dot(between, between) > 4.0 * HULL_REACH * HULL_REACH:
        return 0
    clash = Clash()
    ma = axes(a.rotation)
    mb = axes(b.rotation)
    if not find_clash(clash, a, b, ma, mb):
        return 0
    by_a = judge_bump(a, b, seat_b, clash.bumper_a)
    by_b = judge_bump(b, a, seat_a, clash.bumper_b)
    change_a = bump_change(b, a)
    change_b = bump_change(a, b)
    collide_hulls(clash, a, b)
    flags = int(Contact.TOUCH)
    if by_a == _BUMP:
        take_bump(b, change_b)
        flags += int(Contact.A_BUMPS)
    if by_b == _BUMP:
        take_bump(a, change_a)
        flags += int(Contact.B_BUMPS)
    flags += wp.where(by_a == _DEMOLITION, int(Contact.A_DEMOLISHES), 0)
    flags += wp.where(by_b == _DEMOLITION, int(Contact.B_DEMOLISHES), 0)
    return flags
