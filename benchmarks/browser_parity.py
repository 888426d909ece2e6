"""Show that the browser plays the same game: hashes over frames of random actions on CPU, CUDA, node and Chromium.

    python benchmarks/browser_parity.py --frames 1000000

Every frame's state and observations are hashed (CRC-32, continued from frame to frame), with episodes that end and
restart in between. Variants: random actions in all seats, and a scripted player in the last one.
"""

import zlib
from collections.abc import Iterator

import torch
from torch import Tensor

from ludus.core.random import stream_hash_tensor
from ludus.envs.base import EnvSpec
from ludus.envs.kernel_env import KernelEnv
from ludus.share.program import ActionForm
from ludus.share.wasm import RANDOM_HOLD

_BLOCK = 1_000  # frames whose actions are drawn together


def random_actions(spec: EnvSpec, seed: int, frames: int) -> Iterator[Tensor]:
    """Yield the actions `(1, seats, ...)` of each frame, as `play_random` in `engine.cpp` draws them."""
    form = ActionForm.of(spec.action_space)
    counts = torch.tensor(form.counts)
    seats, numbers = torch.arange(spec.seats).unsqueeze(1), torch.arange(len(form.counts))
    for first in range(0, frames, _BLOCK):
        held = (torch.arange(first, min(first + _BLOCK, frames)) // RANDOM_HOLD).view(-1, 1, 1)
        drawn = stream_hash_tensor(seed, held, seats, numbers)
        if form.kind == "box":
            block = (drawn >> 8).float() * 2.0**-23 - 1.0
        else:
            block = ((drawn * counts) >> 32).to(getattr(torch, form.dtype))
        shape = (1, spec.seats, *(spec.action_space.shape or ()))
        yield from (row.view(shape) for row in block.unbind())


def state_hash(env: KernelEnv, before: int = 0) -> int:
    """Return what `hash` in `engine.cpp` does: CRC-32 of the state and of the observations."""
    seen = [tensor for name, tensor in env.working_tensors().items() if name.startswith("observations.")]
    for tensor in (*env.state_tensors().values(), *seen):
        before = zlib.crc32(tensor.cpu().numpy().tobytes(), before)
    return before
