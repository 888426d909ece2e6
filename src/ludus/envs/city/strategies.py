"""Scripted strategies: players of the embedded game that act through its interface, one placement a decision.

They see the truth, not the picture: they are yardsticks for the rules of the game and for agents that learn it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from ludus.core.errors import UnknownNameError
from ludus.core.random import stream_hash
from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.drivers.driver import Gesture, Wait
from ludus.envs.city.drivers.hand import Hand
from ludus.envs.city.game.placement import ZONES
from ludus.envs.city.game.rules import MAX_TAX, Tool
from ludus.envs.city.town_plan import TownPlan

DECISION_S = 1.0  # of the game's clock, after every decision
_BUILDING = tuple(tool for tool in Tool if tool != Tool.QUERY)


class Strategy(ABC):
    """Plays one game of a batch."""

    def __init__(self, games: CityGames, game: int, seed: int = 0) -> None:
        self.games, self.game = games, game
        self.hand = Hand(games, game)
        self.random = np.random.default_rng(stream_hash(seed, game))

    def decide(self) -> list[Gesture]:
        """Returns the gestures of the next decision, with the time that passes after it."""
        return [*self.hand.clear(), *self.play(), Wait(DECISION_S)]

    @abstractmethod
    def play(self) -> list[Gesture]:
        """Returns the gestures of the next decision itself."""

    def anywhere(self, tool: Tool) -> list[Gesture]:
        """Uses a tool at a random cell."""
        rules = self.games.simulation.rules
        return self.hand.use(tool, int(self.random.integers(rules.columns)), int(self.random.integers(rules.rows)))


class NeverBuild(Strategy):
    """Only lets time pass."""

    def play(self) -> list[Gesture]:
        """Does nothing."""
        return []


class AlwaysZone(Strategy):
    """Zones random cells, and nothing else."""

    def play(self) -> list[Gesture]:
        """Zones somewhere."""
        return self.anywhere(ZONES[int(self.random.integers(len(ZONES)))])


class RandomPlay(Strategy):
    """Uses random tools at random cells, and changes the tax now and then."""

    def play(self) -> list[Gesture]:
        """Does something."""
        if self.random.random() < 0.1:
            return self.hand.change_tax(1 if self.random.random() < 0.5 else -1)
        return self.anywhere(_BUILDING[int(self.random.integers(len(_BUILDING)))])


class Greedy(Strategy):
    """Zones what is most wanted along a road that grows, with power but without water, services or thrift."""

    def __init__(self, games: CityGames, game: int, seed: int = 0) -> None:
        super().__init__(games, game, seed)
        self.plan = TownPlan(games, game)

    def play(self) -> list[Gesture]:
        """Builds the next thing that makes the city larger."""
        order = self.plan.power(spare=0.0) or self.plan.most_wanted(apart=False)
        return self.hand.use(*order) if order is not None else []


class HighTax(Greedy):
    """As greedy, at the highest tax."""

    def play(self) -> list[Gesture]:
        """Raises the tax as far as it goes, then builds."""
        return self.hand.change_tax(1) if self.plan.tax < MAX_TAX else super().play()


class Balanced(Greedy):
    """Zones by demand with industry apart, brings water and services, keeps reserves and adjusts the tax."""

    def play(self) -> list[Gesture]:
        """Builds what the city needs most and can afford."""
        plan = self.plan
        change = plan.tax_change()
        if change:
            return self.hand.change_tax(change)
        order = plan.power(spare=0.15) or plan.repair() or plan.service() or plan.thrifty_zone()
        return self.hand.use(*order) if order is not None else []


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
