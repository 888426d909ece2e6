"""Scripted strategies: players of the embedded game that act through its interface, one placement a decision.

They see the truth, not the picture: they are yardsticks for the rules of the game and for agents that learn it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ludus.core.errors import UnknownNameError
from ludus.core.random import stream_hash
from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.drivers.driver import Gesture, Wait
from ludus.envs.city.drivers.hand import Hand
from ludus.envs.city.game.placement import ZONES
from ludus.envs.city.game.rules import MAX_TAX, Tool
from ludus.envs.city.town_plan import Order, TownPlan

DECISION_S = 1.0  # of the game's clock, after every decision
_BUILDING = tuple(tool for tool in Tool if tool != Tool.QUERY)


@dataclass(frozen=True, slots=True)
class TaxChange:
    """The wish to raise (1) or to lower (-1) the tax."""

    step: int


Wish: TypeAlias = Order | TaxChange | None  # None does nothing


class Strategy(ABC):
    """Plays one game of a batch.

    Attributes:
        plan: Where things would go in this game.
        random: Decides what is left to chance.
    """

    def __init__(self, games: CityGames, game: int, seed: int = 0) -> None:
        self.games, self.game = games, game
        self.hand, self.plan = Hand(games, game), TownPlan(games, game)
        self.random = np.random.default_rng(stream_hash(seed, game))

    def decide(self) -> list[Gesture]:
        """Returns the gestures of the next decision, with the time that passes after it."""
        return [*self.hand.clear(), *self._gestures(self.wish()), Wait(DECISION_S)]

    @abstractmethod
    def wish(self) -> Wish:
        """Returns what it wants to do next."""

    def anywhere(self, tool: Tool) -> Order:
        """Uses a tool at a random cell."""
        rules = self.games.simulation.rules
        return tool, int(self.random.integers(rules.columns)), int(self.random.integers(rules.rows))

    def _gestures(self, wish: Wish) -> list[Gesture]:
        if wish is None:
            return []
        return self.hand.change_tax(wish.step) if isinstance(wish, TaxChange) else self.hand.use(*wish)


class NeverBuild(Strategy):
    """Only lets time pass."""

    def wish(self) -> Wish:
        """Does nothing."""
        return None


class AlwaysZone(Strategy):
    """Zones random cells, and nothing else."""

    def wish(self) -> Wish:
        """Zones somewhere."""
        return self.anywhere(ZONES[int(self.random.integers(len(ZONES)))])


class RandomPlay(Strategy):
    """Uses random tools at random cells, and changes the tax now and then."""

    def wish(self) -> Wish:
        """Does something."""
        if self.random.random() < 0.1:
            return TaxChange(1 if self.random.random() < 0.5 else -1)
        return self.anywhere(_BUILDING[int(self.random.integers(len(_BUILDING)))])


class Greedy(Strategy):
    """Zones what is most wanted along a road that grows, with power but without water, services or thrift."""

    def wish(self) -> Wish:
        """Builds the next thing that makes the city larger."""
        return self.plan.power(spare=0.0) or self.plan.most_wanted(apart=False)


class HighTax(Greedy):
    """As greedy, at the highest tax."""

    def wish(self) -> Wish:
        """Raises the tax as far as it goes, then builds."""
        return TaxChange(1) if self.plan.tax < MAX_TAX else super().wish()


class Balanced(Greedy):
    """Zones by demand with industry apart, brings water and services, keeps reserves and adjusts the tax."""

    def wish(self) -> Wish:
        """Builds what the city needs most and can afford."""
        plan = self.plan
        change = plan.tax_change()
        if change:
            return TaxChange(change)
        return plan.power(spare=0.15) or plan.repair() or plan.service() or plan.thrifty_zone()


STRATEGIES: dict[str, Callable[[CityGames, int, int], Strategy]] = {
    "never-build": NeverBuild,
    "always-zone": AlwaysZone,
    "random": RandomPlay,
    "high-tax": HighTax,
    "greedy": Greedy,
    "balanced": Balanced,
}


def make_strategy(name: str, games: CityGames, game: int, seed: int = 0) -> Strategy:
    """Returns a strategy for one game of a batch.

    Raises:
        UnknownNameError: There is none of that name.
    """
    if name not in STRATEGIES:
        raise UnknownNameError("strategy", name, STRATEGIES)
    return STRATEGIES[name](games, game, seed)
