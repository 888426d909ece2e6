"""Attention of one query a row: the written-out form equals torch's own."""

import torch
from torch.nn import functional

from ludus.nn.transformer import attend_one


def test_it_equals_scaled_dot_product_attention() -> None:
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(5, 2, 4, generator=generator)
    keys, values = (torch.randn(5, 2, 7, 4, generator=generator) for _ in range(2))
    mask = torch.rand(5, 7, generator=generator) > 0.5
    mask[:, 0] = True
    expected = functional.scaled_dot_product_attention(queries.unsqueeze(2), keys, values, mask[:, None, None, :])
    assert (attend_one(queries, keys, values, mask) - expected.flatten(1)).abs().max() < 1e-6
    assert attend_one(queries.bfloat16(), keys.bfloat16(), values.bfloat16(), mask).dtype == torch.bfloat16
