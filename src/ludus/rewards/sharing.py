"""Rewards that are shared in a team and taken from the other teams, term by term, so that the account still adds up.

A seat's part of a term is mixed with the mean of its team (team spirit), and the mean of all seats that are not in its
team is taken off (zero-sum). With `c` a term's contributions, `n` the size of the seat's team, `S` the team's sum, and
`m` and `R` the number and the sum of all others, the seat gets

    (1 - team_spirit) * c + team_spirit * S / n - zero_sum * R / m

Sharing in the other teams does not change their sums, so the order of the two does not matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ludus.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Sharing:
    """How much is shared.

    Attributes:
        team_spirit: Share of the team's mean in each seat's reward, 0 to 1.
        zero_sum: Share of the others' mean that is taken off, 0 to 1.
    """

    team_spirit: float = 0.0
    zero_sum: float = 0.0

    def __bool__(self) -> bool:
        return self.team_spirit != 0.0 or self.zero_sum != 0.0

    def toward(self, goal: "Sharing", share: float) -> "Sharing":
        """Return what lies between this and a goal; `share` 0 is this, 1 the goal."""
        return Sharing(
            (1.0 - share) * self.team_spirit + share * goal.team_spirit,
            (1.0 - share) * self.zero_sum + share * goal.zero_sum,
        )


def check_teams(sharing: Sharing, teams: Sequence[int], world: str) -> None:
    """Raise ConfigError if no seat can share or take rewards."""
    if sharing and not teams:
        raise ConfigError(f"{world} gives rewards without teams; leave out team_spirit and zero_sum")
    if sharing.zero_sum and len(set(teams)) == 1:
        raise ConfigError(f"zero_sum takes rewards from the other teams, but {world} has one team; leave it out")


def share_rewards(parts: Tensor, teams: Sequence[int], sharing: Sharing) -> Tensor:
    """Share contributions among the seats of every game.

    Args:
        parts: `(terms, ..., rows)`, all seats of a game beside each other, game after game.
        teams: Team of each seat.
        sharing: How much.

    Raises:
        ConfigError: The rows are not all seats of a number of games.
    """
    if parts.shape[-1] % len(teams):
        raise ConfigError(
            f"rewards are shared among all {len(teams)} seats of a game, got {parts.shape[-1]} rows; give every seat's"
        )
    seats = parts.view(*parts.shape[:-1], -1, len(teams))
    # Not indexed by a list, which would have to be copied to a GPU: that cannot be recorded.
    columns = seats.unbind(-1)
    sums = {
        team: torch.stack([columns[seat] for seat in _seats_of(teams, team)], -1).sum(-1)
        for team in dict.fromkeys(teams)
    }
    shared = torch.empty_like(seats)
    for seat, team in enumerate(teams):
        own = seats[..., seat] * (1.0 - sharing.team_spirit)
        own += sums[team] * (sharing.team_spirit / teams.count(team))
        for other, total in sums.items():
            if other != team and sharing.zero_sum:
                own -= total * (sharing.zero_sum / (len(teams) - teams.count(team)))
        shared[..., seat] = own
    return shared.flatten(-2)


def _seats_of(teams: Sequence[int], team: int) -> list[int]:
    return [seat for seat, its in enumerate(teams) if its == team]
