"""Running moments: by hand, merged in any split, hard numbers, state, freezing, no waiting for the device."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ludus.core.errors import StateError
from ludus.core.statistics import RunningMoments


def test_two_batches_by_hand() -> None:
    moments = RunningMoments(2)
    assert moments.variance.tolist() == [1.0, 1.0]
    moments.update(torch.tensor([[1.0, 10.0], [3.0, 10.0]]))
    assert (moments.mean.tolist(), moments.variance.tolist()) == ([2.0, 10.0], [1.0, 0.0])
    moments.update(torch.tensor([[8.0, 10.0]]))
    # 1, 3, 8: mean 4, squared deviations 9 + 1 + 16 = 26
    assert moments.mean.tolist() == [4.0, 10.0]
    assert moments.variance.tolist() == pytest.approx([26 / 3, 0.0])
    assert float(moments.count) == 3.0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 2**31))
def test_any_split_gives_the_moments_of_the_whole(sizes: list[int], seed: int) -> None:
    rows = torch.randn(sum(sizes), 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5 + 2
    moments = RunningMoments(3)
    for batch in torch.split(rows, sizes):
        moments.update(batch)
    if len(rows):
        torch.testing.assert_close(moments.mean, rows.mean(dim=0))
        torch.testing.assert_close(moments.variance, rows.var(dim=0, correction=0))
    assert float(moments.count) == len(rows)


def test_a_small_spread_around_a_huge_mean_is_kept() -> None:
    moments = RunningMoments(1)
    for _ in range(100):
        moments.update(torch.tensor([[1e6 - 1.0], [1e6 + 1.0]]))
    assert float(moments.variance) == pytest.approx(1.0, rel=1e-9)


def test_leading_axes_are_rows_and_wrong_features_are_refused() -> None:
    moments = RunningMoments(2)
    moments.update(torch.ones(4, 3, 2))
    assert float(moments.count) == 12.0
    with pytest.raises(StateError, match=r"\(4, 3\); the last axis must be 2"):
        moments.update(torch.ones(4, 3))


def test_normalize_by_hand_and_back() -> None:
    moments = RunningMoments(2)
    moments.update(torch.tensor([[0.0, 5.0], [4.0, 5.0]]))  # mean 2 and 5, variance 4 and 0
    x = torch.tensor([[6.0, 5.0], [-18.0, 5.0]])
    normalized = moments.normalize(x, clip=5.0)
    assert normalized.dtype == torch.float32
    assert normalized.tolist() == [[2.0, 0.0], [-5.0, 0.0]]
    torch.testing.assert_close(moments.denormalize(moments.normalize(x)), x)


def test_state_goes_round_and_is_a_copy() -> None:
    moments, other = RunningMoments(2), RunningMoments(2)
    moments.update(torch.tensor([[1.0, 2.0], [5.0, 3.0]]))
    state = moments.state()
    other.load_state(state)
    for each in (moments, other):
        each.update(torch.tensor([[9.0, 9.0]]))
    assert all(torch.equal(a, b) for a, b in zip(moments.state().values(), other.state().values(), strict=True))
    assert float(state["count"]) == 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": torch.zeros(3, dtype=torch.float64)}, r"'mean' is \(3,\)"),
        ({"mean": torch.zeros(2)}, r"float32, expected \(2,\) torch\.float64"),
        ({"extra": torch.zeros(2)}, r"need count, mean, squares; got count, extra"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change: dict[str, torch.Tensor], message: str) -> None:
    moments = RunningMoments(2)
    with pytest.raises(StateError, match=message):
        moments.load_state({**moments.state(), "count": torch.ones((), dtype=torch.float64), **change})
    assert float(moments.count) == 0.0


def test_frozen_moments_do_not_move() -> None:
    moments = RunningMoments(1)
    moments.update(torch.tensor([[1.0]]))
    moments.freeze()
    moments.update(torch.tensor([[100.0]]))
    assert (float(moments.mean), float(moments.count)) == (1.0, 1.0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_is_never_waited_for() -> None:
    moments, batch = RunningMoments(3, device="cuda"), torch.randn(1000, 3, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        moments.update(batch)
        moments.normalize(batch, clip=5.0)
        moments.load_state(moments.state())
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(moments.mean, batch.double().mean(dim=0))


def test_nothing_reads_a_value_back_to_the_host() -> None:
    # Tensors on the meta device have no values: any read raises.
    moments = RunningMoments(3, device="meta")
    moments.update(torch.zeros(5, 3, device="meta"))
    assert moments.normalize(torch.zeros(5, 3, device="meta"), clip=5.0).shape == (5, 3)
