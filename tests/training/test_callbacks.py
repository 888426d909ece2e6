"""Callbacks: the order of the hooks, every step if wanted, a stop by False, faults with the user's file and line."""

from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import CallbackError
from ludus.envs.base import StepResult
from ludus.training.callbacks import BaseCallback, CallbackList, Counters, Iteration
from ludus.training.config import TrainConfig
from ludus.training.loop import Trainer

ENVS, STEPS = 4, 8
SETTINGS: dict[str, Any] = {
    "world": {"name": "rps-v1", "num_envs": ENVS},
    "total_env_steps": 2 * ENVS * STEPS,
    "ppo": {"n_steps": STEPS, "batch_size": ENVS * STEPS, "n_epochs": 1},
}
CONFIG = TrainConfig.model_validate(SETTINGS)


class Log(BaseCallback):
    """Notes every hook with the number of env steps."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int]] = []

    def on_training_start(self, counters: Counters) -> None:
        self.log.append(("training_start", self.num_timesteps))

    def on_rollout_start(self, counters: Counters) -> None:
        self.log.append(("rollout_start", self.num_timesteps))

    def on_rollout_end(self, counters: Counters) -> None:
        assert counters.env_steps == self.num_timesteps - ENVS * STEPS, "counters are those before the iteration"
        assert self.trainer.components.learner.rollout.rewards.shape == (STEPS, ENVS)
        self.log.append(("rollout_end", self.num_timesteps))

    def on_iteration(self, iteration: Iteration) -> None:
        self.log.append(("iteration", self.num_timesteps))

    def on_training_end(self, counters: Counters) -> None:
        self.log.append(("training_end", self.num_timesteps))


class StepLog(Log):
    def __init__(self, stop_at: int = -1) -> None:
        super().__init__()
        self._stop_at = stop_at

    def on_step(self, step: StepResult) -> bool | None:
        assert step.terminated.shape == (ENVS,)
        self.log.append(("step", self.num_timesteps))
        return self.num_timesteps != self._stop_at


def run(callback: BaseCallback, folder: Path) -> Trainer:
    with Trainer(CONFIG, folder, [callback]) as trainer:
        trainer.run()
    return trainer


def test_the_hooks_come_in_the_order_of_sb3(tmp_path: Path) -> None:
    callback = Log()
    run(callback, tmp_path)
    assert callback.log == [
        ("training_start", 0),
        ("rollout_start", 0),
        ("rollout_end", 32),
        ("iteration", 32),
        ("rollout_start", 32),
        ("rollout_end", 64),
        ("iteration", 64),
        ("training_end", 64),
    ]
    assert callback.training_env.num_envs == ENVS


def test_every_step_is_told_and_changes_nothing(tmp_path: Path) -> None:
    callback = StepLog()
    run(callback, tmp_path / "steps")
    assert [steps for name, steps in callback.log if name == "step"] == list(range(4, 65, 4))
    run(Log(), tmp_path / "plain")
    policies = [tmp_path / name / "checkpoints" / "final" / "policy.safetensors" for name in ("steps", "plain")]
    assert policies[0].read_bytes() == policies[1].read_bytes()


def test_steps_are_told_only_to_those_who_override_the_hook() -> None:
    assert not CallbackList([Log()]).wants_steps
    assert CallbackList([Log(), StepLog()]).wants_steps


def test_false_stops_the_run_which_resumes_to_the_same_end(tmp_path: Path) -> None:
    trainer = run(StepLog(stop_at=44), tmp_path / "run")  # in the third step of the second rollout
    assert trainer.counters.env_steps == 32
    assert trainer.stop_reason == "callback StepLog returned False from on_step"
    assert (tmp_path / "run" / "checkpoints" / "interrupted").is_dir()
    assert run(StepLog(), tmp_path / "run").counters.env_steps == 64
    run(Log(), tmp_path / "straight")
    policies = [tmp_path / name / "checkpoints" / "final" / "policy.safetensors" for name in ("run", "straight")]
    assert policies[0].read_bytes() == policies[1].read_bytes()


@pytest.mark.parametrize("hook", ["on_step", "on_rollout_end", "on_iteration", "on_evaluation", "on_message"])
def test_a_fault_names_the_users_line_and_the_run_is_saved(tmp_path: Path, hook: str) -> None:
    def fail(self: BaseCallback, *_: Any) -> None:
        if self.num_timesteps >= 40 or hook not in ("on_step", "on_rollout_end"):
            raise ZeroDivisionError("no such thing")

    faulty = type("Faulty", (BaseCallback,), {hook: fail})
    config = CONFIG.model_copy(update={"evaluation": TrainConfig.model_validate(
        SETTINGS | {"evaluation": {"matches": 2, "every_env_steps": 32}}).evaluation})  # fmt: skip
    messages = iter(["once"])

    class Talkative(BaseCallback):
        def on_iteration(self, iteration: Iteration) -> None:
            for text in messages:
                self.trainer._callbacks.message(  # type: ignore[attr-defined]
                    "info", text, iteration.counters
                )

    line = fail.__code__.co_firstlineno + 2
    with (
        pytest.raises(CallbackError, match=rf"callback Faulty failed: .*no such thing \(.*test_callbacks.py:{line}\)"),
        Trainer(config, tmp_path, [faulty(), Talkative()]) as trainer,
    ):
        trainer.run()
    assert (tmp_path / "checkpoints" / "interrupted").is_dir()
    with Trainer(config, tmp_path) as trainer:
        assert trainer.run().env_steps == 64
