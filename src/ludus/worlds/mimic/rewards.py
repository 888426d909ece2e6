"""Mimic's reward terms and the sets that the presets use; every term is from 0 to 1 per step, except energy."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import reward_term
from ludus.worlds.mimic.scoring import GRAVITY_M_S2, POSE_SCALE, VELOCITY_SCALE

_ROOT_SCALE = 8.0
_EFFECTOR_SCALE = 20.0  # for each m^2


@reward_term("mimic")
def pose(info: StepInfo) -> Tensor:
    """Likeness of joint angles and trunk orientation."""
    return torch.exp(-POSE_SCALE * info.state_metrics["pose_error"])


@reward_term("mimic")
def velocity(info: StepInfo) -> Tensor:
    """Likeness of joint and trunk velocities."""
    return torch.exp(-VELOCITY_SCALE * info.state_metrics["velocity_error"])


@reward_term("mimic")
def root(info: StepInfo) -> Tensor:
    """Likeness of the hips' height, forward and sideways speed."""
    return torch.exp(-_ROOT_SCALE * info.state_metrics["root_error"])


@reward_term("mimic")
def effectors(info: StepInfo) -> Tensor:
    """Likeness of where heels and balls of the feet are, as seen from the hips."""
    return torch.exp(-_EFFECTOR_SCALE * info.state_metrics["effector_error"])


@reward_term("mimic")
def energy(info: StepInfo) -> Tensor:
    """Mechanical power of all joints, in units of the body's weight times 1 m/s."""
    return info.state_metrics["power"] / (GRAVITY_M_S2 * info.state_metrics["mass"])


@reward_term("mimic")
def alive(info: StepInfo) -> Tensor:
    """1 in every step, but for one that ends in a fall."""
    return 1.0 - info.events["falls"]


SETS: Mapping[str, Mapping[str, float]] = {
    "dense": {"pose": 0.5, "velocity": 0.1, "root": 0.3, "effectors": 0.1, "energy": -0.05, "alive": 0.2},
    # The published reward, to compare with it.
    "published": {"pose": 0.8, "velocity": 0.2, "alive": 0.2},
}
