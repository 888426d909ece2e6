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


class BotMatch:
    """A bot in one seat of one match."""

    def __init__(self, game: Any, name: str, seat: int, seed: int) -> None:  # noqa: ANN401 - untyped library
        self._chance = ctypes.create_string_buffer(_STATE_BYTES)
        _libc.initstate(seed, self._chance, _STATE_BYTES)
        self._bot = pyspiel.make_roshambo_bot(seat, name, THROWS)
        self._state = game.new_initial_state()
        self._seat = seat
        self.frame = 0  # throws that it knows of
        self.throw: int | None = None  # its answer in this frame, once it was asked

    def act(self) -> int:
        """Return its throw in this frame; asked twice, it says the same."""
        if self.throw is None:
            _libc.setstate(self._chance)
            self.throw = int(self._bot.step(self._state))
        return self.throw

    def advance(self, pair: int) -> None:
        """Play a throw, `4 * seat 0 + seat 1`; the bot is asked first, as it counts its turns by being asked."""
        self.act()
        self._state.apply_actions([pair >> 2, pair & 3])
        self.frame, self.throw = self.frame + 1, None


class BotHost:
    """The bots in every `stride`-th game from `first` on; see `ludus.envs.worker_program.Host`.

    Shared arrays: `bots` (games, seats), index into the names or -1 for a seat without one; `seeds` (games, seats);
    `episodes` and `frames` (games,); `history` (games, throws); `throws` (games, seats), which it fills in.
    """

    def __init__(self, plan: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], first: int) -> None:
        self._names: Sequence[str] = plan["names"]
        self._arrays, self._first, self._stride = arrays, first, int(plan["stride"])
        self._game = pyspiel.load_game(f"repeated_game(stage_game=matrix_rps(),num_repetitions={THROWS})")
        self._matches: dict[tuple[int, int], tuple[tuple[int, int, int], BotMatch]] = {}
        self.current: int | None = None

    def answer(self, code: int, slot: int, payload: bytes) -> bytes:
        """Throw in all seats that have a bot."""
        if code != Ask.ACT:
            raise ValueError(f"unknown message {code}")
        arrays = self._arrays
        bots = arrays["bots"][self._first :: self._stride]
        for place, seat in np.argwhere(bots >= 0).tolist():
            self.current = game = self._first + place * self._stride
            arrays["throws"][game, seat] = self._match(game, seat).act()
        return b""

    def _match(self, game: int, seat: int) -> BotMatch:
        """Return the match that is being played, brought up to date by the history."""
        arrays = self._arrays
        bot, seed = int(arrays["bots"][game, seat]), int(arrays["seeds"][game, seat])
        key, frame = (bot, seed, int(arrays["episodes"][game])), int(arrays["frames"][game])
        found = self._matches.get((game, seat))
        if found is None or found[0] != key or found[1].frame > frame:
            found = key, BotMatch(self._game, self._names[bot], seat, seed)
            self._matches[game, seat] = found
        match = found[1]
        while match.frame < frame:
            match.advance(int(arrays["history"][game, match.frame]))
        return match


def host(plan: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], first: int, last: int) -> BotHost:
    """Make the bots of a worker, whose number is `first`."""
    del last
    return BotHost(plan, arrays, first)
