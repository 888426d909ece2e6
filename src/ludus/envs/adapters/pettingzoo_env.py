"""A world as a PettingZoo parallel environment: one game, every seat an agent."""

import secrets
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from ludus.core.errors import ActionError, MissingDependencyError
from ludus.envs.adapters.gymnasium_env import checked_render_mode, render_metadata
from ludus.envs.adapters.seating import (
    ActionStyle,
    SeatRewards,
    flat_observation_space,
    mask_info,
    presented_action_space,
)
from ludus.envs.base import Observations, action_dtypes
from ludus.envs.registry import make_env

try:
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise MissingDependencyError("pettingzoo", "pettingzoo", "the PettingZoo adapter") from error


class LudusParallelEnv(ParallelEnv[str, Any, Any]):  # type: ignore[misc]  # PettingZoo has no annotations
    """One game of any world; the agents are `seat_0`, `seat_1`, ... and all leave when the game ends.

    `infos[agent]` holds the step's `events` and `state_metrics` by name.
    """

    def __init__(
        self,
        world: str,
        *,
        reward: Mapping[str, float] | None = None,
        actions: ActionStyle = "native",
        config: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Make the game; see `ludus.envs.adapters.gymnasium_env.LudusEnv` for the arguments."""
        env = make_env(world, 1, config=config)
        self._env = env
        self._rewards = SeatRewards(env.spec, reward)
        self._seeded = False
        self.metadata = render_metadata(env) | {"name": env.spec.id.replace("-", "_"), "is_parallelizable": True}
        self.render_mode = checked_render_mode(env, render_mode)
        self.possible_agents = [f"seat_{seat}" for seat in range(env.spec.seats)]
        self.agents: list[str] = []
        # An own space object for each agent, as a space has a random state.
        seen, played = env.spec.observation_space, env.spec.action_space
        self.observation_spaces = {agent: flat_observation_space(deepcopy(seen)) for agent in self.possible_agents}
        self.action_spaces = {
            agent: presented_action_space(deepcopy(played), actions) for agent in self.possible_agents
        }

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of one agent, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of one agent, always the same object."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start an episode; without a seed the first one is drawn by chance. There are no options."""
        del options
        if seed is None and not self._seeded:
            seed = secrets.randbits(63)
        self._seeded = True
        observations = self._env.reset(seed=seed)
        self.agents = list(self.possible_agents)
        seen = self._seen(observations)
        return seen, {agent: dict(mask_info(self._env.spec, seen[agent])) for agent in self.agents}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step of all agents; raise ActionError if an agent has no action, or one of wrong shape."""
        if not self.agents:
            raise ActionError("the game is over; call reset() first")
        if set(actions) != set(self.agents):
            raise ActionError(f"actions are for {sorted(actions)}, the agents are {self.agents}")
        spec = self._env.spec
        rows = np.stack([np.asarray(actions[agent]) for agent in self.possible_agents])
        given = torch.as_tensor(rows, dtype=action_dtypes(spec.action_space)[0]).unsqueeze(0)
        result = self._env.step(given)
        events = {name: tensor[0].tolist() for name, tensor in result.events.items()}
        state_metrics = {name: tensor[0].tolist() for name, tensor in result.state_metrics.items()}
        rewards = self._rewards.total(result)[0].tolist()
        terminated, truncated = bool(result.terminated[0]), bool(result.truncated[0])
        agents, ended = self.agents, terminated or truncated
        seen = self._seen(result.final_observations if ended else result.observations)
        infos: dict[str, dict[str, Any]] = {
            agent: mask_info(spec, seen[agent])
            | {
                "events": {name: values[seat] for name, values in events.items()},
                "state_metrics": {name: values[seat] for name, values in state_metrics.items()},
            }
            for seat, agent in enumerate(agents)
        }
        if ended:
            self.agents = []
        return (
            seen,
            dict(zip(agents, rewards, strict=True)),
            dict.fromkeys(agents, terminated),
            dict.fromkeys(agents, truncated),
            infos,
        )

    def _seen(self, observations: Observations) -> dict[str, Any]:
        arrays = {name: tensor[0].numpy().copy() for name, tensor in observations.items()}
        if isinstance(self.observation_spaces[self.possible_agents[0]], spaces.Box):
            return dict(zip(self.possible_agents, next(iter(arrays.values())), strict=True))
        return {
            agent: {name: values[seat] for name, values in arrays.items()}
            for seat, agent in enumerate(self.possible_agents)
        }

    def render(self) -> NDArray[np.uint8] | None:
        """Draw the game, if a render mode was asked for."""
        return None if self.render_mode is None else self._env.render(0)

    def close(self) -> None:
        """Release what the world holds."""
        self._env.close()
