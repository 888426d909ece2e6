"""The action heads against `torch.distributions` and hand-computed numbers."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor, distributions

from ludus.core.errors import UnsupportedError
from ludus.nn.distributions import ActionHead, SquashedHead, StateDependentGaussianHead
from ludus.nn.heads import make_head

SPACES: dict[str, spaces.Space[object]] = {
    "categorical": spaces.Discrete(5),
    "multi-categorical": spaces.MultiDiscrete([2, 3, 4]),
    "buttons": spaces.MultiBinary(6),
    "gaussian": spaces.Box(-1.0, 1.0, (3,), np.float32),
}


def _reference(name: str, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    if name == "categorical":
        distribution: Any = distributions.Categorical(logits=parameters)
        return distribution.log_prob(actions), distribution.entropy()
    if name == "multi-categorical":
        parts: list[Any] = [distributions.Categorical(logits=part) for part in torch.split(parameters, [2, 3, 4], -1)]
        log_probs = [part.log_prob(actions[..., i]) for i, part in enumerate(parts)]
        return torch.stack(log_probs).sum(0), torch.stack([part.entropy() for part in parts]).sum(0)
    if name == "buttons":
        buttons: Any = distributions.Bernoulli(logits=parameters)
        return buttons.log_prob(actions.float()).sum(-1), buttons.entropy().sum(-1)
    mean, log_std = parameters.chunk(2, dim=-1)
    normal: Any = distributions.Normal(mean, log_std.exp())
    return normal.log_prob(actions).sum(-1), normal.entropy().sum(-1)


def _noise(head: ActionHead, rows: int, seed: int = 0) -> Tensor:
    draw = torch.rand if head.noise_kind == "uniform" else torch.randn
    return draw((rows, *head.noise_shape), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", list(SPACES))
def test_log_prob_and_entropy_equal_torch_distributions(name: str) -> None:
    torch.manual_seed(0)
    head = make_head(SPACES[name], 8, log_std=-0.3)
    parameters = head(torch.randn(64, 8) * 300.0)  # the heads start small: scaled up to real differences
    actions = head.sample(parameters, _noise(head, 64), torch.zeros(64, 8))
    assert actions.shape == (64, *head.action_shape)
    assert actions.dtype == head.action_dtype
    log_prob, entropy = head.log_prob_and_entropy(parameters, actions)
    expected_log_prob, expected_entropy = _reference(name, parameters, actions)
    torch.testing.assert_close(log_prob, expected_log_prob, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(entropy, expected_entropy, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["categorical", "multi-categorical", "buttons"])
def test_samples_come_as_often_as_their_probability_says(name: str) -> None:
    torch.manual_seed(1)
    head = make_head(SPACES[name], 4)
    parameters = (head(torch.ones(1, 4)) * 100.0).expand(40_000, -1)
    actions = head.sample(parameters, _noise(head, 40_000), torch.zeros(40_000, 4))
    flat = actions.reshape(40_000, -1)
    value_of_first = torch.zeros(1, *head.action_shape, dtype=actions.dtype)
    frequency = (flat == 0).all(-1).float().mean()
    probability = head.log_prob_and_entropy(parameters[:1], value_of_first)[0].exp()
    assert abs(frequency.item() - probability.item()) < 4.0 * math.sqrt(0.25 / 40_000)


def test_inverting_the_cumulative_distribution_by_hand() -> None:
    head = make_head(spaces.Discrete(3), 2)
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25]])).expand(5, -1)
    noise = torch.tensor([[0.0], [0.49], [0.5], [0.75], [0.99999994]])
    assert head.sample(logits, noise, torch.zeros(5, 2)).tolist() == [0, 0, 1, 2, 2]
    assert head.mode(logits).tolist() == [0] * 5


def test_impossible_choices_are_never_taken() -> None:
    head = make_head(spaces.Discrete(3), 2)
    logits = torch.tensor([[-1e9, 0.0, -1e9]]).expand(3, -1)
    assert head.sample(logits, torch.tensor([[0.0], [0.5], [0.99999994]]), torch.zeros(3, 2)).tolist() == [1, 1, 1]


def test_buttons_stay_finite_for_huge_logits() -> None:
    head = make_head(spaces.MultiBinary(2), 2)
    log_prob, entropy = head.log_prob_and_entropy(torch.tensor([[200.0, -200.0]]), torch.tensor([[1, 1]]))
    assert log_prob.item() == pytest.approx(-200.0)
    assert entropy.item() == pytest.approx(0.0, abs=1e-6)


def test_state_dependent_exploration_has_the_variance_it_claims() -> None:
    torch.manual_seed(2)
    head = make_head(SPACES["gaussian"], 4, log_std=-0.5, state_dependent=True)
    assert isinstance(head, StateDependentGaussianHead)
    latent = torch.randn(1, 4).expand(50_000, -1)
    parameters = head(latent)
    actions = head.sample(parameters, _noise(head, 50_000), latent)
    torch.testing.assert_close(actions.mean(0), head.mode(parameters)[0], atol=0.03, rtol=0.0)
    torch.testing.assert_close(actions.std(0), parameters[0].chunk(2)[1].exp(), atol=0.0, rtol=0.02)
    hand = 0.5 * torch.log((latent[0].square().sum() * math.exp(-1.0)) + 1e-6)
    torch.testing.assert_close(parameters[0, 3:], hand.expand(3))


def test_the_same_noise_gives_the_same_direction_in_the_same_state() -> None:
    head = make_head(SPACES["gaussian"], 4, state_dependent=True)
    latent = torch.randn(1, 4)
    noise = _noise(head, 1)
    assert torch.equal(head.sample(head(latent), noise, latent), head.sample(head(latent), noise, latent))
    assert head.hold_noise


@pytest.mark.parametrize(
    "space", [spaces.Discrete(3, start=1), spaces.MultiBinary((2, 2)), spaces.Text(3), spaces.Box(0, 1, (2, 2))]
)
def test_spaces_without_a_head_are_refused(space: spaces.Space[object]) -> None:
    with pytest.raises(UnsupportedError, match="valid: Discrete"):
        make_head(space, 4)


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
