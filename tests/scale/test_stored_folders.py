"""Folders of sweeps and leagues from strangers, damaged ones, and two processes on one folder; all without Ray."""

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.scale.conftest import Write

from ludus.core.errors import ConfigError, FormatError, LudusError, RunLockedError
from ludus.envs.registry import make_env
from ludus.league.payoffs import Record
from ludus.policies.agent import agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.reports.league_page import write_league_page
from ludus.scale.config import load_sweep, read_sweep
from ludus.scale.evaluators import MemberStore
from ludus.scale.league import resume_league, start_league
from ludus.scale.league_folder import TRAINING, LeagueFolder
from ludus.scale.league_workers import ReportFolder
from ludus.scale.matchmaking import PayoffTable
from ludus.scale.population import LeaguePlan, load_league, read_league
from ludus.scale.results import read_results
from ludus.scale.sweep import _check_waiting, resume_sweep, start_sweep
from ludus.store import write_single_file
from ludus.training.run_folder import RunLock

pytestmark = pytest.mark.ray

RATE = "ppo.learning_rate"
DUEL = """\
world: {name: duel, num_envs: 8, settings: {rounds: 3}}
policy: {net_arch: {pi: [4], vf: [4]}}
population: {snapshot_every_env_steps: 300}
"""


def write_results(folder: Path, *trials: dict[str, Any], **more: Any) -> None:
    known = [{"number": place, "values": {RATE: 0.01}} | trial for place, trial in enumerate(trials, 1)]
    (folder / "results.json").write_text(json.dumps({"version": 1, "trials": known} | more))


@pytest.fixture
def sweep(write_sweep: Write, tmp_path: Path) -> Path:
    """The folder of a sweep whose first trial has finished and whose second one was being trained."""
    folder = tmp_path / "folder"
    run = folder / "trials" / "trial-0002" / "seed-0"
    run.mkdir(parents=True)
    (folder / "sweep.yaml").write_text(load_sweep(write_sweep("trials: 2, seeds: 1")).to_yaml())
    (run / "metrics.jsonl").write_text("")
    (run.parent / "trial.json").write_text(json.dumps({"values": {RATE: 0.01}, "forks": []}))
    write_results(folder, {"state": "finished", "points": [[[64, 1.0]]]}, {"state": "running"})
    return folder


def link_to(outside: str) -> Callable[[Path], None]:
    """Put a link to something beside the folder in the place of something in it."""

    def put(path: Path) -> None:
        remove(path)
        path.symlink_to(next(each for each in path.parents if each.name == "folder").parent / outside)

    return put


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def fifo(path: Path) -> None:
    remove(path)
    os.mkfifo(path)


def file(path: Path) -> None:
    remove(path)
    path.write_text("[]")


def folder(path: Path) -> None:
    remove(path)
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "put"),
    [
        *(("trials", put) for put in (file, fifo, link_to("empty"))),
        *(("trials/trial-0002", put) for put in (file, fifo, link_to("empty"))),
        *(("trials/trial-0002/seed-0", put) for put in (fifo, link_to("empty"))),
        *(("trials/trial-0002/seed-0/metrics.jsonl", put) for put in (fifo, link_to("precious"))),
        *(("trials/trial-0002/trial.json", put) for put in (file, folder, fifo, link_to("precious"))),
        *(("results.json", put) for put in (file, folder, fifo, link_to("precious"))),
        *(("run.lock", put) for put in (folder, fifo, link_to("precious"))),
        *(("stop", put) for put in (folder, link_to("precious"))),
    ],
)
def test_a_sweep_folder_is_refused_where_it_leads_out_or_is_damaged(
    sweep: Path, tmp_path: Path, name: str, put: Callable[[Path], None]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "precious").write_text("precious")
    plan = read_sweep(sweep)
    put(sweep / name)
    with pytest.raises(FormatError, match=Path(name).name):
        resume_sweep(plan, sweep)
    assert (tmp_path / "precious").read_text() == "precious"
    assert not any((tmp_path / "empty").iterdir())


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"version": 1}',
        '{"version": 2, "trials": []}',
        '{"version": 1, "trials": [], "wall_s": Infinity}',
        '{"version": 1, "trials": [{"number": 1, "values": {"ppo.learning_rate": 0.01}, "wall_s": NaN}]}',
        '{"version": 1, "trials": [{"number": 7, "values": {"ppo.learning_rate": 0.01}}]}',
        '{"version": 1, "trials": [{"number": 1, "values": {"world.name": "gym:evil:Env-v0"}}]}',
        '{"version": 1, "trials": [{"number": 1, "values": {"ppo.learning_rate": 0.01}, "points": [[[64, NaN]]]}]}',
        "[" * 100_000,
    ],
)
def test_damaged_results_are_refused(sweep: Path, content: str) -> None:
    (sweep / "results.json").write_text(content)
    with pytest.raises(FormatError, match=r"results\.json"):
        resume_sweep(read_sweep(sweep), sweep)


@pytest.mark.parametrize("more", ["extends: ../other.yaml\n", "extends: /etc/passwd\n", "extends: quick\n"])
def test_a_stored_configuration_needs_no_other_file(sweep: Path, tmp_path: Path, more: str) -> None:
    (tmp_path / "other.yaml").write_text("seed: 7\n")
    with (sweep / "sweep.yaml").open("a") as opened:
        opened.write(more)
    with pytest.raises(ConfigError, match="extends"):
        read_sweep(sweep)
    (tmp_path / "league.yaml").write_text(DUEL + more)
    with pytest.raises(ConfigError, match="extends"):
        read_league(tmp_path)


def test_a_stored_configuration_names_no_module_and_is_no_link(sweep: Path, tmp_path: Path) -> None:
    settings = (sweep / "sweep.yaml").read_text()
    (sweep / "sweep.yaml").write_text(settings.replace("name: identity", "name: gym:antigravity:Evil-v0"))
    with pytest.raises(ConfigError, match="imports the module"):
        read_sweep(sweep)
    (tmp_path / "precious").write_text("root:secret:0:0")
    link_to("precious")(sweep / "sweep.yaml")
    with pytest.raises(LudusError) as caught:
        read_sweep(sweep)
    assert "secret" not in str(caught.value)


def test_a_second_driver_is_refused_and_changes_nothing(sweep: Path, tmp_path: Path) -> None:
    (sweep / "run.lock").write_text(' {"pid": 1, "host": "left behind"}')  # nobody holds it
    before = {path: path.read_bytes() for path in sweep.rglob("*") if path.is_file() and path.name != "run.lock"}
    with RunLock(sweep), pytest.raises(RunLockedError, match=str(os.getpid())):
        resume_sweep(read_sweep(sweep), sweep)
    assert before == {path: path.read_bytes() for path in before}
    write_results(sweep, {"state": "finished", "points": [[[64, 1.0]]]}, {"state": "stopped"})
    assert resume_sweep(read_sweep(sweep), sweep).reason == ""  # the lock is taken over
    (tmp_path / "league").mkdir()
    (tmp_path / "league" / "league.yaml").write_text(DUEL)
    with RunLock(tmp_path / "league"):
        with pytest.raises(RunLockedError):
            resume_league(tmp_path / "league")
        (tmp_path / "league" / "league.yaml").rename(tmp_path / "duel.yaml")
        with pytest.raises(RunLockedError):
            start_league(load_league(tmp_path / "duel.yaml"), tmp_path / "league")
    assert not (tmp_path / "league" / "league.yaml").exists()


def test_a_sweep_that_has_begun_meanwhile_is_not_begun_again(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="needs the extra scale")
    plan = read_sweep(sweep)

    @contextmanager
    def slow(_: object) -> Iterator[None]:
        (tmp_path / "new" / "trials").mkdir(parents=True)
        yield

    monkeypatch.setattr("ludus.scale.sweep.ray_session", slow)
    with pytest.raises(ConfigError, match="has trials already"):
        start_sweep(plan, tmp_path / "new")


def test_warnings_of_trials_that_are_gone_are_bounded(sweep: Path, caplog: pytest.LogCaptureFixture) -> None:
    gone = [{"state": "waiting", "points": [[[64, 1.0]]]} for _ in range(400)]
    write_results(sweep, {}, {}, *gone)
    with caplog.at_level(logging.WARNING):
        _check_waiting(read_results(read_sweep(sweep), sweep))
    assert "400 trials" in caplog.text
    assert "trial-0003" in caplog.text
    assert len(caplog.text) < 500


def write_agent(path: Path, *, width: int = 4, broken: bool = False, world: str = "duel") -> None:
    with make_env(world, 1, config={"rounds": 3} if world == "duel" else None) as env:
        config = PolicyConfig.model_validate({"net_arch": {"pi": [width], "vf": [4]}})
        policy = Policy(env.spec, config, "cpu")
        state = policy.state()
        if broken:
            name = next(name for name, each in state.items() if each.is_floating_point() and each.numel() > 1)
            state = state | {name: torch.full_like(state[name], torch.nan)}
        write_single_file(path, agent_checkpoint(env.spec, config, state))


class TestLeague:
    """A league whose snapshots are damaged: each is skipped and reported, and never ends the league."""

    @pytest.fixture
    def plan(self, tmp_path: Path) -> LeaguePlan:
        (tmp_path / "league.yaml").write_text(DUEL)
        return read_league(tmp_path)

    def write_state(self, path: Path, *names: str, **more: Any) -> None:
        members = [{"name": name, "learner": "main-1", "role": "main", "env_steps": 0} for name in names]
        state = {"version": 1, "session": 1, "wall_s": 0.0, "learners": [], "members": members}
        (path / "state.json").write_text(json.dumps(state | more))

    def test_damaged_members_leave_and_are_reported(
        self, plan: LeaguePlan, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        snapshots = tmp_path / "snapshots"
        snapshots.mkdir()
        names = ["good", "short", "flipped", "nan", "wide", "foreign", "late"]
        gone = ["missing", "folder", "fifo", "link"]
        for name in names:
            world = "identity" if name == "foreign" else "duel"
            write_agent(
                snapshots / f"{name}.ludus", width=8 if name == "wide" else 4, broken=name == "nan", world=world
            )
        content = (snapshots / "good.ludus").read_bytes()
        (snapshots / "short.ludus").write_bytes(content[:-7])
        flipped = bytearray(content)
        flipped[-9] ^= 4
        (snapshots / "flipped.ludus").write_bytes(flipped)
        (snapshots / "folder.ludus").mkdir()
        os.mkfifo(snapshots / "fifo.ludus")
        (snapshots / "link.ludus").symlink_to(snapshots / "good.ludus")
        self.write_state(tmp_path, *names, *gone, *(f"none-{number}" for number in range(3_000)))
        with caplog.at_level(logging.WARNING):
            league = LeagueFolder(tmp_path)
        assert [member.name for member in league.members] == names
        assert "3004 members" in caplog.text
        assert "missing" in caplog.text
        assert len(caplog.text) < 500
        (snapshots / "late.ludus").unlink()  # while the league runs
        told: list[tuple[str, str]] = []
        store = MemberStore(plan, league, lambda level, text: told.append((level, text)))
        assert store.read("good") == content
        for name in [*names[1:], *gone]:
            assert store.read(name) is None
            assert store.read(name) is None  # and says so once
        assert [member.name for member in league.members] == ["good"]
        assert [(level, text.split()[0]) for level, text in told] == [("warning", name) for name in names[1:]]
        assert max(len(text) for _, text in told) < 1_000

    @pytest.mark.parametrize(
        "more",
        [
            {"members": [{"name": "a" * 300, "learner": "m", "role": "main", "env_steps": 0}]},
            {"members": [{"name": "a", "learner": "m", "role": "main", "env_steps": 0}] * 2},
            {"learners": [{"name": "../../x", "role": "main"}]},
            {"learners": [{"name": "a" * 300, "role": "main"}]},
            {"wall_s": float("nan")},
            {"members": 7},
        ],
    )
    def test_a_hostile_state_is_refused(self, tmp_path: Path, more: dict[str, Any]) -> None:
        self.write_state(tmp_path, **more)
        with pytest.raises(FormatError, match=r"state\.json"):
            LeagueFolder(tmp_path)

    @pytest.mark.parametrize(
        "more",
        [
            {"learners": [{}]},
            {"learners": [7]},
            {"members": [{"name": "a", "rating": "x", "env_steps": 0}]},
            {"members": [[]]},
            {"matches": "many"},
        ],
    )
    def test_a_page_is_made_of_a_league_alone(self, tmp_path: Path, more: dict[str, Any]) -> None:
        state: dict[str, Any] = {
            "world": "duel", "state": "running", "reason": "", "wall_s": 0.0, "evaluators": 1, "matches": 3,
            "total_env_steps": 1, "learners": [], "members": [{"name": "a", "rating": 1.0, "env_steps": 0}],
        }  # fmt: skip
        lines = [
            {"id": ["x"], "matches": [["a", "a", "1", 2, 3], 7, ["a"], ["a", "a", None, 1, 1], ["a", "a", 1e400, 1, 1]]}
        ]
        (tmp_path / "payoffs.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
        (tmp_path / "state.json").write_text(json.dumps(state))
        write_league_page(tmp_path)
        (tmp_path / "state.json").write_text(json.dumps(state | more))
        with pytest.raises(ConfigError, match="not written by ludus league"):
            write_league_page(tmp_path)

    @pytest.mark.parametrize("put", [folder, fifo])
    def test_a_state_that_is_no_file_is_refused(self, tmp_path: Path, put: Callable[[Path], None]) -> None:
        put(tmp_path / "state.json")
        with pytest.raises(FormatError, match=r"state\.json"):
            LeagueFolder(tmp_path)

    @pytest.mark.parametrize("counts", ["[1, 2, 1e400]", "[1, 2, NaN]", f"[1, 2, {10**300}]", '["1", 2, 3]', "[1, 2]"])
    def test_matches_that_cannot_be_counted_are_refused(self, tmp_path: Path, counts: str) -> None:
        row = f'["a", "b", {counts[1:-1]}]'
        (tmp_path / "payoffs.jsonl").write_text(f'{{"id": "x", "source": "training", "matches": [{row}]}}\n')
        with pytest.raises(FormatError, match=r"payoffs\.jsonl:1"):
            LeagueFolder(tmp_path)

    def test_a_huge_table_of_payoffs_is_rated_in_bounded_memory(self) -> None:
        table = PayoffTable()
        names = [f"m-{number}" for number in range(5_000)]
        for name in names:
            table.add(name, names[0], Record(1 << 53, 0, 0))
        table.add(names[-1], names[-2], Record(3, 1, 0))
        assert len(table.ratings(names)) == 2_000
        three = PayoffTable()
        three.add("a", "b", Record(3, 1, 0))
        found = three.ratings(["a", "b", "c"])
        assert found["a"] == pytest.approx(-found["b"])
        assert found["a"] > 100.0

    @pytest.mark.parametrize("name", ["snapshots", "learners", "state.json", "payoffs.jsonl", "run.lock"])
    @pytest.mark.parametrize("put", [link_to("precious"), fifo])
    def test_a_league_folder_is_refused_where_it_leads_out(
        self, tmp_path: Path, name: str, put: Callable[[Path], None]
    ) -> None:
        pytest.importorskip("ray", reason="needs the extra scale")
        (tmp_path / "precious").write_text("precious")
        league = tmp_path / "folder"
        league.mkdir()
        (league / "league.yaml").write_text(DUEL)
        put(league / name)
        with pytest.raises(FormatError, match=name):
            resume_league(league)
        assert (tmp_path / "precious").read_text() == "precious"

    def test_a_learner_with_a_link_in_its_run_is_refused(self, plan: LeaguePlan, tmp_path: Path) -> None:
        pytest.importorskip("ray", reason="needs the extra scale")
        run = tmp_path / "learners" / "main-1" / "gen-0001"
        run.mkdir(parents=True)
        (run / "monitor.csv").symlink_to(tmp_path / "league.yaml")
        with pytest.raises(FormatError, match=r"monitor\.csv"):
            resume_league(tmp_path)

    def test_damaged_reports_are_left_out(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        reports = tmp_path / "reports"
        reports.mkdir()
        good = {"env_steps": 300, "matches": {"rock": [1, 2, 3]}}
        bad: list[Any] = [
            good | {"matches": {"rock": [1, 2]}},
            good | {"matches": {"rock": [1, -2, 3]}},
            good | {"matches": {"rock": [1, 2, 10**300]}},
            good | {"matches": 7},
            good | {"env_steps": None},
            [],
        ]
        for number, document in enumerate([good, *bad]):
            (reports / f"{number:06}.json").write_text(json.dumps(document))
            (reports / f"{number:06}.ludus").write_bytes(b"agent")
        (reports / "000008.json").write_text(json.dumps(good))
        (reports / "000008.ludus").mkdir()
        for name in ("²²²²²²", "1", "000009x", "-00001"):
            (reports / f"{name}.json").write_text("{}")
        folder = ReportFolder(tmp_path)
        assert folder.numbers() == [*range(7), 8]
        with caplog.at_level(logging.WARNING):
            found = folder.read(-1)
        assert [(each.number, each.env_steps, each.matches) for each in found] == [(0, 300, {"rock": (1, 2, 3)})]
        assert folder.period_start(400) == 300
        assert "000003.json" in caplog.text


def test_a_league_counts_what_it_has(tmp_path: Path) -> None:
    league = LeagueFolder(tmp_path)
    assert league.report("one", TRAINING, {("a", "b"): Record(1 << 53, 0, 0)})
    league.close()
    assert LeagueFolder(tmp_path).table.matches == 1 << 53


def test_values_of_results_that_are_no_settings_are_refused(sweep: Path) -> None:
    write_results(
        sweep, {"state": "finished", "values": {RATE: "x" * 5_000_000}, "points": [[[64, 1.0]]]}, {"state": "stopped"}
    )
    with pytest.raises(FormatError) as caught:
        resume_sweep(read_sweep(sweep), sweep)
    assert len(str(caught.value)) < 2_000
