"""Scripted opponents: a bot in every seat but the learner's, seat and bot drawn anew for every game and episode."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.algorithms.ppo.seats import Rows
from ludus.core.errors import ConfigError, StateError
from ludus.core.random import stream_hash_tensor, uniform
from ludus.envs.base import BatchedEnv, Observations, StepResult

_STREAM_SEAT = 0x5EA7  # keep these draws apart from the world's own and from each other
_STREAM_BOT = 0xB075


class BotOpponents:
    """Plays the seats that the learner does not; see `ludus.algorithms.ppo.seats.Opponents`.

    Seat and bot are pure functions of (seed, game, episode), so the episode numbers are the only state.

    Attributes:
        names: The bots.
        episodes: `(games,)` int64, the number of each game's episode.
        bots: `(games,)` int64, index into `names` of the bot that each game is played against.
    """

    def __init__(self, env: BatchedEnv, weights: Mapping[str, float], seed: int) -> None:
        """Seats everyone for the first episodes.

        Args:
            env: The games.
            weights: Share of each bot; any positive numbers.
            seed: Of the draws.
        """
        if env.spec.seats < 2:
            raise ConfigError(f"{env.spec.id} has one seat, so no opponent can play in it; got {', '.join(weights)}")
        self.names = tuple(weights)
        self._bots = env.bots(self.names)
        self._seed, self._seats = seed, env.spec.seats
        self._indices = torch.arange(env.num_games, device=env.device)
        self._first_game = env.first_game
        shares = torch.tensor(list(weights.values()), dtype=torch.float64)
        self._thresholds = (shares.cumsum(0) / shares.sum())[:-1].to(env.device, torch.float32)
        self._rows: Rows | None = None
        self.episodes = torch.zeros_like(self._indices)
        self._take_seats()

    @property
    def learner(self) -> Tensor:
        """`(games, seats)` bool, the learner's seats."""
        return self._assignment < 0

    def attach(self, rows: Rows) -> None:
        """Takes the learner's rows, one a game, which are moved to another seat when a game has ended."""
        self._rows = rows

    def act(self, observations: Observations, actions: Tensor) -> None:  # noqa: ARG002 - bots see the whole game
        """Writes the bots' actions."""
        self._bots.act(self._assignment, actions)

    def after_step(self, result: StepResult) -> None:
        """Draws new seats and bots for games that ended; on the host only steps with such games cost anything."""
        ended = result.ended
        if ended.device.type == "cpu" and not ended.any():
            return
        self.episodes += ended
        self._take_seats()

    def state(self) -> dict[str, Tensor]:
        """Returns what the future depends on."""
        return {"episodes": self.episodes.clone()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` gave.

        Raises:
            StateError: It does not fit the games.
        """
        if set(state) != {"episodes"} or state["episodes"].shape != self.episodes.shape:
            raise StateError(f"the opponents' state needs 'episodes' of {len(self.episodes)} games; use the same games")
        self.episodes.copy_(state["episodes"])
        self._take_seats()

    def restart(self) -> None:
        """Begins the next episode of every game."""
        self.episodes += 1
        self._take_seats()

    def _take_seats(self) -> None:
        games = self._first_game + self._indices
        seats = stream_hash_tensor(self._seed, games, self.episodes, 0, _STREAM_SEAT) % self._seats
        chances = uniform(stream_hash_tensor(self._seed, games, self.episodes, 0, _STREAM_BOT))
        self.bots = (chances.unsqueeze(1) >= self._thresholds).sum(1)
        everyone = self.bots.to(torch.int32).unsqueeze(1).repeat(1, self._seats)
        self._assignment = everyone.scatter_(1, seats.unsqueeze(1), -1)
        if self._rows is not None:
            self._rows.index.copy_(self._indices * self._seats + seats)
