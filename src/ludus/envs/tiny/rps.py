"""`rps-v1`: rock-paper-scissors against a hidden style. Winning takes recognising the opponent."""

from types import MappingProxyType

import numpy as np
import torch
from gymnasium import spaces
from pydantic import Field
from torch import Tensor

from ludus.core.random import uniform
from ludus.envs.base import EnvRequest, EnvSpec, Observations
from ludus.envs.settings import EnvSettings, read_settings
from ludus.envs.tiny.base import State, TinyEnv, one_hot

MOVES = ("rock", "paper", "scissors")  # each beats the one before it
STYLES = ("repeat", "climb", "descend")  # style s plays its last move + s, modulo 3
_STREAMS = 4  # style, first move, whether it slips, what it plays then


class RpsSettings(EnvSettings):
    """Settings of `rps-v1`.

    Attributes:
        rounds: Rounds in an episode.
        noise: Chance that the opponent slips and plays a random move, from which its style then goes on.
    """

    rounds: int = Field(default=16, ge=3)
    noise: float = Field(default=0.0, ge=0.0, le=1.0)


class RpsEnv(TinyEnv):
    """Rock-paper-scissors against an opponent whose style is drawn anew every episode and never shown.

    The three styles are: repeat the last move, climb (rock, paper, scissors, rock ...), descend. The first move is
    drawn evenly, so the last move alone says nothing about the next one: two moves in a row give the style away.

    Observation, entry `vector`, float32, with the blocks `self` and `opponent`:

    | index | block | field | range |
    |---|---|---|---|
    | 0 | self | rounds left / rounds | 0 ... 1 |
    | 1 ... 3 | opponent | its last move, one-hot; zeros before the first round | 0 or 1 |

    Action, `Discrete(3)`: 0 rock, 1 paper, 2 scissors.

    Events: `reward`, 1 for a win, -1 for a loss, 0 for a tie.

    Measures: `style`, the opponent's hidden style (0 repeat, 1 climb, 2 descend), for analysis only.

    Start: style and first move drawn evenly.

    End: terminated after `rounds` rounds.

    Best play: the first two rounds are open (0 on average), then every round is won: `rounds - 2` without noise.
    Without memory: 0 on average, whatever is played.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(RpsSettings, request.config, "rps-v1")
        self._rounds, self._noise = settings.rounds, settings.noise
        spec = EnvSpec(
            name="rps",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict({"vector": spaces.Box(0.0, 1.0, (4,), np.float32)}),
            action_space=spaces.Discrete(3),
            rate_hz=10.0,
            step_limit=settings.rounds,
            events=("reward",),
            measures=("style",),
            blocks=MappingProxyType({"vector": MappingProxyType({"self": (0, 1), "opponent": (1, 4)})}),
        )
        super().__init__(spec, request)

    def _begin(self) -> State:
        style, first = (self._hash(_STREAMS) % 3)[:, :2].unbind(1)
        return {"style": style, "next": first, "last": torch.full_like(first, -1)}

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        state = self._state
        hashes = self._hash(_STREAMS)
        move = torch.where(uniform(hashes[:, 2]) < self._noise, hashes[:, 3] % 3, state["next"])
        # actions - move is 1 for a win, 2 for a loss and 0 for a tie, modulo 3.
        difference = (actions[:, 0] - move) % 3
        reward = torch.where(difference == 2, -1.0, difference.to(torch.float32))
        state["last"], state["next"] = move, (move + state["style"]) % 3
        return {"reward": reward.unsqueeze(1)}, torch.zeros_like(difference, dtype=torch.bool)

    def _observe(self) -> Observations:
        left = 1.0 - self._counters["frame"].to(torch.float32) / self._rounds
        return {"vector": torch.cat([left.unsqueeze(1), one_hot(self._state["last"], 3)], dim=1).unsqueeze(1)}

    def _measure(self) -> dict[str, Tensor]:
        return {"style": self._state["style"].to(torch.float32).unsqueeze(1)}


def make(request: EnvRequest) -> RpsEnv:
    """Makes a batch of `rps-v1`."""
    return RpsEnv(request)
