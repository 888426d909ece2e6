"""The clipped PPO loss.

Its native twin, for plain MLP policies on the CPU, is the C++ in `cpp/learning.cpp`: change both together.
The tests in `tests/algorithms/test_native.py` fail when only one of them is edited.
"""

from typing import NamedTuple

import torch
from torch import Tensor, distributed

from ludus.policies.policy import Evaluation
from ludus.rollout.buffer import Targets

METRICS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "ratio_error")


class Coefficients(NamedTuple):
    """Scheduled numbers as `()` tensors on the device, so that a CUDA graph reads their present values."""

    learning_rate: Tensor
    clip: Tensor
    entropy: Tensor
    value_clip: Tensor | None


def normalise_advantages(advantages: Tensor) -> Tensor:
    """Shift to mean 0 and scale to deviation 1 over the minibatch of all ranks."""
    if not distributed.is_initialized():
        return (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    sums = torch.stack((advantages.sum(), advantages.new_tensor(float(advantages.numel()))))
    distributed.all_reduce(sums)
    mean = sums[0] / sums[1]
    squares = (advantages - mean).square().sum()
    distributed.all_reduce(squares)
    return (advantages - mean) / (torch.sqrt(squares / (sums[1] - 1.0)) + 1e-8)


def ppo_loss(
    evaluation: Evaluation, targets: Targets, coefficients: Coefficients, value_weight: float
) -> tuple[Tensor, Tensor]:
    """Return the loss to descend and a vector of `METRICS`, without gradient.

    loss = -mean(min(r A, clip(r, 1 - c, 1 + c) A)) + value_weight * mean((R - V)^2) - entropy_weight * mean(H)
    """
    log_ratio = evaluation.log_probs - targets.log_probs
    ratio = torch.exp(log_ratio)
    clip = coefficients.clip
    clipped = torch.clamp(ratio, 1.0 - clip, 1.0 + clip)
    policy_loss = -torch.minimum(targets.advantages * ratio, targets.advantages * clipped).mean()
    values = evaluation.values
    if coefficients.value_clip is not None:
        change = torch.clamp(values - targets.values, -coefficients.value_clip, coefficients.value_clip)
        values = targets.values + change
    value_loss = (targets.returns - values).square().mean()
    entropy = evaluation.entropies.mean()
    loss = policy_loss + value_weight * value_loss - coefficients.entropy * entropy
    with torch.no_grad():
        away = (ratio - 1.0).abs()
        approx_kl = (ratio - 1.0 - log_ratio).mean()
        share = (away > clip).float().mean()
        metrics = torch.stack((policy_loss, value_loss, entropy, approx_kl, share, away.max()))
    return loss, metrics
