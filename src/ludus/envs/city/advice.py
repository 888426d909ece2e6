"""What strategies advise in embedded games, asked for where the games are: they see the truth."""

from typing import NamedTuple

import numpy as np

from ludus.envs.city.catalogue import Catalogue
from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.game.rules import Tool
from ludus.envs.city.strategies import Strategy, TaxChange, Wish, make_strategy

NOWHERE = (-1, -1)


class Question(NamedTuple):
    """Asks what a strategy would do now.

    Attributes:
        strategy: Its name.
        game: Number of the game.
        seed: Of what it leaves to chance.
        middle: Column and row that the town is planned around; `NOWHERE` before that is settled.
    """

    strategy: str
    game: int
    seed: int
    middle: tuple[int, int]


class Advice(NamedTuple):
    """The decision that brings a strategy nearer to what it wants.

    Attributes:
        kind: Name of the kind of action; it may be one that the world does not have.
        cell: Number of the cell, 0 where none is needed.
        middle: What is to be remembered of the town for the next question.
    """

    kind: str
    cell: int
    middle: tuple[int, int]


class Advisers:
    """The strategies of a batch of games; all that they remember is in the questions."""

    def __init__(self, games: CityGames, catalogue: Catalogue) -> None:
        self._games, self._catalogue = games, catalogue
        self._strategies: dict[tuple[str, int], Strategy] = {}

    def advise(self, question: Question) -> Advice:
        """Answers a question.

        Raises:
            UnknownNameError: There is no such strategy.
        """
        key = question.strategy, question.game
        if key not in self._strategies:
            self._strategies[key] = make_strategy(question.strategy, self._games, question.game)
        strategy = self._strategies[key]
        strategy.random = np.random.default_rng(question.seed)
        strategy.plan.middle = question.middle if question.middle[0] >= 0 else None
        kind, cell = self._decision(question.game, strategy.wish())
        column, row = strategy.plan.middle or NOWHERE
        return Advice(kind, cell, (int(column), int(row)))

    def _decision(self, game: int, wish: Wish) -> tuple[str, int]:
        """Returns kind and cell of a wish; a cell that is not in view is moved toward first."""
        if wish is None:
            return "wait", 0
        if isinstance(wish, TaxChange):
            return ("tax_up" if wish.step > 0 else "tax_down"), 0
        tool, column, row = wish
        catalogue, state = self._catalogue, self._games.interfaces[game].state
        across, down = int(column) - state.column, int(row) - state.row
        if not 0 <= across < catalogue.columns:
            return ("camera_left" if across < 0 else "camera_right"), 0
        if not 0 <= down < catalogue.rows:
            return ("camera_up" if down < 0 else "camera_down"), 0
        return ("bulldoze" if tool == Tool.BULLDOZER else tool.name.lower()), down * catalogue.columns + across
