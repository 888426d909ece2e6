"""`point-v1`: push a point mass to a target. Continuous control whose step limit cuts off, not ends."""

import numpy as np
import torch
from gymnasium import spaces
from pydantic import Field
from torch import Tensor

from ludus.core.random import uniform
from ludus.envs.base import EnvRequest, EnvSpec, Mirror, Observations, Reflection
from ludus.envs.settings import EnvSettings, read_settings
from ludus.envs.tiny.base import State, TinyEnv

_TIME_STEP_S = 0.1
_MAX_PUSH = 2.0  # units/s^2 at full action
_MAX_SPEED = 1.0  # units/s an axis
_TARGET_RANGE = 0.8  # targets lie this far inside the walls at 1
# Seen in a mirror along the diagonal from top left to bottom right, (x, y) is (-y, -x).
_MIRROR = Mirror({"vector": Reflection((1, 0, 3, 2, 5, 4), (-1.0,) * 6)}, Reflection((1, 0), (-1.0, -1.0)))


class PointSettings(EnvSettings):
    """Settings of `point-v1`.

    Attributes:
        step_limit: Steps after which a game is cut off.
    """

    step_limit: int = Field(default=50, ge=1)


class PointEnv(TinyEnv):
    """A point mass in a square from -1 to 1 with soft walls (it stops there), pushed along both axes.

    Observation, entry `vector`, float32:

    | index | field | range |
    |---|---|---|
    | 0, 1 | position x, y | -1 ... 1 |
    | 2, 3 | velocity x, y in units/s | -1 ... 1 |
    | 4, 5 | target minus position x, y | -2 ... 2 |

    Action, `Box(-1, 1, (2,))`: push along x and y, 2 units/s^2 at full action; values beyond the range are clipped.

    Events: `reward`, minus the distance to the target after the step, in units.

    Measures: `distance`, to the target.

    Start: position and target drawn evenly (targets within 0.8), at rest.

    End: never by itself; truncated after `step_limit` steps.

    Good play: push by 2 * (target - position) - 2 * velocity; it ends nearer than 0.05.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(PointSettings, request.config, "point-v1")
        high = np.array([1, 1, 1, 1, 2, 2], dtype=np.float32)
        spec = EnvSpec(
            name="point",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict({"vector": spaces.Box(-high, high, dtype=np.float32)}),
            action_space=spaces.Box(-1.0, 1.0, (2,), np.float32),
            rate_hz=1.0 / _TIME_STEP_S,
            step_limit=settings.step_limit,
            events=("reward",),
            measures=("distance",),
            mirror=_MIRROR,
        )
        super().__init__(spec, request, truncates=True)

    def _begin(self) -> State:
        drawn = 2.0 * uniform(self._hash(4)) - 1.0
        position, target = drawn[:, :2], drawn[:, 2:] * _TARGET_RANGE
        return {"position": position, "velocity": torch.zeros_like(position), "target": target}

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        state = self._state
        push = actions[:, 0].clamp(-1.0, 1.0) * _MAX_PUSH
        velocity = (state["velocity"] + push * _TIME_STEP_S).clamp(-_MAX_SPEED, _MAX_SPEED)
        position = state["position"] + velocity * _TIME_STEP_S
        state["velocity"] = velocity.masked_fill(position.abs() > 1.0, 0.0)
        state["position"] = position.clamp(-1.0, 1.0)
        over = torch.zeros(self.num_games, dtype=torch.bool, device=self.device)
        return {"reward": -self._distance()}, over

    def _distance(self) -> Tensor:
        offset = self._state["target"] - self._state["position"]
        # Written out: a norm may add up in another order for another batch size, and bits would differ.
        return torch.sqrt(offset[:, 0] ** 2 + offset[:, 1] ** 2).unsqueeze(1)

    def _observe(self) -> Observations:
        state = self._state
        parts = [state["position"], state["velocity"], state["target"] - state["position"]]
        return {"vector": torch.cat(parts, dim=1).unsqueeze(1)}

    def _measure(self) -> dict[str, Tensor]:
        return {"distance": self._distance()}


def make(request: EnvRequest) -> PointEnv:
    """Makes a batch of `point-v1`."""
    return PointEnv(request)
