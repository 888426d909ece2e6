"""Counsel: asks a guide every so many decisions, and turns what it says into observations and events."""

import logging
import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import GuideError
from ludus.envs.city.catalogue import Catalogue
from ludus.envs.city.extras import Extra, Rows, Turn
from ludus.envs.city.guide import Advice, Guide, Scene
from ludus.envs.city.seen import seen_fields
from ludus.envs.city.table import CityTable

logger = logging.getLogger(__name__)

_WARNINGS = 3  # after which failures are only counted


class Counsel(Extra):
    """The advice of one guide in all games.

    `guided` is how much the kind of the last decision was advised, 0 to 1: its weight over the largest one, times the
    guide's confidence. `guide_failed` counts questions without a usable answer; then there is no advice.

    Attributes:
        advice: `(games, kinds + 2)` float32: how much each kind is advised, the confidence, and the age as a share of
            the decisions between two questions; an observation.
        hints: What the guide said of each game in words, for people.
    """

    events = ("guided", "guide_failed")

    def __init__(self, guide: Guide, name: str, table: CityTable, every: int) -> None:
        """Asks `guide` in the games of a table after every so many decisions."""
        self._guide, self._name, self._table, self._every = guide, name, table, every
        self.advice: NDArray[np.float32] = np.zeros((table.num_games, len(table.catalogue) + 2), np.float32)
        self.hints = [""] * table.num_games
        self._failures, self._has_answered = 0, False

    def begin(self, turn: Turn, games: Rows) -> None:
        """See `Extra`."""
        for game in np.flatnonzero(games).tolist():
            self._ask(game, turn)

    def follow(self, turn: Turn, events: NDArray[np.float32], measures: NDArray[np.float32]) -> None:  # noqa: ARG002
        """See `Extra`; the decision is judged by the advice that it could know."""
        games = np.arange(self._table.num_games)
        events[:, 0] = self.advice[games, turn.kinds] * self.advice[:, -2]
        events[:, 1] = 0.0
        self.advice[:, -1] = (turn.step % self._every) / self._every
        for game in np.flatnonzero(turn.step % self._every == 0).tolist():
            events[game, 1] = not self._ask(game, turn)

    def state(self) -> dict[str, Tensor]:
        """See `Extra`."""
        return {"advice": torch.from_numpy(self.advice)}

    def _ask(self, game: int, turn: Turn) -> bool:
        """Asks about a game and says whether there is an answer.

        Raises:
            GuideError: The guide has never given a usable answer.
        """
        catalogue, kind = self._table.catalogue, int(turn.kinds[game])
        scene = Scene(
            picture=self._table.picture(game),
            readings={seen.name: seen for seen in seen_fields(self._table, game)},
            kinds=catalogue.kinds,
            step=int(turn.step[game]),
            last_kind=catalogue.kinds[kind].name if kind >= 0 else "",
        )
        self.advice[game], self.hints[game] = 0.0, ""
        try:
            advice = self._guide.advise(scene)
            weights = advised(advice, catalogue)
        except Exception as error:  # a guide is a stranger's code: whatever it raises, the city goes on without advice
            self._fail(error)
            return False
        self._has_answered = True
        self.advice[game, :-2], self.advice[game, -2], self.hints[game] = weights, advice.confidence, advice.hint
        return True

    def _fail(self, error: Exception) -> None:
        said = f"the guide {self._name!r} failed: {type(error).__name__}: {error}"
        if not self._has_answered:
            raise GuideError(f"{said}; mend its file, or leave world.settings.guide out") from error
        self._failures += 1
        if self._failures <= _WARNINGS:
            logger.warning("[WARN] %s; the game goes on without its advice", said)


def advised(advice: Advice, catalogue: Catalogue) -> NDArray[np.float32]:
    """Returns how much each kind is advised, `(kinds,)` from 0 to 1, the most advised one 1; all 0 without advice.

    Raises:
        GuideError: A kind does not exist, a weight is negative or not finite, or the confidence is not from 0 to 1.
    """
    weights = np.zeros(len(catalogue), np.float32)
    for name, weight in advice.weights.items():
        if name not in catalogue:
            raise GuideError(f"it advises {name!r}, which is no kind of action; valid: {', '.join(catalogue.names)}")
        if not (math.isfinite(weight) and weight >= 0.0):
            raise GuideError(f"its weight of {name} is {weight!r}; it must be 0 or more")
        weights[catalogue.number(name)] = weight
    if not 0.0 <= advice.confidence <= 1.0:
        raise GuideError(f"its confidence is {advice.confidence!r}; it must be from 0 to 1")
    most = float(weights.max())
    return weights / most if most > 0.0 else weights
