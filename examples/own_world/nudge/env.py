"""`nudge-v1`: nudge a marble from a random place to the right end of a groove."""

from collections.abc import Mapping

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.random import stream_hash_tensor
from ludus.envs.base import BatchedEnv, EnvRequest, EnvSpec, Observations, StepResult, check_snapshot, resolve_device
from ludus.envs.settings import EnvSettings, read_settings

END = 5  # place of the right end; the left one is at -END


class NudgeSettings(EnvSettings):
    """Settings of `nudge-v1`.

    Attributes:
        step_limit: Steps after which an episode is cut off.
    """

    step_limit: int = 20


class NudgeEnv(BatchedEnv):
    """Actions are left, stay and right; the observation is the place of the marble, -1 to 1.

    Events: `arrivals`, 1 at the right end, which ends the episode. Measures: `place`.
    """

    def __init__(self, request: EnvRequest) -> None:
        """Make the games that are asked for."""
        settings = read_settings(NudgeSettings, request.config, "nudge-v1")
        self.spec = EnvSpec(
            name="nudge",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict({"vector": spaces.Box(-1.0, 1.0, (1,), np.float32)}),
            action_space=spaces.Discrete(3),
            rate_hz=10.0,
            step_limit=settings.step_limit,
            events=("arrivals",),
            state_metrics=("place",),
        )
        self.num_envs, self.seed, self.first_game = request.num_envs, request.seed, request.first_game
        self.device = resolve_device(request.device, self.spec.id, self.spec.device_types)
        counter = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        self._state = {name: counter.clone() for name in ("seed", "episode", "frame", "place")}
        self.reset(seed=self.seed)

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Restart games: those of the mask `(games,)`, or all."""
        if seed is not None:
            self.seed = seed
            self._state["seed"].fill_(seed)
            self._state["episode"].fill_(-1)
        self._restart(torch.ones(self.num_envs, dtype=torch.bool, device=self.device) if games is None else games)
        return self._observe()

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state."""
        return {name: tensor.clone() for name, tensor in self._state.items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Restore the state returned by `snapshot()`."""
        check_snapshot(snapshot, self._state, self.spec.id)
        self._state = {name: tensor.clone() for name, tensor in snapshot.items()}
        self.seed = int(self._state["seed"][0])
        return self._observe()

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw a game: a groove, and the marble in it."""
        picture = np.full((64, 352, 3), 40, np.uint8)
        picture[40:48] = 90
        left = 32 * (int(self._state["place"][game]) + END)
        picture[8:40, left : left + 32] = (76, 141, 255)
        return picture

    def _restart(self, games: Tensor) -> None:
        state = self._state
        state["episode"] += games
        state["frame"].masked_fill_(games, 0)
        indices = self.first_game + torch.arange(self.num_envs, device=self.device)
        drawn = stream_hash_tensor(self.seed, indices, state["episode"], 0) % (2 * END - 1) - (END - 1)
        state["place"] = torch.where(games, drawn, state["place"])

    def _observe(self) -> Observations:
        return {"vector": (self._state["place"] / END).view(-1, 1, 1)}

    def _advance(self, actions: Tensor) -> StepResult:
        state = self._state
        state["place"] = (state["place"] + actions[:, 0] - 1).clamp(-END, END)
        state["frame"] += 1
        arrived = state["place"] == END
        truncated = (state["frame"] >= (self.spec.step_limit or 0)) & ~arrived
        final, place = self._observe(), state["place"].float().unsqueeze(1)
        self._restart(arrived | truncated)
        return StepResult(
            self._observe(), arrived, truncated, final, {"arrivals": arrived.float().unsqueeze(1)}, {"place": place}
        )


def make(request: EnvRequest) -> BatchedEnv:
    """Make the world; see `WORLD` in `__init__.py`."""
    return NudgeEnv(request)
