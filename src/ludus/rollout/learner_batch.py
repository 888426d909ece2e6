"""Which seats of which games the learner plays, and who plays the others."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import BatchedEnv, Observations, StepResult


class Opponents(Protocol):
    """Plays the seats that no learner row plays."""

    def act(self, observations: Observations, actions: Tensor) -> None:
        """Write actions `(games, seats, ...)` of its seats for observations `(games, seats, ...)`."""

    def after_step(self, result: StepResult) -> None:
        """Process a step before the next observations are read; may move seats of games that ended."""


@runtime_checkable
class RecordableOpponents(Opponents, Protocol):
    """Opponents whose calls a CUDA graph can hold: they change tensors in place and never wait for the device."""

    def recording_key(self) -> object | None:
        """Return what a recording depends on beside the values of tensors; None where it cannot be made now."""

    def generators(self) -> Sequence[torch.Generator]:
        """Return the generators that its calls draw from."""


@runtime_checkable
class NamedOpponents(Opponents, Protocol):
    """Opponents with labels, which a policy can learn to classify."""

    def bots_met(self) -> Tensor:
        """Return the bot that plays in each game now, `(games,)` int64: index into `EnvSpec.bots`, -1 for none."""


class LearnerBatch:
    """Maps between games with seats and the learner's rows: every learner seat of every game is a row.

    Attributes:
        index: `(rows,)` int64, `game * seats + seat` of each row. It may be changed in place when a game has ended,
            as long as row order by game stays.
        count: Number of rows.
        games: Number of games.
        plays_all: Whether the learner plays every seat.
        has_opponents: Whether every seat has one of another team.
    """

    def __init__(self, env: BatchedEnv, learner: Tensor | None = None) -> None:
        """Choose the rows: the seats that `learner` `(games, seats)` bool marks, or all."""
        self.games, self._seats = env.num_envs, env.spec.seats
        self.plays_all = learner is None
        if learner is not None and tuple(learner.shape) != (self.games, self._seats):
            raise ConfigError(
                f"learner seats must have shape {(self.games, self._seats)} (games, seats), got {tuple(learner.shape)}"
            )
        if learner is None:
            self.index = torch.arange(self.games * self._seats, device=env.device)
        else:
            self.index = learner.flatten().nonzero().squeeze(1).to(env.device)
        self.count = int(self.index.numel())
        if self.count == 0:
            raise ConfigError("the learner plays no seat; set at least one entry of the learner seats")
        teams = env.spec.teams
        rivals = [next((seat for seat, other in enumerate(teams) if other != team), -1) for team in teams]
        self._rivals = torch.tensor(rivals, device=env.device)
        self.has_opponents = min(rivals) >= 0

    def take(self, tensor: Tensor) -> Tensor:
        """Return the rows of `(games, seats, ...)` as `(rows, ...)`."""
        flat = tensor.flatten(0, 1)
        return flat if self.plays_all else flat.index_select(0, self.index)

    def take_games(self, tensor: Tensor) -> Tensor:
        """Return the rows of a tensor with one value per game, `(games,)`, as `(rows,)`."""
        if self.plays_all:
            return tensor if self._seats == 1 else tensor.repeat_interleave(self._seats, output_size=self.count)
        return tensor.index_select(0, self.index.div(self._seats, rounding_mode="floor"))

    def take_opponents(self, tensor: Tensor) -> Tensor:
        """Return of `(games, seats, ...)` the first seat of another team than each row's, as `(rows, ...)`."""
        seats = self.index.remainder(self._seats)
        return tensor.flatten(0, 1).index_select(0, self.index - seats + self._rivals[seats])

    def put(self, rows: Tensor, into: Tensor) -> None:
        """Write `(rows, ...)` to their places in `(games, seats, ...)`."""
        if self.plays_all:
            into.flatten(0, 1).copy_(rows)
        else:
            into.flatten(0, 1).index_copy_(0, self.index, rows.to(into.dtype))
