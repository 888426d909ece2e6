"""Which seats of every game the learner plays: a team that is redrawn for every episode, or all seats."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.random import stream_hash_tensor
from ludus.envs.base import BatchedEnv, EnvSpec

if TYPE_CHECKING:
    from ludus.envs.episode_hashes import EpisodeHashes

_STREAM_TEAM = 0x5EA7  # keeps these draws apart from the world's own and from those of opponents


class TeamAssignment:
    """The learner's seats and the others'.

    In the first `mirrored` games the learner plays all seats. In every other game it plays all seats of one team. Teams
    of equal size are drawn, as a pure function of (seed, game, episode), so the episode numbers are the only state.
    Where sizes differ, games take turns: the first one has the learner in a smallest team, the next one in a larger
    one. So a game has as many seats of the learner in every episode, and all tensors keep their shapes.

    Attributes:
        mirrored: Games in which the learner plays all seats.
        sides: For each game, the learner's side as `EnvSpec.side` names it; empty where it plays all seats.
        episodes: `(games,)` int64, the number of each game's episode.
        learner: `(games, seats)` bool, the learner's seats; changed in place.
        learner_index: `(rows,)` int64, `game * seats + seat` of the learner's seats, by game; changed in place.
        other_index: `(other rows,)` int64, the same of all others; changed in place.
        other_games: `(other rows,)` int64, the game of each of the others.
    """

    def __init__(self, env: BatchedEnv, seed: int, mirrored: int = 0) -> None:
        """Seat everyone for the first episodes.

        Args:
            env: The games.
            seed: Of the draws.
            mirrored: Games in which the learner plays all seats.

        Raises:
            ConfigError: The world has but one team.
        """
        check_teams(env.spec)
        self.mirrored = mirrored
        self._seed, self._seats, self._first_game = seed, env.spec.seats, env.first_game
        device, spec = env.device, env.spec
        teams = sorted(set(spec.teams))
        by_size = [[team for team in teams if spec.teams.count(team) == size] for size in _sizes(spec)]
        owners = torch.tensor([teams.index(team) for team in spec.teams])
        members = owners == torch.arange(len(teams)).unsqueeze(1)
        lists = [[teams.index(team) for team in group] for group in by_size]
        if mirrored:  # a choice is a team by its place, or all seats, which come last
            members = torch.cat((members, torch.ones_like(members[:1])))
            lists.append([len(teams)])
        self._members = members.to(device)
        self._choices = _padded(lists).to(device)
        self._counts = torch.tensor([len(each) for each in lists], device=device)
        self.all_games = torch.arange(env.num_envs, device=device)
        turns = (self.all_games - mirrored) % len(by_size)
        self._lists = torch.where(self.all_games < mirrored, len(by_size), turns)
        names = [*(spec.side(group[0]) for group in by_size), ""]
        self.sides = tuple(names[place] for place in self._lists.tolist())
        self.episodes = torch.zeros_like(self.all_games)
        self._kernels: dict[int, EpisodeHashes] = {}
        self.learner = torch.zeros((env.num_envs, spec.seats), dtype=torch.bool, device=device)
        self._own, self._others = (_Places(seats, lists, self._lists) for seats in (members, ~members))
        self.learner_index, self.other_index = self._own.index, self._others.index
        self.other_games = self._others.games
        self.seat(self.all_games)

    def seat(self, games: Tensor) -> None:
        """Take the seats of the present episodes of `games` `(any,)` int64; episodes in progress do not change."""
        lists = self._lists.index_select(0, games)
        drawn = self.hashes(games, _STREAM_TEAM) % self._counts.index_select(0, lists)
        choices = self._choices[lists, drawn]
        base = (games * self._seats).unsqueeze(1)
        self.learner.index_copy_(0, games, self._members.index_select(0, choices))
        self._own.put(games, choices, base)
        self._others.put(games, choices, base)

    def hashes(self, games: Tensor, stream: int) -> Tensor:
        """Return one random number of 32 bits for the present episode of each of `games`, on the given stream.

        Those of all games on a CUDA device are overwritten by the next call for the same stream.
        """
        if games is self.all_games and games.is_cuda:
            return self._kernel(stream)()[0]
        episodes = self.episodes.index_select(0, games)
        return stream_hash_tensor(self._seed, self._first_game + games, episodes, 0, stream)

    def _kernel(self, stream: int) -> "EpisodeHashes":
        from ludus.envs.episode_hashes import EpisodeHashes  # Warp takes long to import, and the CPU does not need it

        if stream not in self._kernels:
            self._kernels[stream] = EpisodeHashes(self._seed, self._first_game, self.episodes, (stream,))
        return self._kernels[stream]


class _Places:
    """Seats of every game, as many in every episode, laid end to end.

    Attributes:
        index: `(rows,)` int64, `game * seats + seat`; changed in place.
        games: `(rows,)` int64, game of each row.
    """

    def __init__(self, members: Tensor, lists: list[list[int]], lists_of_games: Tensor) -> None:
        """Make room.

        Args:
            members: `(choices, seats)` bool, the seats of each choice.
            lists: Choices that a game can have, of equally many seats each.
            lists_of_games: `(games,)` int64, which of these lists each game has.
        """
        device = lists_of_games.device
        seats = [row.nonzero().squeeze(1).tolist() for row in members]
        self._table = _padded(seats).to(device)
        counts = torch.tensor([len(seats[choices[0]]) for choices in lists], device=device)[lists_of_games]
        widest = self._table.shape[1]
        self._wide = torch.zeros((len(lists_of_games), widest), dtype=torch.int64, device=device)
        taken = torch.arange(widest, device=device) < counts.unsqueeze(1)
        self._taken = None if bool(taken.all()) else taken.flatten().nonzero().squeeze(1)
        self.games = taken.nonzero()[:, 0].contiguous()
        self.index = self._wide.view(-1) if self._taken is None else torch.zeros_like(self.games)

    def put(self, games: Tensor, choices: Tensor, base: Tensor) -> None:
        """Take the choices `(any,)` of `games` `(any,)`, whose first seats have the index `base` `(any, 1)`."""
        self._wide.index_copy_(0, games, base + self._table.index_select(0, choices))
        if self._taken is not None:
            torch.index_select(self._wide.view(-1), 0, self._taken, out=self.index)


def learner_seats(spec: EnvSpec, games: int, mirrored: int) -> int:
    """Return how many seats of a number of games a `TeamAssignment` gives to the learner."""
    sizes = _sizes(spec)
    # No loop over games: a run that is far too large shall be refused at once.
    rounds, rest = divmod(games - mirrored, len(sizes))
    return mirrored * spec.seats + rounds * sum(sizes) + sum(sizes[:rest])


def check_teams(spec: EnvSpec) -> None:
    """Raise ConfigError unless a world has several teams, so that an opponent can play against the learner."""
    if len(set(spec.teams)) < 2:
        seats = "one seat" if spec.seats == 1 else f"{spec.seats} seats in one team"
        raise ConfigError(f"{spec.id} has {seats}, so no opponent can play in it; leave opponents out")


def _sizes(spec: EnvSpec) -> list[int]:
    return sorted({spec.teams.count(team) for team in spec.teams})


def _padded(lists: list[list[int]]) -> Tensor:
    """Return lists of different lengths as one table, `(lists, longest)` int64, with -1 where a list is over."""
    longest = max(map(len, lists))
    return torch.tensor([[*each, *[-1] * (longest - len(each))] for each in lists]).view(len(lists), longest)
