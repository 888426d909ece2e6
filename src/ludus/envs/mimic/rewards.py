"""Mimic's reward terms and the sets that the presets use; every term is from 0 to 1 a step, but for energy."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.envs.mimic.scoring import GRAVITY_M_S2, POSE_SCALE, VELOCITY_SCALE
from ludus.rewards.moment import Moment
from ludus.rewards.terms import reward_term

_ROOT_SCALE = 8.0
_EFFECTOR_SCALE = 20.0  # for each m^2


@reward_term("mimic")
def pose(moment: Moment) -> Tensor:
    """Likeness of joint angles and trunk orientation."""
    return torch.exp(-POSE_SCALE * moment.measures["pose_error"])


@reward_term("mimic")
def velocity(moment: Moment) -> Tensor:
    """Likeness of joint and trunk velocities."""
    return torch.exp(-VELOCITY_SCALE * moment.measures["velocity_error"])


@reward_term("mimic")
def root(moment: Moment) -> Tensor:
    """Likeness of the hips' height, forward and sideways speed."""
    return torch.exp(-_ROOT_SCALE * moment.measures["root_error"])


@reward_term("mimic")
def effectors(moment: Moment) -> Tensor:
    """Likeness of where heels and balls of the feet are, as seen from the hips."""
    return torch.exp(-_EFFECTOR_SCALE * moment.measures["effector_error"])


@reward_term("mimic")
def energy(moment: Moment) -> Tensor:
    """Mechanical power of all joints, in units of the body's weight times 1 m/s."""
    return moment.measures["power"] / (GRAVITY_M_S2 * moment.measures["mass"])


@reward_term("mimic")
def alive(moment: Moment) -> Tensor:
    """1 in every step, but for one that ends in a fall."""
    return 1.0 - moment.events["falls"]


SETS: Mapping[str, Mapping[str, float]] = {
    "dense": {"pose": 0.5, "velocity": 0.1, "root": 0.3, "effectors": 0.1, "energy": -0.05, "alive": 0.2},
    # The published reward, to compare with it.
    "published": {"pose": 0.8, "velocity": 0.2, "alive": 0.2},
}
