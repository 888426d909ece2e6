"""Scripted players of City: chance, patience and, in the embedded game, the strategies that see the truth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.core.random import stream_hash, stream_hash_tensor, uniform
from ludus.envs.choices import draw_actions
from ludus.envs.city.embedded_table import EmbeddedTable
from ludus.envs.city.game.rules import Tool
from ludus.envs.city.strategies import Strategy, TaxChange, Wish, make_strategy
from ludus.envs.city.table import CityTable

if TYPE_CHECKING:
    from ludus.envs.city.env import CityEnv

# Name of a bot -> its strategy.
STRATEGY_BOTS = {
    "never-build": "never-build",
    "always-zone": "always-zone",
    "random-tools": "random",
    "high-tax": "high-tax",
    "greedy": "greedy",
    "balanced": "balanced",
}
_ANY_GAME = ("random", "wait")
_WAIT = (0, 0)


def bot_names(table: CityTable) -> tuple[str, ...]:
    """Returns the names of the scripted players of a table of games."""
    return (*_ANY_GAME, *STRATEGY_BOTS) if isinstance(table, EmbeddedTable) else _ANY_GAME


class CityBots:
    """Scripted players of `city-v1`; what they remember lives in the environment."""

    def __init__(self, env: "CityEnv", names: Sequence[str]) -> None:
        valid = bot_names(env.table)
        for name in names:
            if name not in valid:
                raise UnknownNameError("bot of city-v1", name, valid)
        self.names, self._env = tuple(names), env
        self._strategies: dict[tuple[str, int], Strategy] = {}

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Writes the bots' actions; see `ludus.envs.base.Bots`."""
        for index, name in enumerate(self.names):
            chosen = assignment[:, 0] == index
            if not bool(chosen.any()):
                continue
            if name == "random":
                actions[chosen] = self._random()[chosen].to(actions.dtype)
                continue
            for game in torch.nonzero(chosen).flatten().tolist():
                played = _WAIT if name == "wait" else self._strategic(name, game)
                actions[game, 0] = torch.tensor(played, dtype=actions.dtype)

    def _random(self) -> Tensor:
        env = self._env
        games = torch.arange(env.num_games)
        keys = (env.first_game + games, torch.from_numpy(env.episode), torch.from_numpy(env.tracker.step))
        drawn = stream_hash_tensor(env.seed, *(key.unsqueeze(1) for key in keys), torch.arange(2))
        return draw_actions(env.spec.choices, env.mask(), uniform(drawn).unsqueeze(1))

    def _strategic(self, name: str, game: int) -> tuple[int, int]:
        """Asks a strategy what it wants and returns the decision that brings it nearer."""
        env, catalogue = self._env, self._env.table.catalogue
        strategy = self._strategy(name, game)
        keys = (env.first_game + game, int(env.episode[game]), int(env.tracker.step[game]))
        strategy.random = np.random.default_rng(stream_hash(env.seed, *keys))
        column, row = env.town_middles[game].tolist()
        strategy.plan.middle = (column, row) if column >= 0 else None
        wish = strategy.wish()
        env.town_middles[game] = strategy.plan.middle or (-1, -1)
        kind, cell = self._decision(strategy, wish)
        allowed = env.mask()[game, 0]
        number = catalogue.number(kind) if kind in catalogue else 0
        if bool(allowed[number]) and not (number == 0 and self._is_covered(game)):
            return number, cell if catalogue.uses_cell[number] else 0
        return (catalogue.number("escape"), 0) if self._is_covered(game) and "escape" in catalogue else _WAIT

    def _strategy(self, name: str, game: int) -> Strategy:
        table = self._env.table
        if (name, game) not in self._strategies and isinstance(table, EmbeddedTable):
            self._strategies[name, game] = make_strategy(STRATEGY_BOTS[name], table.games, game)
        return self._strategies[name, game]

    def _decision(self, strategy: Strategy, wish: Wish) -> tuple[str, int]:
        """Returns kind and cell of a wish; a cell that is not in view is moved toward first."""
        if wish is None:
            return "wait", 0
        if isinstance(wish, TaxChange):
            return ("tax_up" if wish.step > 0 else "tax_down"), 0
        tool, column, row = wish
        catalogue, state = self._env.table.catalogue, strategy.games.interfaces[strategy.game].state
        across, down = column - state.column, row - state.row
        if not 0 <= across < catalogue.columns:
            return ("camera_left" if across < 0 else "camera_right"), 0
        if not 0 <= down < catalogue.rows:
            return ("camera_up" if down < 0 else "camera_down"), 0
        return ("bulldoze" if tool == Tool.BULLDOZER else tool.name.lower()), down * catalogue.columns + across

    def _is_covered(self, game: int) -> bool:
        sight = self._env.table.sight
        return bool(sight.dialog[game] or sight.window[game] or sight.menu[game] >= 0)
