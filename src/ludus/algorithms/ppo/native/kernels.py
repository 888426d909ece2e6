"""The Warp kernels that hold the compiled functions: one thread each, on the CPU alone."""

import warp as wp

from ludus.algorithms.ppo.native.source import EPOCH, FORWARD, TOOLS

wp.set_module_options({"enable_backward": False})


@wp.func_native(TOOLS + FORWARD)  # type: ignore[untyped-decorator]
def _forward(job: wp.uint64) -> None: ...


@wp.func_native(TOOLS + EPOCH)  # type: ignore[untyped-decorator]
def _epoch(job: wp.uint64) -> None: ...


@wp.kernel
def forward_kernel(job: wp.uint64) -> None:
    """Runs both networks over `Whole.ROWS` frames."""
    _forward(job)


@wp.kernel
def epoch_kernel(job: wp.uint64) -> None:
    """Runs `Whole.MINIBATCHES` minibatches: both networks, the loss, its gradient and Adam."""
    _epoch(job)
