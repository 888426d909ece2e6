"""The squashed head: numbers by hand, bounds, densities that add up to 1, and what it refuses."""

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

from ludus.core.errors import UnsupportedError
from ludus.networks.heads import make_head
from ludus.networks.squashed import SquashedHead

LOPSIDED = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32))


def _head(squash: str = "stochastic", space: spaces.Box = LOPSIDED) -> SquashedHead:
    head = make_head(space, 3, squash=squash)  # type: ignore[arg-type]
    assert isinstance(head, SquashedHead)
    return head


def test_the_mode_is_the_tangent_stretched_to_the_bounds() -> None:
    parameters = torch.tensor([[0.5, -1.0, 0.0, 0.0]])
    expected = [2.0 * math.tanh(0.5), 5.0 + 5.0 * math.tanh(-1.0)]
    assert _head().mode(parameters)[0].tolist() == pytest.approx(expected, rel=1e-6)
    assert _head("deterministic").mode(parameters[:, :2])[0].tolist() == pytest.approx(expected, rel=1e-6)


def test_a_sample_is_squashed_after_the_noise() -> None:
    parameters = torch.tensor([[0.5, -1.0, math.log(2.0), 0.0]])
    drawn = _head().sample(parameters, torch.tensor([[1.0, -0.5]]), torch.zeros(1, 3))
    assert drawn[0].tolist() == pytest.approx([2.0 * math.tanh(2.5), 5.0 + 5.0 * math.tanh(-1.5)], rel=1e-5)


def test_without_a_spread_noise_changes_nothing() -> None:
    head, latent = _head("deterministic"), torch.randn(4, 3)
    parameters = head(latent)
    noise = torch.randn(4, *head.noise_shape)
    assert torch.equal(head.sample(parameters, noise, latent), head.mode(parameters))
    log_prob, entropy = head.log_prob_and_entropy(parameters, head.mode(parameters))
    assert log_prob.tolist() == entropy.tolist() == [0.0] * 4


def test_actions_stay_within_their_bounds_however_large_the_means() -> None:
    parameters = torch.tensor([[80.0, -80.0, 2.0, 2.0]])
    drawn = _head().sample(parameters, torch.tensor([[5.0, -5.0]]), torch.zeros(1, 3))
    assert drawn[0].tolist() == [2.0, 0.0]
    assert bool(_head().log_prob_and_entropy(parameters, drawn)[0].isfinite().all())


def test_the_density_adds_up_to_1() -> None:
    head = _head(space=spaces.Box(-2.0, 4.0, (1,), np.float32))
    actions = torch.linspace(-2.0 + 1e-4, 4.0 - 1e-4, 200_001).unsqueeze(1)
    log_prob, entropy = head.log_prob_and_entropy(torch.tensor([0.3, -0.7]).expand(len(actions), 2), actions)
    assert float(log_prob.double().exp().mean()) * 6.0 == pytest.approx(1.0, abs=1e-3)
    assert torch.equal(entropy, -log_prob)


def test_bounds_and_unit_are_each_others_inverse() -> None:
    unit = torch.tensor([[-1.0, -1.0], [0.25, -0.5], [1.0, 1.0]])
    bounded = _head().to_bounds(unit)
    assert bounded.tolist() == [[-2.0, 0.0], [0.5, 2.5], [2.0, 10.0]]
    assert torch.allclose(_head().to_unit(bounded), unit)


@pytest.mark.parametrize(
    "space",
    [spaces.Discrete(3), spaces.Box(-np.inf, np.inf, (2,), np.float32), spaces.Box(1.0, 1.0, (2,), np.float32)],
)
def test_refuses_what_cannot_be_squashed(space: spaces.Space[object]) -> None:
    with pytest.raises(UnsupportedError, match="algorithm ppo"):
        make_head(space, 3, squash="stochastic")
