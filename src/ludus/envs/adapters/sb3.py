"""A batch of games as a Stable-Baselines3 `VecEnv`, so that SB3 and sb3-contrib train on our worlds."""

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, MissingDependencyError, UnsupportedError
from ludus.envs.adapters.gymnasium_env import checked_render_mode, render_metadata
from ludus.envs.adapters.seating import ActionStyle, HostObservations, SeatedBatch, SeatedStep, Seating, mask_of, rows
from ludus.envs.registry import make_env

try:
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn
except ImportError as error:
    raise MissingDependencyError("stable-baselines3", "sb3", "the Stable-Baselines3 adapter") from error


class LudusVecEnv(VecEnv):
    """Many games of any world with one learner each, as one SB3 vector environment.

    On/off keys are presented as MultiDiscrete of twos by default, since not all algorithms of sb3-contrib know
    MultiBinary. The infos of games that ended hold `terminal_observation`, `TimeLimit.truncated` and `episode`
    (return `r`, length `l`, seconds `t`, so no Monitor is needed). `events` holds what happened in the last step. In a
    world with a mask of allowed actions, sb3-contrib's MaskablePPO finds it in `action_masks`.
    """

    def __init__(
        self,
        world: str,
        num_envs: int,
        *,
        opponent: str | None = None,
        seat: int | None = None,
        reward: Mapping[str, float] | None = None,
        actions: ActionStyle = "multi_discrete",
        config: Mapping[str, Any] | None = None,
        device: str | torch.device = "cpu",
        render_mode: str | None = None,
    ) -> None:
        """Make the games, on any device; see `ludus.envs.adapters.gymnasium_env.LudusEnv` for the other arguments."""
        env = make_env(world, num_envs, device, config=config)
        self._batch = SeatedBatch(env, Seating(opponent, seat, reward, actions))
        self.render_mode = checked_render_mode(env, render_mode)
        super().__init__(num_envs, self._batch.observation_space, self._batch.action_space)
        self.metadata = render_metadata(env)
        self.events: Mapping[str, NDArray[np.float32]] = {}
        self._seeded = False
        self._waiting: NDArray[Any] | None = None
        self._masks: NDArray[np.bool_] | None = None
        self._returns = np.zeros(num_envs, dtype=np.float64)
        self._lengths = np.zeros(num_envs, dtype=np.int64)
        self._started_s = time.monotonic()

    def reset(self) -> HostObservations:
        """Start new episodes in all games; `seed` counts for the next reset only."""
        seed = self._seeds[0]
        if seed is None and not self._seeded:
            seed = secrets.randbits(63)
        self._seeded = True
        observations = self._batch.reset(seed=seed)
        self._masks = mask_of(self._batch.env.spec, observations)
        self._returns[:] = 0.0
        self._lengths[:] = 0
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions for `step_wait`."""
        self._waiting = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Play the step that `step_async` was given."""
        if self._waiting is None:
            raise ConfigError("step_wait without step_async: call step(actions), or step_async(actions) first")
        step = self._batch.step(self._waiting)
        self._waiting = None
        self.events = step.events
        self._masks = mask_of(self._batch.env.spec, step.observations)
        self._returns += step.rewards
        self._lengths += 1
        dones = step.terminated | step.truncated
        return step.observations, step.rewards, dones, self._infos(step, dones)

    def _infos(self, step: SeatedStep, dones: NDArray[np.bool_]) -> list[dict[str, Any]]:
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for game in np.flatnonzero(dones).tolist():
            infos[game] = {
                "terminal_observation": rows(step.final_observations, game),
                "TimeLimit.truncated": bool(step.truncated[game] and not step.terminated[game]),
                "episode": {
                    "r": float(self._returns[game]),
                    "l": int(self._lengths[game]),
                    "t": round(time.monotonic() - self._started_s, 6),
                },
            }
        self._returns[dones] = 0.0
        self._lengths[dones] = 0
        return infos

    def close(self) -> None:
        """Release what the world holds."""
        self._batch.env.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Draw all games, if a render mode was asked for."""
        drawn = self.render_mode is not None
        return [self._batch.env.render(game) if drawn else None for game in range(self.num_envs)]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of the batch once for each game, since games have none of their own."""
        if attr_name == "action_masks" and self._batch.env.spec.actions.mask is None:
            raise AttributeError(f"{self._batch.env.spec.id} has no mask of allowed actions")  # how sb3-contrib asks
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:  # noqa: ANN401
        """Games have no attributes of their own."""
        raise UnsupportedError(f"cannot set {attr_name!r} to {value!r} of {indices}: the games are one batch")

    def env_method(
        self,
        method_name: str,
        *method_args: Any,  # noqa: ANN401
        indices: VecEnvIndices = None,
        **method_kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        """Games have no methods of their own, but sb3-contrib asks for their masks in this way."""
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks[game] for game in self._get_indices(indices)]
        raise UnsupportedError(f"cannot call {method_name!r} of {indices}: the games are one batch")

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which choices are allowed, `(games, choices)`; UnsupportedError without a mask or a started game."""
        if self._masks is None:
            raise UnsupportedError(f"{self._batch.env.spec.id} has no mask of allowed actions, or reset was not called")
        return self._masks

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """No game is wrapped in anything; SB3 asks this about its Monitor, whose work `episode` does."""
        return [False for _ in self._get_indices(indices)]
