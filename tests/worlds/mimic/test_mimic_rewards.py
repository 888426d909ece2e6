"""Reward terms of mimic by hand, and that the world's own trials fit its settings."""

import math

import pytest
import torch

from ludus.envs.base import EnvRequest
from ludus.envs.settings import read_settings
from ludus.rewards.step_info import StepInfo
from ludus.worlds.mimic import rewards
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.scenarios import SCENARIOS


def step_info() -> StepInfo:
    state_metrics = {
        "pose_error": 0.2, "velocity_error": 10.0, "root_error": 0.1, "effector_error": 0.05, "power": 147.15,
        "mass": 75.0,
    }  # fmt: skip
    events = {"falls": 0.0}
    return StepInfo(
        {name: torch.tensor([[value]]) for name, value in events.items()},
        {name: torch.tensor([[value]]) for name, value in state_metrics.items()},
        0.01,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pose", math.exp(-0.6)),
        ("velocity", math.exp(-0.5)),
        ("root", math.exp(-0.8)),
        ("effectors", math.exp(-1.0)),
        ("energy", 147.15 / (75.0 * 9.81)),
        ("alive", 1.0),
    ],
)
def test_terms_by_hand(name: str, value: float) -> None:
    assert getattr(rewards, name)(step_info()).item() == pytest.approx(value, rel=1e-5)


def test_the_reward_event_is_the_published_imitation_reward() -> None:
    env = MimicEnv(EnvRequest(16, "cpu", 3, 0, {"start_noise": 0.1}))
    env.reset()
    result = env.step(torch.rand(16, 1, 8) - 0.5)
    expected = 0.8 * torch.exp(-3.0 * result.state_metrics["pose_error"])
    expected += 0.2 * torch.exp(-0.05 * result.state_metrics["velocity_error"])
    assert torch.allclose(result.events["reward"], expected)


@pytest.mark.parametrize("trial", SCENARIOS)
def test_trials_are_valid_settings(trial: str) -> None:
    settings = read_settings(MimicConfig, SCENARIOS[trial], trial)
    assert settings.starts == "fixed"
    assert settings.episode_s == 15.0


def test_sets_name_terms_that_exist() -> None:
    for weights in rewards.SETS.values():
        assert all(callable(getattr(rewards, name)) for name in weights)
