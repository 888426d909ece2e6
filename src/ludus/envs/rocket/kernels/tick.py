"""One tick of a game, 1/120 s: cars, ball, contacts, then pads and the score (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.ball import bounce_ball, clamp_ball, move_ball, push_ball
from ludus.envs.rocket.kernels.body import collide_body
from ludus.envs.rocket.kernels.car import advance_car, finish_car, move_car
from ludus.envs.rocket.kernels.car_ball import hit_ball, miss_ball
from ludus.envs.rocket.kernels.car_car import Contact, collide_cars
from ludus.envs.rocket.kernels.pads import take_pad
from ludus.envs.rocket.kernels.placing import respawn
from ludus.envs.rocket.kernels.scoring import count_goal, count_shot, count_touch, decide_kickoff, pass_time, scored
from ludus.envs.rocket.kernels.sight import PadRow
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.kernels.tables import EventRow, Tables
from ludus.envs.rocket.rules import BOOST_MAX, DEMOLITION_S, DT, MAX_CARS, TOUCH_GAP_TICKS, Event

_HALF_TICK = 0.5 * DT  # times are sums of ticks: comparing between two ticks keeps rounding out of it

Powers = wp.types.vector(length=MAX_CARS, dtype=wp.float32)


@wp.func
def drive(car: wp.ref[Car], rules: Rules, events: wp.ref[EventRow]):
    """Advances a car by itself and counts what its driver did."""
    boost = car.boost
    jumping = car.jumping
    double_jumped = car.double_jumped
    dodged = car.dodged
    advance_car(car)
    collide_body(car)
    if car.boost < boost:
        events[Event.BOOST_USED] += boost - car.boost
    if car.jumping > jumping or car.double_jumped > double_jumped:
        events[Event.JUMPS] += 1.0
    if car.dodged > dodged:
        events[Event.DODGES] += 1.0
    if rules.boost_rate == 0.0:
        car.boost = BOOST_MAX
    car.bump_s = wp.max(car.bump_s - DT, 0.0)
    car.clear_ticks = wp.min(car.clear_ticks + 1, TOUCH_GAP_TICKS)
    car.since_touch_s += DT


@wp.func
def demolish(car: wp.ref[Car], attacker: wp.ref[EventRow], victim: wp.ref[EventRow]):
    """Takes a car off the field."""
    car.demolished_s = DEMOLITION_S
    car.velocity = wp.vec3f(0.0, 0.0, 0.0)
    car.spin = wp.vec3f(0.0, 0.0, 0.0)
    car.boosting_s = 0.0
    car.supersonic = 0
    car.touching_ball = 0
    attacker[Event.DEMOLITIONS] += 1.0
    victim[Event.DEMOLISHED] += 1.0


@wp.func
def meet(cars: wp.array[Car], one: wp.int32, other: wp.int32, events: wp.array[EventRow]):
    """Lets two cars collide and counts what comes of it."""
    if cars[one].demolished_s > 0.0 or cars[other].demolished_s > 0.0:
        return
    flags = collide_cars(cars[one], cars[other], one, other)
    if flags <= Contact.TOUCH:
        return
    if cars[one].team != cars[other].team:
        if (flags & Contact.A_BUMPS) != 0:
            events[one][Event.BUMPS] += 1.0
        if (flags & Contact.B_BUMPS) != 0:
            events[other][Event.BUMPS] += 1.0
    if (flags & Contact.A_DEMOLISHES) != 0:
        demolish(cars[other], events[one], events[other])
    if (flags & Contact.B_DEMOLISHES) != 0:
        demolish(cars[one], events[other], events[one])


@wp.struct
class Hits:
    """What all cars do to the ball in one tick."""

    extra: wp.vec3f  # change of its velocity at the end of the tick
    touched: wp.int32  # bits of the seats that touch it
    powers: Powers  # size of the change of its velocity by each seat


@wp.func
def hit_all(cars: wp.array[Car], ball: wp.ref[Ball], count: wp.int32) -> Hits:
    """Lets every car hit the ball as it was before: no seat is first, so that a kickoff is fair."""
    hits = Hits()
    place = ball.position
    velocity = ball.velocity
    spin = ball.spin
    moved = wp.vec3f(0.0, 0.0, 0.0)
    change = wp.vec3f(0.0, 0.0, 0.0)
    spin_change = wp.vec3f(0.0, 0.0, 0.0)
    for seat in range(count):
        if cars[seat].demolished_s <= 0.0:
            extra = hit_ball(cars[seat], ball)
            if cars[seat].touching_ball != 0:
                own = ball.velocity - velocity
                moved += ball.position - place
                change += own
                spin_change += ball.spin - spin
                ball.position = place
                ball.velocity = velocity
                ball.spin = spin
                hits.extra += extra
                hits.touched |= 1 << seat
                hits.powers[seat] = wp.length(own + extra)
    if hits.touched != 0:
        ball.position = place + moved
        ball.velocity = velocity + change
        ball.spin = spin + spin_change
    return hits


@wp.func
def end_ball(ball: wp.ref[Ball], extra: wp.vec3f):
    """Moves the ball, after which the extra impulses act."""
    move_ball(ball)
    ball.velocity = ball.velocity + extra
    clamp_ball(ball)


@wp.func
def end_drive(car: wp.ref[Car], pads: wp.ref[PadRow], tick: wp.int32, tables: Tables, events: wp.ref[EventRow]):
    """Moves a car after all contacts, and lets it take the pad that it comes to."""
    move_car(car)
    finish_car(car)
    take_pad(car, pads, tick, tables, events)


@wp.func
def drive_alone(
    car: wp.ref[Car], pads: wp.ref[PadRow], tick: wp.int32, tables: Tables, rules: Rules, events: wp.ref[EventRow]
):
    """A whole tick of a car that can meet neither the ball nor another car; `tick` is the match's after it."""
    drive(car, rules, events)
    miss_ball(car)
    end_drive(car, pads, tick, tables, events)


@wp.func
def play_alone(cars: wp.array[Car], ball: wp.ref[Ball], match: wp.ref[Match], events: wp.array[EventRow], rules: Rules):
    """A whole tick of a ball that no car can meet, and of the score."""
    nothing = Hits()
    push_ball(ball)
    bounce_ball(ball)
    end_ball(ball, nothing.extra)
    match.tick += 1
    keep_score(cars, ball, match, nothing, events, rules)


@wp.func
def play_tick(
    cars: wp.array[Car],
    ball: wp.ref[Ball],
    match: wp.ref[Match],
    pads: wp.ref[PadRow],
    events: wp.array[EventRow],
    tables: Tables,
    rules: Rules,
    game: wp.int32,
):
    """Advances one game by one tick; `match.goal` says afterwards who has scored."""
    for seat in range(rules.blue + rules.orange):
        if cars[seat].demolished_s <= 0.0:
            drive(cars[seat], rules, events[seat])
    play_rest(cars, ball, match, pads, events, tables, rules, game)


@wp.func
def play_rest(
    cars: wp.array[Car],
    ball: wp.ref[Ball],
    match: wp.ref[Match],
    pads: wp.ref[PadRow],
    events: wp.array[EventRow],
    tables: Tables,
    rules: Rules,
    game: wp.int32,
):
    """Plays the rest of a tick in which all cars have driven."""
    count = rules.blue + rules.orange
    push_ball(ball)
    bounce_ball(ball)
    hits = hit_all(cars, ball, count)
    for one in range(count - 1):
        for other in range(one + 1, count):
            meet(cars, one, other, events)
    end_ball(ball, hits.extra)
    match.tick += 1
    for seat in range(count):
        if cars[seat].demolished_s <= 0.0:
            end_drive(cars[seat], pads, match.tick, tables, events[seat])
        else:
            cars[seat].demolished_s -= DT
            if cars[seat].demolished_s < _HALF_TICK:
                respawn(cars, seat, match, tables, rules, game)
    keep_score(cars, ball, match, hits, events, rules)


@wp.func
def keep_score(
    cars: wp.array[Car], ball: Ball, match: wp.ref[Match], hits: Hits, events: wp.array[EventRow], rules: Rules
):
    """Counts touches, shots and goals of this tick."""
    pass_time(match)
    if match.kickoff != 0:
        decide_kickoff(match, hits.touched, events, rules)
    if hits.touched != 0:
        for seat in range(rules.blue + rules.orange):
            if (hits.touched & (1 << seat)) != 0:
                count_touch(cars[seat], seat, ball, match, events[seat], hits.powers[seat])
    count_shot(ball, match, events, rules)
    team = scored(ball)
    if team >= 0:
        count_goal(match, team, events, rules)
