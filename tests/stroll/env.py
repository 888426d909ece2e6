"""A world for tests, as plain as a walk can be: one seat on the host, two legs that push, a mirror and trials."""

import numpy as np
import torch
from gymnasium import spaces
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from ludus.core.random import uniform
from ludus.envs.base import EnvRequest, EnvSpec, Mirror, Observations, Reflection
from ludus.envs.settings import EnvSettings, read_settings
from ludus.envs.tiny.base import State, TinyEnv

RATE_HZ = 10.0
MIRROR = Mirror({"vector": Reflection((1, 0, 2), (1.0, 1.0, -1.0))}, Reflection((1, 0), (1.0, 1.0)))


class Weather(BaseModel):
    """What blows against the walker."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    wind: float = 0.0
    gusts: float = Field(default=0.0, ge=0.0)


class StrollSettings(EnvSettings):
    """Settings of `stroll-v1`."""

    step_limit: int = Field(default=20, ge=1)
    weather: Weather = Weather()


class StrollEnv(TinyEnv):
    """Both legs push forward by their mean; what they push differently turns the walker, who falls at an angle of 1."""

    def __init__(self, request: EnvRequest) -> None:
        self.settings = read_settings(StrollSettings, request.config, "stroll-v1")
        high = np.array([1, 1, 2], dtype=np.float32)
        spec = EnvSpec(
            name="stroll",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict({"vector": spaces.Box(-high, high, dtype=np.float32)}),
            action_space=spaces.Box(-1.0, 1.0, (2,), np.float32),
            rate_hz=RATE_HZ,
            step_limit=self.settings.step_limit,
            events=("progress", "fell"),
            state_metrics=("angle",),
            device_types=("cpu",),
            mirror=MIRROR,
        )
        super().__init__(spec, request, truncates=True)

    def _begin(self) -> State:
        angle = 0.2 * uniform(self._hash(1)) - 0.1
        return {"legs": torch.zeros(self.num_envs, 2), "angle": angle}

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        legs, weather = actions[:, 0].clamp(-1.0, 1.0), self.settings.weather
        angle = self._state["angle"] + 0.3 * (legs[:, 1:] - legs[:, :1])
        self._state["legs"], self._state["angle"] = legs, angle.clamp(-2.0, 2.0)
        fell = angle.abs() > 1.0
        gust = weather.gusts * uniform(self._hash(2)[:, 1:])
        progress = (legs.mean(1, keepdim=True) - weather.wind - gust) * torch.cos(angle) / RATE_HZ
        return {"progress": progress, "fell": fell.float()}, fell[:, 0]

    def _observe(self) -> Observations:
        return {"vector": torch.cat((self._state["legs"], self._state["angle"]), dim=1).unsqueeze(1)}

    def _measure(self) -> dict[str, Tensor]:
        return {"angle": self._state["angle"]}


def make(request: EnvRequest) -> StrollEnv:
    """Makes a batch of `stroll-v1`."""
    return StrollEnv(request)
