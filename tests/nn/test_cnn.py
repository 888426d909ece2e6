"""The network for pictures: what it computes, in whichever order the axes come, and its default size."""

import pytest
import torch
from torch.nn import functional

from ludus.core.errors import ConfigError
from ludus.nn.cnn import Cnn, CnnConfig


def test_it_is_plain_convolutions_over_colours_between_0_and_1() -> None:
    torch.manual_seed(0)
    config = CnnConfig(channels=(4, 6), kernels=(4, 3), strides=(2, 2), features=5)
    network = Cnn((3, 20, 24), config)
    pictures = torch.randint(0, 256, (2, 7, 3, 20, 24), dtype=torch.uint8)
    expected = pictures.flatten(0, 1).float() / 255.0
    for layer in network.convolutions:
        assert isinstance(layer, torch.nn.Conv2d)
        expected = functional.relu(functional.conv2d(expected, layer.weight, layer.bias, layer.stride))
    expected = functional.relu(network.linear(expected.flatten(1))).view(2, 7, 5)
    before = pictures.clone()
    torch.testing.assert_close(network(pictures), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(network(pictures / 255.0), expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(pictures, before)


def test_colours_may_come_first_or_last() -> None:
    torch.manual_seed(0)
    first, last = Cnn((4, 21, 28), CnnConfig()), Cnn((21, 28, 4), CnnConfig())
    last.load_state_dict(first.state_dict())
    pictures = torch.randint(0, 256, (5, 4, 21, 28), dtype=torch.uint8)
    torch.testing.assert_close(first(pictures), last(pictures.permute(0, 2, 3, 1)), atol=1e-5, rtol=1e-5)


def test_its_default_size() -> None:
    network = Cnn((3, 84, 84), CnnConfig())
    sizes = [16 * 3 * 4 * 4 + 16, 32 * 16 * 3 * 3 + 32, 7 * 7 * 32 * 128 + 128]
    assert sum(parameter.numel() for parameter in network.parameters()) == sum(sizes)
    assert network(torch.zeros(2, 3, 84, 84, dtype=torch.uint8)).shape == (2, 128)
    with pytest.raises(ConfigError, match="kernels"):
        Cnn((3, 8, 8), CnnConfig())
