"""Games on one device, their tensors on another: a world that lives on the CPU beside a learner on a GPU.

What a step gives is packed into one host buffer and sent in one transfer. Host buffers are pinned, and there are two of
them: the next step is packed while the last one is still on its way. Final observations, which may be large, are sent
only when a game has ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.base import BatchedEnv, Bots, Columns, Observations, StepResult, packed, resolve_device

_ALIGNMENT = 64  # bytes at whose multiples tensors begin within a buffer


class DeviceBridge(BatchedEnv):
    """A batch of games whose tensors live on another device than the games; they play as they would without it.

    Attributes:
        games: The batch itself.
    """

    def __init__(self, games: BatchedEnv, device: str | torch.device) -> None:
        """Take over a batch; closing the bridge closes it.

        Raises:
            DeviceError: The device is not here.
        """
        self.games, self.spec, self.num_envs = games, games.spec, games.num_envs
        self.first_game, self.warnings = games.first_game, games.warnings
        self.device = resolve_device(device, self.spec.id, ("cpu", "cuda"))
        self._pinned = "cuda" in (self.device.type, games.device.type)
        self._buffers: _Buffers | None = None
        self._actions: Tensor | None = None

    @property
    def seed(self) -> int:  # type: ignore[override]  # a reset may change that of the games
        """Seed of all random streams."""
        return self.games.seed

    @property
    def games_device(self) -> torch.device:
        """Device that the games are played on."""
        return self.games.device

    @property
    def unwrapped(self) -> BatchedEnv:
        """The games of the world; see `BatchedEnv.unwrapped`."""
        return self.games.unwrapped

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start new episodes; see `BatchedEnv.reset`."""
        self._check_reset(games, seed)
        return self._send(self.games.reset(None if games is None else games.to(self.games.device), seed=seed))

    def _advance(self, actions: Tensor) -> StepResult:
        if self._actions is None or self._actions.dtype != actions.dtype:
            self._actions = torch.empty(actions.shape, dtype=actions.dtype, pin_memory=self._pinned)
        self._actions.copy_(actions)  # waits until the learner has chosen them
        result = self.games.step(self._actions.to(self.games.device))
        return self._prepared(result.observations).send_step(result)

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state, on the device of the games; see `BatchedEnv.snapshot`."""
        return self.games.snapshot()

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Take the state of `snapshot`; see `BatchedEnv.restore`."""
        return self._send(self.games.restore(snapshot))

    def bots(self, names: Sequence[str]) -> Bots:
        """Make scripted players of the given names; see `BatchedEnv.bots`."""
        return _BridgedBots(self.games.bots(names), self.games.device)

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one game; see `BatchedEnv.render`."""
        return self.games.render(game)

    def close(self) -> None:
        """Close the games."""
        self.games.close()

    def _prepared(self, observations: Observations) -> "_Buffers":
        if self._buffers is None:
            self._buffers = _Buffers(self, observations, pinned=self._pinned)
        return self._buffers

    def _send(self, observations: Observations) -> Observations:
        return self._prepared(observations).send_observations(observations)


class _BridgedBots:
    """Scripted players that act where the games are."""

    def __init__(self, bots: Bots, device: torch.device) -> None:
        self.names, self._bots, self._device = bots.names, bots, device

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Write the bots' actions; see `Bots.act`."""
        own = actions.to(self._device, copy=True)
        self._bots.act(assignment.to(self._device), own)
        actions.copy_(own)


class _Buffers:
    """The host buffers, the buffer on the learner's device, and views of what lies where in them.

    Observations come first, then what else a step gives, final observations last: what is sent is always a prefix.
    """

    def __init__(self, env: DeviceBridge, observations: Observations, *, pinned: bool) -> None:
        spec, games = env.spec, env.num_envs
        self._spec, self._names = spec, tuple(observations)
        entries = [(tensor.shape, tensor.dtype) for tensor in observations.values()]
        numbers = [((games, spec.seats, len(names)), torch.float32) for names in (spec.events, spec.state_metrics)]
        ends = [((games,), torch.bool)] * 2
        layout = [*entries, *ends, *numbers, *entries]
        places, size = _places(layout)
        self._ends = places[len(entries)], places[-len(entries)], size  # of the three prefixes
        on_host = [torch.empty(size, dtype=torch.uint8, pin_memory=pinned) for _ in range(2)]
        on_device = torch.empty(size, dtype=torch.uint8, device=env.device)
        self._host, self._device = on_host, on_device
        self._host_views = [_views(buffer, layout, places) for buffer in on_host]
        views = _views(on_device, layout, places)
        count = len(entries)
        seen, (terminated, truncated, events, metrics), final = views[:count], views[count:-count], views[-count:]
        self.observations = dict(zip(self._names, seen, strict=True))
        self._result = StepResult(
            observations=self.observations,
            terminated=terminated,
            truncated=truncated,
            final_observations=dict(zip(self._names, final, strict=True)),
            events=Columns(events, spec.events),
            state_metrics=Columns(metrics, spec.state_metrics),
        )
        self._nothing = torch.empty((games, spec.seats, 0))
        self._sent: list[torch.cuda.Event | None] = [None, None]
        self._next = 0

    def send_observations(self, observations: Observations) -> Observations:
        """Send observations alone."""
        self._send([observations[name] for name in self._names], self._ends[0])
        return self.observations

    def send_step(self, result: StepResult) -> StepResult:
        """Send what a step gave; final observations only if a game ended."""
        seen = [result.observations[name] for name in self._names]
        numbers = self._packed(result.events, self._spec.events)
        metrics = self._packed(result.state_metrics, self._spec.state_metrics)
        rest = [result.terminated, result.truncated, numbers, metrics]
        if bool(result.ended.any()):
            self._send([*seen, *rest, *(result.final_observations[name] for name in self._names)], self._ends[2])
        else:
            self._send([*seen, *rest], self._ends[1])
        return replace(self._result, any_truncated=bool(result.truncated.any()))

    def _packed(self, columns: Mapping[str, Tensor], names: Sequence[str]) -> Tensor:
        return packed(columns, names) if names else self._nothing

    def _send(self, tensors: Sequence[Tensor], end: int) -> None:
        slot, self._next = self._next, 1 - self._next
        sent = self._sent[slot]
        if sent is not None:
            sent.synchronize()  # of the step before the last: it has long arrived
        for view, tensor in zip(self._host_views[slot], tensors, strict=False):  # a prefix of all views
            view.copy_(tensor)
        self._device[:end].copy_(self._host[slot][:end], non_blocking=True)
        if self._device.is_cuda:
            event = sent or torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record(torch.cuda.current_stream(self._device.device))
            self._sent[slot] = event


_Layout = Sequence[tuple[Sequence[int], torch.dtype]]


def _places(layout: _Layout) -> tuple[list[int], int]:
    """Return where each tensor begins, in bytes, and where the last one ends."""
    places, end = [], 0
    for shape, dtype in layout:
        places.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
        end = places[-1] + torch.Size(shape).numel() * dtype.itemsize
    return places, end


def _views(buffer: Tensor, layout: _Layout, places: Sequence[int]) -> list[Tensor]:
    return [
        buffer[place : place + torch.Size(shape).numel() * dtype.itemsize].view(dtype).view(torch.Size(shape))
        for (shape, dtype), place in zip(layout, places, strict=True)
    ]
