"""The kernel of the scripted players: style, then noise, then reaction delay; one thread is one seat of one game."""

from enum import IntEnum

import warp as wp

from ludus.envs.brawl.kernels.bot_sense import look
from ludus.envs.brawl.kernels.bot_styles import (
    Memo,
    aerial,
    aggressive,
    based,
    based_safe,
    defensive,
    edge_guarder,
    follow_through,
    heavy_spammer,
    hit_and_run,
    weapon_seeker,
)
from ludus.envs.brawl.kernels.items import stream
from ludus.envs.brawl.kernels.match import KeyRow
from ludus.envs.brawl.kernels.structs import Item, Match, Move, Player, Rules
from ludus.envs.brawl.rules import ITEM_SLOTS, KEYS, MAX_DELAY, State, Stream
from ludus.envs.warp_functions import below, mix, uniform
from ludus.envs.warp_tools import EXACT

wp.set_module_options(EXACT)

SWITCH_MIN = 180  # frames between two changes of style
SWITCH_SPAN = 270
NOISE_FRAMES = 4  # noise holds its random keys this long


class Style(IntEnum):
    """How a scripted player decides."""

    CONSTANT = 0
    RANDOM = 1
    CLOCKWORK = 2
    BASED = 3
    BASED_SAFE = 4
    AGGRESSIVE = 5
    DEFENSIVE = 6
    HIT_AND_RUN = 7
    AERIAL = 8
    HEAVY_SPAMMER = 9
    WEAPON_SEEKER = 10
    EDGE_GUARDER = 11
    SWITCHER = 12


FIRST_SWITCHED = 5  # the switcher draws from here ...
SWITCHED = 7  # ... among this many styles


@wp.struct
class BotSettings:
    """One entry of a roster of bots."""

    style: wp.int32
    delay: wp.int32  # frames between seeing and acting
    noise: wp.float32  # share of the time in which random keys are held
    script_start: wp.int32  # a clockwork's steps in the script array ...
    script_steps: wp.int32  # ... their number ...
    script_frames: wp.int32  # ... and how long they take together


@wp.struct
class ScriptStep:
    """Keys that a clockwork holds up to a frame of its cycle."""

    until: wp.int32
    keys: wp.int32


@wp.func
def clockwork(bot: BotSettings, script: wp.array[ScriptStep], frame: int) -> int:
    """Keys of the script at this frame; it starts over at its end."""
    at = frame % wp.max(bot.script_frames, 1)
    for index in range(bot.script_steps):
        step = script[bot.script_start + index]
        if at < step.until:
            return step.keys
    return 0


@wp.func
def nearest_item(p: Player, items: wp.array2d[Item], game: int) -> wp.vec2:
    """Way to the nearest weapon in the player's own frame, or (100, 0) if there is none."""
    best = wp.vec2(100.0, 0.0)
    for slot in range(ITEM_SLOTS):
        item = items[game, slot]
        dx = -wp.float32(p.home) * (item.x - p.x)
        if item.life > 20 and wp.abs(item.x) < 7.0 and wp.abs(dx) < wp.abs(best[0]):
            best = wp.vec2(dx, item.y - p.y)
    return best


@wp.func
def random_keys(h: wp.uint32) -> wp.int32:
    """Every key with probability one half."""
    return wp.int32(h & wp.uint32((1 << KEYS) - 1))


@wp.func
def styled_keys(
    bot: BotSettings,
    memo: wp.ref[Memo],
    p: Player,
    other: Player,
    match: Match,
    items: wp.array2d[Item],
    moves: wp.array[Move],
    reaches: wp.array[wp.float32],
    game: int,
    chance: wp.uint32,
) -> wp.int32:
    """Keys of a bot with a style of its own."""
    style = bot.style
    if style == Style.SWITCHER:
        if match.frame >= memo.style_until:
            memo.style = FIRST_SWITCHED + below(mix(chance, wp.uint32(2)), SWITCHED)
            memo.style_until = match.frame + SWITCH_MIN + below(mix(chance, wp.uint32(3)), SWITCH_SPAN)
        style = memo.style
    s = look(p, other, match, moves, reaches, bot.delay, chance)
    if style == Style.BASED:
        return based(s)
    if style == Style.BASED_SAFE:
        return based_safe(s, memo)
    if style == Style.HEAVY_SPAMMER:
        return heavy_spammer(s, memo)
    if p.state == State.ATTACK:
        return follow_through(s, memo)
    if style == Style.AGGRESSIVE:
        return aggressive(s, memo)
    if style == Style.DEFENSIVE:
        return defensive(s, memo)
    if style == Style.HIT_AND_RUN:
        return hit_and_run(s, memo)
    if style == Style.AERIAL:
        return aerial(s, memo)
    if style == Style.WEAPON_SEEKER:
        item = nearest_item(p, items, game)
        return weapon_seeker(s, memo, item[0], item[1])
    return edge_guarder(s, memo)


@wp.func
def write_keys(row: wp.ref[KeyRow], keys: wp.int32):
    """Writes a key mask as an action."""
    for key in range(KEYS):
        row[key] = wp.int8((keys >> key) & 1)


@wp.kernel
def bot_kernel(
    players: wp.array2d[Player],
    matches: wp.array[Match],
    items: wp.array2d[Item],
    moves: wp.array[Move],
    reaches: wp.array[wp.float32],
    rules: Rules,
    roster: wp.array[BotSettings],
    script: wp.array[ScriptStep],
    assignment: wp.array2d[wp.int32],
    memos: wp.array2d[Memo],
    delayed: wp.array3d[wp.int32],
    actions: wp.array2d[KeyRow],
    first: int,
):
    """Writes the keys of the bot that plays this seat, if one does; runs over (game, seat)."""
    index = wp.tid() + first
    game = index / 2
    seat = index % 2
    entry = assignment[game, seat]
    if entry < 0 or entry >= roster.shape[0]:
        return
    bot = roster[entry]
    match = matches[game]
    home = players[game, seat].home
    side = 16 * (home + 1)  # a bot's chances belong to its side of the stage, not to its seat
    chance = stream(rules, game, match, Stream.BOT_CHOICE + side)
    keys = int(0)
    if bot.style == Style.RANDOM:
        keys = random_keys(chance)
    elif bot.style == Style.CLOCKWORK:
        keys = clockwork(bot, script, match.frame)
    elif bot.style != Style.CONSTANT:
        memo = memos[game, seat]
        if memo.match != match.episode + 1:
            memo = Memo()
            memo.match = match.episode + 1
        if memo.decided != match.frame + 1 or memo.decided_style != bot.style:  # asked twice, it says the same
            p = players[game, seat]
            memo.keys = 0
            if p.state != State.KO and p.state != State.STUN:
                memo.keys = styled_keys(
                    bot, memo, p, players[game, 1 - seat], match, items, moves, reaches, game, chance
                )
            memo.decided = match.frame + 1
            memo.decided_style = bot.style
            memos[game, seat] = memo
        keys = memo.keys

    if bot.noise > 0.0:
        block = match
        block.frame = match.frame / NOISE_FRAMES
        h = stream(rules, game, block, Stream.BOT_NOISE + side)
        if uniform(h) < bot.noise:
            keys = random_keys(mix(h, wp.uint32(1)))

    if bot.delay > 0:
        delayed[game, seat, match.frame % MAX_DELAY] = keys
        keys = wp.where(
            match.frame >= bot.delay, delayed[game, seat, (match.frame - bot.delay + MAX_DELAY) % MAX_DELAY], 0
        )
    write_keys(actions[game, seat], keys)
