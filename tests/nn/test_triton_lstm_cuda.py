"""The Triton kernels of the LSTM against the plain recurrence in double precision."""

import pytest
import torch
from torch import Tensor

from ludus.nn import recurrent

pytest.importorskip("triton")
pytestmark = pytest.mark.cuda


def _arguments(steps: int, rows: int, size: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    projected = torch.randn(steps, rows, 4 * size, generator=generator)
    weight = torch.randn(4 * size, size, generator=generator) / size**0.5
    hidden, cell = torch.rand(2, rows, size, generator=generator) - 0.5
    keep = (torch.rand(steps, rows, 1, generator=generator) > 0.2).float()
    # Both sides see the same numbers: those that bfloat16 can hold, but for the cell, which is float32.
    return projected.bfloat16(), weight.bfloat16(), hidden.bfloat16(), cell, keep.bfloat16()


def _run(arguments: tuple[Tensor, ...], weights: Tensor) -> list[Tensor]:
    """Returns outputs, the last cell and the gradients of everything but `keep`."""
    leaves = [tensor.detach().requires_grad_() for tensor in arguments[:4]]
    outputs, cell = recurrent.lstm_sequence(leaves[0], leaves[1], leaves[2], leaves[3], arguments[4])
    loss = (outputs * weights.to(outputs)).sum() + cell.sum()
    return [outputs.detach(), cell.detach(), *torch.autograd.grad(loss, leaves)]


@pytest.mark.parametrize(("steps", "rows", "size"), [(1, 300, 512), (16, 128, 512), (7, 37, 64), (5, 513, 128)])
def test_outputs_and_gradients_equal_double_precision(steps: int, rows: int, size: int) -> None:
    arguments = _arguments(steps, rows, size)
    weights = torch.randn(steps, rows, size, generator=torch.Generator().manual_seed(1))
    theirs = _run(tuple(tensor.double() for tensor in arguments), weights)
    ours = _run(tuple(tensor.cuda() for tensor in arguments), weights.cuda())
    for one, other in zip(ours, theirs, strict=True):
        assert (one.cpu().double() - other).norm() < 1e-2 * other.norm()


def test_single_steps_equal_a_sequence() -> None:
    projected, weight, hidden, cell, keep = (tensor.cuda() for tensor in _arguments(9, 70, 128))
    whole, last = recurrent.lstm_sequence(projected, weight, hidden, cell, keep)
    for t in range(9):
        outputs, cell = recurrent.lstm_sequence(projected[t : t + 1], weight, hidden, cell, keep[t : t + 1])
        hidden = outputs[0]
        assert torch.equal(hidden, whole[t])
    assert torch.equal(cell, last)


def test_the_kernels_are_used_in_bfloat16_alone() -> None:
    fused = recurrent._fused_lstm()
    assert fused is not None
    projected, _, _, cell, _ = (tensor.cuda() for tensor in _arguments(1, 2, 64))
    assert fused.supports(projected, cell)
    assert not fused.supports(projected.float(), cell)
    assert not fused.supports(projected, cell[:, :40])
