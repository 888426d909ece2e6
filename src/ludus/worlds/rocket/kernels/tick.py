"""One tick of a game, 1/120 s: cars, ball, contacts, then boost pads and the score (Warp functions)."""

import warp as wp

from ludus.worlds.rocket import layout
from ludus.worlds.rocket import rules as const
from ludus.worlds.rocket.kernels.ball import bounce_ball, clamp_ball, move_ball, push_ball
from ludus.worlds.rocket.kernels.car import advance_car, finish_car, move_car
from ludus.worlds.rocket.kernels.car_car import Contact, collide_cars
from ludus.worlds.rocket.kernels.contacts import collide_body, hit_ball, miss_ball
from ludus.worlds.rocket.kernels.maths import axes
from ludus.worlds.rocket.kernels.restart import respawn
from ludus.worlds.rocket.kernels.structs import Ball, Car, EventRow, Match, PadRow, Rules, Tables
from ludus.worlds.rocket.rules import Event

_PER_CELL = 1.0 / layout.PAD_CELL
_BIG_HALF, _SMALL_HALF = layout.BIG.box_half, layout.SMALL.box_half
_BIG_BOOST, _SMALL_BOOST = layout.BIG.boost, layout.SMALL.boost
_BIG_TICKS, _SMALL_TICKS = (round(pad.back_s * const.TICK_HZ) for pad in (layout.BIG, layout.SMALL))

_IN_Y = const.GOAL_LINE_Y + const.BALL_RADIUS  # the ball is in the goal beyond it
_LAST_S = const.KICKOFF_TOUCH_S + 0.5 * const.DT  # between two ticks: rounding does not matter

_HALF_TICK = 0.5 * const.DT  # times are sums of ticks: comparing between two ticks keeps rounding out of it

Powers = wp.types.vector(length=const.MAX_CARS, dtype=wp.float32)


@wp.func
def touches_box(car: Car, pad: wp.vec4f) -> bool:
    """Return whether the upright box around a car's hull meets the box of a pad."""
    half = wp.where(pad[3] > 0.0, _BIG_HALF, _SMALL_HALF)
    m = axes(car.rotation)
    middle_x = car.position[0] + m[0, 0] * const.HULL_OFFSET_X + m[0, 2] * const.HULL_OFFSET_Z
    middle_y = car.position[1] + m[1, 0] * const.HULL_OFFSET_X + m[1, 2] * const.HULL_OFFSET_Z
    middle_z = car.position[2] + m[2, 0] * const.HULL_OFFSET_X + m[2, 2] * const.HULL_OFFSET_Z
    reach_x = (
        wp.abs(m[0, 0]) * const.HULL_HALF_X + wp.abs(m[0, 1]) * const.HULL_HALF_Y + wp.abs(m[0, 2]) * const.HULL_HALF_Z
    )
    reach_y = (
        wp.abs(m[1, 0]) * const.HULL_HALF_X + wp.abs(m[1, 1]) * const.HULL_HALF_Y + wp.abs(m[1, 2]) * const.HULL_HALF_Z
    )
    reach_z = (
        wp.abs(m[2, 0]) * const.HULL_HALF_X + wp.abs(m[2, 1]) * const.HULL_HALF_Y + wp.abs(m[2, 2]) * const.HULL_HALF_Z
    )
    across = wp.abs(middle_x - pad[0]) < half + reach_x and wp.abs(middle_y - pad[1]) < half + reach_y
    return across and middle_z - reach_z < layout.PAD_BOX_TOP_Z


@wp.func
def pad_below(car: Car, tables: Tables) -> int:
    """Return the pad in whose cylinder the middle of a car is, -1 none."""
    if car.position[2] > layout.PAD_TOP_Z:
        return -1
    column = wp.clamp(
        wp.int32(wp.floor(car.position[0] * _PER_CELL)) + layout.PAD_CELLS_X / 2, 0, layout.PAD_CELLS_X - 1
    )
    row = wp.clamp(wp.int32(wp.floor(car.position[1] * _PER_CELL)) + layout.PAD_CELLS_Y / 2, 0, layout.PAD_CELLS_Y - 1)
    index = tables.pad_grid[column, row]
    if index >= 0:
        pad = tables.pads[index]
        dx = car.position[0] - pad[0]
        dy = car.position[1] - pad[1]
        if dx * dx + dy * dy < pad[2]:
            return index
    return -1


@wp.func
def take_pad(car: wp.ref[Car], pads: wp.ref[PadRow], tick: int, tables: Tables, events: wp.ref[EventRow]):
    """Give a car the boost of the pad that it is in, if the pad is there and the car has room for it.

    A car is in a pad when its middle comes into the pad's cylinder, until its hull leaves the pad's box.
    """
    if car.inside_pad >= 0:  # noqa: SIM102 - Warp evaluates both sides of an `and`
        if not touches_box(car, tables.pads[car.inside_pad]):
            car.inside_pad = -1
    if car.inside_pad < 0:
        car.inside_pad = pad_below(car, tables)
    if car.inside_pad < 0 or car.boost >= const.BOOST_MAX:
        return
    if tick < pads[car.inside_pad]:
        return
    is_big = tables.pads[car.inside_pad][3] > 0.0
    gained = wp.min(wp.where(is_big, _BIG_BOOST, _SMALL_BOOST), const.BOOST_MAX - car.boost)
    car.boost += gained
    pads[car.inside_pad] = tick + wp.where(is_big, _BIG_TICKS, _SMALL_TICKS)
    events[Event.BOOST_GAINED] += gained
    if is_big:
        events[Event.BIG_PADS] += 1.0
    else:
        events[Event.SMALL_PADS] += 1.0


@wp.func
def heads_for_goal(ball: Ball, team: int, slowest: float) -> bool:
    """Return whether the ball, if nothing touches it and it does not bounce, is soon in the goal that a team attacks.

    `slowest` is the least speed toward the goal line, uu/s.
    """
    ahead = wp.where(team == 0, 1.0, -1.0)
    speed = ball.velocity[1] * ahead
    if speed < slowest:
        return False
    arrival_s = (_IN_Y - ball.position[1] * ahead) / speed
    x = ball.position[0] + ball.velocity[0] * arrival_s
    z = ball.position[2] + (ball.velocity[2] + 0.5 * const.GRAVITY * arrival_s) * arrival_s
    return arrival_s < const.SHOT_TIME_S and wp.abs(x) < const.GOAL_HALF_WIDTH and z < const.GOAL_HEIGHT


@wp.func
def pass_time(match: wp.ref[Match]):
    """Advance the scorekeeper's clocks by a tick."""
    match.since_kickoff_s += const.DT
    match.untouched_s += const.DT
    match.last_touch_s += const.DT
    match.last_blue_s += const.DT
    match.last_orange_s += const.DT
    match.before_blue_s += const.DT
    match.before_orange_s += const.DT
    match.shot_s += const.DT


@wp.func
def note_touch(match: wp.ref[Match], seat: int, team: int):
    """Remember who touched the ball last and, of each team, who did before."""
    match.untouched_s = 0.0
    match.last_touch = seat
    match.last_touch_s = 0.0
    if team == 0:
        if match.last_blue != seat:
            match.before_blue = match.last_blue
            match.before_blue_s = match.last_blue_s
        match.last_blue = seat
        match.last_blue_s = 0.0
    else:
        if match.last_orange != seat:
            match.before_orange = match.last_orange
            match.before_orange_s = match.last_orange_s
        match.last_orange = seat
        match.last_orange_s = 0.0


@wp.func
def count_touch(car: wp.ref[Car], seat: int, ball: Ball, match: wp.ref[Match], events: wp.ref[EventRow], power: float):
    """Count a contact with the ball: a touch if it is a new one, a save if it ends a shot of the other team."""
    if car.clear_ticks >= const.TOUCH_GAP_TICKS:
        events[Event.TOUCHES] += 1.0
        if ball.position[2] > const.AERIAL_Z:
            events[Event.AERIAL_TOUCHES] += 1.0
    events[Event.TOUCH_POWER] += power
    car.clear_ticks = 0
    car.since_touch_s = 0.0
    note_touch(match, seat, car.team)
    if match.shot_seat >= 0 and match.shot_team != car.team and not heads_for_goal(ball, 1 - car.team, 1.0):
        match.shot_seat = -1
        events[Event.SAVES] += 1.0


@wp.func
def count_shot(ball: Ball, match: wp.ref[Match], events: wp.array[EventRow], rules: Rules):
    """Count a shot for the car that has just touched the ball, if it now heads for the other goal."""
    if match.shot_s > const.SHOT_TIME_S:
        match.shot_seat = -1
    if match.last_touch < 0 or match.last_touch_s > const.SHOT_TOUCH_S or match.shot_s < const.SHOT_COOLDOWN_S:
        return
    team = wp.where(match.last_touch < rules.blue, 0, 1)
    if heads_for_goal(ball, team, const.SHOT_SPEED):
        match.shot_seat = match.last_touch
        match.shot_team = team
        match.shot_s = 0.0
        events[match.last_touch][Event.SHOTS] += 1.0


@wp.func
def decide_kickoff(match: wp.ref[Match], touched: int, events: wp.array[EventRow], rules: Rules):
    """End a kickoff with the first touch; the team that touches first within the time limit wins it.

    `touched` has the bits of the seats that touch the ball in this tick.
    """
    in_time = match.since_kickoff_s < _LAST_S
    too_late = not in_time and match.since_kickoff_s < _LAST_S + const.DT
    if touched != 0:
        match.kickoff = 0
    if not ((touched != 0 and in_time) or too_late):
        return
    blue_mask = (1 << rules.blue) - 1
    for seat in range(rules.blue + rules.orange):
        events[seat][Event.KICKOFFS] += 1.0
        mask = wp.where(seat < rules.blue, blue_mask, ~blue_mask)
        if in_time and (touched & mask) != 0:
            events[seat][Event.KICKOFF_TOUCHES] += 1.0


@wp.func
def scored(ball: Ball) -> int:
    """Return the team that has scored, -1 none."""
    if wp.abs(ball.position[1]) <= _IN_Y:
        return -1
    return wp.where(ball.position[1] > 0.0, 0, 1)


@wp.func
def count_goal(match: wp.ref[Match], team: int, events: wp.array[EventRow], rules: Rules):
    """Count a goal for the team, for its last car to touch the ball, and an assist for the one before."""
    match.goal = team
    if team == 0:
        match.blue_goals += 1
    else:
        match.orange_goals += 1
    for seat in range(rules.blue + rules.orange):
        own = wp.where(seat < rules.blue, 0, 1) == team
        events[seat][Event.TEAM_GOALS] += wp.where(own, 1.0, 0.0)
        events[seat][Event.CONCEDED] += wp.where(own, 0.0, 1.0)
    scorer = wp.where(team == 0, match.last_blue, match.last_orange)
    scorer_s = wp.where(team == 0, match.last_blue_s, match.last_orange_s)
    passer = wp.where(team == 0, match.before_blue, match.before_orange)
    passer_s = wp.where(team == 0, match.before_blue_s, match.before_orange_s)
    if scorer < 0 or scorer_s > const.GOAL_CREDIT_S:
        return
    events[scorer][Event.GOALS] += 1.0
    if match.shot_seat != scorer:
        events[scorer][Event.SHOTS] += 1.0  # it was not fast, but it went in
    if passer >= 0 and passer_s - scorer_s <= const.ASSIST_S:
        events[passer][Event.ASSISTS] += 1.0


@wp.func
def drive(car: wp.ref[Car], rules: Rules, events: wp.ref[EventRow]):
    """Advance a car by itself and count what its driver did."""
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
        car.boost = const.BOOST_MAX
    car.bump_s = wp.max(car.bump_s - const.DT, 0.0)
    car.clear_ticks = wp.min(car.clear_ticks + 1, const.TOUCH_GAP_TICKS)
    car.since_touch_s += const.DT


@wp.func
def demolish(car: wp.ref[Car], attacker: wp.ref[EventRow], victim: wp.ref[EventRow]):
    """Remove a car from the field."""
    car.demolished_s = const.DEMOLITION_S
    car.velocity = wp.vec3f(0.0, 0.0, 0.0)
    car.spin = wp.vec3f(0.0, 0.0, 0.0)
    car.boosting_s = 0.0
    car.supersonic = 0
    car.touching_ball = 0
    attacker[Event.DEMOLITIONS] += 1.0
    victim[Event.DEMOLISHED] += 1.0


@wp.func
def meet(cars: wp.array[Car], one: int, other: int, events: wp.array[EventRow]):
    """Collide two cars and count bumps and demolitions."""
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
def hit_all(cars: wp.array[Car], ball: wp.ref[Ball], count: int) -> Hits:
    """Apply every car's hit to the ball's initial state: no seat is first, so that a kickoff is fair."""
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
    """Move the ball, after which the extra impulses act."""
    move_ball(ball)
    ball.velocity = ball.velocity + extra
    clamp_ball(ball)


@wp.func
def end_drive(car: wp.ref[Car], pads: wp.ref[PadRow], tick: int, tables: Tables, events: wp.ref[EventRow]):
    """Move a car after all contacts, and take the pad that it reaches."""
    move_car(car)
    finish_car(car)
    take_pad(car, pads, tick, tables, events)


@wp.func
def drive_alone(
    car: wp.ref[Car], pads: wp.ref[PadRow], tick: int, tables: Tables, rules: Rules, events: wp.ref[EventRow]
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
    game: int,
):
    """Advance one game by one tick; `match.goal` says afterwards who has scored."""
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
    game: int,
):
    """Play the rest of a tick in which all cars have driven."""
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
            cars[seat].demolished_s -= const.DT
            if cars[seat].demolished_s < _HALF_TICK:
                respawn(cars, seat, match, tables, rules, game)
    keep_score(cars, ball, match, hits, events, rules)


@wp.func
def keep_score(
    cars: wp.array[Car], ball: Ball, match: wp.ref[Match], hits: Hits, events: wp.array[EventRow], rules: Rules
):
    """Count touches, shots and goals of this tick."""
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
