"""The scripted players as one kernel: each draws new parameters for every match, so one name is a population.

The ideas are those of the RoShamBo programming competitions: frequency counting, Markov prediction, matching the
history, and, above them, keeping the score of several predictions and of their rotations (second-guessing). A bot is a
function of the history and of the random streams of its match. It has no tables of its own: to count what followed a
context it scans the history, which costs less than a microsecond and leaves nothing to save. A scan compares the
history's codes under a mask (see `throw_of`): with division and modulo in its place it took several times as long.
"""

from collections.abc import Callable
from typing import NamedTuple

import warp as wp

from ludus.envs.warp_functions import below, mix, uniform
from ludus.envs.warp_tools import EXACT
from ludus.worlds.roshambo.kernels.match import throw_of
from ludus.worlds.roshambo.kernels.structs import SOURCES, Match, Memo, Rules
from ludus.worlds.roshambo.rules import Stream

wp.set_module_options(EXACT)

MOST_NOISE = 0.3  # share of random throws is drawn from 0 to this in every match; small shares are more likely

# What a context is made of.
OF_OPPONENT = 0
OF_SELF = 1
OF_BOTH = 2


@wp.struct
class Sight:
    """What a bot decides on."""

    game: wp.int32
    seat: wp.int32
    frame: wp.int32  # throws played
    drawn: wp.uint32  # random bits of the set: the bot's parameters
    chance: wp.uint32  # random bits of the throw


@wp.func
def own_at(history: wp.array2d[wp.int8], s: Sight, frame: int) -> int:
    """Return the bot's throw in a frame."""
    return throw_of(wp.int32(history[s.game, frame]), s.seat)


@wp.func
def opponent_at(history: wp.array2d[wp.int8], s: Sight, frame: int) -> int:
    """Return the opponent's throw in a frame."""
    return throw_of(wp.int32(history[s.game, frame]), 1 - s.seat)


@wp.func
def mask_of(s: Sight, kind: int) -> int:
    """Return the bits of the history's codes that contexts of a kind are made of."""
    if kind == OF_BOTH:
        return 15
    return 3 << wp.where((kind == OF_SELF) == (s.seat == 0), 2, 0)


@wp.func
def is_alike(history: wp.array2d[wp.int8], game: int, frame: int, other: int, mask: int) -> bool:
    """Return whether two throws are the same under a mask."""
    return ((wp.int32(history[game, frame]) ^ wp.int32(history[game, other])) & mask) == 0


@wp.func
def parameter(s: Sight, number: int) -> wp.uint32:
    """Return random bits that stay the same for the whole set; numbers give independent ones."""
    return mix(s.drawn, wp.uint32(number))


@wp.func
def draw_weighted(weights: wp.vec3, bits: wp.uint32) -> int:
    """Draw a throw by weights."""
    at = uniform(bits) * (weights[0] + weights[1] + weights[2])
    if at < weights[0]:
        return 0
    if at < weights[0] + weights[1]:
        return 1
    return 2


@wp.func
def most(counts: wp.vec3i, bits: wp.uint32) -> int:
    """Return the place of the highest count, any of several equal ones."""
    best = below(bits, 3)
    for step in range(1, 3):
        other = (best + step) % 3
        if counts[other] > counts[best]:
            best = other
    return best


@wp.func
def level(s: Sight) -> int:
    """Return what is added to a prediction: 1 beats it; every fourth bot second-guesses with another rotation."""
    bits = parameter(s, 90)
    return wp.where(uniform(bits) < 0.75, 1, 2 * below(mix(bits, wp.uint32(1)), 2))


@wp.func
def window(s: Sight) -> int:
    """Return how many throws back a bot looks: 25, 100, 400 or 1,600."""
    return 25 << (2 * below(parameter(s, 91), 4))


@wp.func
def bias(bits: wp.uint32) -> wp.vec3:
    """Draw weights of the throws, mostly uneven."""
    weights = wp.vec3()
    for throw in range(3):
        u = uniform(mix(bits, wp.uint32(throw)))
        weights[throw] = 0.02 + u * u
    return weights


@wp.func
def unpacked(counts: wp.int64) -> wp.vec3i:
    """Return three counts that were kept in one number, so that adding to them takes no branch: they mispredict."""
    low = wp.int64(0xFFFF)
    return wp.vec3i(
        wp.int32(counts & low), wp.int32((counts >> wp.int64(16)) & low), wp.int32((counts >> wp.int64(32)) & low)
    )


@wp.func
def counts_after(history: wp.array2d[wp.int8], s: Sight, kind: int, order: int, back: int, seat: int) -> wp.vec3i:
    """Count which throws of a seat followed the same `order` throws as the last ones, in so many frames back."""
    mask = mask_of(s, kind)
    last_ones = (1 << (4 * order)) - 1  # a context holds four bits of each throw
    begin = wp.max(s.frame - back, order)
    wanted = int(0)
    context = int(0)
    for lag in range(order):
        wanted = (wanted << 4) | (wp.int32(history[s.game, s.frame - order + lag]) & mask)
        context = (context << 4) | (wp.int32(history[s.game, begin - order + lag]) & mask)
    counts = wp.int64(0)
    for frame in range(begin, s.frame):
        code = wp.int32(history[s.game, frame])
        counts += wp.int64(wp.where(context == wanted, 1, 0)) << wp.int64(16 * throw_of(code, seat))
        context = ((context << 4) | (code & mask)) & last_ones
    return unpacked(counts)


@wp.func
def frame_after_match(history: wp.array2d[wp.int8], s: Sight, kind: int, longest: int, back: int) -> int:
    """Return the frame that followed the longest match of the latest throws, the last of several; -1 for none."""
    mask = mask_of(s, kind)
    best = int(0)
    found = int(-1)
    frame = int(s.frame - 1)
    end = wp.max(s.frame - back, 1)
    while frame >= end and best < longest:
        length = int(0)
        most_here = wp.min(longest, frame)
        while length < most_here and is_alike(history, s.game, frame - 1 - length, s.frame - 1 - length, mask):
            length += 1
        if length > best:
            best = length
            found = frame
        frame -= 1
    return found


@wp.func
def constant(history: wp.array2d[wp.int8], s: Sight) -> int:  # noqa: ARG001 - all styles are called alike
    """Repeat one throw."""
    return below(parameter(s, 0), 3)


@wp.func
def biased(history: wp.array2d[wp.int8], s: Sight) -> int:  # noqa: ARG001 - all styles are called alike
    """Draw from uneven chances that never change."""
    return draw_weighted(bias(parameter(s, 0)), s.chance)


@wp.func
def uniformly(history: wp.array2d[wp.int8], s: Sight) -> int:  # noqa: ARG001 - all styles are called alike
    """Draw evenly."""
    return below(s.chance, 3)


@wp.func
def cycle(history: wp.array2d[wp.int8], s: Sight) -> int:  # noqa: ARG001 - all styles are called alike
    """Repeat a sequence of 2 to 9 throws."""
    period = 2 + below(parameter(s, 0), 8)
    return below(parameter(s, 1 + s.frame % period), 3)


@wp.func
def drift(history: wp.array2d[wp.int8], s: Sight) -> int:  # noqa: ARG001 - all styles are called alike
    """Draw from uneven chances that change every 20 to 220 throws."""
    part = s.frame / (20 + below(parameter(s, 0), 200))
    return draw_weighted(bias(parameter(s, 1 + part)), s.chance)


@wp.func
def copycat(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Copy the opponent's throw of 1 to 3 throws ago, or play what loses to it."""
    lag = 1 + below(parameter(s, 0), 3)
    if s.frame < lag:
        return below(s.chance, 3)
    return opponent_at(history, s, s.frame - lag) + 2 * below(parameter(s, 1), 2)


@wp.func
def beat_last(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Beat the opponent's last throw."""
    if s.frame == 0:
        return below(s.chance, 3)
    return opponent_at(history, s, s.frame - 1) + 1


@wp.func
def rotate(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Move on from the own last throw, in one direction, with a chance to stay."""
    if s.frame == 0:
        return below(s.chance, 3)
    stays = uniform(s.chance) < 0.5 * uniform(parameter(s, 1))
    return own_at(history, s, s.frame - 1) + wp.where(stays, 0, 1 + below(parameter(s, 0), 2))


@wp.func
def reaction(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Stay or shift by the result of the last throw, as in win-stay, lose-shift."""
    if s.frame == 0:
        return below(s.chance, 3)
    own = own_at(history, s, s.frame - 1)
    result = (own - opponent_at(history, s, s.frame - 1) + 3) % 3
    return own + below(parameter(s, result), 3)


@wp.func
def memory_one(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Answer each of the nine pairs of last throws with a throw of its own."""
    if s.frame == 0:
        return below(s.chance, 3)
    return below(parameter(s, 3 * own_at(history, s, s.frame - 1) + opponent_at(history, s, s.frame - 1)), 3)


@wp.func
def flat(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Play the own least frequent throw, so that all become equally frequent."""
    played = counts_after(history, s, OF_SELF, 0, window(s), s.seat)
    return most(-played, s.chance)


@wp.func
def frequency(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Beat the opponent's most frequent throw."""
    return most(counts_after(history, s, OF_OPPONENT, 0, window(s), 1 - s.seat), s.chance) + level(s)


@wp.func
def rotation(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Beat the opponent's most frequent move on from its own last throw, or from the bot's."""
    if s.frame < 2:
        return below(s.chance, 3)
    start = wp.where(below(parameter(s, 0), 2) == 0, s.seat, 1 - s.seat)  # whose throw it moves on from
    begin = wp.max(s.frame - window(s), 1)
    before = throw_of(wp.int32(history[s.game, begin - 1]), start)
    counts = wp.int64(0)
    for frame in range(begin, s.frame):
        code = wp.int32(history[s.game, frame])
        counts += wp.int64(1) << wp.int64(16 * ((throw_of(code, 1 - s.seat) - before + 3) % 3))
        before = throw_of(code, start)
    return before + most(unpacked(counts), s.chance) + level(s)


@wp.func
def markov(history: wp.array2d[wp.int8], s: Sight, order: int) -> int:
    """Beat what followed the same last throws most often: those of the opponent, of the bot, or of both."""
    if s.frame <= order:
        return below(s.chance, 3)
    kind = below(parameter(s, 0), 3)
    return most(counts_after(history, s, kind, order, window(s), 1 - s.seat), s.chance) + level(s)


@wp.func
def markov_1(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Predict from the last throw."""
    return markov(history, s, 1)


@wp.func
def markov_2(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Predict from the last two throws."""
    return markov(history, s, 2)


@wp.func
def markov_3(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Predict from the last three throws."""
    return markov(history, s, 3)


@wp.func
def matcher(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Beat what followed the longest match of the latest throws."""
    kind = below(parameter(s, 0), 3)
    found = frame_after_match(history, s, kind, 4 + below(parameter(s, 1), 17), window(s))
    if found < 0:
        return below(s.chance, 3)
    return opponent_at(history, s, found) + level(s)


class Bot(NamedTuple):
    """A scripted player; a new one is a function above and a line in `BOTS`."""

    name: str
    decide: Callable[..., int] | None = None  # its style; None for those that the kernel plays itself
    is_noisy: bool = True  # whether it plays a share of random throws, drawn for every match
    gives_up: bool = False  # whether it may play randomly once it is far behind


# New ones go to the end: networks that classify opponents know bots by their place.
BOTS = (
    Bot("constant", constant),
    Bot("biased", biased),
    Bot("random", uniformly, is_noisy=False),
    Bot("cycle", cycle),
    Bot("drift", drift),
    Bot("copycat", copycat),
    Bot("beat-last", beat_last),
    Bot("rotate", rotate),
    Bot("reaction", reaction),
    Bot("memory-one", memory_one),
    Bot("flat", flat),
    Bot("frequency", frequency, gives_up=True),
    Bot("rotation", rotation, gives_up=True),
    Bot("markov-1", markov_1, gives_up=True),
    Bot("markov-2", markov_2, gives_up=True),
    Bot("markov-3", markov_3, gives_up=True),
    Bot("matcher", matcher, gives_up=True),
    Bot("meta", gives_up=True),
    Bot("switcher"),
    Bot("mixture"),
)
_PLACES = {bot.name: place for place, bot in enumerate(BOTS)}
META, SWITCHER, MIXTURE = _PLACES["meta"], _PLACES["switcher"], _PLACES["mixture"]
STYLES = tuple((place, bot.decide) for place, bot in enumerate(BOTS) if bot.decide is not None)


@wp.struct
class BotSettings:
    """One entry of a roster of bots."""

    style: wp.int32  # its place in `BOTS`
    noise: wp.float32  # share of random throws; -1 to draw it for every match
    gives_up: wp.int32


@wp.func
def styled_throw(style: int, history: wp.array2d[wp.int8], s: Sight) -> int:
    """Return the throw of a style, to be taken modulo 3."""
    throw = int(0)
    for place in range(wp.static(len(STYLES))):
        if style == wp.static(STYLES[place][0]):
            throw = wp.static(STYLES[place][1])(history, s)
    return throw


@wp.func
def switched(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Play another style, with other parameters, every 20 to 270 throws."""
    bits = parameter(s, 1 + s.frame / (20 + below(parameter(s, 0), 250)))
    part = s
    part.drawn = mix(bits, wp.uint32(1))
    return styled_throw(below(bits, wp.static(len(STYLES))), history, part)


@wp.func
def mixed(history: wp.array2d[wp.int8], s: Sight) -> int:
    """Play one of two styles in every throw, by chances that stay the same."""
    which = wp.where(uniform(mix(s.chance, wp.uint32(1))) < uniform(parameter(s, 0)), 1, 2)
    bits = parameter(s, which)
    part = s
    part.drawn = mix(bits, wp.uint32(1))
    return styled_throw(below(bits, wp.static(len(STYLES))), history, part)


@wp.func
def keep_scores(memo: wp.ref[Memo], history: wp.array2d[wp.int8], s: Sight):
    """Add how every prediction with every rotation would have done in the last throw.

    With `d = opponent - prediction`, prediction + d ties, + d + 1 wins and + d + 2 loses, all modulo 3.
    """
    decay = 0.8 + 0.19 * uniform(parameter(s, 0))
    opponent = opponent_at(history, s, s.frame - 1)
    for source in range(SOURCES):
        difference = (opponent - memo.sources[source] + 3) % 3
        for turn in range(3):
            result = (turn - difference + 3) % 3
            gain = wp.float32(result - 3 * (result / 2))
            memo.scores[3 * source + turn] = decay * memo.scores[3 * source + turn] + gain


@wp.func
def predict(memo: wp.ref[Memo], history: wp.array2d[wp.int8], s: Sight):
    """Predict the opponent's throw, and the own one as the opponent might, in three ways each."""
    back = window(s)
    memo.sources[0] = most(counts_after(history, s, OF_OPPONENT, 0, back, 1 - s.seat), s.chance)
    memo.sources[1] = most(counts_after(history, s, OF_SELF, 0, back, s.seat), s.chance)
    for kind in range(2):
        found = frame_after_match(history, s, wp.where(kind == 0, OF_BOTH, OF_OPPONENT), 20, back)
        opponent = below(s.chance, 3)
        own = below(mix(s.chance, wp.uint32(1)), 3)
        if found >= 0:
            opponent = opponent_at(history, s, found)
            own = own_at(history, s, found)
        memo.sources[2 + 2 * kind] = opponent
        memo.sources[3 + 2 * kind] = own


@wp.func
def meta(memo: wp.ref[Memo], history: wp.array2d[wp.int8], s: Sight) -> int:
    """Play the prediction and rotation that would have won most of late; at random if none would have won."""
    if memo.decided != s.frame + 1:  # asked twice, it says the same
        if s.frame > 0 and memo.decided == s.frame:
            keep_scores(memo, history, s)
        predict(memo, history, s)
        best = float(0.0)
        throw = below(s.chance, 3)
        for place in range(SOURCES * 3):
            if memo.scores[place] > best:
                best = memo.scores[place]
                throw = (memo.sources[place / 3] + place % 3) % 3
        memo.choice = throw
        memo.decided = s.frame + 1
    return memo.choice


@wp.func
def noise_share(bot: BotSettings, s: Sight) -> float:
    """Return the share of random throws in this match."""
    if bot.noise >= 0.0:
        return bot.noise
    u = uniform(parameter(s, 92))
    return wp.static(MOST_NOISE) * u * u


@wp.func
def is_beaten(bot: BotSettings, s: Sight, lead: int) -> bool:
    """Return whether the bot has given up: every third one does when it is 10 to 60 throws behind."""
    bits = parameter(s, 93)
    return bot.gives_up != 0 and bits % wp.uint32(3) == wp.uint32(0) and -lead > 10 + below(mix(bits, wp.uint32(1)), 50)


@wp.kernel
def bot_kernel(
    matches: wp.array[Match],
    history: wp.array2d[wp.int8],
    rules: Rules,
    roster: wp.array[BotSettings],
    memos: wp.array2d[Memo],
    assignment: wp.array2d[wp.int32],
    actions: wp.array2d[wp.int64],
    first: int,
):
    """Write the throw of the bot that plays this seat, if one does; runs over (game, seat)."""
    index = wp.tid() + first
    game = index / 2
    seat = index % 2
    entry = assignment[game, seat]
    if entry < 0 or entry >= roster.shape[0]:
        return
    bot = roster[entry]
    match = matches[game]
    key = mix(mix(rules.seed_hash, wp.uint32(rules.first_game + game)), wp.uint32(match.episode))
    s = Sight()
    s.game = game
    s.seat = seat
    s.frame = match.frame
    s.drawn = mix(key, wp.uint32(wp.static(int(Stream.MATCH)) + seat))
    s.chance = mix(mix(key, wp.uint32(match.frame)), wp.uint32(wp.static(int(Stream.THROW)) + seat))
    slip = mix(s.chance, wp.uint32(2))
    throw = int(0)
    if bot.style == META:
        memo = memos[game, seat]
        if memo.match != match.episode + 1:
            memo = Memo()
            memo.match = match.episode + 1
        throw = meta(memo, history, s)
        memos[game, seat] = memo
    elif bot.style == SWITCHER:
        throw = switched(history, s)
    elif bot.style == MIXTURE:
        throw = mixed(history, s)
    else:
        throw = styled_throw(bot.style, history, s)
    if uniform(slip) < noise_share(bot, s) or is_beaten(bot, s, match.lead * (1 - 2 * seat)):
        throw = below(mix(slip, wp.uint32(1)), 3)
    actions[game, seat] = wp.int64(throw % 3)
