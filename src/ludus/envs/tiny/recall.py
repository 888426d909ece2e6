"""`recall-v1`: see a cue once, answer it later. Only an agent with memory can do better than guessing."""

import numpy as np
import torch
from gymnasium import spaces
from pydantic import Field
from torch import Tensor

from ludus.envs.base import EnvRequest, EnvSpec, Observations
from ludus.envs.settings import EnvSettings, read_settings
from ludus.envs.tiny.base import State, TinyEnv, one_hot


class RecallSettings(EnvSettings):
    """Settings of `recall-v1`.

    Attributes:
        cues: Number of different cues, and of answers.
        delay: Frames from the cue to the question; an episode has `delay + 1` steps.
    """

    cues: int = Field(default=3, ge=2, le=1024)
    delay: int = Field(default=5, ge=1)


class RecallEnv(TinyEnv):
    """The first frame shows a cue; the last frame asks for it.

    Observation, entry `vector`, float32:

    | index | field | range |
    |---|---|---|
    | 0 ... cues-1 | the cue, one-hot, in the first frame; zeros later | 0 or 1 |
    | cues | 1 in the frame whose action is the answer | 0 or 1 |

    Action, `Discrete(cues)`: the answer; before the last frame it does nothing.

    Events: `reward`, 1 for the right answer in the last frame, else 0.

    Start: a cue drawn evenly.

    End: terminated by the answer, after `delay + 1` steps. The observation after it shows nothing.

    Best play: return = 1. Without memory: `1 / cues`.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(RecallSettings, request.config, "recall-v1")
        self._cues, self._delay = settings.cues, settings.delay
        spec = EnvSpec(
            name="recall",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict({"vector": spaces.Box(0.0, 1.0, (settings.cues + 1,), np.float32)}),
            action_space=spaces.Discrete(settings.cues),
            rate_hz=10.0,
            step_limit=settings.delay + 1,
            events=("reward",),
        )
        super().__init__(spec, request)

    def _begin(self) -> State:
        return {"cue": self._hash(1)[:, 0] % self._cues}

    def _asked(self) -> Tensor:
        return self._counters["frame"] == self._delay

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        right = self._asked() & (actions[:, 0] == self._state["cue"])
        return {"reward": right.to(torch.float32).unsqueeze(1)}, torch.zeros_like(right)

    def _observe(self) -> Observations:
        shown = self._state["cue"].masked_fill(self._counters["frame"] != 0, -1)
        asked = self._asked().to(torch.float32).unsqueeze(1)
        return {"vector": torch.cat([one_hot(shown, self._cues), asked], dim=1).unsqueeze(1)}


def make(request: EnvRequest) -> RecallEnv:
    """Makes a batch of `recall-v1`."""
    return RecallEnv(request)
