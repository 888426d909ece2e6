"""Copies of saved state."""

import pytest
import torch

from ludus.core.state import clone_alike, clone_tensors

_FLOATS = [0.0, -0.0, 1.0, -1.5, 3.4e38, 1e-45, -1e-42, float("inf"), float("-inf"), float("nan")]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(_FLOATS),
        torch.tensor([*_FLOATS, 5e-324, 1.7e308], dtype=torch.float64),
        torch.tensor([-(2**31), -1, 0, 2**31 - 1], dtype=torch.int32),
        torch.tensor([-(2**63), 2**63 - 1]),
    ],
)
def test_tensors_that_are_copied_together_keep_their_bits(tensor: torch.Tensor) -> None:
    copies = clone_alike([tensor, tensor[0]])
    for copy, source in zip(copies, (tensor, tensor[0]), strict=True):
        assert copy.dtype == source.dtype
        assert copy.data_ptr() != source.data_ptr()
        assert copy.numpy().tobytes() == source.numpy().tobytes()


def test_copies_keep_names_and_order_and_nothing_changes_them() -> None:
    weight = torch.nn.Parameter(torch.ones(2, 3))
    tensors = {"flag": torch.tensor([True]), "weight": weight, "count": torch.tensor(3), "view": weight.data.T}
    copies = clone_tensors(tensors)
    weight.data.fill_(7.0)
    assert list(copies) == list(tensors)
    assert not copies["weight"].requires_grad
    assert copies["weight"].tolist() == [[1.0] * 3] * 2
    assert copies["view"].tolist() == [[1.0] * 2] * 3
    assert copies["flag"].tolist() == [True]
    assert copies["count"].item() == 3
