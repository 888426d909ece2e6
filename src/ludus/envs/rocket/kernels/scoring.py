"""The scorekeeper: touches, shots, saves, kickoffs, goals and assists (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.kernels.tables import EventRow
from ludus.envs.rocket.rules import (
    AERIAL_Z,
    ASSIST_S,
    BALL_RADIUS,
    DT,
    GOAL_CREDIT_S,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    GOAL_LINE_Y,
    GRAVITY,
    KICKOFF_TOUCH_S,
    SHOT_COOLDOWN_S,
    SHOT_SPEED,
    SHOT_TIME_S,
    SHOT_TOUCH_S,
    TOUCH_GAP_TICKS,
    Event,
)

_IN_Y = GOAL_LINE_Y + BALL_RADIUS  # the ball is in the goal beyond it
_LAST_S = KICKOFF_TOUCH_S + 0.5 * DT  # between two ticks: rounding does not matter


@wp.func
def heads_for_goal(ball: Ball, team: wp.int32, slowest: wp.float32) -> bool:
    """Whether the ball, if nothing touches it and it does not bounce, is soon in the goal that a team attacks.

    Args:
        ball: The ball.
        team: The attacking team.
        slowest: Least speed toward the goal line, uu/s.
    """
    ahead = wp.where(team == 0, 1.0, -1.0)
    speed = ball.velocity[1] * ahead
    if speed < slowest:
        return False
    arrival_s = (_IN_Y - ball.position[1] * ahead) / speed
    x = ball.position[0] + ball.velocity[0] * arrival_s
    z = ball.position[2] + (ball.velocity[2] + 0.5 * GRAVITY * arrival_s) * arrival_s
    return arrival_s < SHOT_TIME_S and wp.abs(x) < GOAL_HALF_WIDTH and z < GOAL_HEIGHT


@wp.func
def pass_time(match: wp.ref[Match]):
    """Lets the scorekeeper's clocks run for a tick."""
    match.since_kickoff_s += DT
    match.untouched_s += DT
    match.last_touch_s += DT
    match.last_blue_s += DT
    match.last_orange_s += DT
    match.before_blue_s += DT
    match.before_orange_s += DT
    match.shot_s += DT


@wp.func
def note_touch(match: wp.ref[Match], seat: wp.int32, team: wp.int32):
    """Remembers who touched the ball last and, of each team, who did before."""
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
def count_touch(
    car: wp.ref[Car], seat: wp.int32, ball: Ball, match: wp.ref[Match], events: wp.ref[EventRow], power: wp.float32
):
    """Counts a contact with the ball: a new touch unless it goes on, and a save if it ends a shot of the others."""
    if car.clear_ticks >= TOUCH_GAP_TICKS:
        events[Event.TOUCHES] += 1.0
        if ball.position[2] > AERIAL_Z:
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
    """Counts a shot for who has just touched the ball, if it now heads for the other goal."""
    if match.shot_s > SHOT_TIME_S:
        match.shot_seat = -1
    if match.last_touch < 0 or match.last_touch_s > SHOT_TOUCH_S or match.shot_s < SHOT_COOLDOWN_S:
        return
    team = wp.where(match.last_touch < rules.blue, 0, 1)
    if heads_for_goal(ball, team, SHOT_SPEED):
        match.shot_seat = match.last_touch
        match.shot_team = team
        match.shot_s = 0.0
        events[match.last_touch][Event.SHOTS] += 1.0


@wp.func
def decide_kickoff(match: wp.ref[Match], touched: wp.int32, events: wp.array[EventRow], rules: Rules):
    """Ends a kickoff with the first touch; who was first within the time has won it.

    Args:
        match: The match, in a kickoff.
        touched: Bits of the seats that touch the ball in this tick.
        events: Of all seats.
        rules: Settings.
    """
    in_time = match.since_kickoff_s < _LAST_S
    too_late = not in_time and match.since_kickoff_s < _LAST_S + DT
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
def scored(ball: Ball) -> wp.int32:
    """The team that has scored, -1 none."""
    if wp.abs(ball.position[1]) <= _IN_Y:
        return -1
    return wp.where(ball.position[1] > 0.0, 0, 1)


@wp.func
def count_goal(match: wp.ref[Match], team: wp.int32, events: wp.array[EventRow], rules: Rules):
    """Counts a goal: for the team, for the last of it who touched the ball, and for who passed to that one."""
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
    if scorer < 0 or scorer_s > GOAL_CREDIT_S:
        return
    events[scorer][Event.GOALS] += 1.0
    if match.shot_seat != scorer:
        events[scorer][Event.SHOTS] += 1.0  # it was not fast, but it went in
    if passer >= 0 and passer_s - scorer_s <= ASSIST_S:
        events[passer][Event.ASSISTS] += 1.0
