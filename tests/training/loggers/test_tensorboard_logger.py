"""TensorBoard: every number at its env step; across a resume no step is doubled or goes back; readable after a kill."""

import signal
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]
from tests.commands import Commands

from ludus.training.callbacks import Counters, Evaluated, Iteration
from ludus.training.loggers.progress import ScalarNames
from ludus.training.loggers.resources import GpuReading
from ludus.training.loggers.tensorboard import TensorBoardLogger


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    accumulator = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    return {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)] for tag in tags}


def test_the_numbers_of_an_iteration_by_hand(make_iteration: Callable[..., Iteration]) -> None:
    names = ScalarNames()
    names.start(0)
    assert names.of_iteration(make_iteration(2)) == pytest.approx(
        {
            "train/policy_loss": -0.01, "train/value_loss": 0.5, "train/entropy": 2.0, "train/approx_kl": 0.01,
            "train/updates": 16.0, "train/iterations": 2.0,
            "episodes/reward": 1 / 3, "episodes/length": 100.0, "behaviour/damage": 1.0,
            "win_rate/based": 0.5, "win_rate/random": 1.0,
            "reward_terms/win": 0.01, "reward_terms/idle": -0.0025,  # 20 and -5 in 2,000 steps
            "speed/env_steps_per_s": 4000.0, "speed/share_simulation": 0.4, "speed/share_inference": 0.2,
            "speed/share_update": 0.3, "speed/share_other": 0.1,
        }
    )  # fmt: skip
    empty = names.of_iteration(make_iteration(3, (), (), metrics={"episode_return": None, "loss": float("nan")}))
    assert not [name for name in empty if name.startswith(("episodes", "win_rate", "behaviour"))]
    assert "train/episode_return" not in empty
    assert "train/loss" not in empty


def test_the_numbers_of_an_evaluation(make_evaluated: Callable[..., Evaluated]) -> None:
    assert ScalarNames().of_evaluation(make_evaluated(2, 0.75)) == {
        "evaluation/score": 0.75,
        "evaluation/win_rate/based": 0.8,
        "evaluation/win_rate_low/based": 0.67,
        "evaluation/win_rate_high/based": 0.89,
        "evaluation/damage_ratio/based": 1.5,
    }


def test_thousands_of_snapshots_share_a_curve(make_iteration: Callable[..., Iteration]) -> None:
    names = ScalarNames()
    known = tuple(f"snapshot-{step}" for step in range(30))
    outcomes = [1] * 24 + [-1, -1, -1, 1, 1, 1]
    found = names.of_iteration(make_iteration(1, outcomes, list(range(30)), names=known))
    rates = {name: value for name, value in found.items() if name.startswith("win_rate/")}
    assert len(rates) == 25
    assert rates["win_rate/others"] == 0.5
    again = names.of_iteration(make_iteration(2, [1, 1], [0, 1], names=("snapshot-3", "snapshot-29")))
    assert again["win_rate/snapshot-3"] == 1.0
    assert again["win_rate/others"] == pytest.approx(4 / 7)


def test_steps_neither_double_nor_go_back_across_a_resume(
    tmp_path: Path, make_iteration: Callable[..., Iteration], make_evaluated: Callable[..., Evaluated]
) -> None:
    for first, last in ((0, 5), (3, 8), (8, 9)):  # saved at 3, killed at 5; saved and ended at 8
        logger = TensorBoardLogger(tmp_path)
        logger.on_training_start(Counters(first * 1000, first, 0))
        for number in range(first + 1, last + 1):
            entropy = 10.0 * first + number
            logger.on_iteration(make_iteration(number, metrics={"entropy": entropy}))
        logger.on_evaluation(make_evaluated(last, 0.1 * last))
        logger.on_training_end(Counters(last * 1000, last, 0))
    found = read(tmp_path)
    assert found["train/entropy"] == [
        (1000, 1.0), (2000, 2.0), (3000, 3.0), (4000, 34.0), (5000, 35.0), (6000, 36.0), (7000, 37.0), (8000, 38.0),
        (9000, 89.0),
    ]  # fmt: skip
    assert [step for step, _ in found["evaluation/score"]] == [8000, 9000]
    for tag, points in found.items():
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps)), tag


@pytest.mark.parametrize("use", [0.75, None])
def test_the_use_of_a_gpu_is_written(
    tmp_path: Path, make_iteration: Callable[..., Iteration], use: float | None
) -> None:
    gpu: Any = SimpleNamespace(read=lambda: GpuReading(use, 3 * 2**29, 8 * 2**30), close=lambda: None)
    logger = TensorBoardLogger(tmp_path, gpu)
    logger.on_training_start(Counters())
    logger.on_iteration(make_iteration(1))
    logger.on_training_end(Counters(1000, 1, 8))
    found = {tag: values for tag, values in read(tmp_path).items() if tag.startswith("gpu/")}
    assert found == {"gpu/memory_gib": [(1000, 1.5)]} | ({} if use is None else {"gpu/use": [(1000, use)]})


def test_a_run_that_starts_anew_in_its_folder_leaves_nothing_of_the_old_one(
    tmp_path: Path, make_iteration: Callable[..., Iteration]
) -> None:
    for entropy in (1.0, 2.0):  # killed before the first checkpoint, so it begins at nothing again
        logger = TensorBoardLogger(tmp_path)
        logger.on_training_start(Counters())
        logger.on_iteration(make_iteration(1, metrics={"entropy": entropy}))
        logger.on_training_end(Counters(1000, 1, 8))
    assert read(tmp_path)["train/entropy"] == [(1000, 2.0)]


def test_it_can_be_read_after_a_kill(tmp_path: Path, commands: Commands) -> None:
    program = tmp_path / "program.py"
    child = """
        import sys, time
        from pathlib import Path
        from ludus.training.callbacks import Counters, Iteration
        from ludus.training.loggers import tensorboard

        tensorboard._FLUSH_EVERY_S = 0.05
        logger = tensorboard.TensorBoardLogger(Path(sys.argv[1]))
        logger.on_training_start(Counters())
        for number in range(1, 1000):
            logger.on_iteration(Iteration(Counters(number, number, number), {"entropy": 1.0}, 0.1))
            if number == 20:
                print("ready", flush=True)
            time.sleep(0.01)
    """
    program.write_text(textwrap.dedent(child))
    command = commands.start(program, tmp_path)
    command.wait_until_it_says("ready")
    command.send(signal.SIGKILL)
    assert command.wait() == -signal.SIGKILL, command.said
    steps = [step for step, _ in read(tmp_path)["train/entropy"]]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) >= 10


def test_before_the_start_and_after_the_end_it_is_quiet(
    tmp_path: Path, make_iteration: Callable[..., Iteration]
) -> None:
    logger = TensorBoardLogger(tmp_path)
    logger.on_iteration(make_iteration(1))
    logger.on_training_end(Counters())
    logger.on_training_end(Counters())
    assert not (tmp_path / "tensorboard").exists()
