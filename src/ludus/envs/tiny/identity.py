"""`identity-v1`: see a cue, answer it. The first thing that any learner must manage."""

import numpy as np
import torch
from gymnasium import spaces
from pydantic import Field
from torch import Tensor

from ludus.envs.base import EnvRequest, EnvSpec, Observations
from ludus.envs.settings import EnvSettings, read_settings
from ludus.envs.tiny.base import State, TinyEnv, one_hot


class IdentitySettings(EnvSettings):
    """Settings of `identity-v1`.

    Attributes:
        cues: Number of different cues, and of answers.
        steps: Cues in an episode.
    """

    cues: int = Field(default=4, ge=2, le=1024)
    steps: int = Field(default=4, ge=1)


class IdentityEnv(TinyEnv):
    """Every frame shows a random cue; the answer that names it is worth 1.

    Observation, entry `vector`, float32:

    | index | field | range |
    |---|---|---|
    | 0 ... cues-1 | the cue of this frame, one-hot | 0 or 1 |

    Action, `Discrete(cues)`: the answer.

    Events: `reward`, 1 for the right answer, else 0.

    Start: a cue drawn evenly. Every later frame draws a new one.

    End: terminated after `steps` answers.

    Best play: return = `steps`. Blind play: `steps / cues`.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(IdentitySettings, request.config, "identity-v1")
        self._cues = settings.cues
        spec = EnvSpec(
            name="identity",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict({"vector": spaces.Box(0.0, 1.0, (settings.cues,), np.float32)}),
            action_space=spaces.Discrete(settings.cues),
            rate_hz=10.0,
            step_limit=settings.steps,
            events=("reward",),
        )
        super().__init__(spec, request)

    def _begin(self) -> State:
        return {}

    def _cue(self) -> Tensor:
        """Returns the cue of this frame, `(games,)`; it is a pure function of the counters, so there is no state."""
        return self._hash(1)[:, 0] % self._cues

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        right = actions[:, 0] == self._cue()
        return {"reward": right.to(torch.float32).unsqueeze(1)}, torch.zeros_like(right)

    def _observe(self) -> Observations:
        return {"vector": one_hot(self._cue(), self._cues).unsqueeze(1)}


def make(request: EnvRequest) -> IdentityEnv:
    """Makes a batch of `identity-v1`."""
    return IdentityEnv(request)
