"""Matchmaking, the league folder and the workers of a league, without Ray."""

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.league_scaling import Costs, estimate, most_learners, simulate

from ludus.core.errors import ConfigError, ConfigFileError, FormatError, UnknownNameError
from ludus.league.payoffs import Record
from ludus.scale.league import scale_league
from ludus.scale.league_folder import EVALUATION, TRAINING, LeagueFolder
from ludus.scale.league_workers import LearnerJob, LearnerWorker, Order, load_from_bytes
from ludus.scale.matchmaking import Learner, Member, PayoffTable, assign, has_won, missing_pairs
from ludus.scale.population import PopulationConfig, find_league, load_league, read_league

DUEL = """\
world: {name: duel, num_envs: 8, settings: {rounds: 3}}
total_env_steps: 1_000
policy: {net_arch: {pi: [4], vf: [4]}}
ppo: {n_steps: 10, batch_size: 40, n_epochs: 1}
monitoring: {tensorboard: false, resources: false}
population: {snapshot_every_env_steps: 300}
"""


def members(*names: str) -> list[Member]:
    """Members `ROLE-LEARNER-NUMBER`: m is a main agent, x a main exploiter, y a league exploiter."""
    roles: dict[str, Any] = {"m": "main", "x": "main_exploiter", "y": "league_exploiter"}
    return [Member(name, name.rpartition("-")[0], roles[name[0]], place) for place, name in enumerate(names)]


class TestMatchmaking:
    """Chances worked out by hand; PFSP weights are (1 - score) ** 2."""

    config = PopulationConfig.model_validate({"live": 8})

    def table(self, *rows: tuple[str, str, int, int, int]) -> PayoffTable:
        table = PayoffTable()
        for first, second, *counts in rows:
            table.add(first, second, Record(*counts))
        return table

    def test_a_main_agent_plays_everyone_by_how_hard_they_are(self) -> None:
        league = members("m-1-0", "m-1-1", "y-1-0")
        # Scores 0.9, 0.5 (not met) and 0.4: weights 0.01, 0.25 and 0.36 of 0.62. None is forgotten.
        table = self.table(("now", "m-1-0", 9, 0, 1), ("now", "y-1-0", 3, 2, 5))
        chances = assign(Learner("m-1", "main", ["now"]), league, table, self.config, 0.5)
        assert chances == pytest.approx({"m-1-0": 0.01 / 0.62, "m-1-1": 0.25 / 0.62, "y-1-0": 0.36 / 0.62})

    def test_a_main_agent_plays_those_that_it_forgot_more_often(self) -> None:
        league = members("m-1-0", "m-2-0", "x-1-0")
        # Scores 0.2 (forgotten), 0.6, and 0.8 against an exploiter (always remembered): weights 0.64, 0.16, 0.04.
        table = self.table(("now", "m-1-0", 2, 0, 8), ("now", "m-2-0", 6, 0, 4), ("now", "x-1-0", 8, 0, 2))
        chances = assign(Learner("m-1", "main", ["now"]), league, table, self.config, 0.5)
        forgotten = {"m-1-0": 0.64 / 0.68, "m-2-0": 0.0, "x-1-0": 0.04 / 0.68}
        everyone = {"m-1-0": 0.64 / 0.84, "m-2-0": 0.16 / 0.84, "x-1-0": 0.04 / 0.84}
        assert chances == pytest.approx({name: 0.77 * everyone[name] + 0.23 * forgotten[name] for name in everyone})

    def test_a_main_exploiter_plays_the_newest_main_agents(self) -> None:
        league = members("m-1-0", "m-1-1", "m-2-0", "x-1-0", "y-1-0")
        learner = Learner("x-1", "main_exploiter", ["now"])
        assert assign(learner, league, PayoffTable(), self.config, 0.5) == {"m-1-1": 0.5, "m-2-0": 0.5}
        # Hopeless against the newest of m-1, score 0.05: its snapshots by p (1 - p), 0.25 and 0.0475.
        table = self.table(("now", "m-1-1", 0, 1, 9), ("now", "m-1-0", 5, 0, 5))
        chances = assign(learner, league, table, self.config, 0.5)
        assert chances == pytest.approx({"m-1-0": 0.125 / 0.2975, "m-1-1": 0.02375 / 0.2975, "m-2-0": 0.5})
        assert assign(learner, members("x-1-0"), PayoffTable(), self.config, 0.5) == {}

    def test_a_league_exploiter_plays_everyone_and_at_most_so_many_at_a_time(self) -> None:
        league = members(*(f"m-1-{number}" for number in range(20)))
        chances = assign(Learner("y-1", "league_exploiter", ["now"]), league, PayoffTable(), self.config, 0.5)
        assert len(chances) == 8
        assert sum(chances.values()) == pytest.approx(1.0)

    def test_the_newest_matches_say_how_good_a_learner_is(self) -> None:
        table = self.table(
            ("old", "a", 0, 0, 50), ("older", "a", 9, 0, 0), ("new", "a", 4, 0, 2), ("new", "b", 20, 0, 0)
        )
        recent = table.recent(["new", "old", "older"], 10)
        assert recent == {
            "a": Record(4, 0, 52),
            "b": Record(20, 0, 0),
        }  # six are too few, so the snapshot before counts
        assert table.record("a", "new") == Record(2, 0, 4)
        assert table.matches == 85
        assert table.rows() == [
            ("a", "new", 2, 0, 4),
            ("a", "old", 50, 0, 0),
            ("a", "older", 0, 0, 9),
            ("b", "new", 0, 0, 20),
        ]

    def test_an_exploiter_has_won_when_it_beats_everyone_whom_it_plays(self) -> None:
        assert has_won({"a": Record(7, 0, 3), "b": Record(6, 2, 2)}, ["a", "b"])
        assert not has_won({"a": Record(7, 0, 3), "b": Record(6, 1, 3)}, ["a", "b"])
        assert not has_won({"a": Record(7, 0, 3)}, ["a", "b"])  # not met
        assert not has_won({}, [])

    def test_the_newest_members_are_evaluated_first(self) -> None:
        config = self.config.model_copy(update={"newest": 2})
        found = [*missing_pairs(members("m-0", "m-1", "m-2", "m-3"), {("m-3", "m-2"), ("m-1", "m-0")}, config)]
        assert found == [("m-3", "m-1"), ("m-2", "m-1"), ("m-2", "m-0")]


class TestFolder:
    """What is safe on the disk, and what a damaged file says."""

    def test_every_report_counts_once_also_after_a_kill(self, tmp_path: Path) -> None:
        folder = LeagueFolder(tmp_path)
        assert folder.report("one", TRAINING, {("a", "b"): Record(3, 1, 2), ("a", "c"): Record()})
        assert not folder.report("one", TRAINING, {("a", "b"): Record(9, 9, 9)})
        assert folder.report("two", EVALUATION, {("b", "a"): Record(1, 0, 0)})
        folder.close()
        with (tmp_path / "payoffs.jsonl").open("a") as file:
            file.write('{"id": "three", "source": "evaluation", "matc')  # cut off
        again = LeagueFolder(tmp_path)
        assert again.table.rows() == [("a", "b", 3, 1, 3)]
        assert again.evaluated == {("b", "a")}
        assert not again.report("two", EVALUATION, {("b", "a"): Record(1, 0, 0)})
        assert again.report("three", EVALUATION, {("c", "a"): Record(0, 2, 0)})
        again.close()
        assert LeagueFolder(tmp_path).table.rows() == [("a", "b", 3, 1, 3), ("a", "c", 0, 2, 0)]

    @pytest.mark.parametrize(
        "line", ["[]", '{"id": "x"}', '{"id": "x", "source": "y", "matches": [["a", "b", 1, -1, 0]]}']
    )
    def test_a_damaged_table_is_refused_with_its_line(self, tmp_path: Path, line: str) -> None:
        (tmp_path / "payoffs.jsonl").write_text(f'{{"id": "a", "source": "training", "matches": []}}\n{line}\n')
        with pytest.raises(FormatError, match=r"payoffs\.jsonl:2 is no report"):
            LeagueFolder(tmp_path)

    def test_a_member_is_a_name_and_never_a_path(self, tmp_path: Path) -> None:
        member = {"name": "../../etc", "learner": "m", "role": "main", "env_steps": 0}
        state = {"version": 1, "session": 1, "wall_s": 0.0, "learners": [], "members": [member]}
        (tmp_path / "state.json").write_text(json.dumps(state))
        with pytest.raises(FormatError, match="cannot be a file's name"):
            LeagueFolder(tmp_path)


class TestConfiguration:
    """The section `population`."""

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        (tmp_path / "duel.yaml").write_text(DUEL)
        return tmp_path / "duel.yaml"

    def test_a_league_is_read_and_changed(self, file: Path, tmp_path: Path) -> None:
        plan = load_league(file, ["population.main.learners=2"])
        assert [*plan.config.learner_names()] == [
            ("main-1", "main"), ("main-2", "main"), ("main-exploiter-1", "main_exploiter"),
            ("league-exploiter-1", "league_exploiter"),
        ]  # fmt: skip
        first, second = (plan.learner_config(f"main-{number}", "main", 1) for number in (1, 2))
        assert first.seed != second.seed
        assert first.seed != plan.learner_config("main-1", "main", 2).seed
        assert (first.total_env_steps, first.league.sampler, first.checkpoints.every_env_steps) == (
            1_000,
            "assigned",
            300,
        )
        assert plan.learner_config("y", "league_exploiter", 1).total_env_steps == 10_000_000
        (tmp_path / "league.yaml").write_text(plan.to_yaml())
        assert read_league(tmp_path) == plan
        changed = scale_league(tmp_path, ["evaluators=3", "population.league_exploiter.learners=0"])
        assert read_league(tmp_path).config.evaluators == 3
        assert changed.config.league_exploiter.learners == 0
        with pytest.raises(ConfigFileError, match=r"population\.live: cannot change in a league that has begun"):
            scale_league(tmp_path, ["live=3"])

    @pytest.mark.parametrize(
        ("override", "text"),
        [
            ("population.mian.learners=2", "population.mian: unknown key"),
            ("population.main.learners=0", "population.main.learners"),
            ("population.main.opponents={mirror: 1}", "needs a share of 'self'"),
            ("population.main.opponents={self: 1, mirror: -1}", "population.main.opponents"),
            ("curriculum=[{name: a, opponents: {self: 1}}]", "a league has no curriculum"),
            ("ppo.n_steps=0", "ppo.n_steps"),
        ],
    )
    def test_faults_name_their_key(self, file: Path, override: str, text: str) -> None:
        with pytest.raises(ConfigError) as caught:
            load_league(file, [override])
        assert text in str(caught.value)

    @pytest.mark.parametrize("world", ["brawl", "rocket"])
    @pytest.mark.parametrize("preset", ["alphastar", "debug"])
    def test_presets_have_all_roles(self, world: str, preset: str) -> None:
        plan = load_league(find_league(world, preset))
        assert plan.base.world.name == world
        names = [name for name, _ in plan.config.learner_names()]
        assert names == ["main-1", "main-exploiter-1", "league-exploiter-1"]
        assert plan.config.main_exploiter.env_steps < plan.base.total_env_steps

    def test_a_world_without_leagues_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="comes with no league"):
            find_league("duel")
        with pytest.raises(UnknownNameError):
            find_league("brawl", "no-such-preset")
        with pytest.raises(ConfigError, match="holds no league"):
            read_league(tmp_path)


class TestLearner:
    """A learner, called like Ray calls it."""

    def job(self, tmp_path: Path) -> LearnerJob:
        (tmp_path / "duel.yaml").write_text(DUEL)
        config = load_league(tmp_path / "duel.yaml").learner_config("main-1", "main", 1)
        return LearnerJob(config.to_json(), str(tmp_path / "run"), "main-1", 300, begins=True)

    def test_a_learner_reports_itself_and_forgets_what_was_counted(self, tmp_path: Path) -> None:
        job, worker = self.job(tmp_path), LearnerWorker(())
        assert worker.train(job, Order()) == ""
        told = worker.tell(Order())
        # 8 games of which 3 are played against itself: 11 rows of 10 steps in an iteration.
        assert [(report.number, report.env_steps) for report in told.reports] == [
            (0, 0), (1, 330), (2, 660), (3, 990), (4, 1100)
        ]  # fmt: skip
        assert told.env_steps == 1100
        assert all(load_from_bytes(report.agent).spec.id == "duel-v1" for report in told.reports)
        assert [report.number for report in worker.tell(Order(reported=2)).reports] == [3, 4]
        assert [*(tmp_path / "run" / "reports").glob("000001*")] == [tmp_path / "run" / "reports" / "000001.json"]
        again = LearnerWorker(())
        assert (
            again.train(job, Order()) == ""
        )  # it is done: nothing is trained, and what was not counted is still there
        assert [report.number for report in again.tell(Order()).reports] == [3, 4]

    def test_a_run_that_is_cut_off_counts_every_match_of_its_table_once(self, tmp_path: Path) -> None:
        job = self.job(tmp_path)
        bots = {"opponents": {"self": 1, "rock": 1, "mirror": 1}}  # its own first weights are nobody in a league
        job = job._replace(config=job.config | bots)
        first = LearnerWorker(())
        first.stop("the machine is needed")  # it ends after the first iteration, and is resumed
        assert first.train(job, Order()) == "the machine is needed"
        assert [report.number for report in first.tell(Order()).reports] == [0]
        second = LearnerWorker(())
        assert second.train(job, Order()) == ""
        reports = second.tell(Order()).reports
        assert reports[-1].env_steps >= 1_000
        with (tmp_path / "run" / "opponents.csv").open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["opponent"] == "rock"]
        names = ("wins", "draws", "losses")
        played = [sum(int(row[name]) for row in rows) for name in names]
        assert sum(played) > 20
        assert [sum(report.matches.get("rock", (0, 0, 0))[place] for report in reports) for place in range(3)] == played
        assert {opponent for report in reports for opponent in report.matches} == {"rock"}


class TestScaling:
    """The model of `benchmarks/league_scaling.py` with round numbers: 10 learners, a snapshot each every 10 s."""

    costs = Costs(
        snapshot_bytes=1_250_000, write_s=0.5, load_s=0.25, transfer_bytes_per_s=1e9, report_s=(0.01, 1e-5),
        assign_s=(0.001, 1e-6), matches_per_s=1024.0,
    )  # fmt: skip

    def test_loads_are_those_worked_out_by_hand(self) -> None:
        load = estimate(10, 10.0, self.costs, seconds=1_000.0)
        assert load.snapshots_per_s == 1.0  # so that there are 1,000 members at the end
        assert (load.in_bytes_per_s, load.out_bytes_per_s) == (1_250_000, 12_500_000)
        assert load.link_share == pytest.approx(0.01)
        # One report of 10 + 10 ms, and five mixes of 1 + 1 ms, per second.
        assert load.head_share == pytest.approx(0.02 + 5 * 0.002)
        assert load.evaluator_cores == pytest.approx(32 * 64 / 1024)
        assert load.disk_bytes == 1_000 * 1_250_000

    def test_nothing_waits_in_a_league_that_keeps_up_and_everything_in_one_that_does_not(self) -> None:
        calm = simulate(10, 10.0, self.costs, seconds=1_000.0)
        # Written, counted with at most 10 mixes of 2 ms, sent to ten learners in 10 ms, loaded; and hardly any waiting.
        assert 0.5 + 0.02 + 0.01 + 0.25 <= calm.delay_p95_s <= 0.5 + 2 * (0.02 + 0.02 + 0.01) + 0.25
        slow = dataclasses.replace(self.costs, report_s=(2.0, 0.0))
        # Two seconds of work come in per second: after 1,000 s the head is 1,000 s behind.
        assert simulate(10, 10.0, slow, seconds=1_000.0).delay_p95_s == pytest.approx(1_000.0, rel=0.1)
        assert most_learners(10.0, self.costs)["link"] == 99  # with 100 the link is full
