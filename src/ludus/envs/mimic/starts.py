"""Where episodes begin: a phase and a speed of the reference, and the walker's state there."""

import numpy as np
import torch
from torch import Tensor

from ludus.core.random import uniform
from ludus.envs.mimic.config import MimicConfig
from ludus.envs.mimic.gait import Floats
from ludus.envs.mimic.reference import Frame, quaternions

STREAMS = 4  # random numbers that `draw_starts` needs
_FIXED_STARTS = 20  # different ones of `starts: fixed`
_FIXED_PHASE = 0.75  # of a step
_BEFORE_FAILURE = 0.15  # of a stride; adaptive starts begin this much before the last failure at most
_ADAPTIVE_SHARE = 0.5
_NOISE_SPAN = 3.0**0.5  # even noise of this half width has deviation 1
_VELOCITY_NOISE = 10.0  # rad/s of noise for every rad of it


def draw_starts(config: MimicConfig, games: Tensor, failures: Tensor, hashes: Tensor) -> tuple[Tensor, Tensor]:
    """Returns phases of a stride and speeds `(games,)` to begin at.

    Args:
        config: What kind of starts.
        games: `(games,)` index of each game, from which fixed starts follow.
        failures: `(games,)` phase at which each game failed last, negative if it never did.
        hashes: `(games, STREAMS)` random.
    """
    low, high = config.speed_range
    random = uniform(hashes)
    if config.starts == "fixed":
        number = games % _FIXED_STARTS
        phases = 0.5 * (number % 2) + 0.5 * _FIXED_PHASE
        speeds = low + (high - low) * (number // 2) / (_FIXED_STARTS // 2 - 1)
    else:
        phases, speeds = random[:, 0], low + (high - low) * random[:, 1]
        if config.starts == "adaptive":
            earlier = (failures - _BEFORE_FAILURE * random[:, 2]) % 1.0
            phases = torch.where((failures >= 0.0) & (random[:, 3] < _ADAPTIVE_SHARE), earlier, phases)
    if config.speed is not None:
        speeds = torch.full_like(speeds, config.speed)
    return phases.float(), speeds.float()


def first_states(frame: Frame, noise: Tensor, deviation: float) -> tuple[Floats, Floats]:
    """Returns positions `(games, 7 + joints)` and velocities `(games, 6 + joints)` of walkers on the reference.

    Args:
        frame: The reference where the episodes begin.
        noise: `(games, 2 * joints)` even numbers in [0, 1).
        deviation: Of joint angles in rad.
    """
    games, joints = frame.angles.shape
    spread = ((2.0 * _NOISE_SPAN * deviation) * (noise - 0.5)).double().numpy()
    root = frame.root.double().numpy()
    positions, velocities = np.zeros((games, 7 + joints)), np.zeros((games, 6 + joints))
    positions[:, 2] = root[:, 0]
    positions[:, 3:7] = quaternions(root[:, 1:])
    positions[:, 7:] = frame.angles.numpy() + spread[:, :joints]
    velocities[:, :6] = frame.root_velocity.numpy()
    velocities[:, 6:] = frame.velocities.numpy() + _VELOCITY_NOISE * spread[:, joints:]
    return positions, velocities
