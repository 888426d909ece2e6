"""Plays a benchmark suite: rows that are hindered alike and have equally many matches share their batches."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ludus.envs.base import BatchedEnv
from ludus.envs.behaviour import behaviour_of
from ludus.envs.registry import make_env
from ludus.envs.trials import laid_over, trials_of
from ludus.evaluation.comparison import Difference, compare, mean_over_rows
from ludus.evaluation.contenders import find_contender
from ludus.evaluation.duels import MOST_GAMES, Duels
from ludus.evaluation.estimates import Estimate, estimates
from ludus.evaluation.first_matches import ShareDone
from ludus.evaluation.hindrances import Hindrance
from ludus.evaluation.readiness import Readiness, judge
from ludus.evaluation.suite import Suite, SuiteRow
from ludus.policies.agent import Agent

_OUTCOMES = ("win_rate", "mean_return", "mean_length")  # the first that a world has is what agents are compared by


@dataclass(frozen=True, slots=True)
class RowResult:
    """What came of one row.

    Attributes:
        row: What was played.
        numbers: Every number of the world with its interval.
    """

    row: SuiteRow
    numbers: Mapping[str, Estimate]

    @property
    def outcome(self) -> str:
        """The number that agents are compared by."""
        return next(name for name in _OUTCOMES if name in self.numbers)

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        said = {"opponent": self.row.opponent, "trial": self.row.trial}
        return {
            "row": self.row.name,
            **{name: value for name, value in said.items() if value is not None},
            "delay_frames": self.row.delay_frames,
            "noise": self.row.noise,
            "matches": self.numbers[self.outcome].matches,
            "numbers": {name: estimate.as_json() for name, estimate in self.numbers.items()},
        }


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A suite that was played.

    Attributes:
        world: Where.
        rows: In the order of the suite.
        readiness: Which tier is reached; None if the suite has no tiers.
        seconds: Time it took.
    """

    world: str
    rows: tuple[RowResult, ...]
    readiness: Readiness | None
    seconds: float

    @property
    def overall(self) -> Estimate:
        """Mean of the outcome, such as the win rate, over all rows, each counted alike."""
        return mean_over_rows([row.numbers[row.outcome] for row in self.rows])

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {
            "world": self.world,
            "rows": [row.as_json() for row in self.rows],
            "overall": {"number": self.rows[0].outcome, **self.overall.as_json()},
            "readiness": None if self.readiness is None else self.readiness.as_json(),
            "seconds": self.seconds,
        }


class RowDifference(NamedTuple):
    """One number of one row, of two agents."""

    row: str
    number: str
    first: Estimate
    second: Estimate
    difference: Difference

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        both = {"first": self.first.as_json(), "second": self.second.as_json()}
        return {"row": self.row, "number": self.number, **both, **self.difference.as_json()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two agents in the same suite, row by row.

    Attributes:
        rows: Outcome, and every number with a target, of each row. The intervals hold for all of them together with
            95 %: each one alone with more.
        overall: Difference of the mean outcome over all rows.
    """

    rows: tuple[RowDifference, ...]
    overall: RowDifference

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {"overall": self.overall.as_json(), "rows": [row.as_json() for row in self.rows]}


def run_benchmark(
    agent: Agent,
    suite: Suite,
    *,
    matches: int | None = None,
    seed: int = 0,
    deterministic: bool = False,
    max_games: int = MOST_GAMES,
    progress: ShareDone = lambda _: None,
) -> Benchmark:
    """Plays a suite; equal seeds give equal numbers on the CPU.

    Args:
        agent: Who is tested, on the device where the games shall be.
        suite: See `ludus.evaluation.suite.load_suite`.
        matches: In every row, whatever the suite says; as it says if None.
        seed: Of everything.
        deterministic: Whether agents take the most likely action even if the suite does not say so.
        max_games: Most games in a batch.
        progress: Is told the share that is done.

    Raises:
        StateError: The agent does not fit the world as it is now.
    """
    started_s = time.perf_counter()
    with make_env(agent.spec.id, 1, agent.device, config=agent.settings or None) as env:
        agent.check_world(env.spec)
        rows, most = suite.rows or _every_row(env), min(max_games, env.spec.max_games or max_games)
    parts = _group(rows, suite.matches, matches)
    found: dict[int, RowResult] = {}
    done, total = 0, sum(part.matches * len(part.rows) for part in parts)
    for part in parts:
        size = part.matches * len(part.rows)
        tell = partial(_tell, progress, done / total, size / total)
        results = _play(agent, part, seed, min(size, most), tell, deterministic=deterministic or suite.deterministic)
        found |= dict(zip(part.rows, results, strict=True))
        done += size
    in_order = tuple(found[place] for place in range(len(rows)))
    readiness = judge(suite, [(result.row, result.numbers) for result in in_order])
    return Benchmark(agent.spec.id, in_order, readiness, time.perf_counter() - started_s)


def compare_benchmarks(first: Benchmark, second: Benchmark, confidence: float = 0.95) -> Comparison:
    """Compares two agents that played the same suite.

    Many rows give many chances to see a difference that is none; so each interval is made wider (Bonferroni), until
    all rows together are wrong as seldom as a single one would be.
    """
    pairs = [
        (mine, theirs, number, better)
        for mine, theirs in zip(first.rows, second.rows, strict=True)
        for number, better in _compared(mine)
    ]
    sharpened = 1.0 - (1.0 - confidence) / len(pairs)
    rows = []
    for mine, theirs, number, better in pairs:
        both = mine.numbers[number], theirs.numbers[number]
        difference = compare(*both, confidence=sharpened, more_is_better=better)
        rows.append(RowDifference(mine.row.name, number, *both, difference))
    means = first.overall, second.overall
    overall = RowDifference("all rows", first.rows[0].outcome, *means, compare(*means, confidence=confidence))
    return Comparison(tuple(rows), overall)


class _Part(NamedTuple):
    """Rows that share their batches, by their places in the suite."""

    rows: Mapping[int, SuiteRow]
    matches: int
    hindrance: Hindrance
    trial: str | None


def _group(rows: Sequence[SuiteRow], usual: int, fixed: int | None) -> list[_Part]:
    groups: dict[tuple[int, Hindrance, str | None], dict[int, SuiteRow]] = {}
    for place, row in enumerate(rows):
        matches = fixed or row.matches or usual
        groups.setdefault((matches, row.hindrance, row.trial), {})[place] = row
    return [_Part(some, *key) for key, some in groups.items()]


def _play(
    agent: Agent, part: _Part, seed: int, games: int, progress: ShareDone, *, deterministic: bool
) -> list[RowResult]:
    world = agent.spec.id
    settings = agent.settings if part.trial is None else laid_over(agent.settings, trials_of(world)[part.trial])
    with make_env(world, games, agent.device, seed=seed, config=settings or None) as env:
        rows = tuple(part.rows.values())
        opponents = [find_contender(row.opponent, env) for row in rows if row.opponent is not None]
        duels = Duels(
            env,
            opponents,
            matches=part.matches,
            seed=seed,
            deterministic=deterministic,
            hindrance=part.hindrance,
        )
        played = duels.play_matches(agent.policy, progress=progress)
        behaviour, rate_hz = behaviour_of(world), env.spec.rate_hz
    return [RowResult(row, estimates(played.of(place), behaviour, rate_hz)) for place, row in enumerate(rows)]


def _every_row(env: BatchedEnv) -> tuple[SuiteRow, ...]:
    if len(set(env.spec.teams)) > 1:
        return tuple(SuiteRow(opponent=bot) for bot in env.spec.bots)
    return tuple(SuiteRow(trial=trial) for trial in trials_of(env.spec.id)) or (SuiteRow(),)


def _compared(result: RowResult) -> list[tuple[str, bool]]:
    """Returns the numbers of a row that are compared, and whether more of each is better."""
    numbers = {result.outcome: True} | dict.fromkeys(result.row.at_least, True)
    return list((numbers | dict.fromkeys(result.row.at_most, False)).items())


def _tell(progress: ShareDone, before: float, part: float, share: float) -> None:
    progress(before + part * share)
