"""`ludus sweep`: what it prints, writes and refuses; sweeps that train are in tests/scale/test_ray.py."""

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.scale.conftest import TINY

from ludus.scale.config import load_sweep
from ludus.scale.results import SweepResults

Run = Callable[..., tuple[int, str, str]]
RATE = "ppo.learning_rate"


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A sweep folder whose two trials of two seeds have ended, one by a failure."""
    file = tmp_path / "tiny.yaml"
    file.write_text(f"{TINY}sweep: {{trials: 2, seeds: 2}}\n")
    plan, folder = load_sweep(file), tmp_path / "folder"
    results = SweepResults(plan, folder)
    good, bad = results.add({RATE: 0.01}), results.add({RATE: 0.05})
    good.state, good.points, good.wall_s = "finished", [[(64, 0.25)], [(64, 0.75)]], 3.0
    bad.state, bad.reason = "failed", "RuntimeError: the disk is gone"
    folder.mkdir()
    (folder / "sweep.yaml").write_text(plan.to_yaml())
    results.save()
    return folder


@pytest.mark.parametrize("library", ["ray", "optuna"])
def test_without_the_extra_it_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # Python's own mark of a module that cannot be imported
    code, _, error = run("sweep", "mine.yaml")
    assert code == 2
    assert f"needs {library}" in error or "needs ray" in error
    assert "scale" in error


class TestWithTheExtra:
    """What needs Ray and Optuna to be installed, though not started."""

    @pytest.fixture(autouse=True)
    def _needs_the_extra(self) -> None:
        if find_spec("ray") is None or find_spec("optuna") is None:
            pytest.skip("needs ray and optuna: the extra scale")

    def test_faults_name_their_place(self, run: Run, tmp_path: Path) -> None:
        file = tmp_path / "mine.yaml"
        file.write_text(TINY.replace("high: 1e-1", "hihg: 1e-1"))
        code, _, error = run("sweep", file, "--out", tmp_path / "folder", "sweep.trails=3")
        assert code == 2
        assert f"{file}:8:50: {RATE}.hihg: unknown key" in error
        assert "command line: sweep.trails=3: sweep.trails: unknown key" in error
        assert not (tmp_path / "folder").exists()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ((), "name a configuration"),
            (("sweep.trials=3",), "name a configuration"),
            (("mine.yaml", "--retry-failed"), "add --resume"),
            (("--resume", "nowhere"), "holds no sweep"),
            (("--resume", "nowhere", "--out", "elsewhere"), "leave --out out"),
        ],
    )
    def test_what_is_refused(self, run: Run, words: tuple[str, ...], said: str) -> None:
        code, _, error = run("sweep", *words)
        assert code == 2
        assert said in error

    def test_a_sweep_that_has_ended_is_shown_again(self, run: Run, finished: Path) -> None:
        code, said, error = run("sweep", "--resume", finished)
        assert code == 0
        assert "0.5 (-2.677 to 3.677)" in said  # t = 12.706 of one degree of freedom, standard error 0.25
        assert f"ludus train identity --config {finished / 'best.yaml'}" in said
        assert "1 trials failed" in error or "1 trials failed" in said
        assert (finished / "sweep.html").read_text().startswith("<!doctype html>")
        code, said, _ = run("sweep", "--resume", finished, "--json")
        document = json.loads(said)
        assert (code, document["best"], document["state"]) == (0, 1, "finished")
        assert [trial["state"] for trial in document["trials"]] == ["finished", "failed"]

    def test_other_settings_cannot_change(self, run: Run, finished: Path) -> None:
        code, _, error = run("sweep", "--resume", finished, "sweep.seeds=3")
        assert code == 2
        assert "sweep.seeds: cannot change in a sweep that has begun; valid: sweep.trials" in error
