"""Play matches: the loop in which all actors play, and any pairs of players side by side in as few batches as possible.

Only the first match of a game counts. Counting every match that ends within some time
would count short matches, which are often the decided ones, more often than long ones.
"""

import itertools
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.random import stream_hash
from ludus.envs.base import BatchedEnv, EnvSpec, Observations, StepResult, action_dtypes
from ludus.envs.registry import make_env
from ludus.evaluation.players import Actor, BatchActor, Player, games_at_once, seat_in_batch, with_losses
from ludus.league.payoffs import Record

MAX_ENVS = 4_096  # default size of a batch

StepCallback: TypeAlias = Callable[[StepResult, Tensor], None]
"""Called with every step, and `(games,)` bool: the games whose first match it belongs to."""
Progress: TypeAlias = Callable[[float], None]
"""Called with the fraction of the work that is done, 0 to 1."""

_CHECK_EVERY = 16  # steps between queries of the device, each of which waits for it
_DROP_BELOW = 0.75  # drop finished games when fewer than this fraction of the seated ones is left
_MAX_STEPS = 27_000  # of a match in a world without a step limit

_STREAM_GAMES = 0x7A11  # seeds of batches
_STREAM_AGENT = 0x7A12  # seeds of the agents' sampled actions

logger = logging.getLogger(__name__)


def play_steps(
    env: BatchedEnv,
    actors: Sequence[Actor],
    observations: Observations,
    on_decision: Callable[[Observations, Tensor], None] | None = None,
) -> Iterator[tuple[Tensor, StepResult]]:
    """Let actors play, step by step and without an end: the one loop of evaluations, live matches and recordings.

    Args:
        env: The games.
        actors: Together they play all seats that matter; they forget before the first step.
        observations: What the seats see now.
        on_decision: Called with what the seats see and what they do, before the step overwrites both.

    Yields:
        The actions `(games, seats, ...)` and the result of a step.
    """
    actions = no_actions(env)
    for number in itertools.count():
        for actor in actors:
            actor.act(observations, actions, first=number == 0)
        if on_decision is not None:
            on_decision(observations, actions)
        result = env.step(actions)
        yield actions, result
        observations = result.observations


def no_actions(env: BatchedEnv) -> Tensor:
    """Return actions `(games, seats, ...)` of 0."""
    space = env.spec.action_space
    shape = (env.num_envs, env.spec.seats, *(space.shape or ()))
    return torch.zeros(shape, dtype=action_dtypes(space)[0], device=env.device)


def play_first_matches(
    env: BatchedEnv,
    actors: Sequence[BatchActor],
    on_step: StepCallback,
    *,
    seed: int,
    counted: Tensor | None = None,
    progress: Progress = lambda _: None,
) -> Tensor:
    """Play every game from its start until its first match is over.

    Args:
        env: The games; they are reset with `seed`.
        actors: Together they play all seats of the games that count.
        on_step: Called with every step.
        seed: Seed of the games.
        counted: `(games,)` bool, games that count; all if None.
        progress: Called now and then.

    Returns:
        Length of each match in steps, `(games,)` int64; 0 where none was played. Games of a world without a step limit
        are cut off after 27,000 steps, with a warning.
    """
    everyone = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
    playing = everyone if counted is None else counted.clone()
    steps = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
    limit = env.spec.step_limit or _MAX_STEPS
    total = left = seated = int(playing.sum())
    played = play_steps(env, actors, env.reset(seed=seed))
    for step, (_, result) in enumerate(itertools.islice(played, limit)):
        asks = step % _CHECK_EVERY == _CHECK_EVERY - 1 or step == limit - 1
        if asks or env.device.type == "cpu":
            result = with_losses(env, result, actors)
        on_step(result, playing)
        steps += playing
        playing &= ~result.ended
        if asks:
            left = int(playing.sum())
            progress(max(1.0 - left / total, (step + 1) / limit))
            if left == 0:
                break
            # A large batch costs a GPU hardly more than a small one, and its graphs have a fixed size.
            if env.device.type == "cpu" and left < _DROP_BELOW * seated:
                seated = left
                for actor in actors:
                    actor.keep(playing)
    if left:
        logger.warning("[WARN] %d of %d matches were cut off after %d steps", left, total, limit)
    return steps


def check_two_sides(spec: EnvSpec) -> None:
    """Raise ConfigError unless two sides play in a world and one of them wins."""
    sides = len(set(spec.teams))
    if sides != 2 or "wins" not in spec.events:
        raise ConfigError(
            f"a tournament needs two sides and a winner; {spec.id} has {sides} side{'s' if sides > 1 else ''} and "
            f"{'winners' if 'wins' in spec.events else 'no winners'}; compare its agents by ludus benchmark --against"
        )


@dataclass(frozen=True, slots=True)
class MatchSchedule:
    """Plays matches between pairs of players, each player equally often on either side.

    Attributes:
        world: The world.
        players: All players.
        device: Device of the games and of all agents.
        config: Settings of the world; its defaults if None.
        seed: Seed of everything.
        deterministic: Whether agents take the most likely action.
        max_envs: Largest batch.
        faults: Why agents have lost matches other than by the rules, as keys; those of this process.
    """

    world: str
    players: Sequence[Player]
    device: torch.device | str = "cpu"
    config: Mapping[str, Any] | None = None
    seed: int = 0
    deterministic: bool = False
    max_envs: int = MAX_ENVS
    faults: dict[str, None] = field(default_factory=dict, compare=False, kw_only=True)

    def play(
        self,
        pairs: Sequence[tuple[int, int]],
        matches: int,
        *,
        round_number: int = 0,
        progress: Progress = lambda _: None,
    ) -> list[Record]:
        """Play pairs of players and return the record of each from the side of its first player.

        Args:
            pairs: Two different indices into `players` each.
            matches: Matches per pair; the players switch sides after every match.
            round_number: Part of the seed, so that the same pair plays other matches in another round.
            progress: Called with the fraction that is done.

        Raises:
            ConfigError: `matches` is below 1, or the world does not have two sides and a winner.
        """
        if matches < 1:
            raise ConfigError(f"matches must be at least 1, got {matches}")
        total = len(pairs) * matches
        if total == 0:
            return []
        sized = replace(self, max_envs=self._games())
        batches = range(math.ceil(total / min(total, sized.max_envs)))
        both = sized.play_batches(pairs, matches, batches, round_number=round_number, progress=progress)
        won, lost = (torch.cat(parts)[:total].view(len(pairs), matches) for parts in zip(*both, strict=True))
        counts = torch.stack([won.sum(1), (~won & ~lost).sum(1), lost.sum(1)], dim=1).tolist()
        return [Record(*row) for row in counts]

    def _games(self) -> int:
        """Return how many games a batch may have: an agent from a file may not take all memory."""
        if not any(player.policy is not None for player in self.players):
            return self.max_envs
        with make_env(self.world, 1, self.device, config=self.config) as env:
            return games_at_once((player.policy for player in self.players), env.spec.seats, self.max_envs)

    def play_batches(
        self,
        pairs: Sequence[tuple[int, int]],
        matches: int,
        numbers: Sequence[int],
        *,
        round_number: int = 0,
        progress: Progress = lambda _: None,
    ) -> list[tuple[Tensor, Tensor]]:
        """Play some of the batches of `play`; each has its own seeds, so that it does not matter where.

        Returns:
            For each batch `(games,)` bool twice, on the host: whether the first of the pair won, and whether it lost.
        """
        seed, games = stream_hash(self.seed, round_number, _STREAM_GAMES), min(len(pairs) * matches, self.max_envs)
        with make_env(self.world, games, self.device, seed=seed, config=self.config) as env:
            check_two_sides(env.spec)
            return [
                self._play_batch(env, pairs, matches, number, seed, partial_progress(progress, place, len(numbers)))
                for place, number in enumerate(numbers)
            ]

    def _play_batch(
        self,
        env: BatchedEnv,
        pairs: Sequence[tuple[int, int]],
        matches: int,
        batch: int,
        seed: int,
        progress: Progress,
    ) -> tuple[Tensor, Tensor]:
        """Return `(games,)` bool twice, on the host: whether the first of the pair won, and whether it lost."""
        number = batch * env.num_envs + torch.arange(env.num_envs, device=env.device)
        counted = number < len(pairs) * matches
        swapped = number % matches % 2 == 1
        sides = sorted(set(env.spec.teams))
        seating = torch.where(counted.unsqueeze(1), self._seating(env.spec, pairs, number // matches, swapped), -1)
        leaders = [env.spec.teams.index(side) for side in sides]
        wins = torch.zeros((env.num_envs, 2), dtype=torch.bool, device=env.device)

        def count_wins(result: StepResult, playing: Tensor) -> None:
            wins.logical_or_((result.events["wins"][:, leaders] > 0) & playing.unsqueeze(1))

        match_seed = stream_hash(seed, batch, _STREAM_GAMES)
        agent_seed = partial(stream_hash, stream_hash(seed, batch, _STREAM_AGENT))
        actors = seat_in_batch(env, self.players, seating, agent_seed, deterministic=self.deterministic, may_lose=True)
        play_first_matches(env, actors, count_wins, seed=match_seed, counted=counted, progress=progress)
        self.faults.update(dict.fromkeys(actor.fault.reason for actor in actors if actor.fault is not None))
        from_first = torch.where(swapped.unsqueeze(1), wins.flip(1), wins).cpu()
        return from_first[:, 0], from_first[:, 1]

    def _seating(self, spec: EnvSpec, pairs: Sequence[tuple[int, int]], pair: Tensor, swapped: Tensor) -> Tensor:
        """Return `(games, seats)` indices into `players`; `pair` `(games,)` is each game's index into `pairs`."""
        players = torch.tensor(pairs, device=pair.device)[pair.clamp(max=len(pairs) - 1)]
        by_side = torch.where(swapped.unsqueeze(1), players.flip(1), players)
        sides = sorted(set(spec.teams))
        return by_side[:, torch.tensor([sides.index(team) for team in spec.teams], device=pair.device)]


def partial_progress(progress: Progress, done: int, parts: int) -> Progress:
    """Return the progress callback of one of several equal parts of the work."""
    return lambda fraction: progress((done + fraction) / parts)
