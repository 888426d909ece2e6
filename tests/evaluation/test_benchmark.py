"""Suites: faults with their places, rows that are played, tiers and verdicts, and two agents row by row."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.core.errors import ConfigFileError, MissingDependencyError, UnknownNameError
from ludus.envs.registry import make_env
from ludus.envs.world import registered_envs
from ludus.evaluation.benchmark import Judgement, Population, Readiness, RowResult, compare_benchmarks, run_benchmark
from ludus.evaluation.results import Estimate, share_estimate
from ludus.evaluation.suite import Suite, SuiteRow, find_suite, load_suite, suite_names
from ludus.policies.agent import Agent
from ludus.policies.policy import Policy

pytestmark = pytest.mark.train

MakePolicy = Callable[..., Policy]
ROCK, PAPER = [9.0, -9.0, -9.0], [-9.0, 9.0, -9.0]


@pytest.mark.parametrize("world", registered_envs())
def test_every_suite_that_is_shipped_can_be_read(world: str) -> None:
    with make_env(world) as env:
        for name in suite_names(world):
            try:
                suite = load_suite(find_suite(world, name), env)
            except MissingDependencyError as error:
                pytest.skip(str(error))
            assert suite.matches >= 20
    assert "standard" in suite_names(world)


def test_faults_have_their_places(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        """\
tiers: [low, high, low]
rows:
  - opponent: rok
  - opponent: rock
    at_least: {win_rat: {low: 0.5}, win_rate: {low: 0.9, high: 0.5, hihg: 1.0}}
  - scenario: walk
  - opponent: rock
    delay_frame: 2
  - noise: 0.1
"""
    )
    with make_env("duel") as env, pytest.raises(ConfigFileError) as raised:
        load_suite(file, env)
    lines = str(raised.value).splitlines()[1:]
    places = [line.split(": ")[0].removeprefix(f"{file}:") for line in lines]
    assert places == ["1:20", "3:15", "5:16", "5:64", "5:69", "6:15", "7:5", "8:5", "9:5"]
    assert "did you mean 'rock'?" in lines[1]
    assert "did you mean 'win_rate'?" in lines[2]
    assert "is easier than low, which asks for 0.9" in lines[3]
    assert "did you mean 'high'?" in lines[4]
    assert "duel-v1 is played against opponents" in lines[5]
    assert "is the same as the row at" in lines[6]
    assert "did you mean 'delay_frames'?" in lines[7]
    assert "should name an opponent" in lines[8]


def test_faults_of_a_world_of_one_team(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("rows:\n  - opponent: rock\n  - scenario: wlak\n")
    with make_env("mimic") as env, pytest.raises(ConfigFileError, match=r"rows\.0\.opponent") as raised:
        load_suite(file, env)
    assert "'walk'" in str(raised.value)


def test_a_file_may_extend_a_suite_of_the_world(tmp_path: Path) -> None:
    file = tmp_path / "more.yaml"
    file.write_text("extends: quick\nmatches: 7\n")
    with make_env("brawl") as env:
        assert find_suite("brawl-v1", str(file)) == file
        suite = load_suite(file, env)
    assert (suite.matches, len(suite.rows)) == (7, 4)
    with pytest.raises(UnknownNameError, match="'standard'"):
        find_suite("brawl-v1", "standrad")


def test_rows_are_played_in_their_order_whatever_they_share(stubborn: MakePolicy) -> None:
    targets = {"win_rate": {"low": 0.5, "high": 1.0}}
    suite = Suite(
        matches=6,
        tiers=("low", "high"),
        rows=(
            SuiteRow(opponent="rock", at_least=targets),
            SuiteRow(opponent="cycle", delay_frames=2, at_least=targets),
            SuiteRow(opponent="cycle", matches=4),
            SuiteRow(opponent="rock", noise=0.1, at_most={"mean_return": {"high": 3.0}}),
        ),
    )
    shares: list[float] = []
    played = run_benchmark(Agent(stubborn("duel", PAPER)), suite, progress=shares.append, max_envs=5)
    assert [result.row.name for result in played.rows] == [
        "rock",
        "cycle [2 frames late]",
        "cycle",
        "rock [noise 0.1]",
    ]
    assert [result.numbers["win_rate"].matches for result in played.rows] == [6, 6, 4, 6]
    assert [result.numbers["mean_return"].value for result in played.rows] == [10.0, 1.0, 1.0, 10.0]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert played.readiness is not None
    assert played.readiness.reached == "low"
    assert [judgement.word for judgement in played.readiness.judgements] == ["OK", "OK", "FAIL"]
    document = played.as_json()
    assert document["overall"]["value"] == 1.0
    assert document["readiness"]["tiers"] == {
        "low": {"targets": 2, "missed": 0},
        "high": {"targets": 3, "missed": 1},
    }


def test_a_suite_without_rows_is_every_bot_and_one_without_tiers_only_measures(stubborn: MakePolicy) -> None:
    played = run_benchmark(Agent(stubborn("duel", ROCK)), Suite(), matches=2)
    assert [result.row.opponent for result in played.rows] == ["rock", "cycle", "random"]
    assert played.readiness is None
    alone = run_benchmark(Agent(stubborn("rps", ROCK)), Suite(), matches=3)
    assert [(result.row.name, result.outcome) for result in alone.rows] == [("alone", "mean_return")]


@pytest.mark.usefixtures("stroll_world")
def test_trials_are_rows_in_a_world_of_one_team(fresh: MakePolicy) -> None:
    suite = Suite(
        matches=4,
        deterministic=True,
        tiers=("gold",),
        rows=(
            SuiteRow(scenario="storm", at_least={"distance_min_m": {"gold": 1e9}}),
            SuiteRow(scenario="calm", delay_frames=1),
        ),
    )
    played = run_benchmark(Agent(fresh("stroll")), suite)
    assert [result.row.name for result in played.rows] == ["storm", "calm [1 frame late]"]
    assert played.readiness is not None
    assert played.readiness.word == "FAIL"


def test_two_agents_row_by_row(stubborn: MakePolicy) -> None:
    suite = Suite(matches=30, rows=(SuiteRow(opponent="rock"), SuiteRow(opponent="random")))
    paper, rock = (run_benchmark(Agent(stubborn("duel", bias)), suite) for bias in (PAPER, ROCK))
    comparison = compare_benchmarks(paper, rock)
    first, second = comparison.rows
    assert (first.row, first.number, first.difference.verdict) == ("rock", "win_rate", "better")
    assert first.difference.value == 1.0
    assert second.difference.verdict == "no difference seen"
    assert comparison.overall.difference.verdict == "better"
    # Two rows: each interval is one of 97.5 %, wider than the plain one.
    assert first.difference.low < 1.0 - (1.0 - share_estimate(30, 30).interval()[0])
    assert comparison.as_json()["rows"][0]["verdict"] == "better"
    turned = compare_benchmarks(rock, paper)
    assert turned.rows[0].difference.verdict == "worse"


def judgement(value: Estimate, *, more: bool = True, **targets: float) -> Judgement:
    return Judgement("row", "number", value, more, targets)


def test_words_of_a_judgement() -> None:
    half = share_estimate(50, 100)  # from 0.404 to 0.596
    assert judgement(half, low=0.3, high=0.5).word == "OK"
    assert judgement(half, low=0.3, high=0.9).word == "WARN"  # a tier is reached, the next is far
    assert judgement(half, low=0.55).word == "WARN"  # within the interval
    assert judgement(half, low=0.6, high=0.9).word == "FAIL"
    assert judgement(half, more=False, low=0.45).word == "WARN"
    assert judgement(half, more=False, low=0.40).word == "FAIL"
    assert judgement(half, low=0.3, high=0.9).reached == "low"
    assert judgement(half, low=0.3, high=0.9).missed == "high"


def test_a_tier_needs_those_below_it() -> None:
    half = share_estimate(50, 100)
    tiers = ("bronze", "silver", "gold")
    uneven = Readiness(tiers, (judgement(half, bronze=0.4, gold=0.9), judgement(half, silver=0.6), judgement(half)))
    assert (uneven.reached, uneven.next_tier, uneven.word) == ("bronze", "silver", "WARN")
    assert uneven.reaches("bronze")
    assert not uneven.reaches("gold")
    assert len(uneven.missing("silver")) == 1
    nothing = Readiness(tiers, (judgement(half, bronze=0.6),))
    assert (nothing.reached, nothing.next_tier, nothing.word) == (None, "bronze", "FAIL")
    assert not nothing.reaches("bronze")
    everything = Readiness(tiers, (judgement(half, bronze=0.1),))
    assert (everything.reached, everything.next_tier, everything.word) == ("gold", None, "OK")


def test_a_population_scores_return_minus_exploitability() -> None:
    values = {"easy": (300.0, 30.0), "even": (0.0, 40.0), "hard": (-60.0, 20.0)}
    rows = [
        RowResult(SuiteRow(opponent=name), {"mean_return": Estimate("mean", value, 100, deviation)})
        for name, (value, deviation) in values.items()
    ]
    score = Population.of(rows)
    assert (score.mean_return.value, score.exploitability.value, score.aggregate.value) == (80.0, 60.0, 20.0)
    assert score.exploiter == "hard"
    # Standard errors of the rows are 3, 4 and 2; the hard row counts a third in the mean, and once more.
    assert score.aggregate.standard_error == pytest.approx((1.0 + (4 / 3) ** 2 + (8 / 3) ** 2) ** 0.5)
    assert score.exploitability.interval() == pytest.approx((60 - 1.984 * 2, 60 + 1.984 * 2), abs=0.01)
    assert score.as_json()["aggregate"]["value"] == 20.0


def test_a_population_of_known_players(stubborn: MakePolicy) -> None:
    """Rock for 50 throws: all but the first are lost to who beats the last throw; ties and thirds are 0."""
    suite = Suite(
        matches=8,
        population=True,
        rows=(SuiteRow(opponent="beat-last:noise=0"), SuiteRow(opponent="random"), SuiteRow(opponent="biased:noise=1")),
    )
    agent = Agent(stubborn("roshambo", ROCK), settings={"throws": 50})
    played = run_benchmark(agent, suite)
    assert played.population is not None
    assert played.population.exploiter == "beat-last:noise=0"
    assert 48 <= played.population.exploitability.value <= 50
    for row in played.rows[1:]:  # 8 * 50 throws: 5 standard errors of a match's sum of 50 are 10
        assert abs(row.numbers["mean_return"].value) < 10
    again = run_benchmark(agent, suite)
    assert again.as_json()["population"] == played.as_json()["population"]


def test_a_population_needs_opponents_and_a_return(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("population: true\n")
    with make_env("rps") as env, pytest.raises(ConfigFileError, match="population"):
        load_suite(file, env)
