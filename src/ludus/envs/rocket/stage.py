"""What Rocket offers to people: matches seen from several places, smooth between decisions, and a keyboard."""

from collections.abc import Collection, Sequence

from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv
from ludus.envs.rocket.between import after_goal, between
from ludus.envs.rocket.controls import DRIVING, KEY_LINES, action_of, held_controls
from ludus.envs.rocket.env import RocketEnv
from ludus.envs.stage import Image, KeyHelp, Painter, Stage

GOAL_S = 1.6  # for which a goal is shown before the kickoff


class MatchPainter(Painter):
    """Draws the first game; remembers its last two states, to draw moments between them."""

    def __init__(self, env: RocketEnv, names: Sequence[str]) -> None:
        from ludus.envs.rocket.render import Renderer, views_of  # pygame is optional

        super().__init__(env)
        self.views = views_of(env.spec.seats)
        self._rocket, self._renderer = env, Renderer(names=names, view="side")
        self._before = self._now = env.view(0)

    def take(self) -> None:
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
    """A person's keys, for a seat of the first game."""

    def __init__(self, env: BatchedEnv, seat: int) -> None:
        self._env, self._seat = _rocket(env), seat

    def action(self, held: Collection[str]) -> Tensor:
        """Returns the action of the held keys, in the game's action space."""
        on_ground = bool(self._env.fields()["on_ground"][0, self._seat])
        return action_of(held_controls(held), self._env.config, on_ground=on_ground).to(self._env.device)


def make_painter(env: BatchedEnv, names: Sequence[str], *, debug: bool) -> Painter:
    """Draws the first game; see `ludus.envs.stage.PainterMaker`."""
    if debug:
        raise UnsupportedError(f"{env.spec.id} has no debug layer; leave --debug out")
    return MatchPainter(_rocket(env), names)


def _rocket(env: BatchedEnv) -> RocketEnv:
    if not isinstance(env, RocketEnv):
        raise UnsupportedError(f"this is the stage of rocket, not of {env.spec.id}")
    return env


STAGE = Stage(
    bots=("chaser", "shooter"),
    shown={"episode": "match", "setters": {"kickoff": 1.0}},
    # Four ticks are 30 decisions a second: a person notices less delay than with 15.
    played={"actions": "continuous", "ticks": 4},
    painter=make_painter,
    is_smooth=True,
    keyboard=DrivingKeyboard,
    keys=tuple(KeyHelp(" or ".join(keys.names), keys.meaning) for keys in DRIVING),
    key_lines=KEY_LINES,
    view="ball",
)
