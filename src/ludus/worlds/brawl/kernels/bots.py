"""The kernel of the scripted players: style, then noise, then reaction delay; one thread per seat."""

from collections.abc import Callable
from typing import NamedTuple

import warp as wp

from ludus.envs.warp_functions import below, mix, uniform
from ludus.envs.warp_tools import EXACT
from ludus.worlds.brawl.kernels import bot_styles as styles
from ludus.worlds.brawl.kernels.match import KeyRow
from ludus.worlds.brawl.kernels.stage import stream
from ludus.worlds.brawl.kernels.structs import Item, Match, Memo, Move, Player, Rules
from ludus.worlds.brawl.rules import ITEM_SLOTS, KEYS, MAX_DELAY, State, Stream

wp.set_module_options(EXACT)

SWITCH_MIN = 180  # frames between two changes of style
SWITCH_SPAN = 270
NOISE_FRAMES = 4  # noise holds its random keys this long
HABITS = (
    1 << 16
)  # without a place in `BOTS`, as it is families of bots: what is not in the name is drawn for every match
DRAWN = -1  # a delay, noise or family that is drawn for every match
DRAWN_DELAYS = 9  # 0 to 8 frames
DRAWN_NOISE = 0.1  # 0 to this share of the time


class Bot(NamedTuple):
    """A scripted player; a new one is a function in `bot_styles` and a line in `BOTS`."""

    name: str
    decide: Callable[..., int] | None = None  # its style; None for those that the kernel plays itself
    delay: int = 4  # frames between seeing and acting, unless the name says otherwise
    noise: float = 0.05  # share of the time in which it holds random keys; without any, two equal bots play one match
    is_switched: bool = False  # whether the switcher plays it too


# New ones go to the end: networks that classify opponents know bots by their place.
BOTS = (
    Bot("constant", delay=0, noise=0.0),
    Bot("random", delay=0, noise=0.0),
    Bot("clockwork", delay=0, noise=0.0),
    Bot("based", styles.based, delay=0, noise=0.08),  # acts at once, as the one it stands for did
    Bot("based-safe", styles.based_safe),
    Bot("aggressive", styles.aggressive, is_switched=True),
    Bot("defensive", styles.defensive, is_switched=True),
    Bot("hit-and-run", styles.hit_and_run, is_switched=True),
    Bot("aerial", styles.aerial, is_switched=True),
    Bot("heavy-spammer", styles.heavy_spammer, is_switched=True),
    Bot("weapon-seeker", styles.weapon_seeker, is_switched=True),
    Bot("edge-guarder", styles.edge_guarder, is_switched=True),
    Bot("switcher"),
)
_PLACES = {bot.name: place for place, bot in enumerate(BOTS)}
CONSTANT, RANDOM, CLOCKWORK = _PLACES["constant"], _PLACES["random"], _PLACES["clockwork"]
SWITCHER = _PLACES["switcher"]
STYLES = tuple((place, bot.decide) for place, bot in enumerate(BOTS) if bot.decide is not None)
SWITCHED = tuple(place for place, bot in enumerate(BOTS) if bot.is_switched)


@wp.struct
class BotSettings:
    """One entry of a roster of bots."""

    style: wp.int32  # its place in `BOTS`, or `HABITS`
    family: wp.int32  # of habits, or `DRAWN`
    delay: wp.int32  # frames between seeing and acting, or `DRAWN`
    noise: wp.float32  # share of the time in which random keys are held, or `DRAWN`
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
    """Return the keys of the script at this frame; the script loops."""
    at = frame % wp.max(bot.script_frames, 1)
    for index in range(bot.script_steps):
        step = script[bot.script_start + index]
        if at < step.until:
            return step.keys
    return 0


@wp.func
def nearest_item(p: Player, items: wp.array2d[Item], game: int) -> wp.vec2:
    """Return the way to the nearest weapon in the player's own frame, or (100, 0) if there is none."""
    best = wp.vec2(100.0, 0.0)
    for slot in range(ITEM_SLOTS):
        item = items[game, slot]
        dx = -wp.float32(p.home) * (item.x - p.x)
        if item.life > 20 and wp.abs(item.x) < 7.0 and wp.abs(dx) < wp.abs(best[0]):
            best = wp.vec2(dx, item.y - p.y)
    return best


@wp.func
def random_keys(h: wp.uint32) -> int:
    """Draw every key with probability one half."""
    return wp.int32(h & wp.uint32((1 << KEYS) - 1))


@wp.func
def switched_style(chance: wp.uint32) -> int:
    """Draw the style that the switcher plays next."""
    drawn = below(mix(chance, wp.uint32(2)), wp.static(len(SWITCHED)))
    style = int(0)
    for place in range(wp.static(len(SWITCHED))):
        if drawn == place:
            style = wp.static(SWITCHED[place])
    return style


@wp.func
def styled_keys(style: int, s: styles.Sight, memo: wp.ref[Memo]) -> int:
    """Return the keys of a style."""
    keys = int(0)
    for place in range(wp.static(len(STYLES))):
        if style == wp.static(STYLES[place][0]):
            keys = wp.static(STYLES[place][1])(s, memo)
    return keys


@wp.func
def habit_of(rules: Rules, game: int, match: Match) -> wp.uint32:
    """Return the random bits that all rules of a bot with habits are drawn from.

    They are the same over a set of matches, on whatever side of the stage it begins: so two such bots in one game are
    twins.
    """
    h = mix(rules.seed_hash, wp.uint32(rules.first_game + game))
    h = mix(h, wp.uint32(match.episode / rules.set_length))
    return mix(h, wp.uint32(Stream.BOT_HABIT))


@wp.func
def write_keys(row: wp.ref[KeyRow], keys: int):
    """Write a key mask as an action."""
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
    """Write the keys of the bot that plays this seat, if one does; runs over (game, seat)."""
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
    delay = bot.delay
    noise = bot.noise
    habit = wp.uint32(0)
    if bot.style == HABITS:
        habit = habit_of(rules, game, match)
        if delay < 0:
            delay = below(mix(habit, wp.uint32(0)), DRAWN_DELAYS)
        if noise < 0.0:
            noise = DRAWN_NOISE * uniform(mix(habit, wp.uint32(1)))
    keys = int(0)
    if bot.style == RANDOM:
        keys = random_keys(chance)
    elif bot.style == CLOCKWORK:
        keys = clockwork(bot, script, match.frame)
    elif bot.style != CONSTANT:
        memo = memos[game, seat]
        if memo.match != match.episode + 1:
            memo = Memo()
            memo.match = match.episode + 1
        if memo.decided != match.frame + 1 or memo.decided_style != bot.style:  # asked twice, it says the same
            p = players[game, seat]
            memo.keys = 0
            if p.state != State.KO and p.state != State.STUN:
                style = bot.style
                if style == SWITCHER:
                    if match.frame >= memo.style_until:
                        memo.style = switched_style(chance)
                        memo.style_until = match.frame + SWITCH_MIN + below(mix(chance, wp.uint32(3)), SWITCH_SPAN)
                    style = memo.style
                s = styles.look(p, players[game, 1 - seat], match, moves, reaches, delay, chance)
                item = nearest_item(p, items, game)
                s.item_dx = item[0]
                s.item_dy = item[1]
                if p.state == State.CLASH:
                    memo.keys = styles.clash_keys(below(mix(chance, wp.uint32(4)), styles.GUESSES))
                elif style == HABITS:
                    family = bot.family
                    if family < 0:
                        family = below(mix(habit, wp.uint32(2)), wp.static(styles.FAMILIES))
                    memo.keys = styles.habits(s, memo, habit, family)
                else:
                    memo.keys = styled_keys(style, s, memo)
            memo.decided = match.frame + 1
            memo.decided_style = bot.style
            memos[game, seat] = memo
        keys = memo.keys

    if noise > 0.0:
        block = match
        block.frame = match.frame / NOISE_FRAMES
        h = stream(rules, game, block, Stream.BOT_NOISE + side)
        if uniform(h) < noise:
            keys = random_keys(mix(h, wp.uint32(1)))

    if delay > 0:
        delayed[game, seat, match.frame % MAX_DELAY] = keys
        keys = wp.where(match.frame >= delay, delayed[game, seat, (match.frame - delay + MAX_DELAY) % MAX_DELAY], 0)
    write_keys(actions[game, seat], keys)
