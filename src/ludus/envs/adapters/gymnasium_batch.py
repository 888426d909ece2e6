"""Any Gymnasium environment as a batched environment: the factory, and the batch that plays in our own process."""

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.adapters.gymnasium_games import GymnasiumBatch, GymnasiumSettings
from ludus.envs.adapters.gymnasium_spaces import action_form, batched_spec, observation_entries
from ludus.envs.adapters.gymnasium_worker import Games, Plan
from ludus.envs.adapters.gymnasium_workers import WorkerBatch
from ludus.envs.base import EnvRequest, EnvSpec
from ludus.envs.settings import read_settings

_WORKER_SLOTS = 2  # a worker writes into one set of observations while the last one stays whole


class InProcessBatch(GymnasiumBatch):
    """Games that are played one after another in our own process; best for small environments."""

    def __init__(self, spec: EnvSpec, plan: Plan, request: EnvRequest) -> None:
        views = {name: np.zeros(shape, dtype) for name, (shape, dtype) in plan.fields().items()}
        super().__init__(spec, plan, views, request)
        self._games = Games(plan, self._block, 0, self.num_games)

    def _start_marked(self) -> None:
        self._games.reset(0)
        self._begin(np.flatnonzero(self._block.resets).tolist())

    def _play(self) -> None:
        ended = self._games.step(0)
        if ended:
            self._begin(ended)

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draws one game, if it was made with `env_kwargs={"render_mode": "rgb_array"}`."""
        env = self._games.envs[game]
        if env.render_mode != "rgb_array":
            raise UnsupportedError(
                f"{self.spec.id} was made with render_mode {env.render_mode!r}; "
                "to draw it, use config={'env_kwargs': {'render_mode': 'rgb_array'}}"
            )
        return np.asarray(env.render(), dtype=np.uint8)

    def close(self) -> None:
        """Closes all games."""
        self._games.close()


def make(gym_id: str, request: EnvRequest) -> GymnasiumBatch:
    """Makes a batch of a Gymnasium environment; `config` takes the keys of `GymnasiumSettings`.

    Args:
        gym_id: Registered id such as `CartPole-v1`, or `module:Name-v0` to import a module first.
        request: Games, seed and settings.

    Raises:
        ConfigError: The id is unknown, or a setting is wrong.
        UnsupportedError: The environment has a space of a kind that we do not know.
        WorkerError: The workers cannot be started.
    """
    settings = read_settings(GymnasiumSettings, request.config, f"gym:{gym_id}")
    # With the settings of a large batch a small one is made too, to look at the world or to evaluate an agent.
    settings = settings.model_copy(update={"workers": min(settings.workers, request.num_games)})
    with _probe(gym_id, settings.env_kwargs) as env:
        spec = batched_spec(env, gym_id)
        entries = observation_entries(env.observation_space)[1]
        space, dtype = action_form(env.action_space)
    slots = _WORKER_SLOTS if settings.workers else 1
    plan = Plan(gym_id, settings.env_kwargs, request.num_games, slots, entries, tuple(space.shape or ()), dtype)
    if settings.workers:
        return WorkerBatch(spec, plan, request, settings)
    return InProcessBatch(spec, plan, request)


def _probe(gym_id: str, env_kwargs: dict[str, Any]) -> gym.Env[Any, Any]:
    """Makes one game, to look at its spaces."""
    try:
        return gym.make(gym_id, disable_env_checker=True, **env_kwargs)
    except (gym.error.Error, ImportError, TypeError) as error:
        raise ConfigError(f"Gymnasium cannot make {gym_id!r}: {error}") from error
