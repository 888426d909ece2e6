"""Scripted players of City: random, waiting, a profile's plan, and strategies that see the embedded game's truth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.core.random import stream_hash, stream_hash_tensor, uniform
from ludus.envs.spaces import draw_actions
from ludus.worlds.city.backend import CityBackend
from ludus.worlds.city.strategies import STRATEGIES, Advice, Question

if TYPE_CHECKING:
    from ludus.worlds.city.env import CityEnv

# Name of a bot -> its strategy; `random` itself draws from all actions of the environment.
STRATEGY_BOTS = {"random-tools" if name == "random" else name: name for name in STRATEGIES}
_ANY_GAME = ("random", "wait")
PLAN = "plan"
_WAIT = (0, 0)


def bot_names(backend: CityBackend) -> tuple[str, ...]:
    """Return the names of the scripted players of a backend."""
    planned = () if backend.plan is None else (PLAN,)
    return (*_ANY_GAME, *STRATEGY_BOTS) if backend.advises else (*_ANY_GAME, *planned)


class CityBots:
    """Scripted players of `city-v1`; what they remember lives in the environment."""

    def __init__(self, env: "CityEnv", names: Sequence[str]) -> None:
        valid = bot_names(env.backend)
        for name in names:
            if name not in valid:
                raise UnknownNameError("bot of city-v1", name, valid)
        self.names, self._env = tuple(names), env

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Write the bots' actions; see `ludus.envs.base.Bots`."""
        for index, name in enumerate(self.names):
            games = torch.nonzero(assignment[:, 0] == index).flatten().tolist()
            if not games:
                continue
            if name == "random":
                decisions = self._random()[games, 0]
            elif name == "wait":
                decisions = torch.zeros(2)
            elif name == PLAN:
                decisions = torch.tensor([self._planned(game) for game in games])
            else:
                advised = self._env.backend.advise([self._question(name, game) for game in games])
                decisions = torch.tensor([self._decision(*each) for each in zip(games, advised, strict=True)])
            actions[games, 0] = decisions.to(actions.dtype)

    def _random(self) -> Tensor:
        env = self._env
        games = torch.arange(env.num_envs)
        keys = (env.first_game + games, torch.from_numpy(env.episode), torch.from_numpy(env.tracker.step))
        drawn = stream_hash_tensor(env.seed, *(key.unsqueeze(1) for key in keys), torch.arange(2))
        return draw_actions(env.spec.choices, env.mask(), uniform(drawn).unsqueeze(1))

    def _planned(self, game: int) -> tuple[int, int]:
        """Return the next step of the profile's plan, on a lot beside the town where nothing was tried."""
        env, plan, sites = self._env, self._env.backend.plan, self._env.sites
        if plan is None or sites is None:
            return _WAIT
        catalogue, tried = env.backend.catalogue, sites.tried[game]
        missing = [step for step in plan.first if not sites.done[game, catalogue.number(step.build)]]
        first = {catalogue.number(step.build) for step in plan.first}
        built = sum(int(count) for kind, count in enumerate(sites.built[game]) if kind not in first)
        step = missing[0] if missing else plan.then[built % len(plan.then)]
        rows, columns = np.divmod(np.arange(catalogue.cells), catalogue.columns)
        across, down = step.toward[0] * (catalogue.columns - 1), step.toward[1] * (catalogue.rows - 1)
        far = np.abs(columns - across) + np.abs(rows - down)
        cell, kind = int(np.where(sites.allowed("beside")[game], far, np.inf).argmin()), catalogue.number(step.build)
        return (kind, cell) if bool(env.mask()[game, 0, kind]) and not tried[cell] else _WAIT

    def _question(self, name: str, game: int) -> Question:
        env = self._env
        keys = (env.first_game + game, int(env.episode[game]), int(env.tracker.step[game]))
        column, row = env.town_middles[game].tolist()
        return Question(STRATEGY_BOTS[name], game, stream_hash(env.seed, *keys), (column, row))

    def _decision(self, game: int, advice: Advice) -> tuple[int, int]:
        """Remember what a strategy wants to, and return its decision, or what makes it possible."""
        env, catalogue = self._env, self._env.backend.catalogue
        env.town_middles[game] = advice.middle
        number = catalogue.number(advice.kind) if advice.kind in catalogue else 0
        if bool(env.mask()[game, 0, number]) and not (number == 0 and self._is_covered(game)):
            return number, advice.cell if catalogue.uses_cell[number] else 0
        return (catalogue.number("escape"), 0) if self._is_covered(game) and "escape" in catalogue else _WAIT

    def _is_covered(self, game: int) -> bool:
        sight = self._env.backend.sight
        return bool(sight.dialog[game] or sight.window[game] or sight.menu[game] >= 0)
