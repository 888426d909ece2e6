"""Runs that take turns in one process: each goes as it would alone, and a failure or a signal spoils no other."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import CallbackError
from ludus.core.tables import read_table
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Iteration, TrainConfig, train
from ludus.training.session import Received, ended_by_signals, training_turns
from ludus.training.together import Turns, train_together

STEPS = 320


def config(seed: int, **changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": 8, "settings": {"rounds": 3}},
            "seed": seed,
            "total_env_steps": STEPS,
            "policy": {"net_arch": {"pi": [4], "vf": [4]}},
            "ppo": {"n_steps": 8, "batch_size": 64, "n_epochs": 1},
            "opponents": {"self": 1, "cycle": 1},
            "league": {"snapshot_every_env_steps": 64, "keep": 3},
            "monitoring": {"console": "off", "tensorboard": False, "curves": False},
            "checkpoints": {"every_iterations": 2},
            **changes,
        }
    )


def turns(seed: int, folder: Path, received: Received, *callbacks: BaseCallback) -> Turns:
    return training_turns(config(seed), folder / str(seed), received, title="test", callbacks=callbacks)


def test_each_goes_as_it_would_alone(tmp_path: Path) -> None:
    outcomes = train_together([turns(seed, tmp_path / "together", Received()) for seed in range(3)], "cpu")
    assert [outcome.counters.env_steps for outcome in outcomes] == [STEPS] * 3
    for seed in range(3):
        alone, together = tmp_path / "alone" / str(seed), tmp_path / "together" / str(seed)
        train(config(seed), alone)
        for name in ("metrics.jsonl", "monitor.csv", "opponents.csv"):
            assert (alone / name).read_bytes() == (together / name).read_bytes(), name
        final = [load_checkpoint(folder / "checkpoints" / "final") for folder in (alone, together)]
        assert final[0].tensors.keys() == final[1].tensors.keys()
        for group, tensors in final[0].tensors.items():
            assert all(bool((tensors[name] == final[1].tensors[group][name]).all()) for name in tensors), group


class _Fails(BaseCallback):
    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == 2:
            raise ValueError("it breaks")


def test_a_run_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    runs = [turns(0, tmp_path, Received(), _Fails()), turns(1, tmp_path, Received())]
    with pytest.raises(CallbackError, match="it breaks"):
        train_together(runs, "cpu")
    assert (tmp_path / "0" / "checkpoints" / "interrupted").is_dir()
    assert (tmp_path / "1" / "checkpoints" / "final").is_dir()
    assert "it breaks" in (tmp_path / "0" / "run.log").read_text()
    assert "it breaks" not in (tmp_path / "1" / "run.log").read_text()


class _Signals(BaseCallback):
    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == 2:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def received() -> Iterator[Received]:
    with ended_by_signals() as received:
        yield received


def test_a_signal_saves_all(tmp_path: Path, received: Received) -> None:
    runs = [turns(0, tmp_path, received, _Signals()), turns(1, tmp_path, received)]
    outcomes = train_together(runs, "cpu")
    assert [outcome.stop_reason for outcome in outcomes] == ["SIGTERM came"] * 2
    assert all((tmp_path / str(seed) / "checkpoints" / "interrupted").is_dir() for seed in (0, 1))
    outcomes = train_together([turns(seed, tmp_path, Received()) for seed in (0, 1)], "cpu")
    assert [outcome.counters.env_steps for outcome in outcomes] == [STEPS] * 2
    assert len(read_table(tmp_path / "0" / "resources.csv").numbers("iteration")) >= 5
