"""The configuration of a sweep: spaces anywhere in it, checked by the schema of runs, with the place of every fault."""

from pathlib import Path

import pytest
from tests.scale.conftest import TINY, Write

from ludus.core.errors import ConfigError, ConfigFileError
from ludus.scale.config import SweepConfig, load_sweep, read_sweep
from ludus.scale.space import ChoiceSpace, Dimension, IntegerSpace, LogUniformSpace

RATE = "ppo.learning_rate"


def faults_of(file: Path, *overrides: str) -> dict[str, str]:
    """Return line and column by key of all faults of a sweep."""
    with pytest.raises(ConfigFileError) as caught:
        load_sweep(file, overrides)
    return {fault.key: fault.place.removeprefix(f"{file}:") for fault in caught.value.faults}


def test_spaces_are_found_and_trials_get_their_values(write_sweep: Write) -> None:
    more = "algorithm: ppo\nrewards: {weights: {sweep: choice, values: [{}, {reward: 2.0}]}}"
    plan = load_sweep(write_sweep("trials: 3, seeds: 2, search: random", more))
    assert [each.name for each in plan.dimensions] == [RATE, "rewards.weights"]
    assert plan.config == SweepConfig(trials=3, seeds=2, search="random")
    config = plan.trial_config({RATE: 0.01, "rewards.weights": {"reward": 2.0}})
    assert config.to_json()["ppo"]["learning_rate"] == {"kind": "constant", "level": 0.01}  # type: ignore[index, call-overload]
    assert "reward" in config.rewards.weights
    assert config.model_copy(update={"ppo": plan.base.ppo, "rewards": plan.base.rewards}) == plan.base  # type: ignore[attr-defined]


def test_the_resolved_file_is_the_same_sweep(write_sweep: Write, tmp_path: Path) -> None:
    plan = load_sweep(write_sweep("trials: 3"), ["ppo.n_epochs={sweep: integer, low: 1, high: 4}", "sweep.seeds=5"])
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "sweep.yaml").write_text(plan.to_yaml())
    again = read_sweep(folder)
    assert (again.config, again.base) == (plan.config, plan.base)
    assert {each.path: each.space for each in again.dimensions} == {each.path: each.space for each in plan.dimensions}
    assert again.config.seeds == 5
    with pytest.raises(ConfigError, match="holds no sweep"):
        read_sweep(tmp_path / "elsewhere")


def test_a_later_layer_replaces_a_space_or_puts_one_in(write_sweep: Write) -> None:
    file = write_sweep()
    space = "ppo.gamma={sweep: uniform, low: 0.9, high: 0.99}"
    plan = load_sweep(file, [f"{RATE}=0.02", space])
    assert [each.name for each in plan.dimensions] == ["ppo.gamma"]
    assert plan.base.to_json()["ppo"]["learning_rate"]["level"] == 0.02  # type: ignore[index, call-overload]
    with pytest.raises(ConfigError, match="nothing to search"):
        load_sweep(file, [f"{RATE}=0.02"])
    # A choice replaces what is below it, in the first trial as in all others.
    weights = "rewards.weights={sweep: choice, values: [{}, {reward: 2.0}]}"
    plan = load_sweep(write_sweep(more="rewards: {weights: {reward: 3.0}}"), [weights])
    assert plan.base.rewards.weights == {}
    assert plan.trial_config({RATE: 0.01, "rewards.weights": {}}).rewards.weights == {}


def test_faults_name_their_line_and_column(write_sweep: Write) -> None:
    wrong = TINY.replace("high: 1e-1", "hihg: 1e-1").replace("n_epochs: 1", "n_epochs: {sweep: choise, values: [1]}")
    found = faults_of(write_sweep("trails: 2", text=wrong))
    assert found == {
        "sweep.trails": "13:9",
        f"{RATE}.high": "8:18",
        f"{RATE}.hihg": "8:50",
        "ppo.n_epochs.sweep": "7:21",
    }


def test_both_ends_and_every_choice_are_checked_by_the_schema_of_runs(write_sweep: Write) -> None:
    text = TINY.replace("n_epochs: 1", "n_epochs: {sweep: choice, values: [2, 1.5]}")
    text = text.replace(
        "low: 1e-4, high: 1e-1}", "low: 1e-4, high: 1e-1}\n  gamma: {sweep: uniform, low: 0.5, high: 1.5}"
    )
    assert faults_of(write_sweep(text=text)) == {"ppo.n_epochs": "7:41", "ppo.gamma": "9:43"}
    # Also that of the first values, with everything else that is wrong with the run.
    text = text.replace("low: 0.5, high: 1.5", "low: -0.5, high: 0.5").replace("n_steps: 8", "n_stesp: 8")
    assert faults_of(write_sweep(text=text)) == {"ppo.n_stesp": "5:3", "ppo.gamma": "9:32"}


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("ppo.gamma={sweep: uniform, low: 0.9, high: 0.9}", "ppo.gamma"),
        ("ppo.gamma={sweep: log_uniform, low: 0, high: 0.9}", "ppo.gamma"),
        ("ppo.gamma={sweep: choice, values: [0.9]}", "ppo.gamma.values"),
        ("seed={sweep: integer, low: 0, high: 9}", "seed"),
        ("evaluation.matches={sweep: integer, low: 1, high: 9}", "evaluation.matches"),
        ("total_env_steps={sweep: integer, low: 100, high: 900}", "total_env_steps"),  # asha compares half-way
        ("sweep.gpus_per_trial=1.5", "sweep"),
    ],
)
def test_what_cannot_be_searched_is_refused(write_sweep: Write, override: str, key: str) -> None:
    assert list(faults_of(write_sweep(), override)) == [key]


def test_population_based_training_changes_what_a_checkpoint_can_take_over(write_sweep: Write) -> None:
    file = write_sweep("scheduler: pbt")
    width = "policy.net_arch={sweep: choice, values: [{pi: [4], vf: [4]}, {pi: [8], vf: [8]}]}"
    assert list(faults_of(file, width)) == ["policy.net_arch"]
    choice = "ppo.gamma={sweep: choice, values: [0.9, 0.99]}"
    assert len(load_sweep(file, [choice]).dimensions) == 2
    assert len(load_sweep(file, [width, "sweep.scheduler=none"]).dimensions) == 2


def test_trials_need_evaluations_at_the_same_times(write_sweep: Write) -> None:
    with pytest.raises(ConfigError, match="has no evaluation"):
        load_sweep(write_sweep(), ["evaluation=null"])
    with pytest.raises(ConfigError, match="sooner"):
        load_sweep(write_sweep(), ["evaluation.sooner={number: mean_return, steps: [[0.5, 10]]}"])


def test_a_file_names_its_world(write_sweep: Write) -> None:
    with pytest.raises(ConfigError, match="does not name its world"):
        load_sweep(write_sweep(text=TINY.replace("name: identity, ", "")))


def test_only_limits_and_the_number_of_trials_change_in_a_sweep_that_has_begun(write_sweep: Write) -> None:
    plan = load_sweep(write_sweep("trials: 3"))
    assert plan.changed(["sweep.trials=9", "sweep.max_hours=2"]).config == SweepConfig(trials=9, max_hours=2.0)
    for word in ("sweep.seeds=3", "ppo.n_epochs=2", "sweep.asha.grace_evaluations=2"):
        with pytest.raises(ConfigFileError, match="cannot change in a sweep that has begun"):
            plan.changed([word])
    with pytest.raises(ConfigFileError, match="trials"):
        plan.changed(["sweep.trials=0"])


def test_decisions_come_at_rungs_and_at_exchanges() -> None:
    asha = SweepConfig.model_validate({"asha": {"grace_evaluations": 2, "reduction_factor": 3}})
    assert [asha.next_decision(count) for count in (0, 1, 2, 5, 6, 17, 18)] == [2, 2, 6, 6, 18, 18, 54]
    pbt = SweepConfig.model_validate({"scheduler": "pbt", "pbt": {"every_evaluations": 3}})
    assert [pbt.next_decision(count) for count in (0, 2, 3, 4, 8, 9)] == [3, 3, 6, 6, 9, 12]
    assert SweepConfig(scheduler="none").next_decision(5) is None


def test_codes_stand_for_values() -> None:
    choice = Dimension(("policy", "net_arch"), ChoiceSpace(values=([64], [64, 64], None)))
    assert [choice.decode(code) for code in (0, 1, 2)] == [[64], [64, 64], None]
    assert [choice.space.move(code, up) for code in (0, 2) for up in (False, True)] == [0, 1, 1, 2]
    assert [choice.encode(value) for value in ([64, 64], None, [1])] == [1, 2, None]
    whole = Dimension(("ppo", "n_epochs"), IntegerSpace(low=1, high=8))
    assert [whole.encode(value) for value in (2, 2.4, 9)] == [2, None, None]
    assert [whole.space.move(2, up) for up in (False, True)] == [1, 3]
    assert [IntegerSpace(low=1, high=100).move(50, up) for up in (False, True)] == [40, 60]
    rate = Dimension(("ppo", "learning_rate"), LogUniformSpace(low=0.1, high=1.0))
    assert [rate.space.move(code, up) for code, up in ((0.5, False), (0.5, True), (0.9, True))] == [0.4, 0.6, 1.0]
    assert [rate.encode(value) for value in (0.5, 2.0, True, "0.5", float("nan"))] == [0.5, None, None, None, None]
