"""For tests: City's world on flat and empty land, played by the names of its kinds of action."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ludus.envs.base import EnvRequest, StepResult
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.embedded_backend import EmbeddedBackend
from ludus.worlds.city.env import CityEnv
from ludus.worlds.city.game.rules import Terrain
from ludus.worlds.city.interface.state import InterfaceState

PLAIN = {"hamlet": False, "events": False, "yearly_report": False, "threads": 1}


class World:
    """One game of the world, or several that are all given the same decisions."""

    def __init__(
        self, games: int = 1, rules: dict[str, Any] | None = None, *, flat: bool = True, **config: Any
    ) -> None:
        self.env = CityEnv(EnvRequest(games, config={"rules": PLAIN | (rules or {}), **config}))
        self.seen = self.env.reset()
        if flat:
            self.games.simulation.cells.terrain[:] = Terrain.LAND
            self.games.simulation.write_sprites()  # the next picture shows it

    @property
    def backend(self) -> EmbeddedBackend:
        assert isinstance(self.env.backend, EmbeddedBackend)
        return self.env.backend

    @property
    def games(self) -> CityGames:
        return self.backend.games

    @property
    def state(self) -> InterfaceState:
        return self.games.interfaces[0].state

    @property
    def city(self) -> dict[str, NDArray[Any]]:
        return self.games.simulation.city

    @property
    def buildings(self) -> NDArray[np.int32]:
        """What stands where in game 0, `(rows, columns)`."""
        rules = self.games.simulation.rules
        kinds: NDArray[np.int32] = self.games.simulation.cells.kind[0].reshape(rules.rows, rules.columns)
        return kinds

    def do(self, name: str, column: int = 0, row: int = 0) -> StepResult:
        """Carries out a decision in all games."""
        catalogue = self.backend.catalogue
        action = torch.tensor([catalogue.number(name), row * catalogue.columns + column])
        result = self.env.step(action.expand(self.env.num_envs, 1, 2).contiguous())
        self.seen = result.observations
        return result

    def event(self, result: StepResult, name: str) -> float:
        return float(result.events[name][0, 0])

    def reading(self, name: str) -> dict[str, float]:
        """What the observation of game 0 says about a field."""
        column = [field.name for field in self.backend.fields].index(name)
        blocks, vector = self.env.spec.blocks["readings"], self.seen["readings"][0, 0]
        return {block: float(vector[first + column]) for block, (first, _) in blocks.items()}

    def allowed(self) -> set[str]:
        """Kinds of action that the mask of game 0 allows."""
        names = self.backend.catalogue.names
        return {name for name, is_allowed in zip(names, self.seen["mask"][0, 0].tolist(), strict=False) if is_allowed}
