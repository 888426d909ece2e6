"""Running mean and variance, and the normalizer that keeps them with the network."""

from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ludus.core.errors import StateError
from ludus.nn.normalizer import Normalizer

if TYPE_CHECKING:
    from tests.conftest import NoCudaSync


def make(features: int, clip: float = 10.0) -> Normalizer:
    return Normalizer(features, clip, torch.device("cpu"))


def test_two_batches_by_hand() -> None:
    normalizer = make(2)
    assert normalizer.variance.tolist() == [1.0, 1.0]
    normalizer.update(torch.tensor([[1.0, 10.0], [3.0, 10.0]]))
    assert (normalizer.moments["mean"].tolist(), normalizer.variance.tolist()) == ([2.0, 10.0], [1.0, 0.0])
    normalizer.update(torch.tensor([[8.0, 10.0]]))
    # 1, 3, 8: mean 4, squared deviations 9 + 1 + 16 = 26
    assert normalizer.moments["mean"].tolist() == [4.0, 10.0]
    assert normalizer.variance.tolist() == pytest.approx([26 / 3, 0.0])
    assert float(normalizer.moments["count"]) == 3.0


@settings(max_examples=30)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 2**31))
def test_any_split_gives_the_moments_of_the_whole(sizes: list[int], seed: int) -> None:
    rows = torch.randn(sum(sizes), 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5 + 2
    normalizer = make(3)
    for batch in torch.split(rows, sizes):
        normalizer.update(batch)
    if len(rows):
        torch.testing.assert_close(normalizer.moments["mean"], rows.mean(dim=0))
        torch.testing.assert_close(normalizer.variance, rows.var(dim=0, correction=0))
    assert float(normalizer.moments["count"]) == len(rows)


def test_a_small_spread_around_a_huge_mean_is_kept() -> None:
    normalizer = make(1)
    for _ in range(100):
        normalizer.update(torch.tensor([[1e6 - 1.0], [1e6 + 1.0]]))
    assert float(normalizer.variance) == pytest.approx(1.0, rel=1e-9)


def test_leading_axes_are_rows_and_wrong_features_are_refused() -> None:
    normalizer = make(2)
    normalizer.update(torch.ones(4, 3, 2))
    assert float(normalizer.moments["count"]) == 12.0
    with pytest.raises(StateError, match=r"\(4, 3\).*2 features"):
        normalizer.update(torch.ones(4, 3))


def test_normalize_by_hand() -> None:
    normalizer = make(2, 5.0)
    normalizer.update(torch.tensor([[0.0, 5.0], [4.0, 5.0]]))  # mean 2 and 5, variance 4 and 0
    normalized = normalizer(torch.tensor([[6.0, 5.0], [-18.0, 5.0]]))
    assert normalized.dtype == torch.float32
    assert normalized.tolist() == [[2.0, 0.0], [-5.0, 0.0]]


def test_state_goes_round_and_is_a_copy() -> None:
    normalizer, other = make(2), make(2)
    normalizer.update(torch.tensor([[1.0, 2.0], [5.0, 3.0]]))
    state = normalizer.state()
    other.load_state(state)
    for each in (normalizer, other):
        each.update(torch.tensor([[9.0, 9.0]]))
    assert all(torch.equal(a, b) for a, b in zip(normalizer.state().values(), other.state().values(), strict=True))
    assert float(state["count"]) == 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": torch.zeros(3, dtype=torch.float64)}, r"'mean' is \(3,\)"),
        ({"mean": torch.zeros(2)}, r"float32, expected \(2,\) torch\.float64"),
        ({"extra": torch.zeros(2)}, r"'extra' is unknown; expected \['count', 'mean', 'squares'\]"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change: dict[str, torch.Tensor], message: str) -> None:
    normalizer = make(2)
    with pytest.raises(StateError, match=message):
        normalizer.load_state({**normalizer.state(), "count": torch.ones((), dtype=torch.float64), **change})
    assert float(normalizer.moments["count"]) == 0.0


@pytest.mark.cuda
def test_cuda_is_never_waited_for(no_cuda_sync: "NoCudaSync") -> None:
    normalizer, batch = Normalizer(3, 5.0, torch.device("cuda")), torch.randn(1000, 3, device="cuda")
    with no_cuda_sync():
        normalizer.update(batch)
        normalizer(batch)
    torch.testing.assert_close(normalizer.moments["mean"], batch.double().mean(dim=0))


def test_nothing_reads_a_value_back_to_the_host() -> None:
    # Tensors on the meta device have no values: any read raises.
    normalizer = Normalizer(3, 5.0, torch.device("meta"))
    normalizer.update(torch.zeros(5, 3, device="meta"))
    assert normalizer(torch.zeros(5, 3, device="meta")).shape == (5, 3)


def test_it_normalises_by_everything_it_was_given() -> None:
    normalizer = make(2, 10.0)
    normalizer.update(torch.tensor([[0.0, 5.0], [2.0, 5.0]]))
    normalizer.update(torch.tensor([[[4.0, 5.0]], [[6.0, 5.0]]]))
    # Mean 3, variance 5 (0, 2, 4, 6); the second feature is constant.
    normalized = normalizer(torch.tensor([[3.0 + 5.0**0.5, 5.0], [1000.0, 6.0]]))
    torch.testing.assert_close(normalized, torch.tensor([[1.0, 0.0], [10.0, 10.0]]))


def test_before_the_first_update_it_only_clips() -> None:
    normalizer = make(1, 3.0)
    torch.testing.assert_close(normalizer(torch.tensor([[2.0], [5.0]])), torch.tensor([[2.0], [3.0]]))


def test_evaluation_mode_freezes_it() -> None:
    normalizer = make(1, 10.0)
    normalizer.update(torch.tensor([[1.0]]))
    normalizer.eval()
    normalizer.update(torch.tensor([[100.0]]))
    assert (float(normalizer.moments["mean"]), float(normalizer.state()["count"])) == (1.0, 1.0)


def test_state_goes_round() -> None:
    normalizer, other = (make(3, 10.0) for _ in range(2))
    normalizer.update(torch.randn(50, 3) * 4.0 + 1.0)
    other.load_state(normalizer.state())
    frames = torch.randn(5, 3)
    assert torch.equal(normalizer(frames), other(frames))
