"""Runs with an adaptive curriculum: a constructed world in which it is known what helps and what is stuck."""

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
from ludus.curriculum import adaptive
from ludus.envs.base import ActionKinds, EnvRequest, EnvSpec, Observations
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
            actions=ActionKinds(exploratory=(2,), names=KINDS),
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

ADAPTIVE = {"kind": "adaptive", "measure": "houses", "patience": 5, "exploring": {"built": 3.0}}
STRATEGIC = {"kind": "strategic", "goals": ["houses", "calm"], "metrics": ["houses"], "ahead": 1, "every_iterations": 3}
STUCK = {"name": "yard", "num_envs": GAMES, "settings": {"grows": False}}


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


class _Weights(BaseCallback):
    def __init__(self) -> None:
        self.seen: list[float] = []

    def on_iteration(self, iteration: Iteration) -> None:
        self.seen.append(self.trainer.components.rewards.weights["built"])


def test_a_run_that_is_stuck_explores_more_and_rewards_it(tmp_path: Path) -> None:
    weights = _Weights()
    with Trainer(_config(ADAPTIVE, world=STUCK), tmp_path, [weights]) as trainer:
        trainer.run()
    rows = _metrics(tmp_path)
    # What an iteration shows decides about the next one.
    assert [row["exploration_frequency"] for row in rows] == pytest.approx([0.05, 0.1, 0.15, 0.2])
    assert [row["steering_exploring"] for row in rows] == [1.0] * 4
    assert [row["steering_stuck_share"] for row in rows] == [1.0] * 4
    assert weights.seen == pytest.approx([0.1, 0.3, 0.3, 0.3])
    with (tmp_path / "reward_breakdown.csv").open() as file:
        assert file.readline().strip() == "iteration,env_steps,total,built,goal_houses,goal_calm"


def test_a_run_that_gets_on_explores_little(tmp_path: Path) -> None:
    train(_config(ADAPTIVE), tmp_path)
    rows = _metrics(tmp_path)
    assert [row["exploration_frequency"] for row in rows] == pytest.approx([0.05] * 4)
    assert [row["steering_exploring"] for row in rows] == [0.0] * 4


def test_measured_effects_are_the_worlds_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "FEWEST", 10)
    monkeypatch.setattr(adaptive, "_INERTIA", 0.0)
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


@pytest.mark.parametrize("adaptive_curriculum", [ADAPTIVE, STRATEGIC], ids=["adaptive", "strategic"])
def test_a_stopped_run_goes_on_exactly(adaptive_curriculum: dict[str, Any], tmp_path: Path) -> None:
    world = STUCK if adaptive_curriculum is ADAPTIVE else STUCK | {"settings": {"grows": True}}
    config = _config(adaptive_curriculum, world=world)
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
        (ADAPTIVE | {"measure": "huoses"}, UnknownNameError, "houses"),
        (ADAPTIVE | {"exploring": {"bulit": 2.0}}, UnknownNameError, "built"),
        (ADAPTIVE | {"patience": 16}, ConfigError, "a rollout has 16 steps"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_run_starts(
    adaptive_curriculum: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        list(verify(_config(adaptive_curriculum)))


@pytest.mark.parametrize("adaptive_curriculum", [ADAPTIVE, STRATEGIC], ids=["adaptive", "strategic"])
def test_an_adaptive_curriculum_needs_exploration(adaptive_curriculum: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"set policy\.exploration"):
        _config(adaptive_curriculum, policy={"net_arch": {"pi": [8], "vf": [8]}})


class _Two(ProcessGroup):
    """Two processes whose games happen to be the same."""

    def gather_numbers(self, numbers: Sequence[float]) -> list[list[float]]:
        return [list(numbers)] * 2


@pytest.mark.parametrize("adaptive_curriculum", [ADAPTIVE, STRATEGIC], ids=["adaptive", "strategic"])
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
    if adaptive_curriculum is ADAPTIVE:
        assert both == alone
        return
    assert both["progress"] == alone["progress"]
    totals = [np.array(state["totals"]) for state in (alone, both)]
    assert totals[1] == pytest.approx(2.0 * totals[0])
