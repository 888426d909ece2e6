"""What City offers to people: the screen with the agent's pointer, readings and decisions, smooth between them."""

from collections.abc import Sequence

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv
from ludus.envs.city.env import CityEnv
from ludus.envs.stage import Painter, Stage

DECISION_S = 0.6  # for which a decision is shown, however long it takes in the game


def make_painter(env: BatchedEnv, names: Sequence[str], *, debug: bool) -> Painter:
    """Draws the first game; see `ludus.envs.stage.PainterMaker`."""
    from ludus.envs.city.demo.painter import CityPainter  # pygame is optional

    if not isinstance(env, CityEnv):
        raise UnsupportedError(f"this is the stage of city, not of {env.spec.id}")
    if debug:
        raise UnsupportedError(f"{env.spec.id} has no debug layer; leave --debug out")
    return CityPainter(env, names)


STAGE = Stage(painter=make_painter, is_smooth=True, step_s=DECISION_S)
