"""Which team of every game the learner plays: drawn anew for every game and episode."""

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.random import stream_hash_tensor
from ludus.envs.base import BatchedEnv, EnvSpec

_STREAM_TEAM = 0x5EA7  # keeps these draws apart from the world's own and from those of opponents


class Seating:
    """The learner's seats, all of one random team, and the others'.

    The team is a pure function of (seed, game, episode), so the episode numbers are the only state.

    Attributes:
        episodes: `(games,)` int64, the number of each game's episode.
        learner: `(games, seats)` bool, the learner's seats; changed in place.
        learner_index: `(games, own seats)` int64, `game * seats + seat` of the learner's seats; changed in place.
        other_index: `(games, other seats)` int64, the same of all others; changed in place.
    """

    def __init__(self, env: BatchedEnv, seed: int) -> None:
        """Seats everyone for the first episodes.

        Args:
            env: The games.
            seed: Of the draws.

        Raises:
            ConfigError: The world's teams differ in size, or there is but one.
        """
        teams = _equal_teams(env.spec)
        self._seed, self._seats, self._first_game = seed, env.spec.seats, env.first_game
        owners = torch.tensor([teams.index(team) for team in env.spec.teams])
        members = owners == torch.arange(len(teams)).unsqueeze(1)
        self._members = members.to(env.device)
        self._own_seats = torch.stack([row.nonzero().squeeze(1) for row in members]).to(env.device)
        self._other_seats = torch.stack([(~row).nonzero().squeeze(1) for row in members]).to(env.device)
        games = env.num_games
        self.all_games = torch.arange(games, device=env.device)
        self.episodes = torch.zeros_like(self.all_games)
        self.learner = torch.zeros((games, self._seats), dtype=torch.bool, device=env.device)
        self.learner_index = self._own_seats.new_zeros(games, self._own_seats.shape[1])
        self.other_index = self._own_seats.new_zeros(games, self._other_seats.shape[1])
        self.seat(self.all_games)

    def seat(self, games: Tensor) -> None:
        """Takes the seats of the present episodes of `games` `(any,)` int64; for one that goes on nothing changes."""
        teams = self.hashes(games, _STREAM_TEAM) % len(self._members)
        base = (games * self._seats).unsqueeze(1)
        self.learner.index_copy_(0, games, self._members.index_select(0, teams))
        self.learner_index.index_copy_(0, games, base + self._own_seats.index_select(0, teams))
        self.other_index.index_copy_(0, games, base + self._other_seats.index_select(0, teams))

    def hashes(self, games: Tensor, stream: int) -> Tensor:
        """Returns one random number of 32 bits for the present episode of each of `games`, on the given stream."""
        return stream_hash_tensor(self._seed, self._first_game + games, self.episodes.index_select(0, games), 0, stream)


def _equal_teams(spec: EnvSpec) -> list[int]:
    """Returns the names of the teams, or raises ConfigError unless there are several of equal size."""
    teams = sorted(set(spec.teams))
    if len(teams) < 2:
        seats = "one seat" if spec.seats == 1 else f"{spec.seats} seats in one team"
        raise ConfigError(f"{spec.id} has {seats}, so no opponent can play in it; leave opponents out")
    if len({spec.teams.count(team) for team in teams}) > 1:
        raise ConfigError(
            f"{spec.id} has teams {spec.teams} of unequal size, so no opponent can play; leave opponents out"
        )
    return teams
