"""Verification on a CUDA device: all checks pass there too, and the estimate covers what a run really takes."""

import time
from pathlib import Path

import pytest
import torch

from ludus import make_env
from ludus.training import BaseCallback, Iteration, TrainConfig, train
from ludus.training.components import Components
from ludus.training.estimates import estimate_memory, estimate_time, small_copy
from ludus.training.preflight import verify

pytestmark = pytest.mark.cuda

CONFIG = TrainConfig.model_validate(
    {
        "world": {"name": "duel", "num_envs": 4096, "device": "cuda"},
        "total_env_steps": 2 * 64 * 4096,
        "policy": {
            "strategy": {"layers": 2, "heads": 4, "width": 64, "feedforward": 256, "window": 33},
            "recurrent": {"size": 64},
            "bfloat16": True,
        },
        "ppo": {"n_steps": 64, "sequence_length": 32, "batch_size": 32768, "n_epochs": 1},
        "opponents": {"self": 1, "rock": 1},
        "league": {"keep": 20, "snapshot_every_env_steps": 64 * 4096},
        "monitoring": {"console": "off", "tensorboard": False, "curves": False},
    }
)


def test_all_checks_pass() -> None:
    lines = list(verify(CONFIG))
    assert [line.partition(":")[0] for line in lines] == [
        "world", "players and rewards", "batch", "rollout", "gradients", "update", "checkpoint", "time", "memory",
    ]  # fmt: skip
    assert "one more against a past self" in lines[3]
    assert "free on cuda" in lines[-1]


def test_the_estimate_is_near_what_a_run_takes(tmp_path: Path) -> None:
    with make_env("duel", 1, "cuda") as env:
        spec = env.spec
    with Components(small_copy(CONFIG, spec)) as components:
        components.learner.collect()
        dry_run = CONFIG.method.dry_run(components.learner)
        estimate = estimate_memory(CONFIG, components, dry_run)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    train(CONFIG, tmp_path)
    taken = torch.cuda.max_memory_allocated() - before
    assert 0.5 * taken < estimate.total < 2.0 * taken, (estimate.total, taken, str(estimate))


def test_the_time_is_that_of_iterations_after_graphs_were_recorded(tmp_path: Path) -> None:
    iterations = 30
    steps = iterations * 64 * 4096
    config = CONFIG.model_copy(update={"total_env_steps": steps})
    with make_env("duel", 1, "cuda") as env:
        spec = env.spec
    with Components(small_copy(config, spec)) as components:
        components.learner.collect()
        components.learner.update()
        estimate = estimate_time(config, components, 1000 * steps)
    assert estimate.games == 4096
    ends_s: list[float] = []

    class Clock(BaseCallback):
        def on_iteration(self, iteration: Iteration) -> None:
            torch.cuda.synchronize()
            ends_s.append(time.perf_counter())

    train(config, tmp_path, callbacks=[Clock()])
    half = len(ends_s) // 2
    taken = (ends_s[-1] - ends_s[half]) / (len(ends_s) - 1 - half)
    assert 0.3 * taken < estimate.step_s * 64 * 4096 < 3.0 * taken
