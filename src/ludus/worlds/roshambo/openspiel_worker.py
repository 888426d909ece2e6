"""Play bots of OpenSpiel's RoShamBo collection in a worker process.

This file imports nothing of the package and is loaded by its path; see `ludus.envs.worker_program`.

What the bots keep, found by replaying matches with OpenSpiel 2.0.2 (a test does it again): the throws and all tables
of a match are in the bot object, so a new object per match is a new match. `restart()` alone is not: it forgets the
throws, but what a constructor has drawn stays (`shofar`). All chance comes from the C library's `random()`, whose state
belongs to the process: every match here has a state of its own, which is put in place before the bot is asked. So many
matches share a process, and a match is a function of (bot, seed, throws of the opponent).
"""

import ctypes
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray

FILE = Path(__file__)
THROWS = 1_000  # of a match; made for fewer, some bots write beyond their tables, so shorter matches are just left
_STATE_BYTES = 128  # of `random()`, its usual size

_libc = ctypes.CDLL(None)
_libc.initstate.argtypes = (ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t)
_libc.initstate.restype = ctypes.c_void_p
_libc.setstate.argtypes = (ctypes.c_void_p,)
_libc.setstate.restype = ctypes.c_void_p


class Ask(IntEnum):
    """What a worker is asked for; codes of messages."""

    ACT = 16  # throw in all seats that have a bot


class Histories:
    """Positions of OpenSpiel's game, shared by all matches of a process.

    A bot keeps its match in its own object, and takes two things from the position that it is shown: how many throws
    were played and what the last ones were (a test compares it with the true history, for every bot). So games that
    play the same frame, as a batch does, need nine positions together instead of one each.
    """

    def __init__(self) -> None:
        game = pyspiel.load_game(f"repeated_game(stage_game=matrix_rps(),num_repetitions={THROWS})")
        self._of_length = [game.new_initial_state()]  # some position after so many throws
        self._by_last: dict[tuple[int, int], Any] = {}

    def position(self, frame: int, last: int) -> Any:  # noqa: ANN401 - untyped library
        """Return a position after `frame` throws of which the last pair was `last`, `4 * seat 0 + seat 1`."""
        if frame == 0:
            return self._of_length[0]
        found = self._by_last.get((frame, last))
        if found is None:
            while len(self._of_length) < frame:
                self._of_length.append(_after(self._of_length[-1], 0))
            found = self._by_last[frame, last] = _after(self._of_length[frame - 1], last)
        return found


def _after(position: Any, pair: int) -> Any:  # noqa: ANN401 - untyped library
    following = position.clone()
    following.apply_actions([pair >> 2, pair & 3])
    return following


class BotMatch:
    """A bot in one seat of one match."""

    def __init__(self, histories: Histories, name: str, seat: int, seed: int) -> None:
        self._chance = ctypes.create_string_buffer(_STATE_BYTES)
        _libc.initstate(seed, self._chance, _STATE_BYTES)
        self._step = pyspiel.make_roshambo_bot(seat, name, THROWS).step
        self._histories = histories
        self._last = 0  # the pair of the last throw
        self.frame = 0  # throws that it knows of
        self.throw: int | None = None  # its answer in this frame, once it was asked

    def act(self) -> int:
        """Return its throw in this frame; asked twice, it says the same."""
        if self.throw is None:
            _libc.setstate(self._chance)
            self.throw = self._step(self._histories.position(self.frame, self._last))
        return self.throw

    def advance(self, pair: int) -> None:
        """Play a throw, `4 * seat 0 + seat 1`; the bot is asked first, as it counts its turns by being asked."""
        if self.throw is None:
            self.act()
        self._last, self.frame, self.throw = pair, self.frame + 1, None


class BotHost:
    """The bots in every `stride`-th game from `first` on; see `ludus.envs.worker_program.Host`.

    Shared arrays: `bots` (games, seats), index into the names or -1 for a seat without one; `seeds` (games, seats);
    `episodes` and `frames` (games,); `history` (games, throws); `throws` (games, seats), which it fills in.
    """

    def __init__(self, plan: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], first: int) -> None:
        self._names: Sequence[str] = plan["names"]
        self._own = {name: array[first :: int(plan["stride"])] for name, array in arrays.items()}
        self._first, self._stride = first, int(plan["stride"])
        self._histories = Histories()
        self._matches: dict[tuple[int, int], tuple[tuple[int, int, int], BotMatch]] = {}
        self.current: int | None = None

    def answer(self, code: int, slot: int, payload: bytes) -> bytes:
        """Throw in all seats that have a bot."""
        if code != Ask.ACT:
            raise ValueError(f"unknown message {code}")
        own = self._own
        places, seats = np.nonzero(own["bots"] >= 0)
        # Lists: reading single numbers from arrays would take as long as many of the bots do.
        asked = (own[name][places, seats].tolist() for name in ("bots", "seeds"))
        clocks = (own[name][places].tolist() for name in ("episodes", "frames"))
        throws = []
        for place, seat, *key, frame in zip(places.tolist(), seats.tolist(), *asked, *clocks, strict=True):
            self.current = self._first + place * self._stride
            throws.append(self._match(place, seat, (key[0], key[1], key[2]), frame).act())
        own["throws"][places, seats] = throws
        return b""

    def _match(self, place: int, seat: int, key: tuple[int, int, int], frame: int) -> BotMatch:
        """Return the match that is being played, brought up to date by the history."""
        found = self._matches.get((place, seat))
        if found is None or found[0] != key or found[1].frame > frame:
            bot, seed, _ = key
            found = key, BotMatch(self._histories, self._names[bot], seat, seed)
            self._matches[place, seat] = found
        match = found[1]
        while match.frame < frame:
            match.advance(int(self._own["history"][place, match.frame]))
        return match


def host(plan: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], first: int, last: int) -> BotHost:
    """Make the bots of a worker, whose number is `first`."""
    del last
    return BotHost(plan, arrays, first)
