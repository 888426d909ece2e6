"""One game between players, frame by frame, recorded: what is shown in a window or filmed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.base import BatchedEnv, StepResult, action_dtypes
from ludus.envs.behaviour import behaviour_of
from ludus.envs.registry import registered_envs
from ludus.envs.replay import Replay, ReplayRecorder
from ludus.envs.stage import Painter
from ludus.evaluation.players import AgentPlayer, Player
from ludus.rewards.moment import Moment

_GOALS, _GOAL_EVENT = "goals", "team_goals"
_MOST_NUMBERS = 7  # of an outcome that are said; a world gives those first that matter most


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a match ended.

    Attributes:
        winner: Side of the winner, or None for a draw; a team is one side, a seat without teammates too.
        steps: Steps that it took.
        measures: For each measure, its last value a side, of its first seat; and goals where they are counted.
        numbers: Behaviour numbers of who played alone.
        cut_off: Whether time was up before the game was over by its own rules.
        seconds: Game time that it took.
    """

    winner: int | None
    steps: int
    measures: Mapping[str, tuple[float, ...]]
    numbers: Mapping[str, float] = field(default_factory=dict)
    cut_off: bool = False
    seconds: float = 0.0

    def describe(self, names: Sequence[str]) -> str:
        """Says it in words, such as `anna beats bert, stocks 2:0, damage 31:0, 1402 steps`.

        Args:
            names: Of the sides.
        """
        if len(names) == 1:
            numbers = [f"{name} {value:.2f}" for name, value in list(self.numbers.items())[:_MOST_NUMBERS]]
            return ", ".join([f"{names[0]}: {self.steps} steps", *numbers])
        if self.winner is None:
            said = f"{' and '.join(names)} draw"
        else:
            losers = [name for side, name in enumerate(names) if side != self.winner]
            said = f"{names[self.winner]} beats {' and '.join(losers)}"
        scores = [
            f"{name} {':'.join(f'{value:.0f}' for value in self.measures[name])}"
            for name in (_GOALS, "stocks", "damage")
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
        teams = env.spec.teams
        self._firsts = tuple(teams.index(team) for team in dict.fromkeys(teams))  # the first seat of each side
        self._goals = torch.zeros(env.spec.seats)
        self._account = _Account(env) if env.spec.seats == 1 else None
        self._is_recorded = env.spec.id in registered_envs()  # others could not be played again
        self._recorder: ReplayRecorder | None = None
        self._is_over = False
        self._episode = 0
        self._earlier: Replay | None = None
        self._begin()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the players by seat."""
        return tuple(player.name for player in self.players)

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of the sides: a player's, or those of a team."""
        teams, names = self.env.spec.teams, self.names
        members = [
            [name for name, team in zip(names, teams, strict=True) if team == teams[seat]] for seat in self._firsts
        ]
        return tuple(" and ".join(dict.fromkeys(side)) for side in members)

    @property
    def steps(self) -> int:
        """Steps of the current match so far."""
        return self._steps

    def tell(self, painter: Painter) -> None:
        """Lets a painter that wants to know hear what the player of the first seat thinks, if that is an agent."""
        player = self.players[0]
        if painter.hears and isinstance(player, AgentPlayer):
            player.hear = painter.hear

    def step(self) -> Outcome | None:
        """Plays one frame; returns how the match ended if it did, after which `restart` begins the next."""
        if self._is_over:
            raise ConfigError("the match is over; call restart")
        for player in self.players:
            player.act(self._observations, self._actions, first=self._steps == 0)
        result = self.env.step(self._actions)
        if self._recorder is not None:
            self._recorder.record(self._actions, result)
        if self._account is not None:
            self._account.add(result)
        if _GOAL_EVENT in result.events:
            self._goals += result.events[_GOAL_EVENT][0].cpu()
        self._observations = result.observations
        self._steps += 1
        self._is_over = bool(result.ended[0])
        return self._outcome(result) if self._is_over else None

    def restart(self) -> None:
        """Begins the next match, whether or not the current one is over."""
        if self._steps > 0 and self._recorder is not None:
            self._earlier = self._recorder.replay()
        if not self._is_over:  # a game that ended has begun anew by itself
            self._observations = self.env.reset()
        self._episode += 1
        self._begin()

    def replay(self) -> Replay | None:
        """Returns the recording of the current match, or of the one before if nothing was played yet.

        Raises:
            UnsupportedError: The world is not registered.
        """
        if self._recorder is None:
            raise UnsupportedError(f"{self.env.spec.id} is not registered, so a replay of it could not be played again")
        return self._recorder.replay() if self._steps > 0 else self._earlier

    def _begin(self) -> None:
        self._steps, self._is_over = 0, False
        self._goals.zero_()
        self._recorder = (
            ReplayRecorder(self.env, 0, episode=self._episode, players=self.names) if self._is_recorded else None
        )
        if self._account is not None:
            self._account.clear()

    def _outcome(self, result: StepResult) -> Outcome:
        wins = result.events["wins"][0].tolist() if "wins" in result.events else []
        winner = next((side for side, seat in enumerate(self._firsts) if wins and wins[seat] > 0), None)
        measures = {name: self._by_side(rows[0].tolist()) for name, rows in result.measures.items()}
        if _GOAL_EVENT in result.events:
            measures[_GOALS] = self._by_side(self._goals.tolist())
        numbers = {} if self._account is None else self._account.numbers(self._steps)
        seconds = self._steps / self.env.spec.rate_hz
        return Outcome(winner, self._steps, measures, numbers, cut_off=bool(result.truncated[0]), seconds=seconds)

    def _by_side(self, values: Sequence[float]) -> tuple[float, ...]:
        return tuple(values[seat] for seat in self._firsts)


class _Account:
    """Adds up what the behaviour numbers of a world are made of, over one episode of its only seat."""

    def __init__(self, env: BatchedEnv) -> None:
        self._behaviour, self._rate_hz = behaviour_of(env.spec.id), env.spec.rate_hz
        self._sums: dict[str, float] = {}

    def clear(self) -> None:
        """Begins with nothing."""
        self._sums = {}

    def add(self, result: StepResult) -> None:
        """Adds a step."""
        moment = Moment(result.events, result.measures, 1.0 / self._rate_hz)
        for name, rows in self._behaviour.per_step(moment).items():
            self._sums[name] = self._sums.get(name, 0.0) + float(rows[0, 0])

    def numbers(self, steps: int) -> dict[str, float]:
        """Returns the numbers of an episode of so many steps."""
        sums = {name: np.array([value]) for name, value in self._sums.items()}
        numbers = self._behaviour.per_episode(sums, np.array([steps]), self._rate_hz)
        return {name: float(values[0]) for name, values in numbers.items()}
