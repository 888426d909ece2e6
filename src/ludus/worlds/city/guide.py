"""Guides: an optional second opinion, such as a model that looks at the picture and suggests what to do next.

A guide is a class in a Python file that you name with `--plugin FILE`; nothing else ever loads one. The file
`examples/openai_guide.py` asks a model behind a server:

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError, GuideError, NoAdviceError, UnknownNameError, brief
from ludus.core.faults import let_pass
from ludus.core.text import blame
from ludus.worlds.city.actions import ActionKind, Catalogue
from ludus.worlds.city.backend import CityBackend, Seen, seen_fields
from ludus.worlds.city.config import GuideSettings
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
    is_cached: bool = False  # whether an equal scene was answered before, and this is that answer


class Guide(Protocol):
    """Advises. Its advice should depend on the scene alone; otherwise a resumed run gets other advice."""

    def advise(self, scene: Scene) -> Advice:
        """Return what it would do now; raise NoAdviceError with one of `CAUSES` if it has no advice this time."""


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


def stays_here(name: str) -> bool:
    """Return whether it can be the name of a guide, which does what the plugin does that the user has loaded."""
    return name.replace("-", "_").isidentifier()


def make_guide(settings: GuideSettings) -> Guide:
    """Make a guide by its name; raise UnknownNameError if no plugin has registered it."""
    if settings.name not in _GUIDES:
        raise UnknownNameError("guide (load the file that has it with --plugin FILE)", settings.name, _GUIDES)
    return _GUIDES[settings.name]()


logger = logging.getLogger(__name__)

BUDGET = "budget"
# Why there is no advice: the budget is used up; nobody answers; not in time; an HTTP error; not an answer of the
# protocol; no valid advice in it; an exception of a plugin.
CAUSES = (BUDGET, "connection", "timeout", "status", "answer", "advice", "exception")
_OUTCOMES = ("guide_asked", "guide_cached", "guide_failed", *(f"guide_no_{cause}" for cause in CAUSES))


class GuideTracker(Extra):
    """The advice of one guide in all games.

    `guided` is how much the kind of the last decision was advised, 0 to 1: its weight over the largest one, times the
    guide's confidence. `guide_asked` counts questions, `guide_cached` those that a cache answered, `guide_no_CAUSE`
    those without a usable answer, after which there is no advice; `guide_failed` is their sum without the budget.
    Questions at the start of a city count in its first decision.

    The first decision after advice follows it if its kind is one of the most advised, and else ignores it
    (`guide_followed`, `guide_ignored`); `guide_following` and `guide_ignoring` are 1 in that decision and in all others
    until the next question.

    Attributes:
        advice: `(games, kinds + 2)` float32: how much each kind is advised, the confidence, and the age as a share of
            the decisions between two questions; an observation.
        hints: What the guide said of each game in words, for people.
    """

    events = ("guided", "guide_followed", "guide_ignored", "guide_following", "guide_ignoring", *_OUTCOMES)

    def __init__(self, guide: Guide, settings: GuideSettings, backend: CityBackend) -> None:
        """Ask `guide` in the games of a backend as the settings say."""
        self._guide, self._name, self._backend, self._every = guide, settings.name, backend, settings.every
        games = backend.num_envs
        self.advice: NDArray[np.float32] = np.zeros((games, len(backend.catalogue) + 2), np.float32)
        self.hints = [""] * games
        self._outcomes: NDArray[np.float32] = np.zeros((games, len(_OUTCOMES)), np.float32)  # since the last decision
        self._follows: NDArray[np.int64] = np.zeros(games, np.int64)  # 1 followed, -1 ignored, 0 without advice
        self._has_answered = False
        self._warned: set[str] = set()

    def begin(self, turn: Turn, games: LearnerBatch) -> None:
        """See `Extra`."""
        self._outcomes[games] = 0.0
        for game in np.flatnonzero(games).tolist():
            self._ask(game, turn)

    def follow(self, turn: Turn, events: NDArray[np.float32], state_metrics: NDArray[np.float32]) -> None:
        """See `Extra`; a decision is judged by the advice given before it."""
        given = self.advice[np.arange(self._backend.num_envs), turn.kinds]
        is_first = (turn.step - 1) % self._every == 0
        has_advice = (self.advice[:, :-2] > 0.0).any(axis=1)
        judged = np.where(has_advice, np.where(given == 1.0, 1, -1), 0)  # the largest weight is 1
        self._follows[is_first] = judged[is_first]
        follows, ignores = self._follows == 1, self._follows == -1
        columns = (given * self.advice[:, -2], is_first & follows, is_first & ignores, follows, ignores)
        events[:, : len(columns)] = np.stack(columns, axis=1)
        self.advice[:, -1] = (turn.step % self._every) / self._every
        for game in np.flatnonzero(turn.step % self._every == 0).tolist():
            self._ask(game, turn)
        events[:, len(columns) :] = self._outcomes
        self._outcomes[:] = 0.0

    def state(self) -> dict[str, Tensor]:
        """See `Extra`."""
        arrays = {"advice": self.advice, "guide_outcomes": self._outcomes, "guide_follows": self._follows}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def _ask(self, game: int, turn: Turn) -> None:
        """Ask about a game; raise GuideError if the guide fails and has never answered."""
        catalogue, kind = self._backend.catalogue, int(turn.kinds[game])
        scene = Scene(
            picture=self._backend.picture(game),
            readings={seen.name: seen for seen in seen_fields(self._backend, game)},
            kinds=catalogue.kinds,
            step=int(turn.step[game]),
            last_kind=catalogue.kinds[kind].name if kind >= 0 else "",
        )
        self.advice[game], self.hints[game] = 0.0, ""
        self._count(game, "guide_asked")
        try:
            advice = self._guide.advise(scene)
            weights = advised(advice, catalogue)
        except BaseException as error:  # third-party code: whatever it raises, the game continues without advice
            let_pass(error)
            cause = self._fail(error)
            self._count(game, f"guide_no_{cause}")
            if cause != BUDGET:
                self._count(game, "guide_failed")
            return
        self._has_answered = True
        if advice.is_cached:
            self._count(game, "guide_cached")
        self.advice[game, :-2], self.advice[game, -2], self.hints[game] = weights, advice.confidence, advice.hint

    def _count(self, game: int, outcome: str) -> None:
        self._outcomes[game, _OUTCOMES.index(outcome)] += 1.0

    def _fail(self, error: BaseException) -> str:
        """Return the cause of a failure, and log the first one of each; raise GuideError if it ends the run."""
        said = f"the guide {self._name!r} failed: {blame(error)}"
        if not (self._has_answered or isinstance(error, NoAdviceError)):
            raise GuideError(f"{said}; fix it, or remove world.settings.guide") from error
        cause = getattr(error, "cause", "advice" if isinstance(error, GuideError) else "exception")
        cause = cause if cause in CAUSES else "exception"
        if cause not in self._warned:
            self._warned.add(cause)
            logger.warning(
                "[WARN] %s; the game continues without its advice, and further failures of this kind are only counted",
                said,
            )
        return cause


def advised(advice: Advice, catalogue: Catalogue) -> NDArray[np.float32]:
    """Return how much each kind is advised, `(kinds,)` from 0 to 1, the most advised one 1; all 0 without advice.

    Raises:
        GuideError: The advice cannot be used; see `check_advice`.
    """
    check_advice(advice, catalogue.names)
    weights = np.array([advice.weights.get(name, 0.0) for name in catalogue.names], np.float64)
    most = float(weights.max())
    return (weights / most if most > 0.0 else weights).astype(np.float32)


def check_advice(advice: Advice, kinds: Sequence[str]) -> None:
    """Raise GuideError if a kind does not exist, or a weight is not 0 or more, or the confidence not from 0 to 1."""
    for name, weight in advice.weights.items():
        if name not in kinds:
            raise GuideError(f"it advises {brief(name)}, which is no kind of action; valid: {', '.join(kinds)}")
        if not (math.isfinite(weight) and weight >= 0.0):
            raise GuideError(f"its weight of {name} is {weight!r}; it must be 0 or more")
    if not 0.0 <= advice.confidence <= 1.0:
        raise GuideError(f"its confidence is {advice.confidence!r}; it must be from 0 to 1")
