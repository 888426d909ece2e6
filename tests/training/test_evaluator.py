"""Evaluation during training: scenarios, the score, when it is due next, and when an agent has converged."""

import csv
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.registry import make_env
from ludus.evaluation.evaluate import Evaluation
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.training import evaluation_callback
from ludus.training.callbacks import BaseCallback, Counters, Evaluated
from ludus.training.config import EvaluationConfig, TrainConfig
from ludus.training.evaluation_callback import EvaluationCallback, cadence, score_of
from ludus.training.loop import Trainer
from ludus.training.preflight import verify
from ludus.training.run_folder import describe_end, describe_run
from ludus.training.summary import summarise

PPO = {"n_steps": 16, "batch_size": 64, "n_epochs": 2}


pytestmark = pytest.mark.usefixtures("stroll_world")


def make_config(evaluation: dict[str, Any] | None = None, **changes: Any) -> TrainConfig:
    settings = {
        "world": {"name": "stroll", "num_envs": 8, "device": "cpu", "settings": {"step_limit": 12}},
        "total_env_steps": 6 * 128,
        "policy": {"net_arch": {"pi": [8], "vf": [8]}},
        "ppo": PPO,
        "rewards": {"weights": {"progress": 1.0, "fell": -1.0}},
        "evaluation": {"every_env_steps": 256, "matches": 4} | (evaluation or {}),
    }
    return TrainConfig.model_validate(settings | changes)


class Ear(BaseCallback):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.evaluations: list[Evaluated] = []
        self.messages: list[tuple[str, str, int]] = []
        self.activities: list[tuple[str, float | None]] = []

    def on_activity(self, text: str, share: float | None, counters: Counters) -> None:
        self.activities.append((text, share))

    def on_evaluation(self, evaluated: Evaluated) -> None:
        self.evaluations.append(evaluated)

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        self.messages.append((level, text, counters.env_steps))


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "evaluation_results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def result(*rows: dict[str, Any]) -> Evaluation:
    return Evaluation("stroll-v1", rows, 1.0)


def test_the_score_is_any_number_and_that_of_the_first_trial() -> None:
    scenarios = result(
        {"opponent": "", "trial": "calm", "matches": 4, "mean_length": 10.0, "distance_m": 2.0},
        {"opponent": "", "trial": "wind", "matches": 4, "mean_length": 30.0, "distance_m": 8.0},
    )
    assert score_of(scenarios, EvaluationConfig()) == 10.0
    assert score_of(scenarios, EvaluationConfig(score="distance_m")) == 2.0
    with pytest.raises(UnknownNameError, match=r"'distanc_m' \(did you mean 'distance_m'\?\); valid: matches, mean_le"):
        score_of(scenarios, EvaluationConfig(score="distanc_m"))
    opponents = result(
        {"opponent": "a", "matches": 4, "win_rate": 0.5, "damage_ratio": 2.0},
        {"opponent": "b", "matches": 4, "win_rate": 0.2, "damage_ratio": 1.0},
    )
    assert score_of(opponents, EvaluationConfig()) == pytest.approx(0.35)
    assert score_of(opponents, EvaluationConfig(score="lowest_win_rate")) == 0.2
    assert score_of(opponents, EvaluationConfig(score="damage_ratio")) == 1.5


def test_the_highest_bound_that_is_reached_decides_over_the_cadence() -> None:
    sooner = {"number": "distance_m", "steps": [[5, 200], [10, 100], [20, 400]]}
    config = EvaluationConfig.model_validate({"every_env_steps": 300, "sooner": sooner})
    found = [cadence(config, {"distance_m": number}) for number in (0.0, 4.9, 5.0, 9.9, 10.0, 19.9, 20.0, 99.0)]
    assert found == [300, 300, 200, 200, 100, 100, 400, 400]
    for steps in ([], [[5, 0]], [[5, 100], [5, 200]], [[10, 100], [5, 200]]):
        with pytest.raises(ValidationError):
            EvaluationConfig.model_validate({"sooner": {"number": "distance_m", "steps": steps}})


def test_the_run_is_evaluated_sooner_and_its_convergence_is_noted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations at 256 env steps, then every 128; the third one is the first with both numbers high enough."""
    found = iter([(6.0, 0.5), (7.0, 1.0), (12.0, 1.0), (13.0, 1.0), (1.0, 1.0)])

    def play(*_: Any, **__: Any) -> Evaluation:
        distance, stable = next(found)
        row = {"opponent": "", "trial": "calm", "matches": 4, "mean_length": 9.0, "distance_m": distance}
        return result(row | {"stable": stable}, row | {"trial": "wind", "distance_m": 99.0, "stable": 1.0})

    monkeypatch.setattr(evaluation_callback, "evaluate", play)
    config = make_config(
        {
            "sooner": {"number": "distance_m", "steps": [[5, 128]]},
            "converged": {"distance_m": 10.0, "stable": 1.0},
            "score": "distance_m",
        },
        checkpoints={"every_iterations": 1},
    )
    ear = Ear()
    with Trainer(config, tmp_path, [ear]) as trainer:
        trainer.run()
        assert trainer.evaluator.steps_to_convergence == 512
        assert trainer.evaluator.milestones == {"steps_to_convergence": 512}
        describe_run(tmp_path, config, Counters())
        trainer.wall_s, trainer.training_s = 2.0, 1.0
        describe_end(tmp_path, trainer, "the budget is used up")
    assert [each.counters.env_steps for each in ear.evaluations] == [256, 384, 512, 640, 768]
    assert [each.milestones["steps_to_convergence"] for each in ear.evaluations] == [None, None, 512, 512, 512]
    assert [each.is_best for each in ear.evaluations] == [True, True, True, True, False]
    said = [(text, steps) for level, text, steps in ear.messages if level == "info"]
    assert said == [("converged at 512 env steps: distance_m 12, stable 1", 512)]
    rows = table(tmp_path)
    assert [row["trial"] for row in rows[:2]] == ["calm", "wind"]
    assert [row["steps_to_convergence"] for row in rows[::2]] == ["", "", "512", "512", "512"]
    assert json.loads((tmp_path / "run.json").read_text())["steps_to_convergence"] == 512


def test_a_score_that_is_no_number_is_never_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([2.0, math.nan, 1.0, 3.0])
    row = {"opponent": "", "trial": "calm", "matches": 4, "mean_length": 9.0}
    monkeypatch.setattr(evaluation_callback, "evaluate", lambda *_, **__: result(row | {"distance_m": next(found)}))
    evaluator = EvaluationCallback(make_config({"score": "distance_m"}))
    with make_env("stroll") as env:
        policy = Policy(env.spec, PolicyConfig())
    assert [evaluator.evaluate(policy, Counters(), {}).is_best for _ in range(4)] == [True, False, False, True]
    assert (evaluator.best, evaluator.since_best) == (3.0, 0)


def test_later_agents_within_the_tolerance_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([2.0, 1.9, 1.7, 1.9, 2.5, math.nan])
    row = {"opponent": "", "trial": "calm", "matches": 4, "mean_length": 9.0}
    monkeypatch.setattr(evaluation_callback, "evaluate", lambda *_, **__: result(row | {"distance_m": next(found)}))
    evaluator = EvaluationCallback(make_config({"score": "distance_m", "tolerance": 0.2}))
    with make_env("stroll") as env:
        policy = Policy(env.spec, PolicyConfig())
    bests = [evaluator.evaluate(policy, Counters(), {}).is_best for _ in range(6)]
    assert bests == [True, True, False, True, True, False]
    assert (evaluator.best, evaluator.since_best) == (2.5, 1)  # the highest: tolerances do not add up


def test_an_evaluation_is_put_off_until_all_of_them_take_their_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Iterations of 3 s, evaluations of 2 s, due every iteration, a tenth of the time.

    The first is free. A second one makes 4 s, a tenth of 40 s: 36 s of training, after 12 iterations; a third one makes
    6 s: 54 s of training, after 18.
    """
    now_s = 0.0

    def play(*_: Any, **__: Any) -> Evaluation:
        nonlocal now_s
        now_s += 2.0
        return result({"opponent": "", "trial": "calm", "matches": 4, "mean_length": 9.0, "distance_m": 1.0})

    monkeypatch.setattr(evaluation_callback, "evaluate", play)
    monkeypatch.setattr(evaluation_callback, "time", SimpleNamespace(perf_counter=lambda: now_s))
    config = make_config({"score": "distance_m"})
    with make_env("stroll") as env:
        policy = Policy(env.spec, PolicyConfig())
    found: dict[bool, list[int]] = {}
    messages: list[str] = []
    for is_limited in (True, False):
        evaluator, found[is_limited] = EvaluationCallback(config, is_limited=is_limited), []
        for iteration in range(1, 20):
            before, after = Counters(256 * (iteration - 1)), Counters(256 * iteration)
            if evaluator.pass_steps(before, after, is_last=iteration == 19, elapsed_s=3.0):
                messages += evaluator.evaluate(policy, after, {}).messages
                evaluator.is_due = False
                found[is_limited].append(iteration)
    assert found == {True: [1, 12, 18, 19], False: list(range(1, 20))}
    assert [text.partition(":")[0] for text in messages] == [
        "the evaluation was put off by 2,560 env steps",
        "the evaluation was put off by 1,280 env steps",
    ]


def test_no_clock_decides_when_a_run_on_the_cpu_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_callback, "MAX_SHARE", 1e-9)
    ear = Ear()
    with Trainer(make_config({}), tmp_path, [ear]) as trainer:
        trainer.run()
    assert [each.counters.env_steps for each in ear.evaluations] == [256, 512, 768]


def test_what_it_remembers_survives_a_checkpoint() -> None:
    config = make_config({"sooner": {"number": "distance_m", "steps": [[5, 128]]}, "converged": {"stable": 1.0}})
    first, second = EvaluationCallback(config), EvaluationCallback(config)
    first.every_env_steps, first.steps_to_convergence, first.best = 128, 512, 3.0
    second.load_state(json.loads(json.dumps(first.state())))
    assert (second.every_env_steps, second.steps_to_convergence, second.best) == (128, 512, 3.0)
    assert second.pass_steps(Counters(200), Counters(260), is_last=False)


def test_a_run_that_goes_on_writes_the_same_table(tmp_path: Path) -> None:
    config = make_config(
        {"sooner": {"number": "stable", "steps": [[-1, 128]]}, "converged": {"stable": -1.0}, "deterministic": True}
    )
    with Trainer(config, tmp_path / "straight") as trainer:
        trainer.run()

    class Stopper(Ear):
        def on_evaluation(self, evaluated: Evaluated) -> None:
            super().on_evaluation(evaluated)
            halting.stop()

    with Trainer(config, tmp_path / "stopped", [Stopper()]) as halting:
        halting.run()
        assert halting.counters.env_steps == 256
    with Trainer(config, tmp_path / "stopped") as again:
        again.run()
        assert again.evaluator.steps_to_convergence == 256
    straight, stopped = (tmp_path / name / "evaluation_results.csv" for name in ("straight", "stopped"))
    assert straight.read_bytes() == stopped.read_bytes()
    assert [row["env_steps"] for row in table(tmp_path / "stopped")[::3]] == ["256", "384", "512", "640", "768"]


def test_a_run_of_the_walker_has_rows_by_trial(tmp_path: Path) -> None:
    config = make_config({"scenarios": ["wind", "calm"], "score": "distance_m"}, ppo=PPO)
    with Trainer(config, tmp_path) as trainer:
        trainer.run()
    rows = table(tmp_path)
    assert [row["trial"] for row in rows] == ["wind", "calm"] * 3
    assert all(float(row["score"]) == float(rows[i // 2 * 2]["distance_m"]) for i, row in enumerate(rows))
    assert {"distance_min_m", "stable_walks", "speed_m_s"} <= set(rows[0])
    assert "steps_to_convergence" not in rows[0]


@pytest.mark.parametrize(
    ("evaluation", "kind", "message"),
    [
        ({"scenarios": ["winds"]}, UnknownNameError, r"unknown scenario 'winds' .*'wind'.*valid: calm"),
        ({"scenarios": ["wind", "wind"]}, ConfigError, "more than once: wind"),
        ({"converged": {"stabel": 1.0}}, UnknownNameError, r"'stabel' \(did you mean 'stable'\?\)"),
        ({"sooner": {"number": "metres", "steps": [[1, 1]]}}, UnknownNameError, "valid: matches, .*distance_min_m"),
        ({"score": "win_rate"}, UnknownNameError, "unknown number of an evaluation 'win_rate'"),
    ],
)  # fmt: skip
def test_names_that_do_not_exist_are_found_before_the_run(
    evaluation: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        list(verify(make_config(evaluation)))


def test_trials_must_fit_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list(verify(make_config({"converged": {"stable_walks": 4.0}, "score": "distance_min_m"})))
    assert lines[0].startswith("world: stroll-v1 on cpu, 1 seat")
    monkeypatch.setattr("stroll.scenarios.SCENARIOS", {"calm": {}, "night": {"weather": {"moon": 1.0}}})
    with pytest.raises(ConfigError, match=r"scenario 'night': settings of stroll-v1: .*weather.moon"):
        list(verify(make_config()))
    duel = {"world": {"name": "duel", "num_envs": 8, "device": "cpu"}, "opponents": "rock", "rewards": {}}
    with pytest.raises(ConfigError, match=r"duel-v1 .*evaluation.opponents"):
        list(verify(make_config({"scenarios": ["calm"]}, **duel)))


def test_the_summary_names_the_trials(tmp_path: Path) -> None:
    config = make_config({"sooner": {"number": "distance_m", "steps": [[5, 128], [10, 64]]}})
    text = "\n".join(summarise(config, tmp_path, ""))
    assert "evaluation every 256 env steps, 128 from distance_m 5, 64 from distance_m 10, 4 episodes" in text
    assert "in each of calm, wind, storm" in text


def test_what_takes_long_is_told_while_it_does(tmp_path: Path) -> None:
    ear = Ear()
    with Trainer(make_config(), tmp_path, [ear]) as trainer:
        trainer.run()
    assert ear.activities[0] == ("saving the checkpoint init", None)
    assert ear.activities[1][0].startswith("first iteration")
    evaluations = [share for text, share in ear.activities if text.startswith("evaluation, 4 episodes in each of ")]
    assert evaluations[0] == 0.0
    assert evaluations.count(0.0) == len(ear.evaluations) == 3
    assert all(share is not None and 0.0 <= share <= 1.0 for share in evaluations)
    assert 1.0 in evaluations
    assert all(evaluated.seconds > 0.0 and evaluated.every_env_steps == 256 for evaluated in ear.evaluations)
    assert trainer.wall_s > trainer.training_s + sum(evaluated.seconds for evaluated in ear.evaluations)


def test_a_signal_during_an_evaluation_lets_the_callback_finish(tmp_path: Path) -> None:
    class Interrupted(Ear):
        def on_activity(self, text: str, share: float | None, counters: Counters) -> None:
            if text.startswith("evaluation") and share:
                trainer.interrupt("a signal")
            super().on_activity(text, share, counters)

    ear = Interrupted()
    with Trainer(make_config(), tmp_path, [ear]) as trainer:
        trainer.run()
    assert ear.evaluations == []
    assert ear.activities[-2][1]  # the callback that was being told has noted it
    assert ear.activities[-1] == ("saving the checkpoint interrupted", None)
    assert trainer.stop_reason == "a signal"
