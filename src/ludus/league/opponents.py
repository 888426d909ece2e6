"""The learner's opponents: who plays the seats of the other teams, drawn anew for every game and episode."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.algorithms.ppo.seats import Rows
from ludus.core.errors import ConfigError, StateError, UnknownNameError
from ludus.core.random import uniform
from ludus.envs.base import BatchedEnv, Observations, StepResult
from ludus.league.config import LeagueConfig
from ludus.league.seating import Seating
from ludus.policies.policy import Policy

_STREAM_OPPONENT = 0xB075


class LeagueOpponents:
    """Plays the seats that the learner does not; see `ludus.algorithms.ppo.seats.Opponents`.

    The learner plays all seats of one random team of every game, one opponent all the others. Both are drawn when an
    episode starts, from streams keyed by (seed, game, episode).

    Attributes:
        opponents: `(games,)` int64, index into `names` of the present opponent of each game; changed in place.
    """

    def __init__(
        self, env: BatchedEnv, policy: Policy, weights: Mapping[str, float], config: LeagueConfig, seed: int
    ) -> None:
        """Seats everyone for the first episodes.

        Args:
            env: The games.
            policy: The learner.
            weights: Share of each opponent: any numbers from 0 on, not all 0.
            config: Of the league.
            seed: Of the draws.

        Raises:
            ConfigError: The world's teams or the weights do not allow it.
            UnknownNameError: The world has no such bot.
        """
        self._seating = Seating(env, seed)
        self._policy, self._config = policy, config
        self._bot_names = tuple(weights)
        self._bots = env.bots(self._bot_names)
        self._rows: Rows | None = None
        self._mix = torch.zeros(len(self.names), dtype=torch.float64)
        self._thresholds = torch.zeros(len(self.names), device=env.device)
        self.opponents = torch.zeros_like(self._seating.episodes)
        self._assignment = torch.full_like(self._seating.learner, -1, dtype=torch.int32)
        self.set_mix(weights)
        self._begin(self._seating.all_games, torch.ones_like(self.opponents, dtype=torch.bool))

    @property
    def names(self) -> tuple[str, ...]:
        """The opponents, by index."""
        return self._bot_names

    @property
    def learner(self) -> Tensor:
        """`(games, seats)` bool, the learner's seats."""
        return self._seating.learner

    @property
    def episodes(self) -> Tensor:
        """`(games,)` int64, the number of each game's episode."""
        return self._seating.episodes

    def attach(self, rows: Rows) -> None:
        """Takes the learner's rows, which are moved to other seats when a game has ended."""
        self._rows = rows
        self._move_rows()

    def set_mix(self, weights: Mapping[str, float]) -> None:
        """Sets the share of each opponent for episodes that start from now on; those not named get none.

        Raises:
            ConfigError: The weights are no shares.
            UnknownNameError: An opponent was not among those given at the start.
        """
        for name, weight in weights.items():
            if name not in self._bot_names:
                raise UnknownNameError("opponent", name, self._bot_names)
            if not 0.0 <= weight < math.inf:
                raise ConfigError(f"opponent {name!r} has weight {weight}; use a number from 0 on")
        shares = torch.tensor([weights.get(name, 0.0) for name in self._bot_names], dtype=torch.float64)
        if not shares.sum() > 0.0:
            raise ConfigError(f"no opponent has a weight above 0: {dict(weights)}; give at least one")
        self._mix.copy_(shares / shares.sum())
        self._thresholds.copy_(thresholds(self._mix))

    def act(self, observations: Observations, actions: Tensor) -> None:  # noqa: ARG002 - bots see the whole game
        """Writes the opponents' actions."""
        self._bots.act(self._assignment, actions)

    def after_step(self, result: StepResult) -> None:
        """Seats everyone anew in games that ended; on the host only steps with such games cost anything."""
        ended = result.ended
        games = self._seating.all_games
        if ended.device.type == "cpu":
            games = ended.nonzero().squeeze(1)
            if games.numel() == 0:
                return
        self._seating.episodes += ended
        self._begin(games, ended)

    def state(self) -> dict[str, Tensor]:
        """Returns copies of what the future depends on."""
        tensors = {"episodes": self.episodes, "opponents": self.opponents, "mix": self._mix}
        return {name: tensor.clone() for name, tensor in tensors.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` gave.

        Raises:
            StateError: It does not fit the games.
        """
        own = self.state()
        if set(state) != set(own) or any(state[name].shape != tensor.shape for name, tensor in own.items()):
            raise StateError(
                f"the opponents' state does not fit: expected {', '.join(own)} of {len(self.episodes)} games; "
                "use the same games and opponents"
            )
        self.episodes.copy_(state["episodes"])
        self.opponents.copy_(state["opponents"])
        self._mix.copy_(state["mix"])
        self._thresholds.copy_(thresholds(self._mix))
        self._begin(self._seating.all_games, torch.zeros_like(self.opponents, dtype=torch.bool))

    def restart(self) -> None:
        """Begins the next episode of every game."""
        self._seating.episodes += 1
        self._begin(self._seating.all_games, torch.ones_like(self.opponents, dtype=torch.bool))

    def _begin(self, games: Tensor, ended: Tensor) -> None:
        """Seats everyone in `games` `(any,)` int64, and draws the opponents of those among them that `ended`."""
        self._seating.seat(games)
        chances = uniform(self._seating.hashes(games, _STREAM_OPPONENT))
        drawn = torch.searchsorted(self._thresholds, chances, right=True)
        present = torch.where(ended.index_select(0, games), drawn, self.opponents.index_select(0, games))
        self.opponents.index_copy_(0, games, present)
        bots = torch.where(self.learner.index_select(0, games), -1, present.unsqueeze(1))
        self._assignment.index_copy_(0, games, bots.to(torch.int32))
        self._move_rows()

    def _move_rows(self) -> None:
        if self._rows is not None:
            self._rows.index.copy_(self._seating.learner_index.flatten())


def thresholds(shares: Tensor) -> Tensor:
    """Returns the numbers that cut [0, 1) into parts of the given shares, `(parts,)` float32.

    Part i holds the numbers x with `thresholds[i - 1] <= x < thresholds[i]`. From the last part that is not empty on
    they are 2, so that rounding gives nobody a share that has none.

    Args:
        shares: `(parts,)` float64, none negative, one positive at least.
    """
    cuts = (shares.cumsum(0) / shares.sum()).to(torch.float32)
    cuts[int(shares.nonzero().max()) :] = 2.0
    return cuts
