"""Events and measures as named columns of one tensor."""

import pytest
import torch

from ludus.envs.base import Columns, packed


def test_columns_are_live_views_by_name() -> None:
    block = torch.arange(12.0).view(2, 2, 3)
    columns = Columns(block, ("x", "y", "z"))
    assert list(columns) == ["x", "y", "z"]
    assert len(columns) == 3
    assert columns["y"].tolist() == [[1.0, 4.0], [7.0, 10.0]]
    block[0, 1, 1] = 40.0
    assert columns["y"].tolist() == [[1.0, 40.0], [7.0, 10.0]]
    assert columns["y"] is columns["y"]
    assert "w" not in columns
    with pytest.raises(KeyError):
        columns["w"]


@pytest.mark.parametrize("names", [("x", "y"), ("x", "y", "y")])
def test_columns_need_as_many_different_names(names: tuple[str, ...]) -> None:
    with pytest.raises(TypeError, match=r"3 columns.*x, y"):
        Columns(torch.zeros(2, 2, 3), names)


def test_packed_takes_the_tensor_itself_where_the_order_is_the_same() -> None:
    block = torch.arange(12.0).view(2, 2, 3)
    columns = Columns(block, ("x", "y", "z"))
    assert packed(columns, ["x", "y", "z"]) is block
    assert packed(columns, ("z", "x")).tolist() == [[[2.0, 0.0], [5.0, 3.0]], [[8.0, 6.0], [11.0, 9.0]]]


def test_packed_stacks_plain_mappings() -> None:
    plain = {"x": torch.tensor([[1.0, 2.0]]), "y": torch.tensor([[3.0, 4.0]])}
    assert packed(plain, ("y", "x")).tolist() == [[[3.0, 1.0], [4.0, 2.0]]]
