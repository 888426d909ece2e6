"""Advantages by hand and against the plain loop."""

import pytest
import torch
from torch import Tensor

from ludus.rollout.advantages import backward_scan, compute_gae, forward_scan


def test_by_hand() -> None:
    # gamma 0.5, lambda 0.5: decay 0.25. Step 1 ends its episode.
    rewards = torch.tensor([[1.0], [2.0], [4.0]])
    values = torch.tensor([[2.0], [4.0], [6.0]])
    ends = torch.tensor([[False], [True], [False]])
    # errors: 1 + 0.5 * 4 - 2 = 1;  2 - 4 = -2;  4 + 0.5 * 8 - 6 = 2
    advantages, returns = compute_gae(rewards, values, torch.tensor([8.0]), ends, 0.5, 0.5)
    assert advantages.flatten().tolist() == [0.5, -2.0, 2.0]
    assert returns.flatten().tolist() == [2.5, 2.0, 8.0]


def _loop(terms: Tensor, decays: Tensor) -> Tensor:
    following, results = torch.zeros_like(terms[0]), []
    for t in range(terms.shape[0] - 1, -1, -1):
        following = terms[t] + decays[t] * following
        results.append(following)
    return torch.stack(results[::-1])


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 64, 100])
def test_the_scan_equals_the_loop(steps: int) -> None:
    generator = torch.Generator().manual_seed(steps)
    terms = torch.randn(steps, 5, generator=generator, dtype=torch.float64)
    decays = torch.rand(steps, 5, generator=generator, dtype=torch.float64)
    decays[torch.rand(steps, 5, generator=generator) < 0.1] = 0.0
    torch.testing.assert_close(backward_scan(terms, decays), _loop(terms, decays))


def test_the_forward_scan_carries_in_what_was_before() -> None:
    terms = torch.tensor([[1.0], [1.0], [1.0]])
    decays = torch.tensor([[0.5], [0.0], [0.5]])
    assert forward_scan(terms, decays, torch.tensor([4.0])).flatten().tolist() == [3.0, 1.0, 1.5]
