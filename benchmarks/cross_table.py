"""Matches between scripted players: thousands in one batch, and what happened in each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import StepResult
from ludus.envs.registry import make_env
from ludus.evaluation.matches import play_first_matches
from ludus.evaluation.players import BotActor


@dataclass(frozen=True, slots=True)
class MatchTable:
    """Results of a cross table of players.

    Attributes:
        names: The players.
        events: For each event, its sum over a match: `(players, players, matches, seats)`; first index is the
            player in all seats of the first team, second the one in those of the other.
        measures: For each measure, its mean over a match, same shape.
        steps: Steps a match took, `(players, players, matches)`.
    """

    names: tuple[str, ...]
    events: Mapping[str, Tensor]
    state_metrics: Mapping[str, Tensor]
    steps: Tensor

    def scores(self) -> Tensor:
        """Score of the row player: 1 for a win, a half for a draw; `(players, players, matches)`."""
        return self.events["wins"][..., 0] + 0.5 * self.events["draws"][..., 0]


def play_cross_table(
    world: str,
    names: Sequence[str],
    matches: int,
    *,
    seed: int = 0,
    device: str = "cpu",
    config: Mapping[str, Any] | None = None,
) -> MatchTable:
    """Play every ordered pair of bots against each other, one batch for all.

    Args:
        world: A world with two teams and scripted players.
        names: Bot names; each also meets itself.
        matches: Matches of every ordered pair.
        seed: Seed of all matches.
        device: Where to play.
        config: Settings of the world.

    Raises:
        ConfigError: The world has not two teams, or `matches` is below 1.
    """
    if matches < 1:
        raise ConfigError(f"matches must be at least 1, got {matches}")
    players = len(names)
    with make_env(world, players * players * matches, device, seed=seed, config=config) as env:
        teams = tuple(dict.fromkeys(env.spec.teams))
        if len(teams) != 2:
            raise ConfigError(f"a cross table needs a world with 2 teams, {env.spec.id} has {len(teams)}")
        games, seats = env.num_envs, env.spec.seats
        pair = torch.arange(games, device=env.device) // matches
        of_team = {teams[0]: pair // players, teams[1]: pair % players}
        roster = BotActor(env, names, torch.stack([of_team[team] for team in env.spec.teams], dim=1).int())
        events = {name: torch.zeros((games, seats), device=env.device) for name in env.spec.events}
        state_metrics = {name: torch.zeros((games, seats), device=env.device) for name in env.spec.state_metrics}

        def add(result: StepResult, playing: Tensor) -> None:
            weight = playing.float()[:, None]
            for totals, values in ((events, result.events), (state_metrics, result.state_metrics)):
                for name, total in totals.items():
                    total.addcmul_(values[name], weight)

        steps = play_first_matches(env, [roster], add, seed=seed)
        table = (players, players, matches)
        return MatchTable(
            names=tuple(names),
            events={name: total.view(*table, seats).cpu() for name, total in events.items()},
            state_metrics={
                name: (total / steps[:, None]).view(*table, seats).cpu() for name, total in state_metrics.items()
            },
            steps=steps.view(table).float().cpu(),
        )
