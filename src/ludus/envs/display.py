"""How people watch and play a world: pictures, a keyboard, and who plays under which settings by default.

A world declares it as `World(display="mygame.display:DISPLAY")`. A world without one is drawn by its `render` and
cannot be played by a person.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.core.files import JSON
from ludus.envs.base import BatchedEnv
from ludus.envs.world import Settings, known_world, resolve

Image: TypeAlias = NDArray[np.uint8]
Pictures: TypeAlias = Callable[[BatchedEnv, float], Generator[Image, None, None]]

SCALE = 100  # logs hold whole numbers, in hundredths of the world's unit


class PolicyOutput(NamedTuple):
    """What a policy outputs before a step."""

    kinds: tuple[float, ...]  # how likely each kind of action is
    value: float  # what it expects of the future, in its own units


class Painter:
    """Draws the first game of a batch as it stands.

    A world whose decisions are rarer than pictures may draw moments between two of them: it overrides `on_step` and
    `paint` and says so in `Display.is_smooth`. One that can be looked at from several places overrides `views`, `look`
    and `turn`.
    """

    views: tuple[str, ...] = ()  # names of the places from which it can be looked at; empty if there is one
    # How many times as long as usual the last step is to be shown, for what people want to see at leisure.
    stretch: float = 1.0
    shows_policy: bool = False  # whether it draws the policy's output; only for worlds whose actions have kinds

    def __init__(self, env: BatchedEnv, draw: Callable[[], Image] | None = None) -> None:
        """Store the games to draw, and what draws the first one if not its own `render`."""
        self._env, self._draw = env, draw or (lambda: env.render(0))

    def show_policy(self, policy_output: PolicyOutput) -> None:
        """Store the policy output of the first seat before the next step; called if `shows_policy`."""

    def on_step(self) -> None:
        """Update after a step or a restart of the game."""

    def paint(self, share: float = 1.0) -> Image:
        """Return a picture `(height, width, 3)`; `share` goes from the last step but one (0) to the last (1)."""
        return self._draw()

    def look(self, view: str) -> None:
        """Look from another place; raise UnknownNameError, or UnsupportedError if there is only one."""
        raise UnsupportedError(f"{self._env.spec.id} has one view; leave --view {view} out")

    def turn(self) -> None:
        """Look from the next place from now on, where there is one."""


class PainterMaker(Protocol):
    """Makes a painter."""

    def __call__(self, env: BatchedEnv, names: Sequence[str], *, debug: bool) -> Painter:
        """Make a painter of a batch's first game.

        `names` says who sits in each seat, and may be empty; `debug` draws what the simulator tests, or raises
        UnsupportedError.
        """


class Keyboard(Protocol):
    """How a person plays one seat of one game."""

    def action(self, held: Collection[str]) -> Tensor:
        """Return the action of a player who holds the keys of these names; those that do nothing are ignored."""


class KeyHelp(NamedTuple):
    """A key of the keyboard, by its lower-case name, and what it does."""

    name: str
    meaning: str


class Play(Protocol):
    """Let a person play a world in a window or a page of the world's own."""

    def __call__(
        self, *, seed: int, overrides: Sequence[str], frames: int | None, options: Mapping[str, object]
    ) -> None:
        """Play until the window is closed, or for so many `frames`.

        `overrides` are settings of the world as `key=value`. `options` are the other arguments of `ludus play` as they
        are typed, such as `--port`; one that was given (is not None or False) and means nothing is a ConfigError.
        """


@dataclass(frozen=True, slots=True)
class Display:
    """How people watch and play a world.

    Attributes:
        bots: Who plays on the left and on the right, or alone, by default.
        shown: Settings with which games are shown; they replace those that an agent was trained with.
        played: Settings with which a person plays against bots, besides those.
        drawn: Settings that games need to be drawn at all, merged into the others at every level.
        left_first: Return the settings under which the first seat starts on the left, or None if it already does; for
            worlds that draw the sides.
        painter: Draws games with names and more; None for the world's `render`.
        is_smooth: Whether it can draw moments between two steps.
        step_s: How long a step is shown; None for as long as it takes in the game.
        pictures: Yield pictures of the world without any player, so many per second of game time; the generator
            releases its resources when it is closed.
        keyboard: Makes the keyboard of a seat; None if people cannot play.
        keys: What the keys do.
        key_lines: The same in a few lines, for a card on the screen.
        view: Camera of a person who plays; empty for the painter's own choice.
        play: Plays in a window or a page of the world's own, instead of with `keyboard`.
    """

    bots: tuple[str, ...] = ()
    shown: Settings = field(default_factory=lambda: MappingProxyType({}))
    played: Settings = field(default_factory=lambda: MappingProxyType({}))
    drawn: Settings = field(default_factory=lambda: MappingProxyType({}))
    left_first: Callable[[BatchedEnv], Settings | None] | None = None
    painter: PainterMaker | None = None
    is_smooth: bool = False
    step_s: float | None = None
    pictures: Pictures | None = None
    keyboard: Callable[[BatchedEnv, int], Keyboard] | None = None
    keys: tuple[KeyHelp, ...] = ()
    key_lines: tuple[str, ...] = ()
    view: str = ""
    play: Play | None = None


GYMNASIUM_DISPLAY = Display(drawn={"workers": 0, "env_kwargs": {"render_mode": "rgb_array"}})  # workers cannot draw


def display_of(world: str) -> Display:
    """Return how people watch and play a world; one that is unknown, or declares nothing, is just drawn."""
    record = known_world(world)
    return Display() if record is None or record.display is None else resolve(record.display)


class TrajectoryLog(Protocol):
    """The log of the first game of a batch."""

    def record(self) -> None:
        """Record the current state of the game."""

    def content(self) -> dict[str, JSON]:
        """Return everything that was recorded, for the world's script."""


@dataclass(frozen=True, slots=True)
class ReplayView:
    """How a page draws the matches of a world."""

    log: Callable[[BatchedEnv], TrajectoryLog]  # make the log of a batch of one game
    script: str | tuple[str, ...]  # the browser script, as `package:file.js`, or several in their order

    def source(self) -> str:
        """Return the text of the browser scripts."""
        return read_scripts((self.script,) if isinstance(self.script, str) else self.script)


@dataclass(frozen=True, slots=True)
class BrowserGame:
    """How a web page plays one game of a world of kernels: what its kernels are is captured from the environment.

    Attributes:
        settings: Settings of the games; they replace those that an agent was trained with.
        scripts: The browser scripts that draw the game and read the keyboard, as `package:file.js`, in order.
        data: Return what the scripts have to know about a game, such as its action table.
        is_viewer: Whether the scripts advance the world by themselves and the visitor watches and disturbs the agent,
            instead of playing against it; then the world need not be one of kernels.
    """

    settings: Settings = field(default_factory=lambda: MappingProxyType({}))
    scripts: tuple[str, ...] = ()
    data: Callable[[BatchedEnv], dict[str, JSON]] = field(default=lambda _env: {})
    is_viewer: bool = False

    def source(self) -> str:
        """Return the text of the browser scripts."""
        return read_scripts(self.scripts)


def read_scripts(names: Sequence[str]) -> str:
    """Return the text of browser scripts that are named as `package:file.js`, one after the other."""
    parts = [name.partition(":") for name in names]
    return "\n".join((files(package) / file).read_text(encoding="utf-8") for package, _, file in parts)


def encode_columns(names: Sequence[str], rows: Sequence[Sequence[float]]) -> dict[str, JSON]:
    """Return the columns of `rows` `(frames, columns)` as whole numbers, each the difference to the frame before."""
    table = np.round(np.array(rows, dtype=np.float64)).astype(np.int64)
    steps = np.diff(table, axis=0, prepend=np.zeros((1, table.shape[1]), np.int64))
    return {name: steps[:, index].tolist() for index, name in enumerate(names)}


def scaled(value: float) -> int:
    """Return a length as a whole number in hundredths."""
    return round(SCALE * value)
