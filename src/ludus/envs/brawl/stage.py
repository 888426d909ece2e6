"""What Brawl offers to people: pictures with names and capsules, and a keyboard."""

from collections.abc import Collection, Sequence

from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv
from ludus.envs.brawl.controls import CONTROLS, KEY_LINES, keyboard_action, sees_mirrored
from ludus.envs.brawl.env import BrawlEnv
from ludus.envs.stage import KeyHelp, Painter, Stage


class BrawlKeyboard:
    """A person's keys, for a seat of the first game."""

    def __init__(self, env: BatchedEnv, seat: int) -> None:
        self._env, self._seat = _brawl(env), seat

    def action(self, held: Collection[str]) -> Tensor:
        """Returns the action `(10,)` of the held keys, as the person sees the screen."""
        return keyboard_action(held, mirrored=sees_mirrored(self._env, 0, self._seat))


def make_painter(env: BatchedEnv, names: Sequence[str], *, debug: bool) -> Painter:
    """Draws the first game; see `ludus.envs.stage.PainterMaker`."""
    from ludus.envs.brawl.render import Renderer  # pygame is optional

    brawl = _brawl(env)
    renderer = Renderer(brawl.table, debug=debug, names=(names[0], names[1]) if len(names) == 2 else None)
    return Painter(brawl, lambda: renderer.frame(brawl.view(0)))


def _brawl(env: BatchedEnv) -> BrawlEnv:
    if not isinstance(env, BrawlEnv):
        raise UnsupportedError(f"this is the stage of brawl, not of {env.spec.id}")
    return env


STAGE = Stage(
    bots=("aggressive", "edge-guarder"),
    painter=make_painter,
    keyboard=BrawlKeyboard,
    keys=tuple(KeyHelp(control.name, control.meaning) for control in CONTROLS),
    key_lines=KEY_LINES,
)
