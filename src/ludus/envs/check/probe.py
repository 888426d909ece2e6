"""The conformance kit's options and report, and the batches that its checks play with."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv, EnvSpec, Observations, StepResult, action_dtypes

# One step of a record: every tensor of the result as a host array with the games first.
Frame = dict[str, NDArray[np.generic]]


class EnvMaker(Protocol):
    """Makes a batch of the world that is to be checked."""

    def __call__(self, num_envs: int, seed: int, first_game: int, /) -> BatchedEnv:
        """Return a new batch; `first_game` is the index of its first game."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How hard the kit looks.

    Attributes:
        num_envs: Games in the batches that are played (fewer if the world allows only fewer).
        steps: Steps that two runs are compared over.
        end_steps: Steps after which the kit no longer waits for a game to end. Make the world with a small step
            limit if its games are longer than that.
        seed: Seed of the games and of the random actions.
        random: Whether different seeds must give different games; False for a world without any randomness.
    """

    num_envs: int = 4
    steps: int = 50
    end_steps: int = 3000
    seed: int = 17
    random: bool = True


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """What the kit found."""

    world: str  # versioned name of the world
    passed: tuple[str, ...]  # names of the checks that held
    skipped: Mapping[str, str]  # for checks that do not apply to this world, why
    failed: Mapping[str, tuple[str, ...]]  # for checks that failed, what was wrong

    def __str__(self) -> str:
        lines = [f"{self.world}: {len(self.passed)} passed, {len(self.skipped)} skipped, {len(self.failed)} failed"]
        lines += [f"[OK] {name}" for name in self.passed]
        lines += [f"[SKIP] {name}: {reason}" for name, reason in self.skipped.items()]
        lines += [f"[ERROR] {name}: {fault}" for name, faults in self.failed.items() for fault in faults]
        return "\n".join(lines)


class NotApplicableError(Exception):
    """Raised by a check that has nothing to look at in this world; the text says why."""


class Probe:
    """Makes and plays batches of one world; two batches are never open at once, as a screen exists only once."""

    def __init__(self, make: EnvMaker, options: CheckOptions) -> None:
        self._make = make
        self.options = options
        with self.open(games=1) as env:
            self.spec: EnvSpec = env.spec
        self.num_envs = min(options.num_envs, self.spec.max_envs or options.num_envs)
        self._tape = sample_actions(self.spec, options.steps, self.num_envs, options.seed)

    @contextmanager
    def open(self, *, games: int | None = None, seed: int | None = None, first_game: int = 0) -> Iterator[BatchedEnv]:
        """Make a batch, of the usual size and seed unless told otherwise, and close it afterwards."""
        seed = self.options.seed if seed is None else seed
        with self._make(self.num_envs if games is None else games, seed, first_game) as env:
            yield env

    def actions(self, env: BatchedEnv, step: int, row: int = 0) -> Tensor:
        """Return the tape's actions `(games, seats, ...)` of one step; the tape repeats, game 0 takes row `row`."""
        taken = self._tape[step % self.options.steps, row : row + env.num_envs]
        return torch.as_tensor(taken, dtype=action_dtypes(self.spec.action_space)[0]).to(env.device, copy=True)

    def play(
        self, env: BatchedEnv, first: int, count: int, *, row: int = 0, bots: bool = False
    ) -> Iterator[tuple[int, StepResult]]:
        """Play steps `first ... first + count - 1` of the tape; with `bots`, scripted players take every seat."""
        players = env.bots(self.spec.bots) if bots else None
        assignment = self.assignment(env, row)
        for step in range(first, first + count):
            actions = self.actions(env, step, row)
            if players is not None:
                players.act(assignment, actions)
            yield step, env.step(actions)

    def assignment(self, env: BatchedEnv, row: int = 0) -> Tensor:
        """Return bots for all seats `(games, seats)`: different ones in neighbouring games and seats."""
        games, seats = torch.arange(env.num_envs).unsqueeze(1) + row, torch.arange(self.spec.seats)
        return ((games + seats) % max(len(self.spec.bots), 1)).to(torch.int32).to(env.device)

    def record(self, env: BatchedEnv, first: int, count: int, *, row: int = 0, bots: bool = False) -> list[Frame]:
        """Play steps and keep a copy of everything that came back."""
        return [frame_of(result) for _, result in self.play(env, first, count, row=row, bots=bots)]

    def advance(self, env: BatchedEnv, first: int, count: int, *, bots: bool = False) -> StepResult | None:
        """Play steps of which nothing is kept; return the last result, which the next step may overwrite."""
        last = None
        for _, result in self.play(env, first, count, bots=bots):
            last = result
        return last

    @cached_property
    def usual(self) -> list[Frame]:
        """First observations and all steps of the tape in a new batch; played once, since many checks need them."""
        with self.open() as env:
            first = observation_frame(env.reset())
            return [first, *self.record(env, 0, self.options.steps)]

    def need_repeatable(self) -> None:
        """Leave the check if the world runs by the wall clock."""
        if self.spec.realtime:
            raise NotApplicableError("the world runs in real time, no two games are equal")


def sample_actions(spec: EnvSpec, steps: int, games: int, seed: int) -> NDArray[np.generic]:
    """Return random valid actions `(steps, games, seats, ...)`."""
    space = spec.action_space
    generator = np.random.default_rng(seed)
    size = (steps, games, spec.seats, *(space.shape or ()))
    if isinstance(space, spaces.MultiBinary):
        return generator.integers(0, 2, size)
    if isinstance(space, spaces.Discrete):
        return generator.integers(int(space.start), int(space.start) + int(space.n), size)
    if isinstance(space, spaces.MultiDiscrete):
        return generator.integers(space.start, space.start + space.nvec, size)
    if isinstance(space, spaces.Box):
        low, high = np.maximum(space.low, -10.0), np.minimum(space.high, 10.0)
        return generator.uniform(low, high, size).astype(np.float32)
    raise UnsupportedError(f"action space {space} is not supported; valid: MultiBinary, Discrete, MultiDiscrete, Box")


def host(tensor: Tensor) -> NDArray[np.generic]:
    """Return a copy of a tensor on the host."""
    copied: NDArray[np.generic] = tensor.detach().to("cpu", copy=True).numpy()
    return copied


def observation_frame(observations: Observations) -> Frame:
    """Return a copy of observations, named as in a frame."""
    return {f"observations[{name!r}]": host(tensor) for name, tensor in observations.items()}


def frame_of(result: StepResult) -> Frame:
    """Copy a result; final observations count only where a game ended, so other rows are set to zero."""
    frame = observation_frame(result.observations)
    frame |= {"terminated": host(result.terminated), "truncated": host(result.truncated)}
    ended = frame["terminated"].astype(bool) | frame["truncated"].astype(bool)
    for name, tensor in result.final_observations.items():
        final = host(tensor)
        final[~ended] = 0
        frame[f"final_observations[{name!r}]"] = final
    frame |= {f"events[{name!r}]": host(tensor) for name, tensor in result.events.items()}
    frame |= {f"state_metrics[{name!r}]": host(tensor) for name, tensor in result.state_metrics.items()}
    return frame


def frame_difference(left: Frame, right: Frame, games: Sequence[int] | None = None, shift: int = 0) -> str | None:
    """Return where two frames differ in any bit, or None.

    Compare `games` of `left`, or all; game `i` of `left` with game `i - shift` of `right`.
    """
    if set(left) != set(right):
        return f"names differ: {', '.join(sorted(set(left) ^ set(right)))}"
    for name, values in left.items():
        if games is None and values.tobytes() == right[name].tobytes():
            continue
        rows = range(len(values)) if games is None else games
        for game in rows:
            if values[game].tobytes() != right[name][game - shift].tobytes():
                return f"{name} of game {game} differs"
    return None


def record_difference(
    left: Sequence[Frame], right: Sequence[Frame], games: Sequence[int] | None = None, shift: int = 0
) -> str | None:
    """Return in which step two records first differ, or None."""
    for step, (left_frame, right_frame) in enumerate(zip(left, right, strict=True)):
        difference = frame_difference(left_frame, right_frame, games, shift)
        if difference is not None:
            return f"{difference} in step {step} of the comparison"
    return None


def named(fault: str, difference: str | None) -> Iterator[str]:
    """Yield the fault that a difference is, if there is one."""
    if difference is not None:
        yield f"{fault}: {difference}"
