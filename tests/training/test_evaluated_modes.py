"""Evaluation in training with settings and modes of its own: what is played, noted, kept as best, and refused."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import ConfigError, ConfigFileError, LudusError
from ludus.policies.agent import Agent
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, TrainConfig, Trainer, train
from ludus.training.callbacks import Evaluated, Iteration
from ludus.training.loggers.progress import ScalarNames
from ludus.training.preflight import verify
from ludus.training.presets import load_run_config
from ludus.training.summary import summarise

MODES = {"1v1": {}, "1v2": {"orange": 2}, "2v2": {"blue": 2, "orange": 2}}


def make_config(evaluation: dict[str, Any] | None = None, **changes: Any) -> TrainConfig:
    usual = {"every_env_steps": 100, "matches": 4, "opponents": ["strong", "idle"]}
    return TrainConfig.model_validate(
        {
            "world": {"name": "tug", "num_envs": 4, "settings": {"rounds": 3}},
            "total_env_steps": 200,
            "policy": {"net_arch": {"pi": [4], "vf": [4]}},
            "ppo": {"n_steps": 10, "n_minibatches": 1, "n_epochs": 1},
            "opponents": {"mirror": 1, "random": 1},
            "evaluation": usual | (evaluation or {}),
            **changes,
        }
    )


class Listener(BaseCallback):
    """Keeps evaluations; stops after some iterations."""

    def __init__(self, stop_after: int = 0) -> None:
        self.evaluated: list[Evaluated] = []
        self._stop_after = stop_after

    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == self._stop_after:
            self.trainer.stop()

    def on_evaluation(self, evaluated: Evaluated) -> None:
        self.evaluated.append(evaluated)


def run(config: TrainConfig, folder: Path, stop_after: int = 0) -> Listener:
    listener = Listener(stop_after)
    with Trainer(config, folder, [listener]) as trainer:
        trainer.run()
    return listener


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def test_evaluations_play_in_their_own_settings_and_the_agent_knows_them(tmp_path: Path) -> None:
    train(make_config({"settings": {"rounds": 7}}), tmp_path)
    assert {row["mean_length"] for row in rows(tmp_path / "evaluation_results.csv")} == {"7.0"}
    assert {row["l"] for row in rows(tmp_path / "monitor.csv")} == {"3"}
    assert Agent.load(tmp_path).settings == {"rounds": 7}


def test_every_mode_has_rows_and_the_score_is_their_mean(tmp_path: Path) -> None:
    listener = run(make_config({"settings": {"rounds": 5}, "modes": MODES}), tmp_path)
    table = rows(tmp_path / "evaluation_results.csv")
    first = [row for row in table if row["iteration"] == table[0]["iteration"]]
    assert [(row["opponent"], row["mode"], row["side"], row["matches"]) for row in first] == [
        ("strong", "1v1", "", "4"),
        ("idle", "1v1", "", "4"),
        ("strong", "1v2", "1v2", "2"),
        ("strong", "1v2", "2v1", "2"),
        ("idle", "1v2", "1v2", "2"),
        ("idle", "1v2", "2v1", "2"),
        ("strong", "2v2", "", "4"),
        ("idle", "2v2", "", "4"),
    ]
    assert float(first[0]["score"]) == pytest.approx(sum(float(row["win_rate"]) for row in first) / 8)
    assert {row["mean_length"] for row in table} == {"5.0"}
    scalars = ScalarNames().of_evaluation(listener.evaluated[0])
    assert {f"evaluation/win_rate/{name}" for name in ("1v1 idle", "1v2 idle", "2v1 idle", "2v2 strong")} <= set(
        scalars
    )


def test_with_modes_the_best_score_is_that_of_the_whole_run(tmp_path: Path) -> None:
    phases = [
        {"name": "alone", "opponents": {"random": 1}, "promotion": {"after_env_steps": 100}},
        {"name": "pairs", "opponents": {"random": 1}, "world": {"settings": MODES["2v2"]}},
    ]
    config = make_config({"modes": MODES}, opponents=None, curriculum=phases, total_env_steps=500)
    run(config, tmp_path / "straight")
    table = rows(tmp_path / "straight" / "evaluation_results.csv")
    scores = {row["iteration"]: float(row["score"]) for row in table}
    document: Any = load_checkpoint(tmp_path / "straight" / "checkpoints" / "final").documents["training"]
    assert document["course"]["evaluation"]["best"] == max(scores.values())
    for stop_after in (2, 3, 5):
        run(config, tmp_path / "stopped", stop_after)
    run(config, tmp_path / "stopped")
    for name in ("evaluation_results.csv", "metrics.jsonl", "opponents.csv"):
        assert (tmp_path / "straight" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes(), name


def test_ratings_are_named_by_mode_where_there_are_several(tmp_path: Path) -> None:
    phases = [
        {"name": "alone", "opponents": {"random": 1}, "promotion": {"after_env_steps": 100}},
        {"name": "pairs", "opponents": {"random": 1}, "world": {"settings": MODES["2v2"]}},
    ]
    train(make_config(opponents=None, curriculum=phases, total_env_steps=500, evaluation=None), tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        mode = {"alone": "1v1", "pairs": "2v2"}[line["stage"]]
        assert {name for name in line if name.startswith("rating")} == {
            f"rating_elo/{mode}",
            f"rating_openskill/{mode}",
        }


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        ({"settings": {"blue": 9}}, r"evaluation\.settings: .*blue"),
        ({"modes": {"odd": {"rounds": 0}}}, r"mode 'odd' of evaluation\.modes: .*rounds"),
    ],
)
def test_settings_that_no_game_can_have_are_refused(evaluation: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        list(verify(make_config(evaluation)))


def test_modes_of_a_world_with_trials_are_refused() -> None:
    config = TrainConfig.model_validate(
        {
            "world": {"name": "mimic", "num_envs": 2},
            "evaluation": {"modes": {"a": {}}},
            "ppo": {"n_steps": 8, "batch_size": 16},
        }
    )
    with pytest.raises(LudusError, match=r"evaluation\.modes names a, .*mimic-v1"):
        list(verify(config))


def test_files_with_wrong_settings_are_told_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        "world: {name: tug, settings: {rounds: 4}}\n"
        "opponents: {mirror: 1, random: 1}\n"
        "evaluation:\n"
        "  settings: {round: 5}\n"
        "  modes:\n"
        "    pairs: {blue: 7}\n"
        "curriculum: []\n"
    )
    with pytest.raises(ConfigFileError) as raised:
        load_run_config("tug", None, file)
    text = str(raised.value)
    assert "run.yaml:4" in text
    assert "did you mean 'rounds'" in text
    assert "evaluation.modes.pairs.blue" in text


def test_the_summary_names_the_modes() -> None:
    told = list(summarise(make_config({"modes": MODES}), None, ""))
    assert any("4 matches against strong, idle in each of 1v1, 1v2, 2v2" in line for line in told)
