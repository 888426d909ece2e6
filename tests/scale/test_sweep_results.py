"""Results of a sweep: means and intervals over seeds, ranking, front, importance, and what is read back."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.scale.conftest import Write

from ludus.core.errors import ConfigError, FormatError
from ludus.reports.sweep_page import write_sweep_page
from ludus.scale.config import SweepPlan, load_sweep
from ludus.scale.results import SweepResults, TrialRecord, importance_of, read_results
from ludus.scale.sweep import TrialStudy
from ludus.training.presets import load_run_config

pytestmark = pytest.mark.ray

RATE, EPOCHS = "ppo.learning_rate", "ppo.n_epochs"


@pytest.fixture
def plan(write_sweep: Write) -> SweepPlan:
    return load_sweep(write_sweep("seeds: 2, trials: 4"), [f"{EPOCHS}={{sweep: choice, values: [1, 2, 4]}}"])


def add(results: SweepResults, *seeds: list[float], rate: float = 0.01, epochs: int = 1, **more: object) -> TrialRecord:
    """Add a trial with the objective of each seed at env steps 64, 128, ...; finished after a second per seed."""
    record = results.add({RATE: rate, EPOCHS: epochs})
    record.take([[(64 * (place + 1), value) for place, value in enumerate(seed)] for seed in seeds], float(len(seeds)))  # type: ignore[misc]
    record.state = "finished"
    for name, value in more.items():
        setattr(record, name, value)
    return record


def test_a_value_is_the_mean_of_the_seeds_with_students_interval(plan: SweepPlan, tmp_path: Path) -> None:
    results = SweepResults(plan, tmp_path)
    record = add(results, [0.1, 0.4], [0.3, 0.6, 0.9])  # the second seed is further
    assert record.evaluations == 2
    assert record.env_steps == 128
    # Student's t of one degree of freedom at 97.5 % is 12.706; the standard error is 0.1.
    assert record.value == pytest.approx((0.5, 0.5 - 1.2706, 0.5 + 1.2706), abs=1e-4)
    alone = add(results, [0.25])
    assert alone.value == (0.25, -math.inf, math.inf)
    assert alone.describe()["value"] == [0.25, None, None]
    assert add(results, [math.nan], [0.5]).value is None
    assert add(results).value is None


def test_finished_trials_rank_before_stopped_ones(plan: SweepPlan, tmp_path: Path) -> None:
    assert SweepResults(plan, tmp_path).best is None
    results = SweepResults(plan, tmp_path)
    add(results, [0.2, 0.3], wall_s=5.0)  # 1
    add(results, [0.9], state="stopped", wall_s=1.0)  # 2: higher, but at an earlier evaluation
    add(results, [0.2, 0.7], wall_s=9.0)  # 3
    add(results, state="failed", reason="RuntimeError: no")  # 4
    add(results, [0.1, 0.1], state="stopped", wall_s=2.0)  # 5: stopped later than 2
    assert [record.number for record in results.ranking()] == [3, 1, 5, 2, 4]
    assert results.best is results.trials[3]
    # 2 is the cheapest and the highest: nothing is better at any price.
    assert [record.number for record in results.front()] == [2]
    results.trials[2].points = [[(64, 0.4)]]
    assert [record.number for record in results.front()] == [2, 3]


def test_a_lower_objective_can_be_better(write_sweep: Write, tmp_path: Path) -> None:
    results = SweepResults(load_sweep(write_sweep("direction: minimize")), tmp_path)
    for value in (0.5, 0.2, 0.9):
        results.add({RATE: value}).take([[(64, value)]], value)  # type: ignore[list-item]
        results.trials[len(results.trials)].state = "finished"
    assert [record.number for record in results.ranking()] == [2, 1, 3]
    assert [record.number for record in results.front()] == [2]


def test_results_are_read_back_and_the_winner_is_a_configuration(plan: SweepPlan, tmp_path: Path) -> None:
    results = SweepResults(plan, tmp_path)
    add(results, [0.2, 0.3], [0.4, 0.5], rate=0.02, epochs=4)
    add(results, [0.1], state="waiting")
    results.save()
    again = read_results(plan, tmp_path)
    assert again.trials == results.trials
    assert again.earlier_s == pytest.approx(results.wall_s, abs=1.0)
    config = load_run_config("identity", file=tmp_path / "best.yaml")
    assert config == plan.trial_config({RATE: 0.02, EPOCHS: 4})
    assert read_results(plan, tmp_path / "none").trials == {}


def test_a_trial_that_was_forked_just_before_a_kill_continues_from_its_fork(plan: SweepPlan, tmp_path: Path) -> None:
    results = SweepResults(plan, tmp_path)
    for state in ("running", "finished"):
        add(results, [0.1], rate=0.02, state=state)
        trial = {"values": {RATE: 0.03, EPOCHS: 2}, "forks": [{}]}
        file = tmp_path / "trials" / f"trial-{len(results.trials):04}" / "trial.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(trial))
    results.save()
    again = read_results(plan, tmp_path)
    assert [record.values[RATE] for record in again.trials.values()] == [0.03, 0.02]


@pytest.mark.parametrize(
    "change",
    [{"version": 2}, {"trials": None}, {"trials": [{"number": 2, "values": {RATE: 0.1, EPOCHS: 1}}]},
     {"trials": [{"number": 1, "values": {RATE: 0.1}}]}, {"trials": [{"number": 1, "values": {}, "state": "odd"}]}],
)  # fmt: skip
def test_damaged_results_are_refused(plan: SweepPlan, tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "results.json").write_text(json.dumps({"version": 1, "trials": []} | change))
    with pytest.raises(FormatError, match="cannot be used"):
        read_results(plan, tmp_path)


def test_the_key_that_decides_is_the_important_one(plan: SweepPlan, tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra scale")
    results = SweepResults(plan, tmp_path)
    for place in range(24):  # the objective is the number of epochs alone
        add(results, [0.0, float(2 ** (place % 3))], rate=10 ** (-1 - (place * 7 % 24) / 12), epochs=2 ** (place % 3))
    add(results, [9.0], rate=0.05)  # not as far as half of them
    found: Any = importance_of(results)
    assert found["evaluation"] == 2
    assert found["trials"] == 24
    assert found["keys"][EPOCHS] > 0.95
    assert found["keys"][RATE] < 0.05
    few = SweepResults(plan, tmp_path)
    add(few, [1.0])
    assert importance_of(few) is None


def test_trials_are_compared_with_those_of_earlier_sessions(write_sweep: Write, tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra scale")
    plan = load_sweep(write_sweep("asha: {reduction_factor: 2}"))
    results = SweepResults(plan, tmp_path)
    for rate, value in ((0.01, 0.5), (0.02, 0.6)):
        results.add({RATE: rate}).take([[(64, value), (128, value)]], 1.0)  # type: ignore[list-item]
        results.trials[len(results.trials)].state = "finished"
    study = TrialStudy(results)
    found = []
    for value in (0.4, 0.7):
        record = results.add(study.draw())
        assert 1e-4 <= record.values[RATE] <= 1e-1
        study.add(record)
        record.take([[(64, value)]], 1.0)  # type: ignore[list-item]
        found.append(study.is_behind(record, 0))
    assert found == [True, False]
    assert len({record.values[RATE] for record in results.trials.values()}) == 4
    failed = results.add({RATE: 0.03})
    failed.state = "failed"
    assert TrialStudy(results).draw() != {RATE: 0.03}  # a trial without any evaluation is no hindrance


def test_a_page_is_made_of_results_alone(plan: SweepPlan, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"trials": []}')
    with pytest.raises(ConfigError, match="not written by ludus sweep"):
        write_sweep_page(tmp_path / "results.json")
    SweepResults(plan, tmp_path).save()
    page = write_sweep_page(tmp_path / "results.json").read_text()
    assert "default-src 'none'" in page.replace("&#x27;", "'")
