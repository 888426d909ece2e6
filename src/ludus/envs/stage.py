"""What a world offers to people: pictures, a keyboard, and who plays in which circumstances if nobody says so.

A world's package may have a module `stage` whose `STAGE` is a `Stage`. A world without one is drawn by its `render` and
played by no person.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv

Image: TypeAlias = NDArray[np.uint8]


class Thought(NamedTuple):
    """What an agent thinks before it acts.

    Attributes:
        kinds: How likely each kind of action is.
        value: What it expects of the future, in its own units.
    """

    kinds: tuple[float, ...]
    value: float


class Painter:
    """Draws the first game of a batch as it stands.

    A world whose decisions are rarer than pictures may draw moments between two of them: it overrides `take` and
    `paint` and says so in `Stage.is_smooth`. One that can be looked at from several places overrides `views`, `look`
    and `turn`.

    Attributes:
        views: Names of the places from which it can be looked at; empty if there is one.
        stretch: How many times as long as usual the last step is to be shown, for what people want to see at leisure.
        hears: Whether it wants to be told what an agent thinks; only for worlds whose actions have kinds.
    """

    views: tuple[str, ...] = ()
    stretch: float = 1.0
    hears: bool = False

    def __init__(self, env: BatchedEnv, draw: Callable[[], Image] | None = None) -> None:
        """Takes who is drawn, and what draws its first game if that is not its own `render`."""
        self._env, self._draw = env, draw or (lambda: env.render(0))

    def hear(self, thought: Thought) -> None:
        """Is told what the agent of the first seat thinks before the next step, where it `hears`."""

    def take(self) -> None:
        """Notes that the game has made a step, or begun anew."""

    def paint(self, share: float = 1.0) -> Image:  # noqa: ARG002 - for those who can
        """Returns a picture `(height, width, 3)`.

        Args:
            share: How far the moment is from the last step but one (0) to the last (1), where `Stage.is_smooth`.
        """
        return self._draw()

    def look(self, view: str) -> None:
        """Looks from the place of this name from now on.

        Raises:
            UnknownNameError: There is no such place.
            UnsupportedError: There is only one.
        """
        raise UnsupportedError(f"{self._env.spec.id} has one view; leave --view {view} out")

    def turn(self) -> None:
        """Looks from the next place from now on, where there is one."""


class PainterMaker(Protocol):
    """Makes a painter."""

    def __call__(self, env: BatchedEnv, names: Sequence[str], *, debug: bool) -> Painter:
        """Makes a painter of a batch's first game.

        Args:
            env: The games.
            names: Who sits in each seat; may be empty.
            debug: Whether to draw what the simulator tests.

        Raises:
            UnsupportedError: The world has no debug layer.
        """


class Keyboard(Protocol):
    """How a person plays one seat of one game."""

    def action(self, held: Collection[str]) -> Tensor:
        """Returns the action of a player who holds the keys of these names; those that do nothing are ignored."""


class KeyHelp(NamedTuple):
    """A key of the keyboard, by its lower-case name, and what it does."""

    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Stage:
    """What a world offers to people.

    Attributes:
        bots: Who plays on the left and on the right if nobody is named.
        shown: Settings with which games are shown; they take the place of those that an agent was trained with.
        played: Settings with which a person plays against bots, beside those.
        painter: Draws games with names and more; None for the world's `render`.
        is_smooth: Whether it can draw moments between two steps.
        step_s: For how long people are shown a step; None for as long as it takes in the game.
        keyboard: Makes the keyboard of a seat; None if people cannot play.
        keys: What the keys do.
        key_lines: The same in few lines, for a card on the screen.
        view: From where a person sees the game; empty for the painter's own choice.
    """

    bots: tuple[str, str] | None = None
    shown: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    played: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    painter: PainterMaker | None = None
    is_smooth: bool = False
    step_s: float | None = None
    keyboard: Callable[[BatchedEnv, int], Keyboard] | None = None
    keys: tuple[KeyHelp, ...] = ()
    key_lines: tuple[str, ...] = ()
    view: str = ""
