"""Recovery from a device that runs out of memory in an update: back to before it, and again in smaller parts."""

import gc

import torch
from torch import Tensor

from ludus.algorithms.ppo.optimizer import FlatAdam
from ludus.core.errors import DeviceError
from ludus.policies.policy import Policy

_MOST_PARTS = 256  # of a minibatch: smaller ones save next to nothing and take for ever


class RestorePoint:
    """A copy of everything that an update changes, allocated at the start: going back must not need memory."""

    def __init__(self, policy: Policy, optimiser: FlatAdam) -> None:
        self._policy, self._optimiser = policy, optimiser
        self._kept = [torch.empty_like(tensor) for tensor in self._changed()]
        self._random = torch.empty(0)

    def _changed(self) -> list[Tensor]:
        return [*self._optimiser.tensors(), *self._policy.network_buffers().values()]

    @torch.no_grad()
    def keep(self, generator: torch.Generator) -> None:
        """Copy parameters, optimiser, running statistics of a user's own network, and the random state."""
        for copy, tensor in zip(self._kept, self._changed(), strict=True):
            copy.copy_(tensor)
        self._random = generator.get_state()

    @torch.no_grad()
    def restore(self, generator: torch.Generator) -> None:
        """Return to what `keep` copied, and give unused memory back to the device."""
        for copy, tensor in zip(self._kept, self._changed(), strict=True):
            tensor.copy_(copy)
        generator.set_state(self._random)
        gc.collect()  # the backward graph of the failed minibatch, where something refers to it in a circle
        if self._policy.device.type == "cuda":
            torch.cuda.empty_cache()


def find_out_of_memory(error: BaseException | None) -> torch.OutOfMemoryError | None:
    """Return the error of the allocator behind an error: a CUDA graph that fails while it is recorded raises others."""
    while error is not None and not isinstance(error, torch.OutOfMemoryError):
        error = error.__cause__ or error.__context__
    return error


def more_parts(parts: int, segments: int, reason: str) -> int:
    """Return twice the parts of a minibatch; raise DeviceError if so many are no help.

    Args:
        parts: In how many it was worked through.
        segments: Segments of a minibatch, none of which can be divided.
        reason: What the device said.
    """
    if 2 * parts > min(segments, _MOST_PARTS):
        raise DeviceError(
            f"the device is out of memory in an update, also with minibatches in {parts} parts ({reason}); use shorter "
            "rollouts (ppo.n_steps), fewer games (world.num_envs), a smaller policy, or shorter segments "
            "(ppo.sequence_length)"
        )
    return 2 * parts
