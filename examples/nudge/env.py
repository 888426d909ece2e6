"""`nudge-v1`: nudge a marble from a random place to the right end of a groove."""

from collections.abc import Mapping

import numpy as np
import torch
from gymnasium import spaces
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
        """Makes the games that are asked for."""
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
            measures=("place",),
        )
        self.num_games, self.seed, self.first_game = request.num_games, request.seed, request.first_game
        self.device = resolve_device(request.device, self.spec.id, self.spec.device_types)
        counter = torch.zeros(self.num_games, dtype=torch.int64, device=self.device)
        self._state = {name: counter.clone() for name in ("seed", "episode", "frame", "place")}
        self.reset(seed=self.seed)

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Starts games anew: those of the mask `(games,)`, or all."""
        if seed is not None:
            self.seed = seed
            self._state["seed"].fill_(seed)
            self._state["episode"].fill_(-1)
        self._restart(torch.ones(self.num_games, dtype=torch.bool, device=self.device) if games is None else games)
        return self._observe()

    def snapshot(self) -> dict[str, Tensor]:
        """Returns the whole state."""
        return {name: tensor.clone() for name, tensor in self._state.items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Takes what `snapshot` gave."""
        check_snapshot(snapshot, self._state, self.spec.id)
        self._state = {name: tensor.clone() for name, tensor in snapshot.items()}
        self.seed = int(self._state["seed"][0])
        return self._observe()

    def _restart(self, games: Tensor) -> None:
        state = self._state
        state["episode"] += games
        state["frame"].masked_fill_(games, 0)
        indices = self.first_game + torch.arange(self.num_games, device=self.device)
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
    """Makes the world, for the registry."""
    return NudgeEnv(request)
