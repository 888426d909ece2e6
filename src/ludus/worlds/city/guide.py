"""Guides: an optional second opinion, such as a model that looks at the picture and suggests what to do next.

A guide is a class in a Python file that you name with `--plugin FILE`; nothing else ever loads one:

    from ludus.worlds.city.guide import Advice, Scene, guide

    @guide("careful")
    class Careful:
        def advise(self, scene: Scene) -> Advice:
            funds = scene.readings["funds"].value
            return Advice({"wait": 1.0} if funds is not None and funds < 500 else {"residential": 1.0}, confidence=0.5)

Enable it in the settings (`world.settings.guide.name=careful`). It sees what the agent sees and no more, and
its advice is an observation that the agent may learn to follow or to ignore, and an event `guided` that may be rewarded
(`rewards.weights.guided`), with a separate account. It never acts.
"""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError, GuideError, UnknownNameError
from ludus.worlds.city.backend import CityBackend, Seen, seen_fields
from ludus.worlds.city.catalogue import ActionKind, Catalogue
from ludus.worlds.city.drivers.driver import Frame
from ludus.worlds.city.tracker import Extra, LearnerBatch, Turn


@dataclass(frozen=True, slots=True)
class Scene:
    """What a guide is shown of one game."""

    picture: Frame  # `(height, width, 3)` uint8, the window as it is
    readings: Mapping[str, Seen]  # what was read of it, by the name of the field
    kinds: tuple[ActionKind, ...]  # what can be done
    step: int  # decisions of the present city
    last_kind: str = ""  # what was done last; empty before the first decision


@dataclass(frozen=True, slots=True)
class Advice:
    """What a guide says."""

    # How much each kind of action is advised, 0 or more; kinds that are not named are not.
    weights: Mapping[str, float] = field(default_factory=dict)
    hint: str = ""  # the same in words, for people
    confidence: float = 1.0  # from 0 to 1; scales the advice


class Guide(Protocol):
    """Advises. Its advice should depend on the scene alone; otherwise a resumed run gets other advice."""

    def advise(self, scene: Scene) -> Advice:
        """Return what it would do now."""


GuideMaker = Callable[[], Guide]
_M = TypeVar("_M", bound=GuideMaker)
_GUIDES: dict[str, GuideMaker] = {}


def guide(name: str) -> Callable[[_M], _M]:
    """Register a class, or a function that makes a guide, under a name; raise ConfigError if the name is taken."""

    def register(maker: _M) -> _M:
        if name in _GUIDES:
            raise ConfigError(f"there is a guide {name!r} already; choose another name")
        _GUIDES[name] = maker
        return maker

    return register


def make_guide(name: str) -> Guide:
    """Make a guide by its name; raise UnknownNameError if no plugin has registered it."""
    if name not in _GUIDES:
        raise UnknownNameError("guide (load the file that has it with --plugin FILE)", name, tuple(_GUIDES))
    return _GUIDES[name]()


logger = logging.getLogger(__name__)

_WARNINGS = 3  # after which failures are only counted


class GuideTracker(Extra):
    """The advice of one guide in all games.

    `guided` is how much the kind of the last decision was advised, 0 to 1: its weight over the largest one, times the
    guide's confidence. `guide_failed` counts questions without a usable answer; then there is no advice.

    Attributes:
        advice: `(games, kinds + 2)` float32: how much each kind is advised, the confidence, and the age as a share of
            the decisions between two questions; an observation.
        hints: What the guide said of each game in words, for people.
    """

    events = ("guided", "guide_failed")

    def __init__(self, guide: Guide, name: str, backend: CityBackend, every: int) -> None:
        """Ask `guide` in the games of a backend every `every` decisions."""
        self._guide, self._name, self._backend, self._every = guide, name, backend, every
        self.advice: NDArray[np.float32] = np.zeros((backend.num_envs, len(backend.catalogue) + 2), np.float32)
        self.hints = [""] * backend.num_envs
        self._failures, self._has_answered = 0, False

    def begin(self, turn: Turn, games: LearnerBatch) -> None:
        """See `Extra`."""
        for game in np.flatnonzero(games).tolist():
            self._ask(game, turn)

    def follow(self, turn: Turn, events: NDArray[np.float32], state_metrics: NDArray[np.float32]) -> None:
        """See `Extra`; a decision is judged by the advice given before it."""
        games = np.arange(self._backend.num_envs)
        events[:, 0] = self.advice[games, turn.kinds] * self.advice[:, -2]
        events[:, 1] = 0.0
        self.advice[:, -1] = (turn.step % self._every) / self._every
        for game in np.flatnonzero(turn.step % self._every == 0).tolist():
            events[game, 1] = not self._ask(game, turn)

    def state(self) -> dict[str, Tensor]:
        """See `Extra`."""
        return {"advice": torch.from_numpy(self.advice)}

    def _ask(self, game: int, turn: Turn) -> bool:
        """Ask about a game and return whether there is an answer; raise GuideError if there never was one."""
        catalogue, kind = self._backend.catalogue, int(turn.kinds[game])
        scene = Scene(
            picture=self._backend.picture(game),
            readings={seen.name: seen for seen in seen_fields(self._backend, game)},
            kinds=catalogue.kinds,
            step=int(turn.step[game]),
            last_kind=catalogue.kinds[kind].name if kind >= 0 else "",
        )
        self.advice[game], self.hints[game] = 0.0, ""
        try:
            advice = self._guide.advise(scene)
            weights = advised(advice, catalogue)
        except Exception as error:  # third-party code: whatever it raises, the game continues without advice
            self._fail(error)
            return False
        self._has_answered = True
        self.advice[game, :-2], self.advice[game, -2], self.hints[game] = weights, advice.confidence, advice.hint
        return True

    def _fail(self, error: Exception) -> None:
        said = f"the guide {self._name!r} failed: {type(error).__name__}: {error}"
        if not self._has_answered:
            raise GuideError(f"{said}; fix its file, or remove world.settings.guide") from error
        self._failures += 1
        if self._failures <= _WARNINGS:
            logger.warning("[WARN] %s; the game continues without its advice", said)


def advised(advice: Advice, catalogue: Catalogue) -> NDArray[np.float32]:
    """Return how much each kind is advised, `(kinds,)` from 0 to 1, the most advised one 1; all 0 without advice.

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
