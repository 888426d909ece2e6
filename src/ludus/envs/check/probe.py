"""The kit's hands: makes batches, plays them with a fixed tape of random actions, records and compares."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv, EnvSpec, Observations, StepResult, action_dtypes
from ludus.envs.check.report import CheckOptions, EnvMaker, NotApplicableError

# One step of a record: every tensor of the result as a host array with the games first.
Frame = dict[str, NDArray[np.generic]]


class Probe:
    """Makes and plays batches of one world; two batches are never open at once, as a screen exists only once."""

    def __init__(self, make: EnvMaker, options: CheckOptions) -> None:
        self._make = make
        self.options = options
        with self.open(games=1) as env:
            self.spec: EnvSpec = env.spec
        self.num_games = min(options.num_games, self.spec.max_games or options.num_games)
        self._tape = sample_actions(self.spec, options.steps, self.num_games, options.seed)

    @contextmanager
    def open(self, *, games: int | None = None, seed: int | None = None, first_game: int = 0) -> Iterator[BatchedEnv]:
        """Makes a batch, of the usual size and seed unless told otherwise, and closes it afterwards."""
        seed = self.options.seed if seed is None else seed
        with self._make(self.num_games if games is None else games, seed, first_game) as env:
            yield env

    def actions(self, env: BatchedEnv, step: int, row: int = 0) -> Tensor:
        """Returns the tape's actions `(games, seats, ...)` of one step; the tape repeats, game 0 takes row `row`."""
        taken = self._tape[step % self.options.steps, row : row + env.num_games]
        return torch.as_tensor(taken, dtype=action_dtypes(self.spec.action_space)[0]).to(env.device, copy=True)

    def play(
        self, env: BatchedEnv, first: int, count: int, *, row: int = 0, bots: bool = False
    ) -> Iterator[tuple[int, StepResult]]:
        """Plays steps `first ... first + count - 1` of the tape; with `bots`, scripted players take every seat."""
        players = env.bots(self.spec.bots) if bots else None
        assignment = self.assignment(env, row)
        for step in range(first, first + count):
            actions = self.actions(env, step, row)
            if players is not None:
                players.act(assignment, actions)
            yield step, env.step(actions)

    def assignment(self, env: BatchedEnv, row: int = 0) -> Tensor:
        """Returns bots for all seats `(games, seats)`: different ones in neighbouring games and seats."""
        games, seats = torch.arange(env.num_games).unsqueeze(1) + row, torch.arange(self.spec.seats)
        return ((games + seats) % max(len(self.spec.bots), 1)).to(torch.int32).to(env.device)

    def record(self, env: BatchedEnv, first: int, count: int, *, row: int = 0, bots: bool = False) -> list[Frame]:
        """Plays steps and keeps a copy of everything that came back."""
        return [frame_of(result) for _, result in self.play(env, first, count, row=row, bots=bots)]

    def need_repeatable(self) -> None:
        """Leaves the check if the world runs by the wall clock."""
        if self.spec.realtime:
            raise NotApplicableError("the world runs in real time, no two games are equal")


def sample_actions(spec: EnvSpec, steps: int, games: int, seed: int) -> NDArray[np.generic]:
    """Returns random valid actions `(steps, games, seats, ...)`."""
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
    """Returns a copy of a tensor on the host."""
    copied: NDArray[np.generic] = tensor.detach().to("cpu", copy=True).numpy()
    return copied


def observation_frame(observations: Observations) -> Frame:
    """Returns a copy of observations, named as in a frame."""
    return {f"observations[{name!r}]": host(tensor) for name, tensor in observations.items()}


def frame_of(result: StepResult) -> Frame:
    """Copies a result; final observations count only where a game ended, so other rows are set to zero."""
    frame = observation_frame(result.observations)
    frame |= {"terminated": host(result.terminated), "truncated": host(result.truncated)}
    ended = frame["terminated"].astype(bool) | frame["truncated"].astype(bool)
    for name, tensor in result.final_observations.items():
        final = host(tensor)
        final[~ended] = 0
        frame[f"final_observations[{name!r}]"] = final
    frame |= {f"events[{name!r}]": host(tensor) for name, tensor in result.events.items()}
    frame |= {f"measures[{name!r}]": host(tensor) for name, tensor in result.measures.items()}
    return frame


def frame_difference(left: Frame, right: Frame, games: Sequence[int] | None = None, shift: int = 0) -> str | None:
    """Says where two frames differ in any bit, or returns None.

    Args:
        left: A frame.
        right: Another frame.
        games: Games of `left` that are compared; all if None.
        shift: Game `i` of `left` is compared with game `i - shift` of `right`.
    """
    if set(left) != set(right):
        return f"names differ: {', '.join(sorted(set(left) ^ set(right)))}"
    for name, values in left.items():
        rows = range(len(values)) if games is None else games
        for game in rows:
            if values[game].tobytes() != right[name][game - shift].tobytes():
                return f"{name} of game {game} differs"
    return None


def record_difference(
    left: Sequence[Frame], right: Sequence[Frame], games: Sequence[int] | None = None, shift: int = 0
) -> str | None:
    """Says in which step two records first differ, or returns None."""
    for step, (left_frame, right_frame) in enumerate(zip(left, right, strict=True)):
        difference = frame_difference(left_frame, right_frame, games, shift)
        if difference is not None:
            return f"{difference} in step {step} of the comparison"
    return None
