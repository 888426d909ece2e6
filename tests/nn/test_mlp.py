"""MLP, CNN, activations and initialisation."""

import math

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.nn import functional

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.nn.cnn import Cnn, CnnConfig
from ludus.nn.mlp import ACTIVATION_NAMES, Mlp, ProductLinear, activation_function, aligned, linear, make_linear


def test_mlp_by_hand() -> None:
    mlp = Mlp(2, (1,), "relu")
    with torch.no_grad():
        weight, bias = mlp.parameters()
        weight.copy_(torch.tensor([[2.0, -1.0]]))
        bias.fill_(0.5)
    assert mlp(torch.tensor([[1.0, 1.0], [0.0, 2.0]])).tolist() == [[1.5], [0.0]]


def test_an_mlp_without_layers_passes_its_input_on() -> None:
    mlp = Mlp(3, (), "tanh")
    inputs = torch.randn(2, 3)
    assert mlp(inputs) is inputs
    assert mlp.output_size == 3


def test_orthogonal_rows_have_the_length_of_the_gain() -> None:
    layer = make_linear(16, 4, math.sqrt(2.0))
    torch.testing.assert_close(layer.weight @ layer.weight.t(), 2.0 * torch.eye(4))
    assert layer.bias.abs().max() == 0.0


@pytest.mark.parametrize("name", ACTIVATION_NAMES)
def test_every_activation_name_works(name: str) -> None:
    values = activation_function(name)(torch.tensor([-1.0, 0.0, 1.0]))
    assert values[0] < values[2]


def test_an_unknown_activation_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'tanh'"):
        activation_function("tanhh")


def test_a_cnn_reads_both_channel_orders_alike() -> None:
    config = CnnConfig(channels=(4,), kernels=(3,), strides=(2,), features=6)
    last, first = Cnn((9, 9, 3), config), Cnn((3, 9, 9), config)
    first.load_state_dict(last.state_dict())
    pictures = torch.randint(0, 256, (2, 5, 9, 9, 3), dtype=torch.uint8)
    features = last(pictures)
    assert features.shape == (2, 5, 6)
    torch.testing.assert_close(features, first(pictures.permute(0, 1, 4, 2, 3)))
    torch.testing.assert_close(features, last(pictures.float() / 255.0))


def test_a_picture_that_is_too_small_is_refused() -> None:
    with pytest.raises(ConfigError, match="too small"):
        Cnn((6, 6, 3), CnnConfig())


def test_cnn_lists_must_have_equal_lengths() -> None:
    with pytest.raises(ValidationError, match=r"channels, kernels and strides"):
        CnnConfig(channels=(4, 4, 4))


def test_a_linear_layer_by_products_has_the_gradients_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((2, 5, 3), (4, 3), (4,))
    )
    scale = torch.randn((2, 5, 4), generator=generator, dtype=torch.float64)
    ours = torch.autograd.grad((ProductLinear.apply(inputs, weight, bias) * scale).sum(), (inputs, weight, bias))  # type: ignore[no-untyped-call]
    theirs = torch.autograd.grad((functional.linear(inputs, weight, bias) * scale).sum(), (inputs, weight, bias))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
    assert torch.autograd.gradcheck(ProductLinear.apply, (inputs, weight, bias))


def test_inputs_may_end_with_zeros_up_to_their_aligned_width() -> None:
    assert [aligned(size) for size in (1, 8, 9, 156)] == [8, 8, 16, 160]
    layer, inputs = make_linear(6, 3, 1.0), torch.randn(5, 6)
    linear(functional.pad(inputs, (0, 2)), layer.weight, layer.bias).sum().backward()  # type: ignore[no-untyped-call]
    gradient = layer.weight.grad
    layer.zero_grad()
    expected = layer(inputs)
    expected.sum().backward()
    torch.testing.assert_close(linear(functional.pad(inputs, (0, 2)), layer.weight, layer.bias), expected)
    torch.testing.assert_close(gradient, layer.weight.grad)
    with pytest.raises(RuntimeError, match="shapes"):
        linear(functional.pad(inputs, (0, 3)), layer.weight, layer.bias)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_linear_layer_learns_alike_on_cuda(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    mlp = Mlp(24, (16,), "relu").cuda()
    layer = mlp.layers[0]
    assert isinstance(layer, nn.Linear)
    layer.bias.data.fill_(100.0)  # so that relu passes everything on
    inputs = torch.randn((4096, 24), device="cuda", requires_grad=True)
    with torch.autocast("cuda", torch.bfloat16, enabled=dtype == torch.bfloat16):
        outputs = mlp(inputs)
    assert outputs.dtype == dtype
    assert "ProductLinear" in outputs.grad_fn.next_functions[0][0].name()
    slopes = torch.randn_like(outputs)
    ours = torch.autograd.grad(outputs, (inputs, layer.weight, layer.bias), slopes)
    expected = torch.autograd.grad(
        functional.linear(inputs, layer.weight, layer.bias), (inputs, layer.weight, layer.bias), slopes.float()
    )
    for one, other in zip(ours, expected, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, atol=0.5 if dtype == torch.bfloat16 else 1e-3, rtol=0.02)
