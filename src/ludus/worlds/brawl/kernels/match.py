"""The kernels of Brawl: step with its events and state metrics, restart and observe; one thread per game."""

import warp as wp

from ludus.envs.warp_tools import EXACT
from ludus.worlds.brawl import rules as const
from ludus.worlds.brawl.kernels import observe, stage
from ludus.worlds.brawl.kernels.combat import clash, find_blow, take_blow
from ludus.worlds.brawl.kernels.fighter import act, place_at_start, travel
from ludus.worlds.brawl.kernels.structs import Hit, Item, Match, Move, Player, Rules
from ludus.worlds.brawl.observation import PLAYER_SIZE, SIZE
from ludus.worlds.brawl.rules import Event, Ground, Key, Mask, State, Stream

wp.set_module_options(EXACT)

EventRow = wp.types.vector(length=len(const.EVENTS), dtype=wp.float32)
MeasureRow = wp.types.vector(length=len(const.MEASURES), dtype=wp.float32)

OBSERVE_TILE = 32  # rows; one warp of threads

KeyRow = wp.types.vector(length=const.KEYS, dtype=wp.int8)


@wp.func
def write_blows(row: wp.ref[EventRow], dealt: float, taken: float, in_stun: float, hit: int):
    """Write the events of blows."""
    row[Event.DAMAGE_DEALT] = dealt
    row[Event.DAMAGE_TAKEN] = taken
    row[Event.HITS] = observe.flag(hit >= 0)
    row[Event.STUN_HITS] = in_stun


@wp.func
def write_stocks(row: wp.ref[EventRow], knockouts: float, knocked_out: float, falls: float):
    """Write the events of lost stocks."""
    row[Event.KNOCKOUTS] = knockouts
    row[Event.KNOCKED_OUT] = knocked_out
    row[Event.FALLS] = falls


@wp.func
def write_weapons(row: wp.ref[EventRow], took: float, dropped: float, values: wp.array[wp.float32]):
    """Write the events of weapons; `took` is a weapon index, 0 for none."""
    row[Event.PICKUPS] = observe.flag(took > 0.0)
    row[Event.PICKUP_VALUE] = observe.flag(took > 0.0) * values[wp.int32(took)]  # empty hands may have a value too
    row[Event.DROPS] = dropped


@wp.func
def write_result(row: wp.ref[EventRow], result: float):
    """Write the events of the end of a match."""
    row[Event.WINS] = observe.flag(result > 0.0)
    row[Event.LOSSES] = observe.flag(result < 0.0)
    row[Event.DRAWS] = observe.flag(result == 0.0)


@wp.func
def bits_set(mask: int) -> int:
    """Count the bits of a key mask: in pairs, in fours, in eights."""
    pairs = mask - ((mask >> 1) & 0x5555)
    fours = (pairs & 0x3333) + ((pairs >> 2) & 0x3333)
    eights = (fours + (fours >> 4)) & 0x0F0F
    return (eights + (eights >> 8)) & 0x1F


@wp.func
def write_measures(row: wp.ref[MeasureRow], p: Player, other: Player, distance: float, per_distance: float):
    """Write a fighter's state metrics from its own side; `per_distance` is 1 / distance, 0 at distance 0."""
    dx = other.x - p.x
    dy = other.y - p.y
    towards = dx * wp.float32(p.facing)
    mirror = -wp.float32(p.home)
    row[0] = mirror * p.x
    row[1] = p.y
    row[2] = distance
    row[3] = observe.flag(towards > 0.0) - observe.flag(towards < 0.0)
    row[4] = p.damage
    row[5] = wp.float32(p.stocks)
    row[6] = wp.float32(p.state)
    row[7] = observe.flag(p.ground != Ground.NONE)
    row[8] = wp.float32(p.weapon)
    row[9] = wp.float32(bits_set(p.keys))
    row[10] = (p.vx * dx + p.vy * dy) * per_distance
    row[11] = mirror * other.x
    row[12] = other.y


@wp.func
def held_keys(action: KeyRow, home: int) -> int:
    """Return the key mask of a seat's action with left and right in the directions of the standard stage."""
    mask = int(0)
    for key in range(const.KEYS):  # no branches: random keys would mispredict every one of them
        mask += wp.where(action[key] != wp.int8(0), 1 << key, 0)
    left = (mask >> Key.LEFT) & 1
    right = (mask >> Key.RIGHT) & 1
    swapped = (left << Key.RIGHT) | (right << Key.LEFT) | (mask & ~(Mask.LEFT | Mask.RIGHT))
    return wp.where(home > 0, swapped, mask)  # from the high ground a seat sees the stage mirrored


@wp.func
def restart(players: wp.array2d[Player], matches: wp.array[Match], items: wp.array2d[Item], game: int, rules: Rules):
    """Begin the next episode of a game."""
    match = matches[game]
    match.episode += 1
    match.frame = 0
    stage.schedule_first_spawns(match, rules, game)
    coin = wp.int32(stage.stream(rules, game, match, Stream.SIDE) & wp.uint32(1))
    home = 1 - 2 * (coin ^ rules.swap_sides)
    for seat in range(2):
        p = Player()
        p.home = home * (1 - 2 * seat)
        p.stocks = rules.stocks
        weapon = rules.fixed_weapon_0
        if seat == 1:
            weapon = rules.fixed_weapon_1
        place_at_start(p, wp.max(weapon, 0))
        players[game, seat] = p
    empty = Item()
    for slot in range(const.ITEM_SLOTS):
        items[game, slot] = empty
    matches[game] = match


@wp.func
def lose_stock(p: wp.ref[Player], respawn_weapon: int) -> bool:
    """Take a stock from a fighter outside the kill box; return whether that happened."""
    if p.state == State.KO or (wp.abs(p.x) <= const.KILL_X and wp.abs(p.y) <= const.KILL_Y):
        return False
    threatened = p.threatened
    stocks = p.stocks - 1
    place_at_start(p, respawn_weapon)
    p.threatened = threatened
    p.stocks = stocks
    p.state = State.KO
    p.timer = const.KO_FRAMES
    return True


@wp.func
def handle_weapons(
    a: wp.ref[Player],
    b: wp.ref[Player],
    pressed_a: int,
    pressed_b: int,
    items: wp.array2d[Item],
    game: int,
    match: Match,
    rules: Rules,
) -> wp.vec4:
    """Drop and take weapons; return (a dropped, b dropped, a took, b took), the last two as weapon index."""
    dropped_a = stage.drop_weapon(a, pressed_a)
    dropped_b = stage.drop_weapon(b, pressed_b)
    if dropped_a.life > 0:
        items[game, 2] = dropped_a
    if dropped_b.life > 0:
        items[game, 3] = dropped_b
    took_a = int(0)
    took_b = int(0)
    wants_a = stage.wants_weapon(a)
    wants_b = stage.wants_weapon(b)
    if wants_a or wants_b:
        for order in range(const.ITEM_SLOTS):
            slot = order
            if order >= 2 and a.home < 0:  # the drop of the fighter from the high ground first: no seat has an edge
                slot = 5 - order
            if items[game, slot].life > 0 and items[game, slot].lock == 0:
                item = items[game, slot]
                reach_a = stage.reach_sq(a, wants_a and took_a == 0, item)
                reach_b = stage.reach_sq(b, wants_b and took_b == 0, item)
                first = reach_a >= 0.0 and (reach_b < 0.0 or reach_a < reach_b)
                if reach_a >= 0.0 and reach_a == reach_b:
                    coin = wp.int32(stage.stream(rules, game, match, Stream.PICKUP_TIE) & wp.uint32(1))
                    first = (2 * coin - 1) == a.home
                if first:
                    took_a = item.weapon
                elif reach_b >= 0.0:
                    took_b = item.weapon
                if reach_a >= 0.0 or reach_b >= 0.0:
                    item.life = 0
                    items[game, slot] = item
    if took_a > 0:
        a.weapon = took_a
    if took_b > 0:
        b.weapon = took_b
    return wp.vec4(
        observe.flag(dropped_a.life > 0), observe.flag(dropped_b.life > 0), wp.float32(took_a), wp.float32(took_b)
    )


@wp.func
def result_of(a: Player, b: Player) -> float:
    """Return 1 if a has won, -1 if b has, 0 for a draw: by stocks, then by damage."""
    if a.stocks != b.stocks:
        return wp.sign(wp.float32(a.stocks - b.stocks))
    if a.damage != b.damage:
        return wp.sign(b.damage - a.damage)
    return 0.0


@wp.kernel
def step_kernel(
    players: wp.array2d[Player],
    matches: wp.array[Match],
    items: wp.array2d[Item],
    actions: wp.array2d[KeyRow],
    moves: wp.array[Move],
    hits: wp.array[Hit],
    values: wp.array[wp.float32],
    rules: Rules,
    events: wp.array2d[EventRow],
    state_metrics: wp.array2d[MeasureRow],
    terminated: wp.array[wp.bool],
    first: int,
):
    """Advance one game by one frame and report what happened."""
    game = wp.tid() + first
    a = players[game, 0]
    b = players[game, 1]
    match = matches[game]
    keys_a = held_keys(actions[game, 0], a.home)
    keys_b = held_keys(actions[game, 1], b.home)
    pressed_a = keys_a & ~a.keys
    pressed_b = keys_b & ~b.keys
    weapon_a = wp.max(rules.fixed_weapon_0, 0)  # after a stock is lost
    weapon_b = wp.max(rules.fixed_weapon_1, 0)
    attacks_a = act(a, moves[wp.max(a.move, 0)], keys_a, weapon_a)
    attacks_b = act(b, moves[wp.max(b.move, 0)], keys_b, weapon_b)

    before = stage.platform_at(match.frame)
    match.frame += 1
    after = stage.platform_at(match.frame)
    move_a = moves[wp.max(a.move, 0)]
    move_b = moves[wp.max(b.move, 0)]
    travel(a, move_a, before, after)
    travel(b, move_b, before, after)

    blow_a = find_blow(a, b, move_a, hits)
    blow_b = find_blow(b, a, move_b, hits)
    if rules.clash_frames > 0:
        clash(a, b, blow_a, blow_b, rules)
    dealt_a = float(0.0)
    dealt_b = float(0.0)
    in_stun_a = float(0.0)  # a hit b while b was stunned
    in_stun_b = float(0.0)
    stunned_a = a.state == State.STUN
    stunned_b = b.state == State.STUN
    if blow_a.hit >= 0:
        a.hit_mask = a.hit_mask | wp.where(a.state == State.ATTACK, 1 << blow_a.hit, 0)  # not after a clash
        dealt_a = take_blow(b, blow_a)
        in_stun_a = observe.flag(stunned_b)
    if blow_b.hit >= 0:
        if blow_a.hit < 0:
            b.hit_mask = b.hit_mask | wp.where(b.state == State.ATTACK, 1 << blow_b.hit, 0)
        dealt_b = take_blow(a, blow_b)
        in_stun_b = observe.flag(stunned_a)

    lost_a = lose_stock(a, weapon_a)  # before weapons are handled: what leaves the stage drops nothing there
    lost_b = lose_stock(b, weapon_b)
    stage.advance_items(items, game, match, rules)
    handled = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if rules.fixed_weapon_0 < 0:
        handled = handle_weapons(a, b, pressed_a, pressed_b, items, game, match, rules)

    ended = a.stocks <= 0 or b.stocks <= 0 or match.frame >= rules.step_limit
    result = float(0.0)
    if ended:
        result = result_of(a, b)

    knocked_a = observe.flag(lost_a and a.threatened != 0)
    knocked_b = observe.flag(lost_b and b.threatened != 0)
    events[game, 0] = EventRow()  # most frames have no event: zeros at once, then what happened
    events[game, 1] = EventRow()
    if blow_a.hit >= 0 or blow_b.hit >= 0:
        write_blows(events[game, 0], dealt_a, dealt_b, in_stun_a, blow_a.hit)
        write_blows(events[game, 1], dealt_b, dealt_a, in_stun_b, blow_b.hit)
    events[game, 0][Event.ATTACKS] = attacks_a
    events[game, 1][Event.ATTACKS] = attacks_b
    if lost_a or lost_b:
        write_stocks(events[game, 0], knocked_b, knocked_a, observe.flag(lost_a) - knocked_a)
        write_stocks(events[game, 1], knocked_a, knocked_b, observe.flag(lost_b) - knocked_b)
    if handled[0] + handled[1] + handled[2] + handled[3] > 0.0:
        write_weapons(events[game, 0], handled[2], handled[0], values)
        write_weapons(events[game, 1], handled[3], handled[1], values)
    if ended:
        write_result(events[game, 0], result)
        write_result(events[game, 1], -result)
    dx = b.x - a.x
    dy = b.y - a.y
    distance = wp.sqrt(dx * dx + dy * dy)
    per_distance = wp.where(distance > 0.0, 1.0 / distance, 0.0)
    write_measures(state_metrics[game, 0], a, b, distance, per_distance)
    write_measures(state_metrics[game, 1], b, a, distance, per_distance)

    terminated[game] = ended
    players[game, 0] = a
    players[game, 1] = b
    matches[game] = match


@wp.kernel
def finish_kernel(
    players: wp.array2d[Player],
    matches: wp.array[Match],
    items: wp.array2d[Item],
    moves: wp.array[Move],
    rules: Rules,
    terminated: wp.array[wp.bool],
    final: wp.array2d[observe.Row],
    first: int,
):
    """Write the last observation of a game that ended and restart it.

    A separate kernel: inlined in the step, this rare branch costs a tenth of its speed.
    """
    game = wp.tid() + first
    if terminated[game]:
        observe.observe_match(final, game, players, matches[game], items, moves, rules)
        restart(players, matches, items, game, rules)


@wp.kernel
def restart_kernel(
    players: wp.array2d[Player],
    matches: wp.array[Match],
    items: wp.array2d[Item],
    chosen: wp.array[wp.bool],
    rules: Rules,
    first: int,
):
    """Restart the chosen games."""
    game = wp.tid() + first
    if chosen[game]:
        restart(players, matches, items, game, rules)


@wp.kernel
def observe_kernel(
    players: wp.array2d[Player],
    matches: wp.array[Match],
    items: wp.array2d[Item],
    moves: wp.array[Move],
    rules: Rules,
    out: wp.array2d[observe.Row],
    first: int,
):
    """Write the observations of one game; for a CPU, where rows are best written in place."""
    game = wp.tid() + first
    observe.fetch_rows(out, game + 1)
    observe.observe_match(out, game, players, matches[game], items, moves, rules)


@wp.kernel
def observe_tiles_kernel(
    players: wp.array2d[Player],
    matches: wp.array[Match],
    items: wp.array2d[Item],
    moves: wp.array[Move],
    rules: Rules,
    out: wp.array2d[wp.float32],
):
    """Write the observations of a tile of rows; for a GPU, one thread per seat.

    Rows go through shared memory, so that neighbouring threads write neighbouring numbers: six times as fast as
    each thread writing its own row.
    """
    tile, lane = wp.tid()
    index = tile * OBSERVE_TILE + lane
    game = wp.min(index / 2, matches.shape[0] - 1)  # the last tile may reach beyond the last game
    seat = index % 2
    row = observe.Row()
    match = matches[game]
    p = players[game, seat]
    other = players[game, 1 - seat]
    platform = stage.platform_at(match.frame)
    mirror = -wp.float32(p.home)
    observe.write_player(row.own, p, observe.aspect_of(p, moves, platform), mirror, rules)
    observe.write_player(row.opponent, other, observe.aspect_of(other, moves, platform), mirror, rules)
    observe.observe_world(row.world, game, seat, p, other, platform, match, items, rules)
    rows = wp.tile_zeros(shape=(OBSERVE_TILE, SIZE), dtype=wp.float32, storage="shared")
    column = int(0)
    while column < PLAYER_SIZE:
        rows[lane, column] = row.own[column]
        rows[lane, PLAYER_SIZE + column] = row.opponent[column]
        column += 1
    column = int(0)
    while column < observe.WORLD_SIZE:
        rows[lane, 2 * PLAYER_SIZE + column] = row.world[column]
        column += 1
    wp.tile_store(out, rows, offset=(tile * OBSERVE_TILE, 0))
