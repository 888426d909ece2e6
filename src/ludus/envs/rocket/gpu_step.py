"""A decision as a sequence of kernels for a GPU: who is alike is computed side by side."""

from collections.abc import Sequence
from typing import Any

import torch
import warp as wp
from torch import Tensor

from ludus.envs.rocket.kernels.likeness import likeness_kernel
from ludus.envs.rocket.kernels.tables import EventRow
from ludus.envs.rocket.kernels.ticks import alone_kernel, ball_kernel, drive_kernel, end_kernel, rest_kernel
from ludus.envs.warp_tools import Launcher, SizedKernel

DRIVE_BLOCK = 64  # threads that a multiprocessor starts and ends together
REST_BLOCK = 128


def goes_in_step(device: torch.device) -> bool:
    """Whether the threads of a device run in step, so that a decision is best taken apart."""
    return device.type == "cuda"


class GpuStep:
    """The kernels of a decision between reading the controls and looking at the result, and the order of threads.

    Attributes:
        likeness: The launch that numbers cars and games by what they will have to compute; it comes before `play`.
    """

    def __init__(
        self,
        state: Sequence[Any],
        controls: Any,  # noqa: ANN401 - Warp arrays and structs have no static type
        tables: Any,  # noqa: ANN401
        rules: Any,  # noqa: ANN401
        events: Tensor,
        measures: Any,  # noqa: ANN401
        ends: Sequence[Any],
        launcher: Launcher,
        after: Sequence[Any],
    ) -> None:
        """Takes the environment's Warp arrays, cars, balls, matches and pads first, and the tensor of the events.

        The kernels `after` are launched behind those of the decision.
        """
        cars, balls, matches, pads = state
        device, self._events = events.device, events
        counted = wp.from_torch(events, dtype=EventRow)
        games, seats = cars.shape
        self._of_cars = torch.zeros((games, seats), dtype=torch.int16, device=device)
        self._of_games = torch.zeros(games, dtype=torch.uint8, device=device)
        self._car_order = torch.arange(games * seats, device=device)
        self._game_order = torch.arange(games, device=device)
        self._sorted = torch.empty_like(self._of_cars.view(-1)), torch.empty_like(self._of_games)
        numbers = [wp.from_torch(self._of_cars), wp.from_torch(self._of_games)]
        self.likeness = SizedKernel(likeness_kernel, [cars, balls, rules, *numbers], games)
        self._last_ticks = torch.zeros(games, dtype=torch.int32, device=device)
        last_ticks = wp.from_torch(self._last_ticks)
        car_order, game_order, meets = wp.from_torch(self._car_order), wp.from_torch(self._game_order), numbers[1]
        ball = [cars, balls, matches, meets, rules, counted, last_ticks]
        alone = [cars, matches, pads, meets, controls, car_order, tables, rules, counted, last_ticks]
        kernels = [SizedKernel(ball_kernel, ball, games), SizedKernel(alone_kernel, alone, games * seats, DRIVE_BLOCK)]
        rest = [cars, balls, matches, pads, meets, game_order, tables, rules, counted]
        for tick in range(rules.ticks):
            drive = [cars, matches, meets, controls, car_order, rules, counted, tick]
            kernels.append(SizedKernel(drive_kernel, drive, games * seats, DRIVE_BLOCK))
            kernels.append(SizedKernel(rest_kernel, rest, games, REST_BLOCK))
        end = [cars, balls, matches, controls, rules, counted, last_ticks, measures, *ends]
        kernels.append(SizedKernel(end_kernel, end, games))
        self._run = launcher.prepare(games, *kernels, *after)

    def play(self) -> None:
        """Plays the decision, with cars and games that are alike side by side, by the numbers of `likeness`."""
        self._events.zero_()
        torch.sort(self._of_cars.view(-1), out=(self._sorted[0], self._car_order))
        torch.sort(self._of_games, out=(self._sorted[1], self._game_order))
        self._run()
