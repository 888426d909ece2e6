"""Runs in sets: exact resume in the middle of a set, adaptation that is learned, and settings that cannot be."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ludus.core.errors import ConfigError
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Iteration, TrainConfig, Trainer
from ludus.training.components import Components
from ludus.training.preflight import verify

GAMES, STEPS = 8, 10


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "roshambo", "num_envs": GAMES, "settings": {"throws": 3}},
            "total_env_steps": 8 * GAMES * STEPS,
            "policy": {"recurrent": {"size": 8}, "net_arch": {"pi": [4], "vf": [4]}},
            "ppo": {"n_steps": STEPS, "sequence_length": STEPS, "n_minibatches": 2, "n_epochs": 1},
            "opponents": {"self": 1, "constant": 1, "meta": 1},
            "league": {"snapshot_every_env_steps": GAMES * STEPS, "best_of": 7, "keep": 4},
            "checkpoints": {"every_iterations": 2, "keep": 1},
            **changes,
        }
    )


class Stop(BaseCallback):
    """Stops the run after some iterations."""

    def __init__(self, after: int) -> None:
        self._left = after

    def on_iteration(self, iteration: Iteration) -> None:
        self._left -= 1
        if self._left == 0:
            self.trainer.stop()


def run(config: TrainConfig, folder: Path, stop_after: int = 0) -> None:
    with Trainer(config, folder, [Stop(stop_after)]) as trainer:
        trainer.run()


def test_a_run_resumes_exactly_in_the_middle_of_a_set(tmp_path: Path) -> None:
    config = make_config()
    run(config, tmp_path / "straight")
    for stop_after in (3, 2):  # after 30 and 50 steps: sets have 21
        run(config, tmp_path / "stopped", stop_after)
    run(config, tmp_path / "stopped")
    for name in ("metrics.jsonl", "monitor.csv", "opponents.csv"):
        assert (tmp_path / "straight" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes(), name
    one, other = (load_checkpoint(tmp_path / name / "checkpoints" / "final") for name in ("straight", "stopped"))
    for group, tensors in one.tensors.items():
        for name, tensor in tensors.items():
            assert tensor.equal(other.tensors[group][name]), f"{group}.{name}"


def test_matches_are_counted_one_by_one(tmp_path: Path) -> None:
    run(make_config(opponents={"constant": 1}), tmp_path)
    episodes = (tmp_path / "monitor.csv").read_text().splitlines()[2:]
    assert len(episodes) == GAMES * (8 * STEPS // 3)
    assert {line.split(",")[1] for line in episodes} == {"3"}


def test_what_an_opponent_did_in_the_first_match_is_used_in_the_later_ones() -> None:
    # Matches of two throws against one that always throws the same: the first throw is a guess, unless it is known.
    config = make_config(
        world={"name": "roshambo", "num_envs": 64, "settings": {"throws": 2}},
        opponents={"constant:noise=0": 1},
        policy={"recurrent": {"size": 16}, "net_arch": {"pi": [16], "vf": [16]}},
        ppo={"n_steps": 12, "sequence_length": 12, "n_minibatches": 4, "n_epochs": 4, "learning_rate": 0.005},
        league={"best_of": 3},
    )
    with Components(config) as components:
        for _ in range(40):
            components.learner.iterate(0.0)
        rewards, starts = components.buffer.rewards, components.buffer.memory_starts
    assert float(rewards[starts].mean()) < 0.4
    assert float(rewards[~starts].mean()) > 0.9


def test_sets_need_opponents_and_a_sensible_number() -> None:
    with pytest.raises(ValidationError, match=r"league\.best_of is 7"):
        make_config(opponents=None)
    for best_of in (0, 101):
        with pytest.raises(ValidationError, match="best_of"):
            make_config(league={"best_of": best_of})


def test_a_policy_without_a_memory_is_told_that_sets_do_little(caplog: pytest.LogCaptureFixture) -> None:
    list(verify(make_config(policy={"net_arch": {"pi": [4], "vf": [4]}}, ppo={"n_steps": STEPS, "n_minibatches": 1})))
    assert "no memory" in caplog.text


def test_a_world_of_one_team_is_evaluated_without_sets() -> None:
    alone = make_config(
        world={"name": "gym:CartPole-v1", "num_envs": 2},
        opponents=None,
        league={},
        evaluation={"best_of": 2, "matches": 2},
    )
    with pytest.raises(ConfigError, match="one team"):
        list(verify(alone))


def test_an_evaluation_has_the_sets_of_the_league_or_its_own() -> None:
    assert make_config().evaluated_best_of == 7
    assert make_config(evaluation={"best_of": 1}).evaluated_best_of == 1
