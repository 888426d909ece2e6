"""Rows grouped by the parameters they need, so that one product of stacked matrices serves many policies.

A grouping has its own layout, in which the rows of a slot lie side by side: `enter` brings rows there, `leave`
brings them back, and `multiply` works in between. There are three, for what each device does well:

- `HostGrouping`, on a CPU: one matrix product per slot on its segment of sorted rows or, where torch has several
  threads and the groups are nearly even, groups filled up to the largest and one `baddbmm`, whose threads meet once
  instead of once per slot. With 2,048 rows, 32 slots and 156 x 128 on an ARM core segments take 3.3 ms, `baddbmm` 3.6
  and one matrix for all rows 2.5; with two threads 2.4, 2.2 and 1.4.
- `OffsetGrouping`: `grouped_mm` with the groups' ends on the device, for bfloat16 on a GPU.
- `BlockGrouping`: blocks of rows that share a slot, each with a copy of its matrix, for other types on a GPU.

The last two have static shapes and never wait for the device, so a CUDA graph can hold what they do.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from ludus.core.errors import ConfigError

_BLOCK_ROWS = 64
_MOST_FILLING = 1.6
_MAX_SLOTS = 2**15 - 1


class StackedMatrix:
    """The weights and biases of one linear layer in all slots, in the shape that a grouping wants."""

    def __init__(self, grouping: "Grouping", inputs: int, outputs: int, *, bias: bool) -> None:
        self._grouping, self.inputs, self.outputs = grouping, inputs, outputs
        multiple = grouping.multiple
        shape = (grouping.slots, -(-inputs // multiple) * multiple, -(-outputs // multiple) * multiple)
        # Zeros, since unused rows may meet a slot that was never filled, and must stay finite.
        self.weight = torch.zeros(shape, dtype=grouping.dtype, device=grouping.device)
        self.bias = torch.zeros((grouping.slots, outputs), dtype=grouping.dtype, device=grouping.device)
        self.pairs = tuple(zip(self.weight.unbind(0), self.bias.unbind(0), strict=True))
        self._has_bias = bias
        self._chosen: tuple[tuple[int, ...], Tensor, Tensor] = ((), self.weight, self.bias)

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """Take `weight` `(outputs, inputs)` and `bias` `(outputs,)` of a linear layer into a slot."""
        place = self.weight[slot].zero_()
        place[: self.inputs, : self.outputs].copy_(tensors["weight"].reshape(self.outputs, self.inputs).t())
        if self._has_bias:
            self.bias[slot].copy_(tensors["bias"])
        self._chosen = ((), self.weight, self.bias)

    def of(self, slots: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Return weights and biases of some slots side by side; a copy, which stays for the next time."""
        if self._chosen[0] != slots:
            index = torch.tensor(slots, device=self.weight.device)
            self._chosen = (slots, self.weight.index_select(0, index), self.bias.index_select(0, index))
        return self._chosen[1:]

    def __call__(self, inputs: Tensor) -> Tensor:
        """Map `(places, ..., inputs)` in the grouping's layout to `(places, ..., outputs)`."""
        return self._grouping.multiply(inputs, self)


class Grouping(ABC):
    """Which slot every row uses, and the layout that goes with it."""

    dtype = torch.float32  # of the matrices
    multiple = 1  # the matrices' sizes are filled up with zeros to be multiples of it
    row_slots: Tensor  # `(rows,)` int64, slot of every row; 0 for unused rows

    def __init__(self, slots: int, device: torch.device) -> None:
        if not 1 <= slots <= _MAX_SLOTS:
            raise ConfigError(f"{slots} slots of stacked policies were asked for; valid: 1 to {_MAX_SLOTS}")
        self.slots, self.device = slots, device
        self._inverse: Tensor
        self._order: Tensor

    @abstractmethod
    def choose(self, slots: Tensor) -> None:
        """Take the slot of every row, `(rows,)` int64; -1 for unused rows: they get any finite value."""

    def enter(self, rows: Tensor) -> Tensor:
        """Bring `(rows, ...)` into the layout: `(places, ...)`."""
        return rows.to(self.dtype).index_select(0, self._order)

    def leave(self, places: Tensor) -> Tensor:
        """Bring `(places, ...)` back: `(rows, ...)`."""
        return places.index_select(0, self._inverse)

    def vectors(self, stacked: Tensor, like: Tensor) -> Tensor:
        """Return each row's own of the vectors `(slots, size)`, shaped to go with `like` `(rows, ..., size)`."""
        chosen = stacked.index_select(0, self.row_slots)
        return chosen.view(chosen.shape[0], *(1,) * (like.dim() - 2), chosen.shape[1])

    @abstractmethod
    def multiply(self, inputs: Tensor, matrix: StackedMatrix) -> Tensor:
        """Map `(places, ..., inputs)` to `(places, ..., outputs)`, each with the matrix and bias of its slot."""


class HostGrouping(Grouping):
    """Rows sorted by slot, only those in use, in segments or in groups of equal size."""

    def __init__(self, slots: int, device: torch.device, most_filling: float | None = None) -> None:
        """Fill groups up to be equal as long as that multiplies the rows by at most `most_filling`.

        None fills them up only where torch has several threads.
        """
        super().__init__(slots, device)
        self._most_filling = most_filling

    def choose(self, slots: Tensor) -> None:
        """See `Grouping`."""
        small = slots.numpy().astype("int16")  # numpy sorts 16 bits by radix: 5 times as fast as 64
        order = torch.from_numpy(small.argsort(kind="stable"))
        unasked, *counts = torch.bincount(slots + 1, minlength=self.slots + 1).tolist()
        if unasked == slots.numel():
            unasked, counts[0] = unasked - 1, 1  # one row computes an unused result, so that there is something to give
        asked = order[unasked:]
        self._used = tuple(slot for slot, count in enumerate(counts) if count)
        self._counts = [counts[slot] for slot in self._used]
        self._largest = max(self._counts)
        self._equal = self._largest * len(self._used) <= self._filling() * asked.numel()
        places = torch.arange(asked.numel())
        self._order = asked
        if self._equal:
            # A group begins later by what the groups before it were filled up with.
            sizes = torch.tensor(self._counts)
            later = torch.arange(len(self._used)) * self._largest - (sizes.cumsum(0) - sizes)
            places += later.repeat_interleave(sizes, output_size=asked.numel())
            self._order = asked.new_zeros(len(self._used) * self._largest)
            self._order[places] = asked
        self._inverse = torch.zeros_like(slots)
        self._inverse[asked] = places
        self.row_slots = slots.clamp(min=0)

    def _filling(self) -> float:
        if len(self._used) == 1:
            return 0.0  # one segment is one product as it is
        if self._most_filling is not None:
            return self._most_filling
        return _MOST_FILLING if torch.get_num_threads() > 1 else 0.0

    def multiply(self, inputs: Tensor, matrix: StackedMatrix) -> Tensor:
        """See `Grouping`."""
        if self._equal:
            weight, bias = matrix.of(self._used)
            groups = inputs.reshape(len(self._used), -1, matrix.inputs)
            return torch.baddbmm(bias.unsqueeze(1), groups, weight).view(*inputs.shape[:-1], matrix.outputs)
        flat = inputs.flatten(0, -2)
        inner = flat.shape[0] // inputs.shape[0]
        counts = [count * inner for count in self._counts]
        outputs = flat.new_empty(flat.shape[0], matrix.outputs)
        for slot, segment, out in zip(self._used, torch.split(flat, counts), torch.split(outputs, counts), strict=True):
            weight, bias = matrix.pairs[slot]
            torch.addmm(bias, segment, weight, out=out)
        return outputs.view(*inputs.shape[:-1], matrix.outputs)


class OffsetGrouping(Grouping):
    """Rows sorted by slot, with the groups' ends on the device; unused ones come last.

    The kernel wants rows of a multiple of 16 bytes. A copy of row 0 comes before all others, in slot 0: there is
    always something that was computed for the unused rows to take.
    """

    multiple = 8

    def __init__(self, slots: int, device: torch.device, dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__(slots, device)
        self.dtype = dtype
        self._numbers = torch.arange(slots, device=device)

    def choose(self, slots: Tensor) -> None:
        """See `Grouping`."""
        if getattr(self, "row_slots", None) is None or self.row_slots.shape != slots.shape:
            rows = slots.numel()
            self._places = torch.arange(1, rows + 1, device=self.device)
            self._order, self._place_slots = (self._places.new_zeros(rows + 1) for _ in range(2))
            self._inverse, self.row_slots = torch.zeros_like(self._places), torch.zeros_like(self._places)
            self._ends = torch.zeros(self.slots, dtype=torch.int32, device=self.device)
        unasked = slots < 0
        ordered, order = torch.where(unasked, self.slots, slots).sort(stable=True)
        self._order[1:].copy_(order)
        self._place_slots[1:].copy_(ordered.clamp(max=self.slots - 1))
        self._ends.copy_(torch.searchsorted(ordered, self._numbers, right=True) + 1)
        self._inverse.index_copy_(0, order, self._places).masked_fill_(unasked, 0)
        self.row_slots.copy_(slots.clamp(min=0))

    def multiply(self, inputs: Tensor, matrix: StackedMatrix) -> Tensor:
        """See `Grouping`."""
        flat = inputs.to(self.dtype).flatten(0, -2)
        if flat.shape[1] != matrix.weight.shape[1]:
            flat = functional.pad(flat, (0, matrix.weight.shape[1] - flat.shape[1]))
        inner = flat.shape[0] // inputs.shape[0]
        ends = self._ends if inner == 1 else self._ends * inner
        products = functional.grouped_mm(flat, matrix.weight, offs=ends)[:, : matrix.outputs]
        shaped = products.view(inputs.shape[0], inner, matrix.outputs)
        outputs = shaped + matrix.bias.index_select(0, self._place_slots).unsqueeze(1)
        return outputs.view(*inputs.shape[:-1], matrix.outputs)


class BlockGrouping(Grouping):
    """Groups filled up to whole blocks of rows, every block with a copy of its slot's matrix.

    However the rows are divided, there are at most `rows / block + slots` blocks, which makes the shapes static.
    """

    def __init__(self, slots: int, device: torch.device, block_rows: int = _BLOCK_ROWS) -> None:
        super().__init__(slots, device)
        self._block_rows = block_rows
        self._numbers = torch.arange(slots, device=device)

    def choose(self, slots: Tensor) -> None:
        """See `Grouping`."""
        rows, block = slots.numel(), self._block_rows
        blocks = rows // block + min(self.slots, rows)
        if getattr(self, "row_slots", None) is None or self.row_slots.shape != slots.shape:
            self._ranks, self._block_numbers = (torch.arange(n, device=self.device) for n in (rows, blocks))
            self._block_slots = torch.zeros_like(self._block_numbers)
            self._inverse, self.row_slots = torch.zeros_like(self._ranks), torch.zeros_like(self._ranks)
            # One place more than the blocks have, where the unused rows go.
            self._order_and_rest = self._ranks.new_zeros(blocks * block + 1)
            self._order = self._order_and_rest[:-1]
        unasked = slots < 0
        ordered, order = torch.where(unasked, self.slots, slots).sort(stable=True)
        ends = torch.searchsorted(ordered, self._numbers, right=True)
        counts = ends.diff(prepend=ends.new_zeros(1))
        block_ends = ((counts + block - 1) // block).cumsum(0)
        block_starts = block_ends - (counts + block - 1) // block
        asked_slots = ordered.clamp(max=self.slots - 1)
        places = block_starts[asked_slots] * block + self._ranks - (ends - counts)[asked_slots]
        places = torch.where(ordered == self.slots, blocks * block, places)
        self._order_and_rest.zero_().index_copy_(0, places, order)
        self._inverse.index_copy_(0, order, places).masked_fill_(unasked, 0)
        self._block_slots.copy_(
            torch.searchsorted(block_ends, self._block_numbers, right=True).clamp_(max=self.slots - 1)
        )
        self.row_slots.copy_(slots.clamp(min=0))

    def multiply(self, inputs: Tensor, matrix: StackedMatrix) -> Tensor:
        """See `Grouping`."""
        blocks = inputs.reshape(self._block_slots.numel(), -1, matrix.inputs)
        weight = matrix.weight.index_select(0, self._block_slots)
        bias = matrix.bias.index_select(0, self._block_slots).unsqueeze(1)
        return torch.baddbmm(bias, blocks, weight).view(*inputs.shape[:-1], matrix.outputs)


def make_grouping(slots: int, device: torch.device, *, bfloat16: bool) -> Grouping:
    """Return the grouping that suits the device and the precision."""
    if device.type == "cpu":
        return HostGrouping(slots, device)
    return OffsetGrouping(slots, device) if bfloat16 else BlockGrouping(slots, device)
