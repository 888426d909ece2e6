"""CUDA graphs: work that was recorded once and is replayed without the host issuing its kernels one by one."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

_WARM_UP_CALLS = 3  # lets lazy initialisation happen before the capture


def capture(
    work: Callable[[], None], changed: Sequence[Tensor], warm_up: Callable[[], None] | None = None
) -> torch.cuda.CUDAGraph:
    """Record `work` as a graph without any lasting effect.

    Args:
        work: Issues kernels over fixed tensors.
        changed: Tensors that it changes; they get back the values they had.
        warm_up: Runs a few times before the recording and launches all that `work` does; `work` itself if None.
    """
    kept = [tensor.clone() for tensor in changed]
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UP_CALLS):
            (warm_up or work)()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with _without_garbage_collection(), torch.cuda.graph(graph, stream=_stream_to_record()):
        work()
    for tensor, value in zip(changed, kept, strict=True):
        tensor.copy_(value)
    return graph


def record(work: Callable[[], None], generators: Sequence[torch.Generator] = ()) -> torch.cuda.CUDAGraph:
    """Record `work` as a graph; nothing is done until it is replayed, except what `work` does on the host.

    Everything that it launches must have run before, so that nothing is loaded or compiled meanwhile.

    Args:
        work: Issues kernels over fixed tensors.
        generators: Those that it draws from, beside the default one; replays draw on.
    """
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    with _without_garbage_collection(), torch.cuda.graph(graph, stream=_stream_to_record()):
        work()
    return graph


def _stream_to_record() -> "torch.cuda.Stream | None":
    """Return the present stream; None, for one that torch keeps, if it is the default one, which cannot be recorded.

    cuBLAS has one workspace per stream, and a recording uses that of the stream in which it was made. So recordings
    that are replayed side by side, each in a stream of its own, must have been made in different ones; they also keep
    that stream's priority.
    """
    current = torch.cuda.current_stream()
    return None if current == torch.cuda.default_stream() else current


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Keep the collector from destroying an earlier graph meanwhile, which would spoil the recording.

    It does not collect first: that takes 0.2 s with all modules of a run, and a run records dozens of graphs.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class GraphedCall:
    """A function of one tensor as a graph; the tensor's shape is fixed by the first call."""

    def __init__(
        self,
        function: Callable[[Tensor], None],
        argument: Tensor,
        changed: Sequence[Tensor],
        warm_up: Callable[[], None] | None = None,
    ) -> None:
        """Record the function; `changed` are the tensors that a call changes. See `capture` for `warm_up`."""
        self._function, self._argument = function, argument.clone()
        self._graph = capture(lambda: function(self._argument), changed, warm_up)

    def __call__(self, argument: Tensor) -> None:
        """Replay with the given values; within the recording of a larger graph, become a part of it."""
        if torch.cuda.is_current_stream_capturing():
            self._function(argument)
            return
        self._argument.copy_(argument)
        self._graph.replay()
