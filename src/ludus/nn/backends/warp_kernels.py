"""The compiled LSTM: the Warp kernels that hold the C++ in `cpp/`, for the CPU; a Warp thread runs a block of rows.

Rows do not meet each other in a recurrence, so a block stays in the core's own cache from the first step to the last,
and several cores need not wait for each other within a sequence. Tables are those of `warp_lstm`. Products are sums
over two contiguous rows, so that neither operand is copied into another layout first: with the few rows of a minibatch
of sequences that copying is what makes library products slow (16 rows by 256 x 1,024: 8 GFLOP/s there, 33 here).
"""

import warp as wp

from ludus.nn.backends import cpp_source

wp.set_module_options({"enable_backward": False})


@wp.func_native(cpp_source(__file__, "vectors", "product", "forward"))  # type: ignore[untyped-decorator]
def _forward(job: wp.uint64, block: int) -> None: ...


@wp.func_native(cpp_source(__file__, "vectors", "product", "backward"))  # type: ignore[untyped-decorator]
def _backward(job: wp.uint64, block: int) -> None: ...


@wp.func_native(cpp_source(__file__, "vectors", "transpose"))  # type: ignore[untyped-decorator]
def _transpose(job: wp.uint64, block: int) -> None: ...


@wp.kernel
def forward_kernel(job: wp.uint64, first: int) -> None:
    """Run one block of rows through all steps."""
    _forward(job, first + wp.tid())  # type: ignore[operator]  # one axis, so one number


@wp.kernel
def backward_kernel(job: wp.uint64, first: int) -> None:
    """Run one block of rows back through all steps."""
    _backward(job, first + wp.tid())  # type: ignore[operator]  # one axis, so one number


@wp.kernel
def transpose_kernel(job: wp.uint64, first: int) -> None:
    """Transpose sixteen columns of the recurrent weights."""
    _transpose(job, first + wp.tid())  # type: ignore[operator]  # one axis, so one number
