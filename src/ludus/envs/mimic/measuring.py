"""The walker's speed is measured beside Gymnasium's walker."""

from ludus.envs.base import EnvSpec
from ludus.envs.measuring import Measuring, Yardstick, gymnasium_yardstick


def walker(spec: EnvSpec) -> Yardstick:
    """Makes Gymnasium's walker."""
    del spec
    return gymnasium_yardstick("Walker2d-v5")


MEASURING = Measuring(walker)
