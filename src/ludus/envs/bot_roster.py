"""Play bots by name in a batch of games: a world's own, and those that users wrote in Python."""

import ctypes
import json
import logging
import math
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import BotError, ConfigError, StateError
from ludus.core.faults import Unwinding, let_pass
from ludus.core.random import mix, stream_hash_tensor, uniform
from ludus.core.state import MAX_COUNT, check_tensors
from ludus.core.text import blame
from ludus.envs.base import BatchedEnv, Observations, action_dtypes
from ludus.envs.bots import BotObservation, PythonBot, Tree, field_tree, find_bot
from ludus.envs.spaces import action_bounds

TIME_LIMIT_S = 20.0  # for one step of all games
_SLOW_S = 1.0  # a step that takes longer is worth a warning
_NOISE_STEPS = 4  # noise holds a random action for this long
_STREAM_NOISE, _STREAM_CHANCE, _STREAM_PARAMETER = 0xB07A, 0xB07C, 0xB07D
_ONLY = "tensor"  # how the only tensor of a state is saved
_OBJECTS = "objects"

logger = logging.getLogger(__name__)


class BotRoster:
    """Bots of a world by name, any of them in any seat; those of the world itself are played by it.

    Attributes:
        names: The bots, in the order of the assignment.
    """

    def __init__(self, env: BatchedEnv, bots: Sequence[str | PythonBot]) -> None:
        """Find the bots.

        Raises:
            UnknownNameError: There is no such bot.
            ConfigError: A bot's settings are wrong.
        """
        self.names = tuple(bot if isinstance(bot, str) else bot.name for bot in bots)
        found = [find_bot(bot, env.spec) for bot in bots]
        own = [str(bot) for bot, code in zip(bots, found, strict=True) if code is None]
        self._own = env.bots(own) if own else None
        self._python = _PythonRoster(env, {i: bot for i, bot in enumerate(found) if bot}) if any(found) else None
        # By index into `names`; the last entry is that of -1, a seat without a bot.
        places = [-1 if code else own.index(name) for name, code in zip(self.names, found, strict=True)]
        self._places = torch.tensor([*places, -1], dtype=torch.int32, device=env.device)

    @property
    def can_be_recorded(self) -> bool:
        """Whether a CUDA graph can hold `act`: all bots are kernels."""
        return self._python is None and (self._own is None or getattr(self._own, "can_be_recorded", False))

    def begin(self, games: Tensor) -> None:
        """Note that in `games` `(games,)` bool episodes begin with the next call of `act`."""
        if self._python is not None:
            self._python.begin(games)

    def act(self, observations: Observations, assignment: Tensor, actions: Tensor) -> None:
        """Write the bots' actions.

        Args:
            observations: One `(games, seats, ...)` tensor per entry.
            assignment: `(games, seats)` int32, index into `names`, or -1 for a seat that no bot plays.
            actions: `(games, seats, ...)`; rows of seats with -1 stay as they are.

        Raises:
            BotError: A bot in Python failed, or returned what is no action.
        """
        if self._own is not None:
            self._own.act(assignment if self._python is None else self._places[assignment.long()], actions)
        if self._python is not None:
            self._python.act(observations, assignment, actions)

    def costs(self) -> dict[str, tuple[float, int]]:
        """Return the seconds that each bot in Python took so far, and its decisions."""
        return {} if self._python is None else {str(bot): cost for bot, cost in self._python.costs()}

    def state(self) -> dict[str, Tensor]:
        """Return copies of what bots in Python remember; the world's own are part of its snapshot."""
        return {} if self._python is None else self._python.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: It is of other bots or games.
        """
        if self._python is not None:
            self._python.load_state(state)
        elif state:
            raise StateError(f"the state has {', '.join(sorted(state)[:3])}, but no bot in Python plays")


class _PythonRoster:
    """Plays bots in Python: gathers their rows, calls them, and applies their noise and delay."""

    def __init__(self, env: BatchedEnv, bots: Mapping[int, PythonBot]) -> None:
        self._env, self._seats = env, env.spec.seats
        tree = field_tree(env.spec)
        self._players = {
            index: (_ObjectPlayer if bot.is_class else _FunctionPlayer)(bot, env, tree) for index, bot in bots.items()
        }
        self._starts = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
        self._frames = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
        self._episodes = torch.full_like(self._frames, -1)
        # Random bits of every seat that stay for an episode: drawn when one begins, not in every step.
        self._games = env.first_game + torch.arange(env.num_envs, device=env.device)
        self._seat_numbers = torch.arange(self._seats, device=env.device)
        self._drawn = torch.zeros(env.num_envs * self._seats, dtype=torch.int64, device=env.device)
        self._draw()

    def begin(self, games: Tensor) -> None:
        """See `BotRoster.begin`; it changes tensors in place, so that a CUDA graph may hold it."""
        self._starts |= games
        self._episodes += games
        self._frames.masked_fill_(games, 0)
        if not games.is_cpu or bool(games.any()):  # on a GPU, asking would wait for it
            self._draw()

    def _draw(self) -> None:
        games, episodes = self._games.unsqueeze(1), self._episodes.unsqueeze(1)
        drawn = stream_hash_tensor(self._env.seed, games, episodes, 0, _STREAM_PARAMETER, self._seat_numbers)
        self._drawn.copy_(drawn.flatten())

    def act(self, observations: Observations, assignment: Tensor, actions: Tensor) -> None:
        """See `BotRoster.act`."""
        flat, into = assignment.flatten(), actions.flatten(0, 1)
        for index, player in self._players.items():
            rows = (flat == index).nonzero().squeeze(1)
            if rows.numel():
                games = rows.div(self._seats, rounding_mode="floor")
                keys = self._env.first_game + games, self._episodes[games], self._frames[games]
                seat = rows % self._seats
                step = _Rows(
                    {name: tensor.flatten(0, 1).index_select(0, rows) for name, tensor in observations.items()},
                    rows,
                    self._starts[games],
                    self._frames[games],
                    stream_hash_tensor(self._env.seed, *keys, _STREAM_CHANCE, seat),
                    stream_hash_tensor(self._env.seed, *keys[:2], keys[2] // _NOISE_STEPS, _STREAM_NOISE, seat),
                    self._drawn[rows],
                )
                with torch.no_grad():
                    into.index_copy_(0, rows, player.act(step).to(into.dtype))
        self._frames += 1
        self._starts.zero_()

    def costs(self) -> Iterator[tuple[PythonBot, tuple[float, int]]]:
        """Yield each bot with its seconds and decisions."""
        for player in self._players.values():
            yield player.bot, (player.seconds, player.decisions)

    def state(self) -> dict[str, Tensor]:
        """See `BotRoster.state`."""
        tensors = self._counters() | {
            f"{index}.{name}": tensor
            for index, player in self._players.items()
            for name, tensor in player.state().items()
        }
        return {name: tensor.clone() for name, tensor in tensors.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """See `BotRoster.load_state`."""
        counters = self._counters()
        ranges = {name: (0 if name == "frames" else -1, MAX_COUNT) for name in counters if name != "starts"}
        given = {name: tensor for name, tensor in state.items() if name in counters}
        check_tensors(given, counters, "the bots in Python", ranges=ranges)
        for name, tensor in counters.items():
            tensor.copy_(given[name])
        self._draw()
        rest = {name: tensor for name, tensor in state.items() if name not in counters}
        for index, player in self._players.items():
            prefix = f"{index}."
            own = [name for name in rest if name.startswith(prefix)]
            player.load_state({name.removeprefix(prefix): rest.pop(name) for name in own})
        if rest:
            raise StateError(f"the state of the bots in Python has unknown parts: {', '.join(sorted(rest)[:3])}")

    def _counters(self) -> dict[str, Tensor]:
        return {"starts": self._starts, "frames": self._frames, "episodes": self._episodes}


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a bot plays in one step, `(rows, ...)` each."""

    entries: dict[str, Tensor]
    rows: Tensor  # place of each among all games and seats
    starts: Tensor
    frames: Tensor
    chances: Tensor  # random bits of the step
    noise: Tensor  # random bits that stay for a few steps
    drawn: Tensor  # random bits that stay for a set

    def part(self, chosen: Tensor) -> "_Rows":
        """Return the rows of a mask."""
        entries = {name: tensor[chosen] for name, tensor in self.entries.items()}
        names = ("rows", "starts", "frames", "chances", "noise", "drawn")
        return _Rows(entries, *(getattr(self, name)[chosen] for name in names))


class _PythonPlayer(ABC):
    """One bot in all seats that it plays."""

    def __init__(self, bot: PythonBot, env: BatchedEnv, tree: Tree) -> None:
        self.bot, self._tree, self._device = bot, tree, env.device
        self._count = env.num_envs * env.spec.seats
        self._actions = _Actions(env.spec.action_space, env.device)
        if bot.noise and not self._actions.is_bounded:
            raise ConfigError(f"{bot}: noise needs an action space with finite bounds; leave it out")
        self._delayed = self._empty(bot.delay) if bot.delay else None
        self.seconds, self.decisions = 0.0, 0
        self._is_slow = False

    def _empty(self, *sizes: int) -> Tensor:
        """Return room for an action of every seat, `(games * seats, *sizes, ...)`."""
        shape = (self._count, *sizes, *self._actions.shape)
        return torch.zeros(shape, dtype=self._actions.dtype, device=self._device)

    @abstractmethod
    def _decide(self, step: _Rows) -> object:
        """Return what the bot does."""

    def act(self, step: _Rows) -> Tensor:
        """Return the actions of the rows, `(rows, ...)`."""
        began = time.perf_counter()
        with _WATCH.over(self.bot):
            decided = self._decide(step)
        chosen = self._actions.check(self.bot, decided, len(step.rows))
        taken = time.perf_counter() - began
        self.seconds, self.decisions = self.seconds + taken, self.decisions + len(step.rows)
        if taken > _SLOW_S and not self._is_slow:
            self._is_slow = True
            logger.warning("[WARN] %s took %.1f s for one step of %d seats", self.bot, taken, len(step.rows))
        if self.bot.noise:
            noisy = (uniform(step.noise) < self.bot.noise).view(-1, *(1,) * len(self._actions.shape))
            chosen = torch.where(noisy, self._actions.draw(step.noise), chosen)
        return chosen if self._delayed is None else self._wait(self._delayed, step, chosen)

    def _wait(self, delayed: Tensor, step: _Rows, chosen: Tensor) -> Tensor:
        """Return what was chosen some steps ago, nothing at first, and remember what is chosen now."""
        delayed[step.rows[step.starts]] = 0
        slots = step.frames % self.bot.delay
        earlier = delayed[step.rows, slots]
        delayed[step.rows, slots] = chosen
        return earlier

    def _observation(self, step: _Rows) -> BotObservation:
        return BotObservation(step.entries, self._tree, step.frames, step.chances, step.drawn)

    def state(self) -> dict[str, Tensor]:
        """Return what it remembers."""
        return {} if self._delayed is None else {"delayed": self._delayed}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`, or raise StateError."""
        own = _PythonPlayer.state(self)
        check_tensors({name: state[name] for name in own if name in state}, own, str(self.bot))
        for name, tensor in own.items():
            tensor.copy_(state[name])


class _FunctionPlayer(_PythonPlayer):
    """A function, called with all its rows at once; apart from them with those in which an episode begins."""

    _form: tuple[str, ...] | None = None  # names of the state's tensors; empty for no state, None before the first call

    def __init__(self, bot: PythonBot, env: BatchedEnv, tree: Tree) -> None:
        super().__init__(bot, env, tree)
        self._memory: dict[str, Tensor] = {}  # (all games and seats, ...) each

    def _decide(self, step: _Rows) -> object:
        count = int(step.starts.sum())
        if count in (0, len(step.rows)):
            return self._call(step, is_start=count > 0)
        actions = self._empty()[: len(step.rows)]
        for mask, is_start in ((step.starts, True), (~step.starts, False)):
            part = step.part(mask)
            actions[mask] = self._actions.check(self.bot, self._call(part, is_start=is_start), len(part.rows))
        return actions

    def _call(self, step: _Rows, *, is_start: bool) -> object:
        memory: Any = None
        if not is_start and self._memory:
            memory = {name: tensor[step.rows] for name, tensor in self._memory.items()}
            memory = memory[_ONLY] if self._form == (_ONLY,) else memory
        try:
            decided = self.bot.code(self._observation(step), memory)
        except BaseException as error:
            let_pass(error)
            raise BotError(f"{self.bot} failed: {blame(error)}; fix it and try again") from error
        if not isinstance(decided, tuple) or len(decided) != 2:
            raise BotError(f"{self.bot} must return (actions, state), got {type(decided).__name__}")
        self._remember(step.rows, decided[1])
        return decided[0]

    def _remember(self, rows: Tensor, state: object) -> None:
        named = {} if state is None else {_ONLY: state} if isinstance(state, Tensor) else state
        if not isinstance(named, Mapping) or not all(isinstance(tensor, Tensor) for tensor in named.values()):
            raise BotError(
                f"{self.bot} must return a state that is a tensor, a dict of tensors or None, got {state!r:.100}"
            )
        form = tuple(sorted(map(str, named)))
        if self._form is not None and form != self._form:
            raise BotError(f"{self.bot} returned a state of {form or 'nothing'}, and {self._form or 'nothing'} before")
        self._form = form
        for name, tensor in named.items():
            kept = self._memory.get(name)
            if tensor.shape[:1] != rows.shape or (kept is not None and tensor.shape[1:] != kept.shape[1:]):
                expected = (len(rows), *(("...",) if kept is None else kept.shape[1:]))
                raise BotError(f"{self.bot} returned a state of shape {tuple(tensor.shape)}, expected {expected}")
            if kept is None:
                kept = torch.zeros((self._count, *tensor.shape[1:]), dtype=tensor.dtype, device=self._device)
                self._memory[name] = kept
            kept[rows] = tensor.to(kept.dtype)

    def state(self) -> dict[str, Tensor]:
        """Return what it remembers."""
        return super().state() | {f"memory.{name}": tensor for name, tensor in self._memory.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`; its form is known from the first call on, so any is taken."""
        super().load_state(state)
        memory = {name.removeprefix("memory."): state[name] for name in state if name.startswith("memory.")}
        if any(tensor.shape[:1] != (self._count,) for tensor in memory.values()):
            raise StateError(f"the state of {self.bot} is not of {self._count} seats; use the same number of games")
        self._memory = {name: tensor.to(self._device, copy=True) for name, tensor in memory.items()}
        self._form = tuple(sorted(memory)) or None


class _ObjectPlayer(_PythonPlayer):
    """A class, with one object for every seat that it plays, asked one after the other."""

    def __init__(self, bot: PythonBot, env: BatchedEnv, tree: Tree) -> None:
        super().__init__(bot, env, tree)
        self._objects: dict[int, Any] = {}
        self._is_unsaved = False

    def _decide(self, step: _Rows) -> object:
        columns = zip(step.rows.tolist(), step.starts.tolist(), step.frames, step.chances, step.drawn, strict=True)
        decided = []
        for place, (row, is_start, frame, chance, drawn) in enumerate(columns):
            entries = {name: tensor[place] for name, tensor in step.entries.items()}
            observation = BotObservation(entries, self._tree, frame, chance, drawn)
            try:
                is_new = row not in self._objects  # also after a resume that could not restore it
                if is_new:
                    self._objects[row] = self.bot.code()
                if is_start or is_new:
                    self._objects[row].reset()
                action = self._objects[row].act(observation)
                decided.append(torch.as_tensor(np.asarray(action), device=self._device))
            except BaseException as error:
                let_pass(error)
                raise BotError(f"{self.bot} failed: {blame(error)}; fix it and try again") from error
        shapes = {tuple(action.shape) for action in decided}
        if shapes != {self._actions.shape}:
            raise BotError(f"{self.bot} must return actions of shape {self._actions.shape}, got {sorted(shapes)}")
        return torch.stack(decided)

    def state(self) -> dict[str, Tensor]:
        """Return what it remembers: the attributes of all objects, if they are numbers, text, lists and dicts."""
        try:
            text = json.dumps({str(row): vars(each) for row, each in self._objects.items()})
        except (TypeError, ValueError) as error:
            if not self._is_unsaved:
                self._is_unsaved = True
                logger.warning(
                    "[WARN] %s remembers what cannot be saved (%s): a resumed run calls its reset()", self.bot, error
                )
            return super().state()
        return super().state() | {_OBJECTS: torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`; objects that were not saved are made and reset again."""
        super().load_state(state)
        self._objects = {}
        if _OBJECTS not in state:
            return
        try:
            saved = json.loads(bytes(state[_OBJECTS].to(torch.uint8).cpu().numpy()))
            for row, attributes in saved.items():
                each = self.bot.code()
                vars(each).update(attributes)
                self._objects[int(row)] = each
        except BaseException as error:  # of the file, or of the bot's own constructor
            let_pass(error)
            raise StateError(f"the state of {self.bot} cannot be read: {blame(error)}") from error


class _Actions:
    """The actions of a space: check those of a bot, and draw random ones; everything constant is made once."""

    def __init__(self, space: spaces.Space[Any], device: torch.device) -> None:
        self._space, self._device, self.shape = space, device, tuple(space.shape or ())
        self.dtype = action_dtypes(space)[0]
        self._is_box = isinstance(space, spaces.Box)
        dtype = torch.float32 if self._is_box else torch.int64
        self._low, self._high = (bound.to(device, dtype) for bound in action_bounds(space))

    @property
    def is_bounded(self) -> bool:
        """Whether random actions can be drawn."""
        return bool(torch.isfinite(self._low).all() and torch.isfinite(self._high).all())

    def draw(self, bits: Tensor) -> Tensor:
        """Return evenly drawn actions `(rows, ...)` from random bits `(rows,)`."""
        parts = [uniform(mix(bits, part + 1)) for part in range(math.prod(self.shape))]
        drawn = torch.stack(parts, -1).view(-1, *self.shape)
        span = self._high - self._low
        return self._low + span * drawn if self._is_box else (drawn * (span + 1)).to(self.dtype)

    def check(self, bot: PythonBot, actions: object, rows: int) -> Tensor:
        """Return what a bot did, clipped to the bounds of a Box; raise BotError unless it is `rows` actions."""
        if not isinstance(actions, Tensor):
            raise BotError(f"{bot} returned actions as {type(actions).__name__}, expected {self._expected(rows)}")
        if actions.shape != (rows, *self.shape) or actions.device != self._device:
            got = f"of shape {tuple(actions.shape)} on {actions.device}"
            raise BotError(f"{bot} returned actions {got}, expected {self._expected(rows)}")
        if self._is_box:
            if not bool(torch.isfinite(actions).all()):
                raise BotError(f"{bot} returned NaN or infinity, expected {self._expected(rows)}")
            return actions.to(self.dtype).clamp(self._low, self._high)
        if actions.is_floating_point() or actions.is_complex():
            raise BotError(f"{bot} returned {actions.dtype}, expected whole numbers: {self._expected(rows)}")
        whole = actions.to(torch.int64)
        if bool(((whole < self._low) | (whole > self._high)).any()):
            got = f"values from {int(whole.min())} to {int(whole.max())}"
            raise BotError(f"{bot} returned {got}, expected {self._expected(rows)}")
        return whole.to(self.dtype)

    def _expected(self, rows: int) -> str:
        return f"{self._space} for each of {rows} rows: a tensor of shape {(rows, *self.shape)} on {self._device}"


class _Overdue(Unwinding):
    """Raised in the thread of a bot that did not return in time."""


class _Watch:
    """Ends a call that does not return, from a thread of its own, and tells where in the user's code it was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._since: dict[int, float] = {}  # when the present call of each thread began
        self._places: dict[int, str] = {}  # where the calls were that took too long

    @contextmanager
    def over(self, bot: PythonBot) -> Iterator[None]:
        """Raise BotError in the block if it takes longer than the time limit."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._look, name="ludus-bot-watch", daemon=True)
            self._thread.start()
        caller = threading.get_ident()
        try:
            self._set(caller, time.monotonic())
            yield
            self._set(caller, None)
        except _Overdue:
            place = self._places.pop(caller, "an unknown line")
            raise BotError(
                f"{bot} did not return within {TIME_LIMIT_S:g} s; it was at {place}; make it faster"
            ) from None
        finally:
            self._set(caller, None)

    def _set(self, caller: int, since: float | None) -> None:
        with self._lock:
            if since is None:
                self._since.pop(caller, None)
            else:
                self._since[caller] = since

    def _look(self) -> None:
        while True:
            time.sleep(min(1.0, TIME_LIMIT_S / 4))
            with self._lock:
                now = time.monotonic()
                for caller in [each for each, since in self._since.items() if now - since >= TIME_LIMIT_S]:
                    del self._since[caller]
                    frame = sys._current_frames().get(caller)  # noqa: SLF001 - the only way to see another thread
                    if frame is not None:
                        innermost = traceback.extract_stack(frame)[-1]
                        self._places[caller] = f"{innermost.filename}:{innermost.lineno}"
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(caller), ctypes.py_object(_Overdue))


_WATCH = _Watch()
