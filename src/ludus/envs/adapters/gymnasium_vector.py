"""A batch of games as a Gymnasium vector environment, stepped natively."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ludus.envs.adapters.gymnasium_env import checked_render_mode, render_metadata
from ludus.envs.adapters.seating import (
    ActionStyle,
    HostObservations,
    SeatedBatch,
    SeatedStep,
    Seating,
    mask_info,
    rows,
)
from ludus.envs.registry import make_env


class LudusVectorEnv(gym.vector.VectorEnv[Any, Any, NDArray[Any]]):
    """Many games of any world, for `gymnasium.make_vec("ludus/Brawl-v1", num_envs=1024)`.

    Games that end start anew within the step (`AutoresetMode.SAME_STEP`): `infos["final_obs"]` holds the last
    observation of each (None for the others), `infos["final_info"]` what happened in that step. `infos["events"]`
    and `infos["measures"]` hold one array a name, `infos["action_mask"]` what is allowed where the world says so.
    """

    def __init__(
        self,
        world: str,
        num_envs: int = 1,
        *,
        opponent: str | None = None,
        seat: int | None = None,
        reward: Mapping[str, float] | None = None,
        actions: ActionStyle = "native",
        config: Mapping[str, Any] | None = None,
        device: str | torch.device = "cpu",
        render_mode: str | None = None,
    ) -> None:
        """Makes the games; the arguments are those of `LudusEnv`, and the device that the games live on."""
        env = make_env(world, num_envs, device, config=config)
        self._batch = SeatedBatch(env, Seating(opponent, seat, reward, actions))
        self.num_envs = num_envs
        self.metadata = render_metadata(env) | {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = checked_render_mode(env, render_mode)
        self.single_observation_space = self._batch.observation_space
        self.single_action_space = self._batch.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[HostObservations, dict[str, Any]]:
        """Starts new episodes, in all games or in those of `options["reset_mask"]` `(num_envs,)` bool."""
        super().reset(seed=seed)
        mask = None if options is None else options.get("reset_mask")
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
            if mask is not None:
                self._batch.reset(seed=seed)
                seed = None
        self._seeded = True
        observations = self._batch.reset(mask, seed=seed)
        everyone = np.ones(self.num_envs, dtype=np.bool_)
        mask = mask_info(self._batch.env.spec, observations)
        return observations, {"seat": self._batch.seats, "_seat": everyone} | _masked(mask, everyone)

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[HostObservations, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Plays one step of all games against the bots."""
        step = self._batch.step(actions)
        return step.observations, step.rewards, step.terminated, step.truncated, self._infos(step)

    def _infos(self, step: SeatedStep) -> dict[str, Any]:
        everyone = np.ones(self.num_envs, dtype=np.bool_)
        infos = {
            "events": _masked(step.events, everyone),
            "_events": everyone,
            "measures": _masked(step.measures, everyone),
            "_measures": everyone,
        } | _masked(mask_info(self._batch.env.spec, step.observations), everyone)
        ended = step.terminated | step.truncated
        if ended.any():
            final = np.full(self.num_envs, None, dtype=object)
            for game in np.flatnonzero(ended).tolist():
                final[game] = rows(step.final_observations, game)
            infos |= {
                "final_obs": final,
                "_final_obs": ended,
                "final_info": {"events": _masked(step.events, ended), "_events": ended},
                "_final_info": ended,
            }
        return infos

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Draws all games, if a render mode was asked for."""
        if self.render_mode is None:
            return None
        return tuple(self._batch.env.render(game) for game in range(self.num_envs))

    def close_extras(self) -> None:
        """Releases what the world holds."""
        self._batch.env.close()


def _masked(named: Mapping[str, NDArray[Any]], mask: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Returns arrays with their `_name` masks, as Gymnasium keeps infos."""
    return {key: value for name, values in named.items() for key, value in ((name, values), (f"_{name}", mask))}
