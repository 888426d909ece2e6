"""Runs in worlds of teams: mirrored games, unequal teams, matches that count once a game, exact resume."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import ConfigError
from ludus.evaluation.evaluate import evaluate
from ludus.policies.agent import Agent
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Iteration, TrainConfig, Trainer, train
from ludus.training.preflight import verify

pytestmark = pytest.mark.train

GAMES, STEPS, ROUNDS = 8, 12, 3


def make_config(blue: int = 2, orange: int = 2, **changes: Any) -> TrainConfig:
    settings = {"blue": blue, "orange": orange, "rounds": ROUNDS}
    return TrainConfig.model_validate(
        {
            "world": {"name": "tug", "num_envs": GAMES, "settings": settings},
            "total_env_steps": 1500,
            "policy": {"net_arch": {"pi": [8], "vf": [8]}},
            "ppo": {"n_steps": STEPS, "n_minibatches": 2, "n_epochs": 1},
            "opponents": {"mirror": 2, "self": 1, "random": 1},
            "league": {"snapshot_every_env_steps": 300, "keep": 3, "sampler": "pfsp"},
            "checkpoints": {"every_iterations": 2, "keep": 1},
            **changes,
        }
    )


class Stopper(BaseCallback):
    """Stops a run after some iterations."""

    def __init__(self, stop_after: int) -> None:
        self._seen: list[Iteration] = []
        self._stop_after = stop_after

    def on_iteration(self, iteration: Iteration) -> None:
        self._seen.append(iteration)
        if len(self._seen) == self._stop_after:
            self.trainer.stop()


def run(config: TrainConfig, folder: Path, stop_after: int = 0) -> None:
    stopper = Stopper(stop_after)
    with Trainer(config, folder, [stopper]) as trainer:
        trainer.run()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def assert_same_run(one: Path, other: Path) -> None:
    for path in (*one.glob("*.csv"), *one.glob("*.jsonl")):
        assert path.read_bytes() == (other / path.name).read_bytes(), path.name
    first, second = (load_checkpoint(folder / "checkpoints" / "final") for folder in (one, other))
    assert first.documents == second.documents
    for group, tensors in first.tensors.items():
        for name, tensor in tensors.items():
            assert tensor.equal(second.tensors[group][name]), f"{group}.{name}"


def test_matches_count_once_a_game_and_mirrored_games_not_at_all(tmp_path: Path) -> None:
    train(make_config(), tmp_path)
    episodes = Counter(row["opponent"] for row in rows(tmp_path / "monitor.csv"))
    table = rows(tmp_path / "opponents.csv")
    matches = Counter[str]()
    for row in table:
        matches[row["opponent"]] += int(row["matches"])
    # In four games the learner plays four seats, in four others two.
    assert episodes.pop("") == 2 * sum(episodes.values())
    assert episodes == {name: 2 * count for name, count in matches.items()}
    assert {"random", "self-0001"} <= set(matches)
    assert {(row["mode"], row["side"]) for row in table} == {("2v2", "2v2")}
    assert all(int(row["env_steps"]) == int(row["iteration"]) * STEPS * 24 for row in table)


def test_in_unequal_teams_the_table_says_which_side_the_learner_was_on(tmp_path: Path) -> None:
    config = make_config(1, 2, opponents={"strong": 1}, total_env_steps=3000)
    train(config, tmp_path)
    table = rows(tmp_path / "opponents.csv")
    assert {row["mode"] for row in table} == {"1v2"}
    won = {side: sum(int(row["wins"]) for row in table if row["side"] == side) for side in ("1v2", "2v1")}
    matches = {side: sum(int(row["matches"]) for row in table if row["side"] == side) for side in ("1v2", "2v1")}
    assert won["1v2"] == 0, "nobody wins alone against two that always pull"
    assert won["2v1"] > 0
    assert matches["1v2"] == matches["2v1"]


@pytest.mark.parametrize(
    ("blue", "orange", "policy"),
    [
        (1, 2, {"net_arch": {"pi": [8], "vf": [8]}}),
        (2, 2, {"recurrent": {"size": 4}, "net_arch": {"pi": [], "vf": []}}),
    ],
)
def test_it_goes_on_exactly_where_it_was_stopped(
    tmp_path: Path, blue: int, orange: int, policy: dict[str, Any]
) -> None:
    ppo = {"n_steps": STEPS, "n_minibatches": 2, "n_epochs": 1, "sequence_length": 4}
    config = make_config(blue, orange, policy=policy, ppo=ppo)
    run(config, tmp_path / "straight")
    for stop_after in (1, 3, 2):
        run(config, tmp_path / "stopped", stop_after)
    run(config, tmp_path / "stopped")
    assert_same_run(tmp_path / "straight", tmp_path / "stopped")


def test_a_team_learns_to_pull_together(tmp_path: Path) -> None:
    config = make_config(
        total_env_steps=60_000,
        ppo={"n_steps": 32, "n_minibatches": 4, "n_epochs": 4, "learning_rate": 3e-3},
        opponents={"mirror": 85, "self": 15},
        world={"name": "tug", "num_envs": 64, "settings": {"blue": 2, "orange": 2}},
    )
    train(config, tmp_path)
    rates = {row["opponent"]: row["win_rate"] for row in evaluate(Agent.load(tmp_path), matches=40).rows}
    assert rates["random"] > 0.9
    assert rates["idle"] == 1.0


def test_verification_counts_the_rows_of_mirrored_games() -> None:
    lines = list(verify(make_config()))
    assert any(line.startswith("batch: 12 steps x 24 rows are 2 minibatches of 144") for line in lines)
    assert any("rollout: 8 steps x 12 rows" in line and "against a past self" in line for line in lines), lines


def test_rows_that_cannot_be_divided_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"n_minibatches 7 .*12 steps x 24 rows"):
        list(verify(make_config(ppo={"n_steps": STEPS, "n_minibatches": 7})))
