"""The compiled LSTM against the recurrence in double precision, its blocks, threads and memory, its activations."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from ludus.nn.backends import warp_lstm
from ludus.nn.backends.warp_lstm import Network, run_lstms, supports
from ludus.nn.recurrent import lstm_sequence

INPUTS = 5


class Case:
    """Inputs, networks and resets in double precision, and weights that make one number of all results."""

    def __init__(self, steps: int, rows: int, size: int, networks: int) -> None:
        generator = torch.Generator().manual_seed(steps + rows + size)

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.inputs = draw(steps, rows, INPUTS)
        self.networks = [
            Network(
                draw(4 * size, INPUTS), draw(4 * size), draw(4 * size, size) / math.sqrt(size), *draw(2, rows, size)
            )
            for _ in range(networks)
        ]
        self.keep = (torch.rand(steps, rows, 1, generator=generator) > 0.2).double()
        self.weights = draw(networks, steps + 1, rows, size)

    def single(self) -> "Case":
        """Returns itself in single precision."""
        case = Case.__new__(Case)
        case.inputs, case.keep, case.weights = self.inputs.float(), self.keep.float(), self.weights.float()
        case.networks = [Network(*(tensor.float() for tensor in network)) for network in self.networks]
        return case

    def run(self) -> list[Tensor]:
        """Returns outputs, last cells and the gradients of everything."""
        inputs = self.inputs.clone().requires_grad_()
        networks = [Network(*(tensor.clone().requires_grad_() for tensor in network)) for network in self.networks]
        if supports(inputs, networks[0]):
            results = run_lstms(inputs, networks, self.keep)
        else:
            results = [
                lstm_sequence(functional.linear(inputs, network.input_weight, network.bias), *network[2:], self.keep)
                for network in networks
            ]
        total = torch.zeros((), dtype=inputs.dtype)
        for (outputs, cell), weight in zip(results, self.weights, strict=True):
            total = total + (outputs * weight[:-1]).sum() + (cell * weight[-1]).sum()
        leaves = [inputs, *(tensor for network in networks for tensor in network)]
        found = torch.autograd.grad(total, leaves)
        return [*(tensor.detach() for result in results for tensor in result), *found]


@pytest.mark.parametrize(
    ("steps", "rows", "size", "networks", "threads"),
    [(7, 5, 16, 1, 1), (1, 1, 64, 2, 2), (9, 37, 48, 1, 3), (3, 70, 32, 2, 2), (4, 33, 256, 1, 2)],
)
def test_outputs_and_all_gradients_equal_double_precision(
    steps: int, rows: int, size: int, networks: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warp_lstm, "_WORTH_A_THREAD", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    case = Case(steps, rows, size, networks)
    exact = case.run()
    for _ in range(3):  # the later ones in memory that was used before
        for ours, theirs in zip(case.single().run(), exact, strict=True):
            torch.testing.assert_close(ours, theirs.float(), atol=5e-5, rtol=2e-5)


def test_tensors_of_any_layout_are_read_right() -> None:
    plain = Case(3, 6, 16, 1).single()
    expected = plain.run()
    plain.inputs = plain.inputs.mT.contiguous().mT
    plain.networks = [
        Network(*(tensor.mT.contiguous().mT if tensor.dim() == 2 else tensor for tensor in network))
        for network in plain.networks
    ]
    assert not plain.networks[0].weight.is_contiguous()
    for ours, theirs in zip(plain.run(), expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-5)


def test_single_steps_agree_with_a_whole_sequence() -> None:
    case = Case(6, 11, 32, 2).single()
    with torch.no_grad():
        whole = run_lstms(case.inputs, case.networks, case.keep)
        networks = case.networks
        for t in range(6):
            steps = run_lstms(case.inputs[t : t + 1], networks, case.keep[t : t + 1])
            pairs = zip(networks, steps, strict=True)
            networks = [network._replace(hidden=outputs[0], cell=cell) for network, (outputs, cell) in pairs]
            for (outputs, _), (expected, _) in zip(steps, whole, strict=True):
                torch.testing.assert_close(outputs[0], expected[t], atol=5e-7, rtol=1e-6)


def test_a_network_that_the_loss_does_not_use_gets_no_gradient() -> None:
    case = Case(2, 3, 16, 2).single()
    leaves = [Network(*(tensor.requires_grad_() for tensor in network)) for network in case.networks]
    (_, (outputs, _)) = run_lstms(case.inputs, leaves, case.keep)
    outputs.sum().backward()  # type: ignore[no-untyped-call]
    assert all(tensor.grad is None for tensor in leaves[0])
    assert all(tensor.grad is not None and tensor.grad.abs().max() > 0.0 for tensor in leaves[1])


def test_two_graphs_at_once_do_not_share_memory() -> None:
    case = Case(4, 6, 16, 1).single()
    expected = case.run()
    leaf = case.inputs.clone().requires_grad_()
    ((first, _),) = run_lstms(leaf, case.networks, case.keep)
    ((second, _),) = run_lstms(leaf * 2.0, case.networks, case.keep)
    (gradient,) = torch.autograd.grad(first.sum(), leaf)
    case.run()
    (other,) = torch.autograd.grad(second.sum(), leaf)
    torch.testing.assert_close(first.detach(), expected[0])
    for scale, found in ((1.0, gradient), (2.0, other)):
        again = case.inputs.clone().requires_grad_()
        ((outputs, _),) = run_lstms(again * scale, case.networks, case.keep)
        torch.testing.assert_close(found, torch.autograd.grad(outputs.sum(), again)[0])


def test_going_back_twice_works_until_the_memory_is_used_again() -> None:
    case = Case(5, 9, 16, 1).single()  # a shape of its own: nothing of it waits to be used again
    leaf = case.inputs.clone().requires_grad_()
    ((outputs, _),) = run_lstms(leaf, case.networks, case.keep)
    (first,) = torch.autograd.grad(outputs.sum(), leaf, retain_graph=True)
    (second,) = torch.autograd.grad(outputs.sum(), leaf, retain_graph=True)
    assert torch.equal(first, second)
    run_lstms(case.inputs, case.networks, case.keep)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(outputs.sum(), leaf)


def test_activations_are_exact_over_their_whole_range_and_pass_nan_on() -> None:
    values = torch.cat((torch.linspace(-30.0, 30.0, 4001), torch.tensor([-1e30, 1e30, math.nan])))
    rows, size = values.numel(), 16
    zeros = torch.zeros(rows, size)
    # Without recurrent weights a gate is its input: one of them is the value, the others are open or, to forget, shut.
    for gate, activation in ((3, torch.tanh), (0, torch.sigmoid)):
        bias = torch.full((4, size), 90.0)
        bias[1], bias[gate] = -90.0, 0.0
        weight = torch.zeros(4, size, 1)
        weight[gate] = 1.0
        network = Network(weight.flatten(0, 1), bias.flatten(), torch.zeros(4 * size, size), zeros, zeros)
        with torch.no_grad():
            ((outputs, cell),) = run_lstms(values.reshape(1, rows, 1), [network], torch.ones(1, rows, 1))
        number = torch.isfinite(values)
        assert not torch.isfinite(cell[~number]).any()
        expected = activation(values.double()).unsqueeze(1).expand(rows, size)[number]
        torch.testing.assert_close(cell[number].double(), expected, atol=1e-34, rtol=4e-7)
        torch.testing.assert_close(outputs[0, number].double(), torch.tanh(expected), atol=1e-34, rtol=8e-7)


@pytest.mark.parametrize(
    ("rows", "networks", "threads", "expected"),
    [(32, 2, 2, 16), (32, 1, 2, 16), (8, 2, 2, 8), (8, 1, 2, 4), (64, 2, 2, 16), (65, 1, 1, 16), (1, 1, 4, 4)],
)
def test_blocks_keep_all_threads_busy(rows: int, networks: int, threads: int, expected: int) -> None:
    assert warp_lstm.rows_of_block(rows, networks, threads) == expected


def test_other_tensors_are_left_to_torch() -> None:
    def given(size: int, dtype: torch.dtype) -> tuple[Tensor, Network]:
        state = torch.zeros(3, size, dtype=dtype)
        weight = torch.zeros(4 * size, size, dtype=dtype)
        return torch.zeros(2, 3, size, dtype=dtype), Network(weight, weight[:, 0], weight, state, state)

    assert supports(*given(32, torch.float32))
    assert not supports(*given(40, torch.float32))
    assert not supports(*given(32, torch.float64))
    assert not supports(*given(32, torch.bfloat16))
    with torch.autocast("cpu", torch.bfloat16):
        assert not supports(*given(32, torch.float32))
