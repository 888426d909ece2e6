"""An agent as RLBot's pilot asks it: one observation at a time."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, StateError, UnsupportedError
from ludus.envs.rocket.config import RocketConfig
from ludus.envs.rocket.env import rocket_spec
from ludus.envs.settings import read_settings
from ludus.policies.agent import Agent
from ludus.policies.memory import Memory

VECTOR = "vector"  # the only entry of Rocket's observations
ACTION_TOLERANCE = 1e-3  # of continuous actions; all others are whole numbers
_JITTER = 1e-5  # share by which observations are changed to see whether a choice is clear
_JITTERED = 8  # observations that are tried so


class AgentDecider:
    """Asks an agent, whose memory goes on until the next episode."""

    def __init__(self, agent: Agent, *, deterministic: bool) -> None:
        """Takes an agent; `deterministic` is whether it takes its most likely action or draws one."""
        self._agent, self._deterministic = agent, deterministic
        self._memory: Memory | None = None

    def __call__(self, observation: NDArray[np.float32], *, first: bool) -> Any:  # noqa: ANN401 - of any action space
        """Returns the action; see `pilot.Decide`."""
        memory = None if first else self._memory
        action, self._memory = self._agent.predict({VECTOR: observation}, memory, deterministic=self._deterministic)
        return action

    def is_clear(self, observation: NDArray[np.float32], *, first: bool) -> bool:
        """Says, before it is asked for, whether the action stays the same if an observation changes a little.

        Otherwise it is nearly a draw between two, and on another machine rounding may decide it the other way.
        """
        shares = np.random.default_rng(0).uniform(-_JITTER, _JITTER, (_JITTERED, len(observation)))
        shares[0] = 0.0
        rows = (observation * (1.0 + shares)).astype(np.float32)
        memory = None
        if not first and self._memory is not None:
            memory = {name: tensor.repeat_interleave(_JITTERED, dim=0) for name, tensor in self._memory.items()}
        actions, _ = self._agent.predict({VECTOR: rows}, memory, deterministic=True)
        return bool((np.abs(actions - actions[:1]) <= ACTION_TOLERANCE / 2).all())


def rocket_settings(agent: Agent, name: str | Path) -> RocketConfig:
    """Returns the settings of Rocket that an agent was trained with.

    Raises:
        UnsupportedError: It is an agent of another world, or does not see Rocket as RLBot can show it.
    """
    if agent.spec.name != "rocket":
        raise UnsupportedError(
            f"{str(name)!r} is an agent of {agent.spec.id}; only agents of rocket can play in RLBot: "
            "train one with `ludus train rocket`"
        )
    if set(agent.spec.observation_space) != {VECTOR}:
        entries = ", ".join(agent.spec.observation_space)
        raise UnsupportedError(
            f"{str(name)!r} sees the entries {entries}; packets of RLBot give {VECTOR!r} alone: train it with the "
            "settings observation=compact or full"
        )
    try:
        config = read_settings(RocketConfig, agent.settings, agent.spec.id)
        agent.check_world(rocket_spec(config))
    except (ConfigError, StateError) as error:
        raise UnsupportedError(f"{str(name)!r} cannot play in the rocket of this version: {error}") from error
    return config
