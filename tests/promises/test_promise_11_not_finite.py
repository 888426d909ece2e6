"""Promise 11: NaN and infinity are found in the iteration in which they appear, named, undone and never saved."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.core.errors import NotFiniteError
from ludus.envs.base import EnvRequest, StepResult
from ludus.envs.registry import register_env
from ludus.envs.tiny.single_player import EndlessEnv
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, Trainer

pytestmark = pytest.mark.fault

STEPS, GAMES, ITERATIONS = 8, 2, 5
BAD = {"nan": math.nan, "inf": math.inf, "huge": 1e30, "large": 3e38}


class FaultyEnv(EndlessEnv):
    """Cut off every 5 steps; single steps, counted from 1 and never back, go wrong as the settings say."""

    def __init__(self, request: EnvRequest) -> None:
        super().__init__(replace(request, config={"step_limit": 5}))
        self._faults, self._steps = dict(request.config or {}), 0

    def _advance(self, actions: Tensor) -> StepResult:
        result = super()._advance(actions)
        self._steps += 1
        fault = self._faults.get(str(self._steps), self._faults.get("all", "") if self._steps > STEPS else "")
        number, _, place = fault.partition(" ")
        if place == "reward":
            result.events["reward"][0] = BAD[number]
        elif place == "observation":
            result.observations["vector"][0] = BAD[number]
        elif place == "final":
            assert result.truncated.all()
            final = {"vector": torch.full_like(result.final_observations["vector"], BAD[number])}
            return replace(result, final_observations=final)
        return result


register_env("not-finite-v1", FaultyEnv)


class Watcher(BaseCallback):
    """Remembers how far the run got and that every checkpoint was finite."""

    def __init__(self) -> None:
        self.iterations: list[int] = []
        self.checkpoints: list[str] = []

    def on_iteration(self, iteration: Iteration) -> None:
        self.iterations.append(iteration.counters.iterations)

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        assert counters.iterations == (self.iterations or [0])[-1]
        self.checkpoints.append(folder.name)
        for group in load_checkpoint(folder).tensors.values():
            for name, tensor in group.items():
                assert not tensor.is_floating_point() or bool(tensor.isfinite().all()), name


def make_config(faults: dict[str, str], *, native: bool = True, **changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "not-finite", "num_envs": GAMES, "settings": faults},
            "total_env_steps": ITERATIONS * STEPS * GAMES,
            "policy": {"normalize": {"observations": True, "returns": True}},
            "ppo": {"n_steps": STEPS, "sequence_length": 4, "batch_size": 8, "n_epochs": 2, "native": native},
            "checkpoints": {"every_iterations": 1, "keep": 9},
        }
        | changes
    )


def run(config: TrainConfig, folder: Path, meddle: Callable[[Trainer, int], None] | None = None) -> Watcher:
    """Trains; `meddle` is called with the number of each iteration that is done, before its checkpoint is saved."""

    class Meddler(BaseCallback):
        def on_iteration(self, iteration: Iteration) -> None:
            if meddle is not None:
                meddle(trainer, iteration.counters.iterations)

    watcher = Watcher()
    with Trainer(config, folder, [watcher, Meddler()]) as trainer:
        trainer.run()
    return watcher


def rollbacks(folder: Path) -> list[int]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == list(range(1, ITERATIONS + 1))
    return [line["rollbacks"] for line in lines]


# Step 12 is the fourth of iteration 2; what it shows is seen in the fifth, with index 4. Step 16 is its last one.
@pytest.mark.parametrize("native", [True, False], ids=["compiled", "torch"])
@pytest.mark.parametrize(
    ("faults", "named"),
    [
        ({"12": "nan observation"}, "observation (entry 'vector', first at step 4 of the rollout, row 0)"),
        ({"12": "inf observation"}, "observation (entry 'vector', first at step 4 of the rollout, row 0)"),
        ({"16": "nan observation"}, "observation (entry 'vector' after the last step, first at index 0)"),
        ({"15": "nan final"}, "observation (a final one of a truncated episode)"),
        ({"12": "nan reward"}, "reward (weighted terms, first at step 3 of the rollout, row 0)"),
        ({"12": "inf reward"}, "reward (weighted terms, first at step 3 of the rollout, row 0)"),
    ],
    ids=lambda value: "".join(value.values()).replace(" ", "-") if isinstance(value, dict) else "",
)
def test_a_world_that_slips_is_found_in_that_iteration_and_named(
    faults: dict[str, str], named: str, native: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = run(make_config(faults, native=native), tmp_path)
    assert f"NaN or Inf in iteration 2, first seen in the {named}; back to iteration 1" in caplog.text
    assert caplog.text.count("NaN or Inf") == 1
    assert rollbacks(tmp_path) == [0, 1, 1, 1, 1]
    assert watcher.checkpoints[-1] == "final"
    assert len(watcher.checkpoints) == ITERATIONS + 1


@pytest.mark.parametrize("native", [True, False], ids=["compiled", "torch"])
def test_a_loss_that_overflows_is_named(native: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = make_config({"12": "huge reward"}, native=native, policy={})  # 1e30 is finite, its square is not
    run(config, tmp_path)
    assert "NaN or Inf in iteration 2, first seen in the loss (value_loss); back to iteration 1" in caplog.text
    assert rollbacks(tmp_path) == [0, 1, 1, 1, 1]


def test_a_gradient_that_overflows_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def meddle(trainer: Trainer, iterations: int) -> None:
        if iterations == 2:
            left = [math.inf]  # the first gradient after this explodes, no other
            bias = trainer.components.policy.value_head.bias
            bias.register_hook(lambda gradient: gradient * (left.pop() if left else 1.0))  # type: ignore[no-untyped-call]

    run(make_config({}, native=False), tmp_path, meddle)
    assert "NaN or Inf in iteration 3, first seen in the gradient (1 updates were skipped); back to" in caplog.text
    assert rollbacks(tmp_path) == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("native", [True, False], ids=["compiled", "torch"])
def test_a_parameter_that_is_lost_is_named_undone_and_not_saved(
    native: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def meddle(trainer: Trainer, iterations: int) -> None:
        if iterations == 3 and trainer.rollbacks == 0:
            trainer.components.policy.value_head.bias.data.fill_(math.nan)  # before the checkpoint of iteration 3

    watcher = run(make_config({}, native=native), tmp_path, meddle)
    place = "parameter (value_head.bias, already before the iteration)"
    assert f"NaN or Inf in iteration 4, first seen in the {place}; back to iteration 3" in caplog.text
    assert rollbacks(tmp_path) == [0, 0, 0, 1, 1]
    assert len(watcher.checkpoints) == ITERATIONS + 1


def test_large_numbers_are_no_fault(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Their sum overflows, but every one is finite."""
    faults = {str(step): "large observation" for step in range(9, 13)}
    run(make_config(faults), tmp_path)
    assert "NaN or Inf" not in caplog.text
    assert rollbacks(tmp_path) == [0] * ITERATIONS


def test_two_faults_in_a_row_are_survived(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(make_config({"12": "nan reward", "20": "nan observation"}), tmp_path)  # the second try takes steps 17 to 24
    assert "fault 1 in a row" in caplog.text
    assert "fault 2 in a row" in caplog.text
    assert rollbacks(tmp_path) == [0, 2, 2, 2, 2]


def test_a_fault_that_always_comes_back_stops_the_run_and_leaves_finite_checkpoints(tmp_path: Path) -> None:
    config = make_config({"all": "nan reward"})  # all steps after the first iteration
    with pytest.raises(NotFiniteError, match=r"iteration 2, first seen in the reward .* 3 times in a row"):
        run(config, tmp_path)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["init", "interrupted", "step-000000000016"]
    for name in names:
        tensors = load_checkpoint(tmp_path / "checkpoints" / name).tensors
        assert all(t.isfinite().all() for group in tensors.values() for t in group.values() if t.is_floating_point())
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1


def test_a_second_try_draws_other_numbers_and_is_itself_reproducible(tmp_path: Path) -> None:
    texts = []
    for folder, faults in (("a", {"12": "nan reward"}), ("b", {"12": "nan reward"}), ("c", {})):
        run(make_config(faults), tmp_path / folder)
        texts.append((tmp_path / folder / "metrics.jsonl").read_text().splitlines())
    assert texts[0] == texts[1]
    assert texts[0][0] == texts[2][0]
    tried_again, straight = (json.loads(text[1])["policy_loss"] for text in (texts[0], texts[2]))
    assert tried_again != straight
