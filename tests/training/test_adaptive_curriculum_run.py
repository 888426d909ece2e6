"""Runs with an adaptive curriculum: a constructed world in which it is known what helps."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pydantic import Field, ValidationError
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.base import EnvRequest, EnvSpec, Observations
from ludus.envs.registry import register_env
from ludus.envs.settings import EnvSettings, read_settings
from ludus.envs.tiny.base import State, TinyEnv
from ludus.store import load_checkpoint
from ludus.training import BaseCallback, Iteration, TrainConfig, Trainer, train
from ludus.training.adaptive_curriculum import make_adaptive_curriculum
from ludus.training.components import Components
from ludus.training.distributed import ProcessGroup
from ludus.training.preflight import verify

KINDS = ("wait", "build", "look")
STEPS, GAMES = 16, 8


class YardSettings(EnvSettings):
    """Houses that come of building, and of themselves in good times; none at all if nothing `grows`."""

    grows: bool = True
    steps: int = Field(default=40, ge=1)


class YardEnv(TinyEnv):
    """Building gives a house, good times another one; looking around gives nothing. A goal wants 50 houses."""

    def __init__(self, request: EnvRequest) -> None:
        self._settings = read_settings(YardSettings, request.config, "yard-v1")
        spec = EnvSpec(
            name="yard",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict({"times": spaces.Box(0.0, 1.0, (1,), np.float32)}),
            action_space=spaces.Discrete(len(KINDS)),
            rate_hz=1.0,
            step_limit=self._settings.steps,
            events=("built", "goal_houses", "goal_calm"),
            state_metrics=("houses", "goal_houses", "goal_calm"),
            exploratory_kinds=(2,),
            kind_names=KINDS,
        )
        super().__init__(spec, request)

    def _begin(self) -> State:
        return {"houses": torch.zeros(self.num_envs)}

    def _good_times(self) -> Tensor:
        return (self._hash(1)[:, 0] % 2).float()

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        built = (actions[:, 0] == 1).float()
        if self._settings.grows:
            self._state["houses"] = self._state["houses"] + built + self._good_times()
        events = {"built": built, "goal_houses": built / 50.0, "goal_calm": torch.zeros_like(built)}
        over = torch.zeros(self.num_envs, dtype=torch.bool)
        return {name: tensor.unsqueeze(1) for name, tensor in events.items()}, over

    def _measure(self) -> dict[str, Tensor]:
        houses = self._state["houses"].unsqueeze(1)
        return {"houses": houses, "goal_houses": (houses / 50.0).clamp(max=1.0), "goal_calm": torch.ones_like(houses)}

    def _observe(self) -> Observations:
        return {"times": self._good_times().view(-1, 1, 1)}


register_env("yard-v1", YardEnv, YardSettings)

STRATEGIC = {
    "kind": "strategic",
    "goals": ["houses", "calm"],
    "metrics": ["houses"],
    "ahead": 1,
    "fewest": 10,
    "inertia": 0.0,
    "every_iterations": 3,
}

CONSTRAINT = {"kind": "constraint", "measure": "houses", "at_least": 1.0, "limit": 0.5, "term": "built", "rate": 2.0}


def _config(adaptive_curriculum: dict[str, Any], iterations: int = 4, **changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "yard", "num_envs": GAMES},
            "total_env_steps": iterations * STEPS * GAMES,
            "policy": {
                "net_arch": {"pi": [8], "vf": [8]},
                "exploration": {"frequency": {"kind": "linear", "start": 0.8, "end": 0.1}, "random_frequency": 0.5},
            },
            "ppo": {"n_steps": STEPS, "batch_size": 64, "n_epochs": 1},
            "rewards": {"weights": {"built": 0.1, "goal_houses": 1.0, "goal_calm": 1.0}},
            "checkpoints": {"every_env_steps": None},
            "adaptive_curriculum": adaptive_curriculum,
        }
        | changes
    )


def _metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def _table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_limit_raises_the_price_of_a_term_without_exploration(tmp_path: Path) -> None:
    # Houses never come, so every decision violates the limit: 1 + 2 (1 - 0.5) per iteration.
    world = {"name": "yard", "num_envs": GAMES, "settings": {"grows": False}}
    plain = {"net_arch": {"pi": [8], "vf": [8]}}
    train(_config(CONSTRAINT, iterations=3, world=world, policy=plain), tmp_path)
    rows = _metrics(tmp_path)
    assert [row["constraint_multiplier"] for row in rows] == pytest.approx([2.0, 3.0, 4.0])
    assert [row["constraint_violations"] for row in rows] == [1.0] * 3
    terms = _table(tmp_path, "reward_breakdown.csv")
    assert sum(float(row["built"]) for row in terms) > 0.0


def test_measured_effects_are_the_worlds_own(tmp_path: Path) -> None:
    with Trainer(_config(STRATEGIC, iterations=12), tmp_path) as trainer:
        trainer.run()
        mixture = trainer.components.policy.mixture
        assert mixture is not None
        favour = mixture.favour.tolist()
    rows = _table(tmp_path, "effects.csv")
    assert sorted({int(row["iteration"]) for row in rows}) == [3, 6, 9, 12]
    last = {(row["kind"], row["metric"]): row for row in rows if row["iteration"] == "12"}
    truth = {("build", "houses"): 1.0, ("build", "goal_houses"): 1.0 / 50.0, ("look", "houses"): 0.0}
    for key, effect in truth.items():
        # Good times, worth half a house on average, are in the spread and not in the effect.
        assert float(last[key]["low"]) <= effect <= float(last[key]["high"]), key
        assert int(last[key]["decisions"]) > 50
        assert last[key]["is_sure"] == str(effect > 0.0)
    assert ("wait", "houses") not in last  # nothing is compared with itself
    # Exploring is led to what surely helps a goal that is behind, and to nothing else.
    assert favour[0] == 0.5
    assert favour[2] > 0.0
    assert (favour[1], favour[3]) == (0.0, 0.0)
    # One goal is reached from the beginning, so all weight goes to the other.
    final = _metrics(tmp_path)[-1]
    assert final["goal_progress/calm"] == 1.0
    assert final["goal_factor/houses"] == pytest.approx(2.0)
    assert final["goal_factor/calm"] == pytest.approx(0.25)
    assert final["exploration_frequency"] < _metrics(tmp_path)[0]["exploration_frequency"] == pytest.approx(0.8)


class _Stop(BaseCallback):
    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.iterations == 2:
            self.trainer.stop()


@pytest.mark.parametrize("adaptive_curriculum", [CONSTRAINT, STRATEGIC], ids=["constraint", "strategic"])
def test_a_stopped_run_goes_on_exactly(adaptive_curriculum: dict[str, Any], tmp_path: Path) -> None:
    config = _config(adaptive_curriculum)
    train(config, tmp_path / "straight")
    stop = _Stop()
    with Trainer(config, tmp_path / "stopped", [stop]) as trainer:
        assert trainer.run().iterations == 2
    train(config, tmp_path / "stopped")
    one, other = (load_checkpoint(tmp_path / name / "checkpoints" / "final") for name in ("straight", "stopped"))
    assert one.documents == other.documents
    for group, tensors in one.tensors.items():
        assert all(torch.equal(tensor, other.tensors[group][name]) for name, tensor in tensors.items()), group
    for name in ("metrics.jsonl", *(["effects.csv"] if adaptive_curriculum is STRATEGIC else [])):
        assert (tmp_path / "straight" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes()


@pytest.mark.parametrize(
    ("adaptive_curriculum", "error", "said"),
    [
        (STRATEGIC | {"goals": ["joy"]}, UnknownNameError, "goal_joy"),
        (STRATEGIC | {"against": "nap"}, UnknownNameError, "wait"),
        (STRATEGIC | {"ahead": 20}, ConfigError, "a rollout has 16 steps"),
        (CONSTRAINT | {"measure": "money"}, UnknownNameError, "houses"),
        (CONSTRAINT | {"term": "bulit"}, UnknownNameError, "built"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_run_starts(
    adaptive_curriculum: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        list(verify(_config(adaptive_curriculum)))


def test_an_adaptive_curriculum_needs_exploration() -> None:
    with pytest.raises(ValidationError, match=r"set policy\.exploration"):
        _config(STRATEGIC, policy={"net_arch": {"pi": [8], "vf": [8]}})


class _Two(ProcessGroup):
    """Two processes whose games happen to be the same."""

    def gather_numbers(self, numbers: Sequence[float]) -> list[list[float]]:
        return [list(numbers)] * 2


@pytest.mark.parametrize("adaptive_curriculum", [CONSTRAINT, STRATEGIC], ids=["constraint", "strategic"])
def test_what_all_processes_saw_counts(adaptive_curriculum: dict[str, Any]) -> None:
    config = _config(adaptive_curriculum)
    states = []
    for processes in (ProcessGroup(), _Two()):
        with Components(config) as components:
            made = make_adaptive_curriculum(config, components)
            assert made is not None
            made.on_rollout_start()
            components.learner.collect()
            made.on_rollout_end(processes)
            states.append(made.state())
    alone, both = states
    if adaptive_curriculum is CONSTRAINT:
        assert both == alone
        return
    assert both["progress"] == alone["progress"]
    totals = [np.array(state["effects"]["totals"]) for state in (alone, both)]
    assert totals[1] == pytest.approx(2.0 * totals[0])
