"""The exploration mixture and its favoured kinds."""

import math
from collections.abc import Callable
from statistics import NormalDist

import pytest
import torch
from torch import Tensor

from ludus.envs.spaces import ActionFactors
from ludus.nn.heads import NOISE_SIZE, ExplorationMixture, MaskedCategoricalHead

BANDIT = ActionFactors((4,), is_single=True, exploratory=(2, 3))
# 0 rests, 1 uses a cell of 2 x 3, 2 listens (exploratory), 3 points at a column (exploratory).
FIELD = ActionFactors(
    (4, 2, 3),
    is_single=False,
    uses=((False, False), (True, True), (False, False), (True, False)),
    exploratory=(2, 3),
)
E, R = 0.3, 0.2


def _mixture(choices: ActionFactors, e: float = E, r: float = R) -> tuple[MaskedCategoricalHead, ExplorationMixture]:
    mixture = ExplorationMixture(choices)
    mixture.set(e, r)
    return MaskedCategoricalHead(1, choices), mixture


def _probabilities(choices: ActionFactors, logits: Tensor, actions: Tensor, e: float = E, r: float = R) -> Tensor:
    head, mixture = _mixture(choices, e, r)
    rows = logits.expand(len(actions), -1)
    return mixture.log_probs(rows, actions, head.log_prob_and_entropy(rows, actions)[0]).exp()


def test_probabilities_by_hand() -> None:
    logits = torch.log(torch.tensor([[0.1, 0.2, 0.3, 0.4]]))
    q = [0.2 / 4.0, 0.2 / 4.0, 0.2 / 4.0 + 0.8 / 2.0, 0.2 / 4.0 + 0.8 / 2.0]
    expected = [0.7 * p + 0.3 * explored for p, explored in zip((0.1, 0.2, 0.3, 0.4), q, strict=True)]
    assert _probabilities(BANDIT, logits, torch.arange(4)).tolist() == pytest.approx(expected)
    assert sum(expected) == pytest.approx(1.0)


def test_probabilities_with_factors_and_a_mask_by_hand() -> None:
    head, _ = _mixture(FIELD)
    # Listening is not allowed, nor is the last row: 3 kinds, 2 columns, 2 rows are left, one kind for exploring.
    mask = torch.tensor([[1, 1, 0, 1, 1, 1, 1, 1, 0]])
    logits = head.restrict(torch.zeros(1, 9), mask)
    actions = torch.tensor([[0, 0, 0], [1, 1, 1], [3, 1, 0], [2, 0, 0], [1, 0, 2]])
    pi = [1 / 3, 1 / 3 / 4, 1 / 3 / 2, 0.0, 0.0]
    q = [0.2 / 3, 0.2 / 3 / 4, (0.2 / 3 + 0.8) / 2, 0.0, 0.0]
    expected = [0.7 * own + 0.3 * explored for own, explored in zip(pi, q, strict=True)]
    assert _probabilities(FIELD, logits, actions).tolist() == pytest.approx(expected)
    whole = expected[0] + 4 * expected[1] + 2 * expected[2]
    assert whole == pytest.approx(1.0)


def test_where_no_exploratory_kind_is_allowed_any_is_taken() -> None:
    head, mixture = _mixture(BANDIT, e=1.0, r=0.0)
    logits = head.restrict(torch.zeros(1, 4), torch.tensor([[1, 1, 0, 0]]))
    assert _probabilities(BANDIT, logits, torch.arange(4), 1.0, 0.0).tolist() == pytest.approx([0.5, 0.5, 0.0, 0.0])
    noise = torch.rand(500, 3, generator=torch.Generator().manual_seed(0))
    drawn = mixture.replace(logits.expand(500, -1), noise, torch.full((500,), 3))
    assert set(drawn.tolist()) == {0, 1}


def test_without_exploration_it_is_the_policy_bit_by_bit() -> None:
    head, mixture = _mixture(FIELD, e=0.0)
    torch.manual_seed(0)
    logits, noise = torch.randn(512, 9), torch.rand(512, 3 + NOISE_SIZE)
    actions = head.sample(logits, noise, torch.zeros(512, 1))
    assert torch.equal(mixture.replace(logits, noise, actions), actions)
    log_probs = head.log_prob_and_entropy(logits, actions)[0]
    assert torch.equal(mixture.log_probs(logits, actions, log_probs), log_probs)


def test_numbers_stay_finite_for_what_can_hardly_happen() -> None:
    logits = torch.tensor([[0.0, -200.0, 0.0, 0.0]], requires_grad=True)
    head, mixture = _mixture(BANDIT, e=1.0, r=0.0)
    for e in (0.0, 0.3, 1.0):
        mixture.set(e, 0.0)
        log_probs = mixture.log_probs(
            logits, torch.tensor([1]), head.log_prob_and_entropy(logits, torch.tensor([1]))[0]
        )
        (gradient,) = torch.autograd.grad(log_probs.sum(), logits)
        assert log_probs.isfinite().all()
        assert gradient.isfinite().all()


@pytest.mark.parametrize(("e", "r"), [(0.3, 0.2), (0.05, 1.0), (0.6, 0.0)])
def test_the_rates_of_what_is_played_by_a_binomial_test(e: float, r: float) -> None:
    """Every action comes as often as its probability says; so do replaced actions as a whole."""
    head, mixture = _mixture(FIELD, e, r)
    count, generator = 40_000, torch.Generator().manual_seed(3)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 0, 1, 1]]).expand(count, -1)
    logits = head.restrict(torch.tensor([[2.0, 1.0, -30.0, -30.0, 0.5, 0.0, 0.0, 1.0, 0.0]]).expand(count, -1), mask)
    noise = torch.rand(count, 3 + NOISE_SIZE, generator=generator)
    own = head.sample(logits, noise, torch.zeros(count, 1))
    played = mixture.replace(logits, noise, own)
    # The policy itself never takes the exploratory kinds: what is seen of them is exploration.
    explored = int((played[:, 0] >= 2).sum())
    assert _is_likely(explored, count, e * ((1.0 - r) + r / 2.0))
    rows, counts = torch.unique(played, dim=0, return_counts=True)
    probabilities = _probabilities(FIELD, logits[:1], rows, e, r).tolist()
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-5)  # nothing else can be played
    for times, probability in zip(counts.tolist(), probabilities, strict=True):
        assert _is_likely(times, count, probability)


def _is_likely(times: int, count: int, probability: float) -> bool:
    """Two-sided binomial test at 0.01 % by the normal approximation, which holds where some 40 are expected."""
    assert count * probability > 40
    deviation = math.sqrt(count * probability * (1.0 - probability))
    return abs(times - count * probability) < NormalDist().inv_cdf(1.0 - 0.5e-4) * deviation + 0.5


# The gradient, on a bandit of four arms: what they are worth, and the first logits, which prefer the best arm.
WORTH = torch.tensor([1.0, 1.2, 1.0, 0.9], dtype=torch.float64)
FIRST = torch.tensor([0.0, 1.5, 0.3, -0.5], dtype=torch.float64)
ARMS = torch.arange(4)


def _expected_return(logits: Tensor) -> Tensor:
    """The exact expected return of the mixture policy, without any of the code under test."""
    q = torch.tensor([0.05, 0.05, 0.45, 0.45], dtype=torch.float64)
    return (((1.0 - E) * torch.softmax(logits, 0) + E * q) * WORTH).sum()


def _exact() -> Tensor:
    """The gradient of the expected return by finite differences."""
    moves = 1e-5 * torch.eye(4, dtype=torch.float64)
    return torch.stack([(_expected_return(FIRST + move) - _expected_return(FIRST - move)) / 2e-5 for move in moves])


def _gradient(log_probs: Callable[[Tensor], Tensor], weights: Tensor) -> Tensor:
    """The gradient of sum over arms of weight times log probability."""
    logits = FIRST.clone().requires_grad_()
    (found,) = torch.autograd.grad((weights * log_probs(logits)).sum(), logits)
    return found


def _log_mixture(logits: Tensor) -> Tensor:
    head, mixture = _mixture(BANDIT)
    mixture.double()
    mixture.set(E, R)
    rows = logits.unsqueeze(0).expand(4, -1)
    return mixture.log_probs(rows, ARMS, head.log_prob_and_entropy(rows, ARMS)[0])


def _log_policy(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits, 0)


def test_the_gradient_is_that_of_the_expected_return() -> None:
    """The score function of the mixture, weighed by how often each arm is played and what it gives, is exact."""
    p = _log_mixture(FIRST).exp()
    torch.testing.assert_close(_gradient(_log_mixture, p * WORTH), _exact(), atol=1e-6, rtol=1e-6)


def test_played_actions_with_the_policy_s_own_probability_give_a_wrong_gradient() -> None:
    """The played action is recorded, but with the probability that the policy alone would have taken it with.

    The policy then runs after the exploration: away from the best arm, since that is explored less than it is taken.
    """
    p, pi = _log_mixture(FIRST).exp(), torch.softmax(FIRST, 0)
    exact, naive = _exact(), _gradient(_log_policy, p * WORTH)
    torch.testing.assert_close(naive, p * WORTH - pi * (p * WORTH).sum())  # by hand
    assert exact[1] > 0.02
    assert naive[1] < -0.1
    assert torch.cosine_similarity(naive, exact, dim=0) < -0.5


def test_crediting_the_policy_s_own_action_credits_the_wrong_arms() -> None:
    """The policy's own action is recorded, but another was played in its place.

    What each arm is credited with is wrong, by a share e of what exploration gives. That share is the same for all
    arms, so it cancels in the expected gradient of the policy; but what is explored teaches nothing about the arm that
    was played, and gradients that are estimated scatter more.
    """
    pi, p = torch.softmax(FIRST, 0), _log_mixture(FIRST).exp()
    q = torch.tensor([0.05, 0.05, 0.45, 0.45], dtype=torch.float64)
    credited = (1.0 - E) * WORTH + E * (q * WORTH).sum()
    assert credited[1] - credited[3] == pytest.approx(0.7 * (WORTH[1] - WORTH[3]))
    torch.testing.assert_close(_gradient(_log_policy, pi * credited), _exact(), atol=1e-6, rtol=1e-6)
    lengths = (torch.eye(4, dtype=torch.float64) - pi).square().sum(1)  # of the scores of log pi, squared, an arm each
    ours = (p * ((1.0 - E) * pi / p * WORTH).square() * lengths).sum()
    theirs = (pi * ((1.0 - E) * WORTH.square() + E * (q * WORTH.square()).sum()) * lengths).sum()
    scatter = [(second - _exact().square().sum()).item() for second in (ours, theirs)]
    assert scatter[0] < 0.6 * scatter[1]


# 0 waits, 1 needs one of two cells, 2 and 3 are for exploring.
YARD = ActionFactors((4, 2), is_single=False, uses=((False,), (True,), (False,), (False,)), exploratory=(2, 3))
FAVOURED_E, FAVOURED_R, SHARE = 0.5, 0.2, 0.25
FAVOUR = (0.0, 3.0, 1.0, 0.0)


def _favouring_mixture() -> ExplorationMixture:
    mixture = ExplorationMixture(YARD)
    mixture.set(FAVOURED_E, FAVOURED_R)
    mixture.lean(SHARE, FAVOUR)
    return mixture


def _kinds(mask: list[int]) -> list[float]:
    logits = MaskedCategoricalHead(1, YARD).restrict(torch.zeros(1, 6), torch.tensor([mask]))
    return _favouring_mixture().kind_shares(logits)[0].tolist()


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
    count, mixture, head = 60_000, _favouring_mixture(), MaskedCategoricalHead(1, YARD)
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
    plain, leaning = ExplorationMixture(YARD), ExplorationMixture(YARD)
    for mixture in (plain, leaning):
        mixture.set(FAVOURED_E, FAVOURED_R)
    leaning.lean(0.0, FAVOUR)
    torch.manual_seed(1)
    logits, noise = torch.randn(512, 6), torch.rand(512, 2 + NOISE_SIZE)
    actions = torch.zeros(512, 2, dtype=torch.int64)
    drawn = plain.replace(logits, noise, actions)
    assert torch.equal(leaning.replace(logits, noise, actions), drawn)
    assert torch.equal(leaning.exploring_log_probs(logits, drawn), plain.exploring_log_probs(logits, drawn))
