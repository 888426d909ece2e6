"""The learned reward: numbers by hand, what it learns, exact resume, and clear errors."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

import ludus
from ludus.core.errors import ConfigError, StateError, UnknownNameError
from ludus.envs.registry import make_env
from ludus.rewards.discriminator import Discriminator
from ludus.rewards.step_info import StepInfo
from ludus.rewards.weights import RewardConfig, StyleConfig
from ludus.store import load_checkpoint
from ludus.training.components import Components, make_rewards
from ludus.training.config import TrainConfig

if TYPE_CHECKING:
    from tests.conftest import NoCudaSync

LINEAR = StyleConfig(differences=("gap",), net_arch=(), n_updates=1, learning_rate=0.01, gradient_penalty=0.5)


def step_info(**metrics: Any) -> StepInfo:
    return StepInfo({}, {name: torch.as_tensor(values) for name, values in metrics.items()}, 0.01)


def linear(weight: float, bias: float, mean_square: float = 0.0) -> Discriminator:
    """Return d(x) = weight x + bias, which has seen a rollout if its differences have a size."""
    made = Discriminator(LINEAR, ("gap", "speed"))
    state = made.state()
    state |= {"parameter.0": torch.tensor([[weight]]), "parameter.1": torch.tensor([bias])}
    state |= {"mean_square": torch.tensor([mean_square]), "rollouts": torch.tensor(float(mean_square > 0.0))}
    made.load_state(state)
    return made


def test_rewards_by_hand() -> None:
    # Square roots of 0, 4 and 36 over the size 2 are 0, 1 and 3, so d is 1, 0 and -2.
    rewards = linear(-1.0, 1.0, mean_square=4.0)(step_info(gap=[[0.0, 4.0, 36.0]]))
    expected = [[math.log(1.0 + math.exp(d)) for d in (1.0, 0.0, -2.0)]]
    assert rewards.tolist() == [pytest.approx(row) for row in expected]
    assert linear(0.0, 50.0)(step_info(gap=[1.0])).tolist() == [10.0]  # at most


def test_a_step_of_its_optimizer_by_hand() -> None:
    made = linear(2.0, 0.5)
    made.learn(step_info(gap=[[4.0, 4.0]]))
    # The first rollout sets the size to 2, so x = 1, d(0) = 0.5 and d(x) = 2.5. Of log(1 + e^-0.5) + log(1 + e^2.5) +
    # 0.5 * 2^2 the slope by the weight is 1 / (1 + e^-2.5) + 2, by the bias 1 / (1 + e^-2.5) - 1 / (1 + e^0.5). The
    # first step of Adam is the learning rate against the sign.
    slope = 1.0 / (1.0 + math.exp(-2.5))
    state = made.state()
    assert state["mean_square"].tolist() == [4.0]
    assert state["parameter.0"].item() == pytest.approx(2.0 - 0.01, abs=1e-6)
    assert state["parameter.1"].item() == pytest.approx(0.5 - 0.01, abs=1e-6)
    assert state["exp_avg.0"].item() == pytest.approx(0.1 * (slope + 2.0), rel=1e-5)
    assert state["exp_avg.1"].item() == pytest.approx(0.1 * (slope - 1.0 / (1.0 + math.exp(0.5))), rel=1e-5)
    made.learn(step_info(gap=[[16.0, 16.0]]))
    assert made.state()["mean_square"].item() == pytest.approx(0.98 * 4.0 + 0.02 * 16.0)


def learned(gradient_penalty: float, rollouts: int = 25) -> Discriminator:
    """Return one that has learned differences whose squares are 0 to 1 in `a`, and always 0 in `b`."""
    made = Discriminator(StyleConfig(differences=("a", "b"), gradient_penalty=gradient_penalty), ("a", "b", "c"))
    for _ in range(rollouts):
        made.learn(step_info(a=torch.linspace(0.0, 1.0, 64), b=torch.zeros(64)))
    return made


def rated(made: Discriminator, *values: float) -> Tensor:
    return made(step_info(a=list(values), b=[0.0] * len(values)))


def test_what_is_like_the_reference_is_worth_more_and_a_penalty_makes_it_smoother() -> None:
    smooth, sharp = learned(0.5), learned(0.0)
    none, some, much = rated(smooth, 0.0, 0.25, 1.0).tolist()
    assert none > some + 0.05
    assert some > much + 0.05
    # What is a quarter off is nearly worthless to the sharp one, although it is better than most.
    assert rated(sharp, 0.25).item() < 0.5 * some


def test_a_metric_that_never_differs_is_no_nan() -> None:
    assert bool(torch.isfinite(rated(learned(1.0, rollouts=2), 0.0, 1.0)).all())


def test_it_continues_bit_by_bit_from_a_saved_state() -> None:
    one = learned(0.2, rollouts=3)
    other = Discriminator(StyleConfig(differences=("a", "b"), gradient_penalty=0.2), ("a", "b"), seed=5)
    other.load_state(one.state())
    for made in (one, other):
        made.learn(step_info(a=torch.linspace(0.0, 1.0, 64), b=torch.ones(64)))
    assert all(torch.equal(tensor, other.state()[name]) for name, tensor in one.state().items())
    with pytest.raises(StateError, match=r"mean_square.*rewards\.style"):
        Discriminator(StyleConfig(differences=("a",), net_arch=(64, 64)), ("a", "b")).load_state(
            one.state() | {"parameter.0": torch.zeros(64, 1), "exp_avg.0": torch.zeros(64, 1)}
            | {"exp_avg_sq.0": torch.zeros(64, 1)}
        )  # fmt: skip


@pytest.mark.cuda
def test_a_gpu_learns_what_the_cpu_does_and_the_host_never_waits(no_cuda_sync: "NoCudaSync") -> None:
    style = StyleConfig(differences=("a", "b"))
    host = Discriminator(style, ("a", "b"), seed=3)
    device = Discriminator(style, ("a", "b"), seed=3, device=torch.device("cuda"))
    # All samples are alike: which of them are drawn, by generators that differ, does not matter.
    rollouts = [step_info(a=torch.full((8, 4), 0.3 + 0.1 * number), b=torch.full((8, 4), 2.0)) for number in range(4)]
    moved = [step_info(**{name: each.cuda() for name, each in rollout.state_metrics.items()}) for rollout in rollouts]
    device.learn(moved[0])  # loads what it needs
    host.learn(rollouts[0])
    torch.cuda.synchronize()
    with no_cuda_sync():
        for rollout in moved[1:]:
            device(rollout)
            device.learn(rollout)
    for rollout in rollouts[1:]:
        host.learn(rollout)
    torch.testing.assert_close(device(moved[0]).cpu(), host(rollouts[0]), rtol=1e-3, atol=1e-4)
    other = Discriminator(style, ("a", "b"), seed=4, device=torch.device("cuda"))
    other.load_state(device.state())
    assert torch.equal(other(moved[0]), device(moved[0]))


def test_patterns_choose_metrics_in_the_order_of_the_world() -> None:
    style = StyleConfig(differences=("speed", "error_*"))
    assert Discriminator(style, ("error_knee", "power", "speed", "error_hip")).inputs == (
        "error_knee", "speed", "error_hip",
    )  # fmt: skip
    with pytest.raises(UnknownNameError, match=r"rewards\.style\.differences.*'eror_\*'"):
        Discriminator(StyleConfig(differences=("eror_*",)), ("error_knee",))
    with pytest.raises(ValidationError, match="differences"):
        RewardConfig.model_validate({"style": {"differences": []}})


SETTINGS: dict[str, Any] = {
    "world": {"name": "point-v1", "num_envs": 16},
    "total_env_steps": 2048,
    "ppo": {"n_steps": 32, "batch_size": 128, "n_epochs": 1},
    "rewards": {"weights": {"style": 0.5, "reward": 0.25}, "style": {"differences": ["distance"], "n_updates": 2}},
    "monitoring": {"console": "off", "tensorboard": False, "curves": False},
}


def test_a_term_without_a_weight_and_phases_that_disagree_are_refused() -> None:
    with make_env("point-v1", 2) as env:
        for rewards, message in (
            ({"style": {"differences": ["distance"]}}, r"rewards\.weights\.style"),
            ({"weights": {"reward": 1.0}, "style": {"differences": ["distance"]}}, r"rewards\.weights\.style"),
        ):
            with pytest.raises(ConfigError, match=message):
                make_rewards(env.spec, TrainConfig.model_validate(SETTINGS | {"rewards": rewards}))
        with pytest.raises(UnknownNameError, match="style"):
            make_rewards(env.spec, TrainConfig.model_validate(SETTINGS | {"rewards": {"weights": {"style": 1.0}}}))
    phases = [
        {"name": name, "opponents": {"mirror": 1}, "rewards": {"weights": {"style": 1.0}, "style": style}, **more}
        for name, style, more in (
            ("one", {"differences": ["lead"]}, {"promotion": {"after_env_steps": 64}}),
            ("two", {"differences": ["lead"], "n_updates": 3}, {}),
        )
    ]
    world = {"name": "duel-v1", "num_envs": 4}
    settings = {name: SETTINGS[name] for name in ("total_env_steps", "ppo", "monitoring")}
    with make_env("duel-v1", 2) as env, pytest.raises(ConfigError, match="one discriminator"):
        make_rewards(env.spec, TrainConfig.model_validate({**settings, "world": world, "curriculum": phases}))


def test_a_run_is_rewarded_by_it_and_resumes_bit_by_bit(tmp_path: Path) -> None:
    whole = ludus.train(SETTINGS, folder=tmp_path / "whole")
    header, *rows = (whole.folder / "reward_breakdown.csv").read_text().splitlines()
    names = header.split(",")
    for row in rows:
        found = dict(zip(names, map(float, row.split(",")), strict=True))
        assert found["style"] > 0.0
        assert found["style"] + found["reward"] == found["total"]
    part = ludus.train(SETTINGS, folder=tmp_path / "part", overrides=["total_env_steps=1024"])
    assert part.env_steps == 1024
    continued = ludus.resume(part.folder, overrides=["total_env_steps=2048"])
    ends = [load_checkpoint(run.folder / "checkpoints" / "final").tensors for run in (whole, continued)]
    assert float(ends[0]["discriminator"]["rollouts"]) == 4.0
    for group, tensors in ends[0].items():
        assert all(torch.equal(tensor, ends[1][group][name]) for name, tensor in tensors.items()), group


def test_a_new_phase_keeps_what_it_has_learned() -> None:
    settings = {name: SETTINGS[name] for name in ("total_env_steps", "ppo", "monitoring")}
    rewards = {"weights": {"style": 1.0}, "style": {"differences": ["lead"]}}
    phases = [
        {"name": "one", "opponents": {"mirror": 1}, "promotion": {"after_env_steps": 64}},
        {"name": "two", "opponents": {"mirror": 1}, "world": {"num_envs": 8}},
    ]
    world = {"name": "duel-v1", "num_envs": 4}
    config = TrainConfig.model_validate({**settings, "world": world, "curriculum": phases, "rewards": rewards})
    with Components(config) as components:
        components.learner.collect()
        first = components.rewards.discriminator
        assert first is not None
        components.begin_phase(1, 256)
        second = components.rewards.discriminator
        assert second is not None
        assert second is not first
        assert float(second.state()["rollouts"]) == 1.0
        assert all(torch.equal(tensor, second.state()[name]) for name, tensor in first.state().items())


def test_it_alone_teaches_the_way_to_a_target(tmp_path: Path) -> None:
    """With no other reward than likeness, a point learns to stay at its target."""
    settings = SETTINGS | {
        "total_env_steps": 40_000,
        "world": {"name": "point-v1", "num_envs": 32},
        "ppo": {"n_steps": 64, "batch_size": 512, "n_epochs": 4, "learning_rate": 2e-3, "gamma": 0.97},
        "rewards": {"weights": {"style": 1.0}, "style": {"differences": ["distance"]}},
    }
    run = ludus.train(settings, folder=tmp_path / "run")
    with Components(TrainConfig.model_validate(settings)) as components:
        components.policy.load_state(run.agent().policy.state())
        components.learner.collect()
        taught = components.trace.measured("distance")[-1].mean().item()
    with Components(TrainConfig.model_validate(settings)) as components:
        components.learner.collect()
        untaught = components.trace.measured("distance")[-1].mean().item()
    assert taught < 0.5 * untaught
