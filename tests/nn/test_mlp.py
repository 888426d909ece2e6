"""MLP, CNN, activations and initialisation."""

import math

import pytest
import torch
from pydantic import ValidationError

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.nn.cnn import Cnn, CnnConfig
from ludus.nn.mlp import ACTIVATION_NAMES, Mlp, activation_function, make_linear


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
