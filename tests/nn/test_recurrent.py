"""The hand-written recurrence against torch's own cells, step by step with resets."""

import torch
from torch import Tensor, nn

from ludus.nn.recurrent import Lstm, lstm_sequence

STEPS, ROWS, INPUTS, SIZE = 7, 5, 3, 4


def _segments() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(STEPS, ROWS, INPUTS, generator=generator, dtype=torch.float64)
    state = torch.randn(2, ROWS, SIZE, generator=generator, dtype=torch.float64)
    episode_starts = torch.rand(STEPS, ROWS, generator=generator) < 0.3
    assert episode_starts.any()
    assert not episode_starts.all()
    return inputs, state[0], state[1], episode_starts


def _lstm_reference(lstm: Lstm, inputs: Tensor, hidden: Tensor, cell: Tensor, episode_starts: Tensor) -> Tensor:
    """Torch's cell, whose gates come in the order input, forget, candidate, output."""
    reference = nn.LSTMCell(INPUTS, SIZE, dtype=torch.float64)
    order = torch.cat([torch.arange(SIZE) + gate * SIZE for gate in (0, 1, 3, 2)])
    parameters = {
        "weight_ih": lstm.input_weight[order],
        "weight_hh": lstm.hidden_weight[order],
        "bias_ih": lstm.bias[order],
        "bias_hh": torch.zeros(4 * SIZE, dtype=torch.float64),
    }
    outputs = []
    for frame, start in zip(inputs, episode_starts, strict=True):
        keep = (~start).double().unsqueeze(1)
        hidden, cell = torch.func.functional_call(reference, parameters, (frame, (hidden * keep, cell * keep)))
        outputs.append(hidden)
    return torch.stack(outputs)


def test_outputs_and_all_gradients_equal_torchs_cell() -> None:
    torch.manual_seed(1)
    network = Lstm(INPUTS, SIZE).double()
    for parameter in network.parameters():
        nn.init.normal_(parameter)
    inputs, hidden, cell, episode_starts = _segments()
    leaves = [inputs.requires_grad_(), hidden.requires_grad_(), cell.requires_grad_(), *network.parameters()]
    ours = network.unroll(inputs, {"hidden": hidden, "cell": cell}, episode_starts)
    theirs = _lstm_reference(network, inputs, hidden, cell, episode_starts)
    torch.testing.assert_close(ours, theirs)
    weights = torch.randn(ours.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    for one, other in zip(
        torch.autograd.grad((ours * weights).sum(), leaves),
        torch.autograd.grad((theirs * weights).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_gradients_are_the_slopes_of_the_function() -> None:
    _, hidden, cell, episode_starts = _segments()
    keep = (~episode_starts).double().unsqueeze(-1)
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    lstm_inputs = (draw(STEPS, ROWS, 4 * SIZE), draw(4 * SIZE, SIZE), hidden, cell, keep)
    assert torch.autograd.gradcheck(lstm_sequence, lstm_inputs)


def test_nothing_passes_an_episode_start() -> None:
    network = Lstm(INPUTS, SIZE)
    inputs = torch.randn(6, 1, INPUTS, requires_grad=True)
    episode_starts = torch.zeros(6, 1, dtype=torch.bool)
    episode_starts[3] = True
    outputs = network.unroll(inputs, network.initial(1, torch.device("cpu")), episode_starts)
    (gradient,) = torch.autograd.grad(outputs[3:].sum(), inputs)
    assert gradient[:3].abs().max() == 0.0
    assert gradient[3:].abs().min() > 0.0


def test_autocast_stays_near_full_precision() -> None:
    network = Lstm(INPUTS, SIZE)
    inputs, _, _, episode_starts = _segments()
    memory = network.initial(ROWS, torch.device("cpu"))
    exact = network.unroll(inputs.float(), memory, episode_starts)
    with torch.autocast("cpu", torch.bfloat16):
        rough = network.unroll(inputs.float(), memory, episode_starts)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, atol=0.03, rtol=0.05)
    rough.sum().backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is not None for parameter in network.parameters())
