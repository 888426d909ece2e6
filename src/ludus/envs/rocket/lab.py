"""A bench for the physics: cars and a ball where you want them, no match around; for measurements and tests."""

import torch
import warp as wp
from torch import Tensor

from ludus.envs.rocket.kernels.lab import arena_kernel, lab_kernel
from ludus.envs.rocket.kernels.structs import Ball, Car
from ludus.envs.rocket.rules import BALL_REST_Z, CAR_REST_Z, CONTROLS
from ludus.envs.warp_tools import struct_array, struct_views, struct_words


class Lab:
    """Some games of free physics.

    Attributes:
        cars: Fields of the cars by name, each `(games, seats)` or `(games, seats, n)`, shared with the simulator.
        ball: Fields of the balls, each `(games,)` or `(games, n)`.
        controls: `(games, seats, 8)`, in the order of `rules.Control`.
        contacts: `(games,)`, flags of `car_car.Contact` of all ticks so far.
    """

    def __init__(self, games: int = 1, seats: int = 1, device: str = "cpu") -> None:
        """Places the cars side by side at rest, heading toward orange, and the ball awake in the middle."""
        self._cars = torch.zeros((games, seats, struct_words(Car)), dtype=torch.int32, device=device)
        self._balls = torch.zeros((games, struct_words(Ball)), dtype=torch.int32, device=device)
        self.cars: dict[str, Tensor] = struct_views(self._cars, Car)
        self.ball: dict[str, Tensor] = struct_views(self._balls, Ball)
        self.controls = torch.zeros((games, seats, CONTROLS), device=device)
        self.contacts = torch.zeros(games, dtype=torch.int32, device=device)
        self.cars["rotation"][:] = torch.tensor([0.0, 0.0, 0.5**0.5, 0.5**0.5])
        self.cars["position"][..., 0] = 512.0 * torch.arange(1, seats + 1)
        self.cars["position"][..., 2] = CAR_REST_Z
        self.cars["bump_seat"][:] = -1
        self.cars["inside_pad"][:] = -1
        self.cars["team"][:] = torch.arange(seats) % 2
        self.cars["hit_ticks"][:] = 8
        self.ball["position"][:, 2] = BALL_REST_Z

    def step(self, ticks: int = 1) -> None:
        """Advances all games by some ticks with the present controls."""
        device = str(self._cars.device)
        wp.launch(
            lab_kernel,
            self._cars.shape[0],
            inputs=[
                struct_array(self._cars, Car),
                struct_array(self._balls, Ball),
                wp.from_torch(self.controls),
                wp.from_torch(self.contacts),
                ticks,
            ],
            device=device,
        )


def arena_at(places: Tensor) -> Tensor:
    """The arena's normals into free space and signed distances `(n, 4)` at places `(n, 3)`, uu."""
    given = places.to(torch.float32).contiguous()
    surfaces = torch.zeros((len(given), 4), device=given.device)
    wp.launch(
        arena_kernel,
        len(given),
        inputs=[wp.from_torch(given, dtype=wp.vec3f), wp.from_torch(surfaces, dtype=wp.vec4f)],
        device=str(given.device),
    )
    return surfaces
