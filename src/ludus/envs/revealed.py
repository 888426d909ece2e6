"""Games whose learner is told who it plays: one more entry of the observation, on top of the world's own.

It measures how much there is to gain from knowing the opponent: an agent that is told is a ceiling for one that has to
find out. The entry is one-hot over names that are fixed before the run and stored with the agent; zeros stand for
anyone else, such as past selves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import (
    OPPONENT_IDENTITY,
    BatchedEnv,
    Bots,
    EnvSpec,
    Mirror,
    Observations,
    Reflection,
    StepResult,
)


class RevealedEnv(BatchedEnv):
    """A batch of games with the entry `opponent_identity`, which the league fills in when opponents are drawn.

    Attributes:
        games: The batch itself.
        identity: `(games, seats, names)` float32, the entry; changed in place. Of games that ended in a step, final
            observations have the identity of the match that is over until `tell` is called.
    """

    def __init__(self, games: BatchedEnv, names: Sequence[str]) -> None:
        """Take over a batch; closing this one closes it.

        Args:
            games: The batch.
            names: Opponents that can be told apart.

        Raises:
            ConfigError: There is no name, or the world has an entry of this name.
        """
        self.games, self.num_envs, self.device = games, games.num_envs, games.device
        self.first_game, self.warnings = games.first_game, games.warnings
        self.spec = revealed_spec(games.spec, names)
        self.identity = torch.zeros((games.num_envs, games.spec.seats, len(names)), device=games.device)

    @property
    def seed(self) -> int:  # type: ignore[override]  # a reset may change that of the games
        """Seed of all random streams."""
        return self.games.seed

    @property
    def games_device(self) -> torch.device:
        """Device that the games are played on."""
        return self.games.games_device

    def tell(self, games: Tensor, seats: Tensor, identities: Tensor) -> None:
        """Say who plays.

        Args:
            games: `(any,)` int64, the games that are meant.
            seats: `(any, seats)` bool, who is told in them; the other seats see zeros.
            identities: `(any, names)` float32.
        """
        told = torch.where(seats.unsqueeze(2), identities.unsqueeze(1), 0.0)
        self.identity.index_copy_(0, games, told)

    def play_sets(self, best_of: int) -> None:
        """Let scripted players stay the same over a set; see `BatchedEnv.play_sets`."""
        self.games.play_sets(best_of)
        super().play_sets(best_of)

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start new episodes; see `BatchedEnv.reset`."""
        return self._with_identity(self.games.reset(games, seed=seed))

    def _advance(self, actions: Tensor) -> StepResult:
        result = self.games.step(actions)
        return replace(
            result,
            observations=self._with_identity(result.observations),
            final_observations=self._with_identity(result.final_observations),
        )

    def recording_key(self) -> object | None:
        """Return that of the games; see `BatchedEnv.recording_key`."""
        return self.games.recording_key()

    def snapshot(self) -> dict[str, Tensor]:
        """Return the state of the games; who plays is part of the league's."""
        return self.games.snapshot()

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Take the state of `snapshot`; see `BatchedEnv.restore`."""
        return self._with_identity(self.games.restore(snapshot))

    def bots(self, names: Sequence[str]) -> Bots:
        """Make scripted players of the given names; see `BatchedEnv.bots`."""
        return self.games.bots(names)

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one game; see `BatchedEnv.render`."""
        return self.games.render(game)

    def close(self) -> None:
        """Close the games."""
        self.games.close()

    def _with_identity(self, observations: Observations) -> Observations:
        return {**observations, OPPONENT_IDENTITY: self.identity}


def revealed_spec(spec: EnvSpec, names: Sequence[str]) -> EnvSpec:
    """Return what a world is with the entry `opponent_identity` over the given names.

    Raises:
        ConfigError: There is no name, or the world has an entry of this name.
    """
    if not names or OPPONENT_IDENTITY in spec.observation_space.spaces:
        raise ConfigError(f"{spec.id} cannot get the entry {OPPONENT_IDENTITY} over {', '.join(names) or 'no names'}")
    entry = spaces.Box(0.0, 1.0, (len(names),), np.float32)
    mirror = spec.mirror
    if mirror is not None:
        unchanged = Reflection(tuple(range(len(names))), (1.0,) * len(names))
        mirror = Mirror({**mirror.observations, OPPONENT_IDENTITY: unchanged}, mirror.actions, mirror.side)
    return replace(
        spec,
        observation_space=spaces.Dict({**spec.observation_space.spaces, OPPONENT_IDENTITY: entry}),
        opponent_names=tuple(names),
        mirror=mirror,
    )
