"""Drives a lone car through a list of controls and keeps its track, for measurements and tests."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ludus.envs.rocket.lab import Lab
from ludus.envs.rocket.rules import CAR_REST_Z, Control

Piece = tuple[int, Mapping[Control, float]]  # ticks, and the controls that are held; all others are 0


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
