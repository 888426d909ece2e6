"""The compiled LSTM against the recurrence in double precision, its blocks and threads, and its activations."""

import math

import pytest
import torch
from torch import Tensor

from ludus.networks.compiled import lstm as compiled
from ludus.networks.compiled.lstm import Inputs, rows_of_block, supports
from ludus.networks.recurrence import lstm_sequences


def _draw(steps: int, rows: int, size: int, networks: int) -> tuple[list[Inputs], Tensor, Tensor]:
    """Returns inputs, keep, and weights of the outputs and cells that make one number of them, in double precision."""
    generator = torch.Generator().manual_seed(steps + rows + size)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    drawn = [
        Inputs(draw(steps, rows, 4 * size), draw(4 * size, size) / math.sqrt(size), draw(rows, size), draw(rows, size))
        for _ in range(networks)
    ]
    keep = (torch.rand(steps, rows, 1, generator=generator) > 0.2).double()
    return drawn, keep, draw(networks, steps + 1, rows, size)


def _run(networks: list[Inputs], keep: Tensor, weights: Tensor) -> list[Tensor]:
    """Returns outputs, last cells and the gradients of everything."""
    leaves = [Inputs(*(tensor.clone().requires_grad_() for tensor in inputs)) for inputs in networks]
    results = lstm_sequences(leaves, keep)
    total = torch.zeros((), dtype=keep.dtype)
    for (outputs, cell), weight in zip(results, weights, strict=True):
        total = total + (outputs * weight[:-1]).sum() + (cell * weight[-1]).sum()
    gradients = torch.autograd.grad(total, [tensor for inputs in leaves for tensor in inputs])
    return [*(tensor.detach() for result in results for tensor in result), *gradients]


@pytest.mark.parametrize(
    ("steps", "rows", "size", "networks", "threads"),
    [(7, 5, 16, 1, 1), (1, 1, 64, 2, 2), (9, 37, 48, 1, 3), (3, 70, 32, 2, 2), (4, 33, 256, 1, 2)],
)
def test_outputs_and_all_gradients_equal_double_precision(
    steps: int, rows: int, size: int, networks: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_WORTH_A_THREAD", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    drawn, keep, weights = _draw(steps, rows, size, networks)
    single = [Inputs(*(tensor.float() for tensor in inputs)) for inputs in drawn]
    assert supports(single[0])
    assert not supports(drawn[0])
    exact = _run(drawn, keep, weights)
    for ours, theirs in zip(_run(single, keep.float(), weights.float()), exact, strict=True):
        torch.testing.assert_close(ours, theirs.float(), atol=2e-5, rtol=1e-5)


def test_tensors_of_any_layout_are_read_right() -> None:
    drawn, keep, weights = _draw(3, 6, 16, 1)
    plain = [Inputs(*(tensor.float() for tensor in inputs)) for inputs in drawn]
    odd = [Inputs(*(tensor.mT.contiguous().mT for tensor in inputs)) for inputs in plain]
    assert not odd[0].weight.is_contiguous()
    expected = _run(plain, keep.float(), weights.float())
    for ours, theirs in zip(_run(odd, keep.float(), weights.float()), expected, strict=True):
        assert torch.equal(ours, theirs)


def test_single_steps_give_the_same_bits_as_a_whole_sequence() -> None:
    drawn, keep, _ = _draw(6, 11, 32, 2)
    networks, keep = [Inputs(*(tensor.float() for tensor in inputs)) for inputs in drawn], keep.float()
    with torch.no_grad():
        whole = lstm_sequences(networks, keep)
        states = [(inputs.hidden, inputs.cell) for inputs in networks]
        for t in range(6):
            frames = [
                Inputs(inputs.projected[t : t + 1], inputs.weight, *state)
                for inputs, state in zip(networks, states, strict=True)
            ]
            states = [(outputs[0], cell) for outputs, cell in lstm_sequences(frames, keep[t : t + 1])]
            for (hidden, _), (outputs, _) in zip(states, whole, strict=True):
                assert torch.equal(hidden, outputs[t])


def test_a_network_that_the_loss_does_not_use_gets_no_gradient() -> None:
    drawn, keep, _ = _draw(2, 3, 16, 2)
    leaves = [Inputs(*(tensor.float().requires_grad_() for tensor in inputs)) for inputs in drawn]
    (_, (outputs, _)) = lstm_sequences(leaves, keep.float())
    outputs.sum().backward()  # type: ignore[no-untyped-call]
    assert all(tensor.grad is None for tensor in leaves[0])
    assert all(tensor.grad is not None and tensor.grad.abs().max() > 0.0 for tensor in leaves[1])


def test_activations_are_exact_over_their_whole_range_and_pass_nan_on() -> None:
    values = torch.cat((torch.linspace(-30.0, 30.0, 4001), torch.tensor([-1e30, -math.inf, 1e30, math.inf, math.nan])))
    rows, size = values.numel(), 16
    zeros = torch.zeros(rows, size)
    # With zero weights a gate is its input: one of them is the value, the others are open and the forget gate shut.
    cases = ((3, torch.tanh), (0, torch.sigmoid))
    for gate, activation in cases:
        projected = torch.full((1, rows, 4, size), 90.0)
        projected[0, :, 1] = -90.0
        projected[0, :, gate] = values.unsqueeze(1)
        inputs = Inputs(projected.flatten(2), torch.zeros(4 * size, size), zeros, zeros)
        with torch.no_grad():
            ((outputs, cell),) = lstm_sequences([inputs], torch.ones(1, rows, 1))
        expected = activation(values.double()).unsqueeze(1).expand(rows, size)
        torch.testing.assert_close(cell.double(), expected, atol=1e-34, rtol=4e-7, equal_nan=True)
        torch.testing.assert_close(outputs[0].double(), torch.tanh(expected), atol=1e-34, rtol=8e-7, equal_nan=True)


@pytest.mark.parametrize(
    ("rows", "networks", "threads", "expected"),
    [(32, 2, 2, 32), (32, 1, 2, 16), (8, 2, 2, 8), (8, 1, 2, 4), (64, 2, 2, 32), (65, 1, 1, 24), (1, 1, 4, 4)],
)
def test_blocks_keep_all_threads_busy(rows: int, networks: int, threads: int, expected: int) -> None:
    assert rows_of_block(rows, networks, threads) == expected


def test_other_tensors_are_left_to_torch() -> None:
    def given(size: int, dtype: torch.dtype) -> Inputs:
        state = torch.zeros(3, size, dtype=dtype)
        return Inputs(torch.zeros(2, 3, 4 * size, dtype=dtype), torch.zeros(4 * size, size, dtype=dtype), state, state)

    assert supports(given(32, torch.float32))
    assert not supports(given(40, torch.float32))
    assert not supports(given(32, torch.float64))
    assert not supports(given(32, torch.bfloat16))
