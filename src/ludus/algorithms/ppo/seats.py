"""Which seats of which games the learner plays, and who plays the others."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import BatchedEnv, Observations, StepResult


class Opponents(Protocol):
    """Plays the seats that no learner row plays."""

    def act(self, observations: Observations, actions: Tensor) -> None:
        """Writes actions `(games, seats, ...)` of its seats for observations `(games, seats, ...)`."""

    def after_step(self, result: StepResult) -> None:
        """Sees every step, before the next observations are read: may move seats of games that ended."""


@runtime_checkable
class NamedOpponents(Opponents, Protocol):
    """Opponents who can be told apart, so that a policy can learn to recognise them."""

    def bots_met(self) -> Tensor:
        """Returns the bot that plays in each game now, `(games,)` int64: index into `EnvSpec.bots`, -1 for none."""


class Rows:
    """Maps between games with seats and the learner's rows: every learner seat of every game is a row.

    Attributes:
        index: `(rows,)` int64, `game * seats + seat` of each row. It may be changed in place when a game has ended,
            as long as row order by game stays.
        count: Number of rows.
    """

    def __init__(self, env: BatchedEnv, learner: Tensor | None = None) -> None:
        """Chooses the rows.

        Args:
            env: The games.
            learner: `(games, seats)` bool, seats that the learner plays; all if None.
        """
        self._games, self._seats = env.num_games, env.spec.seats
        self._all = learner is None
        if learner is not None and tuple(learner.shape) != (self._games, self._seats):
            raise ConfigError(
                f"learner seats must have shape {(self._games, self._seats)} (games, seats), got {tuple(learner.shape)}"
            )
        if learner is None:
            self.index = torch.arange(self._games * self._seats, device=env.device)
        else:
            self.index = learner.flatten().nonzero().squeeze(1).to(env.device)
        self.count = int(self.index.numel())
        if self.count == 0:
            raise ConfigError("the learner plays no seat; set at least one entry of the learner seats")

    @property
    def games(self) -> int:
        """Number of games."""
        return self._games

    @property
    def plays_all(self) -> bool:
        """Whether the learner plays every seat."""
        return self._all

    def take(self, tensor: Tensor) -> Tensor:
        """Returns the rows of `(games, seats, ...)` as `(rows, ...)`."""
        flat = tensor.flatten(0, 1)
        return flat if self._all else flat.index_select(0, self.index)

    def take_games(self, tensor: Tensor) -> Tensor:
        """Returns the rows of a tensor a game, `(games,)`, as `(rows,)`."""
        if self._all:
            return tensor if self._seats == 1 else tensor.repeat_interleave(self._seats, output_size=self.count)
        return tensor.index_select(0, self.index.div(self._seats, rounding_mode="floor"))

    def put(self, rows: Tensor, into: Tensor) -> None:
        """Writes `(rows, ...)` to their places in `(games, seats, ...)`."""
        if self._all:
            into.flatten(0, 1).copy_(rows)
        else:
            into.flatten(0, 1).index_copy_(0, self.index, rows.to(into.dtype))
