"""The walker's speed is measured next to Gymnasium's walker."""

from importlib.util import find_spec

from ludus.core.errors import MissingDependencyError
from ludus.envs.base import EnvSpec
from ludus.envs.world_parts import SimBench, Speedrun, Yardstick, gymnasium_yardstick


def walker(spec: EnvSpec) -> Yardstick:
    """Make Gymnasium's `Walker2d-v5`.

    Raises:
        MissingDependencyError: imageio, which Gymnasium's MuJoCo environments import, is not installed.
    """
    del spec
    if find_spec("imageio") is None:
        raise MissingDependencyError("imageio", "gymnasium-mujoco", "the comparison with Gymnasium's Walker2d-v5")
    return gymnasium_yardstick("Walker2d-v5")


BENCH = SimBench(walker)

SPEEDRUN = Speedrun("stable", 1.0, "20 of 20 stable walks", "walk", gpu_preset="walk-gpu")
