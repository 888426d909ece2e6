"""Snapshots of other runs as opponents that a callback assigns, as a league over machines does."""

import csv
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import ConfigError
from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, Trainer

GAMES, STEPS = 8, 10


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": GAMES, "settings": {"rounds": 3}},
            "total_env_steps": 8 * GAMES * STEPS,
            "policy": {"net_arch": {"pi": [4], "vf": [4]}},
            "ppo": {"n_steps": STEPS, "batch_size": 40, "n_epochs": 1},
            "opponents": {"self": 1},
            "league": {"snapshot_every_env_steps": 1, "sampler": "assigned", "keep": 3},
            "checkpoints": {"every_iterations": 1, "keep": 1},
            **changes,
        }
    )


class Assigner(BaseCallback):
    """Assigns opponents after some iterations: weights of the learner as it was at the start, under other names."""

    def __init__(self, orders: dict[int, dict[str, float]], stop_after: int = 0) -> None:
        self._orders, self._stop_after = orders, stop_after
        self.done: list[bool] = []

    def on_training_start(self, counters: Counters) -> None:
        state = self.trainer.components.policy.state()
        self._first = {name: tensor.clone() for name, tensor in state.items()}

    def on_iteration(self, iteration: Iteration) -> None:
        chances = self._orders.get(iteration.counters.iterations)
        if chances is not None:
            self.done.append(self.trainer.assign_opponents(dict.fromkeys(chances, (7, self._first)), chances))
        if iteration.counters.iterations == self._stop_after:
            self.trainer.stop()


def train(folder: Path, orders: dict[int, dict[str, float]], stop_after: int = 0, **changes: Any) -> Assigner:
    assigner = Assigner(orders, stop_after)
    with Trainer(make_config(**changes), folder, [assigner]) as trainer:
        trainer.run()
    return assigner


def opponents_by_iteration(folder: Path) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    with (folder / "opponents.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(int(row["iteration"]), set()).add(row["opponent"])
    return found


def test_assigned_snapshots_play_and_no_others_join(tmp_path: Path) -> None:
    assigner = train(tmp_path, {2: {"far": 1.0, "near": 3.0}, 5: {"near": 1.0}})
    met = opponents_by_iteration(tmp_path)
    assert assigner.done == [True, True]
    assert met[1] == met[2] == {"start"}  # its own first weights, until someone is assigned
    assert met[4] == {"far", "near"}  # a match takes three of the ten steps of an iteration
    assert met[7] == met[8] == {"near"}
    assert not any(name.startswith("self-") for names in met.values() for name in names)


def test_a_resumed_run_meets_whom_it_was_assigned(tmp_path: Path) -> None:
    train(tmp_path, {2: {"near": 1.0}}, stop_after=4)
    train(tmp_path, {})
    met = opponents_by_iteration(tmp_path)
    assert met[4] == met[5] == met[8] == {"near"}
    assert (tmp_path / "snapshots" / "near").is_dir()


def test_there_must_be_room_for_those_that_are_assigned(tmp_path: Path) -> None:
    four = {f"agent-{number}": 1.0 for number in range(4)}
    assigner = train(tmp_path, {1: four, 2: {"near": 1.0}})
    assert assigner.done == [False, True]  # only three places
    assert opponents_by_iteration(tmp_path)[8] == {"near"}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"league": {"sampler": "pfsp", "keep": 3}}, "league.sampler is 'pfsp'"),
        ({"opponents": {"rock": 1}}, "name 'self' among the opponents"),
    ],
)
def test_settings_that_do_not_allow_it_are_named(tmp_path: Path, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        train(tmp_path, {1: {"near": 1.0}}, **changes)
