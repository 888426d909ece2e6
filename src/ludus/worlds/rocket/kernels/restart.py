"""How an episode begins: kickoffs, respawns and the scenes of the state setters; one thread per game.

A scene is drawn with the attacking team in blue's place, then mirrored in x and rotated about the middle by two coin
flips. Cars are placed one after the other, each at a position that is clear of the ball and of the cars before it.
"""

import warp as wp

from ludus.envs.warp_functions import below, mix, uniform
from ludus.envs.warp_tools import EXACT
from ludus.worlds.rocket import rules as const
from ludus.worlds.rocket.kernels.maths import axes, column, sin_cos
from ludus.worlds.rocket.kernels.structs import Ball, Car, Match, PadRow, Rules, Tables
from ludus.worlds.rocket.layout import KICKOFFS, PAD_COUNT, RESPAWN_Z, RESPAWNS
from ludus.worlds.rocket.rules import Setter, Stream

wp.set_module_options(EXACT)

SLOTS, PLACES = len(KICKOFFS), len(RESPAWNS)
CLEAR = 220.0  # centres of two cars, or of a car and the ball, that are farther apart do not touch
_ENOUGH_HIT_TICKS = 8  # the first hit gives its extra impulse

FAR_X = 3600.0  # cars and ball are put down within these: clear of the curves between floor, walls and ceiling
FAR_Y = 4600.0
FAR_SUM = 7300.0  # |x| + |y|, clear of the corners
TOP_Z = 1450.0
_TRIES = 16
_WALL_Y = 2800.0  # the side walls are flat within it
_HALF_ROOT = 0.70710678

_COUNT = len(const.SETTERS)


@wp.func
def stream(rules: Rules, game: int, match: Match, name: int) -> wp.uint32:
    """Return the hash of the named random stream of this game, episode and tick."""
    h = mix(rules.seed_hash, wp.uint32(rules.first_game + game))
    h = mix(h, wp.uint32(match.episode))
    h = mix(h, wp.uint32(match.tick))
    return mix(h, wp.uint32(name))


@wp.func
def turned_about(v: wp.vec3f) -> wp.vec3f:
    """Return a vector turned by 180 degrees about the vertical."""
    return wp.vec3f(-v[0], -v[1], v[2])


@wp.func
def rotation_about(q: wp.quatf) -> wp.quatf:
    """Return a rotation turned by 180 degrees about the vertical."""
    return wp.quatf(-q[1], q[0], q[3], -q[2])


@wp.func
def level_rotation(dx: float, dy: float) -> wp.quatf:
    """Return the rotation of a car that stands level and looks along (dx, dy), which need not have a certain length."""
    length = wp.sqrt(dx * dx + dy * dy)
    cosine = wp.where(length > 1.0e-6, dx / wp.max(length, 1.0e-6), 1.0)
    sine_half = wp.sqrt(wp.max(0.5 - 0.5 * cosine, 0.0))
    return wp.quatf(0.0, 0.0, wp.where(dy < 0.0, -sine_half, sine_half), wp.sqrt(wp.max(0.5 + 0.5 * cosine, 0.0)))


@wp.func
def new_car(team: int, position: wp.vec3f, rotation: wp.quatf, boost: float, rules: Rules) -> Car:
    """Return a car that stands at a place of blue's; orange's is turned about the middle."""
    car = Car()
    car.team = team
    car.position = wp.where(team == 0, position, turned_about(position))
    car.rotation = wp.where(team == 0, rotation, rotation_about(rotation))
    car.boost = wp.where(rules.boost_rate > 0.0, boost, const.BOOST_MAX)
    car.hit_ticks = _ENOUGH_HIT_TICKS
    car.clear_ticks = const.TOUCH_GAP_TICKS
    car.bump_seat = -1
    car.inside_pad = -1
    return car


@wp.func
def stand(car: wp.ref[Car]):
    """Record that all wheels are on the floor."""
    car.wheels = 4
    car.on_ground = 1
    car.normal = wp.vec3f(0.0, 0.0, 1.0)


@wp.func
def clear_score(match: wp.ref[Match]):
    """Reset touches, shots and kickoff state."""
    match.goal = -1
    match.kickoff_due = 0
    match.untouched_s = 0.0
    match.since_kickoff_s = 0.0
    match.last_touch = -1
    match.last_blue = -1
    match.last_orange = -1
    match.before_blue = -1
    match.before_orange = -1
    match.shot_seat = -1
    match.shot_s = const.SHOT_COOLDOWN_S


@wp.func
def kickoff(
    cars: wp.array[Car],
    ball: wp.ref[Ball],
    match: wp.ref[Match],
    pads: wp.ref[PadRow],
    tables: Tables,
    rules: Rules,
    game: int,
):
    """Place all cars and the ball; both teams take the same slots, drawn again for every kickoff."""
    h = stream(rules, game, match, Stream.SLOTS)
    first = below(mix(h, wp.uint32(0)), SLOTS)
    stride = 1 + below(mix(h, wp.uint32(1)), SLOTS - 1)  # the number of slots is prime: all are different
    for seat in range(rules.blue + rules.orange):
        team = wp.where(seat < rules.blue, 0, 1)
        slot = tables.kickoffs[(first + (seat - team * rules.blue) * stride) % SLOTS]
        since_touch_s = cars[seat].since_touch_s
        place = wp.vec3f(slot[0], slot[1], const.CAR_REST_Z)
        cars[seat] = new_car(team, place, wp.quatf(0.0, 0.0, slot[2], slot[3]), const.BOOST_START, rules)
        cars[seat].since_touch_s = since_touch_s
        stand(cars[seat])
    ball.position = wp.vec3f(0.0, 0.0, const.BALL_REST_Z)
    ball.velocity = wp.vec3f(0.0, 0.0, 0.0)
    ball.spin = wp.vec3f(0.0, 0.0, 0.0)
    ball.asleep = 1
    for pad in range(PAD_COUNT):
        pads[pad] = 0
    clear_score(match)
    match.kickoff = 1


@wp.func
def respawn(cars: wp.array[Car], seat: int, match: Match, tables: Tables, rules: Rules, game: int):
    """Respawn a demolished car at a free place near its own goal; if all are taken it waits another tick."""
    team = cars[seat].team
    # Keyed by the place in the team: teams that change sides are put back the same way.
    h = mix(stream(rules, game, match, Stream.RESPAWN), wp.uint32(seat - team * rules.blue))
    first = below(h, PLACES)
    for attempt in range(PLACES):
        spot = tables.respawns[(first + attempt) % PLACES]
        place = wp.vec3f(spot[0], spot[1], RESPAWN_Z)
        place = wp.where(team == 0, place, turned_about(place))
        free = bool(True)
        for other in range(rules.blue + rules.orange):
            if other != seat and cars[other].demolished_s <= 0.0:
                free = free and wp.length_sq(cars[other].position - place) > CLEAR * CLEAR
        if free:
            car = new_car(
                team, wp.vec3f(spot[0], spot[1], RESPAWN_Z), level_rotation(0.0, 1.0), const.BOOST_START, rules
            )
            car.since_touch_s = cars[seat].since_touch_s
            cars[seat] = car
            return
    cars[seat].demolished_s = const.DT


@wp.func
def draw(h: wp.uint32, key: int, low: float, high: float) -> float:
    """Return the number of a key in a range."""
    return low + (high - low) * uniform(mix(h, wp.uint32(key)))


@wp.func
def draw_vector(h: wp.uint32, key: int, size: float) -> wp.vec3f:
    """Return a vector in a cube of this half width."""
    return wp.vec3f(draw(h, key, -size, size), draw(h, key + 1, -size, size), draw(h, key + 2, -size, size))


@wp.func
def draw_rotation(h: wp.uint32, key: int) -> wp.quatf:
    """Draw a random rotation."""
    v = draw_vector(h, key, 1.0)
    w = draw(h, key + 3, 0.01, 1.0)
    inverse = 1.0 / wp.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + w * w)
    return wp.quatf(v[0] * inverse, v[1] * inverse, v[2] * inverse, w * inverse)


@wp.func
def held(p: wp.vec3f) -> wp.vec3f:
    """Return the place, moved into the part of the field in which any car or ball is clear of walls and curves."""
    x = wp.clamp(p[0], -FAR_X, FAR_X)
    y = wp.clamp(p[1], -FAR_Y, FAR_Y)
    most = wp.min(FAR_Y, FAR_SUM - wp.abs(x))
    return wp.vec3f(x, wp.clamp(y, -most, most), p[2])


@wp.func
def is_free(cars: wp.array[Car], seat: int, ball: Ball, place: wp.vec3f) -> bool:
    """Return whether a car could be at a place: clear of the ball and of the cars of lower seats."""
    free = wp.length_sq(ball.position - place) > CLEAR * CLEAR
    for other in range(seat):
        free = free and wp.length_sq(cars[other].position - place) > CLEAR * CLEAR
    return free


@wp.func
def free_place(cars: wp.array[Car], seat: int, ball: Ball, h: wp.uint32, low: wp.vec3f, high: wp.vec3f) -> wp.vec3f:
    """Return a random free place in a box; the box is so large that one of the tries finds one."""
    place = low
    for attempt in range(_TRIES):
        key = mix(h, wp.uint32(attempt))
        place = held(
            wp.vec3f(draw(key, 0, low[0], high[0]), draw(key, 1, low[1], high[1]), draw(key, 2, low[2], high[2]))
        )
        if is_free(cars, seat, ball, place):
            return place
    return place


@wp.func
def on_floor(
    cars: wp.array[Car],
    seat: int,
    ball: Ball,
    h: wp.uint32,
    low: wp.vec2f,
    high: wp.vec2f,
    fastest: float,
    rules: Rules,
):
    """Place a car on the floor in a rectangle, driving toward the ball."""
    bottom = wp.vec3f(low[0], low[1], const.CAR_REST_Z)
    place = free_place(cars, seat, ball, mix(h, wp.uint32(1)), bottom, wp.vec3f(high[0], high[1], const.CAR_REST_Z))
    rotation = level_rotation(ball.position[0] - place[0], ball.position[1] - place[1])
    cars[seat] = new_car(0, place, rotation, draw(h, 2, 0.0, 100.0), rules)
    cars[seat].velocity = column(axes(rotation), 0) * draw(h, 3, 0.0, fastest)
    stand(cars[seat])


@wp.func
def in_air(cars: wp.array[Car], seat: int, ball: Ball, h: wp.uint32, boost: float, rules: Rules):
    """Place a car anywhere in the air, tumbling."""
    low = wp.vec3f(-FAR_X, -FAR_Y, 300.0)
    place = free_place(cars, seat, ball, mix(h, wp.uint32(1)), low, wp.vec3f(FAR_X, FAR_Y, 1200.0))
    cars[seat] = new_car(0, place, draw_rotation(h, 4), boost, rules)
    cars[seat].velocity = draw_vector(h, 8, 1000.0)
    cars[seat].spin = draw_vector(h, 11, 3.0)


@wp.func
def place_ball(ball: wp.ref[Ball], h: wp.uint32, low: wp.vec3f, high: wp.vec3f, fastest: float):
    """Place the ball in a box; at the floor it rests."""
    p = held(wp.vec3f(draw(h, 0, low[0], high[0]), draw(h, 1, low[1], high[1]), draw(h, 2, low[2], high[2])))
    v = draw_vector(h, 3, fastest)
    if p[2] < 2.0 * const.BALL_REST_Z:
        p = wp.vec3f(p[0], p[1], const.BALL_REST_Z)
        v = wp.vec3f(v[0], v[1], 0.0)
    ball.position = p
    ball.velocity = v
    ball.spin = draw_vector(h, 6, 2.0)


@wp.func
def scatter(cars: wp.array[Car], seat: int, defends: bool, ball: Ball, h: wp.uint32, rules: Rules):
    """Place a car without a role in the scene on the floor, mostly in its own half."""
    low = wp.where(defends, wp.vec2f(-3000.0, -500.0), wp.vec2f(-3000.0, -FAR_Y))
    high = wp.where(defends, wp.vec2f(3000.0, FAR_Y), wp.vec2f(3000.0, 500.0))
    on_floor(cars, seat, ball, h, low, high, 1000.0, rules)


@wp.func
def set_ball(ball: wp.ref[Ball], setter: int, h: wp.uint32):
    """Place the ball of a scene; the attacked goal lies at y > 0."""
    ball.asleep = 0
    if setter == Setter.GOALIE:
        place_ball(ball, h, wp.vec3f(-2500.0, 0.0, 100.0), wp.vec3f(2500.0, 2500.0, 700.0), 0.0)
        target = wp.vec3f(draw(h, 10, -700.0, 700.0), const.BACK_Y, draw(h, 11, 100.0, 500.0))
        way = target - ball.position
        needed_s = wp.sqrt(way[0] * way[0] + way[1] * way[1]) / draw(h, 12, 1500.0, 3000.0)
        v = way / needed_s
        ball.velocity = wp.vec3f(v[0], v[1], wp.max(v[2] - 0.5 * const.GRAVITY * needed_s, 0.0))
    elif setter == Setter.SHOOTER:
        place_ball(ball, h, wp.vec3f(-2500.0, -500.0, 0.0), wp.vec3f(2500.0, 3200.0, 400.0), 400.0)
    elif setter == Setter.AERIAL:
        place_ball(ball, h, wp.vec3f(-2500.0, -1000.0, 600.0), wp.vec3f(2500.0, 3500.0, TOP_Z), 500.0)
        ball.velocity = wp.vec3f(ball.velocity[0], ball.velocity[1], draw(h, 10, 0.0, 700.0))
    elif setter == Setter.WALL:
        ball.position = wp.vec3f(
            const.SIDE_X - draw(h, 0, 100.0, 200.0), draw(h, 1, -_WALL_Y, _WALL_Y), draw(h, 2, 500.0, 1300.0)
        )
        ball.velocity = wp.vec3f(0.0, draw(h, 3, -200.0, 800.0), draw(h, 4, -200.0, 600.0))
        ball.spin = draw_vector(h, 6, 2.0)
    else:
        place_ball(ball, h, wp.vec3f(-FAR_X, -FAR_Y, -600.0), wp.vec3f(FAR_X, FAR_Y, TOP_Z), 1400.0)


@wp.func
def set_first_attacker(cars: wp.array[Car], seat: int, setter: int, ball: Ball, h: wp.uint32, rules: Rules):
    """Place the main attacker behind the ball, facing it."""
    b = ball.position
    behind = wp.normalize(wp.vec3f(b[0], b[1] - const.BACK_Y, 0.0))  # from the goal to the ball, and on
    nearest = wp.where(setter == Setter.GOALIE, 500.0, 300.0)
    spot = b + behind * draw(h, 20, nearest, 1500.0)
    on_floor(
        cars,
        seat,
        ball,
        h,
        wp.vec2f(spot[0] - 250.0, spot[1] - 250.0),
        wp.vec2f(spot[0] + 250.0, spot[1] + 250.0),
        1800.0,
        rules,
    )
    if setter == Setter.AERIAL:
        cars[seat].boost = wp.max(cars[seat].boost, draw(h, 21, 50.0, 100.0))
        if draw(h, 22, 0.0, 1.0) < 0.5:
            take_off(cars[seat], ball, h)


@wp.func
def take_off(car: wp.ref[Car], ball: Ball, h: wp.uint32):
    """Lift a car into the air below the ball's height, its nose up."""
    half = sin_cos(draw(h, 23, 0.2, 0.5))
    level = car.rotation
    car.rotation = level * wp.quatf(0.0, -half[0], 0.0, half[1])
    car.position = wp.vec3f(car.position[0], car.position[1], draw(h, 24, 150.0, ball.position[2] - 250.0))
    car.velocity = car.velocity * 0.5 + wp.vec3f(0.0, 0.0, draw(h, 25, 200.0, 700.0))
    car.wheels = 0
    car.on_ground = 0
    car.jumped = 1


@wp.func
def set_at_wall(cars: wp.array[Car], seat: int, ball: Ball, h: wp.uint32, rules: Rules):
    """Place a car on the side wall behind the ball, or on the floor on its way to the wall."""
    on_wall = draw(h, 22, 0.0, 1.0) < 0.5
    place = wp.vec3f(0.0, 0.0, 0.0)
    for attempt in range(_TRIES):
        key = mix(h, wp.uint32(40 + attempt))
        y = wp.max(ball.position[1] - draw(key, 0, 400.0, 1200.0), -3300.0)
        if on_wall:
            place = wp.vec3f(const.SIDE_X - const.CAR_REST_Z, y, draw(key, 1, 400.0, 1200.0))
        else:
            place = wp.vec3f(const.SIDE_X - draw(key, 1, 700.0, 1800.0), y, const.CAR_REST_Z)
        if is_free(cars, seat, ball, place):
            break
    rotation = level_rotation(ball.position[0] - place[0], ball.position[1] - place[1])
    if on_wall:
        upright = wp.quatf(0.0, -_HALF_ROOT, 0.0, _HALF_ROOT)  # nose up, wheels at the wall
        # Seen from above its roof, the car looks along (up the wall, along the wall).
        rotation = upright * level_rotation(ball.position[2] - place[2], ball.position[1] - place[1])
    cars[seat] = new_car(0, place, rotation, draw(h, 24, 0.0, 100.0), rules)
    cars[seat].velocity = column(axes(rotation), 0) * draw(h, 20, 800.0, 1400.0)
    stand(cars[seat])
    if on_wall:
        cars[seat].normal = wp.vec3f(-1.0, 0.0, 0.0)


@wp.func
def set_car(
    cars: wp.array[Car], seat: int, defends: bool, rank: int, setter: int, ball: Ball, h: wp.uint32, rules: Rules
):
    """Place one car of a scene; lower seats and the ball are in place.

    `rank` is its place in its team; 0 has the part that the scene is about. `h` is the hash of this car.
    """
    in_scene = rank == 0
    if setter == Setter.RECOVERY:
        in_air(cars, seat, ball, h, draw(h, 30, 0.0, 30.0), rules)
    elif setter == Setter.RANDOM:
        if draw(h, 31, 0.0, 1.0) < 0.3:
            in_air(cars, seat, ball, h, draw(h, 30, 0.0, 100.0), rules)
        else:
            on_floor(cars, seat, ball, h, wp.vec2f(-FAR_X, -FAR_Y), wp.vec2f(FAR_X, FAR_Y), 1400.0, rules)
            rotation = level_rotation(draw(h, 32, -1.0, 1.0), draw(h, 33, -1.0, 1.0))
            cars[seat].velocity = column(axes(rotation), 0) * wp.length(cars[seat].velocity)
            cars[seat].rotation = rotation
    elif in_scene and setter == Setter.GOALIE and defends:
        on_floor(cars, seat, ball, h, wp.vec2f(-900.0, 4100.0), wp.vec2f(900.0, FAR_Y), 500.0, rules)
    elif in_scene and setter == Setter.WALL and not defends:
        set_at_wall(cars, seat, ball, h, rules)
    elif in_scene and not defends:
        set_first_attacker(cars, seat, setter, ball, h, rules)
    else:
        scatter(cars, seat, defends, ball, h, rules)


@wp.func
def mirrored(v: wp.vec3f) -> wp.vec3f:
    """Return a vector in a mirror that exchanges left and right."""
    return wp.vec3f(-v[0], v[1], v[2])


@wp.func
def turn_scene(p: wp.vec3f, mirror: bool, turn: bool) -> wp.vec3f:
    """Return a place or a velocity of the scene on the field."""
    v = wp.where(mirror, mirrored(p), p)
    return wp.where(turn, turned_about(v), v)


@wp.func
def turn_spin(p: wp.vec3f, mirror: bool, turn: bool) -> wp.vec3f:
    """Return an angular velocity of the scene on the field; in a mirror the other two components change."""
    v = wp.where(mirror, -mirrored(p), p)
    return wp.where(turn, turned_about(v), v)


@wp.func
def set_scene(cars: wp.array[Car], ball: wp.ref[Ball], match: Match, rules: Rules, game: int):
    """Place cars and ball for every setter but the kickoff."""
    h = stream(rules, game, match, Stream.SCENE)
    mirror = draw(h, 0, 0.0, 1.0) < 0.5
    turn = draw(h, 1, 0.0, 1.0) < 0.5
    attackers = wp.where(turn, 1, 0)
    set_ball(ball, match.setter, mix(h, wp.uint32(2)))
    count = rules.blue + rules.orange
    for seat in range(count):
        team = wp.where(seat < rules.blue, 0, 1)
        rank = seat - team * rules.blue
        set_car(cars, seat, team != attackers, rank, match.setter, ball, mix(h, wp.uint32(3 + seat)), rules)
        cars[seat].team = team
    ball.position = turn_scene(ball.position, mirror, turn)
    ball.velocity = turn_scene(ball.velocity, mirror, turn)
    ball.spin = turn_spin(ball.spin, mirror, turn)
    for seat in range(count):
        cars[seat].position = turn_scene(cars[seat].position, mirror, turn)
        cars[seat].velocity = turn_scene(cars[seat].velocity, mirror, turn)
        cars[seat].spin = turn_spin(cars[seat].spin, mirror, turn)
        cars[seat].normal = turn_scene(cars[seat].normal, mirror, turn)
        q = cars[seat].rotation
        q = wp.where(mirror, wp.quatf(-q[1], -q[0], q[3], q[2]), q)
        cars[seat].rotation = wp.where(turn, rotation_about(q), q)


@wp.func
def drawn_setter(h: wp.uint32, tables: Tables) -> int:
    """Return the state setter that a hash chooses."""
    drawn = uniform(h)
    chosen = int(0)
    for setter in range(_COUNT):
        chosen += wp.where(drawn >= tables.setters[setter], 1, 0)
    return chosen


@wp.func
def restart(
    cars: wp.array[Car], ball: wp.ref[Ball], episode: int, pads: wp.ref[PadRow], tables: Tables, rules: Rules, game: int
) -> Match:
    """Begin an episode of a game."""
    begun = Match()
    begun.episode = episode
    begun.clock_s = wp.where(rules.ends_by_goal != 0, rules.episode_s, rules.match_s)
    begun.setter = drawn_setter(stream(rules, game, begun, Stream.SETTER), tables)
    for seat in range(rules.blue + rules.orange):
        cars[seat].since_touch_s = 0.0
    if begun.setter == Setter.KICKOFF:
        kickoff(cars, ball, begun, pads, tables, rules, game)
    else:
        for pad in range(PAD_COUNT):
            pads[pad] = 0
        clear_score(begun)
        set_scene(cars, ball, begun, rules, game)
    return begun


@wp.kernel
def finish_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    tables: Tables,
    rules: Rules,
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    first: int,
):
    """Restart a game that ended, or kick off after a goal; a separate kernel, because it would slow down the step."""
    game = wp.tid() + first
    if terminated[game] or truncated[game]:
        matches[game] = restart(cars[game], balls[game], matches[game].episode + 1, pads[game], tables, rules, game)
    elif matches[game].kickoff_due != 0:
        kickoff(cars[game], balls[game], matches[game], pads[game], tables, rules, game)


@wp.kernel
def restart_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    tables: Tables,
    rules: Rules,
    chosen: wp.array[wp.bool],
    first: int,
):
    """Restart the chosen games."""
    game = wp.tid() + first
    if chosen[game]:
        matches[game] = restart(cars[game], balls[game], matches[game].episode + 1, pads[game], tables, rules, game)
