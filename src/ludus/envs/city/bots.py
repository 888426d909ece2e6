"""Scripted players of City."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.core.random import stream_hash_tensor, uniform
from ludus.envs.choices import draw_actions

if TYPE_CHECKING:
    from ludus.envs.city.env import CityEnv

BOTS = ("random", "wait")


class CityBots:
    """Scripted players of `city-v1`; they remember nothing."""

    def __init__(self, env: "CityEnv", names: Sequence[str]) -> None:
        for name in names:
            if name not in BOTS:
                raise UnknownNameError("bot of city-v1", name, BOTS)
        self.names, self._env = tuple(names), env

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Writes the bots' actions; see `ludus.envs.base.Bots`."""
        played = {"random": self._random, "wait": self._wait}
        for index, name in enumerate(self.names):
            chosen = assignment[:, 0] == index
            if bool(chosen.any()):
                actions[chosen] = played[name]()[chosen].to(actions.dtype)

    def _wait(self) -> Tensor:
        return torch.zeros((self._env.num_games, 1, 2), dtype=torch.int64)

    def _random(self) -> Tensor:
        env = self._env
        games = torch.arange(env.num_games)
        keys = (env.first_game + games, torch.from_numpy(env.episode), torch.from_numpy(env.tracker.step))
        drawn = stream_hash_tensor(env.seed, *(key.unsqueeze(1) for key in keys), torch.arange(2))
        return draw_actions(env.spec.choices, env.mask(), uniform(drawn).unsqueeze(1))
