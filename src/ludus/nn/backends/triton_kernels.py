"""The Triton kernels of `triton_lstm`: one step of the LSTM forward, and one backward.

Every program computes a block of rows and units. Arguments are pointers to contiguous tensors, `(rows, size)` each, but
`(rows, 4 * size)` for gates and what is projected, `(4 * size, size)` for the weight and `(rows, 1)` for what is kept.
"""

import triton
import triton.language as tl

# Triton compiles these functions from their source: their annotations are Triton's, which mypy cannot follow.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, ANN202


@triton.jit
def _tanh(x):
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def forward_step(
    projected, weight, hidden, cell, keep, gates, outputs, cells, rows,
    size: tl.constexpr, inner_size: tl.constexpr, block_rows: tl.constexpr, block_units: tl.constexpr,
):  # fmt: skip
    """Compute the four gates, the new cell states and the outputs."""
    row = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
    unit = tl.program_id(1) * block_units + tl.arange(0, block_units)
    mask = (row < rows)[:, None]
    input_gate = tl.zeros((block_rows, block_units), dtype=tl.float32)
    forget_gate = tl.zeros((block_rows, block_units), dtype=tl.float32)
    output_gate = tl.zeros((block_rows, block_units), dtype=tl.float32)
    candidate = tl.zeros((block_rows, block_units), dtype=tl.float32)
    for start in range(0, size, inner_size):
        inner = start + tl.arange(0, inner_size)
        before = tl.load(hidden + row[:, None] * size + inner[None, :], mask=mask, other=0.0)
        part = weight + unit[None, :] * size + inner[:, None]
        input_gate = tl.dot(before, tl.load(part), input_gate)
        forget_gate = tl.dot(before, tl.load(part + size * size), forget_gate)
        output_gate = tl.dot(before, tl.load(part + 2 * size * size), output_gate)
        candidate = tl.dot(before, tl.load(part + 3 * size * size), candidate)
    # A row is kept or forgotten as a whole, so its product may be multiplied instead of its hidden state.
    kept = tl.load(keep + row, mask=row < rows, other=0.0).to(tl.float32)[:, None]
    place = row[:, None] * (4 * size) + unit[None, :]
    input_gate = tl.sigmoid(input_gate * kept + tl.load(projected + place, mask=mask, other=0.0).to(tl.float32))
    forget_gate = tl.sigmoid(
        forget_gate * kept + tl.load(projected + place + size, mask=mask, other=0.0).to(tl.float32)
    )
    output_gate = tl.sigmoid(
        output_gate * kept + tl.load(projected + place + 2 * size, mask=mask, other=0.0).to(tl.float32)
    )
    candidate = _tanh(candidate * kept + tl.load(projected + place + 3 * size, mask=mask, other=0.0).to(tl.float32))
    small = row[:, None] * size + unit[None, :]
    new_cell = forget_gate * (tl.load(cell + small, mask=mask, other=0.0) * kept) + input_gate * candidate
    tl.store(cells + small, new_cell, mask=mask)
    tl.store(outputs + small, (output_gate * _tanh(new_cell)).to(tl.bfloat16), mask=mask)
    tl.store(gates + place, input_gate.to(tl.bfloat16), mask=mask)
    tl.store(gates + place + size, forget_gate.to(tl.bfloat16), mask=mask)
    tl.store(gates + place + 2 * size, output_gate.to(tl.bfloat16), mask=mask)
    tl.store(gates + place + 3 * size, candidate.to(tl.bfloat16), mask=mask)


@triton.jit
def backward_step(
    grad_outputs, grad_gates_after, weight, keep_after, keep, gates, cells, cells_before, grad_cell, grad_gates, rows,
    is_last: tl.constexpr, size: tl.constexpr, inner_size: tl.constexpr,
    block_rows: tl.constexpr, block_units: tl.constexpr,
):  # fmt: skip
    """Take the gradient from the step after to the gates of this one, and to the cell states before it."""
    row = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
    unit = tl.program_id(1) * block_units + tl.arange(0, block_units)
    mask = (row < rows)[:, None]
    small = row[:, None] * size + unit[None, :]
    place = row[:, None] * (4 * size) + unit[None, :]
    grad_hidden = tl.zeros((block_rows, block_units), dtype=tl.float32)
    if not is_last:
        for start in range(0, 4 * size, inner_size):
            inner = start + tl.arange(0, inner_size)
            after = tl.load(grad_gates_after + row[:, None] * (4 * size) + inner[None, :], mask=mask, other=0.0)
            grad_hidden = tl.dot(after, tl.load(weight + inner[:, None] * size + unit[None, :]), grad_hidden)
        grad_hidden *= tl.load(keep_after + row, mask=row < rows, other=0.0).to(tl.float32)[:, None]
    grad_hidden += tl.load(grad_outputs + small, mask=mask, other=0.0).to(tl.float32)
    input_gate = tl.load(gates + place, mask=mask, other=0.0).to(tl.float32)
    forget_gate = tl.load(gates + place + size, mask=mask, other=0.0).to(tl.float32)
    output_gate = tl.load(gates + place + 2 * size, mask=mask, other=0.0).to(tl.float32)
    candidate = tl.load(gates + place + 3 * size, mask=mask, other=0.0).to(tl.float32)
    squashed = _tanh(tl.load(cells + small, mask=mask, other=0.0))
    kept = tl.load(keep + row, mask=row < rows, other=0.0).to(tl.float32)[:, None]
    before = tl.load(cells_before + small, mask=mask, other=0.0) * kept
    of_cell = tl.load(grad_cell + small, mask=mask, other=0.0) + grad_hidden * output_gate * (1.0 - squashed * squashed)
    of_output = grad_hidden * squashed * output_gate * (1.0 - output_gate)
    tl.store(grad_gates + place, (of_cell * candidate * input_gate * (1.0 - input_gate)).to(tl.bfloat16), mask=mask)
    tl.store(
        grad_gates + place + size, (of_cell * before * forget_gate * (1.0 - forget_gate)).to(tl.bfloat16), mask=mask
    )
    tl.store(grad_gates + place + 2 * size, of_output.to(tl.bfloat16), mask=mask)
    tl.store(
        grad_gates + place + 3 * size, (of_cell * input_gate * (1.0 - candidate * candidate)).to(tl.bfloat16), mask=mask
    )
    tl.store(grad_cell + small, of_cell * forget_gate * kept, mask=mask)
