"""What is followed in the games beside their figures, as their settings ask for it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ludus.envs.city.config import CityConfig
from ludus.envs.city.counsel import Counsel
from ludus.envs.city.extras import Extra
from ludus.envs.city.goals import Goals
from ludus.envs.city.guide import make_guide
from ludus.envs.city.novelty import Novelty
from ludus.envs.city.table import CityTable


@dataclass(frozen=True, slots=True)
class Following:
    """The parts that follow the games.

    Attributes:
        extras: All of them.
        counsel: The one that asks a guide; None without one.
    """

    extras: tuple[Extra, ...]
    counsel: Counsel | None = None


def make_following(config: CityConfig, table: CityTable) -> Following:
    """Makes them.

    Raises:
        UnknownNameError: No plugin has a guide of the name in the settings.
    """
    extras: list[Extra] = [Novelty(table.menus, table.num_games)]
    if config.goals:
        extras.append(Goals(config.goals, table.num_games))
    if config.guide is None:
        return Following(tuple(extras))
    counsel = Counsel(make_guide(config.guide.name), config.guide.name, table, config.guide.every)
    return Following((*extras, counsel), counsel)


def observed_advice(config: CityConfig, counsel: Counsel | None) -> dict[str, NDArray[np.float32]]:
    """Returns the entry `advice` of the observations; nothing where no guide is observed."""
    return {"advice": counsel.advice} if config.guide is not None and config.guide.observed and counsel else {}
