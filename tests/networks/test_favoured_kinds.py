"""Kinds that exploring favours: probabilities by hand, what is drawn, and nothing changes without them."""

import pytest
import torch

from ludus.envs.choices import Choices
from ludus.networks.choices import ChoiceHead
from ludus.networks.mixture import NOISE_SIZE, Mixture

# 0 waits, 1 needs one of two cells, 2 and 3 are for exploring.
YARD = Choices((4, 2), is_single=False, uses=((False,), (True,), (False,), (False,)), exploratory=(2, 3))
E, R, SHARE = 0.5, 0.2, 0.25
FAVOUR = (0.0, 3.0, 1.0, 0.0)


def _mixture() -> Mixture:
    mixture = Mixture(YARD)
    mixture.set(E, R)
    mixture.lean(SHARE, FAVOUR)
    return mixture


def _kinds(mask: list[int]) -> list[float]:
    logits = ChoiceHead(1, YARD).restrict(torch.zeros(1, 6), torch.tensor([mask]))
    return _mixture().kind_shares(logits)[0].tolist()


def test_shares_of_kinds_by_hand() -> None:
    q = [
        0.2 / 4,
        0.2 / 4 + 0.8 * 0.25 * 0.75,
        0.2 / 4 + 0.8 * (0.25 * 0.25 + 0.75 * 0.5),
        0.2 / 4 + 0.8 * 0.75 * 0.5,
    ]
    assert sum(q) == pytest.approx(1.0)
    assert _kinds([1] * 6) == pytest.approx([0.5 * 0.25 + 0.5 * share for share in q])


def test_favour_that_is_not_allowed_goes_to_the_others() -> None:
    # Without kind 1 all favour is for kind 2; without both, exploring is as ever.
    q = [0.2 / 3, 0.0, 0.2 / 3 + 0.8 * (0.25 + 0.75 * 0.5), 0.2 / 3 + 0.8 * 0.75 * 0.5]
    assert _kinds([1, 0, 1, 1, 1, 1]) == pytest.approx([0.5 / 3 * (share > 0) + 0.5 * share for share in q])
    q = [0.2 / 2, 0.0, 0.0, 0.2 / 2 + 0.8]
    assert _kinds([1, 0, 0, 1, 1, 1]) == pytest.approx([0.5 / 2 * (share > 0) + 0.5 * share for share in q])


def test_what_is_drawn_has_the_probability_that_is_told() -> None:
    count, mixture, head = 60_000, _mixture(), ChoiceHead(1, YARD)
    generator = torch.Generator().manual_seed(3)
    logits = torch.zeros(count, 6)
    noise = torch.rand((count, 2 + NOISE_SIZE), generator=generator)
    actions = mixture.replace(logits, noise, head.sample(logits, noise, torch.zeros(count, 1)))
    shares = mixture.kind_shares(logits[:1])[0]
    for kind, share in enumerate(shares.tolist()):
        error = (share * (1.0 - share) / count) ** 0.5
        assert (actions[:, 0] == kind).float().mean().item() == pytest.approx(share, abs=4.0 * error)
    own = head.log_prob_and_entropy(logits, actions)[0]
    told = mixture.log_probs(logits, actions, own).exp()
    cells = actions[:, 0] == 1
    assert told[~cells].tolist() == pytest.approx(shares[actions[~cells, 0]].tolist(), rel=1e-5)
    assert told[cells].tolist() == pytest.approx([shares[1].item() / 2.0] * int(cells.sum()), rel=1e-5)


def test_without_favour_nothing_changes() -> None:
    plain, leaning = Mixture(YARD), Mixture(YARD)
    for mixture in (plain, leaning):
        mixture.set(E, R)
    leaning.lean(0.0, FAVOUR)
    torch.manual_seed(1)
    logits, noise = torch.randn(512, 6), torch.rand(512, 2 + NOISE_SIZE)
    actions = torch.zeros(512, 2, dtype=torch.int64)
    drawn = plain.replace(logits, noise, actions)
    assert torch.equal(leaning.replace(logits, noise, actions), drawn)
    assert torch.equal(leaning.exploring_log_probs(logits, drawn), plain.exploring_log_probs(logits, drawn))
