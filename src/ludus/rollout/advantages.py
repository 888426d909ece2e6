"""Generalised advantage estimation as a parallel scan: no loop over steps, games or rows."""

import torch
from torch import Tensor


def backward_scan(terms: Tensor, decays: Tensor) -> Tensor:
    """Solve `y[t] = terms[t] + decays[t] * y[t + 1]` with `y[steps] = 0` for all rows of `(steps, rows)` at once.

    Recursive doubling: after the pass with offset s every y[t] covers 2 s steps. That is log2(steps) passes of
    three operations over the whole tensor instead of `steps` passes over single rows.
    """
    result, factors = terms.clone(), decays.clone()
    steps, offset = terms.shape[0], 1
    while offset < steps:
        result[:-offset] += factors[:-offset] * result[offset:]
        factors[:-offset] *= factors[offset:].clone()
        offset *= 2
    return result


def forward_scan(terms: Tensor, decays: Tensor, first: Tensor) -> Tensor:
    """Solve `y[t] = terms[t] + decays[t] * y[t - 1]` with `y[-1] = first` `(rows,)` for all rows at once."""
    terms = terms.clone()
    terms[0] += decays[0] * first
    return backward_scan(terms.flip(0), decays.flip(0)).flip(0)


def compute_gae(
    rewards: Tensor, values: Tensor, last_values: Tensor, ends: Tensor, gamma: float, gae_lambda: float
) -> tuple[Tensor, Tensor]:
    """Return advantages and value targets, `(steps, rows)` each.

    Args:
        rewards: `(steps, rows)`; of a step that was truncated, with gamma times the value of what followed.
        values: `(steps, rows)` of the observations acted on.
        last_values: `(rows,)` of the observations after the last step.
        ends: `(steps, rows)` bool, whether the episode ended in the step, for any reason.
        gamma: Discount a step.
        gae_lambda: Decay of the estimate a step.
    """
    goes_on = (~ends).to(values.dtype)
    following = torch.cat((values[1:], last_values.unsqueeze(0)))
    errors = rewards + gamma * goes_on * following - values
    advantages = backward_scan(errors, gamma * gae_lambda * goes_on)
    return advantages, advantages + values
