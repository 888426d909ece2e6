"""Memory that is used again: fresh memory costs a page fault for every 4 KiB, a tenth of a small LSTM's update."""

import math

import torch
from torch import Tensor

_NOTHING = torch.empty(0)
_KEPT = 8  # free tensors that wait for their next use


class Buffers:
    """Float32 tensors on the CPU; what they hold is whatever the last user left. Not safe to share between threads."""

    def __init__(self) -> None:
        self._scratch: dict[tuple[str, int], tuple[Tensor, Tensor]] = {}
        self._free: dict[int, Tensor] = {}

    def scratch(self, name: str, index: int, *shape: int) -> Tensor:
        """Returns memory until the next call with the same name and index."""
        flat, view = self._scratch.get((name, index), (_NOTHING, _NOTHING))
        if view.shape != shape:
            count = math.prod(shape)
            flat = flat if flat.numel() >= count else torch.empty(count)
            view = flat[:count].view(shape)
            self._scratch[name, index] = (flat, view)
        return view

    def take(self, *shape: int) -> Tensor:
        """Returns memory until it is given back; memory that never comes back is freed as usual.

        Taking counts as a change of the tensor, so that autograd refuses to go back through it after that.
        """
        for address, tensor in self._free.items():
            if tensor.shape == shape:
                del self._free[address]
                tensor[:0].zero_()
                return tensor
        return torch.empty(shape)

    def give(self, tensor: Tensor) -> None:
        """Takes a tensor back that nobody needs any more; giving it twice does no harm."""
        self._free.setdefault(tensor.data_ptr(), tensor)
        if len(self._free) > _KEPT:
            del self._free[next(iter(self._free))]
