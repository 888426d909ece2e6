"""Several runs in one process, which take turns: seeds of one run, or runs that differ in a few settings.

While one run prepares its next iteration on the host, a CUDA device does the work of the others, each in a stream of
its own: small networks leave most of a large device idle. On a CPU the runs use the same cores one after the other, and
share the start of the process. Every run has its own folder and goes as it would alone. The seconds that it records are
those of all runs, since they pass for it too.
"""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

from ludus.training.session import Outcome

Turns = Generator[None, None, Outcome]


def train_together(runs: Sequence[Turns], device: str) -> list[Outcome]:
    """Let runs take turns until all have ended; see `ludus.training.session.training_turns`.

    A run that fails does not end the others: its error is raised once they have ended.

    Args:
        runs: The runs, none of which has begun.
        device: That they train on.

    Returns:
        How each ended.
    """
    is_cuda = torch.device(device).type == "cuda"
    streams = [torch.cuda.Stream(device) if is_cuda else None for _ in runs]  # type: ignore[no-untyped-call]
    outcomes: dict[int, Outcome] = {}
    errors: list[Exception] = []
    waiting = dict(enumerate(runs))
    try:
        while waiting:
            for number, run in list(waiting.items()):
                try:
                    with _on(streams[number]):
                        next(run)
                except StopIteration as end:
                    outcomes[number] = end.value
                    del waiting[number]
                except Exception as error:  # the others shall end as if it had not been there
                    errors.append(error)
                    del waiting[number]
    finally:
        for run in waiting.values():
            run.close()
    if errors:
        raise errors[0]
    return [outcomes[number] for number in range(len(runs))]


def _on(stream: "torch.cuda.Stream | None") -> AbstractContextManager[object]:
    """Return a context in which work is given to a stream; without one nothing changes."""
    if stream is None:
        return nullcontext()
    stream_context: AbstractContextManager[object] = torch.cuda.stream(stream)
    return stream_context
