"""The Warp kernels that hold the compiled functions, the C++ in `cpp/`: one thread each, on the CPU alone."""

import warp as wp

from ludus.nn import backends
from ludus.nn.backends import cpp_source

wp.set_module_options({"enable_backward": False})

_TOOLS = cpp_source(backends.__file__, "vectors") + cpp_source(__file__, "tools")
_LEARNING = _TOOLS + cpp_source(__file__, "learning")
_GRADIENT = "Learning::gradient((const long long*)job, ((const int*)((const long long*)job)[0])[16]);"
_APPLY = "Learning::apply((const long long*)job);"


@wp.func_native(_TOOLS + cpp_source(__file__, "forward"))  # type: ignore[untyped-decorator]
def _forward(job: wp.uint64) -> None: ...


@wp.func_native(_LEARNING + cpp_source(__file__, "epoch"))  # type: ignore[untyped-decorator]
def _epoch(job: wp.uint64) -> None: ...


@wp.func_native(_LEARNING + _GRADIENT)  # type: ignore[untyped-decorator]
def _gradient(job: wp.uint64) -> None: ...


@wp.func_native(_LEARNING + _APPLY)  # type: ignore[untyped-decorator]
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
