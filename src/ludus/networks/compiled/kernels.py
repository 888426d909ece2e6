"""The Warp kernels that hold the compiled LSTM, on the CPU alone: one of Warp's threads is a block of rows."""

import warp as wp

from ludus.networks.compiled.lstm_source import BACKWARD, FORWARD, PRODUCT, TRANSPOSE
from ludus.networks.compiled.vectors import VECTORS

wp.set_module_options({"enable_backward": False})


@wp.func_native(VECTORS + PRODUCT + FORWARD)  # type: ignore[untyped-decorator]
def _forward(job: wp.uint64, block: int) -> None: ...


@wp.func_native(VECTORS + PRODUCT + BACKWARD)  # type: ignore[untyped-decorator]
def _backward(job: wp.uint64, block: int) -> None: ...


@wp.func_native(VECTORS + TRANSPOSE)  # type: ignore[untyped-decorator]
def _transpose(job: wp.uint64, block: int) -> None: ...


@wp.kernel
def forward_kernel(job: wp.uint64, first: int) -> None:
    """Runs one block of rows through all steps."""
    _forward(job, first + wp.tid())  # type: ignore[operator]  # one axis, so one number


@wp.kernel
def backward_kernel(job: wp.uint64, first: int) -> None:
    """Runs one block of rows back through all steps."""
    _backward(job, first + wp.tid())  # type: ignore[operator]  # one axis, so one number


@wp.kernel
def transpose_kernel(job: wp.uint64, first: int) -> None:
    """Transposes sixteen columns of the recurrent weights."""
    _transpose(job, first + wp.tid())  # type: ignore[operator]  # one axis, so one number
