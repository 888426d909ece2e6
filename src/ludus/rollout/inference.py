"""The policy's rollout step, plain or as a CUDA graph."""

from typing import Protocol

import torch
from torch import Tensor

from ludus.policies.policy import Entries, RecurrentState, Step
from ludus.rollout.cuda_graphs import capture


class InferenceBackend(Protocol):
    """Steps the policy; see `Policy.step` and `Policy.value`."""

    def step(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor, noise: Tensor) -> Step:
        """Act on one frame."""

    def value(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Return the values of one frame; the recurrent state does not advance."""


class InferencePolicy(InferenceBackend, Protocol):
    """What can be stepped: a policy, or many stacked ones."""

    device: torch.device

    @property
    def allows_cuda_graphs(self) -> bool:
        """Whether its step can be recorded."""

    def initial(self, rows: int) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing."""

    def draw_noise(self, steps: int, rows: int, generator: torch.Generator) -> Tensor:
        """Draw the noise of `steps` steps."""


class CudaGraphInference:
    """Replays the step and the value as CUDA graphs over fixed tensors.

    What it returns lies in those tensors and is overwritten by the next call; so is the memory, which it keeps: the
    memory that is passed in is copied unless it is the one that the last call returned.
    """

    def __init__(self, policy: InferencePolicy, rows: int) -> None:
        self._policy = policy
        self._memory = policy.initial(rows)
        self._episode_starts = torch.ones(rows, dtype=torch.bool, device=policy.device)
        self._noise = torch.empty(0, device=policy.device)
        self._observations: dict[str, Tensor] = {}
        self._step_graph: torch.cuda.CUDAGraph | None = None
        self._value_graph: torch.cuda.CUDAGraph | None = None

    def step(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor, noise: Tensor) -> Step:
        """Act on one frame; within the recording of a larger graph, the step becomes a part of it."""
        if torch.cuda.is_current_stream_capturing():
            return self._keep_memory(self._policy.step(observations, dict(memory), episode_starts, noise))
        if self._step_graph is None:
            self._noise = torch.empty_like(noise)  # the first call says whether it explores
        self._noise.copy_(noise)
        self._fill(observations, memory, episode_starts)
        if self._step_graph is None:
            self._step_graph = capture(self._run_step, tuple(self._memory.values()))
        self._step_graph.replay()
        return self._step

    def value(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Return the values of one frame; the recurrent state does not advance."""
        if torch.cuda.is_current_stream_capturing():
            return self._policy.value(observations, dict(memory), episode_starts)
        self._fill(observations, memory, episode_starts)
        if self._value_graph is None:
            self._value_graph = capture(self._run_value, ())
        self._value_graph.replay()
        return self._value

    def _fill(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> None:
        for name, tensor in observations.items():
            if name not in self._observations:
                self._observations[name] = torch.zeros_like(tensor)
            # Those of a buffer may be wider than those of the games: then they end with zeros.
            self._observations[name][..., : tensor.shape[-1]].copy_(tensor)
        self._episode_starts.copy_(episode_starts)
        for name, tensor in memory.items():
            if tensor is not self._memory[name]:
                self._memory[name].copy_(tensor)

    def _run_step(self) -> None:
        step = self._policy.step(self._observations, dict(self._memory), self._episode_starts, self._noise)
        self._step = self._keep_memory(step)

    def _keep_memory(self, step: Step) -> Step:
        for name, tensor in step.memory.items():
            if tensor is not self._memory[name]:
                self._memory[name].copy_(tensor)
        return step._replace(memory=self._memory)

    def _run_value(self) -> None:
        self._value = self._policy.value(self._observations, dict(self._memory), self._episode_starts)


def make_inference(policy: InferencePolicy, rows: int, *, cuda_graphs: bool) -> InferenceBackend:
    """Return the graphs on a CUDA device if wanted and possible, else the policy itself, which steps plainly."""
    records = cuda_graphs and policy.device.type == "cuda" and policy.allows_cuda_graphs
    return CudaGraphInference(policy, rows) if records else policy
