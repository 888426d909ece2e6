"""Matches of any pairs of players, side by side in as few batches as possible, each player as often on either side."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.random import stream_hash
from ludus.envs.base import BatchedEnv, EnvSpec, StepResult
from ludus.envs.registry import make_env
from ludus.evaluation.contenders import Contender
from ludus.evaluation.duels import MOST_GAMES
from ludus.evaluation.first_matches import Leaving, ShareDone, play_first_matches
from ludus.evaluation.players import AgentPlayer, BotRoster
from ludus.evaluation.stepping import make_playing_stepper
from ludus.league.payoffs import Record

_STREAM_GAMES = 0x7A11  # seeds of batches
_STREAM_AGENT = 0x7A12  # seeds of the actions that agents draw


def check_two_sides(spec: EnvSpec) -> None:
    """Raises ConfigError unless a world is one in which two sides play and one of them wins."""
    sides = len(set(spec.teams))
    if sides != 2 or "wins" not in spec.events:
        raise ConfigError(
            f"a tournament needs two sides and a winner; {spec.id} has {sides} side{'s' if sides > 1 else ''} and "
            f"{'winners' if 'wins' in spec.events else 'no winners'}; compare its agents by ludus benchmark --against"
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Where and how players meet.

    Attributes:
        world: Where.
        players: All of them.
        device: Where the games are, and all agents.
        config: Settings of the world; the plain ones if None.
        seed: Of everything.
        deterministic: Whether agents take the most likely action.
        max_games: Most games in a batch.
    """

    world: str
    players: Sequence[Contender]
    device: torch.device | str = "cpu"
    config: Mapping[str, Any] | None = None
    seed: int = 0
    deterministic: bool = False
    max_games: int = MOST_GAMES

    def play(
        self,
        pairs: Sequence[tuple[int, int]],
        matches: int,
        *,
        occasion: int = 0,
        progress: ShareDone = lambda _: None,
    ) -> list[Record]:
        """Plays pairs of players and returns the record of each, from the side of its first.

        Args:
            pairs: Two different places in `players` each.
            matches: Of each pair; in every second one the first player sits on the other side.
            occasion: A number that makes the matches other ones than those of another occasion.
            progress: Is told the share that is done.

        Raises:
            ConfigError: `matches` is below 1, or the world has not two sides and a winner.
        """
        if matches < 1:
            raise ConfigError(f"matches must be at least 1, got {matches}")
        total = len(pairs) * matches
        if total == 0:
            return []
        seed = stream_hash(self.seed, occasion, _STREAM_GAMES)
        with make_env(self.world, min(total, self.max_games), self.device, seed=seed, config=self.config) as env:
            check_two_sides(env.spec)
            batches = math.ceil(total / env.num_games)
            both = [
                self._play_batch(env, pairs, matches, batch, seed, partial(_tell, progress, batch, batches))
                for batch in range(batches)
            ]
        won, lost = (torch.cat(parts)[:total].view(len(pairs), matches) for parts in zip(*both, strict=True))
        counts = torch.stack([won.sum(1), (~won & ~lost).sum(1), lost.sum(1)], dim=1).tolist()
        return [Record(*row) for row in counts]

    def _play_batch(
        self,
        env: BatchedEnv,
        pairs: Sequence[tuple[int, int]],
        matches: int,
        batch: int,
        seed: int,
        progress: ShareDone,
    ) -> tuple[Tensor, Tensor]:
        """Returns `(games,)` bool twice, on the host: whether the first of the pair won, and whether it lost."""
        place = batch * env.num_games + torch.arange(env.num_games, device=env.device)
        counted = place < len(pairs) * matches
        players = torch.tensor(pairs, device=env.device)[(place // matches).clamp(max=len(pairs) - 1)]
        swapped = place % matches % 2 == 1
        by_side = torch.where(swapped.unsqueeze(1), players.flip(1), players)
        sides = sorted(set(env.spec.teams))
        side_of_seat = torch.tensor([sides.index(team) for team in env.spec.teams], device=env.device)
        seating = torch.where(counted.unsqueeze(1), by_side[:, side_of_seat], -1)
        heads = [env.spec.teams.index(side) for side in sides]
        wins = torch.zeros((env.num_games, 2), dtype=torch.bool, device=env.device)

        def watch(result: StepResult, playing: Tensor) -> None:
            wins.logical_or_((result.events["wins"][:, heads] > 0) & playing.unsqueeze(1))

        match_seed = stream_hash(seed, batch, _STREAM_GAMES)
        actors = self._seat(env, seating, stream_hash(seed, batch, _STREAM_AGENT))
        play_first_matches(env, actors, watch, seed=match_seed, counted=counted, progress=progress)
        from_first = torch.where(swapped.unsqueeze(1), wins.flip(1), wins).cpu()
        return from_first[:, 0], from_first[:, 1]

    def _seat(self, env: BatchedEnv, seating: Tensor, seed: int) -> list[Leaving]:
        """Seats one roster for all bots, and every agent that has games here; `seating` `(games, seats)` is who."""
        actors: list[Leaving] = []
        bots = [place for place, player in enumerate(self.players) if player.policy is None]
        if bots:
            numbers = torch.full((len(self.players) + 1,), -1, dtype=torch.int32, device=env.device)
            numbers[bots] = torch.arange(len(bots), dtype=torch.int32, device=env.device)
            # Seats that nobody plays have -1, which is the last entry.
            actors.append(BotRoster(env, [self.players[place].name for place in bots], numbers[seating]))
        for place, player in enumerate(self.players):
            seats = seating == place
            if player.policy is None or not bool(seats.any()):
                continue
            stepper = None if self.deterministic else make_playing_stepper(player.policy, int(seats.sum()))
            actors.append(
                AgentPlayer(
                    env,
                    seats,
                    player.policy,
                    seed=stream_hash(seed, place),
                    deterministic=self.deterministic,
                    stepper=stepper,
                )
            )
        return actors


def _tell(progress: ShareDone, done: int, batches: int, share: float) -> None:
    progress((done + share) / batches)
