"""Overlapping iterations: the next rollout is played while the update learns from the one before.

In iteration k, rollout k is played with the weights from the start of the iteration, and the update learns from rollout
k - 1, which was played with weights that are one update older. The stored log probabilities are those of the weights
that played, so the ratio of the surrogate loss is the true one; it only starts a little away from 1. Nothing is learned
in the first iteration, and the last rollout of a run is never learned from.

On a CUDA device both go on at once, each in a stream of its own. Both would use the same weights, so there the rollout
is played by a copy of the policy. On a CPU one follows the other.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.state import FLAG, Range, check_range, check_tensors, clone_tensors
from ludus.policies.policy import Policy, memory_ranges
from ludus.rollout.buffer import RolloutBuffer

_FILLED = "filled"
NOTHING_WAITS: Mapping[str, Tensor] = MappingProxyType({_FILLED: torch.tensor(False)})  # a state
_WHAT = "the waiting rollout"
_ADVICE = "use the same policy config, games and ppo settings"


class WaitingRollout:
    """A finished rollout that is yet to be learned from.

    Attributes:
        buffer: The rollout; the same tensors all the time, which a CUDA graph of the update reads.
        is_filled: Whether there is one.
    """

    def __init__(self, policy: Policy, like: RolloutBuffer) -> None:
        """Allocate memory for rollouts of the form of `like`, which was made for the policy."""
        self._spec = policy.spec
        self.buffer = like.make_another(policy)
        self.is_filled = False

    def take(self, rollout: RolloutBuffer) -> None:
        """Copy a finished rollout, in place of the one before."""
        self.buffer.copy_(rollout)
        self.is_filled = True

    def state(self) -> dict[str, Tensor]:
        """Return a copy of the rollout, and whether there is one."""
        filled = {_FILLED: torch.tensor(self.is_filled)}
        return filled | (clone_tensors(self.buffer.tensors()) if self.is_filled else {})

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`, from any device; raise StateError if it does not fit."""
        own = self.buffer.tensors()
        flag = {_FILLED: torch.tensor(self.is_filled)}
        check_tensors({name: state[name] for name in state if name == _FILLED}, flag, _WHAT, ranges={_FILLED: FLAG})
        self.is_filled = bool(state[_FILLED])
        # What a device keeps in bfloat16 comes from others as float32, and the other way round.
        kept = {
            name: tensor.to(own[name].dtype) if name in own and tensor.is_floating_point() else tensor
            for name, tensor in state.items()
            if name != _FILLED
        }
        check_tensors(kept, own if self.is_filled else {}, _WHAT, ranges=self._ranges(kept), advice=_ADVICE)
        for name, tensor in kept.items():
            self._check_actions(name, tensor)
            own[name].copy_(tensor)

    def _ranges(self, kept: Mapping[str, Tensor]) -> dict[str, Range]:
        """Return the valid range of every index."""
        ranges = memory_ranges({name: tensor for name, tensor in kept.items() if name.startswith("memory.")})
        return ranges | ({"bots": (-1, len(self._spec.bots) - 1)} if "bots" in kept else {})

    def _check_actions(self, name: str, tensor: Tensor) -> None:
        """Raise StateError if a saved action is none of the world's; what an opponent did may be unknown, -1."""
        if name not in ("actions", "demonstrations", "opponent_actions"):
            return
        lowest, what = -1 if name == "opponent_actions" else 0, f"the state of {_WHAT} does not fit: {name!r}"
        match self._spec.action_space:
            case spaces.MultiDiscrete() as space:
                for factor, count in enumerate(space.nvec.tolist()):
                    check_range(tensor[..., factor], lowest, count - 1, what, advice=_ADVICE)
            case spaces.Discrete() as space:
                check_range(tensor, lowest, int(space.n) - 1, what, advice=_ADVICE)
            case spaces.MultiBinary():
                check_range(tensor, lowest, 1, what, advice=_ADVICE)


class PlayingPolicy:
    """A copy of the policy that plays rollouts, on a CUDA device in a stream of its own; see the module.

    A rollout is a long chain of small kernels, an update a shorter one of large kernels. The stream has priority, so
    that a step of the rollout does not wait until a minibatch leaves room for it.

    Memory of torch's allocator belongs to the stream in which it was allocated, and what is freed in Python may be
    overwritten by later work of that stream. So between `refresh` and `join` no tensor of the other streams that is
    read here may be freed and its memory be used again there.

    Attributes:
        policy: The copy. It has the statistics of returns in common with the original: only rollouts use them.
    """

    def __init__(self, original: Policy, *, is_compiled: bool) -> None:
        """Make a policy like `original`; `is_compiled` says whether `torch.compile` takes its strategy encoder."""
        device = original.device
        is_cuda = device.type == "cuda"
        with torch.random.fork_rng(devices=[device] if is_cuda else []):  # its first weights are never used
            self.policy = Policy(original.spec, original.config, device)
        self.policy.returns = original.returns
        if is_compiled:
            self.policy.use_compiler()
        self._copies, self._originals = _twins(self.policy, original)
        self._stream = torch.cuda.Stream(device, priority=-1) if is_cuda else None  # type: ignore[no-untyped-call]
        self._refreshed = torch.cuda.Event() if is_cuda else None  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def refresh(self) -> None:
        """Take the weights, statistics and rates of exploration that the original has now."""
        for dtype, copies in self._copies.items():
            torch._foreach_copy_(copies, self._originals[dtype])
        if self._refreshed is not None:
            self._refreshed.record(torch.cuda.current_stream(self.policy.device))

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Return a context whose work goes to the own stream, and waits for all that was given before `refresh`."""
        if self._stream is None or self._refreshed is None:
            yield
            return
        self._stream.wait_event(self._refreshed)
        with torch.cuda.stream(self._stream):
            yield

    def join(self) -> None:
        """Let all that the present stream is given from now on wait for the rollout."""
        if self._stream is not None:
            torch.cuda.current_stream(self.policy.device).wait_stream(self._stream)


def _twins(copy: Policy, original: Policy) -> tuple[dict[torch.dtype, list[Tensor]], dict[torch.dtype, list[Tensor]]]:
    """Return parameters and buffers of both by type, in the same order, without those that they have in common."""
    copies: dict[torch.dtype, list[Tensor]] = {}
    originals: dict[torch.dtype, list[Tensor]] = {}
    for name, tensor in (*original.named_parameters(), *original.named_buffers()):
        part, _, last = name.rpartition(".")
        twin: Tensor = getattr(copy.get_submodule(part), last)
        if twin is not tensor:
            copies.setdefault(tensor.dtype, []).append(twin)
            originals.setdefault(tensor.dtype, []).append(tensor)
    return copies, originals
