"""The walker's speed is measured next to Gymnasium's walker."""

from ludus.envs.base import EnvSpec
from ludus.envs.world_parts import SimBench, Yardstick, gymnasium_yardstick


def walker(spec: EnvSpec) -> Yardstick:
    """Make Gymnasium's `Walker2d-v5`."""
    del spec
    return gymnasium_yardstick("Walker2d-v5")


BENCH = SimBench(walker)
