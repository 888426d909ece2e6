"""The Warp kernels that hold the compiled functions: one thread each, on the CPU alone."""

import warp as wp

from ludus.algorithms.ppo.native_source import APPLY, EPOCH, FORWARD, GRADIENT, LEARNING, TOOLS

wp.set_module_options({"enable_backward": False})


@wp.func_native(TOOLS + FORWARD)  # type: ignore[untyped-decorator]
def _forward(job: wp.uint64) -> None: ...


@wp.func_native(TOOLS + LEARNING + EPOCH)  # type: ignore[untyped-decorator]
def _epoch(job: wp.uint64) -> None: ...


@wp.func_native(TOOLS + LEARNING + GRADIENT)  # type: ignore[untyped-decorator]
def _gradient(job: wp.uint64) -> None: ...


@wp.func_native(TOOLS + LEARNING + APPLY)  # type: ignore[untyped-decorator]
def _apply(job: wp.uint64) -> None: ...


@wp.kernel
def forward_kernel(job: wp.uint64) -> None:
    """Run both networks over `Whole.ROWS` frames, and draw actions."""
    _forward(job)


@wp.kernel
def epoch_kernel(job: wp.uint64) -> None:
    """Run `Whole.MINIBATCHES` minibatches: both networks, the loss, its gradient and Adam."""
    _epoch(job)


@wp.kernel
def gradient_kernel(job: wp.uint64) -> None:
    """Compute the gradient of some rows of the minibatch `Whole.BATCH`."""
    _gradient(job)


@wp.kernel
def apply_kernel(job: wp.uint64) -> None:
    """Join the gradients of a minibatch's parts and step Adam."""
    _apply(job)
