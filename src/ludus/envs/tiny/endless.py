"""`endless-v1`: a reward of 1 a step for ever, cut off now and then. Its value is known in closed form."""

import numpy as np
import torch
from gymnasium import spaces
from pydantic import Field
from torch import Tensor

from ludus.envs.base import EnvRequest, EnvSpec, Observations
from ludus.envs.settings import EnvSettings, read_settings
from ludus.envs.tiny.base import State, TinyEnv


class EndlessSettings(EnvSettings):
    """Settings of `endless-v1`.

    Attributes:
        step_limit: Steps after which a game is cut off.
        terminates: Whether the limit ends games instead of cutting them off, for comparison.
    """

    step_limit: int = Field(default=10, ge=1)
    terminates: bool = False


class EndlessEnv(TinyEnv):
    """Nothing changes, nothing matters: every step is worth 1.

    It tells a learner that treats truncation as termination from one that does not. With discount g, the value of
    the only state is 1 / (1 - g) if the cut is bootstrapped through; if the cut counts as an end, the value is
    smaller by what would have come after it.

    Observation, entry `vector`, float32:

    | index | field | range |
    |---|---|---|
    | 0 | always 1 | 0 ... 1 |

    Action, `Discrete(2)`: no effect.

    Events: `reward`, 1.

    Start: always the same.

    End: truncated after `step_limit` steps; terminated there instead with `terminates`.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(EndlessSettings, request.config, "endless-v1")
        spec = EnvSpec(
            name="endless",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict({"vector": spaces.Box(0.0, 1.0, (1,), np.float32)}),
            action_space=spaces.Discrete(2),
            rate_hz=10.0,
            step_limit=settings.step_limit,
            events=("reward",),
        )
        super().__init__(spec, request, truncates=not settings.terminates)

    def _begin(self) -> State:
        return {}

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        return {"reward": torch.ones_like(actions, dtype=torch.float32)}, torch.zeros_like(actions[:, 0]).bool()

    def _observe(self) -> Observations:
        return {"vector": torch.ones(self.num_games, 1, 1, device=self.device)}


def make(request: EnvRequest) -> EndlessEnv:
    """Makes a batch of `endless-v1`."""
    return EndlessEnv(request)
