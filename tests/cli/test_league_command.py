"""`ludus league`: what it prints and refuses; leagues that train are in tests/scale/test_ray.py."""

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.scale.test_league import DUEL

from ludus.league.payoffs import Record
from ludus.scale.league_folder import EVALUATION, LeagueFolder
from ludus.scale.matchmaking import Member
from ludus.scale.population import load_league


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A league of two members, of which the second one is better."""
    (tmp_path / "duel.yaml").write_text(DUEL)
    plan, path = load_league(tmp_path / "duel.yaml"), tmp_path / "league"
    league = LeagueFolder(path)
    (path / "league.yaml").write_text(plan.to_yaml())
    league.learner("main-1", "main").env_steps = 600
    for number in range(2):
        league.add_member(Member(f"main-1-g1-{number:04}", "main-1", "main", 300 * number), b"")
    league.report("one", EVALUATION, {("main-1-g1-0001", "main-1-g1-0000"): Record(6, 0, 2)})
    league.save(plan, state="stopped", reason="SIGTERM came", wall_s=1.0, evaluators=1)
    league.close()
    return path


def test_a_league_is_shown(run: Run, folder: Path) -> None:
    code, said, error = run("league", "show", folder)
    assert (code, error) == (0, "")
    assert "2 members, 8 matches" in said
    assert said.index("main-1-g1-0001") < said.index("main-1-g1-0000")  # the better one first
    code, said, _ = run("league", "show", folder, "--json")
    assert code == 0
    document = json.loads(said)
    assert (document["state"], document["reason"], document["matches"]) == ("stopped", "SIGTERM came", 8)
    assert [member["rating"] > 0 for member in document["members"]] == [False, True]


def test_numbers_are_changed_and_faults_are_named(run: Run, folder: Path) -> None:
    code, said, _ = run("league", "scale", folder, "evaluators=3", "main.learners=2")
    assert code == 0
    assert "main-1, main-2, main-exploiter-1, league-exploiter-1; 3 evaluators" in said
    code, _, error = run("league", "scale", folder, "main.learners=0")
    assert code == 2
    assert "population.main.learners" in error
    code, _, error = run("league", "show", folder.parent)
    assert code == 2
    assert "holds no league" in error
    code, _, error = run("league", "start", "roshambo")
    assert code == 2
    assert "comes with no league" in error
    code, _, error = run("tournament", "rock", "cycle", "--world", "duel", "--address", "auto")
    assert code == 2
    assert "add --ray" in error


def test_without_ray_the_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # Python's own mark of a module that cannot be imported
    for words in (("league", "start", "brawl"), ("league", "resume", folder),
                  ("tournament", "rock", "cycle", "--world", "duel", "--ray")):  # fmt: skip
        code, _, error = run(*words)
        assert code == 2
        assert "needs ray" in error
        assert "scale" in error
