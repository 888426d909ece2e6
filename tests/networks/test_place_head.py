"""Places: the head's probabilities by enumeration, and cells that are seen where they are."""

import math

import pytest
import torch
from torch import Tensor

from ludus.envs.choices import Choices, Places
from ludus.networks.mixture import Mixture
from ludus.networks.places import PlaceEncoder, PlaceHead, PlacesConfig

CHOICES = Choices((3, 4), is_single=False, uses=((True,), (False,), (True,)))
ACTIONS = torch.tensor([[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [2, 0], [2, 1], [2, 2], [2, 3]])
LAST = 1.0 - 2.0**-24


def _head() -> PlaceHead:
    torch.manual_seed(0)
    head = PlaceHead(5, CHOICES, 6, 8)
    for parameter in head.parameters():
        parameter.data += 0.7 * torch.randn_like(parameter)
    return head


def _parameters(head: PlaceHead, rows: int = 1) -> Tensor:
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
    head, mixture = _head(), Mixture(CHOICES)
    mixture.set(1.0, 1.0)
    parameters = head.restrict(_parameters(head), torch.tensor([[1, 1, 0, 0, 1, 0, 1]])).expand(9, -1)
    log_q = mixture.log_probs(head.choice_logits(parameters), ACTIONS, torch.zeros(9))
    assert log_q.exp().tolist() == pytest.approx([0.0, 0.25, 0.0, 0.25, 0.5, 0.0, 0.0, 0.0, 0.0])


def test_features_lie_on_their_cells() -> None:
    torch.manual_seed(0)
    encoder = PlaceEncoder((8, 12, 3), Places("map", 4, 6), PlacesConfig(channels=(8, 8)))
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
    encoder = PlaceEncoder((4, 4, 3), Places("map", 2, 2), PlacesConfig())
    pictures = torch.rand(3, 5, 4, 4, 3)
    whole, places = encoder(pictures)
    alone = encoder(pictures[1, 2].unsqueeze(0))
    assert torch.allclose(whole[1, 2], alone[0][0], atol=1e-6)
    assert torch.allclose(places[1, 2], alone[1][0], atol=1e-6)
