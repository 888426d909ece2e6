"""Evaluate an agent: hundreds of matches against every opponent, from both sides, in as few batches as possible."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ludus.core.errors import CheckpointError, ConfigError, UnknownNameError
from ludus.core.random import stream_hash
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import make_env, with_overrides
from ludus.envs.stored import CONFIG_FILE, StoredSettings
from ludus.envs.world_parts import choose_scenarios, merge_settings, metrics_of
from ludus.evaluation.matches import MAX_ENVS, Progress, partial_progress, play_first_matches
from ludus.evaluation.players import (
    Contender,
    Perturbation,
    Player,
    as_player,
    as_players,
    check_registered,
    find_players,
    games_at_once,
    load_agent,
    perturb,
    seat_in_batch,
    seat_policy,
)
from ludus.evaluation.results import MatchResults, MatchStatistics, Row, concatenate, result_row
from ludus.policies.agent import Agent, find_checkpoint
from ludus.policies.policy import Policy
from ludus.policies.shipped import find_agent_path
from ludus.store import load_checkpoint, read_manifest

_CONFIG = "config"  # name of a run's configuration in a checkpoint
_FEW_GAMES = 16  # that cost little, whatever a file says of their size
_STREAM_GAMES = 0x9A3E  # seeds of later batches
_STREAM_AGENT = 0xA9E7  # seeds of the agents' sampled actions
_STREAM_NOISE = 0x41D2  # seeds of the noise on the agent's observations


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Results of an evaluation.

    Attributes:
        world: The world.
        rows: One per opponent (its name is empty in a world of one team) or per `scenario`; per `mode` where there are
            modes, and per `side`, such as `2v1`, where teams are unequal. Columns: `matches`; where there are winners
            `wins`, `draws`, `losses`, `win_rate` with `win_rate_low` and `win_rate_high`; where there is a reward
            `mean_return` likewise; `mean_length` likewise; and the agent's episode metrics; see `result_row`.
        seconds: Wall time.
        mode: Sizes of the teams, as in `EnvSpec.mode`; empty where there were several modes.
        warnings: Caveats about the games; see `BatchedEnv`.
    """

    world: str
    rows: tuple[Row, ...]
    seconds: float
    mode: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def mean_win_rate(self) -> float | None:
        """Mean win rate over all rows with equal weight; None in a world without winners.

        Like all means, it covers only the first scenario where there are scenarios.
        """
        return self._mean("win_rate")

    @property
    def mean_return(self) -> float | None:
        """Mean return over all rows with equal weight; None in a world without its own reward."""
        return self._mean("mean_return")

    @property
    def score(self) -> float:
        """The number agents are ranked by: the mean win rate, else the mean return, else the mean length."""
        return self.mean(self.judged_by)

    @property
    def judged_by(self) -> str:
        """Name of the column of `score`."""
        return next(name for name in ("win_rate", "mean_return", "mean_length") if name in self.rows[0])

    def mean(self, name: str) -> float:
        """Return the mean of any column over all rows with equal weight; of the first scenario where there are some.

        Raises:
            UnknownNameError: The rows have no such number; the valid ones are listed.
        """
        mean = self._mean(name)
        if mean is None:
            valid = [key for key, value in self.rows[0].items() if not isinstance(value, str)]
            raise UnknownNameError("number of an evaluation", name, valid)
        return mean

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values; None stands for an infinite bound of an interval."""
        return {
            "world": self.world,
            "opponents": [_finite(row) for row in self.rows],
            "mean_win_rate": self.mean_win_rate,
            "mean_return": self.mean_return,
            "seconds": self.seconds,
            "warnings": list(self.warnings),
        }

    def _mean(self, name: str) -> float | None:
        judged = self.rows[:1] if "trial" in self.rows[0] else self.rows
        values = [row[name] for row in judged if not isinstance(row.get(name, ""), str)]
        return sum(values) / len(values) if values else None


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def evaluate(
    agent: str | Path | Agent | Policy,
    opponents: Sequence[Contender] | Contender | None = None,
    *,
    scenarios: Sequence[str] | None = None,
    modes: Mapping[str, Mapping[str, Any]] | None = None,
    world: str | None = None,
    matches: int = 400,
    seed: int = 0,
    device: str | torch.device | None = None,
    config: Mapping[str, Any] | None = None,
    deterministic: bool = False,
    max_envs: int = MAX_ENVS,
    progress: Progress = lambda _: None,
) -> Evaluation:
    """Evaluate an agent against opponents or in scenarios; equal seeds give equal numbers on a CPU.

    Args:
        agent: A loaded agent, the folder of a run (its best agent) or of a checkpoint, a file of `ludus export`, the
            name of a shipped agent, or a policy in training, whose normalization statistics do not change.
        opponents: Bots by name, functions or classes that are bots, agents, their paths or names; every bot of the
            world's own if None.
        scenarios: Names of scenarios, in a world of one team that has some; all of them if None. If empty, the world is
            played with its settings as they are.
        modes: Named overrides of the settings, such as `{"2v2": {"blue": 2, "orange": 2}}`; all matches are played
            in each mode.
        world: Where to play; the agent's own world if None.
        matches: Per opponent and mode, half of them from either side; episodes per scenario.
        seed: Seed of everything.
        device: Where to play; for a path `cpu` if None, for a loaded agent its own device.
        config: Settings of the world; those that the agent was trained with if None.
        deterministic: Whether agents take their most likely action instead of sampling.
        max_envs: Largest batch; more matches are played in several batches.
        progress: Called with the fraction that is done.

    Raises:
        ConfigError: There is no such agent or opponent, a number is out of range, or there are scenarios where there
            cannot be.
        UnknownNameError: A scenario is unknown.
        CheckpointError: A file of an agent is damaged, hostile or not an agent's.
        StateError: The agent or an opponent is for another world.
        AgentError: The first decision of one of them is NaN, or it cannot be seated in so many games at once.
    """
    if max_envs < 1:
        raise ConfigError(f"max_envs must be at least 1, got {max_envs}")
    if isinstance(agent, str | Path):
        agent = load_agent(agent, "cpu" if device is None else device)
    if isinstance(agent, Agent):
        check_registered(agent)
        config = config if config is not None else agent.settings or None
    policy = agent.policy if isinstance(agent, Agent) else agent
    named: list[str | Player] | None = None
    if isinstance(opponents, Sequence) and not isinstance(opponents, str):
        named = as_players(opponents)
    elif opponents is not None:
        named = [as_player(opponents)]
    place = policy.device if device is None else device
    world = policy.spec.id if world is None else world
    chosen = _choose_scenarios(world, policy, scenarios, modes)

    def play(settings: Mapping[str, Any] | None, progress: Progress) -> Evaluation:
        against: Sequence[str | Player] | None = named
        most = policy.spec.max_envs or max_envs
        # One game tells whether what a file says of its world is what its settings make, before there are hundreds.
        if against is None or (isinstance(agent, Agent) and matches > _FEW_GAMES):
            with make_env(world, 1, place, config=settings) as env:
                if isinstance(agent, Agent):
                    agent.check_world(env.spec)
                if against is None:
                    against = env.spec.bots if len(set(env.spec.teams)) > 1 else ()
                most = min(most, env.spec.max_envs or most)
        agents = (policy, *(each.policy for each in against if isinstance(each, Player)))
        most = games_at_once(agents, policy.spec.seats, min(max_envs, most))
        games = min(max(len(against), 1) * matches, most)
        with make_env(world, max(games, 1), place, seed=seed, config=settings) as env:
            if isinstance(agent, Agent):
                agent.check_world(env.spec)
            found = find_players(against, env)
            evaluator = PolicyEvaluator(env, found, matches=matches, seed=seed, deterministic=deterministic)
            return evaluator.play(policy, progress=progress)

    kind, variants = ("trial", chosen) if chosen else ("mode", dict(modes or {}))
    if not variants:
        return play(config, progress)
    parts = []
    for index, override in enumerate(variants.values()):
        settings = merge_settings(config, override) if chosen else with_overrides(world, config or {}, override)
        parts.append(play(settings or None, partial_progress(progress, index, len(variants))))
    return _joined(kind, dict(zip(variants, parts, strict=True)))


def _choose_scenarios(
    world: str, policy: Policy, scenarios: Sequence[str] | None, modes: Mapping[str, Mapping[str, Any]] | None
) -> dict[str, Mapping[str, Any]]:
    has_one_team = len(set(policy.spec.teams)) == 1
    if scenarios and not has_one_team:
        raise ConfigError(f"{world} is played against opponents and has no scenarios, got {', '.join(scenarios)}")
    chosen = choose_scenarios(world, scenarios) if has_one_team else {}
    if modes and chosen:
        raise ConfigError(
            f"{world} is played in its scenarios, got the modes {', '.join(modes)}; leave one of them out"
        )
    return chosen


def _joined(kind: str, parts: Mapping[str, Evaluation]) -> Evaluation:
    """Concatenate the rows of several scenarios or modes, all with the same columns."""
    has_sides = any("side" in row for part in parts.values() for row in part.rows)
    rows: list[Row] = []
    for name, part in parts.items():
        for row in part.rows:
            side = {"side": row.get("side", "")} if has_sides else {}
            rows.append({"opponent": row["opponent"], kind: name} | side | row)
    warnings = dict.fromkeys(text for part in parts.values() for text in part.warnings)
    seconds = sum(part.seconds for part in parts.values())
    first = next(iter(parts.values()))
    return Evaluation(first.world, tuple(rows), seconds, warnings=tuple(warnings))


class PolicyEvaluator:
    """Matches of a policy against fixed opponents with fixed seeds, on a batch that is reused.

    Every opponent gets equally many games; in half of them the policy plays the first team, in the other half the
    second. It plays all seats of its team, and the opponent all other seats. Where teams are unequal, each side has a
    row of its own. The games of all opponents lie side by side in the batch.
    """

    def __init__(
        self,
        env: BatchedEnv,
        opponents: Sequence[Player],
        *,
        matches: int = 400,
        seed: int = 0,
        deterministic: bool = False,
        perturbation: Perturbation | None = None,
    ) -> None:
        """Store what all evaluations have in common.

        Args:
            env: Games without other players; as many as fit into one batch.
            opponents: The opponents; none in a world of one team.
            matches: Matches per opponent.
            seed: Seed of everything.
            deterministic: Whether agents take the most likely action.
            perturbation: Perturbation of the policy's observations; none if None.

        Raises:
            ConfigError: There are no opponents where there must be, or some where there cannot be.
        """
        if matches < 1:
            raise ConfigError(f"matches must be at least 1, got {matches}")
        alone = len(set(env.spec.teams)) == 1
        if not alone and not opponents:
            bots = ", ".join(env.spec.bots) or "none, so name the folder of an agent"
            raise ConfigError(f"{env.spec.id} is played against opponents, got none; its bots: {bots}")
        if alone and opponents:
            names = ", ".join(opponent.name for opponent in opponents)
            raise ConfigError(f"{env.spec.id} has one team and no opponents, got {names}")
        self._env, self._opponents = env, tuple(opponents)
        self._matches = matches
        self._seed, self._deterministic, self._perturbation = seed, deterministic, perturbation
        self._names = tuple(opponent.name for opponent in opponents) or ("",)
        self._episode_metrics = metrics_of(env.spec.id)
        self._faults: dict[str, None] = {}  # why agents have lost matches other than by the rules

    def play(self, policy: Policy, *, progress: Progress = lambda _: None) -> Evaluation:
        """Play all matches.

        Args:
            policy: The policy, on the device of the games. Neither it nor its statistics change.
            progress: Called with the fraction that is done.
        """
        started_s = time.perf_counter()
        results, spec = self.play_matches(policy, progress=progress), self._env.spec
        has_sides = len({spec.side(team) for team in spec.teams}) > 1
        rows: list[Row] = []
        for index, name in enumerate(self._names):
            for side, played in results.against(index).by_side(spec).items():
                keys = {"opponent": name, "side": side} if has_sides else {}
                rows.append(keys | result_row(name, played, self._episode_metrics, spec.rate_hz))
        seconds = time.perf_counter() - started_s
        warnings = (*self._env.warnings, *self._faults)
        return Evaluation(spec.id, tuple(rows), seconds, spec.mode, warnings)

    def play_matches(self, policy: Policy, *, progress: Progress = lambda _: None) -> MatchResults:
        """Play all matches like `play`, but return every single result instead of a table."""
        return concatenate(self.play_batches(policy, range(self.batches), progress=progress))

    @property
    def batches(self) -> int:
        """Number of batches in which all matches are played."""
        return math.ceil(len(self._names) * self._matches / self._env.num_envs)

    def play_batches(
        self, policy: Policy, numbers: Sequence[int], *, progress: Progress = lambda _: None
    ) -> list[MatchResults]:
        """Play some batches; each has its own seeds, so that it does not matter where and in which order."""
        return [
            self._play_batch(policy, number, partial_progress(progress, place, len(numbers)))
            for place, number in enumerate(numbers)
        ]

    def _play_batch(self, policy: Policy, batch: int, progress: Progress) -> MatchResults:
        env = self._env
        number = batch * env.num_envs + torch.arange(env.num_envs, device=env.device)
        opponents = number // self._matches  # of each game; beyond the last one where a batch is not full
        counted = opponents < len(self._names)
        teams = torch.tensor(env.spec.teams, device=env.device)
        sides = torch.tensor(sorted(set(env.spec.teams)), device=env.device)
        own_team = sides[number % self._matches % len(sides)]
        seats = (teams == own_team.unsqueeze(1)) & counted.unsqueeze(1)
        statistics = MatchStatistics(env, seats, self._episode_metrics)
        agent = seat_policy(env, seats, policy, self._agent_seed(batch, -1), deterministic=self._deterministic)
        noise_seed = stream_hash(self._seed, batch, _STREAM_NOISE)
        actors = [
            perturb(agent, self._perturbation, noise_seed, env.device),
            *seat_in_batch(
                env,
                self._opponents,
                torch.where(counted.unsqueeze(1) & ~seats, opponents.unsqueeze(1), -1),
                lambda index: self._agent_seed(batch, index),
                deterministic=self._deterministic,
            ),
        ]
        seed = self._seed if batch == 0 else stream_hash(self._seed, batch, _STREAM_GAMES)
        steps = play_first_matches(env, actors, statistics, seed=seed, counted=counted, progress=progress)
        self._faults |= dict.fromkeys(actor.fault.reason for actor in actors if actor.fault is not None)
        return statistics.results(opponents, steps)

    def _agent_seed(self, batch: int, index: int) -> int:
        return stream_hash(self._seed, batch, index, _STREAM_AGENT)


def stored_modes(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return the settings of every mode in which a run evaluates its agent; none if the run has no modes.

    Args:
        path: Folder of a run or a checkpoint; or a file of `ludus export` or a shipped agent, which store no modes.

    Raises:
        CheckpointError: There is no checkpoint, or its settings are not those of a run.
    """
    found = find_agent_path(path)
    if found is not None and found.is_file():
        return {}
    checkpoint = find_checkpoint(path)
    folder = checkpoint.path
    if f"{_CONFIG}.json" not in read_manifest(folder).files:  # an agent that was saved alone, such as a snapshot
        return {}
    try:
        return _modes(load_checkpoint(folder, parts=(_CONFIG,)).documents[_CONFIG], checkpoint.run)
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(folder, f"{_CONFIG}.json", f"is not the configuration of a run: {error!r}") from error


def _modes(config: Any, run: Path) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - whatever a file holds
    world, evaluation = str(config["world"]["name"]), config.get("evaluation") or {}
    modes = _mapping(evaluation.get("modes"))

    def checked(settings: Any) -> dict[str, Any]:  # noqa: ANN401
        return StoredSettings(_mapping(settings), "the agent's run", run / CONFIG_FILE).checked(world)

    base = (checked(config["world"].get("settings")), checked(evaluation.get("settings"))) if modes else ({}, {})
    return {str(name): with_overrides(world, *base, checked(own)) for name, own in modes.items()}


def _mapping(value: Any) -> Mapping[str, Any]:  # noqa: ANN401
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is not a mapping")
    return value or {}
