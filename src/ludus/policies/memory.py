"""What a policy remembers: one dict of tensors for LSTM and GRU states, key/value caches and history windows.

The rule of ownership: a memory that was given to `step` belongs to it (a cache is written in place); go on with the
one that it returns, and `clone_memory` what has to be kept.
"""

from collections.abc import Mapping
from typing import TypeAlias

import torch
from torch import Tensor

Memory: TypeAlias = dict[str, Tensor]
"""Tensors with the rows first, `(rows, ...)`; empty for a policy without memory."""


def reset_memory(memory: Memory, initial: Memory, mask: Tensor) -> Memory:
    """Returns the memory with the rows of `mask` `(rows,)` set back to `initial`."""
    return {
        name: torch.where(mask.view(-1, *(1,) * (tensor.dim() - 1)), initial[name], tensor)
        for name, tensor in memory.items()
    }


def clone_memory(memory: Mapping[str, Tensor]) -> Memory:
    """Returns a copy that later steps do not touch."""
    return {name: tensor.clone() for name, tensor in memory.items()}


def with_prefix(prefix: str, memory: Mapping[str, Tensor]) -> Memory:
    """Returns the memory with `prefix.` before each name."""
    return {f"{prefix}.{name}": tensor for name, tensor in memory.items()}


def part_of(memory: Mapping[str, Tensor], prefix: str) -> Memory:
    """Returns the entries under `prefix.` without it."""
    start = len(prefix) + 1
    return {name[start:]: tensor for name, tensor in memory.items() if name.startswith(f"{prefix}.")}
