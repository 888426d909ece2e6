"""Heads of masked, autoregressive and spatial actions, against probabilities computed by hand."""

import math
from itertools import product

import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.spaces import ActionFactors, ActionGrid, action_factors_of, allowed_choices
from ludus.nn.heads import (
    ExplorationMixture,
    MaskedCategoricalHead,
    SpatialConfig,
    SpatialEncoder,
    SpatialHead,
    make_head,
)

LAST = 1.0 - 2.0**-24  # the largest number that `torch.rand` gives
CONDITIONAL = ActionFactors((3, 2, 4), is_single=False, uses=((False, False), (True, True), (True, False)))


def _logits(*probabilities: float) -> Tensor:
    return torch.log(torch.tensor(probabilities))


def _actions(choices: ActionFactors) -> Tensor:
    """All different actions: factors that do not count are 0."""
    rows: list[tuple[int, ...]] = []
    for kind, uses in enumerate(choices.use_table().tolist()):
        sizes = [count if used else 1 for count, used in zip(choices.counts[1:], uses, strict=True)]
        rows += [(kind, *rest) for rest in product(*map(range, sizes))]
    return torch.tensor(rows)


def test_log_probs_and_entropy_by_hand() -> None:
    head = MaskedCategoricalHead(1, ActionFactors((2, 3), is_single=False, uses=((False,), (True,))))
    logits = torch.cat((_logits(0.25, 0.75), _logits(0.5, 0.25, 0.25))).expand(3, -1)
    log_probs, entropies = head.log_prob_and_entropy(logits, torch.tensor([[0, 0], [1, 0], [1, 2]]))
    assert log_probs.exp().tolist() == pytest.approx([0.25, 0.375, 0.1875])
    kinds = -0.25 * math.log(0.25) - 0.75 * math.log(0.75)
    assert entropies.tolist() == pytest.approx([kinds + 0.75 * 1.5 * math.log(2.0)] * 3)


def test_all_different_actions_add_up_to_one_and_their_entropy_is_the_head_s() -> None:
    torch.manual_seed(0)
    head, actions = MaskedCategoricalHead(1, CONDITIONAL), _actions(CONDITIONAL)
    assert len(actions) == 1 + 2 * 4 + 2
    mask = torch.tensor([1, 1, 1, 0, 1, 1, 0, 1, 1])
    for allowed in (torch.ones(9), mask):
        logits = head.restrict(3.0 * torch.randn(1, 9), allowed.expand(1, -1)).expand(len(actions), -1)
        log_probs, entropies = head.log_prob_and_entropy(logits, actions)
        p = log_probs.exp()
        assert p.sum().item() == pytest.approx(1.0, abs=1e-6)
        by_hand = -(p * log_probs.clamp_min(-100.0)).sum()
        assert entropies[0].item() == pytest.approx(by_hand.item(), abs=1e-5)
        forbidden = (actions[:, 1] == 0) & (actions[:, 0] > 0) | (actions[:, 2] == 1)
        assert bool((p[forbidden] == 0.0).all()) == (allowed is mask)


@pytest.mark.parametrize("mask", [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]])
def test_what_is_not_allowed_is_never_drawn(mask: list[int]) -> None:
    head = MaskedCategoricalHead(1, ActionFactors((4,), is_single=True))
    logits = head.restrict(torch.tensor([[8.0, -3.0, 2.0, -8.0]]), torch.tensor([mask])).expand(1002, -1)
    noise = torch.cat((torch.tensor([0.0, LAST]), torch.linspace(0.0, LAST, 1000))).unsqueeze(-1)
    drawn = head.sample(logits, noise, torch.zeros(1002, 1))
    assert {index for index, allowed in enumerate(mask) if allowed} >= set(drawn.tolist())
    assert mask[int(head.mode(logits)[0])] == 1
    log_probs, entropies = head.log_prob_and_entropy(logits[:4], torch.arange(4))
    assert [p == 0.0 for p in log_probs.exp().tolist()] == [not allowed for allowed in mask]
    assert log_probs.isfinite().all()
    assert entropies[0].item() == (0.0 if sum(mask) == 1 else pytest.approx(entropies[0].item(), abs=math.log(4.0)))


def test_a_last_choice_that_is_not_allowed_does_not_catch_what_rounding_leaves() -> None:
    head = MaskedCategoricalHead(1, ActionFactors((1000,), is_single=True))
    torch.manual_seed(0)
    mask = torch.ones(1, 1000).index_fill(1, torch.arange(500, 1000), 0.0)
    logits = head.restrict(torch.randn(4096, 1000), mask.expand(4096, -1))
    assert head.sample(logits, torch.full((4096, 1), LAST), torch.zeros(4096, 1)).max() < 500


def test_nothing_allowed_counts_as_everything_allowed_in_that_factor_alone() -> None:
    mask = torch.tensor([[0.0, 0.1, 0.9, 0.0], [0.0, 1.0, -0.2, 0.2]])  # blurred, as in a test of robustness
    assert allowed_choices(mask, (2, 2)).tolist() == [[True, True, True, False], [False, True, True, True]]
    head = MaskedCategoricalHead(1, ActionFactors((3,), is_single=True))
    logits = head.restrict(torch.zeros(1, 3), torch.zeros(1, 3))
    log_prob, entropy = head.log_prob_and_entropy(logits, torch.tensor([2]))
    assert log_prob.item() == pytest.approx(-math.log(3.0))
    assert entropy.item() == pytest.approx(math.log(3.0))


def test_gradients_are_finite_and_nothing_flows_to_what_is_not_allowed_or_does_not_count() -> None:
    head = MaskedCategoricalHead(1, ActionFactors((2, 3), is_single=False, uses=((False,), (True,))))
    logits = torch.randn(1, 5, requires_grad=True)
    masked = head.restrict(logits, torch.tensor([[1, 1, 1, 1, 0]]))
    log_prob, entropy = head.log_prob_and_entropy(masked, torch.tensor([[0, 0]]))
    (gradient,) = torch.autograd.grad(log_prob.sum(), logits, retain_graph=True)
    assert gradient[0, 2:].tolist() == [0.0, 0.0, 0.0]  # the kind that was taken does not use them
    assert gradient[0, 0].item() == pytest.approx(-gradient[0, 1].item())
    (gradient,) = torch.autograd.grad(entropy.sum(), logits)
    assert gradient.isfinite().all()
    assert gradient[0, 4].item() == 0.0


def test_factors_that_do_not_count_are_zero() -> None:
    head = MaskedCategoricalHead(1, CONDITIONAL)
    torch.manual_seed(0)
    logits = torch.randn(2000, 9)
    for actions in (head.sample(logits, torch.rand(2000, 3), torch.zeros(2000, 1)), head.mode(logits)):
        kinds = actions[:, 0]
        assert set(kinds.tolist()) == {0, 1, 2}
        assert actions[kinds == 0, 1:].abs().sum() == 0
        assert actions[kinds == 2, 2].abs().sum() == 0
        assert actions[kinds == 2, 1].any()
        assert actions[kinds == 1].amax(0).tolist() == [1, 1, 3]


@pytest.mark.parametrize("space", [spaces.Discrete(5), spaces.MultiDiscrete([2, 3, 4])])
def test_without_masks_it_is_the_plain_head(space: spaces.Space[object]) -> None:
    torch.manual_seed(0)
    plain = make_head(space, 8)
    choosing = make_head(space, 8, choices=action_factors_of(space))
    choosing.load_state_dict(plain.state_dict())
    latent = 300.0 * torch.randn(256, 8)
    noise = torch.rand(256, *plain.noise_shape)
    logits = plain(latent)
    assert torch.equal(choosing(latent), logits)
    actions = plain.sample(logits, noise, latent)
    assert torch.equal(choosing.sample(logits, noise, latent), actions)
    assert torch.equal(choosing.mode(logits), plain.mode(logits))
    for ours, theirs in zip(
        choosing.log_prob_and_entropy(logits, actions), plain.log_prob_and_entropy(logits, actions), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_heads_of_other_actions_cannot_be_masked() -> None:
    head = make_head(spaces.MultiBinary(3), 4)
    with pytest.raises(UnsupportedError, match="BernoulliHead"):
        head.restrict(torch.zeros(1, 3), torch.ones(1, 3))
    with pytest.raises(UnsupportedError, match=r"Discrete.*MultiDiscrete"):
        action_factors_of(spaces.MultiBinary(3))


CHOICES = ActionFactors((3, 4), is_single=False, uses=((True,), (False,), (True,)))
ACTIONS = torch.tensor([[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [2, 0], [2, 1], [2, 2], [2, 3]])


def _head() -> SpatialHead:
    torch.manual_seed(0)
    head = SpatialHead(5, CHOICES, 6, 8)
    for parameter in head.parameters():
        parameter.data += 0.7 * torch.randn_like(parameter)
    return head


def _parameters(head: SpatialHead, rows: int = 1) -> Tensor:
    torch.manual_seed(1)
    parameters: Tensor = head(torch.randn(rows, 5), torch.randn(rows, 4, 6))
    return parameters


def test_probabilities_by_hand() -> None:
    head = _head()
    kinds, first, second = (0.5, 0.3, 0.2), (0.1, 0.2, 0.3, 0.4), (0.7, 0.1, 0.1, 0.1)
    parameters = torch.log(torch.tensor([*kinds, *first, *second])).expand(9, -1)
    log_probs, entropies = head.log_prob_and_entropy(parameters, ACTIONS)
    expected = [0.5 * p for p in first] + [0.3] + [0.2 * p for p in second]
    assert log_probs.exp().tolist() == pytest.approx(expected)
    assert entropies[0].item() == pytest.approx(-sum(p * math.log(p) for p in expected))
    assert head.mode(parameters)[0].tolist() == [0, 3]
    assert head.mode(parameters - 9.0 * torch.eye(11)[0])[0].tolist() == [1, 0]


def test_probabilities_add_up_to_one_with_and_without_a_mask() -> None:
    head = _head()
    parameters = _parameters(head).expand(9, -1)
    for mask, open_actions in ((torch.ones(7), 9), (torch.tensor([1, 1, 1, 0, 1, 0, 1]), 5)):
        restricted = head.restrict(parameters, mask.expand(9, -1))
        log_probs, entropies = head.log_prob_and_entropy(restricted, ACTIONS)
        p = log_probs.exp()
        assert p.sum().item() == pytest.approx(1.0, abs=1e-6)
        assert int((p > 0.0).sum()) == open_actions
        assert entropies[0].item() == pytest.approx(-(p * log_probs.clamp_min(-100.0)).sum().item(), abs=1e-5)


def test_actions_are_drawn_as_often_as_they_are_likely() -> None:
    head = _head()
    mask = torch.tensor([1, 1, 1, 1, 0, 1, 1])
    row = head.restrict(_parameters(head), mask.expand(1, -1))
    rows = row.expand(40_000, -1)
    noise = torch.rand(40_000, 2, generator=torch.Generator().manual_seed(2))
    drawn = head.sample(rows, noise, torch.zeros(40_000, 5))
    log_probs, _ = head.log_prob_and_entropy(row.expand(9, -1), ACTIONS)
    for action, log_prob in zip(ACTIONS, log_probs.tolist(), strict=True):
        share = float((drawn == action).all(1).float().mean())
        p = math.exp(log_prob)
        assert abs(share - p) < 4.5 * math.sqrt(p * (1.0 - p) / 40_000) + 1e-9
    assert (drawn[drawn[:, 0] == 1, 1] == 0).all()
    extreme = head.sample(rows[:2], torch.tensor([[0.0, 0.0], [LAST, LAST]]), torch.zeros(2, 5))
    assert not ((extreme[:, 0] != 1) & (extreme[:, 1] == 1)).any()


def test_a_mixture_reads_what_is_open_from_the_head() -> None:
    head, mixture = _head(), ExplorationMixture(CHOICES)
    mixture.set(1.0, 1.0)
    parameters = head.restrict(_parameters(head), torch.tensor([[1, 1, 0, 0, 1, 0, 1]])).expand(9, -1)
    log_q = mixture.log_probs(head.choice_logits(parameters), ACTIONS, torch.zeros(9))
    assert log_q.exp().tolist() == pytest.approx([0.0, 0.25, 0.0, 0.25, 0.5, 0.0, 0.0, 0.0, 0.0])


def test_features_lie_on_their_cells() -> None:
    torch.manual_seed(0)
    encoder = SpatialEncoder((8, 12, 3), ActionGrid("map", 4, 6), SpatialConfig(channels=(8, 8)))
    picture = torch.randint(0, 255, (1, 8, 12, 3), dtype=torch.uint8)
    whole, places = encoder(picture)
    assert whole.shape == (1, 16)
    assert places.shape == (1, 24, 8)
    assert torch.allclose(whole[0, :8], places[0].mean(0), atol=1e-6)
    assert torch.allclose(whole[0, 8:], places[0].amax(0))
    changed = picture.clone()
    changed[0, 2:4, 6:8] = 255 - changed[0, 2:4, 6:8]  # row 1, column 3
    _, after = encoder(changed)
    differs = (after != places).any(-1)[0].reshape(4, 6)
    near = torch.zeros(4, 6, dtype=torch.bool)
    near[0:3, 2:5] = True
    assert differs[1, 3]
    assert not (differs & ~near).any()


def test_segments_of_any_leading_axes_are_seen_alike() -> None:
    torch.manual_seed(0)
    encoder = SpatialEncoder((4, 4, 3), ActionGrid("map", 2, 2), SpatialConfig())
    pictures = torch.rand(3, 5, 4, 4, 3)
    whole, places = encoder(pictures)
    alone = encoder(pictures[1, 2].unsqueeze(0))
    assert torch.allclose(whole[1, 2], alone[0][0], atol=1e-6)
    assert torch.allclose(places[1, 2], alone[1][0], atol=1e-6)
