"""How Rocket is shown and played: a keyboard, several views between decisions, and what `player.js` draws."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.core.files import JSON
from ludus.envs.base import BatchedEnv
from ludus.envs.display import SCALE, BrowserGame, Display, Image, KeyHelp, Painter, ReplayView, encode_columns
from ludus.worlds.rocket.actions import AXES, action_table
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.layout import BIG_PADS, PADS
from ludus.worlds.rocket.rules import CONTROLS, Control
from ludus.worlds.rocket.view import CarView, after_goal, between


class Keys(NamedTuple):
    """Keys of the keyboard, by their lower-case names, that do the same, and what it is."""

    names: tuple[str, ...]
    meaning: str


FORWARD = Keys(("w", "up"), "forward; in the air: nose down")
BACKWARD = Keys(("s", "down"), "brake, backward; in the air: nose up")
LEFT = Keys(("a", "left"), "left")
RIGHT = Keys(("d", "right"), "right")
ROLL_LEFT = Keys(("q",), "roll to the left in the air")
ROLL_RIGHT = Keys(("e",), "roll to the right in the air")
JUMP = Keys(("space",), "jump; again in the air with a direction: dodge")
BOOST = Keys(("left shift", "right shift"), "boost")
HANDBRAKE = Keys(("left ctrl", "right ctrl", "x"), "slide; in the air left and right roll instead of turning")
DRIVING = (FORWARD, BACKWARD, LEFT, RIGHT, ROLL_LEFT, ROLL_RIGHT, JUMP, BOOST, HANDBRAKE)
# The same on two lines, for a card on the screen.
KEY_LINES = (
    "W S drive, nose down and up   A D steer   Q E roll   Space jump, dodge",
    "Shift boost   Ctrl or X slide   C camera",
)
# How much it matters that a row of the action table differs from what was asked for: what a button does is not undone
# by steering well.
_WEIGHTS = np.array((2.0, 2.0, 2.0, 1.0, 2.0, 6.0, 4.0, 1.0))


def held_controls(held: Collection[str]) -> NDArray[np.float32]:
    """Return the controls `(8,)` that held keys ask for, in the order of `rules.Control`; buttons are 0 or 1."""

    def is_held(keys: Keys) -> float:
        return float(any(name in held for name in keys.names))

    drive, turn = is_held(FORWARD) - is_held(BACKWARD), is_held(RIGHT) - is_held(LEFT)
    roll, slide, boost = is_held(ROLL_RIGHT) - is_held(ROLL_LEFT), is_held(HANDBRAKE), is_held(BOOST)
    controls = np.zeros(CONTROLS, dtype=np.float32)
    controls[Control.THROTTLE] = drive or boost
    controls[Control.STEER] = turn
    controls[Control.PITCH] = -drive
    controls[Control.YAW] = 0.0 if slide else turn
    controls[Control.ROLL] = roll or (turn if slide else 0.0)
    controls[Control.JUMP] = is_held(JUMP)
    controls[Control.BOOST] = boost
    controls[Control.HANDBRAKE] = slide
    return controls


def action_of(controls: NDArray[np.float32], config: RocketConfig, *, on_ground: bool) -> Tensor:
    """Return the action of a seat that is nearest to controls `(8,)`, whichever action space the game has.

    `on_ground`: the rows of the table that pitch and roll do not steer, so that on the ground one that steers is
    nearer.
    """
    if config.actions == "continuous":
        pressed = np.where(controls[AXES:] > 0.0, 1.0, -1.0)
        return torch.from_numpy(np.concatenate((controls[:AXES], pressed)).astype(np.float32))
    weights = _WEIGHTS.copy()
    ignored = (Control.PITCH, Control.YAW, Control.ROLL) if on_ground else (Control.THROTTLE, Control.STEER)
    if not (on_ground and controls[Control.JUMP] > 0.0):  # a jump from the ground may become a dodge
        weights[list(ignored)] *= 0.1
    distance = (np.abs(action_table() - controls) * weights).sum(1)
    return torch.tensor(int(distance.argmin()))


GOAL_S = 1.6  # how long a goal is shown before the kickoff


class MatchPainter(Painter):
    """Draws the first game; keeps its last two states to interpolate between them."""

    def __init__(self, env: RocketEnv, names: Sequence[str]) -> None:
        from ludus.worlds.rocket.render import Renderer, views_of  # pygame is optional

        super().__init__(env)
        self.views = views_of(env.spec.seats)
        self._rocket, self._renderer = env, Renderer(names=names, view="side")
        self._before = self._now = env.view(0)

    def on_step(self) -> None:
        """See `Painter`."""
        self._before, self._now = self._now, self._rocket.view(0)
        is_goal = self._before.episode == self._now.episode and self._before.goals != self._now.goals
        self.stretch = GOAL_S * self._rocket.spec.rate_hz if is_goal else 1.0

    def paint(self, share: float = 1.0) -> Image:
        """See `Painter`."""
        if self.stretch > 1.0 and share < 1.0:
            return self._renderer.frame(after_goal(self._before, self._now, share * GOAL_S))
        return self._renderer.frame(between(self._before, self._now, share))

    def look(self, view: str) -> None:
        """See `Painter`."""
        self._renderer.look(view, self._rocket.spec.seats)

    def turn(self) -> None:
        """See `Painter`."""
        self._renderer.turn()


class DrivingKeyboard:
    """Keyboard input for a seat of the first game."""

    def __init__(self, env: BatchedEnv, seat: int) -> None:
        self._env, self._seat = _rocket(env), seat

    def action(self, held: Collection[str]) -> Tensor:
        """Return the action of the held keys, in the game's action space."""
        on_ground = bool(self._env.fields()["on_ground"][0, self._seat])
        return action_of(held_controls(held), self._env.config, on_ground=on_ground).to(self._env.device)


def make_painter(env: BatchedEnv, names: Sequence[str], *, debug: bool) -> Painter:
    """Draw the first game; see `ludus.envs.display.PainterMaker`."""
    if debug:
        raise UnsupportedError(f"{env.spec.id} has no debug layer; leave --debug out")
    return MatchPainter(_rocket(env), names)


def _rocket(env: BatchedEnv) -> RocketEnv:
    env = env.unwrapped
    if not isinstance(env, RocketEnv):
        raise UnsupportedError(f"this is the display of rocket, not of {env.spec.id}")
    return env


def live_data(env: BatchedEnv) -> dict[str, JSON]:
    """Return what `live.js` has to know about a game: teams, pads and the action space."""
    rocket = _rocket(env)
    config = rocket.config
    table: list[JSON] = [[float(value) for value in row] for row in action_table()]
    return {
        "teams": list(rocket.spec.teams),
        "pads": _drawn_pads(),
        "has_clock": config.episode == "match",
        "actions": config.actions,
        "table": table if config.actions == "table" else [],
        "weights": [float(weight) for weight in _WEIGHTS],
    }


def _drawn_pads() -> list[JSON]:
    return [[x, y, int(number in BIG_PADS)] for number, (x, y) in enumerate(PADS)]


class RocketLog:
    """Ball and cars with their rotation, boost and what they do, goals and clock; lengths in whole uu."""

    def __init__(self, env: RocketEnv) -> None:
        self._env = env
        self._rows: list[list[float]] = []

    def record(self) -> None:
        """Record the current state; see `TrajectoryLog`."""
        view = self._env.view(0)
        clock = view.time_s if view.clock_s is None else view.clock_s
        cars = (number for car in view.cars for number in self._car(car))
        self._rows.append([*view.ball.position, *view.goals, 10.0 * clock, *cars])

    def _car(self, car: CarView) -> list[float]:
        doing = car.boosting + 2 * car.supersonic + 4 * (car.demolished_s > 0.0)
        return [*car.position, *(SCALE * number for number in car.rotation), car.boost, doing]

    def content(self) -> dict[str, JSON]:
        """Return what was recorded; see `TrajectoryLog`."""
        names = ("x", "y", "z", "qx", "qy", "qz", "qw", "boost", "doing")
        columns = ["ball_x", "ball_y", "ball_z", "blue", "orange", "clock"]
        columns += [f"{name}{seat}" for seat in range(self._env.spec.seats) for name in names]
        return {
            "columns": encode_columns(columns, self._rows),
            "teams": list(self._env.spec.teams),
            "pads": _drawn_pads(),
        }


DISPLAY = Display(
    bots=("chaser", "shooter"),
    shown={"episode": "match", "setters": {"kickoff": 1.0}},
    # Four ticks are 30 decisions per second: a person notices less delay than with 15.
    played={"actions": "continuous", "ticks": 4},
    painter=make_painter,
    is_smooth=True,
    keyboard=DrivingKeyboard,
    keys=tuple(KeyHelp(" or ".join(keys.names), keys.meaning) for keys in DRIVING),
    key_lines=KEY_LINES,
    view="ball",
)
_PAINTER = ("ludus.worlds.rocket:stadium.js", "ludus.worlds.rocket:player.js")
REPLAY_VIEW = ReplayView(lambda env: RocketLog(_rocket(env)), _PAINTER)
BROWSER = BrowserGame(
    settings={"mode": "1v1", "blue": 1, "orange": 1, "episode": "match", "setters": {"kickoff": 1.0}},
    scripts=(*_PAINTER, "ludus.worlds.rocket:live.js"),
    data=live_data,
)
