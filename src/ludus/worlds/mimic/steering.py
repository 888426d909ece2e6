"""Walkers that are steered from outside: desired speed, heading and pushes, instead of drawn ones."""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.base import EnvRequest, Observations, StepResult
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.physics import Push
from ludus.worlds.mimic.spec import observed_motions

PUSH_S = 0.1  # how long a push lasts, as in training

# Speeds change by command alone. The impulse is never applied: it makes room for the forces of commands.
_STEERED: Mapping[str, Any] = MappingProxyType(
    {"speed_change_s": 0.0, "physics": "mujoco", "pushes": {"impulse_ns": 1.0}}
)


class SteeredEnv(MimicEnv):
    """Walkers of Mimic on the host that follow commands from outside.

    A heading is a turn of the world: physics on level ground does not know directions, so turning a walker by an angle
    to the right is for its policy the same as having strayed to the right, and it turns back to the left. `headings`
    holds by how much the world was turned: what is `x` for the walker is the direction of its heading on the ground.

    Attributes:
        headings: `(games,)` float64 desired headings in rad, from forward to the left.
    """

    def __init__(self, request: EnvRequest) -> None:
        super().__init__(replace(request, device="cpu", config={**(request.config or {}), **_STEERED}))
        if self.reference.stairs is not None:
            raise UnsupportedError(
                f"motion {self.config.motion} has stairs; walkers are steered, and their gait is analysed, on level "
                "ground: use `ludus demo` or `ludus eval`"
            )
        self.headings = torch.zeros(self.num_envs, dtype=torch.float64)
        self._turns = torch.zeros_like(self.headings)
        self._directions, self._newtons = torch.zeros_like(self.headings), torch.zeros_like(self.headings)
        self._push_steps = torch.zeros(self.num_envs, dtype=torch.long)

    @property
    def speeds_m_s(self) -> tuple[float, float]:
        """The lowest and the highest speed that the reference can walk at."""
        return self.reference.speeds

    @property
    def motions(self) -> tuple[str, ...]:
        """The names of the motions that can be asked for; none where the policy knows a single one."""
        return observed_motions(self.reference.parts)

    def set_motion(self, name: str) -> None:
        """Let all walkers go over into one of `motions`, at the middle of its speeds, now and in later episodes."""
        number = self.motions.index(name)
        motion, state = self._state["motion"], self._state
        state["previous"].copy_(motion)
        state["blend"].copy_((motion == number).float())
        motion.fill_(number)
        self.config = self.config.model_copy(update={"command": name})
        self.set_speed(sum(self.reference.parts[number].speeds) / 2.0)

    def set_speed(self, speed_m_s: float) -> None:
        """Set the desired speed of all walkers, now and in later episodes; it is kept within what the motion has."""
        asked = self.config.command
        low, high = self.reference.parts[self.motions.index(asked)].speeds if asked else self.speeds_m_s
        speed = min(max(speed_m_s, low), high)
        self.config = self.config.model_copy(update={"speed": speed})
        self._state["desired"].fill_(speed)

    def set_turn(self, rad_s: float) -> None:
        """Turn the desired heading of all walkers by so much per second, to the left, from now on."""
        self._turns.fill_(rad_s / self.spec.rate_hz)

    def push(self, directions: Tensor, impulses_ns: Tensor) -> None:
        """Push walkers at the hips for `PUSH_S`, `(games,)` each; 0 N s leaves a walker alone.

        Directions are in rad on the ground, from forward to the left.
        """
        pushed = impulses_ns > 0.0
        lasts = max(1, round(PUSH_S * self.spec.rate_hz))
        newtons = impulses_ns.double() * self.spec.rate_hz / lasts
        self._directions = torch.where(pushed, directions.double(), self._directions)
        self._newtons = torch.where(pushed, newtons, self._newtons)
        self._push_steps = torch.where(pushed, lasts, self._push_steps)

    def force(self, game: int) -> tuple[float, float]:
        """Return the force that pushes a walker now, in N on the ground: forward and to the left."""
        newtons = float(self._newtons[game]) if self._push_steps[game] > 0 else 0.0
        direction = float(self._directions[game])
        return newtons * math.cos(direction), newtons * math.sin(direction)

    def _pushes(self) -> tuple[Push | None, Tensor]:
        """See `MimicEnv`; directions are those in the turned world."""
        active = self._push_steps > 0
        starts = (self._push_steps == max(1, round(PUSH_S * self.spec.rate_hz))).float()
        return Push(self._directions - self.headings, self._newtons * active), starts

    def _advance(self, actions: Tensor) -> StepResult:
        if bool(self._turns.any()):
            self._turn(self._turns)
        result = super()._advance(actions)
        self._push_steps = (self._push_steps - 1).clamp(min=0)
        self._forget(result.ended)
        return result

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """See `MimicEnv.reset`; headings begin at 0, and nothing pushes."""
        everyone = torch.ones(self.num_envs, dtype=torch.bool)
        self._forget(everyone if games is None else games)
        return super().reset(games, seed=seed)

    def _forget(self, games: Tensor) -> None:
        self._push_steps = self._push_steps.masked_fill(games, 0)
        self.headings = self.headings.masked_fill(games, 0.0)

    def _turn(self, turns: Tensor) -> None:
        """See `MimicEnv`; headings turn with what is commanded and with a motion that goes in a curve."""
        self.headings = self.headings + turns
        super()._turn(turns)
