"""One game between players, step by step and recorded, for a window or a video."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ludus.core.errors import AgentError, ConfigError, UnsupportedError
from ludus.envs.base import BatchedEnv, StepResult
from ludus.envs.display import Painter
from ludus.envs.registry import is_registered
from ludus.envs.replay import Replay, ReplayRecorder
from ludus.envs.world_parts import metrics_of
from ludus.evaluation.matches import play_steps
from ludus.evaluation.players import AgentPlayer, NamedActor, with_losses
from ludus.rewards.step_info import StepInfo

_GOALS, _GOAL_EVENT = "goals", "team_goals"
_MAX_NUMBERS = 7  # of a description; worlds list the most important first


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a match.

    Attributes:
        winner: Index of the winning side, or None for a draw; a side is a team or a single seat.
        steps: Length in steps.
        measures: Last value of each state metric, per side (of its first seat); and goals where they are counted.
        numbers: Episode metrics of who played alone.
        truncated: Whether the time limit ended it.
        seconds: Length in game time.
        reason: Why it ended other than by the rules: an agent was too slow, or decided NaN.
    """

    winner: int | None
    steps: int
    state_metrics: Mapping[str, tuple[float, ...]]
    numbers: Mapping[str, float] = field(default_factory=dict)
    truncated: bool = False
    seconds: float = 0.0
    reason: str = ""

    def describe(self, names: Sequence[str]) -> str:
        """Return a description, such as `anna beats bert, stocks 2:0, damage 31:0, 1402 steps`.

        Args:
            names: Names of the sides.
        """
        if len(names) == 1:
            numbers = [f"{name} {value:.2f}" for name, value in list(self.numbers.items())[:_MAX_NUMBERS]]
            return ", ".join([f"{names[0]}: {self.steps} steps", *numbers])
        if self.winner is None:
            said = f"{' and '.join(names)} draw"
        else:
            losers = [name for side, name in enumerate(names) if side != self.winner]
            said = f"{names[self.winner]} beats {' and '.join(losers)}"
        scores = [
            f"{name} {':'.join(f'{value:.0f}' for value in self.state_metrics[name])}"
            for name in (_GOALS, "stocks", "damage")
            if name in self.state_metrics
        ]
        return ", ".join([said, *scores, f"{self.steps} steps", *([self.reason] if self.reason else [])])


class LiveMatch:
    """Plays matches on a batch of one game and records the current one.

    Attributes:
        is_recorded: Whether the world can be replayed, so that matches are recorded.
    """

    def __init__(self, env: BatchedEnv, players: Sequence[NamedActor]) -> None:
        if env.num_envs != 1:
            raise ConfigError(f"a live match needs one game, got a batch of {env.num_envs}")
        if len(players) != env.spec.seats:
            raise ConfigError(f"{env.spec.id} has {env.spec.seats} seats, got {len(players)} players")
        self.env, self.players = env, tuple(players)
        self._agents = [player for player in players if isinstance(player, AgentPlayer)]
        self._observations = env.reset(seed=env.seed)
        teams = env.spec.teams
        self._firsts = tuple(teams.index(team) for team in dict.fromkeys(teams))  # the first seat of each side
        self._goals = torch.zeros(env.spec.seats)
        self._episode_sums = _EpisodeSums(env) if env.spec.seats == 1 else None
        self.is_recorded = is_registered(env.spec.id)  # others cannot be replayed
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
        """Names of the sides: of a player, or of all players of a team."""
        teams, names = self.env.spec.teams, self.names
        members = [
            [name for name, team in zip(names, teams, strict=True) if team == teams[seat]] for seat in self._firsts
        ]
        return tuple(" and ".join(dict.fromkeys(side)) for side in members)

    @property
    def steps(self) -> int:
        """Steps of the current match so far."""
        return self._steps

    def send_policy_outputs(self, painter: Painter) -> None:
        """Send the action probabilities and value of the first seat's agent to a painter that shows them."""
        player = self.players[0]
        if painter.shows_policy and isinstance(player, AgentPlayer):
            player.show_policy = painter.show_policy

    def step(self) -> Outcome | None:
        """Play one step; return the outcome if the match ended, after which `restart` starts the next.

        Raises:
            AgentError: An agent's first decision is NaN, or a decision in an earlier match took too long.
        """
        if self._is_over:
            raise ConfigError("the match is over; call restart")
        if self._steps == 0:
            for agent in self._agents:
                if agent.is_overdue and agent.fault is not None:
                    raise AgentError(agent.fault.reason)
        actions, result = next(self._played)
        if self._recorder is not None:
            self._recorder.record(actions, result)
        self._is_reset = bool(result.ended[0])
        result = with_losses(self.env, result, self._agents)
        if self._episode_sums is not None:
            self._episode_sums.add(result)
        if _GOAL_EVENT in result.events:
            self._goals += result.events[_GOAL_EVENT][0].cpu()
        self._observations = result.observations
        self._steps += 1
        self._is_over = bool(result.ended[0])
        return self._outcome(result) if self._is_over else None

    def restart(self) -> None:
        """Start the next match, whether or not the current one is over."""
        if self._steps > 0 and self._recorder is not None:
            self._earlier = self._recorder.replay()
        if not self._is_reset:  # a game that ended has been reset already
            self._observations = self.env.reset()
        self._episode += 1
        self._begin()

    def replay(self) -> Replay | None:
        """Return the recording of the current match, or of the previous one if it has no step yet.

        Raises:
            UnsupportedError: The world is not registered.
        """
        if self._recorder is None:
            raise UnsupportedError(f"{self.env.spec.id} is not registered, so it cannot be replayed")
        return self._recorder.replay() if self._steps > 0 else self._earlier

    def _begin(self) -> None:
        self._steps, self._is_over, self._is_reset = 0, False, False
        self._played: Iterator[tuple[Tensor, StepResult]] = play_steps(self.env, self.players, self._observations)
        self._goals.zero_()
        self._recorder = (
            ReplayRecorder(self.env, 0, episode=self._episode, players=self.names) if self.is_recorded else None
        )
        if self._episode_sums is not None:
            self._episode_sums.clear()

    def _outcome(self, result: StepResult) -> Outcome:
        wins = result.events["wins"][0].tolist() if "wins" in result.events else []
        winner = next((side for side, seat in enumerate(self._firsts) if wins and wins[seat] > 0), None)
        state_metrics = {name: self._by_side(rows[0].tolist()) for name, rows in result.state_metrics.items()}
        if _GOAL_EVENT in result.events:
            state_metrics[_GOALS] = self._by_side(self._goals.tolist())
        numbers = {} if self._episode_sums is None else self._episode_sums.numbers(self._steps)
        seconds = self._steps / self.env.spec.rate_hz
        return Outcome(
            winner, self._steps, state_metrics, numbers, truncated=bool(result.truncated[0]), seconds=seconds,
            reason="; ".join(agent.fault.reason for agent in self._agents if agent.fault is not None),
        )  # fmt: skip

    def _by_side(self, values: Sequence[float]) -> tuple[float, ...]:
        return tuple(values[seat] for seat in self._firsts)


class _EpisodeSums:
    """Sums of the quantities of the world's episode metrics, over one episode of its only seat."""

    def __init__(self, env: BatchedEnv) -> None:
        self._episode_metrics, self._rate_hz = metrics_of(env.spec.id), env.spec.rate_hz
        self._sums: dict[str, float] = {}

    def clear(self) -> None:
        """Start at zero."""
        self._sums = {}

    def add(self, result: StepResult) -> None:
        """Add a step."""
        info = StepInfo(result.events, result.state_metrics, 1.0 / self._rate_hz)
        for name, rows in self._episode_metrics.per_step(info).items():
            self._sums[name] = self._sums.get(name, 0.0) + float(rows[0, 0])

    def numbers(self, steps: int) -> dict[str, float]:
        """Return the metrics of an episode of this many steps."""
        sums = {name: np.array([value]) for name, value in self._sums.items()}
        numbers = self._episode_metrics.per_episode(sums, np.array([steps]), self._rate_hz)
        return {name: float(values[0]) for name, values in numbers.items()}
