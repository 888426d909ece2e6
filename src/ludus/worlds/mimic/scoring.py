"""How close a walker is to its reference, and what it did: the numbers of a step."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ludus.worlds.mimic.body import SIDES, Joint
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.reference import Frame

CARRIES = 0.08  # share of the body's weight on a foot above which it has come down
LIFTED = 0.02  # share below which it has left the ground
SHORTEST_SWING_S = 0.12  # a foot that was off the ground for less has only bounced

STATE = ("right_down", "left_down", "right_air_s", "left_air_s")

GRAVITY_M_S2 = 9.81
POSE_SCALE, VELOCITY_SCALE = 3.0, 0.05  # of the published reward
POSE_SHARE = 0.8
LAG_PER_M = 3.0  # m/s of drift that a metre off the place on stairs counts as much as
POINT_NUMBERS = 12  # numbers of heels and balls in the sensors


class Strikes(NamedTuple):
    """Feet that came down in a step, `(games, 2)` each, right and left."""

    struck: Tensor  # 1 where the foot came down, else 0
    length_m: Tensor  # how far it was in front of the other one then, else 0
    swing_s: Tensor  # how long it was off the ground before, else 0


def follow_feet(state: Tensor, loads: Tensor, points: Tensor, seconds: float) -> tuple[Tensor, Strikes]:
    """Return the next state of the feet, `(games, 4)`, see `STATE`, and those that came down.

    `loads` `(games, 2)` is the share of the body's weight on each foot; `points` `(games, 4, 3)` are heel and ball of
    the right and of the left foot, from the root.
    """
    was_down, air_s = state[:, :2] > 0.5, state[:, 2:]
    is_down = (loads > CARRIES) | (was_down & (loads > LIFTED))
    struck = (is_down & ~was_down & (air_s >= SHORTEST_SWING_S)).float()
    heels = points[:, ::2, 0]
    strikes = Strikes(struck, struck * (heels - heels.flip(1)), struck * air_s)
    air_s = torch.where(is_down, 0.0, air_s + seconds)
    return torch.cat((is_down.float(), air_s), dim=1), strikes


class Scorer:
    """Compares walkers with the reference, and follows their feet and torques over an episode."""

    def __init__(self, walker: Walker, config: MimicConfig, games: int, device: torch.device) -> None:
        self._joints, self._mass_kg = walker.joints, walker.mass_kg
        self._seconds = 1.0 / config.control_rate_hz
        self._feet = torch.zeros(games, len(STATE), device=device)
        self._peaks = torch.zeros(games, len(walker.joints), device=device)

    @staticmethod
    def events(joints: Sequence[Joint]) -> tuple[str, ...]:
        """Return the names of the events that it gives."""
        feet = (f"{name}_{side}" for name in ("strikes", "step", "swing", "stance") for side in SIDES)
        return ("reward", "energy", *feet, *(f"peak_{joint.name}" for joint in joints))

    @staticmethod
    def state_metrics(joints: Sequence[Joint]) -> tuple[str, ...]:
        """Return the names of the measures that it gives."""
        errors = ("pose_error", "velocity_error", "root_error", "effector_error")
        names = (*errors, "power", "mass", "speed", "height", "tilt")
        return (*names, *(f"error_{joint.name}" for joint in joints))

    def restart(self, games: Tensor) -> None:
        """Reset the state of the games in the mask `(games,)`."""
        self._feet.masked_fill_(games.unsqueeze(1), 0.0)
        self._peaks.masked_fill_(games.unsqueeze(1), 0.0)

    def score(
        self,
        positions: Tensor,
        velocities: Tensor,
        angles: Tensor,
        frame: Frame,
        sensors: Tensor,
        lag_m: Tensor | None = None,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return events and measures, one `(games,)` tensor per name.

        `angles` `(games, 3)` are roll, pitch and yaw; `sensors` are heels and balls, loads of the feet, torques.
        `lag_m` `(games,)` is how far it is ahead of where it should be on stairs; None on level ground, where it does
        not matter.
        """
        joints = len(self._joints)
        points, loads, torques = torch.split(sensors, [POINT_NUMBERS, 2, joints], dim=1)
        points = points.reshape(len(points), -1, 3)
        off = positions[:, 7:] - frame.angles
        tilted = angles - frame.root[:, 1:]
        pose = _squares(off) + _squares(tilted)
        turning = velocities[:, 3:6] - frame.root_velocity[:, 3:]
        motion = _squares(velocities[:, 6:] - frame.velocities) + _squares(turning)
        drift = velocities[:, :2] - frame.root_velocity[:, :2]
        root = (10.0 * (positions[:, 2] - frame.root[:, 0])).square() + _squares(drift)
        if lag_m is not None:
            root = root + (LAG_PER_M * lag_m).square()
        power = (torques * velocities[:, 6:]).abs().cumsum(1)[:, -1]
        weight = self._mass_kg * GRAVITY_M_S2
        feet, strikes = follow_feet(self._feet, loads / weight, points, self._seconds)
        self._feet.copy_(feet)
        peaks = torch.maximum(self._peaks, torques.abs())
        grown = peaks - self._peaks
        self._peaks.copy_(peaks)
        like = POSE_SHARE * torch.exp(-POSE_SCALE * pose) + (1.0 - POSE_SHARE) * torch.exp(-VELOCITY_SCALE * motion)
        events = {"reward": like, "energy": power * self._seconds}
        for foot, side in enumerate(SIDES):
            events[f"strikes_{side}"] = strikes.struck[:, foot]
            events[f"step_{side}"] = strikes.length_m[:, foot]
            events[f"swing_{side}"] = strikes.swing_s[:, foot]
            events[f"stance_{side}"] = feet[:, foot] * self._seconds
        state_metrics = {
            "pose_error": pose,
            "velocity_error": motion,
            "root_error": root,
            "effector_error": _squares((points - frame.points).flatten(1)),
            "power": power,
            "mass": torch.full_like(power, self._mass_kg),
            "speed": velocities[:, 0],
            "height": positions[:, 2],
            "tilt": angles[:, :2].abs().amax(1),
        }
        errors = (off * (180.0 / math.pi)).square()
        for joint, peak, error in zip(self._joints, grown.unbind(1), errors.unbind(1), strict=True):
            events[f"peak_{joint.name}"] = peak
            state_metrics[f"error_{joint.name}"] = error
        return events, state_metrics

    def state(self) -> dict[str, Tensor]:
        """Return the live state of the running episodes."""
        return {"feet": self._feet, "peaks": self._peaks}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`."""
        self._feet.copy_(state["feet"])
        self._peaks.copy_(state["peaks"])


def _squares(values: Tensor) -> Tensor:
    """Return the sum of squares over the last axis of `(games, numbers)`; `cumsum` adds in one order in any batch."""
    return values.square().cumsum(1)[:, -1]
