"""Checks a state before a kernel sees it: kernels use some of its numbers as places in arrays, and look at none twice.

A snapshot may come from a stranger's checkpoint, or from an environment with other settings. A wrong number in it must
be an error here: a kernel would read or write beyond its arrays, or observations would leave their space.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.core.errors import SnapshotError
from ludus.envs.rocket.config import RocketConfig
from ludus.envs.rocket.kernels.structs import Ball, Car, Match
from ludus.envs.rocket.layout import BIG, PAD_COUNT
from ludus.envs.rocket.rules import (
    BACK_Y,
    BALL_MAX_SPEED,
    BALL_MAX_SPIN,
    BOOST_MAX,
    CAR_MAX_SPEED,
    CAR_MAX_SPIN,
    CEILING_Z,
    DEMOLITION_S,
    GOAL_DEPTH,
    SIDE_X,
    TICK_HZ,
)
from ludus.envs.rocket.setters import Setter
from ludus.envs.warp_tools import struct_views

_ROUNDING = 1.001
_SLACK = 100.0  # how far anything may be inside a wall, uu


def check_state(snapshot: Mapping[str, Tensor], config: RocketConfig) -> None:
    """Raises SnapshotError unless a state can be one of an environment with these settings."""
    cars = struct_views(snapshot["cars"].contiguous(), Car)
    balls = struct_views(snapshot["balls"].contiguous(), Ball)
    matches = struct_views(snapshot["matches"].contiguous(), Match)
    for kind, views in (("car", cars), ("ball", balls), ("match", matches)):
        for name, values in views.items():
            if values.is_floating_point() and not bool(torch.isfinite(values).all()):
                raise SnapshotError(f"snapshot of rocket: {kind} {name} has a value that is not finite")
    _check_cars(cars, config)
    _check_motion("ball", balls, BALL_MAX_SPEED, BALL_MAX_SPIN)
    last = config.seats - 1
    for name in ("last_touch", "last_blue", "last_orange", "before_blue", "before_orange", "shot_seat"):
        _within(f"match {name}", matches[name], -1, last)
    _within("match setter", matches["setter"], 0, max(Setter))
    _within("match shot_team", matches["shot_team"], 0, 1)
    _within("match kickoff", matches["kickoff"], 0, 1)
    _within("match episode", matches["episode"], 0, 2**31 - 2)
    _within("match tick", matches["tick"], 0, 2**30)
    _within("match step", matches["step"], 0, 2**30)
    for name in ("blue_goals", "orange_goals"):
        _within(f"match {name}", matches[name], 0, 2**20)
    latest = matches["tick"].unsqueeze(-1) + round(BIG.back_s * TICK_HZ)
    _within("time until a pad is back, in ticks,", snapshot["pads"] - latest, -(2**30), 0)


def _check_cars(cars: Mapping[str, Tensor], config: RocketConfig) -> None:
    teams = torch.tensor([0] * config.blue + [1] * config.orange, device=cars["team"].device)
    _within("difference of a car's team from its seat's", cars["team"] - teams, 0, 0)
    _within("car inside_pad", cars["inside_pad"], -1, PAD_COUNT - 1)
    _within("car bump_seat", cars["bump_seat"], -1, config.seats - 1)
    _within("car wheels", cars["wheels"], 0, 4)
    _within("car boost", cars["boost"], 0, BOOST_MAX * _ROUNDING)
    _within("car demolished_s", cars["demolished_s"], 0, DEMOLITION_S)
    _within("size of a car's rotation", cars["rotation"].norm(dim=-1), 0.99, 1.01)
    for name in ("throttle", "steer", "pitch", "yaw", "roll"):
        _within(f"car {name}", cars[name], -1, 1)
    flags = ("jump", "boost_key", "handbrake", "jump_before", "supersonic", "on_ground", "jumping", "jumped")
    for name in (*flags, "double_jumped", "dodged", "dodging", "touching_ball"):
        _within(f"car {name}", cars[name], 0, 1)
    _check_motion("car", cars, CAR_MAX_SPEED, CAR_MAX_SPIN)


def _check_motion(kind: str, views: Mapping[str, Tensor], max_speed: float, max_spin: float) -> None:
    position = views["position"]
    _within(f"{kind} x", position[..., 0].abs(), 0, SIDE_X + _SLACK)
    _within(f"{kind} y", position[..., 1].abs(), 0, BACK_Y + GOAL_DEPTH + _SLACK)
    _within(f"{kind} z", position[..., 2], -_SLACK, CEILING_Z + _SLACK)
    _within(f"{kind} speed", views["velocity"].norm(dim=-1), 0, max_speed * _ROUNDING)
    _within(f"{kind} spin", views["spin"].norm(dim=-1), 0, max_spin * _ROUNDING)


def _within(name: str, values: Tensor, low: float, high: float) -> None:
    wrong = values[(values < low) | (values > high)]
    if wrong.numel():
        raise SnapshotError(
            f"snapshot of rocket: {name} is {wrong[0].item():g}, valid: {low:g} to {high:g}; "
            "restore it in an environment with the settings it was taken with"
        )
