"""Extending a run: which settings go over the budget, and how a larger one changes them."""

from pathlib import Path
from typing import Any

import pytest
import torch

from ludus.core.errors import ConfigError
from ludus.envs.registry import make_env
from ludus.policies.agent import agent_checkpoint, find_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import CheckpointStore
from ludus.training.callbacks import BaseCallback, Iteration
from ludus.training.config import TrainConfig, differences
from ludus.training.loop import Trainer
from ludus.training.session import describe_extension, extend, scheduled

LINEAR = {"kind": "linear", "start": 1e-3, "end": 1e-4}


def make_config(**changes: object) -> TrainConfig:
    return TrainConfig.model_validate({"world": {"name": "duel"}, "total_env_steps": 1000} | changes)


def larger(config: TrainConfig, total: int) -> TrainConfig:
    return config.model_copy(update={"total_env_steps": total})


def test_every_schedule_over_the_budget_is_found() -> None:
    config = make_config(
        ppo={"learning_rate": LINEAR, "clip_range": {"kind": "cosine", "start": 0.2, "end": 0.1}, "ent_coef": 0.01},
        sac={"learning_rate": LINEAR},
        policy={"exploration": {"frequency": {"kind": "exponential", "start": 0.5, "end": 0.1, "until": 0.5}}},
    )
    assert [path for path, _ in scheduled(config)] == [
        "policy.exploration.frequency",
        "ppo.learning_rate",
        "ppo.clip_range",
    ]
    assert list(scheduled(make_config(ppo={"learning_rate": {"kind": "kl_adaptive", "start": 1e-3}}))) == []


def test_what_an_extension_changes_is_told_in_numbers() -> None:
    clip = {"kind": "linear", "start": 0.2, "end": 0.1, "until": 0.5}
    config = make_config(ppo={"learning_rate": LINEAR, "clip_range": clip})
    extended = extend(config, larger(config, 4000), 1000)
    first, rate, clipping = describe_extension(extended, 1000)
    assert first == "the run is extended from 1,000 to 4,000 env steps; it is at 1,000"
    # A quarter of the way from 0.001 to 0.0001, and half the way from 0.2 to 0.1.
    assert rate.startswith("ppo.learning_rate is linear over the budget: 0.0001 -> 0.000775 from here")
    assert rate.endswith("0.0001 at 4,000 env steps instead of 1,000")
    assert clipping.startswith("ppo.clip_range is linear over the budget: 0.1 -> 0.15 from here")
    assert clipping.endswith("0.1 at 2,000 env steps instead of 500")


def test_only_a_chain_of_extensions_is_the_same_run() -> None:
    config = make_config()
    once = extend(config, larger(config, 2000), 500)
    twice = extend(once, larger(once, 3000), 500)
    assert (once.extended_from, twice.extended_from) == ((1000,), (1000, 2000))
    for began in (config, once, twice):
        assert differences(began.to_json(), twice.to_json()) == []
    assert differences(config.to_json(), larger(config, 2000).to_json()) == ["total_env_steps: 1000 -> 2000"]
    assert differences(twice.to_json(), once.to_json()) == [
        "extended_from: [1000, 2000] -> [1000]",
        "total_env_steps: 3000 -> 2000",
    ]
    other = make_config(total_env_steps=3000, extended_from=[1500])
    assert differences(config.to_json(), other.to_json()) != []


def test_a_smaller_or_equal_budget_extends_nothing() -> None:
    config = make_config()
    assert extend(config, config, 1000) == config
    assert extend(config, larger(config, 900), 500).extended_from == ()
    with pytest.raises(ConfigError, match=r"total_env_steps=1024: .*1,024 env steps"):
        extend(config, larger(config, 1024), 1024)


def test_the_agent_of_an_extended_run_is_not_the_final_one_of_before(tmp_path: Path) -> None:
    with make_env("duel") as env:
        policy = Policy(env.spec, PolicyConfig())
    agent = agent_checkpoint(policy.spec, policy.config, policy.state())
    store = CheckpointStore(tmp_path / "checkpoints", keep=3, report=pytest.fail)
    found = []
    for name, step in (("final", 1000), ("interrupted", 1500), ("final", 2000), ("best", 500)):
        store.save(name, step, agent)
        found.append(find_checkpoint(tmp_path).name)
    assert found == ["final", "interrupted", "final", "best"]


class StopAfterOne(BaseCallback):
    def on_iteration(self, iteration: Iteration) -> None:
        self.trainer.stop("one iteration")


class StopAfterTwo(BaseCallback):
    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.env_steps >= 64:
            self.trainer.stop("two iterations")


def test_a_smaller_budget_is_the_beginning_of_the_run_whose_schedules_it_has(tmp_path: Path) -> None:
    ppo = {"n_steps": 8, "batch_size": 16, "n_epochs": 2, "learning_rate": LINEAR}
    settings: dict[str, Any] = {"world": {"name": "rps-v1", "num_envs": 4}, "seed": 3, "ppo": ppo}
    budgets: dict[str, dict[str, Any]] = {
        "whole": {"total_env_steps": 256},
        "short": {"total_env_steps": 64, "schedule_env_steps": 256},
        "hurried": {"total_env_steps": 64},
        "long": {"total_env_steps": 256, "schedule_env_steps": 64},  # its budget is larger: that counts
    }
    learned = {}
    for name, budget in budgets.items():
        config = TrainConfig.model_validate(settings | budget)
        with Trainer(config, tmp_path / name, [StopAfterTwo()]) as trainer:
            trainer.run()
            assert trainer.counters.env_steps == 64  # rows of both seats
            learned[name] = trainer.components.policy.state()
    same = {
        name: all(torch.equal(state[key], learned["whole"][key]) for key in state) for name, state in learned.items()
    }
    assert same == {"whole": True, "short": True, "hurried": False, "long": True}


def test_an_extension_within_the_schedules_changes_nothing() -> None:
    config = make_config(ppo={"learning_rate": LINEAR}, schedule_env_steps=4000)
    _, rate = describe_extension(extend(config, larger(config, 2000), 1000), 1000)
    assert "0.000775 -> 0.000775 from here, 0.0001 at 4,000 env steps instead of 4,000" in rate


def test_the_parts_of_a_minibatch_may_change_when_a_run_is_resumed(tmp_path: Path) -> None:
    ppo = {"n_steps": 8, "batch_size": 16, "n_epochs": 2, "native": False}
    settings: dict[str, Any] = {"world": {"name": "rps-v1", "num_envs": 4}, "total_env_steps": 64, "seed": 3}
    config, parts = (
        TrainConfig.model_validate(settings | {"ppo": ppo | changes}) for changes in ({}, {"n_accumulate": 4})
    )
    finals = []
    for folder, rest in (("whole", config), ("parts", parts)):
        with Trainer(config, tmp_path / folder, [StopAfterOne()]) as trainer:
            trainer.run()
        with Trainer(rest, tmp_path / folder) as trainer:
            trainer.run()
            finals.append(trainer.components.policy.state())
            rollout = trainer.components.learner.rollout
            finals[-1] |= {"seen": rollout.observations["vector"].clone(), "rewards": rollout.rewards.clone()}
    whole, in_parts = finals
    for name, tensor in whole.items():
        torch.testing.assert_close(in_parts[name], tensor, atol=2e-5, rtol=1e-4, msg=name)
    # The rollout is the same to the byte: it came from the same parameters. The updates differ in their rounding.
    assert all(torch.equal(whole[name], in_parts[name]) for name in ("seen", "rewards"))
    other = config.with_hyperparameters(config.ppo.model_copy(update={"n_epochs": 3}))  # type: ignore[attr-defined]
    assert differences(config.to_json(), other.to_json()) == ["ppo.n_epochs: 2 -> 3"]
