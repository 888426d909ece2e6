"""A run of brawl with all that a run can have goes on exactly, wherever it was stopped: every byte is compared."""

import json
from pathlib import Path
from typing import Any

import pytest

from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Iteration, TrainConfig, Trainer

ITERATIONS, PER_ITERATION = 8, 32
CONFIG: dict[str, Any] = {
    "world": {"name": "brawl", "num_envs": 4, "settings": {"threads": 1, "step_limit": 30}},
    "total_env_steps": ITERATIONS * PER_ITERATION,
    "policy": {
        "strategy": {"layers": 1, "heads": 2, "width": 8, "feedforward": 8, "window": 5, "classify": 0.5},
        "recurrent": {"size": 8},
        "normalize": {"observations": True, "returns": True},
    },
    "ppo": {
        "n_steps": 8,
        "sequence_length": 4,
        "batch_size": 16,
        "n_epochs": 1,
        "learning_rate": {"kind": "linear", "start": 1e-3, "end": 0.0},
    },
    "rewards": {"base": "dense", "weights": {"damage": {"points": [[0, 1.0], [200, 0.0]]}}},
    "curriculum": [
        {"name": "constant", "opponents": {"constant": 1}, "promotion": {"after_env_steps": 3 * PER_ITERATION}},
        {
            "name": "mixed",
            "opponents": {"random": 1, "based": 1},
            "rewards": {"base": "dense", "glide_env_steps": 2 * PER_ITERATION},
            "promotion": {"after_env_steps": 3 * PER_ITERATION},
        },
        {"name": "self", "opponents": {"self": 3, "based": 1}, "rewards": {"base": "sparse"}},
    ],
    "league": {"snapshot_every_env_steps": 2 * PER_ITERATION, "keep": 2, "sampler": "pfsp"},
    "evaluation": {"every_env_steps": 2 * PER_ITERATION, "opponents": ["random"], "matches": 2},
    "checkpoints": {"every_iterations": 3},
    "monitoring": {"strategy_every_iterations": 2},
}


class Stopper(BaseCallback):
    """Stops a run after an iteration."""

    def __init__(self, stop_after: int) -> None:
        self._stop_after = stop_after

    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == self._stop_after:
            self.trainer.stop()


def run(folder: Path, stop_after: int = 0) -> Trainer:
    stopper = Stopper(stop_after)
    with Trainer(TrainConfig.model_validate(CONFIG), folder, [stopper]) as trainer:
        trainer.run()
    return trainer


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("straight")
    assert run(folder).is_finished
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Returns tables, snapshots and the checkpoints of the end; manifests count saves, and there is one more."""
    kinds = ("*.jsonl", "*.csv", "snapshots/*/*", "checkpoints/best/*", "checkpoints/final/*")
    paths = [path for kind in kinds for path in folder.glob(kind) if path.name != "manifest.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_run_has_all_that_a_run_can_have(straight: Path) -> None:
    final = load_checkpoint(straight / "checkpoints" / "final")
    assert set(final.tensors) == {"policy", "optimiser", "collector", "trace", "random", "games", "opponents"}
    training: Any = final.documents["training"]
    assert {"rewards", "curriculum", "league", "evaluation", "strategy"} <= set(training["course"])
    phases = [json.loads(line)["stage"] for line in (straight / "metrics.jsonl").read_text().splitlines()]
    assert phases == ["constant"] * 3 + ["mixed"] * 3 + ["self"] * 2
    tables = {path.name for path in straight.glob("*.csv")}
    assert len(tables) == 6
    sizes = {name: (straight / name).stat().st_size for name in (*tables, "metrics.jsonl")}
    assert training["offsets"] == sizes | {"effects.csv": 0}  # no adaptive curriculum


def test_it_goes_on_exactly_after_every_iteration(straight: Path, tmp_path: Path) -> None:
    for stop_after in range(1, ITERATIONS):
        stopped = run(tmp_path, stop_after)
        assert stopped.counters.iterations == stop_after
        assert not stopped.is_finished
    assert run(tmp_path).is_finished
    expected, got = content(straight), content(tmp_path)
    assert set(expected) == set(got)
    assert [name for name in expected if expected[name] != got[name]] == []
