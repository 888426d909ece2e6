"""How the speed of a world is measured: what counts as a step, and beside what.

A world's package may have a module `measuring` whose `MEASURING` says so. Other worlds count game steps, beside
Gymnasium's CartPole.
"""

from collections.abc import Callable
from dataclasses import dataclass

import gymnasium as gym

from ludus.envs.base import EnvSpec


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A simulator of others that is measured in the same run.

    Attributes:
        name: What is measured.
        step: Advances it once.
        steps: Steps that a call counts for.
        close: Releases it.
    """

    name: str
    step: Callable[[], None]
    steps: int
    close: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is measured of a world.

    Attributes:
        yardstick: Makes the yardstick for a world of these seats.
        agent_steps: Whether every seat's decision is a step, rather than every game's.
        rewards: Set of reward weights that is computed in every step as well; None for none.
    """

    yardstick: Callable[[EnvSpec], Yardstick]
    agent_steps: bool = False
    rewards: str | None = None


def gymnasium_yardstick(env_id: str) -> Yardstick:
    """Makes one Gymnasium environment with random actions."""
    env = gym.make(env_id)
    env.reset(seed=0)
    env.action_space.seed(0)

    def step() -> None:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()

    return Yardstick(f"Gymnasium {env_id}, one environment", step, 1, env.close)


def cartpole(spec: EnvSpec) -> Yardstick:
    """Makes the yardstick of worlds that have no like."""
    del spec
    return gymnasium_yardstick("CartPole-v1")
