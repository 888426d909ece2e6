"""Evaluation of an agent: hundreds of matches against every opponent, both sides, in as few batches as possible."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.core.random import stream_hash
from ludus.envs.base import BatchedEnv
from ludus.envs.behaviour import behaviour_of
from ludus.envs.overrides import with_overrides
from ludus.envs.registry import make_env
from ludus.envs.trials import choose_trials, laid_over
from ludus.evaluation.contenders import Contender, find_contenders
from ludus.evaluation.first_matches import Leaving, ShareDone, play_first_matches
from ludus.evaluation.hindrances import Hindrance, hinder
from ludus.evaluation.players import AgentPlayer, BotRoster
from ludus.evaluation.stepping import make_playing_stepper
from ludus.evaluation.tally import Matches, Row, Tally, join, table_row
from ludus.policies.agent import Agent
from ludus.policies.policy import Policy

MOST_GAMES = 4_096  # in one batch, unless the caller says otherwise

_STREAM_GAMES = 0x9A3E  # seeds of later batches
_STREAM_AGENT = 0xA9E7  # seeds of the actions that agents draw
_STREAM_HINDRANCE = 0x41D2  # seeds of the noise that agents see


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How an agent did.

    Attributes:
        world: Where.
        rows: For each opponent its name (empty in a world of one team), or for each `trial` its name; where there are
            modes the `mode`, and where teams are unequal a row for each `side`, such as `2v1`; and the numbers:
            `matches`; where there are winners `wins`, `draws`, `losses`, `win_rate` with `win_rate_low` and
            `win_rate_high`; where there is a reward `mean_return` likewise; `mean_length` likewise; and the agent's
            behaviour.
        seconds: Time it took.
        mode: Sizes of the teams, as `EnvSpec.mode` names them; empty where there were several modes.
    """

    world: str
    rows: tuple[Row, ...]
    seconds: float
    mode: str = ""

    @property
    def mean_win_rate(self) -> float | None:
        """Mean of the win rates, every row counted alike; None in a world without winners.

        Like all means, it is that of the first trial alone where there are trials.
        """
        return self._mean("win_rate")

    @property
    def mean_return(self) -> float | None:
        """Mean of the returns, every opponent counted alike; None in a world without a reward of its own."""
        return self._mean("mean_return")

    @property
    def score(self) -> float:
        """By which agents are compared: the mean win rate, else the mean return, else the mean length."""
        return self.mean(self.judged_by)

    @property
    def judged_by(self) -> str:
        """The number that `score` is made of."""
        return next(name for name in ("win_rate", "mean_return", "mean_length") if name in self.rows[0])

    def mean(self, name: str) -> float:
        """Returns the mean of any number, every opponent counted alike; that of the first trial if there are trials.

        Raises:
            UnknownNameError: The rows have no such number; the valid ones are listed.
        """
        mean = self._mean(name)
        if mean is None:
            valid = [key for key, value in self.rows[0].items() if not isinstance(value, str)]
            raise UnknownNameError("number of an evaluation", name, valid)
        return mean

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values; None stands where an interval is infinite."""
        rows = [
            {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            for row in self.rows
        ]
        return {
            "world": self.world,
            "opponents": rows,
            "mean_win_rate": self.mean_win_rate,
            "mean_return": self.mean_return,
            "seconds": self.seconds,
        }

    def _mean(self, name: str) -> float | None:
        judged = self.rows[:1] if "trial" in self.rows[0] else self.rows
        values = [row[name] for row in judged if not isinstance(row.get(name, ""), str)]
        return sum(values) / len(values) if values else None


def evaluate(
    player: Agent | Policy,
    opponents: Sequence[str | Contender] | None = None,
    *,
    trials: Sequence[str] | None = None,
    modes: Mapping[str, Mapping[str, Any]] | None = None,
    world: str | None = None,
    matches: int = 400,
    seed: int = 0,
    device: str | torch.device | None = None,
    config: Mapping[str, Any] | None = None,
    deterministic: bool = False,
    max_games: int = MOST_GAMES,
    progress: ShareDone = lambda _: None,
) -> Evaluation:
    """Plays an agent against every opponent, or in every trial; equal seeds give equal numbers on the CPU.

    Args:
        player: The agent, or a policy that is being trained; its statistics do not change.
        opponents: Bots, folders of agents, or contenders; every bot of the world if None.
        trials: Names of trials, in a world of one team that has some; all of them if None, and none but the settings
            as they are if empty.
        modes: Named settings in the place of the others', in each of which all matches are played; None plays in the
            settings as they are.
        world: Where to play; the agent's own world if None.
        matches: Against each opponent in each mode, half of them on either side; episodes in each trial.
        seed: Of everything.
        device: Where to play; where the agent is if None.
        config: Settings of the world; those that the agent was trained with if None.
        deterministic: Whether the agents (not the bots) take the most likely action instead of drawing one.
        max_games: Most games in a batch; more matches are played in several batches.
        progress: Is told the share that is done.

    Raises:
        ConfigError: An opponent is unknown, a number is out of range, or there are trials where there cannot be.
        UnknownNameError: A trial is unknown.
        CheckpointError: The folder of an opponent holds no agent.
        StateError: The agent, or an opponent's, is for another world.
    """
    if max_games < 1:
        raise ConfigError(f"max_games must be at least 1, got {max_games}")
    policy = player.policy if isinstance(player, Agent) else player
    place = policy.device if device is None else device
    world = policy.spec.id if world is None else world
    if config is None and isinstance(player, Agent):
        config = player.settings or None
    has_one_team = len(set(policy.spec.teams)) == 1
    if trials and not has_one_team:
        raise ConfigError(f"{world} is played against opponents and has no trials, got {', '.join(trials)}")
    chosen = choose_trials(world, trials) if has_one_team else {}
    if modes and chosen:
        raise ConfigError(f"{world} is played in its trials, got the modes {', '.join(modes)}; leave one of them out")

    def play(settings: Mapping[str, Any] | None, tell: ShareDone) -> Evaluation:
        named = opponents
        if named is None:
            with make_env(world, 1, place, config=settings) as env:
                named = env.spec.bots if len(set(env.spec.teams)) > 1 else ()
        games = min(max(len(named), 1) * matches, max_games, policy.spec.max_games or max_games)
        with make_env(world, max(games, 1), place, seed=seed, config=settings) as env:
            if isinstance(player, Agent):
                player.check_world(env.spec)
            found = find_contenders(named, env)
            duels = Duels(env, found, matches=matches, seed=seed, deterministic=deterministic)
            return duels.play(policy, progress=tell)

    kind, variants = ("trial", chosen) if chosen else ("mode", dict(modes or {}))
    if not variants:
        return play(config, progress)
    parts = []
    for index, over in enumerate(variants.values()):
        settings = laid_over(config, over) if chosen else with_overrides(world, config or {}, over)
        parts.append(play(settings or None, partial(_tell, progress, index, len(variants))))
    return _joined(kind, dict(zip(variants, parts, strict=True)))


def _joined(kind: str, parts: Mapping[str, Evaluation]) -> Evaluation:
    """Puts the rows of several trials or modes below each other, all with the same columns."""
    has_sides = any("side" in row for part in parts.values() for row in part.rows)
    rows: list[Row] = []
    for name, part in parts.items():
        for row in part.rows:
            side = {"side": row.get("side", "")} if has_sides else {}
            rows.append({"opponent": row["opponent"], kind: name} | side | row)
    return Evaluation(next(iter(parts.values())).world, tuple(rows), sum(part.seconds for part in parts.values()))


class Duels:
    """Matches of agents against fixed opponents with fixed seeds, on games that can be used again and again.

    Every opponent gets as many games; in half of them the agent sits on the first team's side, in the other half on
    the other's. It plays all seats of its team, and the opponent all seats of the others. Where teams are unequal, each
    side has a row of its own. The games of all opponents lie side by side in the batch.
    """

    def __init__(
        self,
        env: BatchedEnv,
        opponents: Sequence[Contender],
        *,
        matches: int = 400,
        seed: int = 0,
        deterministic: bool = False,
        hindrance: Hindrance | None = None,
    ) -> None:
        """Takes what all evaluations have in common.

        Args:
            env: Games that nobody else plays; as many as fit into one batch.
            opponents: Who is played against; nobody in a world of one team.
            matches: Against each.
            seed: Of everything.
            deterministic: Whether agents take the most likely action.
            hindrance: What makes it harder for the agent that is evaluated; nothing if None.

        Raises:
            ConfigError: There are no opponents where there must be, or some where there cannot be.
        """
        if matches < 1:
            raise ConfigError(f"matches must be at least 1, got {matches}")
        alone = len(set(env.spec.teams)) == 1
        if not alone and not opponents:
            bots = ", ".join(env.spec.bots) or "none, so name the folder of an agent"
            raise ConfigError(f"{env.spec.id} is played against somebody: name an opponent; its bots: {bots}")
        if alone and opponents:
            names = ", ".join(opponent.name for opponent in opponents)
            raise ConfigError(f"{env.spec.id} has one team, so nobody can be played against; got {names}")
        self._env, self._opponents, self._matches = env, tuple(opponents), matches
        self._seed, self._deterministic, self._hindrance = seed, deterministic, hindrance
        self._names = tuple(opponent.name for opponent in opponents) or ("",)
        self._behaviour = behaviour_of(env.spec.id)

    def play(self, policy: Policy, *, progress: ShareDone = lambda _: None) -> Evaluation:
        """Plays all matches.

        Args:
            policy: The agent, on the device of the games. Neither it nor its statistics change.
            progress: Is told the share that is done.
        """
        started_s = time.perf_counter()
        matches, spec = self.play_matches(policy, progress=progress), self._env.spec
        rows: list[Row] = []
        for index, name in enumerate(self._names):
            sides = matches.of(index).by_side(spec)
            for side, played in sides.items():
                told = {"opponent": name, "side": side} if len({spec.side(team) for team in spec.teams}) > 1 else {}
                rows.append(told | table_row(name, played, self._behaviour, spec.rate_hz))
        return Evaluation(spec.id, tuple(rows), time.perf_counter() - started_s, spec.mode)

    def play_matches(self, policy: Policy, *, progress: ShareDone = lambda _: None) -> Matches:
        """Plays all matches like `play`, and returns each of them instead of a table."""
        batches = math.ceil(len(self._names) * self._matches / self._env.num_games)
        return join(
            [self._play_batch(policy, batch, partial(_tell, progress, batch, batches)) for batch in range(batches)]
        )

    def _play_batch(self, policy: Policy, batch: int, progress: ShareDone) -> Matches:
        env = self._env
        place = batch * env.num_games + torch.arange(env.num_games, device=env.device)
        opponents = place // self._matches  # of each game; beyond the last one where a batch is not full
        counted = opponents < len(self._names)
        teams = torch.tensor(env.spec.teams, device=env.device)
        sides = torch.tensor(sorted(set(env.spec.teams)), device=env.device)
        own_team = sides[place % self._matches % len(sides)]
        seats = (teams == own_team.unsqueeze(1)) & counted.unsqueeze(1)
        tally = Tally(env, seats, self._behaviour)
        noise_seed = stream_hash(self._seed, batch, _STREAM_HINDRANCE)
        agent = hinder(self._seat_agent(policy, seats, batch, -1), self._hindrance, noise_seed, env.device)
        others = self._seat_opponents(opponents, counted.unsqueeze(1) & ~seats, batch)
        seed = self._seed if batch == 0 else stream_hash(self._seed, batch, _STREAM_GAMES)
        steps = play_first_matches(env, [agent, *others], tally, seed=seed, counted=counted, progress=progress)
        return tally.matches(opponents, steps)

    def _seat_opponents(self, opponents: Tensor, seats: Tensor, batch: int) -> list[Leaving]:
        """Seats one roster for all bots, and every agent that has games in this batch."""
        actors: list[Leaving] = []
        bots = [index for index, contender in enumerate(self._opponents) if contender.policy is None]
        if bots:
            numbers = torch.full((len(self._opponents) + 1,), -1, dtype=torch.int32, device=self._env.device)
            numbers[bots] = torch.arange(len(bots), dtype=torch.int32, device=self._env.device)
            played = numbers[opponents.clamp(max=len(self._opponents))].unsqueeze(1)
            names = [self._opponents[index].name for index in bots]
            actors.append(BotRoster(self._env, names, torch.where(seats, played, -1)))
        for index, contender in enumerate(self._opponents):
            own = seats & (opponents == index).unsqueeze(1)
            if contender.policy is not None and bool(own.any()):
                actors.append(self._seat_agent(contender.policy, own, batch, index))
        return actors

    def _seat_agent(self, policy: Policy, seats: Tensor, batch: int, number: int) -> AgentPlayer:
        return AgentPlayer(
            self._env,
            seats,
            policy,
            seed=stream_hash(self._seed, batch, number, _STREAM_AGENT),
            deterministic=self._deterministic,
            stepper=None if self._deterministic else make_playing_stepper(policy, int(seats.sum())),
        )


def _tell(progress: ShareDone, done: int, batches: int, share: float) -> None:
    progress((done + share) / batches)
