"""One game between players, frame by frame, recorded: what is shown in a window or filmed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from ludus.core.errors import ConfigError
from ludus.envs.base import BatchedEnv, StepResult, action_dtypes
from ludus.envs.brawl.env import BrawlEnv
from ludus.envs.registry import make_env
from ludus.envs.replay import Replay, ReplayRecorder
from ludus.evaluation.players import Player


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a match ended.

    Attributes:
        winner: Seat of the winner, or None for a draw.
        steps: Steps that it took.
        measures: For each measure, its last value a seat.
    """

    winner: int | None
    steps: int
    measures: Mapping[str, tuple[float, ...]]

    def describe(self, names: Sequence[str]) -> str:
        """Says it in words, such as `anna beats bert, stocks 2:0, damage 31:0, 1402 steps`."""
        if self.winner is None:
            said = f"{' and '.join(names)} draw"
        else:
            losers = [name for seat, name in enumerate(names) if seat != self.winner]
            said = f"{names[self.winner]} beats {' and '.join(losers)}"
        scores = [
            f"{name} {':'.join(f'{value:.0f}' for value in self.measures[name])}"
            for name in ("stocks", "damage")
            if name in self.measures
        ]
        return ", ".join([said, *scores, f"{self.steps} steps"])


class Exhibition:
    """Plays matches on a batch of one game and records the current one."""

    def __init__(self, env: BatchedEnv, players: Sequence[Player]) -> None:
        if env.num_games != 1:
            raise ConfigError(f"an exhibition is one game, got a batch of {env.num_games}")
        if len(players) != env.spec.seats:
            raise ConfigError(f"{env.spec.id} has {env.spec.seats} seats, got {len(players)} players")
        self.env, self.players = env, tuple(players)
        self._observations = env.reset(seed=env.seed)
        self._actions = torch.zeros(
            (1, env.spec.seats, *(env.spec.action_space.shape or ())), dtype=action_dtypes(env.spec.action_space)[0]
        )
        self._episode = 0
        self._earlier: Replay | None = None
        self._begin()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the players by seat."""
        return tuple(player.name for player in self.players)

    @property
    def steps(self) -> int:
        """Steps of the current match so far."""
        return self._steps

    def step(self) -> Outcome | None:
        """Plays one frame; returns how the match ended if it did, after which `restart` begins the next."""
        if self._recorder.ended:
            raise ConfigError("the match is over; call restart")
        for player in self.players:
            player.act(self._observations, self._actions, first=self._steps == 0)
        result = self.env.step(self._actions)
        self._recorder.record(self._actions, result)
        self._observations = result.observations
        self._steps += 1
        return _outcome(result, self._steps) if self._recorder.ended else None

    def restart(self) -> None:
        """Begins the next match, whether or not the current one is over."""
        if self._steps > 0:
            self._earlier = self._recorder.replay()
        if not self._recorder.ended:  # a game that ended has begun anew by itself
            self._observations = self.env.reset()
        self._episode += 1
        self._begin()

    def replay(self) -> Replay | None:
        """Returns the recording of the current match, or of the one before if nothing was played yet."""
        return self._recorder.replay() if self._steps > 0 else self._earlier

    def _begin(self) -> None:
        self._steps = 0
        self._recorder = ReplayRecorder(self.env, 0, episode=self._episode, players=self.names)


def make_stage(world: str, *, seed: int = 0, left_first: bool = False) -> BatchedEnv:
    """Makes the one game of an exhibition.

    Args:
        world: Where.
        seed: Of the game.
        left_first: Whether the first seat shall start on the left, where a world draws the sides.
    """
    env = make_env(world, seed=seed)
    if left_first and isinstance(env, BrawlEnv) and env.view(0).players[0].x > 0.0:
        env.close()
        return make_env(world, seed=seed, config={"swap_sides": True})
    return env


def _outcome(result: StepResult, steps: int) -> Outcome:
    wins = result.events["wins"][0].tolist() if "wins" in result.events else []
    winner = next((seat for seat, won in enumerate(wins) if won > 0), None)
    return Outcome(winner, steps, {name: tuple(rows[0].tolist()) for name, rows in result.measures.items()})
