"""A test bench for Rocket's physics: cars and a ball at chosen states, without match, pads or clock.

`Lab` steps free physics, `drive` records the track of a lone car, and `arena_at` samples the arena's distance function.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import warp as wp
from torch import Tensor

from ludus.envs.warp_tools import struct_array, struct_views, struct_words
from ludus.worlds.rocket.kernels.arena import arena_distance
from ludus.worlds.rocket.kernels.ball import bounce_ball, clamp_ball, move_ball, push_ball
from ludus.worlds.rocket.kernels.car import advance_car, finish_car, move_car
from ludus.worlds.rocket.kernels.car_car import collide_cars
from ludus.worlds.rocket.kernels.contacts import collide_body, hit_ball
from ludus.worlds.rocket.kernels.controls import press
from ludus.worlds.rocket.kernels.structs import PHYSICS, Ball, Car, ControlRow
from ludus.worlds.rocket.rules import BALL_REST_Z, CAR_REST_Z, CONTROLS, Control

wp.set_module_options(PHYSICS)

Piece = tuple[int, Mapping[Control, float]]  # ticks, and the controls that are held; all others are 0


@wp.kernel
def arena_kernel(
    places: wp.array(dtype=wp.vec3f),  # type: ignore[valid-type]
    surfaces: wp.array(dtype=wp.vec4f),  # type: ignore[valid-type]
) -> None:
    """Write normal and distance of the arena at places."""
    index = wp.tid()
    surfaces[index] = arena_distance(places[index])


@wp.kernel
def lab_kernel(
    cars: wp.array2d(dtype=Car),  # type: ignore[valid-type]
    balls: wp.array(dtype=Ball),  # type: ignore[valid-type]
    controls: wp.array2d(dtype=ControlRow),  # type: ignore[valid-type]
    contacts: wp.array(dtype=wp.int32),  # type: ignore[valid-type]
    ticks: int,
) -> None:
    """Advance every game by some ticks, in the order of a match's tick.

    Args:
        cars: `(games, seats)`.
        balls: `(games,)`.
        controls: `(games, seats)`, held for all of the ticks.
        contacts: `(games,)`; collects every flag of `car_car.Contact` that came up.
        ticks: How many.
    """
    game = wp.tid()
    seats = cars.shape[1]
    for _ in range(ticks):
        ball = balls[game]
        for seat in range(seats):
            press(cars[game, seat], controls[game, seat])
            advance_car(cars[game, seat])
        push_ball(ball)
        for seat in range(seats):
            collide_body(cars[game, seat])
        bounce_ball(ball)
        extra = wp.vec3f(0.0, 0.0, 0.0)
        for seat in range(seats):
            extra = extra + hit_ball(cars[game, seat], ball)  # type: ignore[operator]
        for seat in range(seats):
            for other in range(seat + 1, seats):
                met = collide_cars(cars[game, seat], cars[game, other], seat, other)
                contacts[game] = contacts[game] | met
        move_ball(ball)
        ball.velocity = ball.velocity + extra
        clamp_ball(ball)
        balls[game] = ball
        for seat in range(seats):
            move_car(cars[game, seat])
            finish_car(cars[game, seat])


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
                wp.from_torch(self.controls, dtype=ControlRow),
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


@dataclass(frozen=True, slots=True)
class Track:
    """What a car did: values before the first tick and after each of them.

    Attributes:
        position: `(ticks + 1, 3)`, uu.
        velocity: `(ticks + 1, 3)`, uu/s.
        spin: `(ticks + 1, 3)`, rad/s in world axes.
        rotation: `(ticks + 1, 4)`, quaternions x, y, z, w.
        boost: `(ticks + 1,)`.
        wheels: `(ticks + 1,)`, how many touch.
    """

    position: Tensor
    velocity: Tensor
    spin: Tensor
    rotation: Tensor
    boost: Tensor
    wheels: Tensor

    @property
    def speed(self) -> Tensor:
        """Speed in any direction, `(ticks + 1,)`."""
        return self.velocity.square().sum(dim=1).sqrt()

    @property
    def way(self) -> Tensor:
        """Distance from the start, as the crow flies, `(ticks + 1,)`."""
        return (self.position - self.position[0]).square().sum(dim=1).sqrt()

    @property
    def forward(self) -> Tensor:
        """Where the nose points, `(ticks + 1, 3)`."""
        x, y, z, w = self.rotation.unbind(1)
        return torch.stack((w * w + x * x - y * y - z * z, 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)), dim=1)

    @property
    def forward_speed(self) -> Tensor:
        """Speed along the nose, `(ticks + 1,)`."""
        return (self.velocity * self.forward).sum(dim=1)


def lone_car(y: float = -3000.0, z: float = CAR_REST_Z, speed: float = 0.0, boost: float = 100.0) -> Lab:
    """A car that heads toward orange at a speed, with nothing in its way; the ball rests far off."""
    lab = Lab()
    lab.cars["position"][0, 0] = torch.tensor([0.0, y, z])
    lab.cars["velocity"][0, 0, 1] = speed
    lab.cars["boost"][:] = boost
    lab.ball["position"][0] = torch.tensor([-3000.0, 3000.0, 1500.0])
    lab.ball["asleep"][:] = 1
    return lab


def drive(lab: Lab, *pieces: Piece) -> Track:
    """Holds the controls of each piece for its ticks, one piece after the other."""
    names = ("position", "velocity", "spin", "rotation", "boost", "wheels")
    rows = [[lab.cars[name][0, 0].clone() for name in names]]
    for ticks, controls in pieces:
        lab.controls.zero_()
        for control, value in controls.items():
            lab.controls[:, 0, control] = value
        for _ in range(ticks):
            lab.step()
            rows.append([lab.cars[name][0, 0].clone() for name in names])
    return Track(*(torch.stack(column) for column in zip(*rows, strict=True)))
