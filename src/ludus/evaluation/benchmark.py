"""Benchmarks: play a suite, hold its numbers against the readiness tiers, and compare two agents row by row.

Rows with the same perturbation and number of matches share their batches.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, Literal, NamedTuple, TypeAlias

from ludus.envs.base import BatchedEnv
from ludus.envs.registry import make_env
from ludus.envs.world_parts import merge_settings, metrics_of, scenarios_of
from ludus.evaluation.evaluate import PolicyEvaluator
from ludus.evaluation.matches import MAX_ENVS, Progress
from ludus.evaluation.players import Perturbation, Player, find_player, games_at_once
from ludus.evaluation.results import (
    Difference,
    Estimate,
    MatchResults,
    compare,
    concatenate,
    estimates,
    mean_over_rows,
)
from ludus.evaluation.suite import Suite, SuiteRow
from ludus.policies.agent import Agent

Word: TypeAlias = Literal["OK", "WARN", "FAIL"]

_OUTCOMES = ("win_rate", "mean_return", "mean_length")  # agents are compared by the first that a world has


@dataclass(frozen=True, slots=True)
class Judgement:
    """One number of one row, held against all tiers that have a target for it.

    Attributes:
        row: Name of the row.
        number: Name of the number.
        estimate: The measurement.
        more_is_better: Whether the targets are lower bounds, else upper bounds.
        targets: Target of each tier, the lowest tier first.
    """

    row: str
    number: str
    estimate: Estimate
    more_is_better: bool
    targets: Mapping[str, float]

    def meets(self, tier: str) -> bool:
        """Return whether the number meets the target of a tier; a tier without a target is met."""
        target = self.targets.get(tier)
        return target is None or self._margin(self.estimate.value, target) >= 0.0

    def within_reach(self, tier: str) -> bool:
        """Return whether the interval reaches the target, so that more matches might show that it is met."""
        low, high = self.estimate.interval()
        end = high if self.more_is_better else low
        return math.isfinite(end) and self._margin(end, self.targets[tier]) >= 0.0

    @property
    def reached(self) -> str | None:
        """The highest of the tiers with a target up to which all targets are met."""
        best = None
        for tier in self.targets:
            if not self.meets(tier):
                break
            best = tier
        return best

    @property
    def missed(self) -> str | None:
        """The lowest tier whose target is not met."""
        return next((tier for tier in self.targets if not self.meets(tier)), None)

    @property
    def word(self) -> Word:
        """OK if all targets are met, FAIL if the lowest one is significantly missed, WARN between."""
        if self.missed is None:
            return "OK"
        return "FAIL" if self.reached is None and not self.within_reach(self.missed) else "WARN"

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "row": self.row,
            "number": self.number,
            **self.estimate.as_json(),
            "at_least" if self.more_is_better else "at_most": dict(self.targets),
            "reached": self.reached,
            "missed": self.missed,
            "verdict": self.word,
        }

    def _margin(self, value: float, target: float) -> float:
        return value - target if self.more_is_better else target - value


@dataclass(frozen=True, slots=True)
class Readiness:
    """The readiness tiers that an agent reaches.

    Attributes:
        tiers: All tiers, the lowest first.
        judgements: Every number with a target, in the order of the suite.
    """

    tiers: tuple[str, ...]
    judgements: tuple[Judgement, ...]

    @property
    def reached(self) -> str | None:
        """The highest tier whose targets, and those of all tiers below it, are met; None if there is none."""
        best = None
        for tier in self.tiers:
            if not all(judgement.meets(tier) for judgement in self.judgements):
                break
            best = tier
        return best

    @property
    def next_tier(self) -> str | None:
        """The lowest tier that is not reached."""
        place = 0 if self.reached is None else self.tiers.index(self.reached) + 1
        return self.tiers[place] if place < len(self.tiers) else None

    def missing(self, tier: str) -> tuple[Judgement, ...]:
        """Return the judgements that miss a tier's target."""
        return tuple(judgement for judgement in self.judgements if not judgement.meets(tier))

    def reaches(self, tier: str) -> bool:
        """Return whether a tier is reached."""
        return self.reached is not None and self.tiers.index(self.reached) >= self.tiers.index(tier)

    @property
    def word(self) -> Word:
        """OK at the highest tier, FAIL below the lowest, WARN between."""
        if self.next_tier is None:
            return "OK"
        return "FAIL" if self.reached is None else "WARN"

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        counts = {
            tier: {
                "targets": sum(tier in judgement.targets for judgement in self.judgements),
                "missed": len(self.missing(tier)),
            }
            for tier in self.tiers
        }
        return {
            "tiers": counts,
            "reached": self.reached,
            "verdict": self.word,
            "judgements": [judgement.as_json() for judgement in self.judgements],
        }


def judge(suite: Suite, numbers: Sequence[tuple[SuiteRow, Mapping[str, Estimate]]]) -> Readiness | None:
    """Hold the numbers of all rows against the suite's tiers; None if it has none."""
    if not suite.tiers:
        return None
    judgements = tuple(judgement for row, found in numbers for judgement in _judge_row(suite, row, found))
    return Readiness(suite.tiers, judgements)


def _judge_row(suite: Suite, row: SuiteRow, found: Mapping[str, Estimate]) -> Iterator[Judgement]:
    for more_is_better, asked in ((True, row.at_least), (False, row.at_most)):
        for number, targets in asked.items():
            in_order = {tier: targets[tier] for tier in suite.tiers if tier in targets}
            yield Judgement(row.name, number, found[number], more_is_better, in_order)


@dataclass(frozen=True, slots=True)
class RowResult:
    """Results of one row.

    Attributes:
        row: The row of the suite.
        numbers: Every metric of the world with its interval.
    """

    row: SuiteRow
    numbers: Mapping[str, Estimate]

    @property
    def outcome(self) -> str:
        """Name of the number that agents are compared by."""
        return next(name for name in _OUTCOMES if name in self.numbers)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        keys = {"opponent": self.row.opponent, "trial": self.row.scenario}
        return {
            "row": self.row.name,
            **{name: value for name, value in keys.items() if value is not None},
            "delay_frames": self.row.delay_frames,
            "noise": self.row.noise,
            "matches": self.numbers[self.outcome].matches,
            "numbers": {name: estimate.as_json() for name, estimate in self.numbers.items()},
        }


@dataclass(frozen=True, slots=True)
class Population:
    """How an agent does against a population of opponents, all with equal weight.

    After Lanctot et al., "Population-based Evaluation in Repeated Rock-Paper-Scissors as a Benchmark for Multiagent
    Reinforcement Learning", arXiv 2303.03196. Of a zero-sum game, in units of the return of a match.

    Attributes:
        mean_return: Mean over the population of the agent's mean return.
        exploitability: What the best exploiter within the population wins against the agent on average: the negative of
            the lowest mean return. Below 0 if the agent beats everyone. The lowest of several estimates is biased, so
            with few matches it is too high.
        exploiter: Name of that row.
        aggregate: Return minus exploitability; its interval takes the exploiter as given.
    """

    mean_return: Estimate
    exploitability: Estimate
    exploiter: str
    aggregate: Estimate

    @classmethod
    def of(cls, rows: "Sequence[RowResult]") -> "Population":
        """Compute all from the rows of a suite."""
        returns = [row.numbers["mean_return"] for row in rows]
        worst = min(range(len(rows)), key=lambda index: returns[index].value)
        lowest, mean = returns[worst], mean_over_rows(returns)
        # aggregate = sum_i c_i * return_i with c_i = 1 / rows, and 1 more for the exploiter's row.
        weights = [1.0 / len(rows) + (index == worst) for index in range(len(rows))]
        error = math.hypot(*(weight * each.standard_error for weight, each in zip(weights, returns, strict=True)))
        matches = mean.matches
        return cls(
            mean,
            replace(lowest, kind="mean", value=-lowest.value),
            rows[worst].row.name,
            Estimate("mean", mean.value + lowest.value, matches, error * math.sqrt(matches)),
        )

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "mean_return": self.mean_return.as_json(),
            "exploitability": self.exploitability.as_json(),
            "exploiter": self.exploiter,
            "aggregate": self.aggregate.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Results of a suite.

    Attributes:
        world: The world.
        rows: In the order of the suite.
        readiness: Which tier the agent reaches; None if the suite has no tiers.
        seconds: Wall time.
        population: The score against the population of opponents; None if the suite has none.
    """

    world: str
    rows: tuple[RowResult, ...]
    readiness: Readiness | None
    seconds: float
    population: Population | None = None

    @property
    def overall(self) -> Estimate:
        """Mean outcome, such as the win rate, over all rows with equal weight."""
        return mean_over_rows([row.numbers[row.outcome] for row in self.rows])

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "world": self.world,
            "rows": [row.as_json() for row in self.rows],
            "overall": {"number": self.rows[0].outcome, **self.overall.as_json()},
            "readiness": None if self.readiness is None else self.readiness.as_json(),
            "population": None if self.population is None else self.population.as_json(),
            "seconds": self.seconds,
        }


class RowDifference(NamedTuple):
    """One number of one row for two agents."""

    row: str
    number: str
    first: Estimate
    second: Estimate
    difference: Difference

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        both = {"first": self.first.as_json(), "second": self.second.as_json()}
        return {"row": self.row, "number": self.number, **both, **self.difference.as_json()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two agents in the same suite, row by row.

    Attributes:
        rows: Outcome and every number with a target, per row. The intervals hold jointly with 95 %, each one alone
            with more.
        overall: Difference of the mean outcome over all rows.
    """

    rows: tuple[RowDifference, ...]
    overall: RowDifference

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {"overall": self.overall.as_json(), "rows": [row.as_json() for row in self.rows]}


def run_benchmark(
    agent: Agent,
    suite: Suite,
    *,
    matches: int | None = None,
    seed: int = 0,
    deterministic: bool = False,
    max_envs: int = MAX_ENVS,
    progress: Progress = lambda _: None,
    play: "PlayBatches | None" = None,
) -> Benchmark:
    """Play a suite; equal seeds give equal numbers on the CPU.

    Args:
        agent: The agent, on the device of the games.
        suite: See `ludus.evaluation.suite.load_suite`.
        matches: Matches in every row instead of what the suite says.
        seed: Seed of everything.
        deterministic: Whether agents take the most likely action even if the suite does not ask for it.
        max_envs: Largest batch.
        progress: Called with the fraction that is done.
        play: Plays the batches of the suite elsewhere, with the same results; None plays them in this process.

    Raises:
        StateError: The agent does not fit the current version of the world.
    """
    started_s = time.perf_counter()
    with make_env(agent.spec.id, 1, agent.device, config=agent.settings or None) as env:
        agent.check_world(env.spec)
        rows = suite.rows or _every_row(env)
        most = games_at_once([agent.policy], env.spec.seats, min(max_envs, env.spec.max_envs or max_envs))
    parts = _group(rows, suite.matches, matches)
    sizes = [part.matches * len(part.rows) for part in parts]
    batches = [
        SuiteBatch(part, number, seed, min(size, most), deterministic or suite.deterministic)
        for part, size in zip(parts, sizes, strict=True)
        for number in range(math.ceil(size / min(size, most)))
    ]
    played = (play or play_batches)(agent, batches, progress)
    found: dict[int, RowResult] = {}
    for part in parts:
        own = [results for batch, results in zip(batches, played, strict=True) if batch.part is part]
        found |= dict(zip(part.rows, _row_results(agent, part, concatenate(own)), strict=True))
    in_order = tuple(found[index] for index in range(len(rows)))
    readiness = judge(suite, [(result.row, result.numbers) for result in in_order])
    population = Population.of(in_order) if suite.population else None
    return Benchmark(agent.spec.id, in_order, readiness, time.perf_counter() - started_s, population)


def compare_benchmarks(first: Benchmark, second: Benchmark, confidence: float = 0.95) -> Comparison:
    """Compare two agents that played the same suite.

    With many rows some differ by chance, so each interval is made wider (Bonferroni): the chance of any error is that
    of a single test.
    """
    pairs = [
        (mine, theirs, number, better)
        for mine, theirs in zip(first.rows, second.rows, strict=True)
        for number, better in _compared(mine)
    ]
    stricter = 1.0 - (1.0 - confidence) / len(pairs)
    rows = []
    for mine, theirs, number, better in pairs:
        both = mine.numbers[number], theirs.numbers[number]
        difference = compare(*both, confidence=stricter, more_is_better=better)
        rows.append(RowDifference(mine.row.name, number, *both, difference))
    means = first.overall, second.overall
    overall = RowDifference("all rows", first.rows[0].outcome, *means, compare(*means, confidence=confidence))
    return Comparison(tuple(rows), overall)


class SuitePart(NamedTuple):
    """Rows that share their batches, by their index in the suite."""

    rows: Mapping[int, SuiteRow]
    matches: int
    perturbation: Perturbation
    scenario: str | None


class SuiteBatch(NamedTuple):
    """One batch of a part of a suite.

    Attributes:
        part: The part.
        number: Number of the batch within the part.
        seed: Seed of the whole benchmark.
        games: Games of a batch.
        deterministic: Whether agents take the most likely action.
    """

    part: SuitePart
    number: int
    seed: int
    games: int
    deterministic: bool


PlayBatches: TypeAlias = Callable[[Agent, Sequence[SuiteBatch], Progress], Sequence[MatchResults]]
"""Plays batches of a suite with an agent, and returns the matches of each."""


def _group(rows: Sequence[SuiteRow], usual: int, fixed: int | None) -> list[SuitePart]:
    groups: dict[tuple[int, Perturbation, str | None], dict[int, SuiteRow]] = {}
    for index, row in enumerate(rows):
        matches = fixed or row.matches or usual
        groups.setdefault((matches, row.perturbation, row.scenario), {})[index] = row
    return [SuitePart(some, *key) for key, some in groups.items()]


def play_batches(
    agent: Agent,
    batches: Sequence[SuiteBatch],
    progress: Progress = lambda _: None,
    find: Callable[[str, BatchedEnv], Player] = find_player,
) -> list[MatchResults]:
    """Play batches of a suite in this process; those of a part that follow each other use the same games.

    Args:
        agent: The agent, on the device of the games.
        batches: The batches.
        progress: Called with the fraction that is done.
        find: Finds an opponent by its name.
    """
    world, played = agent.spec.id, list[MatchResults]()
    weights = [batch.games for batch in batches]
    for _, group in groupby(batches, key=lambda batch: id(batch.part)):
        same = list(group)
        part, seed, games = same[0].part, same[0].seed, same[0].games
        own = scenarios_of(world)[part.scenario] if part.scenario is not None else None
        settings = agent.settings if own is None else merge_settings(agent.settings, own)
        with make_env(world, games, agent.device, seed=seed, config=settings or None) as env:
            opponents = [find(row.opponent, env) for row in part.rows.values() if row.opponent is not None]
            evaluator = PolicyEvaluator(
                env,
                opponents,
                matches=part.matches,
                seed=seed,
                deterministic=same[0].deterministic,
                perturbation=part.perturbation,
            )
            before, size = sum(weights[: len(played)]) / sum(weights), sum(batch.games for batch in same) / sum(weights)
            report = partial(_report, progress, before, size)
            played += evaluator.play_batches(agent.policy, [batch.number for batch in same], progress=report)
    return played


def _row_results(agent: Agent, part: SuitePart, played: MatchResults) -> list[RowResult]:
    episode_metrics, rate_hz = metrics_of(agent.spec.id), agent.spec.rate_hz
    return [
        RowResult(row, estimates(played.against(index), episode_metrics, rate_hz))
        for index, row in enumerate(part.rows.values())
    ]


def _every_row(env: BatchedEnv) -> tuple[SuiteRow, ...]:
    if len(set(env.spec.teams)) > 1:
        return tuple(SuiteRow(opponent=bot) for bot in env.spec.bots)
    return tuple(SuiteRow(scenario=scenario) for scenario in scenarios_of(env.spec.id)) or (SuiteRow(),)


def _compared(result: RowResult) -> list[tuple[str, bool]]:
    """Return the numbers of a row that are compared, and whether more of each is better."""
    numbers = {result.outcome: True} | dict.fromkeys(result.row.at_least, True)
    return list((numbers | dict.fromkeys(result.row.at_most, False)).items())


def _report(progress: Progress, before: float, part: float, fraction: float) -> None:
    progress(before + part * fraction)
