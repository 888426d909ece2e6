"""The loop: same seed, same bytes; stop and go on; counters, schedules, callbacks, checkpoints by name."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ludus.core.errors import CheckpointError, ConfigMismatchError
from ludus.envs.base import EnvRequest
from ludus.envs.registry import register_env
from ludus.envs.tiny.two_player import DuelEnv
from ludus.policies.agent import Agent
from ludus.store import Checkpoint, load_checkpoint, save_checkpoint
from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, Trainer, train
from ludus.training.checkpointing import stored_config

pytestmark = pytest.mark.train

STEPS, GAMES, ITERATIONS = 8, 4, 6
PER_ITERATION = STEPS * GAMES


class ForgetfulDuel(DuelEnv):
    """A duel that cannot take snapshots."""

    def __init__(self, request: EnvRequest) -> None:
        super().__init__(request)
        self.spec = replace(self.spec, name="forgetful", snapshots=False)


register_env("forgetful-v1", ForgetfulDuel)


class Recorder(BaseCallback):
    """Writes down what it is told; asks for a stop after some iterations."""

    def __init__(self, stop_after: int = 0) -> None:
        self.told: list[str] = []
        self.iterations: list[Iteration] = []
        self._stop_after = stop_after

    def on_training_start(self, counters: Counters) -> None:
        self.told.append(f"start {counters.iterations}")

    def on_iteration(self, iteration: Iteration) -> None:
        self.told.append(f"iteration {iteration.counters.iterations}")
        self.iterations.append(iteration)
        if iteration.counters.iterations == self._stop_after:
            self.trainer.stop()

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        self.told.append(f"checkpoint {folder.name} {counters.iterations}")

    def on_training_end(self, counters: Counters) -> None:
        self.told.append(f"end {counters.iterations}")


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": GAMES},
            "total_env_steps": ITERATIONS * PER_ITERATION,
            "policy": {"recurrent": {"size": 4}, "normalize": {"observations": True}},
            "ppo": {"n_steps": STEPS, "sequence_length": 4, "batch_size": 16, "n_epochs": 2},
            "opponents": {"rock": 1, "random": 3},
            "checkpoints": {"every_env_steps": 2 * PER_ITERATION},
        }
        | changes
    )


def stop_and_go_on(config: TrainConfig, folder: Path, stop_after: int) -> None:
    recorder = Recorder(stop_after)
    with Trainer(config, folder, [recorder]) as trainer:
        assert trainer.run().iterations == stop_after
    train(config, folder)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_same_seed_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(make_config(seed=seed), tmp_path / name)
    a, b, c = (
        {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("a", "b", "c")
    )
    assert len(a) > 20
    assert a == b
    assert a["metrics.jsonl"] != c["metrics.jsonl"]


def test_a_run_that_was_stopped_and_goes_on_equals_one_that_was_not(tmp_path: Path) -> None:
    config = make_config()
    train(config, tmp_path / "straight")
    stop_and_go_on(config, tmp_path / "stopped", stop_after=3)
    names = sorted(path.name for path in (tmp_path / "stopped" / "checkpoints").iterdir())
    assert names == ["final", "init", "interrupted", "step-000000000064", "step-000000000128"]
    one, other = (load_checkpoint(tmp_path / name / "checkpoints" / "final") for name in ("straight", "stopped"))
    assert one.documents == other.documents
    assert set(one.tensors) == {"policy", "optimiser", "collector", "trace", "random", "games", "opponents"}
    for group, tensors in one.tensors.items():
        assert all(torch.equal(tensor, other.tensors[group][name]) for name, tensor in tensors.items()), group
    assert (tmp_path / "straight" / "metrics.jsonl").read_bytes() == (
        tmp_path / "stopped" / "metrics.jsonl"
    ).read_bytes()


def test_callbacks_are_told_everything_in_order_and_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    recorder = Recorder()
    counters = train(make_config(), tmp_path, [recorder])
    assert counters == Counters(env_steps=192, iterations=6, updates=6 * 2 * 2)
    assert recorder.told == [
        "start 0", "checkpoint init 0", "iteration 1", "iteration 2", "checkpoint step-000000000064 2",
        "iteration 3", "iteration 4", "checkpoint step-000000000128 4", "iteration 5", "iteration 6",
        "checkpoint final 6", "end 6",
    ]  # fmt: skip
    assert all(iteration.elapsed_s > 0.0 for iteration in recorder.iterations)
    again = Recorder()
    assert train(make_config(), tmp_path, [again]) == counters
    assert again.told == ["start 6", "end 6"]


def test_a_run_that_was_cut_off_just_before_its_final_checkpoint_gets_it(tmp_path: Path) -> None:
    train(make_config(), tmp_path)
    (tmp_path / "checkpoints" / "final").rename(tmp_path / "checkpoints" / "best")  # saved after the last iteration
    recorder = Recorder()
    train(make_config(), tmp_path, [recorder])
    assert recorder.told == ["start 6", "checkpoint final 6", "end 6"]


def test_metrics_have_the_three_counters_and_schedules_follow_the_budget(tmp_path: Path) -> None:
    ppo = {"n_steps": STEPS, "batch_size": 16, "sequence_length": 4, "n_epochs": 1}
    ppo["learning_rate"] = {"kind": "linear", "start": 6e-3, "end": 0.0}  # type: ignore[assignment]
    train(make_config(ppo=ppo), tmp_path)
    logged = lines(tmp_path)
    assert [line["iteration"] for line in logged] == [1, 2, 3, 4, 5, 6]
    assert [line["env_steps"] for line in logged] == [32, 64, 96, 128, 160, 192]
    assert [line["updates"] for line in logged] == [2, 4, 6, 8, 10, 12]
    assert [line["learning_rate"] for line in logged] == pytest.approx([6e-3, 5e-3, 4e-3, 3e-3, 2e-3, 1e-3])
    assert logged[0]["episode_return"] is None, "no match of 10 rounds ends within 8 steps"
    assert logged[1]["episodes"] == GAMES


def test_other_settings_are_refused_with_every_difference(tmp_path: Path) -> None:
    train(make_config(), tmp_path)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    other = make_config(
        seed=3, opponents="rock", ppo={"n_steps": STEPS, "sequence_length": 4, "batch_size": 16, "clip_range": 0.1}
    )
    with pytest.raises(ConfigMismatchError) as refused:
        train(other, tmp_path)
    assert str(refused.value).splitlines()[1:-1] == [
        "  opponents.random: 3.0 -> not set",
        "  ppo.clip_range.level: 0.2 -> 0.1",
        "  ppo.n_epochs: 2 -> 10",
        "  seed: 0 -> 3",
    ]
    assert (tmp_path / "metrics.jsonl").read_bytes() == before
    assert stored_config(tmp_path) == make_config()
    assert stored_config(tmp_path / "nothing") is None


def test_games_that_cannot_be_restored_start_anew_and_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = make_config(world={"name": "forgetful", "num_envs": GAMES})
    stop_and_go_on(config, tmp_path, stop_after=2)
    assert "forgetful-v1 cannot restore its games: all 4 restart, the learner resumes at env step 64" in caplog.text
    logged = lines(tmp_path)
    assert [line["iteration"] for line in logged] == [1, 2, 3, 4, 5, 6]
    assert logged[1]["episodes"] == GAMES  # matches of 10 rounds: the first ended in step 10 of 16
    assert logged[2]["episodes"] == 0.0  # the games of step 17 are new
    assert logged[3]["episodes"] == GAMES
    assert logged[3]["episode_length"] == 10.0


def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = make_config()
    train(config, tmp_path / "straight")
    train(config, tmp_path / "damaged")
    file = tmp_path / "damaged" / "checkpoints" / "final" / "games.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    assert train(config, tmp_path / "damaged").iterations == ITERATIONS  # two iterations again, from step 128
    assert "games.safetensors" in caplog.text
    assert lines(tmp_path / "damaged") == lines(tmp_path / "straight")


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "checkpoints" / "step-1", Checkpoint({}, {"counters": 1}))
    with pytest.raises(CheckpointError, match=r"config.json: is missing"):
        train(make_config(), tmp_path)


def test_every_checkpoint_is_an_agent(tmp_path: Path) -> None:
    with Trainer(make_config(), tmp_path) as trainer:
        trainer.run()
        frames = torch.randn(5, 3, 8)
        expected = Agent(trainer.components.policy)
    for path in (tmp_path, tmp_path / "checkpoints" / "final"):
        agent, state, own = Agent.load(path), None, None
        for frame in frames:
            actions, state = agent.predict(frame, state, deterministic=True)
            wanted, own = expected.predict(frame, own, deterministic=True)
            assert torch.equal(actions, wanted)
    assert agent.spec.id == "duel-v1"


def test_the_learner_can_play_every_seat(tmp_path: Path) -> None:
    config = make_config(opponents=None, total_env_steps=4 * PER_ITERATION)
    assert train(config, tmp_path) == Counters(env_steps=4 * PER_ITERATION, iterations=2, updates=2 * 2 * 4)


def test_it_learns(tmp_path: Path) -> None:
    config = TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": 32},
            "total_env_steps": 40_000,
            "ppo": {"n_steps": 32, "batch_size": 256, "n_epochs": 4, "learning_rate": 3e-3},
            "opponents": "rock",
        }
    )
    train(config, tmp_path)
    assert lines(tmp_path)[-1]["episode_return"] > 9.0  # of 10 rounds against rock
