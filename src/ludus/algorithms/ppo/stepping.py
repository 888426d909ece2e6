"""The policy's rollout step, plain or as a CUDA graph."""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from ludus.policies.memory import Memory
from ludus.policies.policy import Policy, Step

_WARM_UP_CALLS = 3  # lets lazy initialisation happen before the capture


class Stepper(Protocol):
    """Steps the policy; see `Policy.step` and `Policy.value`."""

    def step(self, observations: Mapping[str, Tensor], memory: Memory, starts: Tensor, noise: Tensor) -> Step:
        """Acts on one frame."""

    def value(self, observations: Mapping[str, Tensor], memory: Memory, starts: Tensor) -> Tensor:
        """Values one frame without moving on."""


class GraphStepper:
    """Replays the step and the value as CUDA graphs over fixed tensors.

    What it returns lies in those tensors and is overwritten by the next call; so is the memory, which it keeps: the
    memory that is passed in is copied unless it is the one that the last call returned.
    """

    def __init__(self, policy: Policy, rows: int) -> None:
        self._policy = policy
        self._memory = policy.initial(rows)
        space = policy.spec.observation_space
        self._starts = torch.ones(rows, dtype=torch.bool, device=policy.device)
        self._noise = policy.draw_noise(1, rows, torch.Generator(policy.device))[0]
        self._observations = {name: torch.empty(0) for name in space}
        self._rows = rows
        self._graphs: dict[str, torch.cuda.CUDAGraph] = {}
        self._step: Step | None = None
        self._value: Tensor | None = None

    def step(self, observations: Mapping[str, Tensor], memory: Memory, starts: Tensor, noise: Tensor) -> Step:
        """Acts on one frame."""
        self._noise.copy_(noise)
        self._fill(observations, memory, starts)
        if self._step is None:
            self._capture_step()
        self._graphs["step"].replay()
        assert self._step is not None  # noqa: S101 - for the type checker
        return self._step._replace(memory=self._memory)

    def value(self, observations: Mapping[str, Tensor], memory: Memory, starts: Tensor) -> Tensor:
        """Values one frame without moving on."""
        self._fill(observations, memory, starts)
        if self._value is None:
            self._capture_value()
        self._graphs["value"].replay()
        assert self._value is not None  # noqa: S101 - for the type checker
        return self._value

    def _fill(self, observations: Mapping[str, Tensor], memory: Memory, starts: Tensor) -> None:
        for name, tensor in observations.items():
            if self._observations[name].shape != tensor.shape:
                self._observations[name] = torch.empty_like(tensor)
            self._observations[name].copy_(tensor)
        self._starts.copy_(starts)
        for name, tensor in memory.items():
            if tensor is not self._memory[name]:
                self._memory[name].copy_(tensor)

    def _advance(self) -> Step:
        step = self._policy.step(self._observations, dict(self._memory), self._starts, self._noise)
        for name, tensor in step.memory.items():
            if tensor is not self._memory[name]:
                self._memory[name].copy_(tensor)
        return step

    def _capture_step(self) -> None:
        kept = {name: tensor.clone() for name, tensor in self._memory.items()}
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP_CALLS):
                self._advance()
        torch.cuda.current_stream().wait_stream(stream)
        self._graphs["step"] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graphs["step"]):
            self._step = self._advance()
        for name, tensor in kept.items():
            self._memory[name].copy_(tensor)

    def _capture_value(self) -> None:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP_CALLS):
                self._policy.value(self._observations, dict(self._memory), self._starts)
        torch.cuda.current_stream().wait_stream(stream)
        self._graphs["value"] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graphs["value"]):
            self._value = self._policy.value(self._observations, dict(self._memory), self._starts)


def make_stepper(policy: Policy, rows: int, *, cuda_graphs: bool) -> Stepper:
    """Returns the graphs on a CUDA device if wanted, else the policy itself, which steps plainly."""
    return GraphStepper(policy, rows) if cuda_graphs and policy.device.type == "cuda" else policy
